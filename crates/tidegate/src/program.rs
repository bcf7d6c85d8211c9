//! The file of a program that a record is about.
//!
//! The kernel's record has a program's name only. While the process is there its file
//! can be asked for; that it is still the same process, and the same program, is told
//! by its start time and its name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tidegate_monitor::Event;

/// Nanoseconds in a tick of `/proc/PID/stat`: Linux counts 100 a second for user space.
const TICK: u64 = 1_000_000_000 / 100;

/// The canonical path of the program that an event is about; `None` if the process is
/// gone, has become another program, or its file has no name here.
pub fn of(event: &Event) -> Option<String> {
    let process = format!("/proc/{}/task/{}", event.pid, event.tid);
    let link = format!("{process}/exe");
    let path = fs::read_link(&link)
        .ok()?
        .into_os_string()
        .into_string()
        .ok()?;
    let file = fs::metadata(&link).ok()?;
    // a process elsewhere in a namespace of its own may have any path shown
    let named = fs::symlink_metadata(Path::new(&path)).ok()?;
    let same_file = (file.dev(), file.ino()) == (named.dev(), named.ino());
    // asked last: if it is the process now, it was so before
    let comm = fs::read(format!("{process}/comm")).ok()?;
    let comm = String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).into_owned();
    let stat = fs::read(format!("{process}/stat")).ok()?;
    let same_process = started(&stat)? == event.start / TICK && comm == event.comm;
    (same_file && same_process).then_some(path)
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
