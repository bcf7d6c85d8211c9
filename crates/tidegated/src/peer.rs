//! The client: the process at the other end of a connection.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt::PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tidegate_flask::Sid;
use tidegate_monitor::{Monitor, Process};
use tidegate_protocol::Code;

use crate::error::{DaemonError, Outcome};

/// The process at the other end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// Its process id.
    pub pid: u32,
    /// Its user id.
    pub uid: u32,
    /// The process itself, which cannot become another.
    process: OwnedFd,
    /// The connection, which others may have been handed.
    connection: OwnedFd,
}

impl Peer {
    /// The process, by what the kernel says.
    ///
    /// # Errors
    /// If it has gone, or no descriptor is left.
    pub fn of(stream: &UnixStream) -> io::Result<Peer> {
        let credentials = rustix::net::sockopt::socket_peercred(stream)?;
        Ok(Peer {
            pid: credentials.pid.as_raw_pid() as u32,
            uid: credentials.uid.as_raw(),
            process: getsockopt(stream, PeerPidfd)?,
            connection: stream.as_fd().try_clone_to_owned()?,
        })
    }

    /// Its pidfd.
    pub fn process(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }

    /// What the kernel's side tells of it. It is asked for by its number, which is another's only if the process has ended by then.
    ///
    /// # Errors
    /// It has ended.
    pub fn found(&self, monitor: &Monitor) -> Outcome<Process> {
        let found = monitor.process(self.pid)?.ok_or_else(gone)?;
        self.still_there()?;
        Ok(found)
    }

    /// An error if it has ended: what was read about its number may be of another process then.
    pub fn still_there(&self) -> Outcome {
        let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
        match poll(&mut ended, Some(&Timespec::default())) {
            Ok(0) => Ok(()),
            _ => Err(gone()),
        }
    }

    /// Whether capability files limit it.
    pub fn is_limited(&self, monitor: &Monitor) -> Outcome<bool> {
        Ok(self.found(monitor)?.domain.is_some())
    }

    /// Whether a profile confines it.
    pub fn is_confined(&self, monitor: &Monitor) -> Outcome<bool> {
        Ok(monitor.is_confined(self.process.as_fd())?)
    }

    /// Has it be confined from its next execution on; false if it is already.
    pub fn confine(&self, monitor: &Monitor, profile: &str) -> Outcome<bool> {
        Ok(monitor.confine(self.process.as_fd(), profile)?)
    }

    /// Has it come under the SELinux policy from its next execution on; false: it is already.
    pub fn enter(&self, monitor: &Monitor, sid: Sid) -> Outcome<bool> {
        Ok(monitor.enter(self.process.as_fd(), self.pid, sid)?)
    }

    /// Whether the SELinux policy governs it, or the process that connected.
    pub fn is_governed(&self, monitor: &Monitor) -> Outcome<bool> {
        let process = self.found(monitor)?.sid.is_some();
        Ok(process || monitor.peer_sid(self.connection.as_fd())?.is_some())
    }

    /// The SIDs of this process and of the one that connected, as far as they have one.
    ///
    /// # Errors
    /// It has ended.
    pub fn sids(&self, monitor: &Monitor) -> Outcome<Vec<Sid>> {
        let process = self.found(monitor)?;
        let connected = monitor.peer_sid(self.connection.as_fd())?;
        Ok(process.sid.into_iter().chain(connected).collect())
    }

    /// Its level, or the lowest of the processes that may have written to the connection so far:
    /// the one that connected need not be the one that asks.
    pub fn level(&self, monitor: &Monitor) -> Outcome<u8> {
        let process = monitor.level_of(self.process.as_fd())?;
        Ok(process.min(monitor.level_of_connection(self.connection.as_fd())?))
    }
}

fn gone() -> DaemonError {
    DaemonError::new(Code::NotPermitted, "the process that asks has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsRawFd;

    #[test]
    fn who_is_at_the_other_end_is_known_by_its_process() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(&ours).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert!(peer.still_there().is_ok());
        let about = format!("/proc/self/fdinfo/{}", peer.process().as_raw_fd());
        let about = fs::read_to_string(about).unwrap();
        assert!(about.contains(&format!("Pid:\t{}\n", peer.pid)), "{about}");
    }
}
