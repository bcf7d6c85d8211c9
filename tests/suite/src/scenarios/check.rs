//! What a scenario expects, and how it says that it was disappointed.

use std::fmt;
use std::io;
use std::panic::Location;
use std::time::Duration;

use nix::errno::Errno;

use crate::wait;

/// How long is waited for what has to come: an emulated processor may be slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Why a scenario failed. Its text is empty when a process of the scenario has
/// reported for itself.
#[derive(Debug)]
pub struct Failed(String);

/// What a scenario, or a part of it, comes to.
pub type Outcome<T = ()> = Result<T, Failed>;

impl Failed {
    /// For a reason, where it was called.
    #[track_caller]
    pub fn because(why: impl fmt::Display) -> Failed {
        Failed::at(why, Location::caller())
    }

    /// Another process of the scenario has reported it.
    pub fn reported() -> Failed {
        Failed(String::new())
    }

    fn at(why: impl fmt::Display, place: &Location<'_>) -> Failed {
        let file = place.file().rsplit('/').next().unwrap_or_default();
        Failed(format!("{why} ({file}:{})", place.line()))
    }

    /// What to print, if there is anything.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Asks again and again, for [`PATIENCE`], until it is so; whether it came to be.
pub fn soon(so: impl FnMut() -> Outcome<bool>) -> Outcome<bool> {
    wait::until(PATIENCE, so)
}

impl From<Errno> for Failed {
    #[track_caller]
    fn from(e: Errno) -> Failed {
        Failed::at(format_args!("unexpected {}", name(e)), Location::caller())
    }
}

impl From<io::Error> for Failed {
    #[track_caller]
    fn from(e: io::Error) -> Failed {
        match e.raw_os_error() {
            Some(n) => {
                let what = name(Errno::from_raw(n));
                Failed::at(format_args!("unexpected {what}"), Location::caller())
            }
            None => Failed::at(format_args!("unexpected error: {e}"), Location::caller()),
        }
    }
}

/// EPERM and not `Operation not permitted`.
pub fn name(e: Errno) -> String {
    format!("{e:?}")
}

/// Something that may have been refused with an error number.
pub trait Attempt {
    /// What it gives if it was allowed.
    type Got;

    /// What it gave, or the error number.
    fn made(self) -> Result<Self::Got, Errno>;
}

impl<T> Attempt for Result<T, Errno> {
    type Got = T;

    fn made(self) -> Result<T, Errno> {
        self
    }
}

impl<T> Attempt for io::Result<T> {
    type Got = T;

    fn made(self) -> Result<T, Errno> {
        self.map_err(|e| {
            e.raw_os_error()
                .map_or(Errno::UnknownErrno, Errno::from_raw)
        })
    }
}

/// It must have been refused with just this number.
#[track_caller]
pub fn refused(with: Errno, attempt: impl Attempt) -> Outcome {
    refused_any(&[with], attempt)
}

/// It must have been refused with one of these: the kernel turns the hook's own
/// number into another on some ways.
#[track_caller]
pub fn refused_any(with: &[Errno], attempt: impl Attempt) -> Outcome {
    let wanted = || {
        with.iter()
            .map(|e| name(*e))
            .collect::<Vec<_>>()
            .join(" or ")
    };
    match attempt.made() {
        Err(e) if with.contains(&e) => Ok(()),
        Err(e) => Err(Failed::because(format_args!(
            "{} instead of {}",
            name(e),
            wanted()
        ))),
        Ok(_) => Err(Failed::because(format_args!(
            "allowed instead of {}",
            wanted()
        ))),
    }
}

/// It must have been allowed; what it gave.
#[track_caller]
pub fn allowed<A: Attempt>(attempt: A) -> Outcome<A::Got> {
    match attempt.made() {
        Ok(got) => Ok(got),
        Err(e) => Err(Failed::because(format_args!("refused with {}", name(e)))),
    }
}

/// Two things must be the same.
#[track_caller]
pub fn same<T: PartialEq + fmt::Debug>(what: &str, is: T, should: T) -> Outcome {
    if is == should {
        return Ok(());
    }
    Err(Failed::because(format_args!(
        "{what} is {is:?}, not {should:?}"
    )))
}

/// Something must be so.
#[track_caller]
pub fn ensure(so: bool, otherwise: &str) -> Outcome {
    if so {
        Ok(())
    } else {
        Err(Failed::because(otherwise))
    }
}
