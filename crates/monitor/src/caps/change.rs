//! How sessions begin, and processes are narrowed.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::{Capabilities, Quiet, SESSIONS};
use crate::error::{Error, Result, Trying};
use crate::event::boottime;
use crate::globals::Section;
use crate::load::Monitor;
use crate::parts::Caps;
use crate::skel::types::{bss_caps, caps_change, caps_session};
use crate::sys;
use crate::tasks::Process;

/// Sessions of one user who is not root, so that nobody keeps others out,
const OF_ONE: usize = 64;
/// and of all places, what only root gets.
const KEPT: usize = SESSIONS / 8;

/// How often, and how long after one another, memory is looked at that seems to be shared. A reader of `/proc/PID/maps` has
/// a part of it for a moment. A thread that is being made has one before it is counted: on a busy processor it may wait
/// there for its turn, and where threads make threads all the time, some turns pass until none does.
const LOOKS: u32 = 250;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// When a layer comes into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At the process's next execution.
    Executed,
    /// At once, for all its threads.
    Now,
}

/// A subject that limits somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// The place of the subject,
    pub place: u32,
    /// and the image that it is in, by its index in the table ([`HeldImage::index`]).
    pub image: u32,
    /// Whether something in its files is checked at each use, or ends by itself.
    pub is_watched: bool,
    /// Whether its files describe services, whose requests are looked at,
    pub has_services: bool,
    /// and any that may be on a stream.
    pub has_streams: bool,
}

/// A session that has a number and a place, which nobody else gets while this lives.
#[derive(Debug)]
pub struct Begun<'m> {
    monitor: &'m Monitor,
    globals: &'m Section<bss_caps>,
    place: usize,
    /// Its number.
    pub number: u64,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // a place that nobody is in goes with the next sweep
        self.globals
            .tasks(self.place)
            .fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'m> Capabilities<'m> {
    /// Begins a session for a user's process, which [`Begun::give`] brings into it.
    ///
    /// # Errors
    /// [`Error::Capabilities`] if the user has too many, or there are; [`Error::Hook`], [`Error::Load`] if this kernel does not
    /// take the model.
    pub fn begin(&mut self, uid: u32) -> Result<Begun<'m>> {
        self.sweep()?;
        *self.quiet = Quiet::default();
        let monitor = self.monitor;
        let Caps { globals, .. } = monitor.needed::<Caps>()?;
        let sessions = globals.sessions();
        let own = sessions.iter().filter(|session| session.uid == uid).count();
        if uid != 0 && (own >= OF_ONE || sessions.len() >= SESSIONS - KEPT) {
            let text = "there are too many sessions: those that run have to end first";
            return Err(Error::Capabilities(text.into()));
        }
        let Some(place) = (0..SESSIONS).find(|&place| !globals.is_session(place)) else {
            return Err(Error::Full("sessions"));
        };
        monitor.attach_caps()?;
        let numbers = (0..SESSIONS).map(|place| globals.session(place).number);
        let number = numbers.max().unwrap_or(0) + 1;
        // held by this process meanwhile
        let session = caps_session {
            tasks: 1,
            uid,
            started: boottime(),
            number,
            ..caps_session::default()
        };
        globals.set_session(place, session);
        Ok(Begun {
            monitor,
            globals,
            place,
            number,
        })
    }

    /// Attaches what a layer takes besides, before it comes into force.
    ///
    /// # Errors
    /// [`Error::Hook`], [`Error::Load`] if this kernel does not take it.
    pub fn prepare(&self, layer: Layer) -> Result<()> {
        if layer.is_watched {
            self.monitor.arm_capabilities()?;
        }
        if layer.has_services {
            self.monitor.attach_caps_services(layer.has_streams)?;
        }
        Ok(())
    }
}

impl Begun<'_> {
    /// Brings a process into it, as a user asks: with a layer. False, and nothing is done: another question of the same process
    /// has brought it into a session meanwhile, or will with its next execution; it is to be [narrowed](Monitor::narrow).
    ///
    /// # Errors
    /// As [`Monitor::narrow`].
    pub fn give(&self, layer: Layer, process: &Process, uid: u32, when: When) -> Result<bool> {
        self.monitor
            .change(layer, process, uid, when, Some(self.place))
    }
}

impl Monitor {
    /// Gives a process that is in a session one more layer, as a user asks. One that has it already is left as it is. Of a subject that was
    /// taken back from the session it gets that it has nothing any more.
    ///
    /// Nothing is locked meanwhile, as the process is waited for.
    ///
    /// # Errors
    /// [`Error::NewPrivileges`]; [`Error::Capabilities`] if it has as many as there may be, or shares its memory or its descriptors with
    /// others; [`Error::Io`] if it has ended, whichever process has its number by then.
    pub fn narrow(&self, layer: Layer, process: &Process, uid: u32, when: When) -> Result<()> {
        if !self.change(layer, process, uid, when, None)? {
            return Err(refused(-Errno::SRCH.raw_os_error()));
        }
        match when {
            // it loses what it has mapped when it is executed
            When::Executed => Ok(()),
            When::Now => self.lose_mappings(process, layer.place),
        }
    }

    /// Whether it is done: not where the process is in a session, or about to be, and is to begin one; or is in none, and is not to.
    fn change(
        &self,
        layer: Layer,
        process: &Process,
        uid: u32,
        when: When,
        begins: Option<usize>,
    ) -> Result<bool> {
        let mut change = caps_change {
            start: process.start,
            pid: process.pid,
            layer: layer.place,
            image: layer.image,
            begins: begins.is_some().into(),
            session: begins.unwrap_or(0) as u32,
            now: (when == When::Now).into(),
            is_root: (uid == 0).into(),
            ..caps_change::default()
        };
        let caps = self.needed::<Caps>()?;
        let mut tries = 0..LOOKS;
        loop {
            (change.threads, change.error) = (0, 0);
            sys::run(&caps.ps_change, &mut change).trying(|| "give a process a layer".into())?;
            match change.error {
                0 => break,
                error if is(error, Errno::STALE) => return Ok(false),
                error if is_busy(error) && tries.next().is_some() => thread::sleep(LOOK_AGAIN),
                error => return Err(refused(error)),
            }
        }
        // what its threads began earlier is over once
        if change.threads > 1 && !self.bring_to_rest(&[process])?.is_empty() {
            let text = "its threads are busy: what they began earlier could not be interrupted";
            return Err(Error::Capabilities(text.into()));
        }
        Ok(true)
    }
}

fn is(error: i32, errno: Errno) -> bool {
    Errno::from_raw_os_error(-error) == errno
}

/// Others have a part of its memory, or of its descriptors, or it executes just now.
fn is_busy(error: i32) -> bool {
    is(error, Errno::BUSY) || is(error, Errno::AGAIN)
}

/// Why the kernel gives no layer, by its errno.
fn refused(error: i32) -> Error {
    let errno = Errno::from_raw_os_error(-error);
    let text = match errno {
        Errno::TOOBIG => "it is limited by 16 layers, which is as many as there may be",
        Errno::BUSY => "other processes share its memory or its descriptors",
        Errno::AGAIN => "it executes programs all the time",
        Errno::NOSPC => "there are too many domains",
        Errno::INVAL => {
            "a process with several threads is narrowed at once, and not at its next execution"
        }
        Errno::PERM => return Error::NewPrivileges,
        errno => return Error::io("give a process a layer", errno),
    };
    Error::Capabilities(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_said_in_words() {
        assert!(refused(-7).to_string().contains("16 layers"));
        assert!(matches!(refused(-1), Error::NewPrivileges));
        assert!(is_busy(-16) && is_busy(-11) && !is_busy(-7));
        let gone = refused(-3);
        assert_eq!(gone.errno(), Some(3));
    }
}
