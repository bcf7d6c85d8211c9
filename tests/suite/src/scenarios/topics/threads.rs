//! Subjects of several tasks: whoever shares memory or descriptors has one level.

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::level;
use crate::scenarios::place::{self, AREA, LOW, SYSTEM, USER, path};
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Child, Level, asleep, at, lower, spawn, start, status_of, step};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow("thread-own", "threads at work on their level's files", own),
    allow(
        "thread-waiting",
        "threads that wait do not keep another from falling",
        waiting,
    ),
    allow("fork-apart", "after fork, who falls falls alone", apart),
    allow(
        "clone-files-unshared",
        "so does who has unshared its descriptors",
        unshared,
    ),
    bypass(
        "fork-thousands",
        "thousands of children at once: each has its parent's level, and falls alone",
        thousands,
    )
    .slow(),
    bypass(
        "fork-in-turns",
        "children of a low process and of a high one, whose tasks lie where the others' lay",
        in_turns,
    )
    .slow(),
    allow(
        "threads-fall-together",
        "threads that read low data at the same moment",
        together,
    ),
    bypass(
        "thread-reads-before-refusal",
        "one thread falls, and is refused in the end; another has read low data meanwhile",
        before_refusal,
    ),
    bypass(
        "thread-sibling",
        "one thread reads low data, another writes",
        sibling,
    ),
    bypass(
        "thread-write-loop",
        "one thread writes without a pause while another falls",
        write_loop,
    ),
    bypass(
        "thread-open-loop",
        "one thread opens high files without a pause",
        open_loop,
    ),
    bypass(
        "thread-fork-loop",
        "children are born while their parent falls",
        fork_loop,
    ),
    bypass(
        "thread-exec",
        "a thread executes a program while another falls",
        exec_loop,
    ),
    bypass(
        "vfork-shared-memory",
        "a child that shares its parent's memory falls",
        vfork,
    ),
    bypass(
        "clone-files",
        "a child that shares its parent's descriptors falls",
        clone_files,
    ),
    bypass(
        "clone-memory",
        "one that shares memory and not descriptors",
        clone_memory,
    ),
    bypass(
        "clone-parent",
        "one that hides as a sibling, or in other namespaces",
        clone_parent,
    ),
];

fn own() -> Outcome {
    for level in Level::ALL {
        let dir = path(AREA, level.name());
        at(level, || {
            fs::create_dir(&dir)?;
            std::thread::scope(|threads| {
                let workers: Vec<_> = (0..4)
                    .map(|n| {
                        let file = format!("{dir}/{n}");
                        threads.spawn(move || {
                            (0..10).try_for_each(|_| {
                                fs::write(&file, "x").and_then(|()| fs::read(&file).map(drop))
                            })
                        })
                    })
                    .collect();
                workers
                    .into_iter()
                    .try_for_each(|w| w.join().unwrap_or(Ok(())))
            })?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn waiting() -> Outcome {
    let low = place::file(LOW, "low")?;
    at(User, || {
        let (socket, _peer) = crate::scenarios::unixsock::pair(nix::sys::socket::SockType::Stream)?;
        let (read, _write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let raw = (socket.as_raw_fd(), read.as_raw_fd());
        // threads as a server has them: none comes back by itself
        asleep(&[libc::SYS_read], move || sys::get(&raw.1))?;
        let receives = move || syscall!(libc::SYS_recvfrom, raw.0, 0, 0, 0, 0, 0);
        asleep(&[libc::SYS_recvfrom], receives)?;
        asleep(&[libc::SYS_nanosleep, libc::SYS_clock_nanosleep], || {
            std::thread::sleep(2 * PATIENCE);
        })?;
        asleep(&[libc::SYS_poll], || syscall!(libc::SYS_poll, 0, 0, -1))?;
        asleep(&[libc::SYS_futex], std::thread::park)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)
    })
}

fn together() -> Outcome {
    let low = place::file(LOW, "low")?;
    for _ in 0..5 {
        at(User, || {
            let barrier = std::sync::Barrier::new(4);
            let read = || {
                barrier.wait();
                fs::read(&low)
            };
            let all = std::thread::scope(|threads| {
                let readers: Vec<_> = (0..4).map(|_| threads.spawn(read)).collect();
                readers
                    .into_iter()
                    .map(|r| r.join().ok())
                    .collect::<Vec<_>>()
            });
            for one in all {
                allowed(one.ok_or_else(|| Failed::because("panicked"))?)?;
            }
            level::is(Untrusted)
        })?;
    }
    Ok(())
}

fn before_refusal() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::both(&high)?;
        // what nothing can revoke: every fall is refused
        let _map = sys::Map::of(&fd, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED)?;
        let done = AtomicBool::new(false);
        let (read, refusals) = std::thread::scope(|threads| {
            let reader = threads.spawn(|| {
                let mut read = 0;
                while !done.load(Ordering::SeqCst) {
                    read += u32::from(fs::read(&low).is_ok());
                }
                read
            });
            let refusals = (0..300).filter(|_| fs::read(&low).is_err()).count();
            done.store(true, Ordering::SeqCst);
            (reader.join().unwrap_or(0), refusals)
        });
        ensure(refusals > 0, "no fall was refused")?;
        ensure(
            read == 0 && refusals == 300,
            "low data was read while a fall was being refused",
        )
    })?
    .join()
}

fn apart() -> Outcome {
    let user = place::file(USER, "user")?;
    at(User, || {
        let fd = sys::both(&user)?;
        start(|| lower(Untrusted))?.join()?;
        allowed(sys::put(&fd))?;
        level::is(User)
    })
}

/// A child that shares what the flags say, as far as it needs no stack of its own.
pub(super) fn clone_here(flags: i32, part: impl FnOnce() -> Outcome) -> Outcome<Pid> {
    let pid = syscall!(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0)?;
    if pid == 0 {
        crate::scenarios::subject::finish(part);
    }
    Ok(Pid::from_raw(pid as i32))
}

/// Children that wait for a signal have passed no hook yet.
fn thousands() -> Outcome {
    at(User, || {
        let go = SigSet::from_iter([Signal::SIGUSR1]);
        go.thread_block()?;
        let mut children = Vec::new();
        for n in 0..2000 {
            children.push(start(|| {
                go.wait()?;
                same("a child's level", level::by_writing()?, User)?;
                if n % 100 != 0 {
                    return Ok(());
                }
                start(|| level::is(User))?.join()?;
                lower(Untrusted)?;
                start(|| level::is(Untrusted))?.join()
            })?);
        }
        for child in children {
            kill(child.pid, Signal::SIGUSR1)?;
            child.join()?;
        }
        level::is(User)
    })
}

/// On one processor, so that the same memory serves the tasks of both.
fn in_turns() -> Outcome {
    let mut first = CpuSet::new();
    first.set(0)?;
    sched_setaffinity(Pid::this(), &first)?;
    let high = place::file(SYSTEM, "turns")?;
    let low = spawn(Untrusted, || {
        for _ in 0..100 {
            step()?;
            for writes in [false, true, false, true] {
                start(|| match writes {
                    true => refused(Errno::EPERM, sys::both(&high)),
                    false => Ok(()),
                })?
                .join()?;
            }
        }
        Ok(())
    })?;
    for _ in 0..100 {
        low.stands()?;
        low.go()?;
        for _ in 0..8 {
            start(|| allowed(sys::both(&high)).map(drop))?.join()?;
        }
    }
    low.join()?;
    Ok(fs::remove_file(&high)?)
}

fn unshared() -> Outcome {
    let child = clone_here(libc::CLONE_FILES, || {
        unshare(CloneFlags::CLONE_FILES)?;
        lower(Untrusted)
    })?;
    waitpid(child, None)?;
    level::is(System)
}

fn sibling() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    start(|| {
        let fd = sys::both(&high)?;
        let reader = std::thread::scope(|threads| threads.spawn(|| fs::read(&low).is_ok()).join());
        ensure(reader.unwrap_or(false), "the demotion was refused")?;
        refused(Errno::EIO, sys::put(&fd))?;
        refused(Errno::EPERM, sys::writes(&high))?;
        level::is(Untrusted)
    })?
    .join()?;
    same("the content", fs::read_to_string(&high)?.as_str(), "high")
}

/// Whether a thread has read low data, and how often another has asked.
#[derive(Default)]
struct Fall {
    has_come: AtomicBool,
    asked: AtomicU32,
}

impl Fall {
    fn has_come(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.has_come.load(Ordering::SeqCst)
    }
}

/// One thread does something to a system file without a pause, until it hears
/// that another has read low data; then what it does must be refused at once. It is
/// given what it opened before, by `prepare`.
fn against<T: Sync>(
    prepare: impl Fn() -> Outcome<T>,
    busy: impl Fn(&T, &Fall) -> Outcome + Sync,
) -> Outcome {
    let low = place::file(LOW, "low")?;
    for _ in 0..3 {
        start(|| {
            let fall = Fall::default();
            let prepared = prepare()?;
            std::thread::scope(|threads| {
                let busy = threads.spawn(|| busy(&prepared, &fall));
                soon(|| Ok(fall.asked.load(Ordering::SeqCst) > 20 || busy.is_finished()))?;
                for _ in 0..10 {
                    // it may be refused while the other is at it
                    if fs::read(&low).is_ok() {
                        break;
                    }
                }
                fall.has_come.store(true, Ordering::SeqCst);
                let after = busy
                    .join()
                    .unwrap_or_else(|_| Err(Failed::because("panicked")));
                if level::by_writing()? == System {
                    Ok(())
                } else {
                    after
                }
            })
        })?
        .join()?;
    }
    Ok(())
}

fn write_loop() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    against(
        || Ok(sys::both(&high)?),
        |fd, fall| loop {
            let fell = fall.has_come();
            let wrote = syscall!(libc::SYS_pwrite64, fd.as_raw_fd(), b"x".as_ptr(), 1, 0);
            if fell {
                return refused(Errno::EIO, wrote);
            }
        },
    )
}

fn open_loop() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    against(
        || Ok(()),
        |(), fall| loop {
            let fell = fall.has_come();
            let opened = sys::writes(&high);
            if !fell
                && let Ok(fd) = &opened
                && fall.has_come()
            {
                // opened before, used after
                return refused_any(&[Errno::EIO], sys::put(fd));
            }
            if fell {
                return refused(Errno::EPERM, opened);
            }
        },
    )
}

fn fork_loop() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let low = place::file(LOW, "low")?;
    start(|| {
        let fallen = AtomicBool::new(false);
        let tried = AtomicU32::new(0);
        std::thread::scope(|threads| {
            let forks = threads.spawn(|| {
                while !fallen.load(Ordering::SeqCst) {
                    // a child lives on: it waits until its parent has long fallen
                    let Ok(child) = clone_here(0, || {
                        std::thread::sleep(Duration::from_millis(300));
                        if level::by_writing()? == System {
                            // born before, and apart: then it may write
                            return Ok(());
                        }
                        refused(Errno::EPERM, sys::writes(&high))
                    }) else {
                        continue;
                    };
                    let _ = child;
                    tried.fetch_add(1, Ordering::SeqCst);
                }
                // this one was born after the fall
                let child = clone_here(0, || refused(Errno::EPERM, sys::writes(&high)))?;
                Child { pid: child }.join()
            });
            soon(|| Ok(tried.load(Ordering::SeqCst) > 2 || forks.is_finished()))?;
            let fell = (0..20).any(|_| fs::read(&low).is_ok());
            fallen.store(true, Ordering::SeqCst);
            let after = forks
                .join()
                .unwrap_or_else(|_| Err(Failed::because("panicked")));
            if fell { after } else { level::is(System) }
        })
    })?
    .join()
}

fn exec_loop() -> Outcome {
    // an exec of one thread ends the others; its program has the level they had
    let low = place::file(LOW, "low")?;
    for _ in 0..3 {
        let child = start(|| {
            let low = low.clone();
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                while fs::read(&low).is_err() {}
                let _ = tell.send(());
                loop {
                    let _ = fs::read(&low);
                }
            });
            let program = c("/usr/bin/dash");
            told.recv_timeout(PATIENCE)
                .map_err(|e| Failed::because(format_args!("nobody fell: {e}")))?;
            nix::unistd::execv(&program, &[&program, &c("-c"), &c(super::exec::TELL)])?;
            Ok(())
        })?;
        match child.status()? {
            nix::sys::wait::WaitStatus::Exited(_, code) => {
                same(
                    "its level",
                    crate::scenarios::helper::level_of_status(code),
                    Some(Untrusted),
                )?;
            }
            other => return Err(Failed::because(format_args!("{other:?}"))),
        }
    }
    Ok(())
}

/// What a child with a stack of its own does.
extern "C" fn begin<F: Fn() -> Outcome>(part: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `clone_with` keeps it until the child has ended.
    let part = unsafe { &*part.cast::<F>() };
    status_of(part)
}

/// A child with a stack of its own. nix's clone() drops the closure as it returns, and the child of shared memory may
/// not have begun by then.
fn clone_with<F: Fn() -> Outcome>(flags: CloneFlags, part: F) -> Outcome {
    let mut stack = vec![0u128; 16 * 1024];
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the stack and the closure live until the child has ended: vfork waits, and any other caller waits
    // for the child before it returns.
    let child = unsafe {
        libc::clone(
            begin::<F>,
            top.cast(),
            flags.bits() | libc::SIGCHLD,
            (&raw const part).cast_mut().cast(),
        )
    };
    let pid = Pid::from_raw(Errno::result(child)?);
    Child { pid }.join()
}

fn shares(flags: CloneFlags, falls_with_it: bool) -> Outcome {
    start(|| {
        let fd = sys::both(place::file(SYSTEM, "high")?)?;
        clone_with(flags, || lower(Untrusted))?;
        if falls_with_it {
            level::is(Untrusted)?;
            return refused(Errno::EIO, sys::put(&fd));
        }
        level::is(System)
    })?
    .join()?;
    fs::remove_file(path(SYSTEM, "high"))?;
    Ok(())
}

fn vfork() -> Outcome {
    shares(CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK, true)?;
    shares(CloneFlags::CLONE_VFORK, false)
}

fn clone_files() -> Outcome {
    shares(CloneFlags::CLONE_FILES, true)?;
    // and the other way: the parent falls, the child has its descriptors
    start(|| {
        let high = place::file(SYSTEM, "other")?;
        let fallen = path(place::TMPFS_LOW, "fallen");
        let child = clone_here(libc::CLONE_FILES, || {
            while !fs::exists(&fallen)? {
                std::thread::sleep(Duration::from_millis(5));
            }
            refused(Errno::EPERM, sys::writes(&high))
        })?;
        lower(Untrusted)?;
        fs::write(&fallen, "")?;
        Child { pid: child }.join()
    })?
    .join()
}

fn clone_memory() -> Outcome {
    shares(CloneFlags::CLONE_VM, true)?;
    shares(CloneFlags::CLONE_VM | CloneFlags::CLONE_FS, true)?;
    shares(CloneFlags::CLONE_VM | CloneFlags::CLONE_FILES, true)
}

fn clone_parent() -> Outcome {
    let new = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    start(|| {
        lower(Untrusted)?;
        let child = clone_here(new.bits(), || {
            refused(Errno::EPERM, sys::writes(place::PROBES[0].1))?;
            refused(Errno::EPERM, sys::writes(place::PROBES[1].1))
        })?;
        Child { pid: child }.join()
    })?
    .join()?;
    // a container's processes fall like any other
    let low = place::file(LOW, "low")?;
    start(|| {
        let child = clone_here(new.bits(), || {
            allowed(fs::read(&low))?;
            same("its level", level::by_writing()?, Untrusted)
        })?;
        Child { pid: child }.join()?;
        level::is(System)
    })?
    .join()
}
