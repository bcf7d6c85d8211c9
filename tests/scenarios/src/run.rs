//! Playing scenarios: each in a process of its own, one after another.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::check::Outcome;
use crate::scenario::{Scenario, all};
use crate::{daemon, level, place, report, setup, subject, sys};

/// How long a scenario may take.
const LIMIT: Duration = Duration::from_secs(600);

/// What came of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Passed,
    Failed(String),
    /// It failed as docs/limitations.md says.
    Gap(String),
}

/// Plays one scenario in this process: what `--one` asks for.
pub fn play_one(name: &str) -> ExitCode {
    let Some(scenario) = all().into_iter().find(|s| s.name == name) else {
        return ExitCode::from(2);
    };
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    place::set_scenario(scenario.name);
    subject::finish(scenario.play)
}

/// Starts Tidegate, plays the scenarios and tells what came of them.
pub fn play(chosen: &[Scenario], json: bool) -> ExitCode {
    let begin = Instant::now();
    if let Err(e) = begin_enforcing() {
        eprintln!("scenarios: {e}");
        return ExitCode::from(2);
    }
    if !json {
        println!("tidegate started in {:.1} s", begin.elapsed().as_secs_f32());
    }
    let begin = Instant::now();
    let (mut passed, mut failed, mut gaps) = (0, 0, 0);
    for scenario in chosen {
        let from = Instant::now();
        let end = one(scenario);
        match end {
            End::Passed => passed += 1,
            End::Failed(_) => failed += 1,
            End::Gap(_) => gaps += 1,
        }
        tell(scenario, &end, from.elapsed(), json);
    }
    if !matches!(level::by_writing(), Ok(subject::Level::System)) {
        println!("FAILED: the scenarios have lowered who plays them");
        failed += 1;
    }
    let seconds = begin.elapsed().as_secs_f32();
    if json {
        println!(
            "{}",
            serde_json::json!({"passed": passed, "failed": failed, "known_gaps": gaps, "seconds": seconds})
        );
    } else {
        println!("{} scenarios in {seconds:.1} s", chosen.len());
        println!("{gaps} known gaps");
        println!("{passed} passed, {failed} failed");
    }
    ExitCode::from(u8::from(failed > 0))
}

fn tell(scenario: &Scenario, end: &End, took: Duration, json: bool) {
    let (word, why) = match end {
        End::Passed => ("ok", ""),
        End::Failed(why) => ("FAILED", why.as_str()),
        End::Gap(why) => ("known gap", why.as_str()),
    };
    let ms = took.as_millis();
    if json {
        let line = serde_json::json!({
            "scenario": scenario.name, "kind": scenario.kind.word(), "about": scenario.about,
            "end": word, "why": why, "ms": ms,
        });
        println!("{line}");
    } else if why.is_empty() {
        println!("{:<36} {word} ({ms} ms)", scenario.name);
    } else {
        println!("{:<36} {word}: {why} ({ms} ms)", scenario.name);
    }
    let _ = io::stdout().flush();
}

/// Makes the places, and puts the policy in force.
fn begin_enforcing() -> io::Result<()> {
    // SAFETY: no argument of this call is a pointer.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    setup::prepare()?;
    crate::scenarios::before_start()?;
    let given = format!("--given-entries={}", setup::GIVEN);
    let out = daemon::run(&["start", "--policy", setup::POLICY_FILE, &given])?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Err(io::Error::other(format!("tidegate does not start: {said}")))
}

/// Plays one in a process of its own, and clears up after it.
fn one(scenario: &Scenario) -> End {
    let before = children();
    let end = spawn(scenario.name).and_then(|mut child| wait(&mut child));
    clear(&before);
    let why = reports(scenario.name);
    let failed = match end {
        Ok(Some(status)) if status.success() => None,
        Ok(Some(_)) if !why.is_empty() => Some(why),
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => Some(format!("not done in {} s; {why}", LIMIT.as_secs())),
        Err(e) => Some(format!("cannot be played: {e}")),
    };
    match (failed, scenario.gap) {
        (None, None) => End::Passed,
        (Some(why), None) => End::Failed(why),
        (Some(why), Some(entry)) => End::Gap(format!("{entry}: {why}")),
        (None, Some(entry)) => End::Failed(format!("holds, though {entry} says it does not")),
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
    let mut fds = [PollFd::new(
        std::os::fd::AsFd::as_fd(&process),
        PollFlags::POLLIN,
    )];
    let timeout = PollTimeout::try_from(LIMIT).unwrap_or(PollTimeout::MAX);
    debug_assert!(process.as_raw_fd() >= 0);
    if poll(&mut fds, timeout)? == 0 {
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

/// Ends what a scenario has left behind; orphans become this process's.
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
