//! Runs a program with a log and a deadline. What a program has started ends with it.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

/// How many lines may wait to be heard: a program that says more than that waits itself.
const LINES: usize = 1000;

/// The process groups that run, one for each program.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Exited(ExitStatus),
    /// A deadline passed, and it was killed.
    TimedOut,
}

impl End {
    /// Whether it succeeded.
    pub fn success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

/// What becomes of a line that a program says.
pub enum Next {
    /// The program goes on; the deadline is what it was.
    GoOn,
    /// From now on it has so long.
    Within(Duration),
}

/// Runs `command` and hands each line of its standard output and error to `line`, until it ends or the deadline passes.
///
/// # Errors
/// When the program cannot be started, or `line` fails; the program is killed then.
pub fn lines(
    mut command: Command,
    within: Duration,
    mut line: impl FnMut(&str) -> Result<Next>,
) -> Result<End> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let (mut child, group) =
        Group::start(&mut command).with_context(|| format!("cannot run {name}"))?;
    // it has the pipe's other end
    drop(command);

    let (sender, receiver) = mpsc::sync_channel(LINES);
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut bytes) {
            if sender
                .send(String::from_utf8_lossy(&bytes).into_owned())
                .is_err()
            {
                break;
            }
            bytes.clear();
        }
    });
    let mut deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // a program that goes on talking is ended, too
            group.kill();
            child.wait()?;
            return Ok(End::TimedOut);
        }
        match receiver.recv_timeout(left) {
            Ok(said) => {
                if let Next::Within(time) = line(said.trim_end_matches(['\n', '\r']))? {
                    deadline = Instant::now() + time;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match child.try_wait()? {
                Some(status) => return Ok(End::Exited(status)),
                // it has closed its output, and goes on
                None => thread::sleep(Duration::from_millis(10)),
            },
        }
    }
}

/// A process group, killed when it is let go: nothing that a part has started outlives it.
struct Group(i32);

impl Group {
    /// Starts a program as a group of its own. It is known from the beginning, so that [`end_all`] forgets none.
    fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let mut all = groups();
        let child = command.spawn()?;
        let group = child.id() as i32;
        all.insert(group);
        Ok((child, Self(group)))
    }

    fn kill(&self) {
        kill(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        groups().remove(&self.0);
        self.kill();
    }
}

fn kill(group: i32) {
    if let Some(pid) = Pid::from_raw(group) {
        // it may be gone already
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all programs that run, and ends this process with a status. No program is started meanwhile.
pub fn end_all(status: i32) -> ! {
    let all = groups();
    all.iter().copied().for_each(kill);
    std::process::exit(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_of_both_streams_are_heard() {
        let mut heard = Vec::new();
        let end = lines(
            shell("echo out; echo err >&2; printf last; exit 3"),
            Duration::from_secs(600),
            |line| {
                heard.push(line.to_owned());
                Ok(Next::GoOn)
            },
        )
        .unwrap();
        assert_eq!(heard, ["out", "err", "last"]);
        assert!(matches!(end, End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn a_deadline_ends_a_program_that_goes_on_talking() {
        let end = lines(
            shell("while :; do echo line; done"),
            Duration::from_millis(100),
            |_| Ok(Next::GoOn),
        );
        assert_eq!(end.unwrap(), End::TimedOut);
    }

    #[test]
    fn a_program_may_close_its_output_before_it_ends() {
        let end = lines(
            shell("exec >&- 2>&-; sleep 0.1; exit 3"),
            Duration::from_secs(600),
            |_| Ok(Next::GoOn),
        );
        assert!(matches!(end.unwrap(), End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn a_deadline_ends_all_that_was_started() {
        let mut heard = String::new();
        let end = lines(
            shell("sleep 1000 & echo $!; wait"),
            Duration::from_secs(600),
            |line| {
                heard = line.to_owned();
                Ok(Next::Within(Duration::ZERO))
            },
        )
        .unwrap();
        assert_eq!(end, End::TimedOut);
        let ended = || {
            let state = std::fs::read_to_string(format!("/proc/{heard}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        // it was killed, and goes when it runs next
        while !ended() {
            thread::yield_now();
        }
    }
}
