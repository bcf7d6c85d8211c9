//! One QEMU process, from its start to its end.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::protocol::{Decoder, Frame};

/// How long the guest may take to switch itself off after its report.
const POWER_OFF: Duration = Duration::from_secs(10);

/// How a boot ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The guest reported its command's end.
    Reported {
        /// Its exit status, or 128 and the signal that killed it.
        status: i32,
        /// The kernel's taint bits after it.
        taint: u64,
    },
    /// The guest could not run the command.
    Failed(String),
    /// QEMU ended without a report: a panic, or QEMU itself failed.
    Died,
    /// The deadline passed.
    TimedOut,
}

/// Runs QEMU and hands every frame but the last to `on_frame`.
pub(super) fn run(
    mut command: Command,
    errors: &Path,
    timeout: Duration,
    mut on_frame: impl FnMut(Frame) -> Result<()>,
) -> Result<End> {
    let deadline = Instant::now() + timeout;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(errors)?);
    // SAFETY: the closure only makes one system call, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            // No machine outlives a harness that was killed.
            let signal = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(signal).map_err(Into::into)
        });
    }
    let mut qemu = Qemu(command.spawn().context("starting QEMU")?);
    let pieces = read_in_background(qemu.0.stdout.take().context("QEMU's output")?);

    let mut decoder = Decoder::default();
    let end = 'end: loop {
        while let Some(frame) = decoder.next()? {
            match frame {
                Frame::Exit { status, taint } => break 'end End::Reported { status, taint },
                Frame::Failed(why) => break 'end End::Failed(why),
                other => on_frame(other)?,
            }
        }
        match pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => decoder.feed(&piece),
            Err(RecvTimeoutError::Timeout) => return Ok(End::TimedOut),
            Err(RecvTimeoutError::Disconnected) => break End::Died,
        }
    };
    // The console log is complete only when QEMU is gone.
    let patience = Instant::now() + POWER_OFF;
    while qemu.0.try_wait()?.is_none() && Instant::now() < patience {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(end)
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            if sender.send(buffer[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Kills the process when it is let go.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
