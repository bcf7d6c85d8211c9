//! What the lab shows while it builds: spinners on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Where the lab's own messages go: always standard error, so that a guest's
/// standard output stays clean.
#[derive(Debug, Clone)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            bars: std::io::stderr().is_terminal().then(MultiProgress::new),
        }
    }
}

impl Progress {
    /// Starts a step; it ends with [`Step::done`], or is cleared when dropped.
    #[must_use]
    pub fn step(&self, what: &str) -> Step {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new_spinner());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}")
                    .expect("a constant template"),
            );
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            eprintln!("lab: {what} …");
        }
        Step {
            bar,
            what: what.to_owned(),
            start: Instant::now(),
        }
    }
}

/// One step under way.
#[derive(Debug)]
pub struct Step {
    bar: Option<ProgressBar>,
    what: String,
    start: Instant,
}

impl Step {
    /// Marks the step as finished and says how long it took.
    pub fn done(self) {
        let line = format!("{}: {:.1} s", self.what, self.start.elapsed().as_secs_f64());
        match &self.bar {
            Some(bar) => bar.println(format!("lab: {line}")),
            None => eprintln!("lab: {line}"),
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
