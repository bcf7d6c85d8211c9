//! The same for every kind of file.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{lchown, symlink};

use crate::te_ops::op::Ops;
use crate::te_ops::sys::{at, cat, open, past, set_xattr, sys};

#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    mode: u32,
}

const NULL: u64 = 1 << 8 | 3;
/// A device that nothing drives.
const NO_DISK: u64 = 250 << 8;

fn mknod(name: &str, mode: u32, device: u64) -> io::Result<()> {
    let path = cat(name);
    sys!(libc::mknod(path.as_ptr(), mode | 0o666, device)).map(drop)
}

impl Kind {
    fn make(self, name: &str) -> io::Result<()> {
        match self.mode {
            libc::S_IFLNK => symlink("nowhere", at(name)),
            libc::S_IFDIR => fs::create_dir(at(name)),
            libc::S_IFCHR => mknod(name, self.mode, NULL),
            libc::S_IFBLK => mknod(name, self.mode, NO_DISK),
            mode => mknod(name, mode, 0),
        }
    }

    fn remove(self, name: &str) -> io::Result<()> {
        match self.mode {
            libc::S_IFDIR => fs::remove_dir(at(name)),
            _ => fs::remove_file(at(name)),
        }
    }
}

const KINDS: &[Kind] = &[
    Kind {
        name: "a file",
        mode: libc::S_IFREG,
    },
    Kind {
        name: "a directory",
        mode: libc::S_IFDIR,
    },
    Kind {
        name: "a link",
        mode: libc::S_IFLNK,
    },
    Kind {
        name: "a character device",
        mode: libc::S_IFCHR,
    },
    Kind {
        name: "a block device",
        mode: libc::S_IFBLK,
    },
    Kind {
        name: "a fifo",
        mode: libc::S_IFIFO,
    },
    Kind {
        name: "a socket's name",
        mode: libc::S_IFSOCK,
    },
];

pub fn add(ops: &mut Ops) {
    for &kind in KINDS {
        let what = kind.name;
        let make = move || kind.make("it");
        ops.plain(format!("make {what}"), move || kind.make("new"))
            .labels("new");
        ops.with(format!("remove {what}"), make, move |()| kind.remove("it"));
        ops.with(format!("rename {what} of its kind"), make, |()| {
            fs::rename(at("it"), at("new"))
        });
        ops.with(format!("ask about {what}"), make, |()| {
            fs::symlink_metadata(at("it")).map(drop)
        });
        ops.with(format!("give {what} away"), make, |()| {
            lchown(at("it"), Some(1000), Some(1000))
        });
        ops.with(format!("ask for a label of {what}"), make, |()| {
            crate::te_ops::sys::get_xattr(&at("it"), "security.selinux").map(drop)
        })
        .own();
        ops.with(format!("label {what}"), make, |()| {
            set_xattr(&at("it"), "security.selinux", "u:object_r:other_t:s0")
        })
        .labels("it")
        .own();
        if kind.mode != libc::S_IFDIR {
            ops.with(format!("link {what}"), make, |()| {
                fs::hard_link(at("it"), at("new"))
            });
        }
        if kind.mode != libc::S_IFLNK {
            ops.with(format!("change the mode of {what}"), make, |()| {
                let path = cat("it");
                sys!(libc::chmod(path.as_ptr(), 0o700)).map(drop)
            });
            let mut flags = vec![("read", libc::O_RDONLY)];
            if kind.mode != libc::S_IFDIR {
                flags.extend([
                    ("write", libc::O_WRONLY),
                    ("append", libc::O_WRONLY | libc::O_APPEND),
                    ("read and write", libc::O_RDWR),
                ]);
            }
            for (how, flags) in flags {
                if kind.mode == libc::S_IFREG {
                    continue;
                }
                ops.with(format!("open {what} to {how}"), make, move |()| {
                    past(open(&at("it"), flags | libc::O_NONBLOCK).map(|_| 0))
                });
            }
            ops.with(format!("access {what}"), make, |()| {
                let path = cat("it");
                sys!(libc::access(path.as_ptr(), libc::R_OK | libc::W_OK)).map(drop)
            });
            ops.with(format!("watch {what} of its kind"), make, |()| {
                let path = cat("it");
                let on = sys!(libc::inotify_init1(0))?;
                sys!(libc::inotify_add_watch(
                    on as i32,
                    path.as_ptr(),
                    libc::IN_ATTRIB
                ))
                .map(drop)
            });
        }
    }
    ops.with(
        "read a link",
        || symlink("nowhere", at("it")),
        |()| fs::read_link(at("it")).map(drop),
    );
    ops.with(
        "follow a link",
        || fs::write(at("f"), "").and_then(|()| symlink("f", at("it"))),
        |()| open(&at("it"), libc::O_RDONLY).map(drop),
    );
    ops.with(
        "ioctl a character device",
        || mknod("it", libc::S_IFCHR, NULL),
        |()| {
            let file = open(&at("it"), libc::O_RDONLY)?;
            let mut value = 0u64;
            past(sys!(libc::ioctl(file.as_raw_fd(), 0x1234, &raw mut value)))
        },
    );
    ops.with(
        "map a character device",
        || mknod("it", libc::S_IFCHR, 1 << 8 | 5),
        |()| {
            let file = open(&at("it"), libc::O_RDWR)?;
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: nothing of ours is where it comes to.
            let page = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    4096,
                    prot,
                    libc::MAP_PRIVATE,
                    file.as_raw_fd(),
                    0,
                )
            };
            if page == libc::MAP_FAILED {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        },
    );
    ops.with(
        "lock a fifo",
        || mknod("it", libc::S_IFIFO, 0),
        |()| {
            let file = open(&at("it"), libc::O_RDWR)?;
            sys!(libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB)).map(drop)
        },
    );
    ops.with(
        "write and read a fifo",
        || mknod("it", libc::S_IFIFO, 0),
        |()| {
            use std::io::{Read, Write};
            let mut file = open(&at("it"), libc::O_RDWR)?;
            file.write_all(b"x")?;
            file.read(&mut [0; 1]).map(drop)
        },
    );
    for (name, path) in [
        ("a file of proc", "/proc/version"),
        ("a setting of the kernel", "/proc/sys/kernel/ostype"),
        ("a file of sysfs", "/sys/kernel/uevent_seqnum"),
        ("the program's own maps", "/proc/self/maps"),
        ("the disk's root", "/"),
    ] {
        ops.plain(format!("open {name}"), move || {
            open(path, libc::O_RDONLY).map(drop)
        });
        ops.plain(format!("look at {name}"), move || {
            fs::metadata(path).map(drop)
        });
    }
    ops.plain("write a setting of the kernel", || {
        crate::te_ops::sys::write("/proc/sys/kernel/domainname", "ops")
    });
    ops.plain("open a terminal", || {
        open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY).map(drop)
    });
    ops.plain("open a terminal's other end", || {
        let master = open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY)?;
        let (mut unlock, mut number) = (0, 0);
        sys!(libc::ioctl(
            master.as_raw_fd(),
            libc::TIOCSPTLCK,
            &raw mut unlock
        ))?;
        sys!(libc::ioctl(
            master.as_raw_fd(),
            libc::TIOCGPTN,
            &raw mut number
        ))?;
        open(&format!("/dev/pts/{number}"), libc::O_RDWR | libc::O_NOCTTY).map(drop)
    });
}
