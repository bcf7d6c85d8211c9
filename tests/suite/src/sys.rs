//! System calls, as all programs make them.

use std::ffi::CString;
use std::io;
use std::path::Path;

use nix::errno::Errno;

/// A system call by number. Its arguments are integers or pointers that stay
/// valid until it returns: each use sees to that.
macro_rules! syscall {
    ($number:expr $(, $arg:expr)* $(,)?) => {{
        $crate::sys::by_number($number, &[$($arg as libc::c_long),*])
    }};
}
pub(crate) use syscall;

/// What [`syscall!`] calls: six arguments, 0 where there are fewer.
pub fn by_number(number: libc::c_long, args: &[libc::c_long]) -> Result<libc::c_long, Errno> {
    let arg = |n: usize| args.get(n).copied().unwrap_or(0);
    // SAFETY: see the macro's own words; the kernel checks all else.
    let ret = unsafe { libc::syscall(number, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
    Errno::result(ret)
}

/// What a call of the C library gave, or its error.
pub fn answer<T: Copy + Into<i64>>(ret: T) -> io::Result<T> {
    if ret.into() < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret)
    }
}

/// A path or another text for the kernel.
pub fn c(text: impl AsRef<Path>) -> CString {
    CString::new(text.as_ref().as_os_str().as_encoded_bytes()).expect("no NUL")
}
