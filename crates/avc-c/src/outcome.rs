//! What a call of C's comes to: a value, or errno and some words.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidegate_avc::{AvcError, Denied};

/// Numbers of errors, as Linux has them on all that Tidegate runs on.
const EPERM: i32 = 1;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const EACCES: i32 = 13;
const EFAULT: i32 = 14;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOTCONN: i32 = 107;

/// Why a call failed.
pub struct Fault {
    errno: i32,
    words: Words,
}

enum Words {
    Fixed(&'static str),
    Made(String),
}

impl Fault {
    /// An argument is NULL that may not be.
    pub const NULL: Fault = Fault::fixed(EINVAL, "an argument is NULL");
    /// The page is being changed.
    pub const CHANGING: Fault = Fault::fixed(EAGAIN, "the status page is being changed: ask again");

    const fn fixed(errno: i32, words: &'static str) -> Fault {
        let words = Words::Fixed(words);
        Fault { errno, words }
    }

    /// An argument is none.
    pub fn invalid(words: &str) -> Fault {
        Fault::made(EINVAL, words)
    }

    fn made(errno: i32, words: impl ToString) -> Fault {
        let words = Words::Made(words.to_string());
        Fault { errno, words }
    }
}

impl From<AvcError> for Fault {
    fn from(e: AvcError) -> Fault {
        let errno = match &e {
            AvcError::NotRunning => ENOTCONN,
            AvcError::Invalid(_) => EINVAL,
            AvcError::NotPermitted(_) => EACCES,
            AvcError::Page { source, .. } => source.raw_os_error().unwrap_or(EPERM),
            AvcError::Full(..) => ENOSPC,
            _ => EIO,
        };
        Fault::made(errno, e)
    }
}

impl From<Denied> for Fault {
    fn from(e: Denied) -> Fault {
        match e {
            Denied::Undecided(e) => e.into(),
            refused => Fault::made(EACCES, refused),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

fn fail(fault: &Fault) {
    let words = match &fault.words {
        Words::Fixed(words) => words,
        Words::Made(words) => words.as_str(),
    };
    let words = CString::new(words.replace('\0', "?")).unwrap_or_default();
    // a thread that ends has no place for words any more
    let _ = LAST.try_with(|last| *last.borrow_mut() = words);
    // SAFETY: the C library's own place for this thread.
    unsafe { *__errno_location() = fault.errno };
}

/// The words of the last failure.
pub fn last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// What a call gives back; this if it fails, or panics, with errno set.
pub fn guarded<T>(failed: T, call: impl FnOnce() -> Result<T, Fault>) -> T {
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(fault)) => fault,
        Err(_) => Fault::fixed(EFAULT, "a fault of the library's own"),
    };
    fail(&fault);
    failed
}

/// The same of a call that only succeeds or not.
pub fn done(call: impl FnOnce() -> Result<(), Fault>) -> c_int {
    guarded(-1, || call().map(|()| 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn errno() -> c_int {
        // SAFETY: the C library's own place for this thread.
        unsafe { *__errno_location() }
    }

    fn words() -> String {
        // SAFETY: good until the next call.
        let words = unsafe { CStr::from_ptr(last_error()) };
        words.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_ends_in_an_errno() {
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(done(|| panic!("a fault")), -1);
        let _ = std::panic::take_hook();
        assert_eq!(
            (errno(), words().as_str()),
            (EFAULT, "a fault of the library's own")
        );
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
