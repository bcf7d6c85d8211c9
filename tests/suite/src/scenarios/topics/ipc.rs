//! System V IPC, POSIX queues and shared memory, keys.

use std::fs;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{Failed, Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::ipcs::{Queue, Segment, Semaphores, mq_open, mq_receive, mq_send};
use crate::scenarios::level;
use crate::scenarios::place::{self, path};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, become_alice, falling, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::{c, syscall};

use Level::{System, Untrusted, User};

const ROW: &str = "System V IPC";

/// What the kernel makes of any refusal of a System V object.
const BUSY: Errno = Errno::EACCES;

/// ipcperms() is asked with the hook's number and the call returns its own.
const NO: &[Errno] = &[Errno::EPERM, Errno::EACCES];

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "ipc-sysv-own",
        "segments, queues and semaphores of one's own level",
        sysv_own,
    )
    .of(ROW),
    allow(
        "ipc-sysv-read-up",
        "a lower subject reads a higher segment",
        read_up,
    )
    .of(ROW),
    allow(
        "ipc-posix-own",
        "POSIX queues and shared memory of one's own level",
        posix_own,
    )
    .of(ROW),
    allow("keys-own", "each level keeps keys of its own", keys_own)
        .of("changing or invalidating a key"),
    deny(
        "ipc-shm",
        "a segment: attached to read it is observed, to write it is modified",
        shm,
    )
    .of(ROW),
    deny(
        "ipc-msg",
        "a queue: sending modifies, receiving observes",
        msg,
    )
    .of(ROW),
    deny(
        "ipc-sem",
        "semaphores: changing modifies, looking observes",
        sem,
    )
    .of(ROW),
    deny(
        "ipc-control",
        "removing and changing what is higher",
        control,
    )
    .of(ROW),
    deny(
        "ipc-posix-queue",
        "a POSIX queue: opened to send modifies, to receive observes",
        posix_queue,
    )
    .of(ROW),
    deny(
        "ipc-posix-shm",
        "POSIX shared memory is a file of its creator's level",
        posix_shm,
    )
    .of(ROW),
    deny(
        "keys-of-others",
        "root from below changes no other user's keys",
        keys_of_others,
    )
    .of("changing or invalidating a key"),
    bypass(
        "shm-attached-before",
        "a segment attached to write, then the fall",
        shm_before,
    ),
    bypass(
        "shm-inherited",
        "a segment that a child inherits, which then falls",
        shm_inherited,
    ),
    bypass(
        "queue-opened-before",
        "a POSIX queue opened to send before the fall",
        queue_before,
    ),
    bypass(
        "queue-filled-before",
        "messages that a low subject left in a higher queue's place",
        queue_recreated,
    ),
    bypass(
        "shm-exec-key",
        "a segment found by its key after its creator has gone",
        shm_by_key,
    ),
];

fn sysv_own() -> Outcome {
    for level in Level::ALL {
        at(level, || {
            let segment = Segment::make(4096)?;
            let memory = segment.attach(false)?;
            memory.poke(3);
            same("the memory", segment.attach(true)?.peek(), 3)?;
            let queue = Queue::make()?;
            queue.send()?;
            queue.receive()?;
            let semaphores = Semaphores::make()?;
            semaphores.add(1)?;
            same("the semaphore", semaphores.value()?, 1)?;
            level::is(level)?;
            segment.remove()?;
            queue.remove()?;
            Ok(semaphores.remove()?)
        })?;
    }
    Ok(())
}

fn read_up() -> Outcome {
    let segment = Segment::make(4096)?;
    segment.attach(false)?.poke(9);
    at(Untrusted, || {
        same("the memory", allowed(segment.attach(true))?.peek(), 9)?;
        level::is(Untrusted)
    })?;
    Ok(segment.remove()?)
}

fn posix_own() -> Outcome {
    for level in Level::ALL {
        let name = format!("{}-{}", place::scenario(), level.name());
        at(level, || {
            let queue = mq_open(&name, OFlag::O_RDWR | OFlag::O_CREAT)?;
            mq_send(&queue)?;
            mq_receive(&queue)?;
            let file = format!("/dev/shm/{name}");
            fs::write(&file, [0u8; 4096])?;
            let shared = libc::PROT_READ | libc::PROT_WRITE;
            sys::Map::of(&sys::both(&file)?, shared, libc::MAP_SHARED)?.poke(1);
            fs::remove_file(&file)?;
            level::is(level)
        })?;
    }
    Ok(())
}

fn shm() -> Outcome {
    let segment = Segment::make(4096)?;
    for level in Level::LOWER {
        at(level, || refused_any(NO, segment.attach(false)))?;
    }
    segment.remove()?;
    let low = spawn(Untrusted, || {
        Segment::keyed(0x5c01, 4096)?.attach(false)?.poke(1);
        step()
    })?;
    low.stands()?;
    for read_only in [true, false] {
        at(User, || {
            let memory = falling(BUSY, || Segment::find(0x5c01)?.attach(read_only))?;
            same("the memory", memory.peek(), 1)?;
            level::is(Untrusted)
        })?;
    }
    low.kill()?;
    Ok(Segment::find(0x5c01)?.remove()?)
}

fn msg() -> Outcome {
    let queue = Queue::make()?;
    for level in Level::LOWER {
        at(level, || refused_any(NO, queue.send()))?;
    }
    queue.remove()?;
    let low = spawn(Untrusted, || {
        Queue::keyed(0x5c02)?.send()?;
        step()
    })?;
    low.stands()?;
    at(User, || {
        falling(BUSY, || Queue::find(0x5c02)?.receive())?;
        level::is(Untrusted)
    })?;
    low.kill()?;
    Ok(Queue::find(0x5c02)?.remove()?)
}

fn sem() -> Outcome {
    let semaphores = Semaphores::make()?;
    for level in Level::LOWER {
        at(level, || {
            refused_any(NO, semaphores.add(1))?;
            refused_any(NO, semaphores.set(5))?;
            allowed(semaphores.value()).map(drop)
        })?;
    }
    semaphores.remove()?;
    let low = spawn(Untrusted, || {
        Semaphores::keyed(0x5c03)?.add(1)?;
        step()
    })?;
    low.stands()?;
    at(User, || {
        let value = falling(BUSY, || Semaphores::find(0x5c03)?.value())?;
        same("the semaphore", value, 1)?;
        level::is(Untrusted)
    })?;
    low.kill()?;
    Ok(Semaphores::find(0x5c03)?.remove()?)
}

fn control() -> Outcome {
    let (segment, queue, semaphores) = (Segment::make(4096)?, Queue::make()?, Semaphores::make()?);
    for level in Level::LOWER {
        at(level, || {
            refused_any(NO, segment.remove())?;
            refused_any(NO, segment.give_away())?;
            refused_any(NO, queue.remove())?;
            refused_any(NO, semaphores.remove())?;
            allowed(segment.size()).map(drop)
        })?;
    }
    segment.remove()?;
    queue.remove()?;
    Ok(semaphores.remove()?)
}

fn posix_queue() -> Outcome {
    let name = place::scenario();
    drop(mq_open(name, OFlag::O_RDWR | OFlag::O_CREAT)?);
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, mq_open(name, OFlag::O_WRONLY))?;
            refused(Errno::EPERM, mq_open(name, OFlag::O_RDWR))?;
            refused(Errno::EPERM, fs::remove_file(format!("/dev/mqueue/{name}")))
        })?;
    }
    let of_low = format!("{name}-low");
    at(Untrusted, || {
        mq_send(&mq_open(&of_low, OFlag::O_RDWR | OFlag::O_CREAT)?)?;
        Ok(())
    })?;
    at(User, || {
        mq_receive(&mq_open(&of_low, OFlag::O_RDONLY)?)?;
        level::is(Untrusted)
    })
}

fn posix_shm() -> Outcome {
    let (high, low) = (place::file("/dev/shm", "high")?, path("/dev/shm", "low"));
    at(Untrusted, || {
        refused(Errno::EPERM, sys::both(&high))?;
        allowed(sys::reads(&high))?;
        Ok(fs::write(&low, "low")?)
    })?;
    at(User, || {
        let map = sys::Map::of(&sys::reads(&low)?, libc::PROT_READ, libc::MAP_SHARED)?;
        same("the memory", map.peek(), b'l')?;
        level::is(Untrusted)
    })
}

const SESSION: i64 = -3;
const PROCESS: i64 = -2;

fn add_key(to: i64, value: &str) -> Result<i64, Errno> {
    let (kind, name) = (c"user", c(place::scenario()));
    syscall!(
        libc::SYS_add_key,
        kind.as_ptr(),
        name.as_ptr(),
        value.as_ptr(),
        value.len(),
        to
    )
}

fn update_key(key: i64, value: &str) -> Result<i64, Errno> {
    const KEYCTL_UPDATE: i32 = 2;
    syscall!(
        libc::SYS_keyctl,
        KEYCTL_UPDATE,
        key,
        value.as_ptr(),
        value.len()
    )
}

/// keyctl: a new keyring for this process and its children.
const JOIN: i32 = 1;

fn keys_own() -> Outcome {
    for level in Level::ALL {
        for alice in [true, false] {
            at(level, || {
                if alice {
                    become_alice()?;
                }
                // root's own until then is shared by all that are root
                syscall!(libc::SYS_keyctl, JOIN, 0)?;
                for keyring in [PROCESS, SESSION] {
                    let key = allowed(add_key(keyring, "mine"))?;
                    allowed(update_key(key, "changed"))?;
                }
                level::is(level)
            })?;
        }
    }
    Ok(())
}

fn keys_of_others() -> Outcome {
    const SETPERM: i32 = 5;
    let alice = start(|| {
        become_alice()?;
        syscall!(libc::SYS_keyctl, JOIN, 0)?;
        let key = add_key(SESSION, "alice's")?;
        // all may do all to it, as far as permission goes
        syscall!(libc::SYS_keyctl, SETPERM, key, 0x3f3f_3f3f)?;
        fs::write(path(place::AREA, "key"), key.to_string())?;
        step()
    })?;
    alice.stands()?;
    let text = fs::read_to_string(path(place::AREA, "key"))?;
    let key: i64 = text.parse().map_err(|_| Failed::because("no key"))?;
    for level in Level::LOWER {
        at(level, || {
            refused_any(NO, update_key(key, "low"))?;
            refused_any(NO, syscall!(libc::SYS_keyctl, SETPERM, key, 0))
        })?;
    }
    alice.kill()
}

/// What a subject reads that attaches afterwards, and the level it then has.
fn later_reader(key: i32, value: u8) -> Outcome {
    at(User, || {
        let memory = falling(BUSY, || Segment::find(key)?.attach(true))?;
        if memory.peek() == value {
            level::is(Untrusted)
        } else {
            Ok(())
        }
    })
}

fn shm_before() -> Outcome {
    let maker = spawn(User, || {
        let memory = Segment::keyed(0x5c10, 4096)?.attach(false)?;
        // refused, or the segment falls too
        if lower(Untrusted).is_ok() {
            memory.poke(77);
        } else {
            level::is(User)?;
        }
        step()
    })?;
    maker.stands()?;
    later_reader(0x5c10, 77)?;
    maker.kill()?;
    later_reader(0x5c10, 77)?;
    Ok(Segment::find(0x5c10)?.remove()?)
}

fn shm_inherited() -> Outcome {
    let segment = Segment::make(4096)?;
    let memory = segment.attach(false)?;
    start(|| {
        if lower(Untrusted).is_ok() {
            memory.poke(77);
        }
        Ok(())
    })?
    .join()?;
    segment.remove()?;
    if memory.peek() == 77 {
        level::is(Untrusted)
    } else {
        level::is(System)
    }
}

fn queue_before() -> Outcome {
    let name = place::scenario();
    let sender = spawn(User, || {
        let queue: OwnedFd = mq_open(name, OFlag::O_RDWR | OFlag::O_CREAT)?;
        if lower(Untrusted).is_ok() {
            let _ = mq_send(&queue);
        }
        Ok(())
    })?;
    sender.join()?;
    at(User, || {
        let queue = mq_open(name, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
        if mq_receive(&queue).is_ok() {
            level::is(Untrusted)
        } else {
            Ok(())
        }
    })
}

fn queue_recreated() -> Outcome {
    let name = place::scenario();
    at(Untrusted, || {
        mq_send(&mq_open(name, OFlag::O_RDWR | OFlag::O_CREAT)?)?;
        Ok(())
    })?;
    at(User, || {
        // O_CREAT finds the low one: whoever uses it falls
        let queue = mq_open(name, OFlag::O_RDWR | OFlag::O_CREAT)?;
        mq_receive(&queue)?;
        level::is(Untrusted)
    })
}

fn shm_by_key() -> Outcome {
    at(Untrusted, || {
        Segment::keyed(0x5c11, 4096)?.attach(false)?.poke(77);
        Ok(())
    })?;
    later_reader(0x5c11, 77)?;
    let segment = Segment::find(0x5c11)?;
    segment.remove()?;
    ensure(Segment::find(0x5c11).is_err(), "the segment is still there")
}
