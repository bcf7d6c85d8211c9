//! The file of a program that a record is about.
//!
//! The kernel's record has a program's name only. While the process is there its file
//! can be asked for; that it is still the same process, and the same program, is told
//! by its start time and its name.

use std::fs;

use tidegate_monitor::Event;

/// Nanoseconds in a tick of `/proc/PID/stat`: Linux counts 100 a second for user space.
const TICK: u64 = 1_000_000_000 / 100;

/// What a file's path ends with that has lost its name.
const DELETED: &str = " (deleted)";

/// The canonical path of the program that an event is about; `None` if the process is
/// gone, has become another program, or its file has no name in this mount namespace.
///
/// Only procfs is asked, and nothing looked up by path: a program's filesystem may be one
/// that never answers (FUSE).
pub fn of(event: &Event) -> Option<String> {
    let process = format!("/proc/{}/task/{}", event.pid, event.tid);
    let exe = fs::read_link(format!("{process}/exe")).ok()?;
    let exe = exe.into_os_string().into_string().ok()?;
    // elsewhere a path may lead to another file than here
    let namespace = |process: &str| fs::read_link(format!("{process}/ns/mnt")).ok();
    let here = namespace(&process)? == namespace("/proc/self")?;
    // asked last: if it is the process now, it was so before
    let comm = fs::read(format!("{process}/comm")).ok()?;
    let comm = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).into_owned();
    let stat = fs::read(format!("{process}/stat")).ok()?;
    let same = started(&stat)? == event.start / TICK && comm == event.comm;
    let named = exe.starts_with('/') && !exe.ends_with(DELETED);
    (here && same && named).then_some(exe)
}

/// The start time in a line of `/proc/PID/stat`, in ticks since boot: its field 22
/// (proc_pid_stat(5)). The name before may have blanks and parentheses in it.
fn started(stat: &[u8]) -> Option<u64> {
    let after = stat.iter().rposition(|&b| b == b')')? + 1;
    let text = std::str::from_utf8(&stat[after..]).ok()?;
    text.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::tests::event;
    use tidegate_monitor::Kind;

    fn this() -> Event {
        let pid = std::process::id();
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap();
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        Event {
            pid,
            tid: pid,
            start: started(&stat).unwrap() * TICK + 123,
            comm: comm.trim_end().into(),
            ..event(Kind::Denied)
        }
    }

    #[test]
    fn a_process_that_is_there_has_a_file() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(of(&this()).as_deref(), own.to_str());
    }

    #[test]
    fn another_process_or_program_has_not() {
        let this = this();
        let reused = Event {
            start: this.start + 2 * TICK,
            ..this.clone()
        };
        assert_eq!(of(&reused), None);
        let executed = Event {
            comm: "another".into(),
            ..this.clone()
        };
        assert_eq!(of(&executed), None);
        let gone = Event {
            pid: u32::MAX,
            ..this
        };
        assert_eq!(of(&gone), None);
    }

    #[test]
    fn a_name_with_a_parenthesis_is_a_name() {
        let stat = b"7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 0 0";
        assert_eq!(started(stat), Some(4242));
    }
}
