//! Regular files and directories.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::ptr;

use crate::sys::c;
use crate::te_ops::op::Ops;
use crate::te_ops::sys::{OBJ, at, cat, forked, open, past, set_xattr, sys};

/// A file of two pages.
pub fn make() -> io::Result<()> {
    fs::write(at("f"), "content\n".repeat(1024))?;
    fs::set_permissions(at("f"), PermissionsExt::from_mode(0o777))
}

/// Two directories, with a file in one.
fn dirs() -> io::Result<()> {
    fs::create_dir_all(at("dir/sub"))?;
    fs::create_dir(at("other"))?;
    fs::write(at("dir/f"), "content\n")
}

fn opened(flags: i32) -> io::Result<File> {
    open(&at("f"), flags)
}

fn map(prot: i32, flags: i32) -> io::Result<*mut libc::c_void> {
    let writes = prot & libc::PROT_WRITE != 0 && flags == libc::MAP_SHARED;
    let file = opened(if writes { libc::O_RDWR } else { libc::O_RDONLY })?;
    mapped(0, prot, flags, file.as_raw_fd())
}

fn mapped(to: usize, prot: i32, flags: i32, fd: i32) -> io::Result<*mut libc::c_void> {
    // SAFETY: nothing of ours is where it comes to.
    match unsafe { libc::mmap(to as *mut _, 4096, prot, flags, fd, 0) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        there => Ok(there),
    }
}

const ANONYMOUS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
const RX: i32 = libc::PROT_READ | libc::PROT_EXEC;
const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn protect(page: *mut libc::c_void, prot: i32) -> io::Result<()> {
    let page = (page as usize & !4095) as *mut _;
    sys!(libc::mprotect(page, 4096, prot)).map(drop)
}

fn ioctl(request: u64) -> io::Result<()> {
    let file = opened(libc::O_RDONLY)?;
    let mut value = 0u64;
    past(sys!(libc::ioctl(
        file.as_raw_fd(),
        request as _,
        &raw mut value
    )))
}

fn rename(from: &str, to: &str, flags: u32) -> io::Result<()> {
    let (from, to) = (cat(from), cat(to));
    let here = libc::AT_FDCWD;
    sys!(libc::renameat2(
        here,
        from.as_ptr(),
        here,
        to.as_ptr(),
        flags
    ))
    .map(drop)
}

fn access(how: i32) -> io::Result<()> {
    let path = cat("f");
    sys!(libc::access(path.as_ptr(), how)).map(drop)
}

fn watch(path: &str, events: u32) -> io::Result<()> {
    let path = c(path);
    let on = sys!(libc::inotify_init1(0))?;
    sys!(libc::inotify_add_watch(on as i32, path.as_ptr(), events)).map(drop)
}

fn mark(class: u32, flags: u32, events: u64) -> io::Result<()> {
    let path = cat("f");
    let on = sys!(libc::fanotify_init(class, 0))?;
    let flags = libc::FAN_MARK_ADD | flags;
    sys!(libc::fanotify_mark(
        on as i32,
        flags,
        events,
        libc::AT_FDCWD,
        path.as_ptr()
    ))
    .map(drop)
}

fn lock(kind: i16) -> io::Result<()> {
    let file = opened(libc::O_RDWR)?;
    // SAFETY: zeroes are a lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    sys!(libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut lock)).map(drop)
}

pub fn add(ops: &mut Ops) {
    ops.with("open a file to read", make, |()| {
        opened(libc::O_RDONLY).map(drop)
    });
    ops.with("open a file to write", make, |()| {
        opened(libc::O_WRONLY).map(drop)
    });
    ops.with("open a file to append", make, |()| {
        opened(libc::O_WRONLY | libc::O_APPEND).map(drop)
    });
    ops.with("open a file to read and write", make, |()| {
        opened(libc::O_RDWR).map(drop)
    });
    ops.with("open a file and cut it", make, |()| {
        opened(libc::O_WRONLY | libc::O_TRUNC).map(drop)
    });
    ops.with("open a path only", make, |()| {
        opened(libc::O_PATH).map(drop)
    });
    ops.with("open a path and open it anew", make, |()| {
        let path = opened(libc::O_PATH)?;
        open(
            &format!("/proc/self/fd/{}", path.as_raw_fd()),
            libc::O_RDONLY,
        )
        .map(drop)
    });
    ops.with("read a file", make, |()| {
        opened(libc::O_RDONLY)?.read(&mut [0; 8]).map(drop)
    });
    ops.with("write a file", make, |()| {
        opened(libc::O_WRONLY)?.write_all(b"x")
    });
    ops.with("append to a file", make, |()| {
        opened(libc::O_WRONLY | libc::O_APPEND)?.write_all(b"x")
    });
    ops.with("append no more", make, |()| {
        let file = opened(libc::O_WRONLY | libc::O_APPEND)?;
        sys!(libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0)).map(drop)
    });
    ops.plain("create a file", || {
        open(&at("new"), libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL).map(drop)
    })
    .labels("new");
    ops.plain("create a file whose name has a type", || {
        open(&at("named"), libc::O_WRONLY | libc::O_CREAT).map(drop)
    })
    .labels("named");
    ops.with("create a file in a directory that is made", dirs, |()| {
        open(&at("dir/new"), libc::O_WRONLY | libc::O_CREAT).map(drop)
    })
    .labels("dir/new");
    ops.plain("create a file without a name", || {
        open(OBJ, libc::O_RDWR | libc::O_TMPFILE).map(drop)
    });
    ops.plain("give a file a name that had none", || {
        let file = open(OBJ, libc::O_RDWR | libc::O_TMPFILE)?;
        let (from, to) = (c(format!("/proc/self/fd/{}", file.as_raw_fd())), cat("new"));
        let here = libc::AT_FDCWD;
        sys!(libc::linkat(
            here,
            from.as_ptr(),
            here,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW
        ))
        .map(drop)
    })
    .labels("new");
    ops.with("cut a file by its name", make, |()| {
        let path = cat("f");
        sys!(libc::truncate(path.as_ptr(), 2)).map(drop)
    });
    ops.with("cut an open file", make, |()| {
        opened(libc::O_WRONLY)?.set_len(2)
    });
    ops.with("make room in a file", make, |()| {
        let file = opened(libc::O_WRONLY)?;
        sys!(libc::fallocate(file.as_raw_fd(), 0, 0, 100_000)).map(drop)
    });
    ops.with("rename a file", make, |()| rename("f", "g", 0));
    ops.with(
        "rename a file over another",
        || make().and_then(|()| fs::write(at("g"), "")),
        |()| rename("f", "g", 0),
    );
    ops.with(
        "exchange two files",
        || make().and_then(|()| fs::write(at("g"), "")),
        |()| rename("f", "g", libc::RENAME_EXCHANGE),
    );
    ops.with("leave nothing at the old name", make, |()| {
        rename("f", "g", libc::RENAME_WHITEOUT)
    })
    .labels("f");
    ops.with("move a file to another directory", dirs, |()| {
        rename("dir/f", "other/f", 0)
    });
    ops.with("move a directory to another", dirs, |()| {
        rename("dir/sub", "other/sub", 0)
    });
    ops.with("rename a directory over an empty one", dirs, |()| {
        rename("dir", "other", 0)
    });
    ops.with("copy a range", make, |()| {
        let (from, to) = (
            opened(libc::O_RDONLY)?,
            open(&at("to"), libc::O_WRONLY | libc::O_CREAT)?,
        );
        let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
        sys!(libc::copy_file_range(
            from,
            ptr::null_mut(),
            to,
            ptr::null_mut(),
            10,
            0
        ))
        .map(drop)
    });
    ops.with("change the times", make, |()| {
        let path = cat("f");
        sys!(libc::utimes(path.as_ptr(), ptr::null())).map(drop)
    });
    ops.with("set the times", make, |()| {
        let (path, times) = (
            cat("f"),
            [libc::timeval {
                tv_sec: 1,
                tv_usec: 1,
            }; 2],
        );
        sys!(libc::utimes(path.as_ptr(), times.as_ptr())).map(drop)
    });
    let attributed = || make().and_then(|()| set_xattr(&at("f"), "user.x", "y"));
    ops.with("set an attribute", make, |()| {
        set_xattr(&at("f"), "user.x", "y")
    });
    ops.with("read an attribute", attributed, |()| {
        crate::te_ops::sys::get_xattr(&at("f"), "user.x").map(drop)
    });
    ops.with("list the attributes", attributed, |()| {
        let path = cat("f");
        sys!(libc::listxattr(path.as_ptr(), ptr::null_mut(), 0)).map(drop)
    });
    ops.with("remove an attribute", attributed, |()| {
        let path = cat("f");
        sys!(libc::removexattr(path.as_ptr(), c"user.x".as_ptr())).map(drop)
    });
    ops.with("set a trusted attribute", make, |()| {
        set_xattr(&at("f"), "trusted.x", "y")
    });
    ops.with("set an access list", make, |()| {
        let acl = "\u{2}\0\0\0\u{1}\0\u{6}\0";
        let entries = [(4u16, 4u16), (0x20, 4)].map(|(tag, perm)| {
            [tag.to_le_bytes(), perm.to_le_bytes(), [0xff; 2], [0xff; 2]].concat()
        });
        let value = [acl.as_bytes(), &[0xff; 4], &entries.concat()].concat();
        let path = cat("f");
        sys!(libc::setxattr(
            path.as_ptr(),
            c"system.posix_acl_access".as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0
        ))
        .map(drop)
    });
    for (name, how) in [
        ("exists", libc::F_OK),
        ("may be read", libc::R_OK),
        ("may be written", libc::W_OK),
        ("may be executed", libc::X_OK),
    ] {
        ops.with(format!("ask whether a file {name}"), make, move |()| {
            access(how)
        });
    }
    ops.with("ask about a file's status by statx", make, |()| {
        let path = cat("f");
        // SAFETY: zeroes are a status.
        let mut status: libc::statx = unsafe { std::mem::zeroed() };
        sys!(libc::statx(
            libc::AT_FDCWD,
            path.as_ptr(),
            0,
            libc::STATX_ALL,
            &raw mut status
        ))
        .map(drop)
    });
    ops.with("ask about an open file's status", make, |()| {
        opened(libc::O_RDONLY)?.metadata().map(drop)
    });
    ops.with(
        "look up a deep name",
        || fs::create_dir_all(at("dir/sub/deep")),
        |()| open(&at("dir/sub/deep"), libc::O_PATH).map(drop),
    );
    ops.with("go to a directory", dirs, |()| {
        std::env::set_current_dir(at("dir"))
    });
    ops.with("go to an open directory", dirs, |()| {
        let dir = open(&at("dir"), libc::O_RDONLY)?;
        sys!(libc::fchdir(dir.as_raw_fd())).map(drop)
    });
    ops.with("list a directory", dirs, |()| {
        fs::read_dir(at("dir")).map(|entries| drop(entries.collect::<Vec<_>>()))
    });
    ops.with("sync a directory", dirs, |()| {
        open(&at("dir"), libc::O_RDONLY)?.sync_all()
    });
    ops.with("lock a directory", dirs, |()| {
        let dir = open(&at("dir"), libc::O_RDONLY)?;
        sys!(libc::flock(dir.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB)).map(drop)
    });
    ops.with("lock a file whole", make, |()| {
        let file = opened(libc::O_RDONLY)?;
        sys!(libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB)).map(drop)
    });
    ops.with("lock a range to read", make, |()| {
        lock(libc::F_RDLCK as i16)
    });
    ops.with("lock a range to write", make, |()| {
        lock(libc::F_WRLCK as i16)
    });
    ops.with("ask about a lock", make, |()| {
        let file = opened(libc::O_RDONLY)?;
        // SAFETY: zeroes are a lock.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        sys!(libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock)).map(drop)
    });
    ops.with("take a lease", make, |()| {
        let file = opened(libc::O_RDONLY)?;
        sys!(libc::fcntl(
            file.as_raw_fd(),
            libc::F_SETLEASE,
            libc::F_RDLCK
        ))
        .map(drop)
    });
    ops.with("have a signal sent at readiness", make, |()| {
        let file = opened(libc::O_RDONLY)?;
        sys!(libc::fcntl(
            file.as_raw_fd(),
            libc::F_SETOWN,
            libc::getpid()
        ))
        .map(drop)
    });
    for (name, request) in [
        ("FIONREAD", 0x541b),
        ("FIONBIO", 0x5421),
        ("FIOCLEX", 0x5451),
        ("FIGETBSZ", 2),
        ("FS_IOC_GETFLAGS", 0x8008_6601u64),
        ("FS_IOC_GETVERSION", 0x8008_7601),
        ("FS_IOC_SETFLAGS", 0x4008_6602),
        ("FS_IOC_SETVERSION", 0x4008_7602),
        ("FITRIM", 0xc018_5879),
        ("TCGETS", 0x5401),
        ("TIOCSTI", 0x5412),
    ] {
        ops.with(format!("ioctl {name}"), make, move |()| ioctl(request));
    }
    ops.with("map a file to read", make, |()| {
        map(libc::PROT_READ, libc::MAP_PRIVATE).map(drop)
    });
    ops.with("map a file to write, shared", make, |()| {
        map(RW, libc::MAP_SHARED).map(drop)
    });
    ops.with("map a file to write, for oneself", make, |()| {
        map(RW, libc::MAP_PRIVATE).map(drop)
    });
    ops.with("map a file to execute", make, |()| {
        map(RX, libc::MAP_PRIVATE).map(drop)
    });
    ops.with("map a file to write and execute", make, |()| {
        map(RW | RX, libc::MAP_PRIVATE).map(drop)
    });
    ops.with("make a shared mapping executable", make, |()| {
        protect(map(RW, libc::MAP_SHARED)?, RX)
    });
    ops.with("make a mapping executable", make, |()| {
        protect(map(libc::PROT_READ, libc::MAP_PRIVATE)?, RX)
    });
    ops.with("make a mapping writable", make, |()| {
        let file = opened(libc::O_RDWR)?;
        protect(
            mapped(0, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())?,
            RW,
        )
    });
    ops.with("make a modified mapping executable", make, |()| {
        let page = map(RW, libc::MAP_PRIVATE)?;
        // SAFETY: our own mapping.
        unsafe { page.cast::<u8>().write_volatile(1) };
        protect(page, RX)
    });
    ops.plain("map memory to write and execute", || {
        mapped(0, RW | RX, ANONYMOUS, -1).map(drop)
    });
    ops.plain("map shared memory to execute", || {
        mapped(0, RX, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1).map(drop)
    });
    ops.plain("make memory executable", || {
        protect(mapped(0, RW, ANONYMOUS, -1)?, RX)
    });
    ops.plain("make the heap executable", || {
        // SAFETY: the break is moved up, and nobody else's.
        let start = unsafe { libc::sbrk(8192) };
        protect((start as usize + 4095) as *mut _, RX)
    });
    ops.plain("make the stack executable", || {
        let here = 0u8;
        protect((&raw const here).cast_mut().cast(), RW | RX)
    });
    ops.plain("map the lowest page", || {
        mapped(4096, RW, ANONYMOUS | libc::MAP_FIXED, -1).map(drop)
    });
    ops.with("watch a file", make, |()| watch(&at("f"), libc::IN_MODIFY));
    ops.with("watch a file's reads", make, |()| {
        watch(&at("f"), libc::IN_ACCESS)
    });
    ops.with("watch a directory", dirs, |()| {
        watch(&at("dir"), libc::IN_CREATE)
    });
    ops.with("watch a directory by a descriptor", dirs, |()| {
        let dir = open(&at("dir"), libc::O_RDONLY)?;
        sys!(libc::fcntl(
            dir.as_raw_fd(),
            libc::F_NOTIFY,
            2 // DN_MODIFY
        ))
        .map(drop)
    });
    ops.with("mark a file", make, |()| {
        mark(libc::FAN_CLASS_NOTIF, 0, libc::FAN_MODIFY)
    });
    ops.with("mark a mount", make, |()| {
        mark(
            libc::FAN_CLASS_NOTIF,
            libc::FAN_MARK_MOUNT,
            libc::FAN_MODIFY,
        )
    });
    ops.with("mark a file system", make, |()| {
        mark(
            libc::FAN_CLASS_NOTIF,
            libc::FAN_MARK_FILESYSTEM,
            libc::FAN_MODIFY,
        )
    });
    ops.with("mark a file to be asked", make, |()| {
        mark(libc::FAN_CLASS_CONTENT, 0, libc::FAN_OPEN_PERM)
    });
    ops.with("hold a file by a handle", make, |()| {
        let path = cat("f");
        let mut handle = [128u32; 40];
        let mut mount = 0;
        // the size of what follows, and then what is filled in
        handle[0] = 128;
        sys!(libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0
        ))?;
        let on = open("/srv/ops", libc::O_RDONLY)?;
        sys!(libc::syscall(
            libc::SYS_open_by_handle_at,
            on.as_raw_fd(),
            handle.as_mut_ptr(),
            libc::O_RDONLY
        ))
        .map(drop)
    });
    // what policies have besides allow rules
    for place in ["category", "higher", "roles", "owned", "boolean"] {
        let path = format!("/srv/ops/{place}/f");
        let (to_read, to_write) = (path.clone(), path);
        ops.plain(format!("read a file of {place}"), move || {
            open(&to_read, libc::O_RDONLY).map(drop)
        });
        ops.plain(format!("write a file of {place}"), move || {
            open(&to_write, libc::O_WRONLY).map(drop)
        });
    }
    ops.with("set a label", make, |()| {
        set_xattr(&at("f"), "security.selinux", "u:object_r:other_t:s0")
    })
    .labels("f")
    .own();
    ops.with("set a label that does not exist", make, |()| {
        set_xattr(&at("f"), "security.selinux", "u:object_r:no_such_t:s0")
    })
    .own();
    ops.with("write on after a fork", make, |()| {
        let file = opened(libc::O_WRONLY)?;
        forked(|| (&file).write_all(b"x"))
    });
    ops.plain("write and read a pipe", || {
        let (mut from, mut to) = io::pipe()?;
        to.write_all(b"x")?;
        from.read(&mut [0; 1]).map(drop)
    });
    ops.plain("ask about a pipe", || {
        let (from, _to) = io::pipe()?;
        // SAFETY: zeroes are a status.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        sys!(libc::fstat(from.as_raw_fd(), &raw mut status)).map(drop)
    });
    ops.plain("open a pipe anew", || {
        let (from, _to) = io::pipe()?;
        open(
            &format!("/proc/self/fd/{}", from.as_raw_fd()),
            libc::O_RDONLY,
        )
        .map(drop)
    });
    ops.plain("change a pipe's mode", || {
        let (from, _to) = io::pipe()?;
        sys!(libc::fchmod(from.as_raw_fd(), 0o600)).map(drop)
    });
    ops.plain("a file in memory", || {
        let file = sys!(libc::memfd_create(c"ops".as_ptr(), 0)).map(crate::te_ops::sys::fd)?;
        File::from(file).write_all(b"x")
    });
    ops.plain("map a file in memory to execute", || {
        let file = sys!(libc::memfd_create(c"ops".as_ptr(), 0)).map(crate::te_ops::sys::fd)?;
        sys!(libc::ftruncate(file.as_raw_fd(), 4096))?;
        mapped(0, RX, libc::MAP_PRIVATE, file.as_raw_fd()).map(drop)
    });
}
