//! What is done from time to time: letting the guard go, saving given levels; and as disks are
//! mounted: giving them theirs.

use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{DaemonError, Outcome};
use crate::labels::filesystem::{changes, open_mounts};
use crate::watchdog::Who;
use crate::{Shared, labels::store, te_system_start, threads};

/// Between two looks at the guard.
const BEAT: Duration = Duration::from_secs(1);

/// Between two savings of the given levels.
const SAVE: Duration = Duration::from_secs(60);

/// Starts the thread.
pub fn start(shared: &Arc<Shared>) -> Outcome {
    let mounts = open_mounts()?;
    threads::spawn("house", shared, move |shared| keep(shared, &mounts)).map(drop)
}

fn keep(shared: &Shared, mounts: &File) {
    let (mut tried, mut told) = (Instant::now(), None::<Instant>);
    let (mut mounted, mut strays) = (true, 0);
    let beat = BEAT.min(shared.guard.quiet());
    while !shared.ends() {
        shared.pulse.beat(Who::House);
        mounted |= changes(mounts, beat) | (tried.elapsed() >= SAVE);
        // what goes on failing is told of as often as it would be tried
        let mut complain = |failure: DaemonError| {
            if told.is_none_or(|told| told.elapsed() >= SAVE) {
                told = Some(Instant::now());
                shared.complain(&failure.to_string());
            }
        };
        match shared.monitor.strays() {
            Ok(met) if met != strays => {
                match te_system_start::follow(&shared.monitor, &shared.policies) {
                    Ok(()) => strays = met,
                    Err(failure) => complain(failure),
                }
            }
            Ok(_) => {}
            Err(e) => complain(e.into()),
        }
        if let Err(e) = shared.guard.rest(&shared.monitor) {
            shared.complain(&format!("the guard stays attached: {e}"));
        }
        match shared.monitor.capabilities().rest() {
            Ok(true) => shared.policies.caps.forget_all(),
            Ok(false) => {}
            Err(e) => complain(e.into()),
        }
        // what fails is tried again as what is saved: a disk that has to be searched takes its time
        let came = mem::take(&mut mounted)
            && arrive(shared).unwrap_or_else(|failure| {
                complain(failure);
                false
            });
        let behind = shared.disks.clock_is_behind().unwrap_or_else(|failure| {
            complain(failure);
            true
        });
        shared.pulse.beat(Who::House);
        if came || behind || tried.elapsed() >= SAVE {
            tried = Instant::now();
            if let Err(failure) = store::prune(&shared.monitor, &shared.disks) {
                complain(failure);
            }
            if let Err(failure) = store::save(&shared.monitor, &shared.policies, &shared.disks) {
                complain(failure);
            }
        }
    }
}

/// Looks for disks that have been mounted; whether there are.
fn arrive(shared: &Shared) -> Outcome<bool> {
    let Some(warnings) = store::arrive(shared)? else {
        return Ok(false);
    };
    for warning in warnings {
        shared.complain(&warning);
    }
    Ok(true)
}
