//! What the kernel's iterators tell: processes, and what they hold.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;

use tidegate_bundle::Attrs;
use tidegate_flask::Sid;

use crate::error::{Result, Trying};
use crate::label::Label;
use crate::load::Monitor;
use crate::parts::{Caps, Profile, Te};
use crate::skel::types::{tg_call, tg_given_key, tg_held, tg_ps, tg_ps_model, tg_te_held};
use crate::subject::Subject;
use crate::sys::{self, Over, Pod, text};

/// A process and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Thread group id.
    pub pid: u32,
    /// Its parent's.
    pub ppid: u32,
    /// Real user id.
    pub uid: u32,
    /// The name of its program.
    pub comm: String,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    pub start: u64,
    /// Whether it has a label; without one it is at the top level.
    pub governed: bool,
    /// Its label.
    pub subject: Subject,
    /// The label of its program's file.
    pub program: Option<Label>,
    /// Whether that file is what was executed: a process may say another one (PR_SET_MM).
    pub executed: bool,
    /// Its SID under the `te` model; `None`: that does not govern it.
    pub sid: Option<Sid>,
    /// Its domain under the `capability` model, by its number; `None`: that does not govern it.
    pub domain: Option<u32>,
}

/// A descriptor or a mapping that does not agree with its holder's level.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub pid: u32,
    /// `None`: a mapping.
    pub fd: Option<u32>,
    pub key: tg_given_key,
    pub label: Label,
    pub source: Option<u32>,
    /// The level its holder would have fallen to.
    pub to: u8,
    /// Its holder's level.
    pub level: u8,
    /// Its holder could write to what is above it.
    pub revoke: bool,
    /// Somebody may have it open for writing, or mapped so.
    pub written: bool,
    /// The other end, of a network connection.
    pub address: Option<IpAddr>,
    /// How the last name of its path begins; empty: it has none.
    pub name: String,
}

/// Without what other models have of it.
impl From<&tg_ps> for Process {
    fn from(p: &tg_ps) -> Process {
        Process {
            pid: p.pid,
            ppid: p.ppid,
            uid: p.uid,
            comm: text(&p.comm),
            start: p.start,
            governed: p.governed != 0,
            subject: Subject {
                level: p.level,
                attrs: Attrs::from_bits_truncate(p.attrs.into()),
                cause: p.cause,
            },
            program: (p.exe != 0).then(|| Label::from_word(p.exe)),
            executed: p.executed != 0,
            sid: None,
            domain: None,
        }
    }
}

impl From<tg_held> for Held {
    fn from(h: tg_held) -> Held {
        Held {
            pid: h.pid,
            fd: (h.fd != u32::MAX).then_some(h.fd),
            key: tg_given_key {
                ino: h.ino,
                dev: h.dev,
                generation: h.generation,
            },
            label: Label::from_word(h.label),
            source: (h.source != u32::MAX).then_some(h.source),
            to: h.to,
            level: h.level,
            revoke: h.revoke != 0,
            written: h.written != 0,
            address: (h.family != 0).then(|| canonical(h.addr)),
            name: name(&h),
        }
    }
}

/// What a line has in place of an address where there is no network.
fn name(h: &tg_held) -> String {
    if h.family != 0 {
        return String::new();
    }
    let name: Vec<u8> = h.addr.into_iter().take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// An address as people write it.
pub(crate) fn canonical(addr: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(addr).to_canonical()
}

impl Monitor {
    /// Every process and its label, kernel threads left out.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterator cannot be run.
    pub fn processes(&self) -> Result<Vec<Process>> {
        let lines: Vec<tg_ps> = iterate(&self.ps_task, Over::All)?;
        let whole = lines.iter().filter(|p| p.pid == p.tid);
        self.with_models(whole.map(Process::from).collect(), Over::All)
    }

    /// One process; `None` if there is none with this id. Unlike procfs' `stat` this takes no
    /// hold of its memory, for which a demotion would wait.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterator cannot be run.
    pub fn process(&self, pid: u32) -> Result<Option<Process>> {
        let over = Over::Thread(pid);
        let lines = iterate(&self.ps_task, over).and_then(|lines: Vec<tg_ps>| {
            self.with_models(lines.first().map(Process::from).into_iter().collect(), over)
        });
        match lines {
            Err(e) if e.errno() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
            lines => Ok(lines?.pop()),
        }
    }

    /// Whether this process still runs. Another process may have its number by now.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if the kernel's iterator cannot be run.
    pub fn is_there(&self, process: &Process) -> Result<bool> {
        let now = self.process(process.pid)?;
        Ok(now.is_some_and(|now| now.start == process.start))
    }

    /// Adds what the other models have of processes, and leaves out those that have ended since they were listed.
    fn with_models(&self, mut processes: Vec<Process>, over: Over<'_>) -> Result<Vec<Process>> {
        if let Some(te) = self.part::<Te>()? {
            let sids = numbers(&te.ps_sid, over)?;
            processes.retain_mut(|p| {
                let sid = sids.get(&(p.pid, p.start));
                p.sid = sid.filter(|&&sid| sid != 0).map(|&sid| Sid(sid));
                sid.is_some()
            });
        }
        if let Some(caps) = self.part::<Caps>()? {
            let domains = numbers(&caps.ps_domain, over)?;
            processes.retain_mut(|p| {
                let domain = domains.get(&(p.pid, p.start));
                p.domain = domain.filter(|&&n| n != 0).map(|&n| n as u32);
                domain.is_some()
            });
        }
        Ok(processes)
    }

    /// Looks at the descriptors of tasks that may hold a revoked one, and notes those that do not.
    pub(crate) fn look_at_held(&self) -> Result<()> {
        let _clear: Vec<u32> = iterate(&self.ps_clear, Over::All)?;
        Ok(())
    }

    /// Whether a task may hold a revoked descriptor, or is below the top and has an io_uring, which may hold some that no
    /// table shows.
    pub(crate) fn may_hold(&self) -> Result<bool> {
        let mut tasks = 0u64;
        sys::run(&self.ps_held, &mut tasks)
            .trying(|| "look for holders of revoked descriptors".into())?;
        Ok(tasks != 0)
    }

    /// Processes with a thread that has an io_uring.
    pub(crate) fn with_rings(&self) -> Result<Vec<u32>> {
        let lines: Vec<tg_ps> = iterate(&self.ps_task, Over::All)?;
        Ok(lines
            .iter()
            .filter(|p| p.rings != 0)
            .map(|p| p.pid)
            .collect())
    }

    /// Descriptors that do not agree with their holders' levels.
    pub(crate) fn held_descriptors(&self) -> Result<Vec<Held>> {
        let lines: Vec<tg_held> = iterate(&self.ps_file, Over::All)?;
        let me = std::process::id();
        Ok(lines
            .into_iter()
            .filter(|h| h.pid != me)
            .map(Held::from)
            .collect())
    }

    /// The call that each thread is in, or was in last, by its number.
    pub(crate) fn calls(&self) -> Result<HashMap<u32, u32>> {
        let lines: Vec<tg_call> = iterate(&self.ps_call, Over::All)?;
        Ok(lines.iter().map(|call| (call.tid, call.number)).collect())
    }

    /// Makes what task storage and slots say of tasks one (kernel/core/subject.h); how many
    /// tasks there were.
    pub(crate) fn settle(&self, over: Over<'_>) -> Result<usize> {
        let done: Vec<u32> = iterate(&self.ps_settle, over)?;
        if done.contains(&0) {
            let full = std::io::Error::from(rustix::io::Errno::NOMEM);
            return Err(crate::Error::io("store a label", full));
        }
        Ok(done.len())
    }

    /// The profiles of threads, by their ids; 0: it has none. `None`: no policy has had profiles.
    pub(crate) fn profiles_of(&self, over: Over<'_>) -> Result<Option<Vec<u64>>> {
        let Some(profile) = self.part::<Profile>()? else {
            return Ok(None);
        };
        let lines: Vec<tg_ps_model> = iterate(&profile.ps_id, over)?;
        Ok(Some(lines.iter().map(|line| line.number).collect()))
    }

    /// The lines of one of the iterators that look at all tasks.
    pub(crate) fn lines<T: Pod>(&self, program: &impl AsFd) -> Result<Vec<T>> {
        iterate(program, Over::All)
    }

    /// All files that the calling thread has open, with their SIDs; none, if no policy has had any.
    pub(crate) fn own_te_files(&self) -> Result<Vec<tg_te_held>> {
        let tid = rustix::thread::gettid().as_raw_pid() as u32;
        match self.part::<Te>()? {
            Some(te) => iterate(&te.ps_file, Over::Thread(tid)),
            None => Ok(Vec::new()),
        }
    }

    /// All descriptors of the calling thread.
    pub(crate) fn own_descriptors(&self) -> Result<Vec<Held>> {
        let tid = rustix::thread::gettid().as_raw_pid() as u32;
        let lines: Vec<tg_held> = iterate(&self.ps_file, Over::Thread(tid))?;
        Ok(lines.into_iter().map(Held::from).collect())
    }
}

/// What a model's iterator says of threads, by their ids and the times of their start.
fn numbers(program: &impl AsFd, over: Over<'_>) -> Result<HashMap<(u32, u64), u64>> {
    let lines: Vec<tg_ps_model> = iterate(program, over)?;
    let number = |line: &tg_ps_model| ((line.tid, line.start), line.number);
    Ok(lines.iter().map(number).collect())
}

fn iterate<T: Pod>(program: &impl AsFd, over: Over<'_>) -> Result<Vec<T>> {
    let what = || "list the kernel's tasks".to_string();
    let mut bytes = Vec::new();
    let mut file = File::from(sys::iterate(program.as_fd(), over).trying(what)?);
    // the kernel stops with this error after a million entries without a line, and goes on from there at the next read
    while let Err(e) = file.read_to_end(&mut bytes) {
        if e.kind() != ErrorKind::WouldBlock {
            return Err(e).trying(what);
        }
    }
    Ok(bytes
        .chunks_exact(size_of::<T>())
        .filter_map(T::read)
        .collect())
}
