//! How sessions begin, and processes are narrowed.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::{Capabilities, Quiet, SESSIONS};
use crate::error::{Error, Result, Trying};
use crate::event::boottime;
use crate::load::Monitor;
use crate::parts::Caps;
use crate::skel::types::{caps_change, caps_session};
use crate::sys;

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
    /// The place of the subject.
    pub place: u32,
    /// Whether something in its files is checked at each use, or ends by itself.
    pub is_watched: bool,
    /// Whether its files describe services, whose requests are looked at,
    pub has_services: bool,
    /// and any that may be on a stream.
    pub has_streams: bool,
}

impl Capabilities<'_> {
    /// Begins a session for a process that is in none. The session's number.
    ///
    /// # Errors
    /// [`Error::NewPrivileges`]; [`Error::Capabilities`] if the user has too many, or there are; [`Error::Hook`], [`Error::Load`] if this kernel does not
    /// take the model.
    pub fn begin(&mut self, layer: Layer, pid: u32, uid: u32, when: When) -> Result<u64> {
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
        self.prepare(layer)?;
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
        let done = monitor.change(pid, uid, layer.place, place as u32, when);
        globals.tasks(place).fetch_sub(1, Ordering::SeqCst);
        // a place that nobody is in goes with the next sweep
        done.map(|()| number)
    }

    /// Gives a process that is in a session one more layer, as a user asks. One that has it already
    /// is left as it is. Of a subject that was taken back from the session it gets that it has
    /// nothing any more.
    ///
    /// # Errors
    /// [`Error::NewPrivileges`]; [`Error::Capabilities`] if it has as many as there may be, or shares its memory or its descriptors with others.
    pub fn narrow(&mut self, layer: Layer, pid: u32, uid: u32, when: When) -> Result<()> {
        self.prepare(layer)?;
        self.monitor.change(pid, uid, layer.place, 0, when)?;
        match when {
            // it loses what it has mapped when it is executed
            When::Executed => Ok(()),
            When::Now => self.lose_mappings(pid, layer.place),
        }
    }

    /// Attaches what a layer takes besides, before it comes into force.
    fn prepare(&self, layer: Layer) -> Result<()> {
        if layer.is_watched {
            self.monitor.arm_capabilities()?;
        }
        if layer.has_services {
            self.monitor.attach_caps_services(layer.has_streams)?;
        }
        Ok(())
    }
}

impl Monitor {
    fn change(&self, pid: u32, uid: u32, layer: u32, session: u32, when: When) -> Result<()> {
        let mut change = caps_change {
            pid,
            layer,
            session,
            now: (when == When::Now).into(),
            is_root: (uid == 0).into(),
            threads: 0,
            error: 0,
        };
        let caps = self.needed::<Caps>()?;
        let mut tries = 0..LOOKS;
        loop {
            (change.threads, change.error) = (0, 0);
            sys::run(&caps.ps_change, &mut change).trying(|| "give a process a layer".into())?;
            match change.error {
                0 => break,
                error if is_busy(error) && tries.next().is_some() => thread::sleep(LOOK_AGAIN),
                error => return Err(refused(error)),
            }
        }
        // what its threads began earlier is over once
        if change.threads > 1 && !self.bring_to_rest(&[pid])?.is_empty() {
            let text = "its threads are busy: what they began earlier could not be interrupted";
            return Err(Error::Capabilities(text.into()));
        }
        Ok(())
    }
}

/// Others have a part of its memory, or of its descriptors.
fn is_busy(error: i32) -> bool {
    Errno::from_raw_os_error(-error) == Errno::BUSY
}

/// Why the kernel gives no layer, by its errno.
fn refused(error: i32) -> Error {
    let errno = Errno::from_raw_os_error(-error);
    let text = match errno {
        Errno::TOOBIG => "it is limited by 16 layers, which is as many as there may be",
        Errno::BUSY => "other processes share its memory or its descriptors",
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
        assert!(is_busy(-16) && !is_busy(-7));
        let gone = refused(-3);
        assert_eq!(gone.errno(), Some(3));
    }
}
