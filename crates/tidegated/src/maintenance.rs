//! What is done from time to time: letting the guard go, saving given levels; and as disks are
//! mounted: giving them theirs.

use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::labels::filesystem::{changes, open_mounts};
use crate::labels::store;
use crate::messages::complain;
use crate::te_system_start;
use crate::threads::{Threads, spawn};
use crate::watchdog::Who;

/// Between two looks at the guard.
const BEAT: Duration = Duration::from_secs(1);

/// Between two savings of the given levels.
const SAVE: Duration = Duration::from_secs(60);

/// Starts the thread.
pub fn start(enforcement: &Arc<Enforcement>, threads: &Arc<Threads>) -> Outcome {
    let mounts = open_mounts()?;
    let (enforcement, all) = (Arc::clone(enforcement), Arc::clone(threads));
    spawn("house", threads, move || keep(&enforcement, &all, &mounts)).map(drop)
}

fn keep(enforcement: &Enforcement, threads: &Threads, mounts: &File) {
    let Enforcement {
        monitor,
        policies,
        disks,
        guard,
    } = enforcement;
    let (mut tried, mut told) = (Instant::now(), None::<Instant>);
    let (mut mounted, mut strays) = (true, 0);
    let beat = BEAT.min(guard.quiet());
    while !threads.ends() {
        threads.beat(Who::House);
        mounted |= changes(mounts, beat) | (tried.elapsed() >= SAVE);
        // what goes on failing is told of as often as it would be tried
        let mut failed = |failure: DaemonError| {
            if told.is_none_or(|told| told.elapsed() >= SAVE) {
                told = Some(Instant::now());
                complain(&failure.to_string());
            }
        };
        match monitor.strays() {
            Ok(met) if met != strays => match te_system_start::follow(monitor, policies) {
                Ok(()) => strays = met,
                Err(failure) => failed(failure),
            },
            Ok(_) => {}
            Err(e) => failed(e.into()),
        }
        if let Err(e) = guard.rest(monitor) {
            complain(&format!("the guard stays attached: {e}"));
        }
        // held until the files are forgotten: a session that begins between the two would lose its file's names
        match monitor.capabilities().rest() {
            Ok(true) => policies.caps.forget_all(),
            Ok(false) => {}
            Err(e) => failed(e.into()),
        }
        // what fails is tried again as what is saved: a disk that has to be searched takes its time
        let came = mem::take(&mut mounted)
            && arrive(enforcement, threads).unwrap_or_else(|failure| {
                failed(failure);
                false
            });
        let behind = disks.clock_is_behind().unwrap_or_else(|failure| {
            failed(failure);
            true
        });
        threads.beat(Who::House);
        if came || behind || tried.elapsed() >= SAVE {
            tried = Instant::now();
            if let Err(failure) = store::prune(monitor, disks) {
                failed(failure);
            }
            if let Err(failure) = store::save(monitor, policies, disks) {
                failed(failure);
            }
        }
    }
}

/// Looks for disks that have been mounted; whether there are.
fn arrive(enforcement: &Enforcement, threads: &Threads) -> Outcome<bool> {
    let Enforcement {
        monitor,
        policies,
        disks,
        guard,
    } = enforcement;
    let alive = || threads.beat(Who::House);
    let Some(warnings) = store::arrive(monitor, policies, disks, guard, &alive)? else {
        return Ok(false);
    };
    for warning in warnings {
        complain(&warning);
    }
    Ok(true)
}
