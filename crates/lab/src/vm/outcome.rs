//! How a run ended, in full.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::console;
use super::process::End;
use super::rundir::RunDir;

/// Lines of the console log shown with a failure.
const TAIL: usize = 25;

/// How a run ended, and what the kernel had to say.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The kernel's own complaints (BUG, Oops, WARNING, taint). Any of them
    /// makes the run a failure.
    pub complaints: Vec<String>,
    /// The console log; kept for the next few dozen runs.
    pub console: PathBuf,
    /// From QEMU's start to the command's; none if it never started.
    pub boot: Option<Duration>,
    /// From QEMU's start to its end.
    pub total: Duration,
    qemu_errors: String,
}

impl Outcome {
    pub(super) fn new(
        end: End,
        boot: Option<Duration>,
        total: Duration,
        dir: &RunDir,
    ) -> Result<Self> {
        let log = fs::read(dir.console()).unwrap_or_default();
        let mut complaints = console::complaints(&String::from_utf8_lossy(&log));
        if let End::Reported { taint, .. } = end {
            complaints.extend(console::taint_complaints(taint));
        }
        let qemu_errors = fs::read_to_string(dir.errors())?;
        Ok(Self {
            end,
            complaints,
            console: dir.console(),
            boot,
            total,
            qemu_errors,
        })
    }

    /// The command's exit status, if it came to its end.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        match self.end {
            End::Reported { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Whether the command returned 0 and the kernel did not complain.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status() == Some(0) && self.complaints.is_empty()
    }

    /// What went wrong, in words; for a failure of the machine or the kernel
    /// with the end of the console log.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = match &self.end {
            End::Reported { status, .. } => format!("the command returned {status}"),
            End::Failed(why) => format!("the guest could not run the command: {why}"),
            End::Died => "the machine ended without a report".into(),
            End::TimedOut => format!("no end after {:.0} s", self.total.as_secs_f64()),
        };
        for line in &self.complaints {
            let _ = write!(text, "\nkernel: {line}");
        }
        if self.status().is_none() || !self.complaints.is_empty() {
            let log = fs::read(&self.console).unwrap_or_default();
            let tail = console::tail(&String::from_utf8_lossy(&log), TAIL);
            let _ = write!(text, "\n--- the end of {}\n{tail}", self.console.display());
            if !self.qemu_errors.is_empty() {
                let errors = console::tail(&self.qemu_errors, TAIL);
                let _ = write!(text, "\n--- QEMU's own messages\n{errors}");
            }
        }
        text
    }
}
