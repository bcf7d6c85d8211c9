//! The system calls that are played, by bare descriptors: what a process holds is the driver's to know.

use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::ptr;

fn checked(result: i64) -> Result<i64> {
    match result {
        -1 => Err(Error::last_os_error()),
        result => Ok(result),
    }
}

/// open(2): `r`, `w`, `rw`, `a` to append, `c` to create.
pub fn open(path: &str, mode: &str) -> Result<i32> {
    let flags = match mode {
        "r" => libc::O_RDONLY,
        "w" => libc::O_WRONLY,
        "rw" => libc::O_RDWR,
        "a" => libc::O_WRONLY | libc::O_APPEND,
        _ => libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
    };
    let path = CString::new(path)?;
    // SAFETY: the path is a string that ends.
    let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_NONBLOCK, 0o644) };
    checked(fd.into()).map(|fd| fd as i32)
}

/// read(2)
pub fn read(fd: i32, bytes: &mut [u8]) -> Result<usize> {
    // SAFETY: the slice is written within its length.
    let n = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
    checked(n as i64).map(|n| n as usize)
}

/// A byte at the beginning.
pub fn pread(fd: i32) -> Result<()> {
    let mut byte = [0_u8];
    // SAFETY: one byte is written to a buffer of one.
    checked(unsafe { libc::pread(fd, byte.as_mut_ptr().cast(), 1, 0) } as i64).map(drop)
}

/// write(2)
pub fn write(fd: i32, bytes: &[u8]) -> Result<()> {
    // SAFETY: the slice is read within its length.
    checked(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) } as i64).map(drop)
}

/// flock(2)
pub fn lock(fd: i32) -> Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::flock(fd, libc::LOCK_SH | libc::LOCK_NB) }.into()).map(drop)
}

/// mmap(2) of a page, shared.
pub fn map(fd: i32, writes: bool) -> Result<usize> {
    let prot = if writes {
        libc::PROT_READ | libc::PROT_WRITE
    } else {
        libc::PROT_READ
    };
    // SAFETY: the kernel chooses a place where nothing is.
    let at = unsafe { libc::mmap(ptr::null_mut(), 4096, prot, libc::MAP_SHARED, fd, 0) };
    checked(at as i64).map(|at| at as usize)
}

/// munmap(2) of that.
pub fn unmap(at: usize) -> Result<()> {
    // SAFETY: it is what `map` gave, and nobody refers to it.
    checked(unsafe { libc::munmap(at as *mut libc::c_void, 4096) }.into()).map(drop)
}

/// close(2)
pub fn close(fd: i32) -> Result<()> {
    // SAFETY: the driver says whose numbers these are.
    checked(unsafe { libc::close(fd) }.into()).map(drop)
}

fn socket(family: i32) -> Result<i32> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::socket(family, libc::SOCK_STREAM, 0) }.into()).map(|fd| fd as i32)
}

/// Connects to a port of 127.0.0.1.
pub fn connect_tcp(port: u16) -> Result<i32> {
    let fd = socket(libc::AF_INET)?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_be_bytes([127, 0, 0, 1]).to_be(),
        },
        sin_zero: [0; 8],
    };
    let len = size_of_val(&address) as u32;
    // SAFETY: the address is read within its length.
    let done = checked(unsafe { libc::connect(fd, (&raw const address).cast(), len) }.into());
    kept(fd, done)
}

/// Connects to a Unix socket.
pub fn connect_unix(path: &str) -> Result<i32> {
    let fd = socket(libc::AF_UNIX)?;
    let mut address = libc::sockaddr_un {
        sun_family: libc::AF_UNIX as u16,
        sun_path: [0; 108],
    };
    for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as i8;
    }
    let len = size_of_val(&address) as u32;
    // SAFETY: the address is read within its length.
    let done = checked(unsafe { libc::connect(fd, (&raw const address).cast(), len) }.into());
    kept(fd, done)
}

fn kept(fd: i32, done: Result<i64>) -> Result<i32> {
    match done {
        Ok(_) => {
            // splice(2) from TCP waits otherwise, whatever its flags say
            // SAFETY: no memory is involved.
            let set = unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
            checked(set.into()).map(|_| fd)
        }
        Err(e) => {
            close(fd)?;
            Err(e)
        }
    }
}

/// send(2) of a byte.
pub fn send(fd: i32) -> Result<()> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: one byte is read of one.
    checked(unsafe { libc::send(fd, b"x".as_ptr().cast(), 1, flags) } as i64).map(drop)
}

/// What waits for nobody is well: there is nothing to be received.
fn nothing_there(result: Result<i64>) -> Result<()> {
    match result {
        Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
        other => other.map(drop),
    }
}

/// recv(2)
pub fn receive(fd: i32) -> Result<()> {
    let mut byte = [0_u8];
    // SAFETY: one byte is written to a buffer of one.
    nothing_there(checked(
        unsafe { libc::recv(fd, byte.as_mut_ptr().cast(), 1, libc::MSG_DONTWAIT) } as i64,
    ))
}

/// splice(2) from it into a pipe of one's own.
pub fn splice(fd: i32) -> Result<()> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to room for two.
    checked(unsafe { libc::pipe(ends.as_mut_ptr()) }.into())?;
    // SAFETY: no memory is involved.
    let spliced = unsafe {
        libc::splice(
            fd,
            ptr::null_mut(),
            ends[1],
            ptr::null_mut(),
            1,
            libc::SPLICE_F_NONBLOCK,
        )
    };
    let spliced = nothing_there(checked(spliced as i64));
    close(ends[0])?;
    close(ends[1])?;
    spliced
}

/// Sends bytes, and with them a descriptor (SCM_RIGHTS).
pub fn send_with(to: i32, fd: i32, bytes: &[u8]) -> Result<()> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr() as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    let mut control = [0_u64; 3];
    // SAFETY: all zeros is a message that says nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 24;
    // SAFETY: the control buffer has room for a header and a descriptor.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(head).cast::<i32>().write_unaligned(fd);
    }
    // SAFETY: what the message refers to is still there.
    checked(unsafe {
        libc::sendmsg(
            to,
            &raw const message,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    } as i64)
    .map(drop)
}

/// Hands a descriptor over.
pub fn give(to: i32, fd: i32) -> Result<()> {
    send_with(to, fd, b"f")
}

/// Receives one; `None`: a message without, as it was refused.
pub fn take(from: i32) -> Result<Option<i32>> {
    let mut byte = [0_u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0_u64; 3];
    // SAFETY: all zeros is a message that has room for nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 24;
    // SAFETY: what the message refers to is still there.
    checked(unsafe { libc::recvmsg(from, &raw mut message, libc::MSG_DONTWAIT) } as i64)?;
    // SAFETY: the kernel has filled the control buffer in to `msg_controllen`.
    unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        if head.is_null() || (*head).cmsg_type != libc::SCM_RIGHTS {
            return Ok(None);
        }
        Ok(Some(libc::CMSG_DATA(head).cast::<i32>().read_unaligned()))
    }
}

/// pidfd_getfd(2): another process's descriptor, which stays when something is executed.
pub fn take_from(pid: i32, fd: i32) -> Result<i32> {
    // SAFETY: no memory is involved.
    let process = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })? as i32;
    // SAFETY: no memory is involved.
    let taken = checked(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0) });
    close(process)?;
    let fd = taken? as i32;
    // SAFETY: no memory is involved.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }.into()).map(|_| fd)
}

/// fork(2): the child goes on with copies of all.
pub fn fork() -> Result<i32> {
    // SAFETY: there is one thread.
    checked(unsafe { libc::fork() }.into()).map(|pid| pid as i32)
}

/// Waits for a child: whether it ended well.
pub fn wait(pid: i32) -> Result<bool> {
    let mut status = 0;
    // SAFETY: the status is written to room for it.
    checked(unsafe { libc::waitpid(pid, &raw mut status, 0) }.into())?;
    Ok(status == 0)
}

/// dup2(2)
pub fn become_of(fd: i32, number: i32) -> Result<()> {
    // SAFETY: the driver says whose numbers these are.
    checked(unsafe { libc::dup2(fd, number) }.into()).map(drop)
}

/// Executes a program as another actor; comes back if it cannot.
pub fn exec(program: &CStr) -> Error {
    let arguments = [program.as_ptr(), c"actor".as_ptr(), ptr::null()];
    // SAFETY: the arguments are strings, and end with none.
    unsafe { libc::execv(program.as_ptr(), arguments.as_ptr()) };
    Error::last_os_error()
}

/// A pair of sockets, which those who are executed have.
pub fn pair() -> Result<(i32, i32)> {
    let mut ends = [0; 2];
    let (family, kind) = (libc::AF_UNIX, libc::SOCK_STREAM);
    // SAFETY: two descriptors are written to room for two.
    checked(unsafe { libc::socketpair(family, kind, 0, ends.as_mut_ptr()) }.into())?;
    Ok((ends[0], ends[1]))
}

/// A pipe, which those who are executed have: where it is read, and where it is written.
pub fn pipe() -> Result<(i32, i32)> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to room for two.
    checked(unsafe { libc::pipe(ends.as_mut_ptr()) }.into())?;
    Ok((ends[0], ends[1]))
}

/// Whether something can be read at once, or within so many milliseconds.
pub fn is_readable(fd: i32, milliseconds: i32) -> bool {
    let mut ask = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry is there.
    unsafe { libc::poll(&raw mut ask, 1, milliseconds) == 1 }
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to room for it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Memory with these bytes, which keeps them, as a descriptor without a name.
pub fn memory(bytes: &[u8]) -> Result<i32> {
    // SAFETY: the name is a string that ends.
    let made = unsafe { libc::memfd_create(c"bundle".as_ptr(), libc::MFD_ALLOW_SEALING) };
    let fd = checked(made.into())? as i32;
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the slice is read within its length.
        let n = checked(unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) } as i64)?;
        rest = &rest[n as usize..];
    }
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK;
    // SAFETY: no memory is involved.
    checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) }.into())?;
    Ok(fd)
}
