//! Calls that began before a fall and end after it, of a process that does not fall: what
//! they read is held by no descriptor in sight.

use std::fs;
use std::os::fd::AsRawFd;

use libc::MAP_PRIVATE;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::socket::SockType;
use nix::sys::wait::waitpid;
use nix::unistd::pipe2;

use super::asynchronous::Faults;
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::level;
use crate::scenarios::place::{self, SYSTEM};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, asleep, at, lower, spawn, start, step, tell, told};
use crate::scenarios::sys::{self, Map};
use crate::scenarios::unixsock;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "fifo-waiter-displaced",
        "a low subject opens a FIFO to read, then to write, while a reader waits in open()",
        displaced,
    ),
    bypass(
        "fifo-waiter-forgotten",
        "the FIFO that a reader waits for is touched, which is refused, then written",
        forgotten,
    ),
    bypass(
        "fifo-waiter-writes",
        "who opened a FIFO last is in a stalled write when a low writer comes",
        waiter_writes,
    ),
    bypass(
        "fifo-waiter-left",
        "who waited for a FIFO first waits in another's open, and whoever came second is unseen",
        waiter_left,
    ),
    allow(
        "fifo-crowded",
        "a crowd of low readers waits for a FIFO, and keeps no other writer from its reader",
        crowded,
    ),
    bypass(
        "pipe-read-by-two",
        "a read waits on a descriptor that was closed, while the falling child keeps it open",
        by_two,
    )
    .gap("Calls under way"),
    bypass(
        "call-by-another-number",
        "a thread opens a file by a call whose number has further bits, while another one makes the process fall",
        by_another_number,
    ),
    bypass(
        "core-dump-under-way",
        "memory is written while a process that shares it leaves a core in a system place",
        core_dump,
    ),
    bypass(
        "unix-accept-under-way",
        "accept() waits on a listener that was closed",
        accepts,
    ),
    bypass(
        "unix-receive-under-way",
        "a datagram is waited for on a socket that was closed",
        receives,
    ),
    bypass(
        "process-read-under-way",
        "process_vm_readv is stalled while the process it reads falls",
        reads_process,
    ),
];

/// A process that has read what begins with `l`, which a low subject wrote, must not be at the top.
pub(super) fn not_above(bytes: &[u8]) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        bytes.first() != Some(&b'l') || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// A low subject writes to a FIFO, if it may, and stays until it is let go on. Its readers may have gone
/// while its open waited.
fn writes_low(fifo: &str) -> Outcome {
    let write = match sys::open(fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK) {
        Ok(write) => write,
        Err(e) => {
            refused_any(
                &[Errno::EAGAIN, Errno::EACCES, Errno::ENXIO],
                Err::<(), _>(e),
            )?;
            return step();
        }
    };
    if let Err(e) = sys::put_all(&write, b"l") {
        refused(Errno::EPIPE, Err::<(), _>(e))?;
        drop(write);
        return step();
    }
    step()
}

/// A reader waits in open() for a FIFO; a low subject prepares and writes to it.
fn waits_for_fifo(prepare: impl Fn(&str) -> Outcome) -> Outcome {
    let fifo = place::fifo(SYSTEM, "fifo")?;
    let victim = start(|| {
        step()?;
        let read = sys::reads(&fifo)?;
        not_above(&sys::get(&read)?)
    })?;
    victim.waits()?;
    let low = spawn(Untrusted, || {
        prepare(&fifo)?;
        writes_low(&fifo)
    })?;
    low.stands()?;
    // the reader that the low writer was kept from
    free(&fifo);
    victim.join()?;
    low.join_after_step()
}

fn displaced() -> Outcome {
    let own = std::cell::RefCell::new(None);
    waits_for_fifo(|fifo| {
        let read = sys::open(fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        *own.borrow_mut() = Some(read);
        Ok(())
    })
}

fn forgotten() -> Outcome {
    waits_for_fifo(|fifo| refused(Errno::EPERM, level::touch(fifo)))
}

fn waiter_writes() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let fifo = place::fifo(SYSTEM, "fifo")?;
    let victim = start(|| {
        let fd = sys::both(&high)?;
        let faults = Faults::new()?;
        let (page, raw, name) = (faults.page.0 as usize, fd.as_raw_fd(), fifo.clone());
        let (send, opened) = std::sync::mpsc::channel();
        let waiter = asleep(&[libc::SYS_pwrite64], move || {
            let _ = send.send(sys::open(&name, OFlag::O_RDONLY | OFlag::O_NONBLOCK));
            let _ = syscall!(libc::SYS_pwrite64, raw, page, 4, 0);
        })?;
        let read = opened.recv().unwrap_or(Err(Errno::EIO))?;
        tell("stalled")?;
        told("written")?;
        let got = sys::get(&read).unwrap_or_default();
        faults.fill(got.first().copied().unwrap_or(b'h'))?;
        let _ = waiter.join();
        Ok(())
    })?;
    told("stalled")?;
    let low = spawn(Untrusted, || writes_low(&fifo))?;
    low.stands()?;
    tell("written")?;
    victim.join()?;
    low.join_after_step()?;
    let content = fs::read(&high)?;
    ensure(
        content.first() != Some(&b'l'),
        "low data is in a system file",
    )
}

/// Frees a process that waits to read a FIFO.
fn free(fifo: &str) {
    if let Ok(write) = sys::open(fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK) {
        let _ = sys::put_all(&write, b"h");
    }
}

extern "C" fn interrupt(_: i32) {}

fn waiter_left() -> Outcome {
    let (fifo, other) = (place::fifo(SYSTEM, "fifo")?, place::fifo(SYSTEM, "other")?);
    let first = spawn(Untrusted, || {
        let action = SigAction::new(
            SigHandler::Handler(interrupt),
            SaFlags::empty(),
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGUSR1, &action) }?;
        step()?;
        refused(Errno::EINTR, sys::reads(&fifo))?;
        sys::reads(&other)?;
        Ok(())
    })?;
    first.waits()?;
    let second = start(|| {
        step()?;
        let read = sys::reads(&fifo)?;
        not_above(&sys::get(&read)?)
    })?;
    second.waits()?;
    kill(first.pid, Signal::SIGUSR1)?;
    // in the other one's open
    first.sleeps()?;
    let low = spawn(Untrusted, || writes_low(&fifo))?;
    low.stands()?;
    free(&fifo);
    free(&other);
    second.join()?;
    first.join()?;
    low.join_after_step()
}

fn crowded() -> Outcome {
    for reader_is_last in [false, true] {
        let fifo = place::fifo(SYSTEM, "fifo")?;
        let mut crowd = Vec::new();
        let mut come = || -> Outcome {
            for _ in 0..10 {
                crowd.push(spawn(Untrusted, || {
                    step()?;
                    sys::reads(&fifo)?;
                    Ok(())
                })?);
            }
            crowd.iter().try_for_each(Child::waits)
        };
        if reader_is_last {
            come()?;
        }
        let reader = start(|| {
            step()?;
            let read = sys::reads(&fifo)?;
            sys::get(&read)?;
            level::is(User)
        })?;
        reader.waits()?;
        if !reader_is_last {
            come()?;
        }
        let writer = spawn(User, || {
            let write = allowed(sys::open(&fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK))?;
            allowed(sys::put_all(&write, b"u"))?;
            step()
        })?;
        writer.stands()?;
        reader.join()?;
        for low in crowd {
            low.join()?;
        }
        writer.join_after_step()?;
    }
    Ok(())
}

fn by_two() -> Outcome {
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let fd = read.as_raw_fd();
        let waiting = asleep(&[libc::SYS_read], move || sys::get(&fd))?;
        // SAFETY: the child makes system calls only, none that needs a lock of the other thread.
        let low = start(move || {
            step()?;
            // its own copy of the descriptor to read is still open
            if lower(Untrusted).is_ok() {
                sys::put_all(&write, b"l")?;
            }
            Ok(())
        })?;
        drop(read);
        low.stands()?;
        low.join_after_step()?;
        let got = waiting.join().unwrap_or(Ok(Vec::new()))?;
        not_above(&got)
    })?
    .join()
}

/// The kernel takes the lower half of a register for the number, and shows all of it. Under such a number a call was none.
fn by_another_number() -> Outcome {
    let fifo = place::fifo(SYSTEM, "fifo")?;
    start(|| {
        let name = c(&fifo);
        let opens = asleep(&[libc::SYS_openat], move || {
            let number = libc::SYS_openat | libc::c_long::MIN;
            let flags = libc::O_WRONLY;
            sys::owned(syscall!(number, libc::AT_FDCWD, name.as_ptr(), flags)?)
        })?;
        refused(Errno::EAGAIN, fs::read(place::level_file(Untrusted)))?;
        let _read = sys::reads(&fifo)?;
        let written = allowed(opens.join().unwrap_or(Err(Errno::EIO)))?;
        allowed(sys::put_all(&written, b"h")).map(drop)
    })?
    .join()?;
    Ok(fs::remove_file(&fifo)?)
}

fn accepts() -> Outcome {
    let name = unixsock::abstract_name("server")?;
    let server = start(|| {
        let listener = unixsock::named(SockType::Stream, &name)?;
        let fd = listener.as_raw_fd();
        let waiting = asleep(&[libc::SYS_accept4], move || {
            sys::owned(syscall!(libc::SYS_accept4, fd, 0, 0, libc::SOCK_CLOEXEC)?)
        })?;
        drop(listener);
        tell("waits")?;
        let Ok(connection) = waiting.join().unwrap_or(Err(Errno::EIO)) else {
            return Ok(());
        };
        not_above(&sys::get(&connection)?)
    })?;
    told("waits")?;
    let low = spawn(Untrusted, || {
        match unixsock::connected(SockType::Stream, &name) {
            Ok(client) => {
                sys::put_all(&client, b"l")?;
                // stays
                step()
            }
            Err(e) => {
                refused_any(
                    &[Errno::EAGAIN, Errno::EACCES, Errno::ENXIO],
                    Err::<(), _>(e),
                )?;
                step()
            }
        }
    })?;
    low.stands()?;
    // whose server it is cannot be told, so the top level may be refused, too: then nobody wakes it
    match unixsock::connected(SockType::Stream, &name) {
        Ok(client) => {
            let _ = sys::put_all(&client, b"h");
            server.join()?;
        }
        Err(_) => server.kill()?,
    }
    low.join_after_step()
}

fn receives() -> Outcome {
    let name = unixsock::abstract_name("server")?;
    let server = start(|| {
        let socket = unixsock::named(SockType::Datagram, &name)?;
        let fd = socket.as_raw_fd();
        let waiting = asleep(&[libc::SYS_read], move || sys::get(&fd))?;
        drop(socket);
        tell("waits")?;
        let got = waiting.join().unwrap_or(Ok(Vec::new()))?;
        not_above(&got)
    })?;
    told("waits")?;
    at(Untrusted, || {
        match unixsock::connected(SockType::Datagram, &name)
            .and_then(|client| sys::put_all(&client, b"l"))
        {
            Ok(_) => Ok(()),
            Err(e) => refused_any(
                &[Errno::EAGAIN, Errno::EACCES, Errno::ENXIO],
                Err::<(), _>(e),
            ),
        }
    })?;
    let _ = unixsock::connected(SockType::Datagram, &name).map(|c| sys::put_all(&c, b"h"));
    server.join()
}

fn reads_process() -> Outcome {
    start(|| {
        let memory = Map::anonymous(MAP_PRIVATE)?;
        memory.poke(b'h');
        let child = spawn(System, || {
            // a page of its own, no longer its parent's
            memory.poke(b'c');
            step()?;
            if lower(Untrusted).is_ok() {
                // SAFETY: the page is mapped writable.
                unsafe { memory.0.add(sys::PAGE - 1).write_volatile(b'l') };
            }
            step()
        })?;
        child.stands()?;
        let faults = Faults::new()?;
        let (page, from, pid) = (
            faults.page.0 as usize,
            memory.0 as usize,
            child.pid.as_raw(),
        );
        let reader = asleep(&[libc::SYS_process_vm_readv], move || {
            let (local, remote) = ([page, sys::PAGE], [from, sys::PAGE]);
            syscall!(
                libc::SYS_process_vm_readv,
                pid,
                local.as_ptr(),
                1,
                remote.as_ptr(),
                1,
                0
            )
        })?;
        child.go()?;
        child.stands()?;
        faults.fill(0)?;
        let read = reader.join().unwrap_or(Err(Errno::EIO))?;
        same("bytes read", read, sys::PAGE as i64)?;
        // SAFETY: the page is mapped readable.
        not_above(&[unsafe { faults.page.0.add(sys::PAGE - 1).read_volatile() }])?;
        child.kill()
    })?
    .join()
}

/// Anonymous memory, touched, so that a fork or a dump takes its time.
fn ballast(megabytes: usize) -> Result<*mut u8, Errno> {
    let size = megabytes << 20;
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let at = syscall!(libc::SYS_mmap, 0, size, prot, flags, -1i32, 0)? as *mut u8;
    syscall!(libc::SYS_madvise, at, size, libc::MADV_NOHUGEPAGE)?;
    for page in (0..size).step_by(sys::PAGE) {
        // SAFETY: within the mapping, which stays.
        unsafe { at.add(page).write_volatile(b'h') };
    }
    Ok(at)
}

fn core_dump() -> Outcome {
    use nix::sched::{CloneFlags, clone};
    let dir = place::directory(SYSTEM, "cores")?;
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    fs::write("/proc/sys/kernel/core_pattern", "core")?;
    let played = start(|| {
        let infinite = libc::RLIM_INFINITY;
        nix::sys::resource::setrlimit(
            nix::sys::resource::Resource::RLIMIT_CORE,
            infinite,
            infinite,
        )?;
        std::env::set_current_dir(&dir)?;
        let memory = ballast(64)? as usize;
        let mut stack = vec![0u8; 256 * 1024];
        let run = Box::new(|| {
            // SAFETY: ends this process by a fault, as is meant.
            unsafe { std::ptr::dangling_mut::<u8>().write_volatile(0) };
            0
        });
        // SAFETY: the stack lives longer than the child, which ends at once.
        let dumps = unsafe { clone(run, &mut stack, CloneFlags::CLONE_VM, Some(libc::SIGCHLD)) }?;
        while !fs::exists(format!("{dir}/core"))? {
            std::hint::spin_loop();
        }
        if lower(Untrusted).is_ok() {
            let last = memory as *mut u8;
            // SAFETY: within the mapping.
            unsafe {
                last.add((64 << 20) - sys::PAGE)
                    .cast::<[u8; 8]>()
                    .write_volatile(*b"LOWDATA!")
            };
        }
        waitpid(dumps, None)?;
        Ok(())
    })?
    .join();
    fs::write("/proc/sys/kernel/core_pattern", pattern)?;
    let core = fs::read_dir(&dir)?.next();
    if let Some(core) = core {
        let bytes = fs::read(core?.path())?;
        ensure(
            !bytes
                .chunks(sys::PAGE)
                .any(|page| page.starts_with(b"LOWDATA!")),
            "low data is in a core at the top",
        )?;
    }
    played
}
