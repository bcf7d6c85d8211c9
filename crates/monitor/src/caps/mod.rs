//! Sessions of the `capability` model (kernel/caps/session.h): which there are, how they begin, are
//! narrowed and end, and what is taken from them.
//!
//! One at a time changes what is told here ([`Monitor::capabilities`]): places of sessions, the table of images, what was taken.
//! All of it is in the model's globals, so that a daemon that takes over finds it.
//!
//! A session whose last task is gone leaves its place. If something had been taken from it, the kernel first has each active
//! capability told of that, as these outlive it in descriptors that others were handed. Images go once there is no session at
//! all: what is bound refers to them.

mod change;
mod revoke;
mod table;

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use self::change::{Begun, Layer, When};
pub use self::revoke::{Withdraw, Withdrawn};
pub use self::table::{HeldImage, Room, Spot};
use crate::attach::Model;
use crate::error::{Result, Trying};
use crate::globals::Section;
use crate::load::Monitor;
use crate::parts::Caps;
use crate::skel::types::bss_caps;
use crate::sys;

/// Places of sessions and of domains: `CAPS_SESSIONS`, `CAPS_DOMAINS`.
const SESSIONS: usize = 4096;
const DOMAINS: usize = 4096;

/// How long there must have been no session before the model's programs go.
const QUIET: Duration = Duration::from_secs(5);

/// Since when there has been no session, in this process.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    since: Option<Instant>,
    /// Nothing is left to be let go of.
    done: bool,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its place, which another has later.
    pub place: u32,
    /// Its number, which no other has.
    pub number: u64,
    /// The user that began it.
    pub uid: u32,
    /// When, in nanoseconds of `CLOCK_BOOTTIME`.
    pub started: u64,
    /// Tasks in it.
    pub tasks: u32,
    /// Its domains.
    pub domains: u32,
}

/// A session and the layers that limit tasks in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its number.
    pub number: u32,
    /// The place of its session.
    pub session: u32,
    /// The places of its layers' subjects.
    pub layers: Vec<u32>,
}

/// The right to change sessions, one at a time.
#[derive(Debug)]
pub struct Capabilities<'m> {
    monitor: &'m Monitor,
    quiet: MutexGuard<'m, Quiet>,
}

impl Monitor {
    /// The sessions that there are.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the model is loaded and what it has cannot be opened.
    pub fn sessions(&self) -> Result<Vec<Session>> {
        let caps = self.part::<Caps>()?;
        Ok(caps.map_or_else(Vec::new, |caps| caps.globals.sessions()))
    }

    /// All domains that tasks are in.
    ///
    /// # Errors
    /// As [`sessions`](Self::sessions).
    pub fn domains(&self) -> Result<Vec<Domain>> {
        let Some(Caps { globals, .. }) = self.part::<Caps>()? else {
            return Ok(Vec::new());
        };
        let numbers = (0..DOMAINS).map(|place| globals.domain(place).number);
        Ok(numbers
            .filter_map(|number| domain(globals, number))
            .collect())
    }

    /// The right to change sessions; whoever has it has them stand still, but for tasks that come and go. It is let go of before
    /// anything is waited for that a process can delay: its threads, its memory, its end.
    pub fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            monitor: self,
            quiet: self.sessions.lock().unwrap_or_else(|e| e.into_inner()),
        }
    }

    /// Attaches the guard of the `capability` model: something is checked at each use, or was taken back.
    ///
    /// # Errors
    /// [`crate::Error::Hook`]; a task that waits for it is refused in time.
    pub fn arm_capabilities(&self) -> Result<()> {
        let armed = self.needed::<Caps>()?.globals.guard_armed();
        if armed.load(Ordering::SeqCst) == 0 {
            self.attach_caps_guards()?;
            armed.store(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Section<bss_caps> {
    fn sessions(&self) -> Vec<Session> {
        let all = (0..SESSIONS).filter(|&place| self.is_session(place));
        all.map(|place| {
            let s = self.session(place);
            Session {
                place: place as u32,
                number: s.number,
                uid: s.uid,
                started: s.started,
                tasks: s.tasks,
                domains: s.domains,
            }
        })
        .collect()
    }

    fn is_session(&self, place: usize) -> bool {
        self.started(place).load(Ordering::SeqCst) != 0
    }
}

/// What a domain is; `None`: there is no such any more.
fn domain(globals: &Section<bss_caps>, number: u32) -> Option<Domain> {
    let domain = globals.domain(number as usize % DOMAINS);
    let layers = domain.layers.get(..domain.count as usize)?;
    (domain.refs != 0 && domain.number == number).then(|| Domain {
        number,
        session: domain.session,
        layers: layers.to_vec(),
    })
}

impl Capabilities<'_> {
    /// Has sessions that have ended leave their places, and all that the model takes go where none is left for a while. To be
    /// called often. Whether the images of capability files went.
    ///
    /// # Errors
    /// [`crate::Error::Io`]: what is to go stays for now.
    pub fn rest(&mut self) -> Result<bool> {
        let Some(caps) = self.monitor.part::<Caps>()? else {
            return Ok(false);
        };
        self.sweep()?;
        if (0..SESSIONS).any(|place| caps.globals.is_session(place)) {
            *self.quiet = Quiet::default();
            return Ok(false);
        }
        let since = *self.quiet.since.get_or_insert_with(Instant::now);
        if self.quiet.done || since.elapsed() < QUIET {
            return Ok(false);
        }
        caps.globals.guard_armed().store(0, Ordering::SeqCst);
        self.monitor.detach_model(Model::Caps)?;
        caps.globals.clear_images();
        self.quiet.done = true;
        Ok(true)
    }

    /// Has sessions that have ended leave their places.
    fn sweep(&self) -> Result<()> {
        let Some(caps) = self.monitor.part::<Caps>()? else {
            return Ok(());
        };
        let globals = &caps.globals;
        let ended: Vec<usize> = (0..SESSIONS)
            .filter(|&place| globals.is_session(place))
            .filter(|&place| globals.tasks(place).load(Ordering::SeqCst) == 0)
            .collect();
        let was_taken = |&&place: &&usize| globals.taken(place).load(Ordering::SeqCst) != 0;
        let lost: Vec<usize> = ended.iter().filter(was_taken).copied().collect();
        if !lost.is_empty() {
            let what = || "settle what was taken from a session that has ended".to_string();
            sys::run(&caps.ps_settle, &mut 0u64).trying(what)?;
            let entries = caps.taken.entries().trying(what)?;
            for (key, _) in entries {
                if lost.contains(&(key.session as usize)) {
                    caps.taken.delete(&key).trying(what)?;
                }
            }
        }
        for place in ended {
            globals.taken(place).store(0, Ordering::SeqCst);
            globals.started(place).store(0, Ordering::SeqCst);
        }
        Ok(())
    }
}
