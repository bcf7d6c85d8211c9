//! The operations.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, symlink};

use nix::mount::{MntFlags, MsFlags, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::profile_ops::calls::{
    DISK, alone, as_user, at, bind, came_of, change, check, detached, disk, exchange, exec,
    exec_traced, filesystem, flags, like, lock, made, map, mknod, mount, moved, open_in, parent,
    pivot, program, protect, read, read_through_an_overlay, refused, refused_by, signal, socket,
    trace, truncate, twice, unmount, write,
};
use crate::profile_ops::change::{CHANGES, DENIED};
use crate::profile_ops::limit::LIMITS;
use crate::profile_ops::tree::{MOUNTED, TREE};
use crate::profile_ops::unix::{PAIRS, UNIX};

/// An operation by its name.
pub struct Op {
    /// Its name.
    pub name: &'static str,
    /// Plays it.
    pub run: fn() -> io::Result<()>,
}

/// Each operation there is.
fn all() -> impl Iterator<Item = &'static Op> {
    let ops = OPS.iter().chain(CHANGES).chain(LIMITS).chain(UNIX);
    ops.chain(OTHERWISE.iter().flat_map(|(_, ops)| *ops))
}

/// Plays an operation in a child; what became of it.
pub fn play(name: &str) -> String {
    let Some(op) = all().find(|op| op.name == name) else {
        return "unknown".into();
    };
    match in_child(op.run) {
        Ended::Exited(0) => "ok".into(),
        Ended::Exited(code) => errno(code),
        Ended::Killed(signal) => format!("signal {signal}"),
    }
}

/// How a child ended.
pub enum Ended {
    /// With this code: 0, or that of an error.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Does something in a child, whose code is that of the error, or 255.
pub fn in_child(what: impl FnOnce() -> io::Result<()>) -> Ended {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Ended::Exited(io::Error::last_os_error().raw_os_error().unwrap_or(255)),
        0 => {
            let code = match what() {
                Ok(()) => 0,
                Err(e) => e.raw_os_error().unwrap_or(255),
            };
            // SAFETY: ends the child without what belongs to the parent.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` outlives the call.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            match libc::WIFEXITED(status) {
                true => Ended::Exited(libc::WEXITSTATUS(status)),
                false => Ended::Killed(libc::WTERMSIG(status)),
            }
        }
    }
}

/// An error by its name.
pub fn errno(code: i32) -> String {
    nix::errno::Errno::from_raw(code)
        .to_string()
        .split(':')
        .next()
        .unwrap_or_default()
        .into()
}

macro_rules! ops {
    ($($name:literal => $run:expr),* $(,)?) => { &[$(Op { name: $name, run: || $run }),*] };
}

pub(crate) use ops;

/// All of them.
pub const OPS: &[Op] = ops![
    "read a" => read("a"),
    "read b" => read("b"),
    "read own" => read("own"),
    "read own as its owner" => as_user(|| read("own")),
    "write own as its owner" => as_user(|| write("own")),
    "write own" => write("own"),
    "read odd name" => read("x[1]*?"),
    "read dir/a" => read("dir/a"),
    "read dir/sub/a" => read("dir/sub/a"),
    "read dir/sub/deep/a.txt" => read("dir/sub/deep/a.txt"),
    "read dir/sub/deep/a.log" => read("dir/sub/deep/a.log"),
    "read ro/a" => read("ro/a"),
    "read secret/a" => read("secret/a"),
    "read to-secret" => read("to-secret"),
    "read to-ro/a" => read("to-ro/a"),
    "read what is not there" => read("nothing"),
    "write a" => write("a"),
    "write dir/a" => write("dir/a"),
    "write ro/a" => write("ro/a"),
    "write secret/a" => write("secret/a"),
    "read and write a" => flags("a", libc::O_RDWR),
    "append to a" => flags("a", libc::O_WRONLY | libc::O_APPEND),
    "append to and read a" => flags("a", libc::O_RDWR | libc::O_APPEND),
    "append to ro/a" => flags("ro/a", libc::O_WRONLY | libc::O_APPEND),
    "truncate a as it opens" => flags("a", libc::O_WRONLY | libc::O_TRUNC),
    "truncate and append to a" => flags("a", libc::O_WRONLY | libc::O_TRUNC | libc::O_APPEND),
    "truncate a by reading" => flags("a", libc::O_RDONLY | libc::O_TRUNC),
    "create where it is" => flags("a", libc::O_RDONLY | libc::O_CREAT),
    "create new" => flags("new", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL),
    "create dir/new" => flags("dir/new", libc::O_WRONLY | libc::O_CREAT),
    "create dir/new.txt" => flags("dir/new.txt", libc::O_RDWR | libc::O_CREAT),
    "create ro/new" => flags("ro/new", libc::O_WRONLY | libc::O_CREAT),
    "create secret/new" => flags("secret/new", libc::O_RDONLY | libc::O_CREAT),
    "create without a name" => flags("dir", libc::O_RDWR | libc::O_TMPFILE),
    "path only" => flags("secret/a", libc::O_PATH),
    "list the tree" => fs::read_dir(TREE).map(drop),
    "list dir" => fs::read_dir(at("dir")).map(drop),
    "list dir/sub" => fs::read_dir(at("dir/sub")).map(drop),
    "list secret" => fs::read_dir(at("secret")).map(drop),
    "list /" => fs::read_dir("/").map(drop),
    "stat secret/a" => fs::metadata(at("secret/a")).map(drop),
    "unlink a" => fs::remove_file(at("a")),
    "unlink dir/a" => fs::remove_file(at("dir/a")),
    "unlink ro/a" => fs::remove_file(at("ro/a")),
    "unlink to-ro" => fs::remove_file(at("to-ro")),
    "mkdir made" => fs::create_dir(at("made")),
    "mkdir dir/made" => fs::create_dir(at("dir/made")),
    "mkdir ro/made" => fs::create_dir(at("ro/made")),
    "rmdir empty" => fs::remove_dir(at("empty")),
    "symlink" => symlink("a", at("dir/link")),
    "symlink in ro" => symlink("a", at("ro/link")),
    "fifo" => mknod("dir/fifo", libc::S_IFIFO, 0),
    "fifo in ro" => mknod("ro/fifo", libc::S_IFIFO, 0),
    "socket file" => mknod("dir/sock", libc::S_IFSOCK, 0),
    "device" => mknod("dir/null", libc::S_IFCHR, libc::makedev(1, 3)),
    "rename a" => fs::rename(at("a"), at("renamed")),
    "rename a to dir" => fs::rename(at("a"), at("dir/renamed")),
    "rename a over b" => fs::rename(at("a"), at("b")),
    "rename a to ro" => fs::rename(at("a"), at("ro/renamed")),
    "rename ro/a to dir" => fs::rename(at("ro/a"), at("dir/renamed")),
    "rename secret/a" => fs::rename(at("secret/a"), at("dir/stolen")),
    "rename the directory" => fs::rename(at("dir/sub"), at("dir/moved")),
    "rename secret" => fs::rename(at("secret"), at("dir/open")),
    "exchange a and b" => exchange("a", "b"),
    "exchange a and ro/a" => exchange("a", "ro/a"),
    "link a" => fs::hard_link(at("a"), at("linked")),
    "link a in dir" => fs::hard_link(at("a"), at("dir/linked")),
    "link dir/a" => fs::hard_link(at("dir/a"), at("linked")),
    "link ro/a in dir" => fs::hard_link(at("ro/a"), at("dir/linked")),
    "link secret/a in dir" => fs::hard_link(at("secret/a"), at("dir/linked")),
    "link own as its owner" => as_user(|| fs::hard_link(at("own"), at("dir/linked"))),
    "chmod a" => fs::set_permissions(at("a"), PermissionsExt::from_mode(0o600)),
    "chmod ro/a" => fs::set_permissions(at("ro/a"), PermissionsExt::from_mode(0o600)),
    "chmod dir" => fs::set_permissions(at("dir"), PermissionsExt::from_mode(0o700)),
    "chown a" => chown(at("a"), Some(1000), None),
    "chown ro/a" => chown(at("ro/a"), Some(1000), None),
    "truncate an open a" => {
        let file = OpenOptions::new().append(true).open(at("a"))?;
        // SAFETY: a valid descriptor.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), 2) })
    },
    "truncate a" => truncate("a"),
    "truncate ro/a" => truncate("ro/a"),
    "map a" => map("a", libc::PROT_READ, libc::MAP_PRIVATE),
    "map a to write" => map("a", libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED),
    "map a to execute" => map("a", libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE),
    "map dir/a to execute" => map("dir/a", libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE),
    "make a mapping of a executable" => protect("a"),
    "map the end of a to write" => {
        let file = OpenOptions::new().read(true).append(true).open(at("a"))?;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    },
    "write to a where only appending was asked for" => {
        let mut file = OpenOptions::new().append(true).open(at("a"))?;
        // SAFETY: a valid descriptor.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) })?;
        file.write_all(b"x")
    },
    "lock a" => lock("a", libc::LOCK_SH),
    "lock a alone" => lock("a", libc::LOCK_EX),
    "lock ro/a" => lock("ro/a", libc::LOCK_EX),
    "deleted and opened again" => {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o666).open(at("dir/gone"))?;
        fs::remove_file(at("dir/gone"))?;
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).map(drop)
    },
    "read through another root" => {
        std::os::unix::fs::chroot(at("dir"))?;
        File::open("/a").map(drop)
    },
    "read a tree that is nowhere mounted" => {
        let tree = detached("")?;
        open_in(&tree, "a")
    },
    "read what is refused in a tree that is nowhere mounted" => {
        let tree = detached("secret")?;
        open_in(&tree, "a")
    },
    "exec px" => exec("px", "read-a"),
    "exec px, secret" => exec("px", "read-secret"),
    "exec px, scrubbed" => exec("px", "secure"),
    "exec cx" => exec("cx", "read-a"),
    "exec cx, secret" => exec("cx", "read-secret"),
    "exec cx, scrubbed" => exec("cx", "secure"),
    "exec ix" => exec("ix", "read-a"),
    "exec ix, secret" => exec("ix", "read-secret"),
    "exec ix, scrubbed" => exec("ix", "secure"),
    "exec ux" => exec("ux", "read-a"),
    "exec ux, secret" => exec("ux", "read-secret"),
    "exec ux, scrubbed" => exec("ux", "secure"),
    "exec other" => exec("other", "read-a"),
    "exec other, secret" => exec("other", "read-secret"),
    "exec what was removed" => {
        fs::hard_link("/srv/ops/bin/other", at("gone"))?;
        let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(at("gone"))?;
        fs::remove_file(at("gone"))?;
        came_of(program(&format!("/proc/self/fd/{}", file.as_raw_fd()), "read-a").status()?)
    },
    "exec other without new privileges" => {
        // SAFETY: no pointers.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        exec("other", "read-a")
    },
    "exec px without new privileges" => {
        // SAFETY: no pointers.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        exec("px", "read-a")
    },
    "tcp" => socket(libc::AF_INET, libc::SOCK_STREAM, 0),
    "udp" => socket(libc::AF_INET, libc::SOCK_DGRAM, 0),
    "tcp6" => socket(libc::AF_INET6, libc::SOCK_STREAM, 0),
    "udp6" => socket(libc::AF_INET6, libc::SOCK_DGRAM, 0),
    "raw" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
    "packet" => socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0),
    "netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW, 0),
    "unix stream" => socket(libc::AF_UNIX, libc::SOCK_STREAM, 0),
    "unix dgram" => socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0),
    "listen" => std::net::TcpListener::bind("127.0.0.1:0").map(drop),
    "send a datagram" => {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        socket.send_to(b"x", socket.local_addr()?).map(drop)
    },
    "receive a datagram" => {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        socket.set_nonblocking(true)?;
        match socket.recv(&mut [0]) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other.map(drop),
        }
    },
    "low port" => std::net::TcpListener::bind("127.0.0.1:99").map(drop),
    "signal itself" => signal(|| std::process::id() as i32, 0),
    "signal its like" => signal(like, libc::SIGUSR1),
    "is its like there" => signal(like, 0),
    "end its like" => signal(like, libc::SIGTERM),
    "real-time signal" => signal(like, 40),
    "signal who is not confined" => signal(parent, 0),
    "signal the first process" => signal(|| 1, 0),
    "hang up the first process" => signal(|| 1, libc::SIGCONT),
    "read its like" => fs::read(format!("/proc/{}/auxv", like())).map(drop),
    "read who is not confined" => fs::read(format!("/proc/{}/auxv", parent())).map(drop),
    "trace its like" => trace(like()),
    "trace who is not confined" => trace(1),
    "be traced" => {
        // SAFETY: no pointers.
        check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) })
    },
    "message queue" => {
        // SAFETY: a NUL-terminated name, and no attributes.
        check(unsafe { libc::mq_open(c"/ops".as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, 0) })?;
        // SAFETY: a NUL-terminated name.
        check(unsafe { libc::mq_unlink(c"/ops".as_ptr()) })
    },
    // SAFETY: no pointers.
    "setuid" => check(unsafe { libc::setuid(1000) }),
    // SAFETY: no pointers.
    "setgid" => check(unsafe { libc::setgid(1000) }),
    // SAFETY: no pointers.
    "nice" => check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -5) }),
    "chroot" => std::os::unix::fs::chroot(at("dir")),
    "hostname" => nix::unistd::sethostname("ops").map_err(io::Error::from),
    // SAFETY: no pointers.
    "new mounts" => check(unsafe { libc::unshare(libc::CLONE_NEWNS) }),
    "mount a tmpfs" => filesystem("tmpfs", MsFlags::empty(), None),
    "mount a tmpfs to read" => filesystem("tmpfs", MsFlags::MS_RDONLY, None),
    "mount a tmpfs without devices" => filesystem("tmpfs", MsFlags::MS_NODEV | MsFlags::MS_NOSUID, None),
    "mount a small tmpfs" => filesystem("tmpfs", MsFlags::empty(), Some("size=64k")),
    "mount a small tmpfs of a mode" => filesystem("tmpfs", MsFlags::empty(), Some("size=64k,mode=700")),
    "mount proc" => filesystem("proc", MsFlags::empty(), None),
    "mount proc to read" => filesystem("proc", MsFlags::MS_RDONLY, None),
    "mount a tmpfs elsewhere" => alone(|| {
        mount(Some("none"), &at("secret"), Some("tmpfs"), MsFlags::empty(), None)
    }),
    "mount a tmpfs by a name" => alone(|| {
        mount(Some("/srv/ops//tree/.."), &at("empty"), Some("tmpfs"), MsFlags::empty(), None)
    }),
    "mount a tmpfs through a link" => alone(|| {
        mount(Some("none"), &at("to-ro"), Some("tmpfs"), MsFlags::empty(), None)
    }),
    "mount a tmpfs on the root" => alone(|| {
        mount(Some("none"), "/", Some("tmpfs"), MsFlags::empty(), None)
    }),
    "mount a disk" => alone(|| disk(DISK)),
    "bind dir" => alone(|| bind(&at("dir"), "empty", MsFlags::empty())),
    "bind dir, with a slash" => alone(|| bind(&at("dir/"), "empty", MsFlags::empty())),
    "bind dir and what is below" => alone(|| bind(&at("dir"), "empty", MsFlags::MS_REC)),
    "bind dir to read, which takes two" => alone(|| bind(&at("dir"), "empty", MsFlags::MS_RDONLY)),
    "bind dir/sub" => alone(|| bind(&at("dir/sub"), "empty", MsFlags::empty())),
    "bind secret" => alone(|| bind(&at("secret"), "empty", MsFlags::empty())),
    // the second time there is something to remember, if the first was refused
    "bind secret twice" => alone(|| twice(|| bind(&at("secret"), "empty", MsFlags::empty()))),
    "bind dir twice" => alone(|| twice(|| bind(&at("dir"), "empty", MsFlags::empty()))),
    "bind ro" => alone(|| bind(&at("ro"), "empty", MsFlags::empty())),
    "bind a" => alone(|| bind(&at("a"), "b", MsFlags::empty())),
    "bind dir to itself" => alone(|| bind(&at("dir"), "dir", MsFlags::empty())),
    "bind the root" => alone(|| bind("/", "empty", MsFlags::empty())),
    "bind by a relative name" => alone(|| bind("tree/dir", "empty", MsFlags::empty())),
    "bind to a link" => alone(|| bind(&at("dir"), "to-ro", MsFlags::empty())),
    "bind twice, then to a link" => alone(|| {
        bind(&at("dir"), "empty", MsFlags::empty())?;
        bind(&at("dir"), "to-ro", MsFlags::empty())
    }),
    "bind in another root" => alone(|| {
        std::os::unix::fs::chroot(TREE)?;
        mount(Some("/dir"), "/empty", None, MsFlags::MS_BIND, None)
    }),
    "bind the other root" => alone(|| {
        std::os::unix::fs::chroot(TREE)?;
        mount(Some("/"), "/empty", None, MsFlags::MS_BIND, None)
    }),
    "bind what another mount has" => alone(|| {
        bind(&at("dir"), "empty", MsFlags::empty())?;
        bind(&at("empty/sub"), "ro", MsFlags::empty())
    }),
    "move a mount" => alone(|| mount(Some(MOUNTED), &at("empty"), None, MsFlags::MS_MOVE, None)),
    "move a mount elsewhere" => alone(|| mount(Some(MOUNTED), &at("dir"), None, MsFlags::MS_MOVE, None)),
    "move a mount by a descriptor" => alone(|| {
        let from = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(MOUNTED)?;
        moved(&from, "empty")
    }),
    "mount a copy" => alone(|| moved(&detached("dir")?, "empty")),
    "mount a copy of secret" => alone(|| moved(&detached("secret")?, "empty")),
    "mount what was made before" => alone(|| moved(&made()?, "empty")),
    "remount to read" => change(MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY, None),
    "remount without devices" => change(MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NODEV, None),
    "remount smaller" => change(MsFlags::MS_REMOUNT, Some("size=2m")),
    "make private" => change(MsFlags::MS_PRIVATE, None),
    "make shared" => change(MsFlags::MS_SHARED, None),
    "make a slave" => change(MsFlags::MS_SLAVE | MsFlags::MS_REC, None),
    "make unbindable" => change(MsFlags::MS_UNBINDABLE, None),
    "make all private" => alone(|| {
        mount(None, "/", None, MsFlags::MS_PRIVATE | MsFlags::MS_REC, None)
    }),
    "unmount" => unmount(MntFlags::empty()),
    "unmount lazily" => unmount(MntFlags::MNT_DETACH),
    "unmount what was mounted" => alone(|| {
        bind(&at("dir"), "empty", MsFlags::empty())?;
        umount2(at("empty").as_str(), MntFlags::empty()).map_err(io::Error::from)
    }),
    "unmount a file" => alone(|| {
        bind(&at("a"), "b", MsFlags::empty())?;
        umount2(at("b").as_str(), MntFlags::empty()).map_err(io::Error::from)
    }),
    "pivot the root" => pivot(MOUNTED, &format!("{MOUNTED}/old")),
    "pivot the root onto itself" => pivot(MOUNTED, MOUNTED),
    "new users" => unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from),
    "mount a tmpfs among new users" => {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        filesystem("tmpfs", MsFlags::empty(), None)
    },
    "read as root what root may not" => as_user(|| {
        // the capability counts, not the user
        File::open("/etc/shadow").map(drop)
    }),
];

/// Those that Tidegate decides by design otherwise than AppArmor, by the profile that they are played
/// under: each is done if it goes as docs/reference/profiles.md says.
pub const OTHERWISE: &[(&str, &[Op])] = &[
    ("mount-all", SOURCES),
    ("traces-exec", UNSAFE),
    ("denied-change", DENIED),
    ("unix-create", PAIRS),
    (
        "overlay",
        ops!["read through an overlay" => read_through_an_overlay()],
    ),
    (
        "overlay-layers",
        ops![
            "read a layer through an overlay" => refused(read_through_an_overlay()),
        ],
    ),
];

/// What AppArmor takes for what it leads to; what is allowed all the same is no name of a source.
const SOURCES: &[Op] = ops![
    "bind by a link" => alone(|| refused(bind(&at("to-ro"), "empty", MsFlags::empty()))),
    "bind by a link on the way" => alone(|| {
        fs::create_dir(at("ro/in"))?;
        refused(bind(&at("to-ro/in"), "empty", MsFlags::empty()))
    }),
    "bind by a link of the kernel" => alone(|| {
        let dir = File::open(at("dir"))?;
        let name = format!("/proc/self/fd/{}", dir.as_raw_fd());
        refused(bind(&name, "empty", MsFlags::empty()))
    }),
    "bind by a way up" => alone(|| refused(bind(&at("dir/../ro"), "empty", MsFlags::empty()))),
    "bind by what is here" => alone(|| refused(bind(&at("./ro"), "empty", MsFlags::empty()))),
    "bind by a doubled slash" => alone(|| refused(bind(&at("/ro"), "empty", MsFlags::empty()))),
    "move by a link" => alone(|| {
        symlink(MOUNTED, at("to-mounted"))?;
        let flags = MsFlags::MS_MOVE;
        refused(mount(Some(&at("to-mounted")), &at("empty"), None, flags, None))
    }),
    "mount a disk by a link" => alone(|| {
        symlink(DISK, at("disk"))?;
        refused(disk(&at("disk")))
    }),
    "mount a disk by a relative name" => alone(|| {
        std::env::set_current_dir("/dev")?;
        refused(disk("pmem1"))
    }),
    "mount a disk by a way up" => alone(|| refused(disk("/dev/shm/../pmem1"))),
    "mount no disk by a way up" => alone(|| {
        let nothing = MsFlags::empty();
        mount(Some("/dev/shm/../pmem1"), &at("empty"), Some("tmpfs"), nothing, None)
    }),
    "a link that is refused, and one that is the next call's" => alone(|| {
        refused(bind(&at("to-ro"), "empty", MsFlags::empty()))?;
        bind(&at("dir"), "to-ro", MsFlags::empty())?;
        File::open(at("to-ro/a")).map(drop)
    }),
    "links after a mount" => alone(|| {
        bind(&at("dir"), "empty", MsFlags::empty())?;
        File::open(at("to-ro/a")).map(drop)?;
        mount(Some("none"), &at("to-ro"), Some("tmpfs"), MsFlags::empty(), None)
    }),
];

/// Which tasks AppArmor lets come to another profile.
const UNSAFE: &[Op] = ops![
    "exec px, traced" => refused_by(libc::EPERM, exec_traced("px", "read-a")),
    "exec px without randomization" => {
        // SAFETY: no pointers.
        check(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as u64) })?;
        refused_by(libc::EPERM, exec("px", "read-a"))
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: &str = concat!(
        include_str!("../../../profile/profiles"),
        include_str!("../../../profile/profiles-unix")
    );

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = all().map(|op| op.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_the_catalogue_of_bypasses_names_is_played() {
        // `profile: operation`, or `storm: …`
        crate::bypasses::are_played("Profiles", |name| {
            let (profile, op) = name.split_once(": ").expect(name);
            let storm = crate::profile_ops::storm::STORMS
                .iter()
                .any(|what| what.join(" and ") == op);
            PROFILES.contains(&format!("\nprofile {profile} "))
                && (all().any(|known| known.name == op) || profile == "storm" && storm)
        });
    }
}
