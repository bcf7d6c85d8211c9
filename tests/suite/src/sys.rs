//! System calls, as all programs make them.

use std::arch::asm;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::SockaddrLike;

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

/// A system call as a program of i386 makes it, which one of x86-64 may, too: `int 0x80` takes that one's numbers and
/// arguments. What it returns, or an error number below zero.
pub fn i386(number: i32, args: &[u32; 6]) -> i32 {
    let result: i32;
    // SAFETY: all registers that the entry by int 0x80 loads or clears are given or said to be lost; the compiler keeps
    // rbx and rbp for itself, so they are put aside on the stack, which the kernel does not touch. What the call does is up
    // to whoever asks for it.
    unsafe {
        asm!(
            "push rbx",
            "push rbp",
            "mov ebx, [r10]",
            "mov ecx, [r10 + 4]",
            "mov edx, [r10 + 8]",
            "mov esi, [r10 + 12]",
            "mov edi, [r10 + 16]",
            "mov ebp, [r10 + 20]",
            "int 0x80",
            "pop rbp",
            "pop rbx",
            inlateout("eax") number => result,
            inout("r10") args.as_ptr() => _,
            out("rcx") _,
            out("rdx") _,
            out("rsi") _,
            out("rdi") _,
            out("r8") _,
            out("r9") _,
            out("r11") _,
        );
    }
    result
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

/// Sends a byte to each name by one call, and a descriptor with the last; how many were sent.
pub fn send_at_once<T: SockaddrLike>(
    from: &impl AsRawFd,
    to: &[T],
    last: Option<RawFd>,
) -> Result<usize, Errno> {
    #[repr(C)]
    struct Rights {
        head: libc::cmsghdr,
        fd: RawFd,
    }
    let mut byte = libc::iovec {
        iov_base: c"m".as_ptr().cast_mut().cast(),
        iov_len: 1,
    };
    // SAFETY: integers and pointers, all of which may be 0.
    let (mut rights, mut messages): (Rights, Vec<libc::mmsghdr>) =
        unsafe { (std::mem::zeroed(), vec![std::mem::zeroed(); to.len()]) };
    for (message, name) in messages.iter_mut().zip(to) {
        message.msg_hdr.msg_name = name.as_ptr().cast_mut().cast();
        message.msg_hdr.msg_namelen = name.len();
        message.msg_hdr.msg_iov = &raw mut byte;
        message.msg_hdr.msg_iovlen = 1;
    }
    if let (Some(fd), Some(message)) = (last, messages.last_mut()) {
        rights.head.cmsg_len = std::mem::offset_of!(Rights, fd) + size_of::<RawFd>();
        rights.head.cmsg_level = libc::SOL_SOCKET;
        rights.head.cmsg_type = libc::SCM_RIGHTS;
        rights.fd = fd;
        message.msg_hdr.msg_controllen = rights.head.cmsg_len;
        message.msg_hdr.msg_control = (&raw mut rights).cast();
    }
    let (fd, count) = (from.as_raw_fd(), messages.len());
    let sent = syscall!(libc::SYS_sendmmsg, fd, messages.as_mut_ptr(), count, 0)?;
    Ok(sent as usize)
}
