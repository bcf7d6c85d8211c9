//! Object managers in user space: which process asks, about which, and what it may ask.
//!
//! As where selinuxfs is asked, a subject that the policy governs has to be allowed to ask (class `security`), and anybody
//! else is asked nothing.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tidegate_flask::Sid;
use tidegate_protocol::{Code, Question, Reply};

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::object_managers::ObjectManagers;
use crate::object_managers::decisions::{Right, Security};
use crate::peer::Peer;

/// Answers an object manager.
pub fn answer(
    managers: &ObjectManagers,
    enforcement: &Enforcement,
    peer: &Peer,
    question: Question,
    fd: Option<OwnedFd>,
) -> Outcome<Reply> {
    let came = || {
        fd.as_ref()
            .ok_or_else(|| DaemonError::new(Code::Usage, "no descriptor came along"))
    };
    match question {
        Question::Peer => {
            let connection = came()?.as_fd();
            accepted(connection)?;
            let sid = enforcement.monitor.peer_sid(connection)?;
            labelled(&managers.security, enforcement, sid)
        }
        Question::Process => {
            let sid = process_sid(enforcement, came()?.as_fd())?;
            labelled(&managers.security, enforcement, sid)
        }
        Question::Own => {
            let sid = process_sid(enforcement, peer.process())?;
            labelled(&managers.security, enforcement, sid)
        }
        Question::Record(told) => {
            let sid = process_sid(enforcement, peer.process())?;
            let context = context_of(enforcement, sid)?;
            managers.records.tell(enforcement, peer, context, told)?;
            Ok(Reply::Recorded)
        }
        question => {
            let right = right(enforcement, peer, &question)?;
            managers.security.decide(question, right)
        }
    }
}

/// Refuses an end of a connection that accept(2) cannot have given, as nothing is known of the
/// process at its other one: such an end has the name that was listened at, while sockets of a pair
/// have none, nor have those that connected, as a rule.
fn accepted(connection: BorrowedFd<'_>) -> Outcome {
    let name = rustix::net::getsockname(connection);
    let name =
        name.map_err(|e| DaemonError::new(Code::Usage, format!("it is not a socket: {e}")))?;
    let is_named = rustix::net::SocketAddrUnix::try_from(name).is_ok_and(|name| {
        name.path_bytes()
            .or(name.abstract_name())
            .is_some_and(|n| !n.is_empty())
    });
    match is_named {
        true => Ok(()),
        false => Err(DaemonError::new(
            Code::Usage,
            "it is not the end of a Unix socket that accept(2) gave: nobody knows who is at its other end",
        )),
    }
}

/// What the caller has to be allowed.
fn right(enforcement: &Enforcement, peer: &Peer, question: &Question) -> Outcome<Option<Right>> {
    let permission = match question {
        Question::Access { .. } => "compute_av",
        Question::Create { .. } => "compute_create",
        Question::Member { .. } => "compute_member",
        Question::Relabel { .. } => "compute_relabel",
        Question::Context { .. } => "check_context",
        // selinuxfs lets everybody read these
        _ => return Ok(None),
    };
    let context = context_of(enforcement, process_sid(enforcement, peer.process())?)?;
    Ok(context.map(|context| Right {
        context,
        permission,
    }))
}

/// The context of a process or a peer as an answer: of one that is not governed that of the initial
/// SID `kernel`, as the kernel takes it to be.
fn labelled(security: &Security, enforcement: &Enforcement, sid: Option<Sid>) -> Outcome<Reply> {
    match context_of(enforcement, sid)? {
        Some(context) => Ok(Reply::Context {
            context,
            governed: true,
        }),
        None => {
            let name = "kernel".into();
            match security.decide(Question::Initial { name }, None)? {
                Reply::Context { context, .. } => Ok(Reply::Context {
                    context,
                    governed: false,
                }),
                other => Ok(other),
            }
        }
    }
}

/// The text of a SID's context.
fn context_of(enforcement: &Enforcement, sid: Option<Sid>) -> Outcome<Option<String>> {
    let text = |sid| {
        let unknown = || DaemonError::new(Code::Internal, "its context has no name here");
        enforcement.policies.context(sid).ok_or_else(unknown)
    };
    sid.map(text).transpose()
}

/// The SID of the process behind a pidfd; `None`: it is not governed. It is asked for by its number, which is another's
/// only if the process has ended by then.
fn process_sid(enforcement: &Enforcement, process: BorrowedFd<'_>) -> Outcome<Option<Sid>> {
    let gone = || DaemonError::new(Code::No, "the process has ended");
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd()));
    let about = about.map_err(|e| DaemonError::io("read about a process", e))?;
    let line = about.lines().find_map(|line| line.strip_prefix("Pid:"));
    let number = line.ok_or_else(|| {
        DaemonError::new(Code::Usage, "the descriptor that came along is not a pidfd")
    })?;
    // for a process that has ended it is -1, and 0 for one in a namespace of which nothing is seen
    // here
    let pid = number.trim().parse().ok().filter(|pid: &u32| *pid != 0);
    let pid = pid.ok_or_else(gone)?;
    let found = enforcement.monitor.process(pid)?.ok_or_else(gone)?;
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    match poll(&mut ended, Some(&Timespec::default())) {
        Ok(0) => Ok(found.sid),
        _ => Err(gone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn only_what_accept_gave_has_a_peer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        accepted(server.as_fd()).unwrap();
        let (pair, _other) = UnixStream::pair().unwrap();
        let file = fs::File::open("/dev/null").unwrap();
        let network = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for fd in [client.as_fd(), pair.as_fd(), file.as_fd(), network.as_fd()] {
            assert_eq!(accepted(fd).unwrap_err().code(), Code::Usage);
        }
    }
}
