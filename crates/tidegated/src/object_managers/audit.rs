//! What object managers decided, for the audit log and for `why`: SELinux's `USER_AVC`.
//!
//! The daemon gives such a record a kind of its own, which the kernel's records do not have, and
//! names the process at the other end of the connection as its sender. What it says of contexts and classes is the sender's word.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use tidegate_audit::{Chain, ManagerRecord, Record, SubjectRecord, level_name};
use tidegate_protocol::{Code, Told, Verdict, WhyOf};

use crate::chain;
use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::locks::{Held, MANAGERS, Ordered};
use crate::peer::Peer;

/// Records that `why` can tell of.
const KEPT: usize = 1024;

/// Records that may wait for the log.
const WAITING: usize = 1024;

/// Of one user in a second; what is beyond is counted with the next one.
const OF_ONE: u32 = 20;

/// Users watched at once, and one for all others.
const USERS: usize = 1024;

/// Bytes of what a record says in each of its parts.
const PART: usize = 1024;

/// One user's records within a second.
#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u32,
    missed: u64,
}

#[derive(Debug, Default)]
struct Inner {
    newest: u64,
    kept: VecDeque<Record>,
    waiting: VecDeque<Record>,
    users: HashMap<u32, Window>,
}

/// Records of object managers.
#[derive(Debug, Default)]
pub struct Managers(Ordered<MANAGERS, Inner>);

impl Inner {
    /// Whether a user's record may pass, which stands for so many that were left out; of how many then. What does not
    /// pass is counted with the user's next one.
    fn passes(&mut self, uid: u32, stands_for: u64, now: Instant) -> Option<u64> {
        const SECOND: Duration = Duration::from_secs(1);
        if self.users.len() >= USERS {
            let over = |w: &Window| now.duration_since(w.since) >= SECOND && w.missed == 0;
            self.users.retain(|_, w| !over(w));
        }
        // a user that comes when there are too many shares a window with others of that kind
        let is_one_more = self.users.len() >= USERS && !self.users.contains_key(&uid);
        let uid = if is_one_more { u32::MAX } else { uid };
        let window = self.users.entry(uid).or_insert(Window {
            since: now,
            passed: 0,
            missed: 0,
        });
        if now.duration_since(window.since) >= SECOND {
            (window.since, window.passed) = (now, 0);
        }
        let room = window.passed < OF_ONE && self.waiting.len() < WAITING;
        if !room {
            window.missed += 1 + stands_for;
            return None;
        }
        window.passed += 1;
        Some(std::mem::take(&mut window.missed) + stands_for)
    }

    fn put(&mut self, mut record: Record) {
        self.newest += 1;
        if let Some(manager) = &mut record.manager {
            manager.number = self.newest;
        }
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(record.clone());
        self.waiting.push_back(record);
    }
}

impl Managers {
    fn inner(&self) -> Held<'_, Inner> {
        self.0.lock()
    }

    /// Takes a record that a process sent.
    pub fn tell(
        &self,
        enforcement: &Enforcement,
        peer: &Peer,
        context: Option<String>,
        told: Told,
    ) -> Outcome {
        let parts = [
            &told.source,
            &told.target,
            &told.class,
            &told.request,
            &told.denied,
            &told.about,
        ];
        if parts.iter().any(|part| part.len() > PART) {
            let message = format!("a record's parts may have {PART} bytes each");
            return Err(DaemonError::new(Code::Usage, message));
        }
        let seqno = enforcement.monitor.status()?.seqno;
        let level = peer.level(&enforcement.monitor)?;
        let mut inner = self.inner();
        let Some(missed) = inner.passes(peer.uid, told.missed, Instant::now()) else {
            // nothing for the sender to fix
            return Ok(());
        };
        let comm = (peer.found(&enforcement.monitor)).map_or_else(|_| String::new(), |it| it.comm);
        let subject = SubjectRecord {
            pid: peer.pid,
            tid: peer.pid,
            uid: peer.uid,
            comm,
            level: level_name(enforcement.policies.get(seqno).as_deref(), level),
            ..SubjectRecord::default()
        };
        inner.put(record(told, subject, context, seqno, missed));
        Ok(())
    }

    /// Hands over those that wait for the log, until one is not taken.
    pub fn drain(&self, mut take: impl FnMut(&Record) -> bool) {
        loop {
            let Some(record) = self.inner().waiting.pop_front() else {
                return;
            };
            if !take(&record) {
                return self.inner().waiting.push_front(record);
            }
        }
    }

    /// One by its number, or the newest refusal.
    fn find(&self, number: Option<u64>, only: Option<u32>) -> Option<Record> {
        let inner = self.inner();
        let mut all = inner.kept.iter().rev();
        let wanted = |r: &&Record| match number {
            Some(number) => r.manager.as_ref().is_some_and(|m| m.number == number),
            None => r.is_managers_denial(),
        };
        let of = |r: &&Record| r.subject.as_ref().map(|s| s.uid);
        all.find(|r| wanted(r) && only.is_none_or(|uid| of(r) == Some(uid)))
            .cloned()
    }
}

fn record(
    told: Told,
    subject: SubjectRecord,
    context: Option<String>,
    seqno: u32,
    missed: u64,
) -> Record {
    let kind = match told.verdict {
        Verdict::Denied => "user-denied",
        Verdict::Would => "user-would",
        Verdict::Audited => "user-audited",
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    Record {
        subject: Some(subject),
        scontext: Some(told.source),
        tcontext: Some(told.target),
        tclass: Some(told.class),
        request: Some(told.request),
        denied: some(told.denied),
        manager: Some(ManagerRecord {
            number: 0,
            context,
            about: some(told.about),
        }),
        seqno,
        count: (missed > 0).then_some(missed),
        ..Record::own(kind, 0)
    }
}

/// What explains a refusal, an object manager's if it is about one, or is the newest.
pub fn explain(
    managers: &Managers,
    enforcement: &Enforcement,
    of: WhyOf,
    only: Option<u32>,
) -> Outcome<Chain> {
    let kernels = |of| chain::explain(&enforcement.monitor, &enforcement.policies, of, only);
    let found = match of {
        WhyOf::Manager(number) => {
            let gone = || {
                let message = format!("there is no record @u{number}, or it is gone");
                DaemonError::new(Code::No, message)
            };
            managers.find(Some(number), only).ok_or_else(gone)?
        }
        WhyOf::Last => {
            let theirs = kernels(of);
            let newest = theirs.as_ref().ok().and_then(|of| of.chain.first());
            match managers.find(None, only) {
                Some(record) if newest.is_none_or(|n| n.time < record.time) => record,
                _ => return theirs,
            }
        }
        of => return kernels(of),
    };
    Ok(Chain {
        process: None,
        chain: vec![found],
        cut: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(about: &str) -> Told {
        Told {
            verdict: Verdict::Denied,
            source: "u:r:clerk_t".into(),
            target: "u:object_r:secret_t".into(),
            class: "document".into(),
            request: "read write".into(),
            denied: "write".into(),
            about: about.into(),
            missed: 2,
        }
    }

    fn some(about: &str) -> Record {
        record(told(about), SubjectRecord::default(), None, 3, 1)
    }

    #[test]
    fn a_record_is_never_taken_for_the_kernels() {
        let record = some("plans");
        assert!(!record.is_denial() && record.is_managers_denial());
        assert_eq!((record.id, record.count), (0, Some(1)));
        let text = record.to_string();
        assert!(
            text.contains("clerk_t may not { write } plans (secret_t:document)"),
            "{text}"
        );
    }

    #[test]
    fn one_users_flood_is_counted_and_others_pass() {
        let mut inner = Inner::default();
        let now = Instant::now();
        let passed = (0..100).filter(|_| inner.passes(1000, 0, now).is_some());
        assert_eq!(passed.count(), OF_ONE as usize);
        assert_eq!(inner.passes(1001, 5, now), Some(5));
        let later = now + Duration::from_secs(1);
        assert_eq!(inner.passes(1000, 0, later), Some(u64::from(100 - OF_ONE)));
        assert_eq!(inner.passes(1000, 0, later), Some(0));
        for uid in 0..2 * USERS as u32 {
            inner.passes(uid + 5000, 0, later);
        }
        assert_eq!(inner.users.len(), USERS + 1);
    }

    #[test]
    fn what_the_log_does_not_take_waits_and_so_many_are_kept() {
        let managers = Managers::default();
        for n in 0..KEPT + 10 {
            managers.inner().put(some(&n.to_string()));
        }
        managers.drain(|_| false);
        let mut numbers = Vec::new();
        managers.drain(|r| {
            numbers.push(r.manager.as_ref().unwrap().number);
            numbers.len() < 5
        });
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        managers.drain(|r| {
            numbers.push(r.manager.as_ref().unwrap().number);
            true
        });
        assert_eq!(numbers[5], 5);
        assert_eq!(managers.find(Some(3), None), None);
        let newest = managers.find(None, None).unwrap();
        assert_eq!(newest.manager.unwrap().number, KEPT as u64 + 10);
        assert_eq!(managers.find(None, Some(77)), None);
    }
}
