//! What program a process is: what it executed, and not what /proc says.

use std::fs;

use nix::errno::Errno;

use super::commands::lines;
use crate::scenarios::check::{Outcome, ensure, refused, soon};
use crate::scenarios::forge::{By, forge};
use crate::scenarios::level::object_is;
use crate::scenarios::place::{self, BIN, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, become_alice, spawn, step};
use crate::scenarios::sys;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "exe-forged-adopted",
        "who ran before the start, with something low open, says that it is a trusted program",
        adopted,
    ),
    bypass(
        "exe-forged-adopted-mapped",
        "the same from outside of a user namespace, with that program mapped to be executed",
        adopted_mapped,
    ),
    bypass(
        "exe-forged-record",
        "a user's process that is refused something has the log name another program",
        recorded,
    ),
    bypass(
        "exe-forged-record-by-root",
        "the same by root below the top, in no other user namespace",
        recorded_by_root,
    ),
];

/// Ways of forging that are tried before Tidegate starts, by what the process makes then.
pub const ADOPTED: [(&str, By); 2] = [("forged", By::Itself), ("forged-mapped", By::Child)];

/// What a process made that had something low open when Tidegate started: it has its maker's level.
fn made_by(what: &str) -> Outcome {
    let said = format!("{}/{what}", place::TMPFS);
    ensure(
        soon(|| Ok(fs::exists(&said)?))?,
        "the process that forged its program says nothing",
    )?;
    object_is(&said, Untrusted)
}

fn adopted() -> Outcome {
    made_by(ADOPTED[0].0)
}

fn adopted_mapped() -> Outcome {
    made_by(ADOPTED[1].0)
}

/// A process that forges its program and is refused something must not be told as that program.
fn refused_as(by: By, becomes: fn() -> Outcome) -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let trusted = format!("{BIN}/trusted");
    let low = spawn(Untrusted, || {
        becomes()?;
        forge(&trusted, by)?;
        refused(Errno::EPERM, sys::writes(&high))?;
        step()
    })?;
    low.stands()?;
    let pid = low.pid.as_raw().to_string();
    let mut exes = Vec::new();
    let logged = soon(|| {
        let records = lines(&["log", "--json", "--denied", "--pid", &pid]).unwrap_or_default();
        let of_it = records
            .iter()
            .filter(|r| r["object"]["path"] == serde_json::json!(high));
        exes = of_it.map(|r| r["subject"]["exe"].clone()).collect();
        Ok(!exes.is_empty())
    })?;
    low.kill()?;
    ensure(logged, "the refusal is not in the log")?;
    ensure(
        !exes.contains(&serde_json::json!(trusted)),
        "the log says that a trusted program was refused",
    )
}

fn recorded() -> Outcome {
    refused_as(By::Child, become_alice)
}

fn recorded_by_root() -> Outcome {
    refused_as(By::Root, || Ok(()))
}
