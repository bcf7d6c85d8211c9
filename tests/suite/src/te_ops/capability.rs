//! What root may do by a capability alone; in a user's namespace of its own, too.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown};
use std::ptr;

use crate::sys::c;
use crate::te_ops::file;
use crate::te_ops::op::Ops;
use crate::te_ops::process;
use crate::te_ops::sys::{at, cat, open, past, set_xattr, so, sys};

/// A user's file, and nobody else's.
fn private() -> io::Result<()> {
    file::make()?;
    fs::set_permissions(at("f"), PermissionsExt::from_mode(0o0))?;
    chown(at("f"), Some(1000), Some(1000))
}

fn unshare(flags: i32) -> io::Result<()> {
    sys!(libc::unshare(flags)).map(drop)
}

/// Brings the loopback up.
fn up() -> io::Result<()> {
    // SAFETY: zeroes are a request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as _;
    request.ifr_name[1] = b'o' as _;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as _;
    let socket = sys!(libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0))?;
    sys!(libc::ioctl(
        socket as i32,
        libc::SIOCSIFFLAGS,
        &raw mut request
    ))
    .map(drop)
}

/// In a user's namespace whose root is this user.
fn among_users(what: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    unshare(libc::CLONE_NEWUSER)?;
    for (map, text) in [
        ("setgroups", "deny"),
        ("uid_map", "0 0 1"),
        ("gid_map", "0 0 1"),
    ] {
        crate::te_ops::sys::write(&format!("/proc/self/{map}"), text)?;
    }
    what()
}

pub fn bind(family: i32, kind: i32, port: u16) -> io::Result<i64> {
    let socket = sys!(libc::socket(family, kind, 0))?;
    let one = 1;
    sys!(libc::setsockopt(
        socket as i32,
        libc::SOL_SOCKET,
        libc::SO_REUSEADDR,
        (&raw const one).cast(),
        4
    ))?;
    let address = crate::te_ops::socket::inet(port);
    sys!(libc::bind(socket as i32, (&raw const address).cast(), 16))?;
    Ok(socket)
}

pub fn add(ops: &mut Ops) {
    ops.with("capability chown", file::make, |()| {
        chown(at("f"), Some(1000), None)
    });
    ops.with("capability dac_override", private, |()| {
        open(&at("f"), libc::O_WRONLY).map(drop)
    });
    ops.with("capability dac_read_search", private, |()| {
        open(&at("f"), libc::O_RDONLY).map(drop)
    });
    ops.with("capability fowner", private, |()| {
        fs::set_permissions(at("f"), PermissionsExt::from_mode(0o600))
    });
    ops.with(
        "capability fsetid",
        || {
            file::make()?;
            lchown(at("f"), Some(0), Some(1000))
        },
        |()| {
            fs::set_permissions(at("f"), PermissionsExt::from_mode(0o2755))?;
            so(fs::metadata(at("f"))?.mode() & 0o2000 != 0)
        },
    );
    ops.told("capability kill", process::stranger, |pid| {
        sys!(libc::kill(pid as i32, libc::SIGUSR1)).map(drop)
    });
    ops.plain("capability setgid", || sys!(libc::setgid(1000)).map(drop));
    ops.plain("capability setgid, groups", || {
        sys!(libc::setgroups(0, ptr::null())).map(drop)
    });
    ops.plain("capability setuid", || sys!(libc::setuid(1000)).map(drop));
    ops.plain("capability setpcap", || {
        sys!(libc::prctl(libc::PR_CAPBSET_DROP, 25, 0, 0, 0)).map(drop)
    });
    ops.plain("capability setpcap, securebits", || {
        sys!(libc::prctl(libc::PR_SET_SECUREBITS, 1, 0, 0, 0)).map(drop)
    });
    ops.with("capability linux_immutable", file::make, |()| {
        let file = open(&at("f"), libc::O_RDONLY)?;
        for mut flags in [0x20u64, 0] {
            sys!(libc::ioctl(file.as_raw_fd(), 0x4008_6602, &raw mut flags))?;
        }
        Ok(())
    });
    ops.plain("capability net_bind_service", || {
        bind(libc::AF_INET, libc::SOCK_STREAM, 81).map(drop)
    });
    ops.plain("capability net_admin", up);
    ops.plain("capability net_raw", || {
        sys!(libc::socket(
            libc::AF_INET,
            libc::SOCK_RAW,
            libc::IPPROTO_ICMP
        ))
        .map(drop)
    });
    ops.plain("capability ipc_lock", || {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        sys!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none))?;
        let page = [0u8; 8192];
        sys!(libc::mlock(page.as_ptr().cast(), 4096)).map(drop)
    });
    ops.told("capability ipc_owner", crate::te_ops::ipc::foreign, |id| {
        // SAFETY: zeroes are a status.
        let mut status: libc::msqid_ds = unsafe { std::mem::zeroed() };
        sys!(libc::msgctl(id as i32, libc::IPC_STAT, &raw mut status)).map(drop)
    });
    ops.told(
        "capability sys_admin, of a queue",
        crate::te_ops::ipc::foreign,
        |id| sys!(libc::msgctl(id as i32, libc::IPC_RMID, ptr::null_mut())).map(drop),
    );
    ops.plain("capability sys_module", || {
        past(sys!(libc::syscall(
            libc::SYS_init_module,
            0,
            0,
            c"".as_ptr()
        )))
    });
    ops.plain("capability sys_rawio", || {
        sys!(libc::ioperm(0x80, 1, 1)).map(drop)
    });
    ops.plain("capability sys_chroot", || {
        std::os::unix::fs::chroot("/srv")
    });
    ops.told("capability sys_ptrace", process::stranger, |pid| {
        fs::read_link(format!("/proc/{pid}/exe")).map(drop)
    });
    ops.plain("capability sys_pacct", || {
        sys!(libc::acct(ptr::null())).map(drop)
    });
    ops.plain("capability sys_admin", || {
        nix::unistd::sethostname("tidegate").map_err(io::Error::from)
    });
    ops.plain("capability sys_admin, swap", || {
        let path = c("/srv/ops/nothing");
        past(sys!(libc::swapoff(path.as_ptr())))
    });
    ops.plain("capability sys_admin, mounts apart", || {
        unshare(libc::CLONE_NEWNS)
    });
    ops.plain("capability sys_boot", || {
        past(sys!(libc::syscall(libc::SYS_reboot, 1, 2, 3, 0)))
    });
    ops.plain("capability sys_nice", || {
        sys!(libc::setpriority(libc::PRIO_PROCESS, 0, -5)).map(drop)
    });
    ops.plain("capability sys_nice, real time", || {
        let parameter = libc::sched_param { sched_priority: 1 };
        sys!(libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO,
            &raw const parameter
        ))
        .map(drop)
    });
    ops.plain("capability sys_resource", || {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        sys!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_max += 1;
        sys!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).map(drop)
    });
    ops.plain("capability sys_time", || {
        // an adjustment by nothing
        // SAFETY: zeroes are one.
        let mut by: libc::timex = unsafe { std::mem::zeroed() };
        by.modes = libc::ADJ_OFFSET;
        past(sys!(libc::adjtimex(&raw mut by)))
    });
    ops.plain("capability sys_tty_config", || {
        let _ = sys!(libc::setsid());
        sys!(libc::vhangup()).map(drop)
    });
    ops.plain("capability mknod", || {
        let path = cat("new");
        sys!(libc::mknod(
            path.as_ptr(),
            libc::S_IFCHR | 0o600,
            1 << 8 | 3
        ))
        .map(drop)
    })
    .labels("new");
    ops.with("capability lease", private, |()| {
        let file = open(&at("f"), libc::O_RDONLY)?;
        sys!(libc::fcntl(
            file.as_raw_fd(),
            libc::F_SETLEASE,
            libc::F_RDLCK
        ))
        .map(drop)
    });
    ops.plain("capability audit_read", || {
        let socket = sys!(libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW,
            libc::NETLINK_AUDIT
        ))?;
        let address = crate::te_ops::socket::netlink(1);
        sys!(libc::bind(socket as i32, (&raw const address).cast(), 12)).map(drop)
    });
    ops.with("capability setfcap", file::make, |()| {
        set_xattr(
            &at("f"),
            "security.capability",
            "\0\0\0\u{2}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        )
        .or_else(|e| {
            if e.raw_os_error() == Some(libc::EINVAL) {
                Ok(())
            } else {
                Err(e)
            }
        })
    });
    ops.plain("capability wake_alarm", || {
        sys!(libc::timerfd_create(libc::CLOCK_BOOTTIME_ALARM, 0)).map(drop)
    });
    ops.plain("capability checkpoint_restore", || {
        past(sys!(libc::prctl(
            libc::PR_SET_MM,
            libc::PR_SET_MM_MAP,
            0,
            0,
            0
        )))
    });
    ops.plain("the last process's number", || {
        let last = fs::read_to_string("/proc/sys/kernel/ns_last_pid");
        past(
            last.and_then(|last| crate::te_ops::sys::write("/proc/sys/kernel/ns_last_pid", &last))
                .map(|()| 0),
        )
    });
    ops.plain("a namespace of users", || unshare(libc::CLONE_NEWUSER));
    ops.plain("a namespace of users, mapped", || among_users(|| Ok(())));
    ops.plain("in it: hostname", || {
        among_users(|| {
            unshare(libc::CLONE_NEWUTS)?;
            nix::unistd::sethostname("ops").map_err(io::Error::from)
        })
    });
    ops.plain("in it: loopback", || {
        among_users(|| {
            unshare(libc::CLONE_NEWNET)?;
            up()
        })
    });
    ops.plain("in it: a raw socket", || {
        among_users(|| {
            unshare(libc::CLONE_NEWNET)?;
            sys!(libc::socket(
                libc::AF_INET,
                libc::SOCK_RAW,
                libc::IPPROTO_ICMP
            ))
            .map(drop)
        })
    });
    ops.plain("in it: a low port", || {
        among_users(|| {
            unshare(libc::CLONE_NEWNET)?;
            up()?;
            bind(libc::AF_INET, libc::SOCK_STREAM, 81).map(drop)
        })
    });
    ops.plain("in it: chroot", || {
        among_users(|| std::os::unix::fs::chroot("/srv"))
    });
    ops.plain("in it: setpcap", || {
        among_users(|| sys!(libc::prctl(libc::PR_CAPBSET_DROP, 25, 0, 0, 0)).map(drop))
    });
    ops.plain("in it: setuid", || {
        among_users(|| sys!(libc::setuid(0)).map(drop))
    });
    ops.plain("in it: setresuid", || {
        among_users(|| sys!(libc::setresuid(0, 0, 0)).map(drop))
    });
    ops.plain("in it: a file system", || {
        among_users(|| {
            unshare(libc::CLONE_NEWNS)?;
            crate::te_ops::mount::tmpfs("/srv/ops/mounted")
        })
    });
    ops.with(
        "in it: a root's file",
        || file::make().and_then(|()| fs::set_permissions(at("f"), PermissionsExt::from_mode(0o0))),
        |()| among_users(|| open(&at("f"), libc::O_RDWR).map(drop)),
    );
}
