//! Operations of resource limits: played under the profiles whose names begin with `limits`.

use std::io;
use std::ptr;

use crate::profile_ops::calls::{like, parent};
use crate::profile_ops::ops::{Op, ops};

fn get(resource: u32) -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: room for a limit.
    match unsafe { libc::getrlimit(resource, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set(pid: i32, resource: u32, rlim_cur: u64, rlim_max: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur, rlim_max };
    // SAFETY: a limit, and none is asked for.
    match unsafe { libc::prlimit(pid, resource, &raw const limit, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a hard limit is this one.
fn is(resource: u32, max: u64) -> io::Result<()> {
    match get(resource)?.rlim_max == max {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::ERANGE)),
    }
}

/// All of them.
pub const LIMITS: &[Op] = ops![
    "100 files" => is(libc::RLIMIT_NOFILE, 100),
    "no cores" => is(libc::RLIMIT_CORE, 0),
    "limit files to 50" => set(0, libc::RLIMIT_NOFILE, 50, 50),
    "limit files to 100" => set(0, libc::RLIMIT_NOFILE, 100, 100),
    "limit files to 101" => set(0, libc::RLIMIT_NOFILE, 100, 101),
    "limit files to 50, then to 100" => {
        set(0, libc::RLIMIT_NOFILE, 50, 50)?;
        set(0, libc::RLIMIT_NOFILE, 100, 100)
    },
    "let cores be" => set(0, libc::RLIMIT_CORE, 0, 1),
    "keep cores away" => set(0, libc::RLIMIT_CORE, 0, 0),
    "limit processes" => set(0, libc::RLIMIT_NPROC, 1000, 1000),
    "limit its like" => set(like(), libc::RLIMIT_NOFILE, 50, 50),
    "limit its like to 101" => set(like(), libc::RLIMIT_NOFILE, 50, 101),
    "limit who is not confined" => {
        let of = get(libc::RLIMIT_NPROC)?;
        set(parent(), libc::RLIMIT_NPROC, of.rlim_cur, of.rlim_max)
    },
];
