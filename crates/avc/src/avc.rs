//! The cache, and what is asked of it: avc_has_perm(3) and its like.

use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use tidegate_protocol::PageStatus as Status;
use tidegate_protocol::{Access, PAGE, Page, Question, Reply, Told, Verdict};

use crate::audit::{Audit, short};
use crate::cache::{Cache, Key};
use crate::class::{Class, Classes};
use crate::error::{AvcError, Denied};
use crate::server::{Daemon, Peer, SecurityServer};
use crate::sids::{Sid, Sids};

/// Decisions that are kept, 64 bytes each.
const PLACES: usize = 1 << 12;

/// Times that a question is asked anew because the policy has changed meanwhile.
const TRIES: u32 = 8;

/// A decision about a source, a target and a class, in the bits of the class as it was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What is allowed.
    pub allowed: u32,
    /// What is recorded where it is allowed.
    pub auditallow: u32,
    /// What is recorded where it is refused.
    pub auditdeny: u32,
    /// Whether the source is permissive: what is not allowed is let through.
    pub permissive: bool,
}

/// Where nothing is enforced.
const EVERYTHING: Decision = Decision {
    allowed: u32::MAX,
    auditallow: 0,
    auditdeny: 0,
    permissive: false,
};

/// What was looked at, and how it stands.
struct Checked {
    /// What of it is missing.
    missing: u32,
    /// Whether it is let through all the same.
    lets: bool,
    decision: Decision,
}

/// An access vector cache. Threads share it; it has no thread and no lock that a question for a
/// cached decision takes.
#[derive(Debug)]
pub struct Avc {
    page: Page,
    server: Box<dyn SecurityServer>,
    cache: Cache,
    sids: Sids,
    classes: Classes,
    audit: Audit,
}

impl Avc {
    /// By the policy that Tidegate enforces on this machine.
    ///
    /// # Errors
    /// [`AvcError::Page`] where Tidegate has not been started since boot, or the page is not root's alone to change.
    pub fn open() -> Result<Avc, AvcError> {
        let page = Page::open(Path::new(PAGE)).map_err(|source| AvcError::Page {
            path: PAGE.into(),
            source,
        })?;
        Ok(Avc::with(page, Box::new(Daemon)))
    }

    /// With another page and server: for tests, and for callers that bring the page from elsewhere.
    pub fn with(page: Page, server: Box<dyn SecurityServer>) -> Avc {
        Avc {
            page,
            server,
            cache: Cache::new(PLACES),
            sids: Sids::default(),
            classes: Classes::default(),
            audit: Audit::new(),
        }
    }

    /// The number of a context. Whether the policy has it shows when it is asked about.
    ///
    /// # Errors
    /// [`AvcError::Full`] if there are a million.
    pub fn sid(&self, context: &str) -> Result<Sid, AvcError> {
        self.sids.number(context)
    }

    /// The context of a number.
    pub fn context(&self, sid: Sid) -> Option<Arc<str>> {
        self.sids.context(sid)
    }

    /// The SID of a number that [`Sid::number`] gave; `None`: it is none of this cache's.
    pub fn sid_of_number(&self, number: u32) -> Option<Sid> {
        let sid = Sid(number);
        self.sids.has(sid).then_some(sid)
    }

    /// Declares a class and its permissions, in the caller's order. The policy need not know them: what becomes of those
    /// that it does not is its `handle_unknown`.
    ///
    /// # Errors
    /// [`AvcError::Full`] if there are more than 32 permissions, or thousands of classes.
    pub fn class(&self, name: &str, permissions: &[&str]) -> Result<Class, AvcError> {
        self.classes.declare(name, permissions)
    }

    /// What is in force; `None`: it is being changed just now, or a daemon died over it.
    pub fn status(&self) -> Option<Status> {
        self.page.status()
    }

    /// The status page's number: decisions of another one count no more.
    pub fn sequence(&self) -> u32 {
        self.page.sequence()
    }

    /// Waits until the page has another number than this, or the time is over; whether it has.
    pub fn wait(&self, sequence: u32, at_most: Duration) -> bool {
        self.page.wait(sequence, at_most)
    }

    /// Whether a source may do this to a target, and a record if the policy wants one, which says what it was about.
    /// Where no SELinux policy is in force, all may be done; under one that only records, what is refused is let through.
    ///
    /// # Errors
    /// [`Denied`] if it may not.
    pub fn has_perm(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
        requested: u32,
        about: &dyn Display,
    ) -> Result<(), Denied> {
        let checked = self.check(source, target, class, requested)?;
        let decision = checked.decision;
        let verdict = match (checked.missing, checked.lets) {
            (0, _) if requested & decision.auditallow == 0 => return Ok(()),
            (0, _) => Some(Verdict::Audited),
            (missing, _) if missing & decision.auditdeny == 0 => None,
            (_, true) => Some(Verdict::Would),
            (_, false) => Some(Verdict::Denied),
        };
        if let Some(verdict) = verdict {
            let text = |sid| {
                self.text(sid)
                    .map(|text| text.to_string())
                    .unwrap_or_default()
            };
            self.audit.tell(&*self.server, || Told {
                verdict,
                source: text(source),
                target: text(target),
                class: class.name().into(),
                request: class.names(requested),
                denied: class.names(checked.missing),
                about: short(about.to_string()),
                missed: 0,
            });
        }
        self.verdict(source, target, class, &checked)
    }

    /// Decides as [`has_perm`](Self::has_perm) does, and records nothing.
    ///
    /// # Errors
    /// As [`has_perm`](Self::has_perm).
    pub fn has_perm_noaudit(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
        requested: u32,
    ) -> Result<(), Denied> {
        let checked = self.check(source, target, class, requested)?;
        self.verdict(source, target, class, &checked)
    }

    fn verdict(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
        checked: &Checked,
    ) -> Result<(), Denied> {
        if checked.missing == 0 || checked.lets {
            return Ok(());
        }
        let text = |sid| self.context(sid).map(|text| text.to_string());
        Err(Denied::Refused {
            permissions: class.names(checked.missing),
            source_context: text(source).unwrap_or_default(),
            target_context: text(target).unwrap_or_default(),
            class: class.name().into(),
        })
    }

    fn check(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
        requested: u32,
    ) -> Result<Checked, Denied> {
        let decision = match self.decision(source, target, class) {
            Ok(decision) => decision,
            // where nothing is refused, that there is no decision is no reason to
            Err(_) if !self.is_enforcing() => EVERYTHING,
            Err(e) => return Err(e.into()),
        };
        let missing = requested & !decision.allowed;
        Ok(Checked {
            missing,
            lets: missing != 0 && (decision.permissive || !self.is_enforcing()),
            decision,
        })
    }

    /// A page that cannot be read enforces.
    fn is_enforcing(&self) -> bool {
        self.page.status().is_none_or(|s| s.enabled && s.enforcing)
    }

    /// What a source may do to a target, from the cache if it is there (security_compute_av(3)).
    ///
    /// # Errors
    /// If nobody can tell, or the policy does not have the contexts.
    pub fn decision(&self, source: Sid, target: Sid, class: &Class) -> Result<Decision, AvcError> {
        let key = Key::of(source.number(), target.number(), class.number());
        // one that is odd is kept of nothing
        if let Some(decision) = self.cache.get(key, self.page.sequence()) {
            return Ok(decision);
        }
        for _ in 0..TRIES {
            let Some(status) = self.page.status() else {
                thread::yield_now();
                continue;
            };
            if !status.enabled {
                return Ok(EVERYTHING);
            }
            let access = self.access(source, target, class)?;
            let decision = class.decision(&access);
            // of a policy before, or the one in force already that the page does not tell of yet: asked again
            if access.sequence == self.page.sequence() && access.sequence.is_multiple_of(2) {
                self.cache.put(key, access.sequence, decision);
                return Ok(decision);
            }
        }
        let message = "the policy changes faster than it can be asked, or a daemon died changing it: \
             `tidegate start` fixes that";
        Err(AvcError::Failed(message.into()))
    }

    fn access(&self, source: Sid, target: Sid, class: &Class) -> Result<Access, AvcError> {
        let question = Question::Access {
            source: self.text(source)?.to_string(),
            target: self.text(target)?.to_string(),
            class: class.name().into(),
        };
        match self.server.ask(question, None)? {
            Reply::Access(access) => Ok(access),
            other => Err(unexpected(&other)),
        }
    }

    /// The context of an object that a source makes by a target, with a name if it gets one
    /// (security_compute_create_name(3)).
    ///
    /// # Errors
    /// If nobody can tell, or it would be a context that may not be.
    pub fn compute_create(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
        name: Option<&str>,
    ) -> Result<Sid, AvcError> {
        let (source, target, class) = self.texts(source, target, class)?;
        let name = name.map(str::to_owned);
        self.labelled(Question::Create {
            source,
            target,
            class,
            name,
        })
    }

    /// The context of the member of a polyinstantiated object that is the source's (security_compute_member(3)).
    ///
    /// # Errors
    /// As [`compute_create`](Self::compute_create).
    pub fn compute_member(&self, source: Sid, target: Sid, class: &Class) -> Result<Sid, AvcError> {
        let (source, target, class) = self.texts(source, target, class)?;
        self.labelled(Question::Member {
            source,
            target,
            class,
        })
    }

    /// The context that a target is relabelled to for a source (security_compute_relabel(3)).
    ///
    /// # Errors
    /// As [`compute_create`](Self::compute_create).
    pub fn compute_relabel(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
    ) -> Result<Sid, AvcError> {
        let (source, target, class) = self.texts(source, target, class)?;
        self.labelled(Question::Relabel {
            source,
            target,
            class,
        })
    }

    /// A context as the policy in force writes it (security_canonicalize_context(3)).
    ///
    /// # Errors
    /// [`AvcError::Invalid`] if the policy does not have it.
    pub fn check_context(&self, context: &str) -> Result<String, AvcError> {
        let context = context.to_owned();
        Ok(self.peer_of(Question::Context { context }, None)?.context)
    }

    /// The context of an initial SID, by its name (`unlabeled`, `kernel`, …).
    ///
    /// # Errors
    /// [`AvcError::Invalid`] if the policy has none of this name.
    pub fn initial_sid(&self, name: &str) -> Result<Sid, AvcError> {
        let name = name.to_owned();
        self.labelled(Question::Initial { name })
    }

    /// The permissions that the policy in force has in a class, by its bits.
    ///
    /// # Errors
    /// [`AvcError::Invalid`] if it has no such class.
    pub fn policy_permissions(&self, class: &str) -> Result<Vec<String>, AvcError> {
        let class = class.to_owned();
        match self.server.ask(Question::Class { class }, None)? {
            Reply::Class { permissions } => Ok(permissions),
            other => Err(unexpected(&other)),
        }
    }

    /// The context that the connecting process of a Unix stream socket had then: the end that
    /// accept(2) gave (getpeercon(3)). It stays so if that process executes another program, or
    /// hands the other end on.
    ///
    /// # Errors
    /// If nobody can tell.
    pub fn peer(&self, connection: &impl AsFd) -> Result<Peer, AvcError> {
        self.peer_of(Question::Peer, Some(connection.as_fd()))
    }

    /// The context of a process as it is now, by its pidfd (getpidcon(3)).
    ///
    /// # Errors
    /// If it has ended, or nobody can tell.
    pub fn process(&self, pidfd: BorrowedFd<'_>) -> Result<Peer, AvcError> {
        self.peer_of(Question::Process, Some(pidfd))
    }

    /// The context of this process (getcon(3)).
    ///
    /// # Errors
    /// If nobody can tell.
    pub fn own(&self) -> Result<Peer, AvcError> {
        self.peer_of(Question::Own, None)
    }

    fn peer_of(&self, question: Question, with: Option<BorrowedFd<'_>>) -> Result<Peer, AvcError> {
        match self.server.ask(question, with)? {
            Reply::Context { context, governed } => Ok(Peer { context, governed }),
            other => Err(unexpected(&other)),
        }
    }

    fn labelled(&self, question: Question) -> Result<Sid, AvcError> {
        self.sid(&self.peer_of(question, None)?.context)
    }

    fn text(&self, sid: Sid) -> Result<Arc<str>, AvcError> {
        let unknown = || AvcError::Invalid(format!("{} is not a SID of this cache", sid.number()));
        self.context(sid).ok_or_else(unknown)
    }

    fn texts(
        &self,
        source: Sid,
        target: Sid,
        class: &Class,
    ) -> Result<(String, String, String), AvcError> {
        let (source, target) = (self.text(source)?, self.text(target)?);
        Ok((source.to_string(), target.to_string(), class.name().into()))
    }
}

fn unexpected(reply: &Reply) -> AvcError {
    AvcError::Failed(format!("it answered something else: {reply:?}"))
}
