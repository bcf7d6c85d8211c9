//! What the kernel counts for all users and levels together: a subject below the top leaves room in
//! it for the others.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};

use crate::scenarios::check::{Outcome, allowed, ensure};
use crate::scenarios::ipcs::{Segment, mq_open};
use crate::scenarios::place;
use crate::scenarios::scenario::{Scenario, allow, bypass};
use crate::scenarios::subject::{Level, at, become_user, start};
use crate::scenarios::sys::PAGE;

use Level::{Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    allow(
        "segments-many",
        "a user below the top has two hundred segments, and a few queues",
        many,
    ),
    bypass(
        "segments-flood",
        "a low process makes all the segments of shared memory that the machine may have, and they stay",
        segments,
    ),
    bypass(
        "queues-flood-all",
        "a low process makes all the message queues that the machine may have, and they stay",
        queues,
    ),
];

/// As many as a machine may have of them: kernel.shmmni and fs.mqueue.queues_max, as kernels come.
const SEGMENTS: usize = 4096;
const QUEUES: usize = 256;

/// Plays a part where what it leaves goes with it, as it has such objects of its own; what is counted is counted there.
fn apart(part: impl FnOnce() -> Outcome) -> Outcome {
    start(|| {
        unshare(CloneFlags::CLONE_NEWIPC)?;
        part()
    })?
    .join()
}

/// Makes things until there is no room for more; how many they were.
fn fill<T>(most: usize, make: impl Fn(usize) -> Result<T, Errno>) -> Outcome<usize> {
    for made in 0..most {
        match make(made) {
            Ok(_) => {}
            Err(Errno::ENOSPC) => return Ok(made),
            Err(e) => Err(e)?,
        }
    }
    Ok(most)
}

fn segment(_: usize) -> Result<Segment, Errno> {
    Segment::make(PAGE)
}

/// A queue that has been closed, and is there still.
fn queue(number: usize) -> Result<(), Errno> {
    let name = format!("{}-{number}", place::scenario());
    mq_open(&name, OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_RDWR).map(drop)
}

fn many() -> Outcome {
    apart(|| {
        for level in Level::LOWER {
            at(level, || {
                for number in 0..100 {
                    allowed(segment(number))?;
                }
                for number in 0..2 {
                    allowed(queue(level as usize * 2 + number))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

fn segments() -> Outcome {
    apart(|| {
        at(Untrusted, || {
            let made = fill(SEGMENTS, segment)?;
            ensure(made < SEGMENTS / 4, "one user has a quarter of them")
        })?;
        at(Untrusted, || {
            become_user(1000)?;
            allowed(segment(0)).map(drop)
        })?;
        at(User, || allowed(segment(0)).map(drop))?;
        // several users, and then all that the level has
        for user in 1001..1008 {
            at(Untrusted, || {
                become_user(user)?;
                fill(SEGMENTS, segment).map(drop)
            })?;
        }
        at(User, || allowed(segment(0)).map(drop))?;
        allowed(segment(0)).map(drop)
    })
}

/// Of a number of users, as each may have queues of so many bytes only.
fn queues() -> Outcome {
    apart(|| {
        for user in 1000..1100 {
            at(Untrusted, || {
                become_user(user)?;
                let first = user as usize * QUEUES;
                let full = |number: usize| match queue(first + number) {
                    // that user's own limit
                    Err(Errno::EMFILE) => Err(Errno::ENOSPC),
                    made => made,
                };
                fill(QUEUES, full).map(drop)
            })?;
        }
        at(User, || allowed(queue(0)))?;
        allowed(queue(1))
    })
}
