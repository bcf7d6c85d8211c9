//! What there is to tell, at one moment.

use std::path::Path;
use std::time::Duration;

use serde::de::IgnoredAny;
use tidegate_protocol::{Answer, Ask, AskError, LEVELS, Metrics, ask};

/// How long the daemon may take: less than a scrape, which Prometheus gives 10 s.
const PATIENCE: Duration = Duration::from_secs(4);

/// What was found.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Whether the monitor is in the kernel; the daemon's death does not change that.
    pub loaded: bool,
    /// What the daemon answered, if it did.
    pub metrics: Option<Metrics>,
}

impl Snapshot {
    /// Asks the daemon; why it does not answer is told on standard error, but not that
    /// there is none.
    pub fn take() -> Snapshot {
        let metrics = match ask::<IgnoredAny>(&Ask::Metrics, None, PATIENCE) {
            Ok(Answer::Metrics(metrics)) => Some(*metrics),
            Ok(Answer::Error { message, .. }) => complain(&format!("the daemon says: {message}")),
            Ok(_) => complain("the daemon gave another answer"),
            Err(AskError::NotRunning) => None,
            Err(e) => complain(&e.to_string()),
        };
        Snapshot {
            loaded: Path::new(LEVELS).exists(),
            metrics,
        }
    }
}

fn complain(what: &str) -> Option<Metrics> {
    tell!("{what}");
    None
}
