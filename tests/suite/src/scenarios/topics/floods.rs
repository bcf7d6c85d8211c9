//! Floods: what a lower subject fills or holds harms nobody else, and ends with its process.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::socket::SockType::{self, SeqPacket, Stream};
use nix::sys::socket::{bind, connect};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pipe2, setpgid, unlink};

use crate::scenarios::check::{Failed, Outcome, PATIENCE, ensure, refused_any, same, soon};
use crate::scenarios::daemon;
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM, TMPFS_LOW, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{
    Child, Level, at, become_user, falling, lower, spawn, start, step, tell, told,
};
use crate::scenarios::sys::{self, Map};
use crate::scenarios::unixsock::{
    abstract_name, accepted, connected, file_name, fresh, named, pair, receive, send,
};
use crate::sys::syscall;
use crate::wait;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "floors-flood-unlinked",
        "files on tmpfs that have lost their names and are kept open fill the table of channels' levels",
        unlinked,
    )
    .slow(),
    bypass(
        "floors-flood-users",
        "several users' files fill all that the lowest level has of that table, and root at the top removes a low file",
        unlinked_by_users,
    )
    .slow(),
    bypass(
        "floors-flood-mapped",
        "the same, kept by mappings alone",
        mapped,
    )
    .slow(),
    bypass(
        "floors-flood-replaced",
        "the same, and the names are lost to other files",
        replaced,
    )
    .slow(),
    bypass(
        "floors-flood-pipes",
        "pipes of a process that falls fill the table of channels' levels",
        pipes_fall,
    ),
    bypass(
        "floors-flood-sockets",
        "one user takes all of a level's share of the table of channels' levels",
        sockets,
    )
    .slow(),
    bypass(
        "channels-flood-pipes",
        "more pipes than there is room for in the table that a fall is decided with",
        pipes,
    ),
    bypass(
        "names-flood-connections",
        "connections to a named socket, so many that no fall is decided in time",
        connections,
    ),
    bypass(
        "names-flood-packets",
        "the same with packets",
        packet_connections,
    )
    .slow(),
    bypass(
        "names-flood-pairs",
        "the same with pairs of sockets that are given a name each",
        named_pairs,
    )
    .slow(),
    bypass(
        "tables-flood-processes",
        "processes with so many descriptors that each fall, or connection, takes seconds",
        tables,
    )
    .slow(),
    bypass(
        "tables-flood-threads",
        "the same with the threads of one process",
        table_of_threads,
    )
    .slow(),
    bypass(
        "tables-flood-listener",
        "the same with the connections that wait for one listener",
        queue,
    ),
    bypass(
        "daemon-flood-connections",
        "users' threads connect to the daemon without end, and root waits behind them",
        asked_without_end,
    ),
];

/// How soon what root at the top asks for has to come about, whatever others do. On a real machine that is a second;
/// these are emulated.
const SOON: Duration = Duration::from_secs(3);

/// So often it may take longer. A flood goes on all the while; what else the machine does comes and goes.
const TRIES: usize = 10;

/// The user that floods, and another user.
pub(super) const FLOODER: u32 = 1000;
const OTHER: u32 = 1001;

/// Places in the table of channels' levels, and some more.
pub(super) const TABLE: usize = (1 << 16) + 1000;

/// Half of them, and some more.
pub(super) const HALF: usize = (1 << 15) + 1000;

/// Names that are looked up for one fall, and some more.
const NAMES: usize = 9000;

/// One of some tries has to come about soon.
#[track_caller]
pub(super) fn timely(what: &str, part: impl Fn() -> Outcome) -> Outcome {
    let mut fastest = Duration::MAX;
    for _ in 0..TRIES {
        let begun = Instant::now();
        part()?;
        fastest = fastest.min(begun.elapsed());
        if fastest <= SOON {
            return Ok(());
        }
    }
    Err(Failed::because(format_args!(
        "{what} took {} ms, and never less",
        fastest.as_millis()
    )))
}

/// Two sockets of which nothing is remembered: one connects to the other, and is heard.
pub(super) fn talks() -> Outcome {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = abstract_name(&format!("{}-{number}", std::process::id()))?;
    let server = named(Stream, &name)?;
    let client = connected(Stream, &name)?;
    let end = accepted(&server)?;
    send(&client, None, &[])?;
    same("what was received", receive(&end)?.data, b"m".to_vec())
}

/// A shell reads from a pipe, and writes at the top.
fn shell() -> Outcome {
    let file = path(SYSTEM, "by-shell");
    let line = format!("echo word | {{ read it && echo \"$it\" > {file}; }}");
    let status = Command::new("dash").args(["-c", &line]).status()?;
    ensure(
        status.success(),
        "a shell at the top cannot write there any more",
    )
}

/// A user's process makes memory and sockets.
fn makes(level: Level, user: u32) -> Outcome {
    at(level, || {
        become_user(user)?;
        let _memory = sys::memfd(0)?;
        let _shared = Map::anonymous(MAP_SHARED)?;
        let _sockets = pair(Stream)?;
        talks()
    })
}

/// What others do goes on: root's shell and questions at once, falls, and what other users make.
pub(super) fn goes_on() -> Outcome {
    at(System, || {
        timely("the daemon's answer", || {
            daemon::status("/levels").map(drop)
        })?;
        timely("a connection of root's", talks)?;
        timely("root's shell", shell)?;
        level::is(System)
    })?;
    at(System, || {
        let _pipe = pipe2(OFlag::O_CLOEXEC)?;
        lower(User)?;
        level::is(User)
    })?;
    makes(User, OTHER)?;
    makes(Untrusted, OTHER)
}

/// More descriptors than the tables have places.
pub(super) fn many_descriptors() -> Outcome {
    let most = getrlimit(Resource::RLIMIT_NOFILE)?.1.max(200_000);
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}

/// Ends the flooder and the processes that it has started: they are its group.
fn end_all(flooder: &Child) -> Outcome {
    killpg(flooder.pid, Signal::SIGKILL)?;
    let group = Pid::from_raw(-flooder.pid.as_raw());
    loop {
        match waitpid(group, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(Errno::ECHILD) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Has processes flood, each of which stands still with what it has then: nobody is harmed, and nothing of it stays.
pub(super) fn flooded(level: Level, floods: usize, flood: impl Fn(usize) -> Outcome) -> Outcome {
    // SAFETY: no argument is a pointer.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    goes_on()?;
    let mut flooders = Vec::new();
    for number in 0..floods {
        let flooder = spawn(level, || {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            many_descriptors()?;
            become_user(FLOODER)?;
            flood(number)
        })?;
        flooder.stands()?;
        flooders.push(flooder);
    }
    let meanwhile = goes_on();
    for flooder in &flooders {
        end_all(flooder)?;
    }
    meanwhile?;
    goes_on()?;
    makes(level, FLOODER)
}

/// Does something so often, or until there is no room for it any more.
pub(super) fn until_refused(
    times: usize,
    mut one: impl FnMut(usize) -> Result<(), Errno>,
) -> Outcome {
    const FULL: &[Errno] = &[Errno::ENOSPC, Errno::EAGAIN, Errno::EDQUOT, Errno::ENOMEM];
    for number in 0..times {
        if let Err(e) = one(number) {
            return refused_any(FULL, Err::<(), _>(e));
        }
    }
    Ok(())
}

/// A new file of a low user on tmpfs.
fn low_file(name: &str) -> Result<std::os::fd::OwnedFd, Errno> {
    sys::open(name, OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL)
}

/// Files without names, so many as there is room for, kept until this process is ended.
fn unlinked_files(name: &str) -> Outcome {
    let mut held = Vec::new();
    until_refused(TABLE, |_| {
        held.push(low_file(name)?);
        unlink(name)
    })?;
    step()
}

fn unlinked() -> Outcome {
    flooded(Untrusted, 1, |_| unlinked_files(&path(TMPFS_LOW, "file")))
}

fn unlinked_by_users() -> Outcome {
    const USERS: u32 = 5;
    let (closed, open) = (path(TMPFS_LOW, "closed"), path(TMPFS_LOW, "open"));
    at(Untrusted, || {
        drop(low_file(&closed)?);
        drop(low_file(&open)?);
        Ok(())
    })?;
    let flooders = (0..USERS)
        .map(|number| {
            let flooder = spawn(Untrusted, || {
                many_descriptors()?;
                become_user(FLOODER + number)?;
                unlinked_files(&path(TMPFS_LOW, &number.to_string()))
            })?;
            flooder.stands()?;
            Ok(flooder)
        })
        .collect::<Outcome<Vec<_>>>()?;
    let removed = at(System, || {
        fs::remove_file(&closed)?;
        let _held = sys::open(&open, OFlag::O_PATH)?;
        Ok(fs::remove_file(&open)?)
    });
    for flooder in flooders {
        flooder.kill()?;
    }
    removed
}

fn mapped() -> Outcome {
    // a process has at most 65,530 mappings
    flooded(Untrusted, 2, |number| {
        let (name, mut held) = (path(TMPFS_LOW, &number.to_string()), Vec::new());
        until_refused(TABLE / 2, |_| {
            let file = low_file(&name)?;
            held.push(Map::of(&file, PROT_READ, MAP_PRIVATE)?);
            unlink(name.as_str())
        })?;
        step()
    })
}

fn replaced() -> Outcome {
    flooded(Untrusted, 1, |_| {
        let (new, old) = (path(TMPFS_LOW, "new"), path(TMPFS_LOW, "old"));
        let mut held = Vec::new();
        until_refused(TABLE, |_| {
            held.push(low_file(&new)?);
            nix::fcntl::renameat(
                nix::fcntl::AT_FDCWD,
                new.as_str(),
                nix::fcntl::AT_FDCWD,
                old.as_str(),
            )
        })?;
        step()
    })
}

fn pipes_fall() -> Outcome {
    flooded(User, 1, |_| {
        let mut held = Vec::new();
        until_refused(HALF, |_| {
            held.push(pipe2(OFlag::O_CLOEXEC)?);
            Ok(())
        })?;
        // it may be refused
        let _ = fs::read(place::level_file(Untrusted));
        step()
    })
}

fn sockets() -> Outcome {
    flooded(Untrusted, 1, |_| {
        let mut held = Vec::new();
        until_refused(HALF / 2, |_| {
            held.push(pair(Stream)?);
            Ok(())
        })?;
        step()
    })
}

fn pipes() -> Outcome {
    flooded(Untrusted, 1, |_| {
        let mut held = Vec::new();
        until_refused(TABLE, |_| {
            held.push(pipe2(OFlag::O_CLOEXEC)?);
            Ok(())
        })?;
        step()
    })
}

fn connected_often(kind: SockType) -> Outcome {
    flooded(Untrusted, 1, |_| {
        let name = file_name(&path(TMPFS_LOW, "socket"))?;
        let server = named(kind, &name)?;
        let mut held = Vec::new();
        until_refused(NAMES, |_| {
            let client = falling(Errno::EAGAIN, || connected(kind, &name))?;
            held.push((client, accepted(&server)?));
            Ok(())
        })?;
        step()
    })
}

fn connections() -> Outcome {
    connected_often(Stream)
}

fn packet_connections() -> Outcome {
    connected_often(SeqPacket)
}

fn named_pairs() -> Outcome {
    let dir = place::directory(TMPFS_LOW, "names")?;
    let played = flooded(Untrusted, 1, |_| {
        let mut held = Vec::new();
        until_refused(NAMES, |number| {
            let (one, two) = pair(Stream)?;
            bind(two.as_raw_fd(), &file_name(&format!("{dir}/{number}"))?)?;
            held.push((one, two));
            Ok(())
        })?;
        step()
    });
    fs::remove_dir_all(&dir)?;
    played
}

/// As many descriptors of the two ends of a pipe as this number, whose places begin behind what a process has.
fn filled_table(size: i32) -> Outcome {
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    let ends = [read.as_raw_fd(), write.as_raw_fd()];
    for number in 20..size {
        sys::keep_as(&ends[number as usize % 2], number)?;
    }
    std::mem::forget((read, write));
    Ok(())
}

fn tables() -> Outcome {
    const PROCESSES: usize = 12;
    flooded(Untrusted, 1, |_| {
        filled_table(200_000)?;
        for _ in 1..PROCESSES {
            // which has a table of its own, with the same in it
            let copy = start(step)?;
            copy.stands()?;
        }
        step()
    })
}

fn table_of_threads() -> Outcome {
    const THREADS: usize = 120;
    flooded(Untrusted, 1, |_| {
        filled_table(25_000)?;
        for _ in 1..THREADS {
            std::thread::spawn(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        step()
    })
}

fn queue() -> Outcome {
    /// As many as may wait, and some fewer.
    const WAITING: usize = 3900;
    flooded(Untrusted, 1, |_| {
        let name = abstract_name("queue")?;
        let server = fresh(Stream)?;
        bind(server.as_raw_fd(), &name)?;
        syscall!(libc::SYS_listen, server.as_raw_fd(), 4096)?;
        let mut held = Vec::new();
        until_refused(WAITING, |_| {
            held.push(falling(Errno::EAGAIN, || connected(Stream, &name))?);
            Ok(())
        })?;
        for number in 10_000..10_800 {
            sys::keep_as(&server, number)?;
        }
        step()
    })
}

/// A connection to a socket of the daemon's; `None`: there is no room for one at this moment.
fn connected_at_once(socket: &str) -> Outcome<Option<UnixStream>> {
    let client = fresh(Stream)?;
    let fd = client.as_raw_fd();
    syscall!(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_NONBLOCK)?;
    match connect(fd, &file_name(socket)?) {
        Ok(()) => Ok(Some(client.into())),
        Err(Errno::EAGAIN) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Waits until there is no room for one more connection to the daemon.
#[track_caller]
fn queue_is_full() -> Outcome {
    let full = soon(|| Ok(connected_at_once(level::SOCKET)?.is_none()))?;
    ensure(full, "the daemon's queue is not full")
}

/// A connection of an administrator.
#[track_caller]
fn administers() -> Outcome<UnixStream> {
    let mut client = None;
    soon(|| {
        client = connected_at_once(level::ADMIN)?;
        Ok(client.is_some())
    })?;
    client.ok_or_else(|| Failed::because("there is no room for who administers"))
}

/// While the daemon is stopped nobody leaves its queues: all room in everybody's is taken, and
/// there is room in that of administrators. Root is answered while the others' connections are
/// still held.
fn asked_behind_a_queue() -> Outcome {
    let flooder = spawn(Untrusted, || {
        become_user(FLOODER)?;
        step()?;
        let mut held = Vec::new();
        loop {
            match connected_at_once(level::SOCKET)? {
                Some(client) => held.push(client),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    })?;
    flooder.stands()?;
    let pid = daemon::pid().ok_or_else(|| Failed::because("no daemon"))?;
    let (daemon, task) = (Pid::from_raw(pid), format!("/proc/{pid}"));
    kill(daemon, Signal::SIGSTOP)?;
    let connected: Outcome<UnixStream> = (|| {
        let stopped = soon(|| Ok(wait::state(&task) == Some('T')))?;
        ensure(stopped, "the daemon does not stop")?;
        flooder.go()?;
        queue_is_full()?;
        let mut client = administers()?;
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(PATIENCE))?;
        client.write_all(b"{\"ask\": \"status\"}\n")?;
        Ok(client)
    })();
    kill(daemon, Signal::SIGCONT)?;
    let answered = connected.and_then(|mut client| {
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        ensure(answer.contains("\"levels\""), "root gets no answer")
    });
    flooder.kill()?;
    answered
}

/// A user's threads that connect to the daemon without end; most of them wait in connect(2).
fn connects_without_end(level: Level, user: u32, sign: &str) -> Outcome<Child> {
    const THREADS: usize = 40;
    let child = spawn(level, || {
        become_user(user)?;
        for _ in 0..THREADS {
            std::thread::Builder::new().stack_size(1 << 16).spawn(|| {
                loop {
                    if UnixStream::connect(level::SOCKET).is_err() {
                        // it is the queue that is to be full, and not the processor
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            })?;
        }
        tell(sign)?;
        loop {
            std::thread::park();
        }
    })?;
    told(sign)?;
    Ok(child)
}

/// Root is answered, while the others go on.
fn answered_meanwhile() -> Outcome {
    for _ in 0..5 {
        queue_is_full()?;
        same("the exit code", daemon::quietly(&["status"])?, 0)?;
        administers()?;
    }
    queue_is_full()
}

fn asked_without_end() -> Outcome {
    asked_behind_a_queue()?;
    let flooders = [
        connects_without_end(Untrusted, FLOODER, "connects")?,
        connects_without_end(User, OTHER, "others-connect")?,
    ];
    let played = answered_meanwhile();
    for flooder in flooders {
        flooder.kill()?;
    }
    played?;
    level::is(System)
}
