//! Subjects: the labels of processes.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidegate_bundle::Attrs;
use tidegate_flask::{Numbering, Sid};

use crate::error::{Error, Result, Trying};
use crate::image::{self, profile_id};
use crate::load::Monitor;
use crate::parts::{Profile, Te};
use crate::skel::types::tg_subject;
use crate::sys::Over;

/// PIDFD_THREAD: a descriptor of one thread, not of its process. rustix does not
/// name it yet.
const PIDFD_THREAD: u32 = 0o200;

/// A subject's label, as one of its tasks has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The integrity level.
    pub level: u8,
    /// NODEMOTE, NONETDEMOTE and PERMISSIVE of its program.
    pub attrs: Attrs,
    /// The record that made it what it is, 0: none.
    pub cause: u64,
}

/// What a task may hold is not known: `MAY_HOLD` of kernel/core/subject.h.
const MAY_HOLD: u32 = 1 << 31;

impl Monitor {
    /// The label of a thread, by its number; `None`: it has none and is at the top level. The number may be another
    /// thread's by then.
    ///
    /// # Errors
    /// [`Error::Io`] with `ESRCH` if it has ended.
    pub fn subject_of(&self, tid: u32) -> Result<Option<Subject>> {
        self.subject(&thread(tid)?, tid)
    }

    /// The label of a thread, by a descriptor of it and its number; `None`: it has none and is at the top level.
    ///
    /// # Errors
    /// [`Error::Io`] with `ESRCH` if it has ended.
    pub(crate) fn subject(&self, thread: &OwnedFd, tid: u32) -> Result<Option<Subject>> {
        let label = self.stored(thread.as_fd(), Over::Thread(tid))?;
        Ok(label.map(|s| Subject {
            level: s.level,
            attrs: Attrs::from_bits_truncate(s.attrs.into()),
            cause: s.cause,
        }))
    }

    /// The level of a process by its pidfd.
    ///
    /// # Errors
    /// [`Error::Io`] with `ESRCH` if it has ended.
    pub fn level_of(&self, process: BorrowedFd<'_>) -> Result<u8> {
        let label = self.stored(process, Over::Process(process))?;
        Ok(label.map_or(self.globals.policy().top, |s| s.level))
    }

    /// A task's label in its storage. Where there is none, it may have been born
    /// without storage, or have ended; the map tells neither.
    fn stored(&self, task: BorrowedFd<'_>, over: Over<'_>) -> Result<Option<tg_subject>> {
        let what = || "read a process's label".to_string();
        for _ in 0..2 {
            let label = self.subjects.get(&task.as_raw_fd()).trying(what)?;
            if label.is_some() {
                return Ok(label);
            }
            if self.settle(over)? == 0 {
                return Err(Error::io(what(), Errno::SRCH));
            }
        }
        Ok(None)
    }

    /// Makes this process one that is never demoted: it reads what others send.
    /// Its threads to come inherit that.
    ///
    /// # Errors
    /// [`Error::Io`] if the label cannot be stored.
    pub fn trust_myself(&self, top: u8) -> Result<()> {
        let label = Subject {
            level: top,
            attrs: Attrs::NODEMOTE,
            cause: 0,
        };
        let tid = rustix::thread::gettid().as_raw_pid() as u32;
        self.set_subject(&thread(tid)?, tid, label)
    }

    /// Whether a profile confines a thread of a process, or did before a policy left it out.
    ///
    /// # Errors
    /// As [`profile_of`](Self::profile_of).
    pub fn is_confined(&self, process: BorrowedFd<'_>) -> Result<bool> {
        Ok(self.profile_of(process)?.is_some())
    }

    /// The number of the profile that confines a process, or did before a policy left it out:
    /// [`profile_id`] of its name. Of threads that have several, the first one's.
    ///
    /// # Errors
    /// [`Error::Io`] with `ESRCH` if it has ended, unless no policy has had profiles.
    pub fn profile_of(&self, process: BorrowedFd<'_>) -> Result<Option<u64>> {
        let Some(profiles) = self.profiles_of(Over::Process(process))? else {
            return Ok(None);
        };
        if profiles.is_empty() {
            return Err(Error::io("read a process's profile", Errno::SRCH));
        }
        Ok(profiles.into_iter().find(|&profile| profile != 0))
    }

    /// Has a process be confined by a profile from its next execution on; false, and nothing
    /// done, if it is confined already.
    ///
    /// # Errors
    /// [`Error::Io`] if it has ended, or there is no memory; [`Error::Load`].
    pub fn confine(&self, process: BorrowedFd<'_>, profile: &str) -> Result<bool> {
        if self.is_confined(process)? {
            return Ok(false);
        }
        self.needed::<Profile>()?
            .onexec
            .put(&process.as_raw_fd(), &profile_id(profile))
            .trying(|| "confine a process".into())?;
        Ok(true)
    }

    /// The names behind the numbers of SIDs, of the policy in force and those before it.
    ///
    /// # Errors
    /// [`Error::Io`] if the arena cannot be mapped.
    pub fn numbering(&self) -> Result<Numbering> {
        match self.arena()? {
            Some(arena) => image::numbering(arena, self.globals.policy().seqno)
                .trying(|| "read the names of contexts".into()),
            None => Ok(Numbering::default()),
        }
    }

    /// Has a process come under the `te` model from its next execution on; false, and nothing done, if it governs the
    /// process already.
    ///
    /// # Errors
    /// [`Error::Io`] if it has ended, or there is no memory; [`Error::Load`].
    pub fn enter(&self, process: BorrowedFd<'_>, pid: u32, sid: Sid) -> Result<bool> {
        if self
            .process(pid)?
            .is_none_or(|process| process.sid.is_some())
        {
            return Ok(false);
        }
        self.needed::<Te>()?
            .onexec
            .put(&process.as_raw_fd(), &sid.0)
            .trying(|| "bring a process under the policy".into())?;
        Ok(true)
    }

    /// The SID of the process that connected a Unix stream socket, by the end that accepted it:
    /// what the socket had that connected, then. `None`: it is not governed.
    ///
    /// # Errors
    /// [`Error::Io`] with `ENOTSOCK` if it is no socket, unless no policy has had SIDs.
    pub fn peer_sid(&self, connection: BorrowedFd<'_>) -> Result<Option<Sid>> {
        let Some(te) = self.part::<Te>()? else {
            return Ok(None);
        };
        let ends = te.socks.get(&connection.as_raw_fd());
        let end = ends.trying(|| "read a connection's label".into())?;
        Ok(end.filter(|end| end.peer != 0).map(|end| Sid(end.peer)))
    }

    /// Labels a thread. To be done in a turn, or a demotion of it that is under way is lost.
    pub(crate) fn set_subject(&self, thread: &OwnedFd, tid: u32, s: Subject) -> Result<()> {
        let value = tg_subject {
            level: s.level,
            attrs: s.attrs.bits() as u8,
            cause: s.cause,
            // what it shares is made to fit by the next transaction
            labelled: 1,
            // what it has open may be above it
            clear: MAY_HOLD,
            // and what it is about to receive nobody has been asked about
            received: MAY_HOLD,
            // nor is it known which tasks have opened its memory
            opened: 1,
            ..Default::default()
        };
        self.subjects
            .put(&thread.as_raw_fd(), &value)
            .trying(|| format!("label {tid}"))?;
        self.settle(Over::Thread(tid)).map(drop)
    }
}

/// A descriptor of one thread.
pub(crate) fn thread(tid: u32) -> Result<OwnedFd> {
    let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let flags = PidfdFlags::from_bits_retain(PIDFD_THREAD);
    pid.ok_or(Errno::SRCH)
        .and_then(|p| pidfd_open(p, flags))
        .trying(|| format!("find {tid}"))
}
