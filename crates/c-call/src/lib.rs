//! What a call of C's comes to: a value, or errno and some words. What the libraries for C have in common.
//!
//! What C hands over is taken at its word in one thing only: a pointer that is not NULL points to what the header says.
#![warn(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks
)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Numbers of errors, as Linux has them on all that Tidegate runs on.
pub mod errno {
    #![allow(missing_docs)]
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EIO: i32 = 5;
    pub const EAGAIN: i32 = 11;
    pub const EACCES: i32 = 13;
    pub const EFAULT: i32 = 14;
    pub const EBUSY: i32 = 16;
    pub const EINVAL: i32 = 22;
    pub const ENOSPC: i32 = 28;
    pub const ENOTCONN: i32 = 107;
}

/// Why a call failed.
#[derive(Debug)]
pub struct Fault {
    errno: i32,
    words: Words,
}

#[derive(Debug)]
enum Words {
    Fixed(&'static str),
    Made(String),
}

impl Fault {
    /// An argument is NULL that may not be.
    pub const NULL: Fault = Fault::fixed(errno::EINVAL, "an argument is NULL");

    /// With words that are known beforehand.
    pub const fn fixed(errno: i32, words: &'static str) -> Fault {
        let words = Words::Fixed(words);
        Fault { errno, words }
    }

    /// With words that are made.
    pub fn made(errno: i32, words: impl Display) -> Fault {
        let words = Words::Made(words.to_string());
        Fault { errno, words }
    }

    /// An argument is none.
    pub fn invalid(words: impl Display) -> Fault {
        Fault::made(errno::EINVAL, words)
    }
}

/// What a pointer points to.
///
/// # Errors
/// It is NULL.
///
/// # Safety
/// It is NULL, or points to such a thing that is not changed meanwhile.
pub unsafe fn there<'a, T>(pointer: *const T) -> Result<&'a T, Fault> {
    // SAFETY: as the caller has it.
    unsafe { pointer.as_ref() }.ok_or(Fault::NULL)
}

/// A text.
///
/// # Errors
/// It is NULL, or no UTF-8.
///
/// # Safety
/// It is NULL, or points to a string that is not changed meanwhile.
pub unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: as the caller has it.
    let text = unsafe { CStr::from_ptr(there(text)?) };
    text.to_str()
        .map_err(|_| Fault::invalid("a text is no UTF-8"))
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

/// The words of this thread's last failure. Good until its next call.
pub fn last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// What a call gives back; this if it fails, or panics, with errno set.
pub fn guarded<T, E: Into<Fault>>(failed: T, call: impl FnOnce() -> Result<T, E>) -> T {
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(fault)) => fault.into(),
        Err(_) => Fault::fixed(errno::EFAULT, "a fault of the library's own"),
    };
    fail(&fault);
    failed
}

/// The same of a call that only succeeds or not.
pub fn done<E: Into<Fault>>(call: impl FnOnce() -> Result<(), E>) -> c_int {
    guarded(-1, || call().map(|()| 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> (c_int, String) {
        // SAFETY: the C library's own place for this thread; the words are good until the next call.
        let (errno, words) = unsafe { (*__errno_location(), CStr::from_ptr(last_error())) };
        (errno, words.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_ends_in_an_errno() {
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(done(|| -> Result<(), Fault> { panic!("a fault") }), -1);
        let _ = std::panic::take_hook();
        let words = "a fault of the library's own".to_owned();
        assert_eq!(failed(), (errno::EFAULT, words));
    }

    #[test]
    fn words_are_whole_whatever_is_in_them() {
        assert_eq!(done(|| Err(Fault::invalid("x\0y"))), -1);
        assert_eq!(failed(), (errno::EINVAL, "x?y".to_owned()));
        assert_eq!(done(|| Ok::<(), Fault>(())), 0);
    }

    #[test]
    fn nothing_that_is_null_is_looked_at() {
        // SAFETY: NULL, and a string, are what may be given.
        unsafe {
            assert!(there::<u32>(std::ptr::null()).is_err());
            assert!(text(std::ptr::null()).is_err());
            assert!(text(c"\xff".as_ptr()).is_err());
            assert_eq!(text(c"x".as_ptr()).unwrap(), "x");
        }
    }
}
