//! Records: what the kernel tells, its history, and the chains in it.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use rustix::time::{ClockId, clock_gettime};
use tidegate_flask::Sid;

use crate::abi::{TG_HISTORY, TG_PATH};
use crate::error::{Result, Trying};
use crate::load::Monitor;
use crate::pins::Pinned;
use crate::skel::types::tg_event;
use crate::sys::{Pod, text};
use crate::tasks::canonical;
use crate::{CapsWhy, Class, Kind, Op, Reason};

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number, from 1.
    pub id: u64,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// The record that made the subject what it was, if any.
    pub prev: Option<u64>,
    /// When the subject started, nanoseconds of `CLOCK_BOOTTIME`.
    pub start: u64,
    /// What happened.
    pub kind: Kind,
    /// The operation; `None` for one that is no subject's own.
    pub op: Option<Op>,
    /// Why a rule alone did not decide.
    pub reason: Reason,
    /// The object manager.
    pub class: Option<Class>,
    /// The policy it was decided under.
    pub seqno: u32,
    /// Thread group id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Real user id.
    pub uid: u32,
    /// The user whose account it is in; of those of a user namespace the one that made it.
    pub payer: u32,
    /// The name of the subject's program.
    pub comm: String,
    /// The subject's level before.
    pub from: u8,
    /// And after; for a denial the same.
    pub to: u8,
    /// The object's level.
    pub object: u8,
    /// The rule: an index into the policy's rules.
    pub source: Option<u32>,
    /// The other process, if it was about one.
    pub peer: Option<u32>,
    /// The network's address and port.
    pub address: Option<(IpAddr, u16)>,
    /// The object's path; its end, after `…`, if it was too long to keep.
    pub path: Option<String>,
    /// The object's device, as the kernel numbers it.
    pub dev: u32,
    /// The object's inode.
    pub ino: u64,
    /// The number of a capability that is the top level's, if it was about one.
    pub capability: Option<u16>,
    /// What was asked of a profile, if it was about one.
    pub request: Option<Request>,
    /// What was asked of a SELinux policy, if it was about one.
    pub asked: Option<Asked>,
    /// What was asked of capability files, if it was about such.
    pub caps: Option<CapsAsked>,
}

/// What was asked of capability files. Permissions are those of `tidegate_bundle::caps::permission`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapsAsked {
    /// The class, by its number ([`tidegate_lava::class_of`]).
    pub class: u32,
    /// What was asked for.
    pub asked: u32,
    /// What of that is not given.
    pub denied: u32,
    /// Why not; `None` for a reason that this build does not know.
    pub why: Option<CapsWhy>,
    /// The subject that did not give it, by its place; `None`: no single one.
    pub layer: Option<u32>,
    /// The session's number; `None`: the task is in none any more.
    pub session: Option<u64>,
    /// Of a request to a service: the operation's number.
    pub operation: u32,
}

/// What was asked of a SELinux policy. Classes and permissions have the numbers of [`tidegate_flask::Classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The subject.
    pub source: Sid,
    /// To what.
    pub target: Sid,
    /// Of which class.
    pub class: u32,
    /// What was asked for.
    pub asked: u32,
    /// What of that is not allowed.
    pub denied: u32,
}

/// What was asked of a profile: permissions as `tidegate_bundle::profile::Access` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The profile's number: [`profile_id`](crate::profile_id) of its name.
    pub profile: u64,
    /// What was asked for.
    pub asked: u32,
    /// What of that it does not allow.
    pub denied: u32,
    /// The capability's number, or that of the socket's family, if it was about one.
    pub number: Option<u16>,
    /// A signal's number as AppArmor counts them, or a socket's type, if it was about one.
    pub detail: Option<u16>,
}

impl Event {
    /// An event to test with: `sh` opened a file for writing.
    pub fn example(kind: Kind) -> Event {
        Event {
            id: 1,
            time: 0,
            prev: None,
            start: 0,
            kind,
            op: Some(Op::OpenWrite),
            reason: Reason::Rule,
            class: None,
            seqno: 1,
            pid: 412,
            tid: 412,
            uid: 1000,
            payer: 1000,
            comm: "sh".into(),
            from: 0,
            to: 0,
            object: 1,
            source: None,
            peer: None,
            address: None,
            path: None,
            dev: 1,
            ino: 2,
            capability: None,
            request: None,
            asked: None,
            caps: None,
        }
    }

    /// From the kernel's record; `None` for a kind that this build does not know.
    pub(crate) fn from_raw(e: &tg_event) -> Option<Event> {
        let some = |n: u32| (n != 0).then_some(n);
        let len = usize::from(e.path_len).min(TG_PATH as usize);
        let path = (len > 0).then(|| {
            let bytes: Vec<u8> = e.path[..len].iter().map(|&c| c as u8).collect();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if len == TG_PATH as usize {
                format!("…{text}")
            } else {
                text
            }
        });
        let op = Op::from_number(e.op);
        // it has the port's place; what is done with a socket that has a path is about a file
        let class = Class::from_number(e.class);
        let has_number = op == Some(Op::Capable) || class == Some(Class::Socket);
        Some(Event {
            id: e.id,
            time: e.time,
            prev: (e.prev != 0).then_some(e.prev),
            start: e.start,
            kind: Kind::from_number(e.kind)?,
            op,
            reason: Reason::from_number(e.reason)?,
            class,
            seqno: e.seqno,
            pid: e.pid,
            tid: e.tid,
            uid: e.uid,
            payer: e.payer,
            comm: text(&e.comm),
            from: e.from,
            to: e.to,
            object: e.object,
            source: (e.source != u32::MAX).then_some(e.source),
            peer: some(e.peer),
            address: (e.family != 0).then(|| (canonical(e.addr), e.port)),
            path,
            dev: e.dev,
            ino: e.ino,
            capability: (op == Some(Op::Capable) && e.reason == Reason::TopOnly as u8)
                .then_some(e.port),
            request: (e.profile != 0).then_some(Request {
                profile: e.profile,
                asked: e.request,
                denied: e.denied,
                number: has_number.then_some(e.port),
                detail: u16::try_from(e.detail).ok().filter(|&detail| detail != 0),
            }),
            caps: (e.why != 0).then(|| CapsAsked {
                class: e.tclass,
                asked: e.request,
                denied: e.denied,
                why: u8::try_from(e.why).ok().and_then(CapsWhy::from_number),
                layer: some(e.layer),
                session: Some(e.session).filter(|&number| number != 0),
                operation: e.detail,
            }),
            asked: (e.tclass != 0 && e.why == 0).then_some(Asked {
                source: Sid(e.ssid),
                target: Sid(e.tsid),
                class: e.tclass,
                asked: e.request,
                denied: e.denied,
            }),
        })
    }
}

/// Writes a program's name into a record.
pub(crate) fn set_comm(e: &mut tg_event, comm: &str) {
    for (to, from) in e.comm.iter_mut().zip(comm.bytes()) {
        *to = from as _;
    }
}

/// Writes a path into a record, its end if it is too long.
pub(crate) fn set_path(e: &mut tg_event, path: &str) {
    let bytes = path.as_bytes();
    let bytes = &bytes[bytes.len().saturating_sub(TG_PATH as usize)..];
    for (to, &from) in e.path.iter_mut().zip(bytes) {
        *to = from as _;
    }
    e.path_len = bytes.len() as u16;
}

/// Nanoseconds since boot, sleep counted, as records have it.
pub fn boottime() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Records as they happen.
pub struct Events {
    ring: RingBuffer<'static>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Has a function called for each record.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the ring buffer cannot be mapped.
    pub fn open(mut each: impl FnMut(Event) + 'static) -> Result<Events> {
        let what = || "read the kernel's records".to_string();
        let map = MapHandle::from_pinned_path(Pinned::Maps.path("events")).trying(what)?;
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&map, move |bytes| {
                if let Some(event) = tg_event::read(bytes).as_ref().and_then(Event::from_raw) {
                    each(event);
                }
                0
            })
            .trying(what)?;
        Ok(Events {
            ring: builder.build().trying(what)?,
        })
    }

    /// Waits for records, and hands over all there are.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the wait fails; a signal is not an error.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        match self.ring.poll(timeout) {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::Interrupted => Ok(()),
            done => done.trying(|| "wait for the kernel's records".into()),
        }
    }
}

impl Monitor {
    /// A record of the history; `None` if it is gone or never was.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the history cannot be read.
    pub fn event(&self, id: u64) -> Result<Option<Event>> {
        let slot = (id & u64::from(TG_HISTORY - 1)) as u32;
        let raw = self
            .history
            .get(&slot)
            .trying(|| "read the history".into())?;
        Ok(raw
            .filter(|e| id != 0 && e.id == id)
            .as_ref()
            .and_then(Event::from_raw))
    }

    /// The number of the newest record; 0: none.
    pub fn newest(&self) -> u64 {
        self.globals.records().load(Ordering::SeqCst)
    }

    /// A record and what led to it, newest first, as far as the history goes.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the history cannot be read.
    pub fn chain(&self, id: u64) -> Result<Vec<Event>> {
        let mut chain: Vec<Event> = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            // each link is older than the one before it
            let older = chain.last().is_none_or(|l| id < l.id);
            match self.event(id)? {
                Some(event) if older => {
                    next = event.prev;
                    chain.push(event);
                }
                _ => break,
            }
        }
        Ok(chain)
    }

    /// Counts a record that has reached the daemon, by the ring buffer or of its own making.
    pub fn took_record(&self) {
        self.globals.events_taken().fetch_add(1, Ordering::SeqCst);
    }

    /// Counts records that the log has now, or counts as dropped or lost.
    pub fn told_records(&self, count: u64) {
        self.globals
            .events_told()
            .fetch_add(count, Ordering::SeqCst);
    }

    /// Records that reached a daemon, or found no room on the way to one, and that no log tells
    /// of: those in the daemon's hands, and those that one had which was killed. Of each killed
    /// daemon two may be counted that are told of: what it had just written, and what it had
    /// just taken, which stays in the ring buffer for the next.
    pub fn untold_records(&self) -> u64 {
        let told = self.globals.events_told().load(Ordering::SeqCst);
        let taken = self.globals.events_taken().load(Ordering::SeqCst);
        (taken + self.globals.events_lost()).saturating_sub(told)
    }

    /// Adds a record of this process's making to the history; its number.
    pub(crate) fn record(&self, mut e: tg_event) -> Result<u64> {
        let id = self.globals.records().fetch_add(1, Ordering::SeqCst) + 1;
        e.id = id;
        e.time = boottime();
        e.seqno = self.globals.policy().seqno;
        let slot = (id & u64::from(TG_HISTORY - 1)) as u32;
        self.history
            .put(&slot, &e)
            .trying(|| "write the history".into())?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_whole() {
        let mut raw = tg_event {
            id: 9,
            kind: 1,
            op: 2,
            family: 2,
            port: 443,
            source: u32::MAX,
            ..Default::default()
        };
        raw.addr[10..].copy_from_slice(&[0xff, 0xff, 203, 0, 113, 7]);
        set_path(&mut raw, "/home/alice/.bashrc");
        let event = Event::from_raw(&raw).unwrap();
        assert_eq!(event.kind, Kind::Denied);
        assert_eq!(event.op, Some(Op::OpenWrite));
        assert_eq!(event.path.as_deref(), Some("/home/alice/.bashrc"));
        assert_eq!(event.address, Some(("203.0.113.7".parse().unwrap(), 443)));
        assert_eq!((event.source, event.prev, event.peer), (None, None, None));
    }

    #[test]
    fn the_record_of_a_capability_that_is_the_tops_has_its_number() {
        let mut raw = tg_event {
            kind: 1,
            op: Op::Capable as u8,
            reason: Reason::TopOnly as u8,
            port: 21,
            ..Default::default()
        };
        assert_eq!(Event::from_raw(&raw).unwrap().capability, Some(21));
        raw.op = Op::Socket as u8;
        assert_eq!(Event::from_raw(&raw).unwrap().capability, None);
    }

    #[test]
    fn a_profiles_record_has_the_number_of_the_capability() {
        let mut raw = tg_event {
            kind: 1,
            op: Op::Capable as u8,
            port: 12,
            profile: 7,
            ..Default::default()
        };
        let number = |raw: &tg_event| Event::from_raw(raw).unwrap().request.unwrap().number;
        assert_eq!(number(&raw), Some(12));
        raw.op = Op::OpenRead as u8;
        assert_eq!(number(&raw), None);
        raw.op = Op::Connect as u8;
        assert_eq!(number(&raw), None);
        raw.class = Class::Socket as u8;
        raw.detail = 5;
        assert_eq!(number(&raw), Some(12));
        let detail = Event::from_raw(&raw).unwrap().request.unwrap().detail;
        assert_eq!(detail, Some(5));
    }

    #[test]
    fn a_path_too_long_keeps_its_end() {
        let mut raw = tg_event {
            kind: 1,
            ..Default::default()
        };
        set_path(&mut raw, &("/x".repeat(200) + "/end"));
        let path = Event::from_raw(&raw).unwrap().path.unwrap();
        assert!(path.starts_with('…') && path.ends_with("/end"));
    }

    #[test]
    fn an_unknown_kind_is_no_event() {
        assert_eq!(
            Event::from_raw(&tg_event {
                kind: 200,
                ..Default::default()
            }),
            None
        );
    }
}
