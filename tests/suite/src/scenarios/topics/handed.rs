//! What is handed to a lower subject, or lent by one, with a door to what is above it: handlers of page faults, pages
//! that others map, sockets, pages that lie in a socket.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::SockType::{Datagram, Stream};
use nix::unistd::{Gid, Uid, pipe2};

use super::asynchronous::{Faults, fill_by};
use crate::scenarios::check::{Outcome, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, TMPFS, TMPFS_LOW, VAULT, path};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, lower, spawn, start, step};
use crate::scenarios::sys::{self, Map};
use crate::scenarios::unixsock::{abstract_name, fresh, named, pair, receive, send};
use crate::sys::syscall;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "uffd-passed-down",
        "a low subject is handed a userfaultfd, and fills in its maker's memory",
        faults_passed,
    ),
    bypass(
        "perf-page-passed-down",
        "a low subject is handed a performance counter, and writes the page that its maker has mapped",
        counter_passed,
    ),
    bypass(
        "bpf-map-passed-down",
        "a low subject is handed a map of BPF that can be mapped, and writes it",
        bpf_map_passed,
    ),
    bypass(
        "fanotify-passed-down",
        "a low subject is handed a fanotify instance, which opens files for who reads it",
        events_passed,
    ),
    bypass(
        "fifo-lownoopen-passed",
        "a low subject is handed a FIFO that by its place it may not open",
        fifo_passed,
    ),
    bypass(
        "proc-mem-passed",
        "a process's memory is on its way to a higher one, and the process falls meanwhile",
        memory_passed,
    ),
    bypass(
        "splice-lent-socket",
        "a page of memory that lies in a Unix socket is changed after the fall: lent by splice",
        spliced,
    ),
    bypass("sendfile-lent-socket", "the same, lent by sendfile", sent),
    bypass(
        "vmsplice-lent-socket",
        "the same of a process's own memory, lent by vmsplice",
        vmspliced,
    ),
    bypass(
        "vmsplice-lent-shared",
        "the same of memory that is mapped to be shared",
        vmspliced_shared,
    ),
    bypass(
        "tee-lent-socket",
        "the same of a memfd, by the pipe that tee has filled",
        teed,
    ),
    bypass(
        "socket-owner-shared",
        "root that fell gives away a network socket that it shares with a higher process",
        owner_shared,
    ),
    bypass(
        "socket-mode-shared",
        "the same of a socket's mode",
        mode_shared,
    ),
    bypass(
        "socket-owner-passed",
        "the same of a socket that it was handed",
        owner_passed,
    ),
];

/// A subject that has got what begins with `l`, which a low subject wrote, must not be at the top.
fn not_above(byte: u8) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        byte != b'l' || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// Has a process at the top make something and hand its descriptor to a low one, which uses it if it arrives. Then its
/// maker looks at it, knowing whether it was used.
fn passed_down<M>(
    make: impl FnOnce() -> Outcome<M>,
    descriptor: impl FnOnce(&M) -> i32,
    uses: impl FnOnce(&OwnedFd) -> Outcome,
    then: impl FnOnce(&M, bool) -> Outcome,
) -> Outcome {
    let (name, used) = (abstract_name("taker")?, path(TMPFS_LOW, "used"));
    let low = spawn(Untrusted, || {
        let socket = named(Datagram, &name)?;
        step()?;
        let got = receive(&socket).unwrap_or_default();
        if let Some(fd) = got.fds.first()
            && uses(fd).is_ok()
        {
            fs::write(&used, "")?;
        }
        Ok(())
    })?;
    low.stands()?;
    let maker = start(|| {
        let made = make()?;
        let sent = send(&fresh(Datagram)?, Some(&name), &[descriptor(&made)]);
        if sent.is_err() {
            refused_any(&[Errno::EPERM, Errno::EACCES, Errno::EAGAIN], sent)?;
        }
        step()?;
        then(&made, fs::exists(&used)?)
    })?;
    maker.stands()?;
    low.join_after_step()?;
    maker.join_after_step()
}

fn faults_passed() -> Outcome {
    let address = path(TMPFS, "address");
    passed_down(
        || {
            let faults = Faults::new()?;
            fs::write(&address, format!("{}", faults.page.0 as u64))?;
            Ok(faults)
        },
        |faults| faults.fd.as_raw_fd(),
        |fd| {
            let page = fs::read_to_string(&address)?.parse().unwrap_or(0);
            Ok(fill_by(fd, page, b'l')?)
        },
        // what was not filled in would be waited for
        |faults, filled| not_above(if filled { faults.page.peek() } else { b'h' }),
    )
}

/// Where in a page the low one writes, and its maker reads.
const WORD: usize = 2048;

fn writes_page(fd: &OwnedFd) -> Outcome {
    let page = Map::of(fd, PROT_READ | PROT_WRITE, MAP_SHARED)?;
    // SAFETY: the page is mapped writable.
    unsafe { page.0.add(WORD).write_volatile(b'l') };
    Ok(())
}

/// A page that all who have its descriptor may map.
fn page_passed(open: impl FnOnce() -> Result<OwnedFd, Errno>) -> Outcome {
    passed_down(
        || {
            let fd = open()?;
            let page = Map::of(&fd, PROT_READ | PROT_WRITE, MAP_SHARED)?;
            Ok((fd, page))
        },
        |(fd, _)| fd.as_raw_fd(),
        writes_page,
        // SAFETY: the page is mapped readable.
        |(_, page), _| not_above(unsafe { page.0.add(WORD).read_volatile() }),
    )
}

fn counter_passed() -> Outcome {
    page_passed(|| {
        // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY
        let mut attributes = [0u64; 16];
        attributes[0] = 1 | 128 << 32;
        attributes[1] = 9;
        sys::owned(syscall!(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            0,
            -1i32,
            -1i32,
            0
        )?)
    })
}

fn bpf_map_passed() -> Outcome {
    /// BPF_F_MMAPABLE
    const MAPPED: u32 = 1 << 10;
    page_passed(|| {
        // BPF_MAP_CREATE of an array of one page
        let mut attributes = [0u32; 32];
        attributes[..5].copy_from_slice(&[2, 4, sys::PAGE as u32, 1, MAPPED]);
        sys::owned(syscall!(libc::SYS_bpf, 0, attributes.as_mut_ptr(), 128)?)
    })
}

/// It must not arrive.
fn is_kept(arrived: bool) -> Outcome {
    ensure(!arrived, "it was handed to a lower subject")
}

fn events_passed() -> Outcome {
    /// FAN_CLASS_CONTENT, FAN_CLOEXEC
    const DECIDES: i32 = 4 | 1;
    passed_down(
        || Ok(sys::owned(syscall!(libc::SYS_fanotify_init, DECIDES, 0)?)?),
        AsRawFd::as_raw_fd,
        |_| Ok(()),
        |_, arrived| is_kept(arrived),
    )
}

fn fifo_passed() -> Outcome {
    let fifo = place::fifo(VAULT, "fifo")?;
    passed_down(
        || Ok(sys::open(&fifo, OFlag::O_RDWR | OFlag::O_NONBLOCK)?),
        AsRawFd::as_raw_fd,
        |_| Ok(()),
        |_, arrived| is_kept(arrived),
    )
}

fn memory_passed() -> Outcome {
    start(|| {
        let page = Map::anonymous(MAP_PRIVATE)?;
        page.poke(b'h');
        // it has a copy of the page, at the same address
        let other = start(|| {
            step()?;
            if lower(Untrusted).is_ok() {
                page.poke(b'l');
            }
            step()
        })?;
        other.stands()?;
        let (to, from) = pair(Datagram)?;
        let memory = sys::reads(format!("/proc/{}/mem", other.pid))?;
        send(&to, None, &[memory.as_raw_fd()])?;
        drop(memory);
        other.go()?;
        other.stands()?;
        let mut byte = [0u8];
        if let Some(memory) = receive(&from).unwrap_or_default().fds.first() {
            let (fd, address) = (memory.as_raw_fd(), page.address());
            // it may be refused
            let _ = syscall!(libc::SYS_pread64, fd, byte.as_mut_ptr(), 1, address);
        }
        not_above(byte[0])?;
        other.kill()
    })?
    .join()
}

/// A process lends memory to a Unix socket, closes that, falls, and changes the memory; then the other end is read.
fn lent<M>(
    lend: impl FnOnce(&OwnedFd) -> Outcome<Option<M>>,
    change: impl FnOnce(&M) -> Outcome,
) -> Outcome {
    start(|| {
        let (to, from) = pair(Stream)?;
        start(|| {
            // it may be refused: then a sender that has nothing to lend copies
            let Some(memory) = lend(&to)? else {
                return Ok(());
            };
            for end in [&to, &from] {
                syscall!(libc::SYS_close, end.as_raw_fd())?;
            }
            // it may be refused
            if lower(Untrusted).is_ok() {
                change(&memory)?;
            }
            Ok(())
        })?
        .join()?;
        // where nothing was lent there is an end to be read
        drop(to);
        not_above(sys::get(&from)?.first().copied().unwrap_or(0))
    })?
    .join()
}

fn memory() -> Result<OwnedFd, Errno> {
    let memory = sys::memfd(0)?;
    sys::put_all(&memory, b"high")?;
    Ok(memory)
}

fn change(memory: &OwnedFd) -> Outcome {
    syscall!(
        libc::SYS_pwrite64,
        memory.as_raw_fd(),
        b"low!".as_ptr(),
        4,
        0
    )?;
    Ok(())
}

/// Moves what is in a pipe to a socket. False: it is refused as where there is nothing to lend.
fn moved(from: &OwnedFd, to: &OwnedFd) -> Outcome<bool> {
    lends(syscall!(
        libc::SYS_splice,
        from.as_raw_fd(),
        0,
        to.as_raw_fd(),
        0,
        4,
        0
    ))
}

fn lends(tried: Result<i64, Errno>) -> Outcome<bool> {
    match tried {
        Err(Errno::EINVAL) => Ok(false),
        tried => Ok(tried.map(|_| true)?),
    }
}

fn spliced() -> Outcome {
    lent(
        |to| {
            let (memory, mut offset) = (memory()?, 0u64);
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            syscall!(
                libc::SYS_splice,
                memory.as_raw_fd(),
                &raw mut offset,
                write.as_raw_fd(),
                0,
                4,
                0
            )?;
            Ok(moved(&read, to)?.then_some(memory))
        },
        change,
    )
}

fn sent() -> Outcome {
    lent(
        |to| {
            let (memory, mut offset) = (memory()?, 0u64);
            let (from, to) = (memory.as_raw_fd(), to.as_raw_fd());
            let tried = syscall!(libc::SYS_sendfile, to, from, &raw mut offset, 4);
            Ok(lends(tried)?.then_some(memory))
        },
        change,
    )
}

fn vmspliced() -> Outcome {
    vmspliced_of(MAP_PRIVATE)
}

fn vmspliced_shared() -> Outcome {
    vmspliced_of(MAP_SHARED)
}

fn vmspliced_of(kind: i32) -> Outcome {
    lent(
        |to| {
            let page = Map::anonymous(kind)?;
            page.poke(b'h');
            let part = libc::iovec {
                iov_base: page.address(),
                iov_len: 4,
            };
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            syscall!(libc::SYS_vmsplice, write.as_raw_fd(), &raw const part, 1, 0)?;
            Ok(moved(&read, to)?.then_some(page))
        },
        |page| {
            page.poke(b'l');
            Ok(())
        },
    )
}

fn teed() -> Outcome {
    lent(
        |to| {
            let (memory, mut offset) = (memory()?, 0u64);
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            syscall!(
                libc::SYS_splice,
                memory.as_raw_fd(),
                &raw mut offset,
                write.as_raw_fd(),
                0,
                4,
                0
            )?;
            let (other, filled) = pipe2(OFlag::O_CLOEXEC)?;
            syscall!(libc::SYS_tee, read.as_raw_fd(), filled.as_raw_fd(), 4, 0)?;
            Ok(moved(&other, to)?.then_some(memory))
        },
        change,
    )
}

fn give_away(socket: impl AsFd) -> Result<(), Errno> {
    nix::unistd::fchown(socket, Some(Uid::from_raw(1000)), Some(Gid::from_raw(1000)))
}

fn owner_shared() -> Outcome {
    start(|| {
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        start(|| {
            lower(Untrusted)?;
            refused(Errno::EPERM, give_away(&datagrams))?;
            refused(Errno::EPERM, give_away(&listener))
        })?
        .join()
    })?
    .join()
}

fn mode_shared() -> Outcome {
    start(|| {
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        start(|| {
            lower(Untrusted)?;
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            refused(Errno::EPERM, nix::sys::stat::fchmod(&datagrams, mode))
        })?
        .join()
    })?
    .join()
}

fn owner_passed() -> Outcome {
    passed_down(
        || Ok(UdpSocket::bind("127.0.0.1:0")?),
        AsRawFd::as_raw_fd,
        |fd| Ok(give_away(fd)?),
        |socket, _| {
            let owner = nix::sys::stat::fstat(socket)?.st_uid;
            same("the socket's owner", owner, 0)
        },
    )
}
