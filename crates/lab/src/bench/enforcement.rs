//! Tidegate on this machine, switched on and off.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::define::quoted;

const LEVELS: &str = "/run/tidegate/level";
/// Seconds. While a demotion's guard is attached, every read and write costs more.
const IDLE_WITHIN: u32 = 60;

/// The `tidegate` that is measured.
#[derive(Debug)]
pub(super) struct Program(PathBuf);

/// What `status --json` says, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Status {
    permissive: bool,
}

impl Program {
    pub(super) fn new(file: &Path) -> Self {
        Self(file.to_owned())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        // Ctrl-C ends this program, which then ends enforcement, and not half of a start.
        command.args(args).stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs a command of it; what it printed.
    fn ask(&self, args: &[&str]) -> Result<String> {
        let output = self
            .command(args)
            .output()
            .with_context(|| format!("running {}", self.0.display()))?;
        ensure!(
            output.status.success(),
            "tidegate {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(super) fn version(&self) -> Result<String> {
        Ok(self.ask(&["--version"])?.trim().to_owned())
    }

    fn status(&self) -> Result<Status> {
        serde_json::from_str(&self.ask(&["status", "--json"])?).context("tidegate status")
    }

    /// Whether it can be switched on here, and is off.
    pub(super) fn ready(&self, stop: bool) -> Result<()> {
        if self.status().is_ok() {
            ensure!(
                stop,
                "Tidegate enforces on this machine. Measuring without it means ending that: \
                 add --stop to allow it, and start it again afterwards"
            );
            self.ask(&["stop"])?;
        }
        let doctor = self.command(&["doctor"]).output().with_context(|| {
            format!(
                "running {}: --tidegate names the program to measure",
                self.0.display()
            )
        })?;
        ensure!(
            doctor.status.success(),
            "this machine cannot enforce, so there is nothing to compare (--baseline shows how far \
             its own figures move; `tidegate lab run` measures in virtual machines):\n{}",
            String::from_utf8_lossy(&doctor.stdout).trim()
        );
        Ok(())
    }
}

/// A policy in force; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Enforcement<'a> {
    program: &'a Program,
    levels: Vec<String>,
    low: bool,
    stopped: bool,
}

impl<'a> Enforcement<'a> {
    /// Puts the policy in force, with `dir` at the top level, or the one below.
    pub(super) fn start(program: &'a Program, policy: &str, dir: &Path, low: bool) -> Result<Self> {
        let levels = levels_of(program, policy)?;
        let level = if low { &levels[1] } else { &levels[0] };
        let include = if policy.ends_with(".plm") {
            let file = Path::new(policy);
            let file = file
                .canonicalize()
                .with_context(|| format!("no map {policy}"))?;
            format!("\"{}\"", file.display())
        } else {
            policy.to_owned()
        };
        let map = dir.with_extension("plm");
        let text = format!(
            "include {include}\n{level} {}\n{level} network 127.0.0.0/8\n",
            dir.display()
        );
        fs::write(&map, text).with_context(|| format!("writing {}", map.display()))?;
        // Before it is known whether it started: what did so in part is ended as well.
        let enforcement = Self {
            program,
            levels,
            low,
            stopped: false,
        };
        let started = program.ask(&["start", "--policy", &map.display().to_string()]);
        let _ = fs::remove_file(&map);
        started?;
        ensure!(
            !program.status()?.permissive,
            "the policy is permissive: nothing is enforced"
        );
        Ok(enforcement)
    }

    /// The beginning of a script that becomes the subject and waits until the guard of
    /// its fall is gone.
    pub(super) fn enter(&self) -> String {
        let fall = if self.low {
            format!("read -r _ <{LEVELS}/{}\n", self.levels[1])
        } else {
            String::new()
        };
        let tidegate = quoted(&self.program.0.display().to_string());
        format!(
            "{fall}for _ in $(seq {IDLE_WITHIN}); do\n\
             \t{tidegate} status --json >status\n\
             \tgrep -q '\"guard_armed\":true' status || break\n\
             \tsleep 1\n\
             done\n\
             ! grep '\"guard_armed\":true' status >&2\n\
             rm status"
        )
    }

    /// Something that has to be refused: the lowest level may not write what is higher.
    pub(super) fn prove(&self, dir: &Path) -> Result<String> {
        let lowest = Path::new(LEVELS).join(self.levels.last().context("no levels")?);
        let probe = dir.join("probe");
        fs::write(&probe, "")?;
        let status = Command::new("sh")
            .args(["-c", "read -r _ <\"$1\"; echo x >>\"$2\"", "sh"])
            .args([&lowest, &probe])
            .stderr(Stdio::null())
            .status()?;
        let written = fs::metadata(&probe)?.len();
        fs::remove_file(&probe)?;
        ensure!(
            !status.success() && written == 0,
            "it does not enforce: {} could be written from the lowest level",
            probe.display()
        );
        Ok(format!(
            "denied: a write to {} from the lowest level",
            probe.display()
        ))
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.stopped = true;
        self.program.ask(&["stop"]).map(drop)
    }
}

impl Drop for Enforcement<'_> {
    fn drop(&mut self) {
        if !self.stopped {
            let _ = self.program.ask(&["stop"]);
        }
    }
}

/// A policy's levels, the highest first.
fn levels_of(program: &Program, policy: &str) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Checked {
        /// The lowest first.
        levels: Vec<String>,
    }
    let kind = if policy.ends_with(".plm") {
        "--policy"
    } else {
        "--preset"
    };
    let told = program.ask(&["check", "--json", kind, policy])?;
    let mut checked: Checked = serde_json::from_str(&told).context("tidegate check")?;
    ensure!(checked.levels.len() > 1, "{policy} has a single level");
    checked.levels.reverse();
    Ok(checked.levels)
}
