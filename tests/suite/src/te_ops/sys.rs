//! System calls, and what all operations are made of.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::sys::c;

/// Where operations have their objects: what is made in it is of its type.
pub const OBJ: &str = "/srv/ops/obj";

/// Calls the C library or the kernel; the answer, or the error.
macro_rules! sys {
    ($call:expr) => {
        // SAFETY: what is pointed to outlives the call, and is as long as it says.
        $crate::sys::answer(unsafe { $call } as i64)
    };
}
pub(crate) use sys;

/// A path among the objects.
pub fn at(name: &str) -> String {
    format!("{OBJ}/{name}")
}

/// The same for a system call.
pub fn cat(name: &str) -> CString {
    c(at(name))
}

/// A descriptor that the kernel has just given.
pub fn fd(ret: i64) -> OwnedFd {
    // SAFETY: nobody else has it.
    unsafe { OwnedFd::from_raw_fd(ret as i32) }
}

pub fn open(path: &str, flags: i32) -> io::Result<File> {
    let path = c(path);
    Ok(sys!(libc::open(path.as_ptr(), flags, 0o666))
        .map(fd)?
        .into())
}

/// What came after the decision is no matter.
pub fn past(result: io::Result<i64>) -> io::Result<()> {
    match result {
        Err(e) if matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => Err(e),
        _ => Ok(()),
    }
}

/// Success if it is so; else EXDEV, which nothing here has from elsewhere.
pub fn so(is: bool) -> io::Result<()> {
    is.then_some(())
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EXDEV))
}

/// A child of the one that makes objects, which ends with this.
pub struct Helper(pub i32);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = sys!(libc::kill(self.0, libc::SIGKILL));
        let _ = sys!(libc::waitpid(self.0, std::ptr::null_mut(), 0));
    }
}

/// A child that does something and then waits for its end; it has done it when this returns.
pub fn helper(does: impl FnOnce() -> io::Result<()>) -> io::Result<Helper> {
    serving(does, || Ok(()))
}

/// The same, with more to do then.
pub fn serving(
    does: impl FnOnce() -> io::Result<()>,
    then: impl FnOnce() -> io::Result<()>,
) -> io::Result<Helper> {
    let mut ends = [0; 2];
    sys!(libc::pipe(ends.as_mut_ptr()))?;
    let (from, to) = (fd(ends[0].into()), fd(ends[1].into()));
    let pid = sys!(libc::fork())? as i32;
    if pid == 0 {
        let _ = sys!(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL));
        drop(from);
        let done = does();
        if done.is_err() {
            // SAFETY: ends the child.
            unsafe { libc::_exit(1) }
        }
        let _ = sys!(libc::write(to.as_raw_fd(), c".".as_ptr().cast(), 1));
        drop(to);
        let _ = then();
        loop {
            // SAFETY: no pointers.
            unsafe { libc::pause() };
        }
    }
    drop(to);
    let mut byte = 0u8;
    sys!(libc::read(from.as_raw_fd(), (&raw mut byte).cast(), 1))?;
    Ok(Helper(pid))
}

/// Does something in a child; its error is that of the child.
pub fn forked(what: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let pid = sys!(libc::fork())? as i32;
    if pid == 0 {
        leave(what());
    }
    ended(pid)
}

/// Ends this process with what came of something.
pub fn leave(came: io::Result<()>) -> ! {
    let code = match came {
        Ok(()) => 0,
        Err(e) => e.raw_os_error().unwrap_or(255),
    };
    // SAFETY: ends the process, without what belongs to the one that it was forked from.
    unsafe { libc::_exit(code) }
}

/// Waits for a child that ended by [`leave`].
pub fn ended(pid: i32) -> io::Result<()> {
    let mut status = 0;
    sys!(libc::waitpid(pid, &raw mut status, 0))?;
    came_of(status)
}

/// What a child's status says; EINTR, if it was killed.
pub fn came_of(status: i32) -> io::Result<()> {
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, code) => Err(io::Error::from_raw_os_error(code)),
        (false, _) => Err(io::Error::from_raw_os_error(libc::EINTR)),
    }
}

pub fn write(path: &str, text: &str) -> io::Result<()> {
    let file = open(path, libc::O_WRONLY)?;
    io::Write::write_all(&mut &file, text.as_bytes())
}

pub fn set_xattr(path: &str, name: &str, value: &str) -> io::Result<()> {
    let (path, name) = (c(path), c(name));
    let len = value.len();
    sys!(libc::lsetxattr(
        path.as_ptr(),
        name.as_ptr(),
        value.as_ptr().cast(),
        len,
        0
    ))
    .map(drop)
}

pub fn get_xattr(path: &str, name: &str) -> io::Result<String> {
    let (path, name) = (c(path), c(name));
    let mut value = [0u8; 256];
    let got = sys!(libc::lgetxattr(
        path.as_ptr(),
        name.as_ptr(),
        value.as_mut_ptr().cast(),
        value.len()
    ))?;
    Ok(String::from_utf8_lossy(&value[..got as usize])
        .trim_end_matches('\0')
        .into())
}

/// Empties a directory.
pub fn clear(dir: &str) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
