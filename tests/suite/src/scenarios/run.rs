//! Playing scenarios: each in a process of its own, one after another.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::scenarios::check::Outcome;
use crate::scenarios::scenario::{Kind, Scenario, all};
use crate::scenarios::{daemon, level, place, report, setup, subject, sys};
use crate::trials::Asked;

/// How long a scenario may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Plays one scenario in this process: what `--one` asks for.
pub fn play_one(name: &str) -> ExitCode {
    let Some(scenario) = all().into_iter().find(|s| s.name == name) else {
        return ExitCode::from(2);
    };
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    place::set_scenario(scenario.name);
    subject::finish(scenario.play)
}

/// Starts Tidegate, and plays the scenarios that are asked for; that they leave their player its level is the last.
pub fn play(asked: &Asked) -> ExitCode {
    if !asked.lists()
        && let Err(e) = begin_enforcing()
    {
        eprintln!("scenarios: {e}");
        return ExitCode::from(2);
    }
    let mut trials: Vec<Trial> = chosen().map(trial).collect();
    trials.push(Trial::test(
        "the-player-keeps-its-level",
        player_keeps_level,
    ));
    asked.run(trials).exit_code()
}

/// All scenarios, or by `SCENARIOS=quick` those that do not take long, by `SCENARIOS=slow` those that do, by
/// `SCENARIOS=rules` what each row of the mediation table refuses.
fn chosen() -> impl Iterator<Item = Scenario> {
    let speed = env::var("SCENARIOS").unwrap_or_default();
    all()
        .into_iter()
        .filter(move |scenario| match speed.as_str() {
            "quick" => !scenario.slow,
            "slow" => scenario.slow,
            "rules" => scenario.kind == Kind::Deny,
            _ => true,
        })
}

fn trial(scenario: Scenario) -> Trial {
    let kind = match scenario.gap {
        Some(_) => "known gap",
        None => scenario.kind.word(),
    };
    Trial::ignorable_test(scenario.name, move || one(&scenario)).with_kind(kind)
}

fn player_keeps_level() -> Result<(), Failed> {
    match level::by_writing() {
        Ok(subject::Level::System) => Ok(()),
        _ => Err("the scenarios have lowered who plays them".into()),
    }
}

/// Makes the places, and puts the policy in force.
fn begin_enforcing() -> io::Result<()> {
    // SAFETY: no argument of this call is a pointer.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    setup::prepare()?;
    crate::scenarios::topics::before_start()?;
    let given = format!("--given-entries={}", setup::GIVEN);
    let quiet = format!("--guard-quiet={}", daemon::GUARD_QUIET.as_millis());
    let out = daemon::run(&["start", "--policy", setup::POLICY_FILE, &given, &quiet])?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Err(io::Error::other(format!("tidegate does not start: {said}")))
}

/// Plays one in a process of its own, and clears up after it. A known gap has to fail, as docs/explain/what-gets-past.md says, and
/// does not count.
fn one(scenario: &Scenario) -> Result<Completion, Failed> {
    let before = children();
    let end = spawn(scenario.name).and_then(|mut child| wait(&mut child));
    clear(&before);
    let passed = matches!(end, Ok(Some(status)) if status.success());
    let why = if passed {
        String::new()
    } else {
        reports(scenario.name)
    };
    let failed = match end {
        Ok(Some(_)) if passed => None,
        Ok(Some(_)) if !why.is_empty() => Some(why),
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => Some(format!("not done in {} s; {why}", LIMIT.as_secs())),
        Err(e) => Some(format!("cannot be played: {e}")),
    };
    match (failed, scenario.gap) {
        (None, None) => Ok(Completion::Completed),
        (Some(why), None) => Err(format!("{}: {why}", scenario.about).into()),
        (Some(why), Some(entry)) => Ok(Completion::ignored_with(format_args!("{entry}: {why}"))),
        (None, Some(entry)) => Err(format!("holds, though {entry} says it does not").into()),
    }
}

fn spawn(name: &str) -> io::Result<Child> {
    let mut command = Command::new(format!("{}/scenarios", place::BIN));
    command.args(["--one", name]).current_dir("/");
    if let Some(home) = setup::tidegate().parent() {
        command.env("TIDEGATE_SCENARIOS_HOME", home);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: setsid is safe to call between fork and exec.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from)) };
    command.spawn()
}

/// Waits for a process's end; `None` if it takes too long.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let process = sys::pidfd_open(child.id() as i32)?;
    if !sys::ends(&process, LIMIT)? {
        return Ok(None);
    }
    child.wait().map(Some)
}

/// This process's children.
fn children() -> HashSet<i32> {
    let me = std::process::id();
    let list = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    list.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Ends what a scenario has left behind; orphans become this process's. Queues count for their user until their names go.
fn clear(before: &HashSet<i32>) {
    for _ in 0..20 {
        let keep = daemon::pid();
        let left: Vec<i32> = children()
            .into_iter()
            .filter(|p| !before.contains(p) && Some(*p) != keep)
            .collect();
        if left.is_empty() {
            break;
        }
        for pid in left {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            let _ = waitpid(Pid::from_raw(pid), None);
        }
    }
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if matches!(status, WaitStatus::StillAlive) {
            break;
        }
    }
    for queue in fs::read_dir("/dev/mqueue").into_iter().flatten().flatten() {
        let _ = fs::remove_file(queue.path());
    }
}

/// What a scenario's processes said; a trusted program reads it.
fn reports(name: &str) -> String {
    let reporter = format!("{}/reporter", place::BIN);
    match Command::new(reporter)
        .args(["--helper", "report", name])
        .output()
    {
        Ok(out) => String::from_utf8_lossy(&out.stdout).into_owned(),
        Err(e) => format!("(no reports: {e})"),
    }
}

/// What `--helper report` does.
pub fn report(name: &str) -> Outcome {
    Ok(report::print(name)?)
}
