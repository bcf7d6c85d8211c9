//! What Tidegate's libraries for C share: what a call of C's comes to, a value, or errno and some words; and what is looked at of
//! the arguments.
//!
//! What C hands over is taken at its word in one thing only: a pointer that is not NULL points to what the header says.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Numbers of errors, as Linux has them on all that Tidegate runs on.
pub mod errno {
    #![allow(missing_docs, reason = "they have the kernel's names")]
    pub const EPERM: i32 = 1;
    pub const ENOENT: i32 = 2;
    pub const EIO: i32 = 5;
    pub const EAGAIN: i32 = 11;
    pub const EACCES: i32 = 13;
    pub const EFAULT: i32 = 14;
    pub const EBUSY: i32 = 16;
    pub const EINVAL: i32 = 22;
    pub const ENOSPC: i32 = 28;
    pub const EPROTO: i32 = 71;
    pub const EBADMSG: i32 = 74;
    pub const EMSGSIZE: i32 = 90;
    pub const EPROTOTYPE: i32 = 91;
    pub const ECONNRESET: i32 = 104;
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

    /// One whose words are always the same.
    pub const fn fixed(errno: i32, words: &'static str) -> Fault {
        let words = Words::Fixed(words);
        Fault { errno, words }
    }

    /// An argument is none.
    pub fn invalid(words: &str) -> Fault {
        Fault::made(errno::EINVAL, words)
    }

    /// One that says what an error does.
    pub fn made(errno: i32, words: impl ToString) -> Fault {
        let words = Words::Made(words.to_string());
        Fault { errno, words }
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
pub fn guarded<T, E: Into<Fault>>(failed: T, call: impl FnOnce() -> Result<T, E>) -> T {
    let fault = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error.into(),
        Err(_) => Fault::fixed(errno::EFAULT, "a fault of the library's own"),
    };
    fail(&fault);
    failed
}

/// What a pointer points to.
///
/// # Safety
/// It is NULL, or points to such a thing that is not changed meanwhile.
pub unsafe fn there<'a, T>(pointer: *const T) -> Result<&'a T, Fault> {
    // SAFETY: as the caller has it.
    unsafe { pointer.as_ref() }.ok_or(Fault::NULL)
}

/// A text.
///
/// # Safety
/// It is NULL, or points to a string.
pub unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: as the caller has it.
    let text = unsafe { CStr::from_ptr(there(text)?) };
    text.to_str()
        .map_err(|_| Fault::invalid("a name has to be UTF-8"))
}

/// Puts a result where C wants it.
///
/// # Safety
/// It is NULL, or there is room for one.
pub unsafe fn put<T, E: From<Fault>>(at: *mut T, value: T) -> Result<(), E> {
    if at.is_null() {
        return Err(Fault::NULL.into());
    }
    // SAFETY: as the caller has it.
    unsafe { at.write(value) };
    Ok(())
}

/// Makes a library's own type of failures, and the functions that its calls are made with: a [`Fault`], or what the library makes of
/// its errors by `From`, which has to be for a type of its own.
#[macro_export]
macro_rules! failures {
    ($failed:ident) => {
        /// Why a call failed, the library's own errors among it.
        #[derive(Debug)]
        pub struct $failed($crate::Fault);

        impl From<$crate::Fault> for $failed {
            fn from(fault: $crate::Fault) -> $failed {
                $failed(fault)
            }
        }

        impl From<$failed> for $crate::Fault {
            fn from(failed: $failed) -> $crate::Fault {
                failed.0
            }
        }

        /// What a call gives back; this if it fails, or panics, with errno set.
        pub fn guarded<T>(failed: T, call: impl FnOnce() -> Result<T, $failed>) -> T {
            $crate::guarded(failed, call)
        }

        /// The same of a call that only succeeds or not.
        pub fn done(call: impl FnOnce() -> Result<(), $failed>) -> std::ffi::c_int {
            guarded(-1, || call().map(|()| 0))
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let failed = guarded(-1, || -> Result<i32, Fault> { panic!("a fault") });
        let _ = std::panic::take_hook();
        assert_eq!(failed, -1);
        assert_eq!(
            (errno(), words().as_str()),
            (errno::EFAULT, "a fault of the library's own")
        );
    }

    #[test]
    fn what_fails_says_why() {
        let fault = || Fault::made(errno::EIO, "x\0y");
        assert_eq!(guarded(0, || Err(fault())), 0);
        assert_eq!((errno(), words().as_str()), (errno::EIO, "x?y"));
        assert_eq!(guarded(0, || Ok::<_, Fault>(7)), 7);
    }

    #[test]
    fn nothing_that_is_null_is_looked_at() {
        // SAFETY: NULL is what is tested.
        unsafe {
            assert!(there(std::ptr::null::<u8>()).is_err());
            assert!(text(std::ptr::null()).is_err());
            assert!(put::<_, Fault>(std::ptr::null_mut(), 1).is_err());
            assert!(text(c"\xff".as_ptr()).is_err());
        }
    }
}
