//! The lock of the one daemon.
//!
//! A process that was killed may be unable to end: one of its threads waits in the kernel for a file's server or for a disk. Its
//! locks stay, though no program of it runs any more. So there are several locks, and another daemon takes the next one. Whoever
//! has one looks at all others afterwards, and gives it back if anybody else has one who is not dying. Of two who take one at the
//! same time at least one sees the other.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use crate::error::{DaemonError, Outcome};

/// In a thread's flags: it has begun to exit (linux/sched.h).
const PF_EXITING: u64 = 4;

/// SIGKILL in a set of signals.
const KILLED: u64 = 1 << (libc::SIGKILL - 1);

/// Takes one of these locks; `None`: somebody else is the one.
pub fn claim(paths: &[String]) -> Outcome<Option<File>> {
    claim_from(paths, is_dying)
}

fn claim_from(paths: &[String], is_dying: impl Fn(u32) -> bool) -> Outcome<Option<File>> {
    let mut own = None;
    for path in paths {
        match lock(path)? {
            Lock::Taken(file) => {
                own = Some((path, file));
                break;
            }
            Lock::Held(Some(holder)) if is_dying(holder) => {}
            Lock::Held(_) => return Ok(None),
        }
    }
    let Some((own, file)) = own else {
        return Ok(None);
    };
    for path in paths.iter().filter(|&path| path != own) {
        match lock(path)? {
            // and free again
            Lock::Taken(_) => {}
            Lock::Held(Some(holder)) if is_dying(holder) => {}
            Lock::Held(_) => return Ok(None),
        }
    }
    Ok(Some(file))
}

enum Lock {
    Taken(File),
    /// The process that holds it, where that can be told.
    Held(Option<u32>),
}

fn lock(path: &str) -> Outcome<Lock> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| DaemonError::io(format!("open {path}"), e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock::Taken(file)),
        Err(Errno::WOULDBLOCK) => Ok(Lock::Held(holder(&file))),
        Err(e) => Err(DaemonError::io(format!("lock {path}"), e)),
    }
}

/// How often the list of locks is read: it is read in pieces, and one that others give back meanwhile has those behind it pass
/// from the next piece to one that was read already.
const LOOKS: usize = 10;

/// The process that locked a file, if the list of locks shows it.
fn holder(file: &File) -> Option<u32> {
    let about = file.metadata().ok()?;
    let (dev, ino) = (about.dev(), about.ino());
    let place = format!("{:02x}:{:02x}:{ino}", major(dev), minor(dev));
    (0..LOOKS).find_map(|_| listed(&fs::read_to_string("/proc/locks").ok()?, &place))
}

/// The process that has a lock on the file at a place (`MAJOR:MINOR:INODE`) by proc_locks(5).
fn listed(locks: &str, place: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let kind = words.nth(1)?;
        let pid = words.nth(2)?;
        (kind == "FLOCK" && words.next()? == place).then(|| pid.parse().ok())?
    })
}

/// Whether a process is there, and no program of it will ever run again.
fn is_dying(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let mut there = false;
    for thread in threads.flatten() {
        let text = |name: &str| fs::read_to_string(thread.path().join(name));
        // one that has no files any more has ended
        let (Ok(stat), Ok(status)) = (text("stat"), text("status")) else {
            continue;
        };
        there = true;
        if !ends(&stat, &status) {
            return false;
        }
    }
    there
}

/// Whether a thread ends before it would run its program: by proc_pid_stat(5) and proc_pid_status(5).
fn ends(stat: &str, status: &str) -> bool {
    // behind the name, which may have anything in it
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_whitespace();
    let is_dead = matches!(fields.next(), Some("Z" | "X"));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    let mut lines = status.lines();
    let pending = lines.find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    is_dead
        || flags.is_some_and(|flags| flags & PF_EXITING != 0)
        || pending.is_some_and(|set| set & KILLED != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// On a filesystem whose numbers `/proc/locks` tells as stat(2) does, as `/run` is one.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").unwrap()
    }

    fn paths(dir: &tempfile::TempDir) -> Vec<String> {
        let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
        ["lock", "1", "2"].map(path).into()
    }

    #[test]
    fn one_has_it_until_it_ends() {
        let dir = directory();
        let paths = paths(&dir);
        let own = claim(&paths).unwrap().unwrap();
        assert_eq!(holder(&own), Some(std::process::id()));
        assert!(claim(&paths).unwrap().is_none());
        drop(own);
        assert!(claim(&paths).unwrap().is_some());
    }

    #[test]
    fn the_lock_of_who_is_dying_is_passed_by() {
        let dir = directory();
        let paths = paths(&dir);
        let Lock::Taken(dying) = lock(&paths[0]).unwrap() else {
            panic!("it is free");
        };
        let next = claim_from(&paths, |pid| pid == std::process::id());
        let next = next.unwrap().unwrap();
        let ino = |file: &File| file.metadata().unwrap().ino();
        assert_eq!(ino(&next), fs::metadata(&paths[1]).unwrap().ino());
        // that one lives, and the first lock is free again
        drop(dying);
        assert!(claim_from(&paths, |_| false).unwrap().is_none());
        drop(next);
        assert!(claim_from(&paths, |_| false).unwrap().is_some());
    }

    #[test]
    fn a_process_that_runs_is_not_dying_and_a_zombie_is() {
        assert!(!is_dying(std::process::id()));
        assert!(!is_dying(u32::MAX));
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert!(!is_dying(child.id()));
        child.kill().unwrap();
        let ended = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        while !ended().contains(") Z ") {
            std::thread::yield_now();
        }
        assert!(is_dying(child.id()));
        child.wait().unwrap();
    }

    #[test]
    fn who_was_killed_and_waits_in_the_kernel_ends() {
        let stat =
            |state: &str, flags: u64| format!("412 (a) b) {state} 1 412 412 0 -1 {flags} 0 0");
        let status = |set: &str| {
            format!("Name:\ta\nSigQ:\t0/1\nSigPnd:\t{set}\nShdPnd:\t0000000000000100\n")
        };
        let (none, killed) = (status("0000000000000000"), status("0000000000000100"));
        assert!(ends(&stat("D", 0x40_0100), &killed));
        assert!(ends(&stat("D", 0x40_0104), &none));
        assert!(ends(&stat("Z", 0), &none));
        assert!(!ends(&stat("D", 0x40_0100), &none));
        assert!(!ends(&stat("S", 0x40_0100), &none));
        assert!(!ends("", ""));
    }
}
