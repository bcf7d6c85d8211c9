//! What operations are made of: the calls, and what is to become of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::profile_ops::tree::{MOUNTED, TREE};
use crate::sys::{answer, c};

pub fn at(path: &str) -> String {
    format!("{TREE}/{path}")
}

pub fn check(ret: impl Into<i64>) -> io::Result<()> {
    answer(ret.into()).map(drop)
}

pub fn read(path: &str) -> io::Result<()> {
    File::open(at(path)).map(drop)
}

pub fn write(path: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(at(path)).map(drop)
}

pub fn flags(path: &str, flags: i32) -> io::Result<()> {
    let path = c(at(path));
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::open(path.as_ptr(), flags, 0o666) })
}

pub fn as_user(part: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: no memory is touched. The file system's id alone, which takes no capability back.
    unsafe { libc::setfsuid(1000) };
    part()
}

pub fn map(path: &str, prot: i32, flags: i32) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .write(prot & libc::PROT_WRITE != 0 && flags == libc::MAP_SHARED)
        .open(at(path))?;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

pub fn protect(path: &str) -> io::Result<()> {
    let file = File::open(at(path))?;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    // SAFETY: our own mapping.
    check(unsafe { libc::mprotect(at, 4096, libc::PROT_READ | libc::PROT_EXEC) })
}

pub fn lock(path: &str, kind: i32) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(at(path))
        .or_else(|_| File::open(at(path)))?;
    // SAFETY: a valid descriptor.
    check(unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) })
}

pub fn truncate(path: &str) -> io::Result<()> {
    let path = c(at(path));
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::truncate(path.as_ptr(), 2) })
}

pub fn mknod(path: &str, mode: u32, dev: u64) -> io::Result<()> {
    let path = c(at(path));
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::mknod(path.as_ptr(), mode | 0o666, dev) })
}

pub fn exchange(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (c(at(from)), c(at(to)));
    // SAFETY: NUL-terminated paths.
    check(unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    })
}

pub fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::socket(family, kind, protocol) })
}

/// A copy of the mount of a part of the tree, which is mounted nowhere.
pub fn detached(path: &str) -> io::Result<File> {
    use std::os::fd::FromRawFd;
    let path = c(at(path));
    // SAFETY: a NUL-terminated path; OPEN_TREE_CLONE.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), 1) };
    check(fd)?;
    // SAFETY: the call made it for us alone.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

pub fn open_in(dir: &File, name: &str) -> io::Result<()> {
    let name = c(name);
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::openat(dir.as_raw_fd(), name.as_ptr(), libc::O_RDONLY) })
}

/// What follows is done among mounts of its own, and leaves none.
pub fn alone(part: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    part()
}

pub fn mount(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: MsFlags,
    data: Option<&str>,
) -> io::Result<()> {
    nix::mount::mount(source, target, kind, flags, data).map_err(io::Error::from)
}

pub fn filesystem(kind: &str, flags: MsFlags, data: Option<&str>) -> io::Result<()> {
    alone(|| mount(Some("none"), &at("empty"), Some(kind), flags, data))
}

pub fn bind(source: &str, target: &str, flags: MsFlags) -> io::Result<()> {
    let flags = flags | MsFlags::MS_BIND;
    mount(Some(source), &at(target), None, flags, None)
}

/// The disk that /payload is on.
pub const DISK: &str = "/dev/pmem1";

pub fn disk(name: &str) -> io::Result<()> {
    let nothing = MsFlags::empty();
    mount(Some(name), &at("empty"), Some("ext4"), nothing, None)
}

/// Something of the mount that is there from the beginning.
pub fn change(flags: MsFlags, data: Option<&str>) -> io::Result<()> {
    alone(|| mount(None, MOUNTED, None, flags, data))
}

pub fn unmount(flags: MntFlags) -> io::Result<()> {
    alone(|| umount2(MOUNTED, flags).map_err(io::Error::from))
}

/// By move_mount(2): a mount from where a descriptor has it.
pub fn moved(from: &File, target: &str) -> io::Result<()> {
    let (from, target) = (from.as_raw_fd(), c(at(target)));
    const EMPTY_PATH: u32 = 4;
    // SAFETY: NUL-terminated paths.
    check(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            from,
            c"".as_ptr(),
            libc::AT_FDCWD,
            target.as_ptr(),
            EMPTY_PATH,
        )
    })
}

/// A filesystem that is mounted nowhere yet.
pub fn made() -> io::Result<File> {
    use std::os::fd::{FromRawFd, OwnedFd};
    let owned = |fd: i64| {
        check(fd)?;
        // SAFETY: the call made it for us alone.
        Ok::<OwnedFd, io::Error>(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    // SAFETY: a NUL-terminated name.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0) })?;
    const CREATE: u32 = 6;
    // SAFETY: a valid descriptor, and nothing else.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, 0, 0, 0) })?;
    // SAFETY: a valid descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0) };
    Ok(owned(fd)?.into())
}

pub fn pivot(new: &str, old: &str) -> io::Result<()> {
    alone(|| nix::unistd::pivot_root(new, old).map_err(io::Error::from))
}

/// The same once more: what became of it the second time, if it is what became of it the first.
pub fn twice(part: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let code = |done: &io::Result<()>| done.as_ref().err().and_then(io::Error::raw_os_error);
    let (first, second) = (part(), part());
    if code(&first) == code(&second) {
        second
    } else {
        Err(io::Error::from_raw_os_error(libc::EXDEV))
    }
}

/// What shall be refused by this error: an error if it is not.
pub fn refused_by(code: i32, done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.raw_os_error() == Some(code) => Ok(()),
        Err(e) => Err(e),
        Ok(()) => Err(io::Error::from_raw_os_error(libc::EEXIST)),
    }
}

pub fn refused(done: io::Result<()>) -> io::Result<()> {
    refused_by(libc::EACCES, done)
}

/// A file of an overlay of two directories.
pub fn read_through_an_overlay() -> io::Result<()> {
    let layers = format!("lowerdir={}:{}", at("dir"), at("ro"));
    alone(|| {
        mount(
            Some("none"),
            &at("empty"),
            Some("overlay"),
            MsFlags::empty(),
            Some(&layers),
        )?;
        read("empty/a")
    })
}

/// The process that tells this one's parent what to do, which nothing confines.
pub fn parent() -> i32 {
    let stat = fs::read_to_string("/srv/ops/player").unwrap_or_default();
    stat.trim().parse().unwrap_or(1)
}

/// A process that is confined as this one is, and waits for its end.
pub fn like() -> i32 {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        0 => loop {
            // SAFETY: no pointers.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::signal(libc::SIGUSR1, libc::SIG_IGN);
                libc::signal(40, libc::SIG_IGN);
                libc::pause()
            };
        },
        pid => pid,
    }
}

pub fn signal(whom: impl Fn() -> i32, signal: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::kill(whom(), signal) })
}

pub fn trace(pid: i32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) })
}

/// A program that does an operation under whatever confines it then.
pub fn program(path: &str, op: &str) -> Command {
    let mut command = Command::new(path);
    // what an execution that scrubs the environment takes away
    command.env("LD_PRELOAD", "/nowhere").args(["act", op]);
    command
}

pub fn came_of(status: ExitStatus) -> io::Result<()> {
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::Error::from_raw_os_error(libc::EINTR)),
    }
}

pub fn exec(name: &str, op: &str) -> io::Result<()> {
    came_of(program(&format!("/srv/ops/bin/{name}"), op).status()?)
}

/// The same, with this process tracing it from before it is executed.
pub fn exec_traced(name: &str, op: &str) -> io::Result<()> {
    let mut command = program(&format!("/srv/ops/bin/{name}"), op);
    // SAFETY: one system call without pointers.
    unsafe { command.pre_exec(|| check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))) };
    let child = command.spawn()?.id() as i32;
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        check(unsafe { libc::waitpid(child, &raw mut status, 0) })?;
        if !libc::WIFSTOPPED(status) {
            return came_of(ExitStatus::from_raw(status));
        }
        // SAFETY: no pointers.
        check(unsafe { libc::ptrace(libc::PTRACE_CONT, child, 0, 0) })?;
    }
}

/// What an executed program does.
pub fn act(op: &str) -> ExitCode {
    let done = match op {
        "read-a" => read("a"),
        "read-secret" => read("secret/a"),
        "write-a" => write("a"),
        // AT_SECURE says whether the environment was to be scrubbed
        // SAFETY: no pointers.
        "secure" => match unsafe { libc::getauxval(libc::AT_SECURE) } {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EXDEV)),
        },
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => ExitCode::from(e.raw_os_error().unwrap_or(255) as u8),
    }
}
