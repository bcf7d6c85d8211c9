//! A process in the domain, which binds objects and then uses them when it is told to, by lines on standard input.
//! What became of each is a line on standard output: `ok`, or the error's number.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn,
    UnixAddr, connect, recvmsg, sendmsg, sendto, socket,
};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, pause};

use crate::sys::{answer, send_at_once, syscall};
use crate::te_live::place;

const PAGE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// What it holds.
#[derive(Default)]
struct Held {
    files: Vec<File>,
    streams: Vec<Box<dyn Exchange>>,
    listeners: Vec<TcpListener>,
    mapped: Option<usize>,
    /// What a descriptor was sent by, and how many messages are before it.
    passing: Option<(OwnedFd, OwnedFd, usize)>,
}

/// One end of a connection.
trait Exchange: Read + Write {}
impl<T: Read + Write> Exchange for T {}

/// Mappings that a look has to go through before it comes to the last.
const BETWEEN: usize = 20_000;

/// Has a thread move a mapping from the end of many to their begin and back, each time that somebody looks at them.
fn moves_about(from: usize) -> io::Result<()> {
    let (page, none) = (PAGE.get(), ProtFlags::PROT_NONE);
    let size = NonZeroUsize::new((BETWEEN + 2) * page).ok_or(io::ErrorKind::InvalidInput)?;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
    // SAFETY: new memory, which nothing refers to.
    let first = unsafe { mmap_anonymous(None, size, none, flags) }?.as_ptr() as usize;
    // neighbours that differ are not made one
    for n in (1..=BETWEEN).step_by(2) {
        protect(first + n * page, libc::PROT_READ)?;
    }
    let last = first + (BETWEEN + 1) * page;
    moved(from, last)?;
    // SAFETY: as above.
    let probe = unsafe { mmap_anonymous(None, PAGE, none, flags) }?.as_ptr() as usize;
    thread::spawn(move || {
        loop {
            let begun = Instant::now();
            let waited =
                protect(probe, libc::PROT_READ).and_then(|()| protect(probe, libc::PROT_NONE));
            if waited.is_err() {
                return;
            }
            if begun.elapsed() < Duration::from_micros(20) {
                continue;
            }
            if moved(last, first).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
            if moved(first, last).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Changes how a page may be used.
fn protect(at: usize, how: i32) -> io::Result<()> {
    // SAFETY: a page of this process's own, which nothing refers to.
    match unsafe { libc::mprotect(at as *mut libc::c_void, PAGE.get(), how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Moves a page.
fn moved(from: usize, to: usize) -> io::Result<()> {
    let (page, flags) = (PAGE.get(), libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
    let (from, to) = (from as *mut libc::c_void, to as *mut libc::c_void);
    // SAFETY: pages of this process's own, which nothing refers to.
    match unsafe { libc::mremap(from, page, page, flags, to) } == to {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

/// Where there is room for few files: makes them until one by the name `noted` cannot be made, and gives the file `low` further
/// names, of which one may come to lie in memory where that one lay.
fn links_after_failure(dir: &str) -> io::Result<()> {
    let mut first = CpuSet::new();
    first.set(0)?;
    // on one processor memory is used again
    sched_setaffinity(Pid::this(), &first)?;
    let (low, filler) = (format!("{dir}/low"), |n| format!("{dir}/filler-{n}"));
    File::create_new(&low)?;
    for n in 0.. {
        match File::create_new(filler(n)) {
            Err(e) if e.raw_os_error() == Some(libc::ENOSPC) => break,
            made => drop(made?),
        }
    }
    match File::create_new(format!("{dir}/noted")) {
        Err(e) if e.raw_os_error() == Some(libc::ENOSPC) => {}
        Err(e) => return Err(e),
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
    }
    for n in 0..6 {
        fs::remove_file(filler(n))?;
    }
    for n in 0..2000 {
        let link = |k| format!("{dir}/link-{n}-{k}");
        for k in 0..5 {
            fs::hard_link(&low, link(k))?;
        }
        for k in 0..5 {
            fs::remove_file(link(k))?;
        }
    }
    Ok(())
}

/// The number, in a PID namespace, of its first process, this one, or of another one that is made. No process outside has that.
fn within(whom: &str) -> io::Result<String> {
    const BEFORE: &str = "31233";
    let pid = match whom {
        "itself" => getpid(),
        _ => {
            fs::write("/proc/sys/kernel/ns_last_pid", BEFORE)?;
            // SAFETY: this process has one thread.
            match unsafe { fork() }? {
                ForkResult::Child => loop {
                    pause();
                },
                ForkResult::Parent { child } => child,
            }
        }
    };
    Ok(pid.to_string())
}

/// Does as each line says until there are no more.
pub fn run() {
    let mut held = Held::default();
    let mut out = io::stdout();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let became = match held.does(&words) {
            Ok(()) => "ok".to_owned(),
            Err(e) => e
                .raw_os_error()
                .map_or_else(|| e.to_string(), |n| n.to_string()),
        };
        if writeln!(out, "{became}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return;
        }
    }
}

impl Held {
    fn does(&mut self, words: &[&str]) -> io::Result<()> {
        let secret = || OpenOptions::new().read(true).open(place("secret"));
        let last = |files: &[File]| {
            files
                .last()
                .map(AsRawFd::as_raw_fd)
                .ok_or(io::ErrorKind::NotFound)
        };
        match *words {
            ["open"] => self.files.push(secret()?),
            ["open-many", count] => {
                for _ in 0..count.parse().unwrap_or(0) {
                    self.files.push(secret()?);
                }
            }
            ["close-all"] => self.files.clear(),
            ["open-write"] => {
                let file = OpenOptions::new().append(true).open(place("secret"))?;
                self.files.push(file);
            }
            ["read"] => {
                let file = self.files.last().ok_or(io::ErrorKind::NotFound)?;
                file.read_at(&mut [0; 1], 0)?;
            }
            ["write"] => (&self.files[0]).write_all(b"x")?,
            // a descriptor that only a duplicate is left of
            ["duplicate"] => {
                let copy = self
                    .files
                    .last()
                    .ok_or(io::ErrorKind::NotFound)?
                    .try_clone()?;
                self.files = vec![copy];
            }
            ["fifo"] => {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(place("fifo"))?;
                self.files.push(file);
            }
            // waits until somebody writes
            ["read-fifo"] => {
                last(&self.files)?;
                let mut byte = [0; 1];
                self.files
                    .last_mut()
                    .ok_or(io::ErrorKind::NotFound)?
                    .read_exact(&mut byte)?;
            }
            // a child that has what its parent has, and uses it when the next line comes
            ["fork-read"] => {
                // SAFETY: this process has one thread.
                if let ForkResult::Child = unsafe { fork() }? {
                    let mut line = [0; 1];
                    // the parent's descriptor: this file is its own copy of it
                    let fifo = OpenOptions::new().read(true).open(place("go"));
                    let _ = fifo.and_then(|mut fifo| fifo.read_exact(&mut line));
                    let read = self.files.last().map(|file| file.read_at(&mut [0; 1], 0));
                    let said = match read {
                        Some(Ok(_)) => "ok".to_owned(),
                        Some(Err(e)) => e.raw_os_error().unwrap_or(0).to_string(),
                        None => "nothing".to_owned(),
                    };
                    let _ = OpenOptions::new()
                        .write(true)
                        .open(place("said"))
                        .map(|mut to| to.write_all(said.as_bytes()));
                    std::process::exit(0);
                }
            }
            // what it asks for itself
            ["attr", which, context] => fs::write(format!("/proc/self/attr/{which}"), context)?,
            ["create", name] => File::create_new(place(name)).map(drop)?,
            // files, one after the other, until that fails
            ["flood", dir] => {
                for n in 0.. {
                    File::create_new(place(&format!("{dir}/{n}")))?;
                }
            }
            ["noted", dir] => links_after_failure(&place(dir))?,
            ["pipe"] => drop(nix::unistd::pipe()?),
            ["socket"] => drop(made(AddressFamily::Inet, None)?),
            ["memory"] => drop(memfd_create(c"", MFdFlags::empty())?),
            ["relabel", name, context] => relabel(&place(name), context)?,
            ["rename", from, to] => fs::rename(place(from), place(to))?,
            // made without a name, which it gets later
            ["unnamed", name] => {
                let file = OpenOptions::new()
                    .write(true)
                    .custom_flags(libc::O_TMPFILE)
                    .open(place(""))?;
                let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
                let to = CString::new(place(name))?;
                let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
                // SAFETY: both names are terminated.
                answer(unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) })?;
            }
            // with the connection
            ["first-message", port] => {
                let port: u16 = port.parse().map_err(io::Error::other)?;
                let to = SockaddrIn::new(127, 0, 0, 1, port);
                let socket = made(AddressFamily::Inet, None)?;
                let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
                sendto(socket.as_raw_fd(), b"x", &to, flags)?;
            }
            // of MPTCP, with another connection than the one that was put off (TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE)
            // and ended by an address of no family
            ["message-put-off", port] => {
                let port: u16 = port.parse().map_err(io::Error::other)?;
                let (family, kind) = (libc::AF_INET, libc::SOCK_STREAM);
                // SAFETY: makes a descriptor, which nobody else has.
                let socket = unsafe {
                    let fd = answer(libc::socket(family, kind, libc::IPPROTO_MPTCP))?;
                    OwnedFd::from_raw_fd(fd)
                };
                let (fd, on, nowhere) = (socket.as_raw_fd(), 1i32, [0u8; 16]);
                for option in [30, 34] {
                    let (on, size) = (&raw const on, size_of_val(&on));
                    let tcp = libc::IPPROTO_TCP;
                    syscall!(libc::SYS_setsockopt, fd, tcp, option, on, size)?;
                }
                connect(fd, &SockaddrIn::new(127, 0, 0, 1, 7001))?;
                syscall!(libc::SYS_connect, fd, nowhere.as_ptr(), nowhere.len())?;
                let to = SockaddrIn::new(127, 0, 0, 1, port);
                sendto(fd, b"x", &to, MsgFlags::empty())?;
            }
            // on netlink, of this type
            ["message", kind] => {
                let kind: u16 = kind.parse().map_err(io::Error::other)?;
                let raw = SockProtocol::NetlinkRoute;
                let socket = made(AddressFamily::Netlink, Some(raw))?;
                let mut message = [0u8; 28];
                message[0] = 28;
                message[4..6].copy_from_slice(&kind.to_le_bytes());
                message[6] = 1; // NLM_F_REQUEST
                message[16] = libc::AF_INET as u8;
                nix::unistd::write(&socket, &message)?;
            }
            // as AF_UNSPEC, which the kernel takes for AF_INET
            ["bind-unspec", port] => {
                let port: u16 = port.parse().map_err(io::Error::other)?;
                // SAFETY: integers, all of which may be 0.
                let mut at: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                at.sin_family = libc::AF_UNSPEC as u16;
                at.sin_port = port.to_be();
                // SAFETY: the address is as long as is said.
                unsafe {
                    let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
                    answer(fd)?;
                    let _socket = OwnedFd::from_raw_fd(fd);
                    answer(libc::bind(
                        fd,
                        (&raw const at).cast(),
                        size_of_val(&at) as u32,
                    ))?;
                }
            }
            // the process that the kernel sends a signal to when the descriptor is ready
            ["own", pid] => {
                let (end, _other) = UnixStream::pair()?;
                let pid: i32 = pid.parse().map_err(io::Error::other)?;
                // SAFETY: integers only.
                answer(unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETOWN, pid) })?;
            }
            ["own-itself"] => return self.does(&["own", &std::process::id().to_string()]),
            // the same by its first process, in a PID namespace of its own
            ["own-within", whom] => {
                unshare(CloneFlags::CLONE_NEWPID)?;
                // SAFETY: this process has one thread.
                let child = match unsafe { fork() }? {
                    ForkResult::Child => {
                        let became = within(whom).and_then(|pid| self.does(&["own", &pid]));
                        let number = became.map_err(|e| e.raw_os_error().unwrap_or(255));
                        std::process::exit(number.err().unwrap_or(0));
                    }
                    ForkResult::Parent { child } => child,
                };
                return match waitpid(child, None)? {
                    WaitStatus::Exited(_, 0) => Ok(()),
                    WaitStatus::Exited(_, number) => Err(io::Error::from_raw_os_error(number)),
                    status => Err(io::Error::other(format!("{status:?}"))),
                };
            }
            ["command", ref args @ ..] => {
                let status = Command::new("/payload/tidegate")
                    .args(args)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status()?;
                if !status.success() {
                    return Err(io::Error::other("refused"));
                }
            }
            // a program that has what this one has
            ["exec-read", program] => {
                let file = self
                    .files
                    .last()
                    .ok_or(io::ErrorKind::NotFound)?
                    .try_clone()?;
                // standard input is left open across the execution
                let out = Command::new(program)
                    .args(["inherited", "0"])
                    .stdin(file)
                    .output()?;
                let said = String::from_utf8_lossy(&out.stdout).trim().to_owned();
                return match said.parse() {
                    Ok(number) => Err(io::Error::from_raw_os_error(number)),
                    Err(_) if said == "ok" => Ok(()),
                    Err(_) => Err(io::Error::other(format!("{said} {}", out.status))),
                };
            }
            // on its way to itself, and nowhere else any more
            ["pass"] => {
                let (from, to) = UnixStream::pair()?;
                let file = self.files.pop().ok_or(io::ErrorKind::NotFound)?;
                let fds = [file.as_raw_fd()];
                let what = [ControlMessage::ScmRights(&fds)];
                sendmsg::<()>(
                    from.as_raw_fd(),
                    &[IoSlice::new(b"x")],
                    &what,
                    MsgFlags::empty(),
                    None,
                )?;
                self.passing = Some((from.into(), to.into(), 0));
            }
            // the same by the second message of one call
            ["pass-second"] => {
                let (name, to) = datagrams()?;
                let from = UnixDatagram::unbound()?;
                let file = self.files.pop().ok_or(io::ErrorKind::NotFound)?;
                send_at_once(&from, &[name, name], Some(file.as_raw_fd()))?;
                self.passing = Some((from.into(), to, 1));
            }
            // twice to itself, and to another
            ["send-at-once"] => {
                let (own, _to) = datagrams()?;
                let other = UnixAddr::new(place("datagrams").as_str())?;
                let sent = send_at_once(&UnixDatagram::unbound()?, &[own, own, other], None)?;
                return Err(io::Error::other(format!("{sent} sent")));
            }
            ["take"] => {
                let (_from, to, before) = self.passing.take().ok_or(io::ErrorKind::NotFound)?;
                for _ in 0..before {
                    nix::unistd::read(&to, &mut [0; 1])?;
                }
                let (mut byte, mut space) = ([0; 1], cmsg_space!([i32; 1]));
                let mut into = [IoSliceMut::new(&mut byte)];
                let came = recvmsg::<()>(
                    to.as_raw_fd(),
                    &mut into,
                    Some(&mut space),
                    MsgFlags::empty(),
                )?;
                // an error: the kernel says that it has left something out
                if came.cmsgs().map_or(0, Iterator::count) == 0 {
                    return Err(io::Error::other("nothing came"));
                }
            }
            ["ring"] => {
                let mut params = [0u32; 30];
                // SAFETY: struct io_uring_params has so many bytes.
                let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
                if fd < 0 {
                    return Err(io::Error::last_os_error());
                }
                // SAFETY: the kernel made the descriptor for us alone.
                self.files
                    .insert(0, unsafe { File::from_raw_fd(fd as i32) });
            }
            ["map"] => {
                let file = secret()?;
                // SAFETY: a mapping that nothing else refers to.
                let at = unsafe {
                    mmap(
                        None,
                        PAGE,
                        ProtFlags::PROT_READ,
                        MapFlags::MAP_PRIVATE,
                        &file,
                        0,
                    )
                }?;
                self.mapped = Some(at.as_ptr() as usize);
            }
            // a file of an overlay (scenes/overlays.rs), to be read and perhaps written later
            ["map-merged"] => {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(place("merged/file"))?;
                // SAFETY: as above.
                let at = unsafe {
                    mmap(
                        None,
                        PAGE,
                        ProtFlags::PROT_READ,
                        MapFlags::MAP_SHARED,
                        &file,
                        0,
                    )
                }?;
                self.mapped = Some(at.as_ptr() as usize);
            }
            ["move-about"] => moves_about(self.mapped.ok_or(io::ErrorKind::NotFound)?)?,
            ["protect", how] => {
                let at = self.mapped.ok_or(io::ErrorKind::NotFound)?;
                let how = how.parse().map_err(io::Error::other)?;
                // SAFETY: its own mapping, which nothing refers to.
                answer(unsafe { libc::mprotect(at as *mut libc::c_void, PAGE.get(), how) })?;
            }
            ["execmem"] => {
                let all = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE | ProtFlags::PROT_EXEC;
                // SAFETY: as above; its one page is touched, so that there is memory.
                unsafe {
                    let at = mmap_anonymous(None, PAGE, all, MapFlags::MAP_PRIVATE)?;
                    at.cast::<u8>().write_volatile(0xc3);
                }
            }
            ["connect", address] => self.streams.push(Box::new(TcpStream::connect(address)?)),
            ["connect-many", address, count] => {
                for _ in 0..count.parse().unwrap_or(0) {
                    self.streams.push(Box::new(TcpStream::connect(address)?));
                }
            }
            ["connect-unix"] => self
                .streams
                .push(Box::new(UnixStream::connect(place("socket"))?)),
            ["listen", address] => self.listeners.push(TcpListener::bind(address)?),
            ["accept"] => {
                let (stream, _) = self.listeners[0].accept()?;
                self.streams.push(Box::new(stream));
            }
            ["send"] => self
                .streams
                .last_mut()
                .ok_or(io::ErrorKind::NotFound)?
                .write_all(b"x")?,
            ["receive"] => {
                self.streams
                    .last_mut()
                    .ok_or(io::ErrorKind::NotFound)?
                    .read_exact(&mut [0; 1])?;
            }
            _ => return Err(io::Error::other(format!("what is `{words:?}`?"))),
        }
        Ok(())
    }
}

fn made(family: AddressFamily, raw: Option<SockProtocol>) -> io::Result<OwnedFd> {
    let kind = if raw.is_some() {
        SockType::Raw
    } else {
        SockType::Stream
    };
    Ok(socket(family, kind, SockFlag::empty(), raw)?)
}

/// A socket of its own for datagrams, and the name of that.
fn datagrams() -> io::Result<(UnixAddr, OwnedFd)> {
    let name = UnixAddr::new_abstract(format!("te-live-{}", std::process::id()).as_bytes())?;
    let flags = SockFlag::empty();
    let fd = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
    nix::sys::socket::bind(fd.as_raw_fd(), &name)?;
    Ok((name, fd))
}

/// Gives a file a label.
pub fn relabel(path: &str, context: &str) -> io::Result<()> {
    let (path, value) = (CString::new(path)?, context.as_bytes());
    // SAFETY: both names are terminated, and the value has its length.
    let done = unsafe {
        libc::setxattr(
            path.as_ptr(),
            c"security.selinux".as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    answer(done).map(drop)
}

/// Reads by a descriptor that was left open across the execution.
pub fn inherited(fd: i32) -> io::Result<()> {
    // SAFETY: the parent has left it open for this.
    let file = unsafe { File::from_raw_fd(fd) };
    file.read_at(&mut [0; 1], 0).map(drop)
}
