//! What is done from time to time: letting the guard go, saving given levels.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Shared;
use super::given;
use crate::exit::{Failure, Outcome};

/// Between two looks at the guard.
const BEAT: Duration = Duration::from_secs(1);

/// Between two savings of the given levels.
const SAVE: Duration = Duration::from_secs(60);

/// A wall clock that has lost more than this since the last saving was set back. What changes then
/// would seem to have done so before (`suspects.rs`), so they are saved at once.
const LOST: Duration = Duration::from_secs(1);

/// Starts the thread.
pub fn start(shared: &Arc<Shared>) -> Outcome {
    let shared = Arc::clone(shared);
    thread::Builder::new()
        .name("house".into())
        .spawn(move || keep(&shared))
        .map(drop)
        .map_err(|e| Failure::io("start a thread", e))
}

fn keep(shared: &Shared) {
    let (mut saved, mut clock) = (Instant::now(), SystemTime::now());
    while !shared.ends() {
        thread::sleep(BEAT);
        if let Err(e) = shared.guard.rest(&shared.monitor) {
            shared.complain(&format!("the guard stays attached: {e}"));
        }
        let set_back = clock.elapsed().unwrap_or_default() + LOST < saved.elapsed();
        if set_back || saved.elapsed() >= SAVE {
            (saved, clock) = (Instant::now(), SystemTime::now());
            if let Err(failure) = tidy(shared) {
                shared.complain(&failure.message.to_string());
            }
        }
    }
}

/// Forgets levels whose objects are gone, and writes the others down.
fn tidy(shared: &Shared) -> Outcome {
    given::prune(&shared.monitor)?;
    given::save(&shared.monitor, &shared.policies)
}
