//! The processes of a sequence, as the controller has them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid as Number, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tidegate_model::{Pid, Program};
use tidegate_monitor::Monitor;

use crate::replay::wire::{ANSWERS, Answer, LINES, NURSERY, REQUESTS, Request};

/// How long an answer may take.
const PATIENCE: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};

/// A living process of the sequence.
struct Process {
    number: i64,
    handle: OwnedFd,
    /// Its second thread.
    second: Option<u32>,
}

/// What a process did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It answered.
    Answered(Answer),
    /// It ended without an answer.
    Ended,
    /// Neither, for too long.
    Silent,
}

/// The nursery, and those who came from it.
pub struct Control {
    requests: Vec<File>,
    answers: File,
    nursery: OwnedFd,
    processes: Vec<Option<Process>>,
}

fn handle(number: i64) -> Result<OwnedFd> {
    let pid = i32::try_from(number)
        .ok()
        .and_then(Number::from_raw)
        .context("no process id")?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

impl Control {
    /// Starts the nursery: a plain program at the top level, from which every
    /// sequence's first processes are forked.
    pub fn start() -> Result<Control> {
        let (answers, answer) = pipe_with(PipeFlags::CLOEXEC)?;
        let (mut requests, mut inherited) = (Vec::new(), Vec::new());
        for line in 0..LINES {
            let (request, send) = pipe_with(PipeFlags::CLOEXEC)?;
            requests.push(File::from(send));
            inherited.push((request, REQUESTS + RawFd::from(line)));
        }
        inherited.push((answer, ANSWERS));
        let mut command = Command::new(Program::Worker.path());
        command.arg(format!("{NURSERY}:0")).env_clear();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let places: Vec<(RawFd, RawFd)> = inherited
            .iter()
            .map(|(fd, to)| (fd.as_raw_fd(), *to))
            .collect();
        let put = move || {
            for (fd, to) in &places {
                // SAFETY: dup2 may be called between fork and exec.
                if unsafe { libc::dup2(*fd, *to) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        let child = unsafe { command.pre_exec(put) }
            .spawn()
            .context("start the nursery")?;
        let mut control = Control {
            requests,
            answers: File::from(answers),
            nursery: handle(child.id().into())?,
            processes: Vec::new(),
        };
        match control.answer(NURSERY)? {
            Outcome::Answered(Answer { errno: 0, .. }) => Ok(control),
            other => bail!("the nursery does not live: {other:?}"),
        }
    }

    /// The first processes of a sequence.
    pub fn spawn(&mut self, count: Pid) -> Result<()> {
        self.processes.clear();
        for pid in 0..count {
            match self.ask(NURSERY, &Request::Spawn(pid))? {
                Outcome::Answered(Answer {
                    errno: 0, value, ..
                }) => self.born(value)?,
                other => bail!("the nursery did not fork: {other:?}"),
            }
        }
        Ok(())
    }

    /// A process was born with this number.
    pub fn born(&mut self, number: i64) -> Result<()> {
        let process = Process {
            number,
            handle: handle(number)?,
            second: None,
        };
        self.processes.push(Some(process));
        Ok(())
    }

    fn process(&self, pid: Pid) -> Result<&Process> {
        let process = self
            .processes
            .get(usize::from(pid))
            .and_then(Option::as_ref);
        process.with_context(|| format!("p{pid} does not live"))
    }

    /// The kernel's number of a process.
    pub fn number(&self, pid: Pid) -> Result<i64> {
        Ok(self.process(pid)?.number)
    }

    /// A process has this second thread, or none any more.
    pub fn set_second(&mut self, pid: Pid, tid: Option<u32>) {
        if let Some(process) = self
            .processes
            .get_mut(usize::from(pid))
            .and_then(Option::as_mut)
        {
            process.second = tid;
        }
    }

    /// A process ends, or has ended; comes back when it is gone.
    pub fn ended(&mut self, pid: Pid) -> Result<()> {
        let Some(process) = self
            .processes
            .get_mut(usize::from(pid))
            .and_then(Option::take)
        else {
            return Ok(());
        };
        let mut gone = [PollFd::new(&process.handle, PollFlags::IN)];
        if poll(&mut gone, Some(&PATIENCE))? == 0 {
            bail!("p{pid} does not end");
        }
        Ok(())
    }

    /// Ends all that is left of a sequence.
    pub fn end(&mut self) -> Result<()> {
        for process in self.processes.iter().flatten() {
            // one that has just ended need not be told
            let _ = pidfd_send_signal(&process.handle, Signal::KILL);
        }
        (0..self.processes.len()).try_for_each(|pid| self.ended(pid as Pid))
    }

    /// Sends a request and waits for what comes of it.
    pub fn ask(&mut self, pid: Pid, request: &Request) -> Result<Outcome> {
        request
            .send(&mut self.requests[usize::from(pid)])
            .context("ask a worker")?;
        self.answer(pid)
    }

    fn answer(&mut self, pid: Pid) -> Result<Outcome> {
        let handle = if pid == NURSERY {
            &self.nursery
        } else {
            &self.process(pid)?.handle
        };
        let mut ready = [
            PollFd::new(&self.answers, PollFlags::IN),
            PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN),
        ];
        if poll(&mut ready, Some(&PATIENCE))? == 0 {
            return Ok(Outcome::Silent);
        }
        // a process that has ended may have answered just after its answer was looked for
        let mut late = [PollFd::new(&self.answers, PollFlags::IN)];
        if poll(&mut late, Some(&Timespec::default()))? > 0 {
            return Ok(Outcome::Answered(Answer::receive(&mut self.answers)?));
        }
        Ok(Outcome::Ended)
    }

    /// The level of each thread of a process.
    pub fn levels(&self, monitor: &Monitor, pid: Pid, top: u8) -> Result<Vec<u8>> {
        let process = self.process(pid)?;
        let mut levels = vec![monitor.level_of(process.handle.as_fd())?];
        if let Some(tid) = process.second {
            levels.push(
                monitor
                    .subject_of(tid)?
                    .map_or(top, |subject| subject.level),
            );
        }
        Ok(levels)
    }
}
