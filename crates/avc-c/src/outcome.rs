//! How the cache's errors are told to C.

use std::ffi::c_int;

use tidegate_avc::{AvcError, Denied};
use tidegate_c_call::{Fault as Call, errno};

/// Why a call failed.
#[derive(Debug)]
pub struct Fault(Call);

impl Fault {
    /// An argument is NULL that may not be.
    pub const NULL: Fault = Fault(Call::NULL);
    /// The page is being changed.
    pub const CHANGING: Fault = Fault(Call::fixed(
        errno::EAGAIN,
        "the status page is being changed: ask again",
    ));

    /// An argument is none.
    pub fn invalid(words: &str) -> Fault {
        Fault(Call::invalid(words))
    }
}

/// What a call gives back; this if it fails, or panics, with errno set.
pub fn guarded<T>(failed: T, call: impl FnOnce() -> Result<T, Fault>) -> T {
    tidegate_c_call::guarded(failed, call)
}

/// The same of a call that only succeeds or not.
pub fn done(call: impl FnOnce() -> Result<(), Fault>) -> c_int {
    tidegate_c_call::done(call)
}

impl From<Call> for Fault {
    fn from(fault: Call) -> Fault {
        Fault(fault)
    }
}

impl From<Fault> for Call {
    fn from(fault: Fault) -> Call {
        fault.0
    }
}

impl From<AvcError> for Fault {
    fn from(e: AvcError) -> Fault {
        let errno = match &e {
            AvcError::NotRunning => errno::ENOTCONN,
            AvcError::Invalid(_) => errno::EINVAL,
            AvcError::NotPermitted(_) => errno::EACCES,
            AvcError::Page { source, .. } => source.raw_os_error().unwrap_or(errno::EPERM),
            AvcError::Full(..) => errno::ENOSPC,
            _ => errno::EIO,
        };
        Fault(Call::made(errno, e))
    }
}

impl From<Denied> for Fault {
    fn from(e: Denied) -> Fault {
        match e {
            Denied::Undecided(e) => e.into(),
            refused => Fault(Call::made(errno::EACCES, refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::io;

    use tidegate_c_call::last_error;

    use super::*;

    fn failed() -> (Option<i32>, String) {
        let errno = io::Error::last_os_error().raw_os_error();
        // SAFETY: good until the next call.
        let words = unsafe { CStr::from_ptr(last_error()) };
        (errno, words.to_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_refused_and_what_cannot_be_answered_are_told_apart() {
        let refused = Denied::Refused {
            permissions: "read".into(),
            source_context: "a:b:c".into(),
            target_context: "a:b:d".into(),
            class: "document".into(),
        };
        assert_eq!(done(|| Err(refused.into())), -1);
        let words = "a:b:c may not { read } a:b:d:document".to_owned();
        assert_eq!(failed(), (Some(errno::EACCES), words));
        for (fault, number) in [
            (AvcError::NotRunning, errno::ENOTCONN),
            (AvcError::Invalid("x\0y".into()), errno::EINVAL),
            (AvcError::Failed("x".into()), errno::EIO),
            (AvcError::Full(3, "classes"), errno::ENOSPC),
        ] {
            assert_eq!(done(|| Err(fault.into())), -1);
            assert_eq!(failed().0, Some(number));
        }
    }
}
