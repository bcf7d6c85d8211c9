//! What a client sends to the daemon with its question: a file that a FUSE server never answers for. The daemon can
//! be ended all the same.

use std::fs;
use std::io::{IoSlice, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::scenarios::check::{Failed, Outcome, PATIENCE, ensure, same, soon};
use crate::scenarios::daemon;
use crate::scenarios::devfuse::{FILE, Fuse};
use crate::scenarios::level;
use crate::scenarios::place::{self, MOUNT, SYSTEM, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Child, Level, lower, own_namespaces, spawn, start, tell, told};
use crate::scenarios::sys;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "daemon-fuse-flushed",
        "a descriptor that the daemon closes is flushed, and its FUSE server never answers",
        flushed,
    )
    .last(),
    bypass(
        "daemon-fuse-read",
        "a descriptor that the daemon reads is of a FUSE file whose server never answers",
        read,
    )
    .last(),
    bypass(
        "daemon-fuse-looked-at",
        "the daemon looks at a FUSE file whose server never answers",
        looked_at,
    )
    .last(),
];

/// Requests by the kernel's numbers.
const GETATTR: u32 = 3;
const READ: u32 = 15;
const FLUSH: u32 = 25;

/// How long the daemon may take to end when it is killed.
const END: Duration = Duration::from_secs(20);

/// Asks the daemon something with a descriptor; what it answers, if it does.
pub(super) fn ask_with(question: &Value, file: &OwnedFd) -> Outcome<String> {
    let mut stream = UnixStream::connect(level::SOCKET)?;
    let (line, fds) = (format!("{question}\n"), [file.as_raw_fd()]);
    sendmsg::<()>(
        stream.as_raw_fd(),
        &[IoSlice::new(line.as_bytes())],
        &[ControlMessage::ScmRights(&fds)],
        MsgFlags::empty(),
        None,
    )?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    Ok(answer)
}

/// Serves a filesystem that never answers one kind of request, and has a low child ask the daemon with its file. It
/// gives a sign once the daemon has answered, or the filesystem was asked.
fn serves(at: &str, unanswered: u32, question: &Value) -> Outcome {
    let fuse = Fuse::mount_without(at, Some(unanswered))?;
    let file = format!("{at}/{FILE}");
    let _client = start(|| {
        // the filesystem is to end with its server, whoever has the file open still
        syscall!(libc::SYS_close_range, 3, u32::MAX, 0)?;
        lower(Untrusted)?;
        ask_with(question, &sys::reads(&file)?)?;
        tell("answered")
    })?;
    let answered = path(TMPFS_LOW, "answered");
    let done = soon(|| Ok(fuse.has_been_asked() || fs::exists(&answered)?))?;
    ensure(done, "the daemon neither answers nor uses the descriptor")?;
    tell("sent")?;
    // not stopped: a thread of its serves
    std::thread::sleep(2 * PATIENCE);
    Ok(())
}

/// The daemon ends when it is killed, and another one takes over, while a server goes on serving.
fn ends(server: Child) -> Outcome {
    told("sent")?;
    let pid = daemon::pid().ok_or_else(|| Failed::because("no daemon"))?;
    let process = sys::pidfd_open(pid)?;
    kill(Pid::from_raw(pid), Signal::SIGKILL)?;
    let ended = sys::ends(&process, END)?;
    server.kill()?;
    ensure(
        sys::ends(&process, PATIENCE)?,
        "the daemon does not end at all",
    )?;
    drop(process);
    same("start", daemon::quietly(&["start"])?, 0)?;
    level::is(System)?;
    ensure(ended, "a client's descriptor keeps the daemon from ending")
}

fn flushed() -> Outcome {
    ends(spawn(Untrusted, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        serves(MOUNT, FLUSH, &json!({"ask": "whoami"}))
    })?)
}

/// A file of a FUSE filesystem that the system has mounted, as the bundle of a capability file, which anybody may bring.
fn brought(unanswered: u32) -> Outcome {
    let dir = place::directory(SYSTEM, "fuse")?;
    let question = json!({"ask": "capabilities", "subject": null, "now": false});
    let played = ends(start(|| serves(&dir, unanswered, &question))?);
    let _ = nix::mount::umount2(dir.as_str(), nix::mount::MntFlags::MNT_DETACH);
    played
}

fn read() -> Outcome {
    brought(READ)
}

fn looked_at() -> Outcome {
    brought(GETATTR)
}
