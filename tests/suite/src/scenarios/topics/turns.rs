//! The transaction's lock and the processors: a user that keeps them busy, or takes them for
//! itself, does not keep root from its work.

use std::fs;
use std::time::Duration;

use nix::errno::Errno;

use super::floods::{FLOODER, goes_on, talks, timely};
use super::waits::stuck;
use crate::scenarios::check::{Outcome, ensure, refused, refused_any};
use crate::scenarios::daemon;
use crate::scenarios::level;
use crate::scenarios::place;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, become_user, spawn, step, tell, told};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "turn-kept-by-idle",
        "who has the transaction's lock is given no processor, as it is idle",
        by_idle,
    ),
    bypass(
        "turn-kept-by-nice",
        "the same, as it is nice to others",
        by_nice,
    )
    .slow(),
    bypass(
        "turn-kept-in-turns",
        "some processes have the transaction's lock in turn, and each falls in vain",
        in_turns,
    )
    .slow(),
    bypass(
        "priority-real-time",
        "root below the top takes the processor for itself: by a class that comes before all others",
        real_time,
    ),
    bypass(
        "priority-raised",
        "the same by a priority above everybody's",
        raised,
    ),
    bypass(
        "priority-by-limit",
        "the same by a limit that it raises first",
        by_limit,
    ),
];

/// Processes of a user have the transaction's lock in turn, while others of its keep the processors busy: root connects
/// all the same. The process that falls can never: another of its threads waits in a write.
fn turns_kept(busy: usize, slow: fn() -> Result<(), Errno>) -> Outcome {
    const TURNS: usize = 3;
    goes_on()?;
    let mut all = Vec::new();
    for _ in 0..busy {
        let hog = spawn(User, || {
            become_user(FLOODER)?;
            step()?;
            loop {
                std::hint::spin_loop();
            }
        })?;
        hog.stands()?;
        all.push(hog);
    }
    for number in 0..TURNS {
        let sign = format!("falls-{number}");
        let faller = spawn(User, || {
            become_user(FLOODER)?;
            let _ends = stuck()?;
            slow()?;
            let falls = || fs::read(place::level_file(Untrusted)).is_ok();
            // once in vain
            ensure(!falls(), "it falls")?;
            tell(&sign)?;
            while !falls() {}
            Ok(())
        })?;
        told(&sign)?;
        all.push(faller);
    }
    for hog in &all[..busy] {
        hog.go()?;
    }
    let played = at(System, || {
        // what is waited for is the lock, and not the processor
        syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, -20)?;
        for _ in 0..10 {
            timely("a connection of root's", talks)?;
            std::thread::sleep(Duration::from_millis(300));
        }
        level::is(System)
    });
    // the daemon has the processor as everybody has it
    for hog in all.drain(..busy) {
        hog.kill()?;
    }
    let answered = timely("the daemon's answer", || {
        daemon::status("/levels").map(drop)
    });
    for faller in all {
        faller.kill()?;
    }
    played?;
    answered?;
    goes_on()
}

fn by_idle() -> Outcome {
    turns_kept(40, || {
        let priority = 0i32;
        syscall!(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_IDLE,
            &raw const priority
        )
        .map(drop)
    })
}

fn by_nice() -> Outcome {
    turns_kept(40, || {
        syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, 19).map(drop)
    })
}

fn in_turns() -> Outcome {
    turns_kept(0, || Ok(()))
}

fn real_time() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let priority = 1i32;
            for class in [libc::SCHED_FIFO, libc::SCHED_RR] {
                let set = syscall!(libc::SYS_sched_setscheduler, 0, class, &raw const priority);
                refused(Errno::EPERM, set)?;
            }
            // SCHED_DEADLINE: 9 of each 10 ms
            let attributes: [u64; 6] = [48 | 6 << 32, 0, 0, 9_000_000, 10_000_000, 10_000_000];
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_sched_setattr, 0, attributes.as_ptr(), 0),
            )
        })?;
    }
    Ok(())
}

fn raised() -> Outcome {
    const IOPRIO_WHO_PROCESS: i32 = 1;
    const REAL_TIME: i32 = 1 << 13;
    for level in Level::LOWER {
        at(level, || {
            refused_any(
                &[Errno::EPERM, Errno::EACCES],
                syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, 0, -20),
            )?;
            refused(
                Errno::EPERM,
                syscall!(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, REAL_TIME),
            )
        })?;
    }
    Ok(())
}

fn by_limit() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            for what in [libc::RLIMIT_RTPRIO, libc::RLIMIT_NICE] {
                let limit = [40u64, 40];
                let raised = syscall!(libc::SYS_prlimit64, 0, what, limit.as_ptr(), 0);
                refused(Errno::EPERM, raised)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
