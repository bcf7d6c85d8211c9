//! FIFOs: a subject that opens one to read falls with one that opens it to write.

use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::scenarios::check::{Failed, Outcome, allowed, ensure, same, soon};
use crate::scenarios::level;
use crate::scenarios::place::{self, AREA};
use crate::scenarios::scenario::{Scenario, allow, bypass, deny};
use crate::scenarios::subject::{Level, at, spawn, step};
use crate::scenarios::sys;

use Level::{Untrusted, User};

const ROW: &str = "socketpair, abstract";

pub const SCENARIOS: &[Scenario] = &[
    deny(
        "fifo-floats",
        "who opened a FIFO for reading falls when a lower writer opens it",
        fifo,
    )
    .of(ROW),
    deny(
        "fifo-opened-after",
        "who opens a FIFO with lower writers falls",
        fifo_after,
    ),
    bypass(
        "fifo-reader-in-open",
        "a low writer comes while the reader still waits in open()",
        fifo_waiting,
    ),
    allow(
        "fifo-first-opens",
        "two who are the first to open a FIFO, at the same time",
        fifo_first,
    ),
];

/// How often two race: enough that some are refused if nobody looks again.
const FIRST_OPENS: usize = 200;

fn fifo() -> Outcome {
    let fifo = place::fifo(AREA, "fifo")?;
    let read = sys::open(&fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
    let low = spawn(Untrusted, || {
        // writing to a channel is never refused, whose ever its file is
        sys::put(&allowed(sys::open(
            &fifo,
            OFlag::O_WRONLY | OFlag::O_NONBLOCK,
        ))?)?;
        level::is(Untrusted)?;
        step()
    })?;
    low.stands()?;
    level::is(Untrusted)?;
    drop(read);
    low.join_after_step()
}

fn fifo_after() -> Outcome {
    let fifo = place::fifo(AREA, "fifo")?;
    let low = spawn(Untrusted, || {
        let both = sys::both(&fifo)?;
        sys::put(&both)?;
        step()
    })?;
    low.stands()?;
    at(User, || {
        sys::get(&sys::open(&fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?)?;
        level::is(Untrusted)
    })?;
    low.kill()
}

fn fifo_waiting() -> Outcome {
    let fifo = place::fifo(AREA, "fifo")?;
    let reader = spawn(User, || {
        step()?;
        let got = sys::get(&sys::reads(&fifo)?)?;
        same("what was read", got, b"x".to_vec())?;
        level::is(Untrusted)
    })?;
    reader.waits()?;
    let writer = spawn(Untrusted, || {
        let wrote = soon(
            || match sys::open(&fifo, OFlag::O_WRONLY | OFlag::O_NONBLOCK) {
                Ok(fd) => Ok(sys::put(&fd).map(|_| true)?),
                Err(Errno::EAGAIN | Errno::ENXIO) => Ok(false),
                Err(e) => Err(e)?,
            },
        )?;
        ensure(wrote, "nobody has the FIFO open to read it")
    })?;
    writer.join()?;
    reader.join()
}

/// What is kept of an object is made when it is first met: of two who make it at once neither is refused.
fn fifo_first() -> Outcome {
    for _ in 0..FIRST_OPENS {
        let fifo = place::fifo(AREA, "fifo")?;
        let there = AtomicU32::new(0);
        let open = || {
            there.fetch_add(1, Ordering::SeqCst);
            while there.load(Ordering::SeqCst) < 2 {
                std::hint::spin_loop();
            }
            sys::open(&fifo, OFlag::O_RDONLY | OFlag::O_NONBLOCK)
        };
        let (one, other) = std::thread::scope(|s| {
            let other = s.spawn(open);
            (open(), other.join())
        });
        allowed(one)?;
        allowed(other.map_err(|_| Failed::because("a thread panicked"))?)?;
    }
    Ok(())
}
