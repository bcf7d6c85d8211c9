//! What a call of C's comes to.

use tidegate_avc::{AvcError, Denied};
use tidegate_boundary::Fault;
use tidegate_boundary::errno::{EACCES, EAGAIN, EINVAL, EIO, ENOSPC, ENOTCONN, EPERM};

/// The page is being changed.
pub const CHANGING: Fault = Fault::fixed(EAGAIN, "the status page is being changed: ask again");

tidegate_boundary::failures!(Failed);

impl From<AvcError> for Failed {
    fn from(e: AvcError) -> Failed {
        let errno = match &e {
            AvcError::NotRunning => ENOTCONN,
            AvcError::Invalid(_) => EINVAL,
            AvcError::NotPermitted(_) => EACCES,
            AvcError::Page { source, .. } => source.raw_os_error().unwrap_or(EPERM),
            AvcError::Full(..) => ENOSPC,
            _ => EIO,
        };
        Failed(Fault::made(errno, e))
    }
}

impl From<Denied> for Failed {
    fn from(e: Denied) -> Failed {
        match e {
            Denied::Undecided(e) => e.into(),
            refused => Failed(Fault::made(EACCES, refused)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CStr, c_int};

    use tidegate_boundary::last_error;

    fn errno() -> c_int {
        std::io::Error::last_os_error().raw_os_error().unwrap()
    }

    fn words() -> String {
        // SAFETY: good until the next call.
        let words = unsafe { CStr::from_ptr(last_error()) };
        words.to_str().unwrap().to_owned()
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
        assert_eq!(
            (errno(), words().as_str()),
            (EACCES, "a:b:c may not { read } a:b:d:document")
        );
        for (fault, number) in [
            (AvcError::NotRunning, ENOTCONN),
            (AvcError::Invalid("x\0y".into()), EINVAL),
            (AvcError::Failed("x".into()), EIO),
            (AvcError::Full(3, "classes"), ENOSPC),
        ] {
            assert_eq!(done(|| Err(fault.into())), -1);
            assert_eq!(errno(), number);
        }
        assert_eq!(done(|| Err(AvcError::Invalid("x\0y".into()).into())), -1);
        assert_eq!(words(), "x?y");
        assert_eq!(done(|| Ok(())), 0);
    }
}
