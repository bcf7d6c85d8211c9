//! Plays parts: here, or in machines that they share.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cargo::{self, Units};
use crate::counts::{Case, case};
use crate::lint;
use crate::part::Part;
use crate::process::{self, End, Next};
use crate::report::{Report, Running};
use crate::suite::{Guest, How, Place, Program, Step, TIDEGATE};

/// How long a build or an image may take.
const STEP: Duration = Duration::from_secs(60 * 60);

/// How long a machine may take until its first part begins, and from the last one's end to its own.
const BOOT: Duration = Duration::from_secs(10 * 60);

/// What may be handed to a machine's parts by the environment, as docs/dev/testing.md says.
const PASSED_ON: &[&str] = &[
    "ATTACK_CALLS",
    "ATTACK_LEAVE_OUT",
    "ATTACK_SECONDS",
    "ATTACK_SEED",
    "CAPS_SEED",
    "CAPS_COUNT",
    "CROWD",
    "REPLAY_SEED",
    "REPLAY_OPS",
    "RELOADS",
    "KILLS",
    "FLOOD",
    "SOAK",
];

/// What all that is played shares.
pub struct Play {
    target: PathBuf,
    report: Report,
    units: Units,
    /// Processors of a machine.
    processors: usize,
    /// How many minutes a part may take, if not as many as the table of suites says.
    minutes: Option<u64>,
    /// Words for the parts' own programs: names of scenarios, filters.
    words: Vec<String>,
}

impl Play {
    /// In the directory of the workspace.
    ///
    /// # Errors
    /// When the directory for logs cannot be made.
    pub fn new(processors: usize, minutes: Option<u64>, words: Vec<String>) -> Result<Self> {
        let target = cargo::target()?;
        Ok(Self {
            report: Report::new(target.join("test-logs"))?,
            units: Units::default(),
            target,
            processors,
            minutes,
            words,
        })
    }

    /// What is told.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The longest that a part may take.
    fn within(&self, part: Part) -> Duration {
        Duration::from_secs(60 * self.minutes.unwrap_or(part.suite.minutes))
    }

    /// Where the results are.
    pub fn results(&self) -> PathBuf {
        self.target.join("test-results.json")
    }

    /// Where built programs are.
    fn programs(&self) -> PathBuf {
        cargo::programs(&self.target)
    }

    /// Where the lab has its images and trees.
    fn trees(&self) -> PathBuf {
        env::var_os("TIDEGATE_LAB_CACHE").map_or_else(|| self.target.join("lab"), PathBuf::from)
    }

    fn lab(&self) -> PathBuf {
        self.programs().join("tidegate-lab")
    }

    /// Takes a step; whether it succeeded.
    pub fn step(&self, name: &str, step: Step) -> bool {
        let running = self.report.begin(name);
        let end = self.report.fresh_log(name).and_then(|log| {
            let mut command = match step {
                Step::Lab => cargo::build(&["tidegate-lab"]),
                Step::Programs => cargo::build(&[]),
                // benchmarks are compiled, so that they are linted, and not run
                Step::Tests => cargo::test(&["--no-run", "--tests", "--bench", "*"]),
                Step::Machines => words(&self.lab(), &["setup"]),
                Step::Prover => words(&self.lab(), &["cbmc", "--version"]),
                Step::Selinux => words(
                    Path::new("tests/te-decisions/tree.sh"),
                    &[&self.trees().join("te-trixie").to_string_lossy()],
                ),
            };
            command.env("CARGO_TARGET_DIR", &self.target);
            self.run(command, &log, STEP, &running).map(End::success)
        });
        self.report.stepped(name, &running, end)
    }

    /// Runs a program with a log; what cargo says of units is heard and not logged.
    fn run(
        &self,
        command: Command,
        log: &Path,
        within: Duration,
        running: &Running,
    ) -> Result<End> {
        let mut file = appended(log)?;
        process::lines(command, within, |line| {
            if !self.units.hear(line) {
                running.line(line);
                writeln!(file, "{line}")?;
            }
            Ok(Next::GoOn)
        })
    }

    /// Plays a part that has no machine which others share; whether all is well.
    pub fn alone(&self, part: Part) -> bool {
        let name = part.name();
        let running = self.report.begin(&name);
        let good = self
            .play_alone(part, &name, &running)
            .map_err(|error| format!("{error:#}"));
        self.report.played(
            &name,
            running.took(),
            good.and_then(|end| ended(end, self.within(part))),
        )
    }

    fn play_alone(&self, part: Part, name: &str, running: &Running) -> Result<End> {
        let log = self.report.fresh_log(name)?;
        let within = self.within(part);
        match &part.suite.how {
            How::Lint => self.lint(&log, within, running),
            How::Unit => self.run(cargo::test(&[]), &log, within, running),
            How::Boots(words) => {
                let mut command = cargo::test(&["--test", "boot", "--test", "truth"]);
                command
                    .args(["--", "--ignored", "--test-threads", "1"])
                    .args(*words)
                    .env("TIDEGATE_LAB_PROGRAM", self.lab());
                self.run(command, &log, within, running)
            }
            How::Here(words, programs) => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                if let Some(programs) = programs {
                    let payload = self.payload(name, programs)?;
                    command.arg(self.lab()).arg(&payload).args(part.kernel);
                }
                command
                    .env("PROGRAMS", self.programs())
                    .env("LAB", self.lab())
                    .env("CARGO_TARGET_DIR", &self.target);
                command.args(&self.words);
                self.run(command, &log, within, running)
            }
            How::Machine(_) => unreachable!("it is played in a machine"),
        }
    }

    /// Each check is one test, and each runs whatever came of the one before.
    fn lint(&self, log: &Path, within: Duration, running: &Running) -> Result<End> {
        let mut file = appended(log)?;
        let (mut passed, mut failed) = (0, 0);
        let mut count = |good: bool, name: &str| -> Result<()> {
            if good {
                passed += 1
            } else {
                failed += 1
            }
            writeln!(
                appended(log)?,
                "{}{name}",
                if good { "ok      " } else { "FAILED  " }
            )?;
            Ok(())
        };
        let mut checks = lint::checks(&self.target);
        checks.push(lint::manual(&self.programs(), &self.target));
        for check in checks {
            running.line(check.name);
            let good = self
                .run(check.command, log, within, running)
                .is_ok_and(End::success);
            count(good, check.name)?;
        }
        let oldest = lint::oldest_rust();
        match &oldest {
            Ok(said) => writeln!(file, "{said}")?,
            Err(error) => writeln!(file, "{error:#}")?,
        }
        count(oldest.is_ok(), "the oldest Rust that will do")?;
        let units = self.units.verdict();
        let linter = if cargo::has_clippy() {
            "clippy"
        } else {
            "the compiler (clippy is not installed)"
        };
        writeln!(file, "{}", units.warnings.join("\n"))?;
        count(
            units.warnings.is_empty(),
            &format!("no warning of {linter}"),
        )?;
        writeln!(
            file,
            "{} of {} units were compiled\n{}",
            units.compiled,
            units.seen,
            units.twice.join("\n")
        )?;
        count(units.twice.is_empty(), "nothing is compiled twice")?;
        writeln!(file, "{passed} passed, {failed} failed")?;
        // as if this had been a program
        Ok(End::Exited(ExitStatus::from_raw(
            i32::from(failed > 0) << 8,
        )))
    }

    /// A new directory with programs, for a machine.
    fn payload(&self, name: &str, programs: &[Program]) -> Result<PathBuf> {
        let dir = self.target.join("payload").join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
        }
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        for (name, binary) in TIDEGATE.iter().chain(programs) {
            cargo::install(&self.programs().join(binary), &dir.join(name))?;
        }
        Ok(dir)
    }

    /// Plays parts in one machine, one after another; whether all is well.
    pub fn together(&self, machine: &str, parts: &[Part]) -> bool {
        let running = self.report.begin(machine);
        match self.play_together(machine, parts, &running) {
            Ok(good) => good,
            Err(error) => {
                let why = format!("{error:#}");
                for part in parts {
                    let _ = self.report.fresh_log(&part.name());
                    self.report
                        .played(&part.name(), running.took(), Err(why.clone()));
                }
                false
            }
        }
    }

    fn play_together(&self, machine: &str, parts: &[Part], running: &Running) -> Result<bool> {
        let guests: Vec<(Part, &Guest)> = parts
            .iter()
            .filter_map(|part| Some((*part, part.guest()?)))
            .collect();
        let (first, place) = guests
            .first()
            .map(|(part, guest)| (*part, guest.place))
            .context("a part")?;
        let kernel = first.kernel.unwrap_or("6.12");
        let programs: Vec<Program> = guests
            .iter()
            .flat_map(|(_, guest)| guest.programs)
            .copied()
            .collect();
        let payload = self.payload(machine, &programs)?;
        copy(Path::new("tests/machine.sh"), &payload)?;
        let mut good = true;
        let mut ready: Vec<(Part, &Guest)> = Vec::new();
        for (part, guest) in guests {
            let name = part.name();
            let begin = Instant::now();
            match self.prepare(part, guest, &payload, kernel, running) {
                Ok(End::Exited(status)) if status.success() => ready.push((part, guest)),
                Ok(end) => good &= self.report.played(&name, begin.elapsed(), ended(end, STEP)),
                Err(error) => {
                    good &= self
                        .report
                        .played(&name, begin.elapsed(), Err(format!("{error:#}")))
                }
            }
        }
        if ready.is_empty() {
            return Ok(false);
        }
        let settings: String = PASSED_ON
            .iter()
            .filter_map(|name| {
                Some(format!(
                    "export {name}='{}'\n",
                    env::var(name).ok()?.replace('\'', "'\\''")
                ))
            })
            .collect();
        fs::write(payload.join("settings"), settings)?;

        let mut command = Command::new(self.lab());
        let within: Duration = ready
            .iter()
            .map(|(part, _)| self.within(*part))
            .sum::<Duration>()
            + 2 * BOOT;
        command
            .args([
                "vm",
                "--kernel",
                kernel,
                "--smp",
                &self.processors.to_string(),
            ])
            .args(place.arguments())
            .args(["--timeout", &within.as_secs().to_string(), "--payload"])
            .arg(&payload)
            .args(["--", "bash", "/payload/machine.sh"])
            .args(ready.iter().map(|(part, _)| part.suite.name))
            .arg("--")
            .args(&self.words);
        let mut hall = Hall::new(self, machine, &ready, running)?;
        // the first machine of a kind that no step makes has to be made
        let boot = match place {
            Place::Whole | Place::Debian => STEP,
            _ => BOOT,
        };
        let end = process::lines(command, boot, |line| hall.line(line))?;
        let ends = hall.ends;
        let all_ended = ready
            .iter()
            .all(|(part, _)| ends.contains_key(part.suite.name));
        for (part, guest) in ready {
            good &= self.judge(
                part,
                guest,
                &payload,
                ends.get(part.suite.name),
                end,
                running,
            );
        }
        // where a part did not come to its end, that is why
        if all_ended && let Err(why) = ended(end, within) {
            let why = format!("the machine ended badly: {why}");
            self.report.failed(machine, running.took(), why);
            good = false;
        }
        Ok(good)
    }

    fn prepare(
        &self,
        part: Part,
        guest: &Guest,
        payload: &Path,
        kernel: &str,
        running: &Running,
    ) -> Result<End> {
        let log = self.report.fresh_log(&part.name())?;
        for file in guest.files {
            copy(Path::new(file), payload)?;
        }
        fs::copy(
            guest.play,
            payload.join(format!("{}.play", part.suite.name)),
        )
        .with_context(|| guest.play.to_owned())?;
        let script = guest.prepare.unwrap_or("true");
        let mut command = Command::new(script);
        command
            .arg(payload)
            .arg(kernel)
            .env("PROGRAMS", self.programs())
            .env("LAB", self.lab());
        command.env("CARGO_TARGET_DIR", &self.target);
        self.run(command, &log, STEP, running)
    }

    /// What came of a part that was played in a machine.
    fn judge(
        &self,
        part: Part,
        guest: &Guest,
        payload: &Path,
        ended_so: Option<&Ended>,
        machine: End,
        running: &Running,
    ) -> bool {
        let name = part.name();
        let log = self.report.log(&name);
        let Some(Ended {
            status,
            took,
            cases,
        }) = ended_so
        else {
            let why = match machine {
                End::TimedOut => "it did not end in time".into(),
                End::Exited(status) => format!("the machine ended before it did: {status}"),
            };
            return self.report.played(&name, Duration::ZERO, Err(why));
        };
        let mut good = if *status == 0 {
            Ok(())
        } else {
            Err(format!("it ended with {status}"))
        };
        let begin = Instant::now();
        if let (Ok(()), Some(script)) = (&good, guest.judge) {
            let said = payload.join(format!("{}.said", part.suite.name));
            let mut command = Command::new(script);
            command
                .arg(payload)
                .arg(part.kernel.unwrap_or_default())
                .arg(&said)
                .env("LAB", self.lab());
            good = fs::copy(&log, &said)
                .map_err(anyhow::Error::from)
                .and_then(|_| self.run(command, &log, self.within(part), running))
                .map_err(|error| format!("{error:#}"))
                .and_then(|end| ended(end, self.within(part)));
        }
        let cases = guest.judge.is_none().then(|| cases.clone());
        self.report
            .played_cases(&name, *took + begin.elapsed(), good, cases)
    }
}

/// How a part ended in a machine.
struct Ended {
    status: i32,
    took: Duration,
    cases: Vec<Case>,
}

/// A part that is played in a machine at this moment.
struct Playing {
    name: &'static str,
    log: fs::File,
    begin: Instant,
    /// When its newest check was told.
    newest: Instant,
    cases: Vec<Case>,
}

/// Hears a machine: which part says what, and how each ends.
struct Hall<'a> {
    play: &'a Play,
    parts: HashMap<&'static str, Part>,
    running: &'a Running,
    log: fs::File,
    part: Option<Playing>,
    ends: HashMap<&'static str, Ended>,
}

impl<'a> Hall<'a> {
    fn new(
        play: &'a Play,
        machine: &str,
        parts: &[(Part, &Guest)],
        running: &'a Running,
    ) -> Result<Self> {
        let log = play.report.fresh_log(machine)?;
        Ok(Self {
            play,
            parts: parts
                .iter()
                .map(|(part, _)| (part.suite.name, *part))
                .collect(),
            running,
            log: appended(&log)?,
            part: None,
            ends: HashMap::new(),
        })
    }

    fn line(&mut self, line: &str) -> Result<Next> {
        writeln!(self.log, "{line}")?;
        if let Some(name) = line.strip_prefix("== part ")
            && let Some((name, part)) = self.parts.get_key_value(name)
        {
            let file = appended(&self.play.report.log(&part.name()))?;
            self.part = Some(Playing {
                name,
                log: file,
                begin: Instant::now(),
                newest: Instant::now(),
                cases: Vec::new(),
            });
            return Ok(Next::Within(self.play.within(*part)));
        }
        let Some(playing) = &mut self.part else {
            return Ok(Next::GoOn);
        };
        if let Some(status) = line
            .strip_prefix("== end ")
            .and_then(|status| status.parse().ok())
        {
            let ended = Ended {
                status,
                took: playing.begin.elapsed(),
                cases: std::mem::take(&mut playing.cases),
            };
            self.ends.insert(playing.name, ended);
            self.part = None;
            return Ok(Next::Within(BOOT));
        }
        if let Some(case) = case(line) {
            let seconds = Some(playing.newest.elapsed().as_secs_f64());
            playing.newest = Instant::now();
            playing.cases.push(Case { seconds, ..case });
        }
        self.running.line(&format!("{}: {line}", playing.name));
        writeln!(playing.log, "{line}")?;
        Ok(Next::GoOn)
    }
}

impl Part {
    fn guest(&self) -> Option<&'static Guest> {
        match &self.suite.how {
            How::Machine(guest) => Some(guest),
            _ => None,
        }
    }
}

/// That a program ended well, or how it did not.
fn ended(end: End, within: Duration) -> Result<(), String> {
    match end {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => Err(status.to_string()),
        End::TimedOut => Err(format!(
            "it did not end in {} minutes",
            within.as_secs() / 60
        )),
    }
}

fn words(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words);
    command
}

fn appended(log: &Path) -> Result<fs::File> {
    let file = fs::File::options().create(true).append(true).open(log);
    file.with_context(|| log.display().to_string())
}

/// Copies a file, or the files of a directory, with their modes.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
            let path = entry?.path();
            if path.is_file() {
                copy(&path, to)?;
            }
        }
        return Ok(());
    }
    let name = from.file_name().context("a file's name")?;
    fs::copy(from, to.join(name)).with_context(|| from.display().to_string())?;
    Ok(())
}
