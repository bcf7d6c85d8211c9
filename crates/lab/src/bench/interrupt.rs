//! Signals that end the measurement: enforcement has to be switched off before it ends.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether such a signal came. It ends what is being measured, too.
#[derive(Debug)]
pub(super) struct Interrupt {
    came: Arc<AtomicBool>,
    /// The process group of what runs now, 0 for none.
    group: Arc<AtomicI32>,
}

impl Interrupt {
    /// From now on such signals no longer end this program.
    pub(super) fn watch() -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        let group = Arc::new(AtomicI32::new(0));
        let (mut woken, wake) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, came.clone())?;
            signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
        }
        let running = group.clone();
        std::thread::spawn(move || {
            while let Ok(1) = woken.read(&mut [0]) {
                end(running.load(Ordering::SeqCst));
            }
        });
        Ok(Self { came, group })
    }

    /// Fails once a signal came.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(!self.came.load(Ordering::SeqCst), "interrupted");
        Ok(())
    }

    /// Runs a command to its end, or to a signal: then this fails.
    pub(super) fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        self.check()?;
        let mut child = command.process_group(0).spawn()?;
        let group = i32::try_from(child.id())?;
        self.group.store(group, Ordering::SeqCst);
        if self.check().is_err() {
            // It came before the thread could know of the child.
            end(group);
        }
        let status = child.wait();
        self.group.store(0, Ordering::SeqCst);
        self.check()?;
        Ok(status?)
    }
}

/// Fails only for a group that has ended already.
fn end(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_what_runs() {
        let interrupt = Interrupt::watch().unwrap();
        assert!(interrupt.run(&mut Command::new("true")).unwrap().success());
        let start = std::time::Instant::now();
        let mut script = Command::new("sh");
        // to this process, whose child it is, and then it goes on
        script.args(["-c", "kill -HUP $PPID; sleep 60"]);
        assert!(interrupt.run(&mut script).is_err());
        assert!(start.elapsed().as_secs() < 30);
        assert!(interrupt.run(&mut Command::new("true")).is_err());
    }
}
