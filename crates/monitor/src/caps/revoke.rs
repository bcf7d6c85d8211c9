//! Takes capabilities back (kernel/caps/revoke.h).
//!
//! Invariant: once [`Capabilities::revoke`] has returned, nothing is done by what was taken back, but by sessions that began
//! later. In this order:
//!
//! 1. what is taken is entered for each session, and the revocation counted: a subject that is
//!    asked about from now on is asked about without it, and what is bound is looked at once more
//!    before it is used;
//! 2. the guard is attached: so is each read and write;
//! 3. each governed thread has been outside of what it began before (`rest.rs`);
//! 4. a process that has mapped what it may not use any more is killed, as nobody is asked about
//!    that; so is one that cannot be looked at, as its memory is locked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::{Capabilities, Session};
use crate::abi::CapsKind;
use crate::error::{Error, Result, Trying};
use crate::load::Monitor;
use crate::mappings::BLOCKED;
use crate::parts::Caps;
use crate::skel::types::{caps_taken_key, tg_caps_held};
use crate::sys::Over;
use crate::te_revoke::{Killed, Why};

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdraw {
    /// All that a session has, by its number.
    Session(u64),
    /// What a subject gives, by its place.
    Subject(u32),
    /// What a capability gives, by its place.
    Capability(u32),
    /// What anybody gives of an object, by its number ([`tidegate_lava::object_id`]).
    Object(u64),
}

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// Sessions that it was taken from.
    pub sessions: usize,
    /// The processes that were killed.
    pub killed: Vec<Killed>,
}

impl Withdraw {
    /// The key of what is taken from a session; `None`: nothing is.
    fn key(self, session: &Session) -> Option<caps_taken_key> {
        let (kind, of) = match self {
            Withdraw::Session(number) if number != session.number => return None,
            Withdraw::Session(_) => (CapsKind::All, 0),
            Withdraw::Subject(place) => (CapsKind::Subject, place.into()),
            Withdraw::Capability(place) => (CapsKind::Capability, place.into()),
            Withdraw::Object(id) => (CapsKind::Object, id),
        };
        Some(caps_taken_key {
            session: session.place,
            kind: kind as u32,
            of,
        })
    }
}

impl Monitor {
    /// What was taken from sessions, by their places.
    ///
    /// # Errors
    /// [`Error::Io`] if the table cannot be read.
    pub fn withdrawn(&self) -> Result<HashMap<u32, Vec<Withdraw>>> {
        let Some(caps) = self.part::<Caps>()? else {
            return Ok(HashMap::new());
        };
        let entries = caps.taken.entries();
        let mut all: HashMap<u32, Vec<Withdraw>> = HashMap::new();
        for (key, _) in entries.trying(|| "read what was taken back".into())? {
            let kind = u8::try_from(key.kind).ok().and_then(CapsKind::from_number);
            let what = match kind {
                Some(CapsKind::All) => {
                    Withdraw::Session(caps.globals.session(key.session as usize).number)
                }
                Some(CapsKind::Subject) => Withdraw::Subject(key.of as u32),
                Some(CapsKind::Capability) => Withdraw::Capability(key.of as u32),
                Some(CapsKind::Object) => Withdraw::Object(key.of),
                None => continue,
            };
            all.entry(key.session).or_default().push(what);
        }
        Ok(all)
    }
}

impl Capabilities<'_> {
    /// Takes capabilities back from the sessions that run; complete when it returns.
    ///
    /// # Errors
    /// [`Error::Full`], and nothing is taken as a whole; [`Error::Hook`], [`Error::Io`]: it is taken, and what was bound by it may
    /// still be used.
    pub fn revoke(&mut self, what: &[Withdraw]) -> Result<Withdrawn> {
        self.sweep()?;
        let monitor = self.monitor;
        let Some(caps) = monitor.part::<Caps>()? else {
            return Ok(Withdrawn::default());
        };
        let sessions = caps.globals.sessions();
        let keys = |session: &Session| -> Vec<caps_taken_key> {
            what.iter().filter_map(|what| what.key(session)).collect()
        };
        let told: Vec<(&Session, Vec<caps_taken_key>)> = sessions
            .iter()
            .map(|session| (session, keys(session)))
            .filter(|(_, keys)| !keys.is_empty())
            .collect();
        if told.is_empty() {
            return Ok(Withdrawn::default());
        }
        let epoch = caps.globals.epoch();
        let number = epoch.load(Ordering::SeqCst) + 1;
        for key in told.iter().flat_map(|(_, keys)| keys) {
            // what was taken once is taken since then
            let put = caps.taken.update(key, &number, libbpf_sys::BPF_NOEXIST);
            match put {
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::EXIST.raw_os_error()) => {}
                Err(e) if e.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) => {
                    return Err(Error::Full("revocations"));
                }
                put => put.trying(|| "enter what is taken back".into())?,
            }
        }
        for (session, keys) in &told {
            let kinds = keys.iter().fold(0, |kinds, key| kinds | 1 << key.kind);
            let taken = caps.globals.taken(session.place as usize);
            taken.fetch_or(kinds, Ordering::SeqCst);
        }
        epoch.store(number, Ordering::SeqCst);
        monitor.arm_capabilities()?;
        let places: HashSet<u32> = told.iter().map(|(session, _)| session.place).collect();
        // others hold what was handed over
        let processes = monitor.processes()?;
        let governed = processes.iter().filter(|p| p.domain.is_some());
        let pids: Vec<u32> = governed.map(|p| p.pid).collect();
        let mut doomed: BTreeMap<u32, Why> = BTreeMap::new();
        doomed.extend((monitor.bring_to_rest(&pids)?.into_iter()).map(|pid| (pid, Why::Busy)));
        let killed = monitor.kill_all(doomed, |doomed| {
            let held: Vec<tg_caps_held> = monitor.look(&caps.ps_vma, Over::All)?;
            // what others have lost otherwise, as it expired, is not this one's matter
            let own = held
                .iter()
                .filter(|h| h.fd == BLOCKED || h.revoked != 0 || places.contains(&h.session));
            doomed.extend(own.map(|h| (h.pid, why(h))));
            Ok(())
        })?;
        Ok(Withdrawn {
            sessions: told.len(),
            killed,
        })
    }

    /// A process has been narrowed. Where the subject was taken back from its session earlier, it
    /// has nothing any more: if it has mapped something, it does not live, as if it had been
    /// narrowed first.
    pub(super) fn lose_mappings(&self, pid: u32, subject: u32) -> Result<()> {
        let monitor = self.monitor;
        let caps = monitor.needed::<Caps>()?;
        let number = monitor.process(pid)?.and_then(|process| process.domain);
        let Some(domain) = number.and_then(|number| super::domain(&caps.globals, number)) else {
            return Ok(());
        };
        let key = caps_taken_key {
            session: domain.session,
            kind: CapsKind::Subject as u32,
            of: subject.into(),
        };
        let what = || "look what was taken back".into();
        if caps.taken.get(&key).trying(what)?.is_none() {
            return Ok(());
        }
        let killed = monitor.kill_all(BTreeMap::new(), |doomed| {
            let held: Vec<tg_caps_held> = monitor.look(&caps.ps_vma, Over::All)?;
            let own = (held.iter().filter(|h| h.pid == pid))
                .filter(|h| h.fd == BLOCKED || h.revoked != 0);
            doomed.extend(own.map(|h| (h.pid, why(h))));
            Ok(())
        });
        killed.map(drop)
    }
}

/// Why a process is killed.
fn why(held: &tg_caps_held) -> Why {
    match held.fd {
        BLOCKED => Why::Busy,
        _ => Why::Withdrawn { ino: held.ino },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_loses_all_by_its_own_number_only() {
        let session = Session {
            place: 3,
            number: 7,
            uid: 0,
            started: 1,
            tasks: 1,
            domains: 1,
        };
        let key = Withdraw::Session(7).key(&session).unwrap();
        assert_eq!((key.session, key.kind, key.of), (3, 0, 0));
        assert!(Withdraw::Session(8).key(&session).is_none());
        let key = Withdraw::Object(9).key(&session).unwrap();
        assert_eq!((key.session, key.kind, key.of), (3, 3, 9));
    }
}
