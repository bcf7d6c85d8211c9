//! The daemon: answers the kernel's calls for the guard, writes the audit log,
//! and answers who asks. Enforcement does not depend on it.

mod answer;
mod boot;
mod instance;
mod policies;
mod serve;

use std::io::{self, Read, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_monitor::Monitor;
use tidegate_policy::Policy;

pub use self::answer::status;
pub use self::instance::clean_up;
pub use self::policies::Policies;
use crate::cli;
use crate::exit::{Code, Failure, Outcome};

/// What came of starting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The exit code, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<u8>,
    /// One line.
    pub message: String,
    /// What is not as it should be.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What the daemon's threads share.
#[derive(Debug)]
pub struct Shared {
    /// The kernel's side.
    pub monitor: Monitor,
    /// The policies put in force since boot.
    pub policies: Policies,
}

/// The daemon as `start` runs it: the bundle on standard input (nothing: take
/// over), the [`Report`] on standard output.
pub fn detached(how: &cli::Daemon) -> Outcome {
    let mut bundle = Vec::new();
    io::stdin().read_to_end(&mut bundle).map_err(|e| Failure::io("read the bundle", e))?;
    let policy = match bundle.as_slice() {
        [] => None,
        bytes => Some(
            Policy::from_bundle(bytes).map_err(|e| Failure::new(Code::Policy, e))?,
        ),
    };
    let _ = rustix::process::setsid();
    let told = |report: Report| {
        let _ = serde_json::to_writer(io::stdout(), &report);
        let _ = io::stdout().flush();
        instance::silence();
    };
    match run(policy, how, told) {
        Ok(()) => Ok(()),
        Err(failure) => {
            let report = Report {
                code: Some(failure.code as u8),
                message: failure.report.to_string(),
                warnings: Vec::new(),
            };
            let _ = serde_json::to_writer(io::stdout(), &report);
            Ok(())
        }
    }
}

/// Runs until it is told to end; `ready` hears once enforcement is up.
pub fn run(
    policy: Option<Policy>,
    how: &cli::Daemon,
    ready: impl FnOnce(Report),
) -> Outcome {
    let instance = instance::Instance::claim()?;
    let (shared, report) = boot::boot(policy, how)?;
    let shared = Arc::new(shared);
    let server = serve::Server::listen()?;
    shared.monitor.set_daemon(std::process::id());
    ready(report);
    server.run(&shared);
    shared.monitor.set_daemon(0);
    drop(instance);
    Ok(())
}
