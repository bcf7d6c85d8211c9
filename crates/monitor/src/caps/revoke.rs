//! Takes capabilities back (kernel/caps/revoke.h).
//!
//! Invariant: once [`Monitor::withdraw`] has returned, nothing is done by what was taken back, but by sessions that began, or had
//! their first layer of these files, later. In this order:
//!
//! 1. what is taken is entered for each session that has, or had, anything of it, and the revocation counted: each question
//!    from now on is asked without it, and what is bound is looked at once more before it is used;
//! 2. the guard is attached: so is each read and write;
//! 3. each governed thread has been outside of what it began before (`rest.rs`);
//! 4. a process that has mapped what it may not use any more is killed, as nobody is asked about that; so is one that cannot be looked
//!    at, as its memory is locked.
//!
//! The right to change sessions is held for the first two: processes are waited for after that.
//!
//! A session may have thousands of layers, and a user many sessions. What they take in the table together is bounded: where there is no
//! more room for a user's, its sessions lose all that they have, for which room is kept. So no user has a revocation fail.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::{Capabilities, SESSIONS, Session};
use crate::abi::CapsKind;
use crate::error::{Result, Trying};
use crate::globals::Section;
use crate::load::Monitor;
use crate::mappings::BLOCKED;
use crate::parts::Caps;
use crate::skel::types::{bss_caps, caps_taken_key, tg_caps_held};
use crate::sys::Over;
use crate::tasks::Process;
use crate::te_revoke::{Killed, Why};

/// Of the table of what was taken, the part that one user's sessions have at most.
const SHARE: usize = 8;

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdraw {
    /// All that a session has, by its number.
    Session(u64),
    /// What a subject gives, by its place.
    Subject(u32),
    /// What a capability gives, by its place.
    Capability(u32),
    /// What anybody gives of an object, by its number ([`tidegate_lava::object_id`]); of a service's object, which those have that go by
    /// the service's files, the place of those, too.
    Object(u64, Option<u32>),
}

/// What was taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// Sessions that it was taken from,
    pub sessions: usize,
    /// and those of them that have lost all, as the table had no more room for their user's.
    pub whole: usize,
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
            Withdraw::Object(id, _) => (CapsKind::Object, id),
        };
        Some(caps_taken_key {
            session: session.place,
            kind: kind as u32,
            of,
        })
    }

    /// A place in the only image whose layers have anything to do with it; `None`: all may.
    fn place(self) -> Option<u32> {
        match self {
            Withdraw::Session(_) => None,
            Withdraw::Subject(place) | Withdraw::Capability(place) => Some(place),
            Withdraw::Object(_, place) => place,
        }
    }
}

impl Section<bss_caps> {
    /// What is to be entered: for each session what it could have lost by it.
    fn told<'a>(&self, sessions: &'a [Session], what: &[Withdraw]) -> Vec<Told<'a>> {
        let images = self.held_images();
        let is_of = |session: &Session, what: &Withdraw| match what.place() {
            None => true,
            Some(place) => (images.iter().find(|image| image.has(place)))
                .is_some_and(|image| self.has_image(session.place as usize, image.index as usize)),
        };
        let told = sessions.iter().map(|session| Told {
            session,
            keys: (what.iter().filter(|what| is_of(session, what)))
                .filter_map(|what| what.key(session))
                .collect(),
        });
        told.filter(|told| !told.keys.is_empty()).collect()
    }
}

/// What is taken from a session.
#[derive(Debug)]
struct Told<'a> {
    session: &'a Session,
    keys: Vec<caps_taken_key>,
}

impl Told<'_> {
    /// Whether the session loses all, and what it had is no matter.
    fn is_whole(&self) -> bool {
        self.keys.iter().any(|key| key.kind == CapsKind::All as u32)
    }
}

/// An entry of the table of what was taken: its session's place, its kind, of what.
type Entry = (u32, u32, u64);

fn entry(key: &caps_taken_key) -> Entry {
    (key.session, key.kind, key.of)
}

/// Has what is taken fit into a table of so many entries, of which each session has one to lose all by: where a user's sessions
/// would have more than their share, or no room is left, a session loses all. How many do.
fn fit(
    told: &mut [Told<'_>],
    sessions: &[Session],
    there: &HashSet<Entry>,
    entries: usize,
) -> usize {
    let room = entries.saturating_sub(SESSIONS);
    let users: HashMap<u32, u32> = sessions.iter().map(|s| (s.place, s.uid)).collect();
    let parts = there
        .iter()
        .filter(|(_, kind, _)| *kind != CapsKind::All as u32);
    let mut own: HashMap<u32, usize> = HashMap::new();
    let mut all = 0;
    for uid in parts.filter_map(|(place, ..)| users.get(place)) {
        *own.entry(*uid).or_default() += 1;
        all += 1;
    }
    let mut whole = 0;
    for one in told.iter_mut().filter(|one| !one.is_whole()) {
        let new = one.keys.iter().filter(|key| !there.contains(&entry(key)));
        let (new, uid) = (new.count(), one.session.uid);
        let own = own.entry(uid).or_default();
        if new > 0 && (all + new > room || uid != 0 && *own + new > room / SHARE) {
            one.keys = Vec::from_iter(Withdraw::Session(one.session.number).key(one.session));
            whole += 1;
        } else {
            *own += new;
            all += new;
        }
    }
    whole
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
                Some(CapsKind::Object) => Withdraw::Object(key.of, None),
                None => continue,
            };
            all.entry(key.session).or_default().push(what);
        }
        Ok(all)
    }

    /// Takes capabilities back from the sessions that run; complete when it returns.
    ///
    /// # Errors
    /// [`crate::Error::Hook`], [`crate::Error::Io`]: it may be taken, and what was bound by it may still be used.
    pub fn withdraw(&self, what: &[Withdraw]) -> Result<Withdrawn> {
        let Some(caps) = self.part::<Caps>()? else {
            return Ok(Withdrawn::default());
        };
        let Some(entered) = self.capabilities().enter(caps, what)? else {
            return Ok(Withdrawn::default());
        };
        let processes = self.processes()?;
        // others hold what was handed over
        let governed: Vec<&Process> = processes.iter().filter(|p| p.domain.is_some()).collect();
        let late = self.bring_to_rest(&governed)?;
        let killed = self.kill_all(processes, late, |doomed| {
            let held: Vec<tg_caps_held> = self.look(&caps.ps_vma, Over::All)?;
            // what others have lost otherwise, as it expired, is not this one's matter
            let own = held.iter().filter(|h| {
                h.fd == BLOCKED || h.revoked != 0 || entered.places.contains(&h.session)
            });
            doomed.extend(own.map(|h| (h.pid, why(h))));
            Ok(())
        })?;
        Ok(Withdrawn {
            sessions: entered.places.len(),
            whole: entered.whole,
            killed,
        })
    }

    /// A process has been narrowed. Where the subject was taken back from its session earlier, it has nothing any more: a process
    /// that has mapped something does not live, as if it had been narrowed first.
    pub(super) fn lose_mappings(&self, process: &Process, subject: u32) -> Result<()> {
        let caps = self.needed::<Caps>()?;
        let now = self.process(process.pid)?;
        let now = now.filter(|now| now.start == process.start);
        let number = now.and_then(|now| now.domain);
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
        let killed = self.kill_all(vec![process.clone()], Vec::new(), |doomed| {
            if !self.is_there(process)? {
                return Ok(());
            }
            let held: Vec<tg_caps_held> = self.look(&caps.ps_vma, Over::All)?;
            let own = (held.iter().filter(|h| h.pid == process.pid))
                .filter(|h| h.fd == BLOCKED || h.revoked != 0);
            doomed.extend(own.map(|h| (h.pid, why(h))));
            Ok(())
        });
        killed.map(drop)
    }
}

/// What a revocation has entered.
#[derive(Debug)]
struct Entered {
    /// The places of the sessions that something was taken from,
    places: HashSet<u32>,
    /// and how many of them have lost all, for want of room.
    whole: usize,
}

impl Capabilities<'_> {
    /// The first two steps of a revocation; `None`: it takes nothing from anybody.
    fn enter(&mut self, caps: &Caps, what: &[Withdraw]) -> Result<Option<Entered>> {
        self.sweep()?;
        let sessions = caps.globals.sessions();
        let mut told = caps.globals.told(&sessions, what);
        if told.is_empty() {
            return Ok(None);
        }
        let entries = caps.taken.entries();
        let entries = entries.trying(|| "read what was taken back".into())?;
        let there: HashSet<Entry> = entries.iter().map(|(key, _)| entry(key)).collect();
        let whole = fit(
            &mut told,
            &sessions,
            &there,
            caps.taken.max_entries as usize,
        );
        let epoch = caps.globals.epoch();
        let number = epoch.load(Ordering::SeqCst) + 1;
        let keys = told.iter().flat_map(|told| &told.keys);
        // what was taken once is taken since then
        for key in keys.filter(|key| !there.contains(&entry(key))) {
            let put = caps.taken.update(key, &number, libbpf_sys::BPF_NOEXIST);
            put.trying(|| "enter what is taken back".into())?;
        }
        for Told { session, keys } in &told {
            let kinds = keys.iter().fold(0, |kinds, key| kinds | 1 << key.kind);
            let taken = caps.globals.taken(session.place as usize);
            taken.fetch_or(kinds, Ordering::SeqCst);
        }
        epoch.store(number, Ordering::SeqCst);
        self.monitor.arm_capabilities()?;
        Ok(Some(Entered {
            places: told.iter().map(|told| told.session.place).collect(),
            whole,
        }))
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

    fn session(place: u32, uid: u32) -> Session {
        Session {
            place,
            number: u64::from(place) + 4,
            uid,
            started: 1,
            tasks: 1,
            domains: 1,
        }
    }

    /// What is taken of sessions: from each so many subjects.
    fn told(sessions: &[Session], subjects: std::ops::Range<u32>) -> Vec<Told<'_>> {
        let told = sessions.iter().map(|session| Told {
            session,
            keys: (subjects.clone())
                .filter_map(|at| Withdraw::Subject(at).key(session))
                .collect(),
        });
        told.collect()
    }

    #[test]
    fn a_user_has_a_part_of_the_table_and_loses_more_as_a_whole() {
        let entries = SESSIONS + 8 * 100;
        let sessions: Vec<Session> = (0..4).map(|place| session(place, 1000)).collect();
        let mut first = told(&sessions, 0..30);
        assert_eq!(fit(&mut first, &sessions, &HashSet::new(), entries), 1);
        assert!(first[..3].iter().all(|told| !told.is_whole()));
        assert!(first[3].is_whole() && first[3].keys.len() == 1);
        let there: HashSet<Entry> = first
            .iter()
            .flat_map(|told| told.keys.iter().map(entry))
            .collect();
        // what is there already takes no room
        assert_eq!(
            fit(&mut told(&sessions[..3], 0..30), &sessions, &there, entries),
            0
        );
        assert_eq!(
            fit(
                &mut told(&sessions[..3], 30..60),
                &sessions,
                &there,
                entries
            ),
            3
        );
        // others have theirs, and root all that is left
        let (other, root) = ([session(9, 1001)], [session(10, 0)]);
        let all: Vec<Session> = sessions
            .iter()
            .chain(&other)
            .chain(&root)
            .cloned()
            .collect();
        assert_eq!(fit(&mut told(&other, 0..100), &all, &there, entries), 0);
        assert_eq!(fit(&mut told(&root, 0..710), &all, &there, entries), 0);
        assert_eq!(fit(&mut told(&root, 0..711), &all, &there, entries), 1);
    }

    #[test]
    fn a_session_loses_all_by_its_own_number_only() {
        let session = session(3, 0);
        let key = Withdraw::Session(7).key(&session).unwrap();
        assert_eq!((key.session, key.kind, key.of), (3, 0, 0));
        assert!(Withdraw::Session(8).key(&session).is_none());
        let key = Withdraw::Object(9, None).key(&session).unwrap();
        assert_eq!((key.session, key.kind, key.of), (3, 3, 9));
    }
}
