//! Operations while what they go by is taken back, or used up: nothing that begins once `revoke` has returned goes through, and
//! nothing is used oftener than it says.

use std::io::{Error, Result as IoResult};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use fastrand::Rng;
use tidegate_policy::caps;

use crate::caps_random::actor::act;
use crate::caps_random::calls;
use crate::caps_random::file::{ROOT, base};
use crate::caps_random::stage::{self, Stage};

/// Uses of what is counted.
const USES: u64 = 300;

/// How often something is taken back, until something has gone through before.
const TRIES: usize = 10;

/// Turns that an actor still has once it is told to stop, of what is dear: an actor that is told
/// after something was taken back has tried it since.
const MORE: u64 = 30;

/// The actor's part: does the same until it is told to stop, and some more. How often it went through, and when that began
/// that did last.
pub fn race(words: &[&str]) -> IoResult<String> {
    let (mut count, mut last) = (0_u64, 0);
    // by itself it tries more often than what is counted allows
    let mut left = if words[0] == "read" { USES + 1 } else { MORE };
    while left > 0 {
        left -= u64::from(calls::is_readable(0, 0));
        let began = calls::now();
        if once(words)? {
            (count, last) = (count + 1, began);
        }
    }
    Ok(format!("{count} {last}"))
}

/// Whether it went through.
fn once(words: &[&str]) -> IoResult<bool> {
    let fd = || words[1].parse().unwrap_or(-1);
    let read = |fd: i32| {
        let is_read = calls::pread(fd).is_ok();
        calls::close(fd).map(|()| is_read)
    };
    match words[0] {
        "open" => calls::open(words[1], "r").map_or(Ok(false), read),
        "map" => match calls::map(fd(), false) {
            Ok(at) => calls::unmap(at).map(|()| true),
            Err(_) => Ok(false),
        },
        "take" => match calls::take(fd()) {
            Ok(Some(fd)) => read(fd),
            _ => Ok(false),
        },
        "fork" => match calls::fork() {
            Ok(0) => {
                let read = calls::open(words[1], "r").is_ok_and(|fd| calls::pread(fd).is_ok());
                std::process::exit(i32::from(!read))
            }
            Ok(pid) => calls::wait(pid),
            Err(_) => Ok(false),
        },
        "read" | "lock" | "give" => Ok(act(words).is_ok()),
        _ => Err(Error::from_raw_os_error(libc::ENOSYS)),
    }
}

/// What it said: how often, and when it began that went through last.
fn stop(stage: &Stage, at: usize) -> Result<(u64, u64)> {
    stage.tell(at, "stop")?;
    let said = stage.answer(at)?;
    stage.answer(at)?;
    let mut words = said
        .strip_prefix("ok ")
        .context("an actor failed")?
        .split(' ');
    let mut number = || {
        words
            .next()
            .context("a number")?
            .parse()
            .context("a number")
    };
    Ok((number()?, number()?))
}

fn said(stage: &Stage, at: usize, words: &str) -> Result<String> {
    stage
        .ask(at, words)?
        .map_err(|errno| anyhow!("{at}: {words}: errno {errno}"))
}

/// Both races, with what a seed says.
pub fn races(seed: u64) -> Result<String> {
    let mut rng = Rng::with_seed(seed);
    for _ in 0..TRIES {
        if let Some(revoked) = revoked(&mut rng)? {
            return Ok(format!("{revoked}, {}", used_up(&mut rng)?));
        }
    }
    bail!("nothing went through at all")
}

fn stage_of(lines: &str) -> Result<Stage> {
    let text = format!(
        "subject host {{\n{lines}{}}}\nsubject tool {{\n}}\nsubject plug {{\n}}\n",
        base()
    );
    let path = stage::path();
    let caps = caps::compile_str(&path, &text)
        .map_err(|e| anyhow!("{e:?}"))?
        .capabilities;
    let mut stage = Stage::new(&text, &caps.to_bundle())?;
    for at in 0..5 {
        stage.start(at, Some("host"))?;
    }
    Ok(stage)
}

/// Uses of a file while it is taken back; `None`: nothing went through, as it was taken back before anybody had a processor.
fn revoked(rng: &mut Rng) -> Result<Option<String>> {
    let stage = stage_of(&format!("    file {ROOT}/in/a read lock\n"))?;
    let sessions = stage::sessions()?;
    let path = format!("{ROOT}/in/a");
    let mut numbers = Vec::new();
    for at in 0..5 {
        numbers.push(stage.number(at)?);
    }
    let first = ["read", "lock", "map"][rng.usize(..3)];
    let held = said(&stage, 0, &format!("open {path} r"))?;
    let given = said(&stage, 3, &format!("open {path} r"))?;
    let (inbox, outside) = stage.inbox(4);
    stage.tell(0, &format!("race {first} {held}"))?;
    stage.tell(1, &format!("race open {path}"))?;
    stage.tell(2, &format!("race fork {path}"))?;
    stage.tell(3, &format!("race give {outside} {given}"))?;
    stage.tell(4, &format!("race take {inbox}"))?;
    sleep(Duration::from_millis(rng.u64(100..700)));
    // of a session only what was handed over by it: others open it themselves
    let (words, told): ([String; 2], &[usize]) = match rng.u32(..4) {
        0 => (["--object".into(), format!("file:{path}")], &[0, 1, 2, 4]),
        1 => (
            ["--capability".into(), "random.caps:2".into()],
            &[0, 1, 2, 4],
        ),
        2 => (
            ["--subject".into(), "random.caps:host".into()],
            &[0, 1, 2, 4],
        ),
        _ => (
            [
                "--caps-session".into(),
                sessions[sessions.len() - 2].to_string(),
            ],
            &[4],
        ),
    };
    let killed = stage::revoke(&words)?;
    let returned = calls::now();
    let mut all = 0;
    for (at, number) in numbers.iter().enumerate() {
        // the actors that had it mapped at that moment
        if killed.contains(number) {
            ensure!(
                at == 0 && first == "map",
                "{at} was killed, and has mapped nothing"
            );
            continue;
        }
        let (count, last) = stop(&stage, at)?;
        all += count;
        let late = last.saturating_sub(returned);
        ensure!(
            !told.contains(&at) || late == 0,
            "{}: {at} goes on {late} ns after it was taken back",
            words.join(" ")
        );
    }
    Ok((all > 0).then(|| format!("{} while {all} went through", words[0])))
}

/// What is counted, used by several at once.
fn used_up(rng: &mut Rng) -> Result<String> {
    let stage = stage_of(&format!(
        "    file {ROOT}/in/b read uses {USES}\n    control file read\n"
    ))?;
    let held = said(&stage, 0, &format!("open {ROOT}/in/b r"))?;
    let receivers = rng.usize(1..4);
    let mut fds = vec![held.clone()];
    for to in 1..=receivers {
        let (inbox, outside) = stage.inbox(to);
        said(&stage, 0, &format!("give {outside} {held}"))?;
        fds.push(said(&stage, to, &format!("take {inbox}"))?);
    }
    for (at, fd) in fds.iter().enumerate() {
        stage.tell(at, &format!("race read {fd}"))?;
    }
    let mut all = 0;
    for at in 0..fds.len() {
        all += stop(&stage, at)?.0;
    }
    ensure!(all <= USES, "{all} uses of {USES}");
    Ok(format!("{all} of {USES} uses by {}", fds.len()))
}
