//! What the lab shows while it builds: spinners on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
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
        self.done_with("");
    }

    /// The same, and something to add.
    fn done_with(self, more: &str) {
        let comma = if more.is_empty() { "" } else { ", " };
        let seconds = self.start.elapsed().as_secs_f64();
        let line = format!("{}: {seconds:.1} s{comma}{more}", self.what);
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

/// What a run of many boots shows: how far it is, and about how long it will take.
#[derive(Debug)]
pub struct Countdown<'a> {
    progress: &'a Progress,
    bar: Option<ProgressBar>,
    jobs: usize,
    state: Mutex<State>,
}

/// Seconds, guessed beforehand and taken.
#[derive(Debug, Clone, Copy)]
struct State {
    left: f64,
    guessed: f64,
    taken: f64,
}

impl State {
    /// Seconds that are left, by how wrong the guesses were so far.
    fn remaining(self, jobs: usize) -> f64 {
        let pace = if self.guessed > 0.0 {
            self.taken / self.guessed
        } else {
            1.0
        };
        self.left * pace / jobs.max(1) as f64
    }
}

impl<'a> Countdown<'a> {
    /// Starts it, for guesses that add up to `seconds`, so many `jobs` at a time.
    #[must_use]
    pub fn new(progress: &'a Progress, seconds: u32, jobs: usize) -> Self {
        let bar = progress.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(u64::from(seconds)));
            bar.set_style(
                ProgressStyle::with_template("{bar:40} {percent} %, {msg}")
                    .expect("a constant template"),
            );
            bar
        });
        let countdown = Self {
            progress,
            bar,
            jobs,
            state: Mutex::new(State {
                left: f64::from(seconds),
                guessed: 0.0,
                taken: 0.0,
            }),
        };
        countdown.advance(0, None);
        countdown
    }

    /// One boot's step.
    #[must_use]
    pub fn step(&self, what: &str) -> Leg<'_> {
        Leg {
            countdown: self,
            step: self.progress.step(what),
        }
    }

    /// What was guessed to take so long is known already.
    pub fn known(&self, seconds: u32) {
        self.advance(seconds, None);
    }

    /// Moves on, and returns what is left in words.
    fn advance(&self, guessed: u32, taken: Option<f64>) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left -= f64::from(guessed);
        if let Some(taken) = taken {
            state.guessed += f64::from(guessed);
            state.taken += taken;
        }
        let left = match state.remaining(self.jobs) {
            s if s < 1.0 => "nearly done".to_owned(),
            s if s < 90.0 => format!("about {s:.0} s left"),
            s => format!("about {:.0} min left", s / 60.0),
        };
        if let Some(bar) = &self.bar {
            bar.inc(u64::from(guessed));
            bar.set_message(left.clone());
        }
        left
    }
}

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// One boot of a countdown.
#[derive(Debug)]
pub struct Leg<'a> {
    countdown: &'a Countdown<'a>,
    step: Step,
}

impl Leg<'_> {
    /// Ends it; `seconds` is what had been guessed, `failed` why it gave nothing.
    pub fn done(self, seconds: u32, failed: &str) {
        let taken = self.step.start.elapsed().as_secs_f64();
        let left = self.countdown.advance(seconds, Some(taken));
        self.step.done_with(&match failed {
            "" => left,
            why => format!("{left}; nothing measured: {why}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_the_pace() {
        let state = State {
            left: 100.0,
            guessed: 10.0,
            taken: 20.0,
        };
        assert!((state.remaining(2) - 100.0).abs() < 1e-9);
        let fresh = State {
            guessed: 0.0,
            taken: 0.0,
            ..state
        };
        assert!((fresh.remaining(1) - 100.0).abs() < 1e-9);
    }
}
