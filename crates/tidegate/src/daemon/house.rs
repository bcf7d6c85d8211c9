//! What is done from time to time: letting the guard go, saving given levels; and as disks are
//! mounted: giving them theirs.

use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Shared;
use super::given;
use crate::exit::{Failure, Outcome};

/// Tells of what is mounted, and of each change.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Between two looks at the guard.
const BEAT: Duration = Duration::from_secs(1);

/// Between two savings of the given levels.
const SAVE: Duration = Duration::from_secs(60);

/// Starts the thread.
pub fn start(shared: &Arc<Shared>) -> Outcome {
    let shared = Arc::clone(shared);
    let mounts = File::open(MOUNTS).map_err(|e| Failure::io(format!("open {MOUNTS}"), e))?;
    thread::Builder::new()
        .name("house".into())
        .spawn(move || keep(&shared, &mounts))
        .map(drop)
        .map_err(|e| Failure::io("start a thread", e))
}

fn keep(shared: &Shared, mounts: &File) {
    let (mut tried, mut told) = (Instant::now(), None::<Instant>);
    let mut mounted = true;
    while !shared.ends() {
        mounted |= wait(mounts) | (tried.elapsed() >= SAVE);
        // what goes on failing is told of as often as it would be tried
        let mut complain = |failure: Failure| {
            if told.is_none_or(|told| told.elapsed() >= SAVE) {
                told = Some(Instant::now());
                shared.complain(&failure.message.to_string());
            }
        };
        if let Err(e) = shared.guard.rest(&shared.monitor) {
            shared.complain(&format!("the guard stays attached: {e}"));
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
        if came || behind || tried.elapsed() >= SAVE {
            tried = Instant::now();
            if let Err(failure) = given::prune(&shared.monitor) {
                complain(failure);
            }
            if let Err(failure) = given::save(&shared.monitor, &shared.policies, &shared.disks) {
                complain(failure);
            }
        }
    }
}

/// Waits for a beat, or until something has been mounted or unmounted (proc(5)); whether it may have been.
fn wait(mounts: &File) -> bool {
    let mut changes = [PollFd::new(mounts, PollFlags::PRI)];
    let beat = Timespec {
        tv_sec: BEAT.as_secs() as i64,
        tv_nsec: 0,
    };
    match poll(&mut changes, Some(&beat)) {
        Ok(ready) => ready > 0,
        Err(_) => {
            thread::sleep(BEAT);
            true
        }
    }
}

/// Looks for disks that have been mounted; whether there are.
fn arrive(shared: &Shared) -> Outcome<bool> {
    let Some(warnings) = given::arrive(shared)? else {
        return Ok(false);
    };
    for warning in warnings {
        shared.complain(&warning);
    }
    Ok(true)
}
