//! The file of a program that a record is about, and the profile of another process.
//!
//! The kernel's record has a program's name only. While the process is there its file
//! can be asked for; that it is still the same process, and the same program, is told
//! by its start time and its name.

use std::fs;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidegate_monitor::{Event, Monitor};

/// What a file's path ends with that has lost its name.
const DELETED: &str = " (deleted)";

/// The canonical path of the program that an event is about; `None` if the process is
/// gone, has become another program, or its file has no name in this mount namespace.
///
/// Nothing is looked up by path: a program's filesystem may be one that never answers (FUSE).
/// And nothing of procfs is read that holds on to the process's memory, as `stat` does: its
/// next demotion would have to wait for that.
pub fn of(event: &Event, monitor: &Monitor) -> Option<String> {
    // asked last: if it is the process now, it was so before
    at(event, || {
        let process = monitor.process(event.pid).ok()??;
        Some((process.start, process.executed))
    })
}

/// The number of the profile that confines a process, if one does; `None` if the process is gone.
pub fn profile_of(pid: u32, monitor: &Monitor) -> Option<Option<u64>> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let profile = monitor.profile_of(process.as_fd()).ok()?;
    // one that has ended has none any more
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let is_there = poll(&mut ended, Some(&Timespec::default())) == Ok(0);
    (profile.is_some() || is_there).then_some(profile)
}

/// [`of`], where `asked` tells the start time of the process's first thread, and whether its program is what was executed.
fn at(event: &Event, asked: impl FnOnce() -> Option<(u64, bool)>) -> Option<String> {
    let process = format!("/proc/{}/task/{}", event.pid, event.tid);
    let exe = fs::read_link(format!("{process}/exe")).ok()?;
    let exe = exe.into_os_string().into_string().ok()?;
    // elsewhere a path may lead to another file than here
    let namespace = |process: &str| fs::read_link(format!("{process}/ns/mnt")).ok();
    let here = namespace(&process)? == namespace("/proc/self")?;
    let comm = fs::read(format!("{process}/comm")).ok()?;
    let comm = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).into_owned();
    let (started, executed) = asked()?;
    // another thread began after the first
    let same = comm == event.comm
        && if event.tid == event.pid {
            started == event.start
        } else {
            started < event.start
        };
    let named = exe.starts_with('/') && !exe.ends_with(DELETED);
    // else it is a program that the process has named itself (PR_SET_MM)
    (here && same && named && executed).then_some(exe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_monitor::{Kind, Reason};

    /// When this process says that it started.
    const START: u64 = 1_000_000_123;

    fn this() -> Event {
        let pid = std::process::id();
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        Event {
            pid,
            tid: pid,
            start: START,
            comm: comm.trim_end().into(),
            id: 1,
            time: 0,
            prev: None,
            kind: Kind::Denied,
            op: None,
            reason: Reason::Rule,
            class: None,
            seqno: 1,
            uid: 1000,
            payer: 1000,
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

    #[test]
    fn a_process_that_is_there_has_a_file() {
        let own = std::env::current_exe().unwrap();
        let found = at(&this(), || Some((START, true)));
        assert_eq!(found.as_deref(), own.to_str());
    }

    #[test]
    fn another_process_or_program_has_not() {
        assert_eq!(at(&this(), || Some((START, false))), None);
        assert_eq!(at(&this(), || Some((START + 1, true))), None);
        assert_eq!(at(&this(), || None), None);
        let executed = Event {
            comm: "another".into(),
            ..this()
        };
        assert_eq!(at(&executed, || Some((START, true))), None);
        let gone = Event {
            pid: u32::MAX,
            ..this()
        };
        assert_eq!(at(&gone, || Some((START, true))), None);
    }
}
