//! What came of parts: a line each, the failures once more, the counts, and all of it as JSON.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::cargo::lock;
use crate::counts::{Case, Counts, cases, counts, tells_failure};

/// How many lines of a failed part's log are shown at once.
const EVIDENCE: usize = 60;

/// What came of a part.
#[derive(Debug, Serialize)]
pub struct Played {
    /// The part.
    pub name: String,
    /// How many of its checks passed and failed; at least one failed if it did not succeed.
    #[serde(flatten)]
    pub counts: Counts,
    /// How long it took.
    pub seconds: f64,
    /// Why it failed, where no check says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where all that it said is.
    pub log: PathBuf,
    /// The checks that have a name.
    pub cases: Vec<Case>,
}

/// A step that is no part: a build, an image.
#[derive(Debug, Serialize)]
struct Stepped {
    name: String,
    seconds: f64,
    passed: bool,
}

/// Everything that is told.
#[derive(Debug, Serialize)]
struct Results<'a> {
    passed: u64,
    failed: u64,
    seconds: f64,
    parts: &'a [Played],
    steps: &'a [Stepped],
}

/// Tells people, and remembers for the end.
pub struct Report {
    logs: PathBuf,
    begin: Instant,
    terminal: Option<MultiProgress>,
    parts: Mutex<Vec<Played>>,
    steps: Mutex<Vec<Stepped>>,
}

impl Report {
    /// For logs in `logs`, whose older ones are removed by those who write them.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn new(logs: PathBuf) -> Result<Self> {
        fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        Ok(Self {
            logs,
            begin: Instant::now(),
            terminal: io::stdout()
                .is_terminal()
                .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stdout())),
            parts: Mutex::default(),
            steps: Mutex::default(),
        })
    }

    /// The log of a part or a step.
    pub fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// An empty log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fresh_log(&self, name: &str) -> Result<PathBuf> {
        let log = self.log(name);
        fs::write(&log, "").with_context(|| log.display().to_string())?;
        Ok(log)
    }

    /// That something has begun. On a terminal its newest line is shown until that is let go.
    pub fn begin(&self, name: &str) -> Running {
        let bar = self.terminal.as_ref().map(|all| {
            let style =
                ProgressStyle::with_template("{spinner} {prefix:<18} {elapsed:>5} {wide_msg:.dim}");
            let bar = all.add(ProgressBar::new_spinner());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.is_none() {
            self.say(&format!(
                "{name:<18} begins after {} s",
                self.begin.elapsed().as_secs()
            ));
        }
        Running {
            bar,
            begin: Instant::now(),
        }
    }

    /// A line for people.
    pub fn say(&self, line: &str) {
        let said = match &self.terminal {
            Some(all) => all.println(line),
            None => writeln!(io::stdout().lock(), "{line}"),
        };
        // nobody is there to be told
        let _ = said;
    }

    /// What came of a step; whether it succeeded.
    pub fn stepped(&self, name: &str, running: &Running, end: Result<bool>) -> bool {
        let passed = matches!(end, Ok(true));
        let seconds = running.begin.elapsed().as_secs_f64();
        let log = self.log(name);
        let word = if passed { "ok" } else { "FAILED" };
        self.say(&format!(
            "{name:<18} {word:<7} {:>39.0} s   {}",
            seconds,
            log.display()
        ));
        if !passed {
            if let Err(error) = end {
                self.say(&format!("    {error:#}"));
            }
            self.evidence(&log);
        }
        lock(&self.steps).push(Stepped {
            name: name.into(),
            seconds,
            passed,
        });
        passed
    }

    /// What came of a part, by its log; whether it succeeded. `good` is whether its program did, or why not.
    pub fn played(&self, name: &str, took: Duration, good: Result<(), String>) -> bool {
        self.played_cases(name, took, good, None)
    }

    /// The same of a part whose checks were heard one by one.
    pub fn played_cases(
        &self,
        name: &str,
        took: Duration,
        good: Result<(), String>,
        heard: Option<Vec<Case>>,
    ) -> bool {
        let text = fs::read_to_string(self.log(name)).unwrap_or_default();
        let mut counts = counts(&text);
        let mut why = good.err();
        if why.is_none() && counts.passed == 0 && counts.failed == 0 {
            why = Some("it played nothing".into());
        }
        if why.is_some() && counts.failed == 0 {
            counts.failed = 1;
        }
        let cases = heard.unwrap_or_else(|| cases(&text));
        self.tell(name, took, counts, why, cases)
    }

    /// That something has failed which is no part: a machine, whose log has the same name.
    pub fn failed(&self, name: &str, took: Duration, why: String) {
        let counts = Counts {
            passed: 0,
            failed: 1,
        };
        self.tell(name, took, counts, Some(why), Vec::new());
    }

    fn tell(
        &self,
        name: &str,
        took: Duration,
        counts: Counts,
        why: Option<String>,
        cases: Vec<Case>,
    ) -> bool {
        let log = self.log(name);
        let passed = counts.failed == 0;
        self.say(&format!(
            "{name:<18} {:<7} {:>6} passed {:>4} failed {:>12.0} s   {}",
            if passed { "ok" } else { "FAILED" },
            counts.passed,
            counts.failed,
            took.as_secs_f64(),
            log.display()
        ));
        if !passed {
            if let Some(why) = &why {
                self.say(&format!("    {why}"));
            }
            self.evidence(&log);
        }
        lock(&self.parts).push(Played {
            name: name.into(),
            counts,
            seconds: took.as_secs_f64(),
            why,
            log,
            cases,
        });
        passed
    }

    /// What a log says of what failed, and how it ends.
    fn evidence(&self, log: &Path) {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let mut shown = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            if tells_failure(line) && shown.last().is_none_or(|last| place > *last) {
                shown.extend(place..lines.len().min(place + 7));
            }
        }
        for place in shown.into_iter().take(EVIDENCE) {
            self.say(&format!("    {}: {}", place + 1, lines[place]));
        }
        self.ending(log, 15);
    }

    /// The last lines of a log: where a part was that did not come to its end.
    fn ending(&self, log: &Path, most: usize) {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        self.say("    …");
        for line in &lines[lines.len().saturating_sub(most)..] {
            self.say(&format!("    {line}"));
        }
    }

    /// The failures once more, the results as JSON, and the closing line; whether all is well. Of the parts that were
    /// `asked` for, one that has not been told of has failed.
    ///
    /// # Errors
    /// When the results cannot be written.
    pub fn close(&self, results: &Path, asked: &[String]) -> Result<bool> {
        for name in asked {
            let told = lock(&self.parts).iter().any(|part| part.name == *name);
            if !told {
                self.failed(name, Duration::ZERO, "nothing became of it".into());
            }
        }
        let parts = lock(&self.parts);
        let steps = lock(&self.steps);
        for part in parts.iter().filter(|part| part.counts.failed > 0) {
            for case in part.cases.iter().filter(|case| !case.passed).take(12) {
                self.say(&format!("FAILED {}: {}", part.name, case.name));
            }
            if let Some(why) = &part.why {
                self.say(&format!("FAILED {}: {why}", part.name));
                self.ending(&part.log, 4);
            }
        }
        let passed = parts.iter().map(|part| part.counts.passed).sum();
        let failed = parts.iter().map(|part| part.counts.failed).sum::<u64>()
            + steps.iter().filter(|step| !step.passed).count() as u64;
        let seconds = self.begin.elapsed().as_secs_f64();
        let all = Results {
            passed,
            failed,
            seconds,
            parts: &parts,
            steps: &steps,
        };
        fs::write(results, serde_json::to_string_pretty(&all)?)
            .with_context(|| results.display().to_string())?;
        self.say(&format!(
            "{seconds:.0} s; everything as JSON: {}",
            results.display()
        ));
        self.say(&format!("{passed} passed, {failed} failed"));
        Ok(failed == 0)
    }
}

/// Something that has begun.
pub struct Running {
    bar: Option<ProgressBar>,
    begin: Instant,
}

impl Running {
    /// The newest line of it.
    pub fn line(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(line.to_owned());
        }
    }

    /// How long ago it began.
    pub fn took(&self) -> Duration {
        self.begin.elapsed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
