//! What a subject keeps over its fall, or leaves to others, and no check asks for.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::pipe2;

use crate::scenarios::check::{Outcome, PATIENCE, ensure, refused, refused_any, same, soon};
use crate::scenarios::devfuse::{CONTENT, Fuse};
use crate::scenarios::level;
use crate::scenarios::net::address;
use crate::scenarios::place::{self, NAMED_MOUNT, SYSTEM};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, asleep, at, lower, spawn, start, step, tell, told};
use crate::scenarios::sys;
use crate::scenarios::uring::Ring;
use crate::sys::syscall;

use Level::{System, Untrusted};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "net-corked",
        "a datagram begun before the fall is finished after it",
        corked,
    ),
    bypass(
        "clock-kept",
        "who has a network card's clock open to set it falls, and sets it on, for which no hook is asked",
        clock_kept,
    ),
    bypass(
        "pipe-filled-by-low",
        "a pipe that a low subject made and filled is opened by its name in /proc",
        filled,
    ),
    bypass(
        "pipe-read-by-ring",
        "a pipe's read end that a ring has, and a falling child, too",
        by_ring,
    )
    .gap("Calls under way"),
    bypass(
        "uring-command",
        "a disk's blocks are discarded through a ring made after the fall",
        command,
    ),
    bypass(
        "socket-options-shared",
        "a filter that a child set on a shared socket after its fall is read by its parent",
        options,
    ),
    bypass(
        "socket-attribute-shared",
        "the same by an extended attribute",
        attribute,
    ),
    bypass(
        "fuse-server-falls",
        "the server of a filesystem that the policy names falls, and goes on serving",
        server_falls,
    )
    .gap("FUSE servers"),
    bypass(
        "net-low-server",
        "a low server listens at an address of a higher network",
        low_server,
    ),
    bypass(
        "net-low-server-anywhere",
        "the same, by listening at every address",
        low_server_anywhere,
    ),
    bypass(
        "net-server-falls",
        "a server at an address of a higher network falls, and goes on answering",
        net_server_falls,
    ),
    bypass(
        "promote-splice-waits",
        "a splice into a file waits for its pipe while the file is promoted",
        promoted,
    )
    .gap("Promotion"),
    bypass(
        "revoke-device-ioctl",
        "a character device opened before the fall is controlled by ioctl",
        device_ioctl,
    ),
    bypass(
        "cgroup-by-clone",
        "a child is born into a control group of the top level",
        born_into,
    ),
    bypass(
        "pipe-emptied",
        "a low subject takes what a higher one left in a pipe, by its name in /proc",
        pipe_emptied,
    )
    .gap("Taking away"),
    bypass(
        "queue-emptied",
        "a low subject takes what a higher one left in a message queue",
        emptied,
    ),
];

/// A subject that has got what begins with `l`, which a low subject wrote, must not be at the top.
fn not_above(byte: u8) -> Outcome {
    let is = level::by_writing()?;
    ensure(
        byte != b'l' || is == Untrusted,
        "low data was read, and its reader still writes at the top",
    )
}

/// A sockaddr_in.
fn ipv4(port: u16, ip: [u8; 4]) -> [u8; 16] {
    let mut name = [0u8; 16];
    name[..2].copy_from_slice(&2u16.to_ne_bytes());
    name[2..4].copy_from_slice(&port.to_be_bytes());
    name[4..8].copy_from_slice(&ip);
    name
}

fn send_to(socket: &UdpSocket, bytes: &[u8], flags: i32, name: [u8; 16]) -> Result<(), Errno> {
    syscall!(
        libc::SYS_sendto,
        socket.as_raw_fd(),
        bytes.as_ptr(),
        bytes.len(),
        flags,
        name.as_ptr(),
        name.len()
    )
    .map(drop)
}

fn corked() -> Outcome {
    let high = UdpSocket::bind((address(System), 0))?;
    let std::net::SocketAddr::V4(to) = high.local_addr()? else {
        return ensure(false, "the network of the system is not IPv4's");
    };
    start(|| {
        let own = UdpSocket::bind("0.0.0.0:0")?;
        let to = ipv4(to.port(), to.ip().octets());
        send_to(&own, b"h", libc::MSG_MORE, to)?;
        lower(Untrusted)?;
        refused_any(&[Errno::EPERM, Errno::EIO], send_to(&own, b"n", 0, to))?;
        let _ = send_to(&own, b"low", 0, ipv4(9, [127, 0, 0, 1]));
        Ok(())
    })?
    .join()?;
    high.set_nonblocking(true)?;
    let mut bytes = [0u8; 8];
    let n = high.recv(&mut bytes).unwrap_or(0);
    if bytes[..n].ends_with(b"low") {
        return not_above(b'l');
    }
    Ok(())
}

/// A device by which the kernel's log is written stands for one that this machine may not have: it is known by its name.
fn clock_kept() -> Outcome {
    let clock = format!("{}/ptp7", place::directory(SYSTEM, "clocks")?);
    let kind = SFlag::S_IFCHR;
    mknod(clock.as_str(), kind, Mode::S_IRWXU, makedev(1, 11))?;
    start(|| {
        let _sets = sys::writes(&clock)?;
        refused(Errno::EACCES, fs::read(place::level_file(Untrusted)))?;
        level::is(System)
    })?
    .join()?;
    start(|| {
        let _tells = sys::reads(&clock)?;
        lower(Untrusted)
    })?
    .join()
}

fn filled() -> Outcome {
    let low = spawn(Untrusted, || {
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        sys::put_all(&write, b"l")?;
        sys::keep_as(&read, 100)?;
        drop(write);
        step()
    })?;
    low.stands()?;
    let name = format!("/proc/{}/fd/100", low.pid);
    at(System, || {
        match sys::open(&name, OFlag::O_RDONLY | OFlag::O_NONBLOCK) {
            Ok(read) => not_above(sys::get(&read)?.first().copied().unwrap_or(0)),
            Err(e) => refused_any(
                &[Errno::EPERM, Errno::EAGAIN, Errno::EACCES],
                Err::<(), _>(e),
            ),
        }
    })?;
    low.kill()
}

fn by_ring() -> Outcome {
    start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let low = start(|| {
            step()?;
            if lower(Untrusted).is_ok() {
                let _ = sys::put_all(&write, b"l");
            }
            Ok(())
        })?;
        low.stands()?;
        let ring = Ring::new(0)?;
        ring.register(&[read.as_raw_fd()])?;
        drop(read);
        low.join_after_step()?;
        let mut byte = [0u8; 1];
        let _ = ring.read_fixed(0, &mut byte);
        not_above(byte[0])
    })?
    .join()
}

fn command() -> Outcome {
    const FREE: u64 = 0x4c82;
    const SET: u64 = 0x4c00;
    const CLEAR: u64 = 0x4c01;
    let backing = place::path(SYSTEM, "disk");
    fs::write(&backing, vec![b'h'; 1 << 20])?;
    let _ = Command::new("modprobe").arg("loop").status();
    let control = sys::both("/dev/loop-control")?;
    let number = sys::ioctl(&control, FREE, 0)?;
    let device = format!("/dev/loop{number}");
    let disk = sys::both(&device)?;
    sys::ioctl(&disk, SET, sys::both(&backing)?.as_raw_fd() as usize)?;
    let played = start(|| {
        let disk = sys::both(&device)?;
        lower(Untrusted)?;
        let ring = Ring::new(0)?;
        refused_any(
            &[Errno::EPERM, Errno::EIO, Errno::EACCES],
            ring.discard(disk.as_raw_fd(), 0, 1 << 20),
        )
    })?
    .join();
    let content = fs::read(&backing)?;
    sys::ioctl(&disk, CLEAR, 0)?;
    ensure(content.iter().all(|b| *b == b'h'), "the disk has changed")?;
    played
}

fn options() -> Outcome {
    start(|| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let fd = socket.as_raw_fd();
        start(|| {
            if lower(Untrusted).is_ok() {
                let filter = [libc::sock_filter {
                    code: 6,
                    jt: 0,
                    jf: 0,
                    k: 0x6c6c_6c6c,
                }];
                let program = libc::sock_fprog {
                    len: 1,
                    filter: filter.as_ptr().cast_mut(),
                };
                let _ = syscall!(
                    libc::SYS_setsockopt,
                    fd,
                    libc::SOL_SOCKET,
                    libc::SO_ATTACH_FILTER,
                    &raw const program,
                    size_of::<libc::sock_fprog>()
                );
            }
            Ok(())
        })?
        .join()?;
        let (mut filter, mut count) = ([0u8; 8], 1u32);
        let _ = syscall!(
            libc::SYS_getsockopt,
            fd,
            libc::SOL_SOCKET,
            libc::SO_GET_FILTER,
            filter.as_mut_ptr(),
            &raw mut count
        );
        not_above(filter[4])
    })?
    .join()
}

fn attribute() -> Outcome {
    start(|| {
        let (socket, name) = (UdpSocket::bind("127.0.0.1:0")?, c"user.word");
        let fd = socket.as_raw_fd();
        start(|| {
            if lower(Untrusted).is_ok() {
                let _ = syscall!(libc::SYS_fsetxattr, fd, name.as_ptr(), b"l".as_ptr(), 1, 0);
            }
            Ok(())
        })?
        .join()?;
        let mut value = [0u8; 8];
        let _ = syscall!(
            libc::SYS_fgetxattr,
            fd,
            name.as_ptr(),
            value.as_mut_ptr(),
            value.len()
        );
        not_above(value[0])
    })?
    .join()
}

fn server_falls() -> Outcome {
    let fell = place::path(place::TMPFS_LOW, "fell");
    let server = start(|| {
        let fuse = Fuse::mount(NAMED_MOUNT)?;
        // it may be refused, and is not tried again
        if fs::read(place::level_file(Untrusted)).is_ok() {
            fs::write(&fell, "")?;
        }
        tell("tried")?;
        // not stopped: a thread of its serves
        std::thread::sleep(2 * PATIENCE);
        std::mem::forget(fuse);
        Ok(())
    })?;
    told("tried")?;
    let file = format!("{NAMED_MOUNT}/{}", crate::scenarios::devfuse::FILE);
    let played = start(|| {
        same("the content", fs::read(&file)?, CONTENT.to_vec())?;
        not_above(if fs::exists(&fell)? { b'l' } else { b'h' })
    })?
    .join();
    nix::mount::umount2(NAMED_MOUNT, nix::mount::MntFlags::MNT_DETACH)?;
    server.kill()?;
    played
}

fn emptied() -> Outcome {
    let queue = crate::scenarios::ipcs::Queue::make()?;
    queue.send()?;
    // what may not be taken is passed over
    at(Untrusted, || refused(Errno::ENOMSG, queue.receive()))?;
    queue.receive()?;
    Ok(queue.remove()?)
}

/// A client at the top takes what its server says.
fn hears(mut client: std::net::TcpStream) -> Outcome {
    use std::io::Read;
    let mut byte = [0u8];
    let _ = client.read(&mut byte);
    not_above(byte[0])
}

/// A low server that says `l` to its clients.
fn serves(at: std::net::IpAddr) -> Outcome {
    let place = place::path(place::TMPFS_LOW, "port");
    let server = spawn(Untrusted, || match std::net::TcpListener::bind((at, 0)) {
        Ok(listener) => {
            fs::write(&place, listener.local_addr()?.port().to_string())?;
            let (connection, _) = listener.accept()?;
            // where it may send, it keeps the connection until it is killed; else its end tells the client so
            if sys::put_all(&connection, b"l").is_ok() {
                nix::unistd::pause();
            }
            Ok(())
        }
        Err(e) => {
            fs::write(&place, "0")?;
            refused_any(&[Errno::EPERM, Errno::EACCES], Err::<(), _>(e))
        }
    })?;
    soon(|| Ok(fs::metadata(&place).is_ok_and(|m| m.len() > 0)))?;
    // only its name and size are looked at: the port is not secret
    let played = start(|| {
        let port = Command::new(format!("{}/reporter", place::BIN))
            .args(["--helper", "number", &place])
            .output()?;
        let port: u16 = String::from_utf8_lossy(&port.stdout)
            .trim()
            .parse()
            .unwrap_or(0);
        let Ok(client) = crate::scenarios::net::connect((address(System), port).into()) else {
            return Ok(());
        };
        hears(client)
    })?
    .join();
    server.kill()?;
    played
}

fn low_server() -> Outcome {
    serves(address(System))
}

fn low_server_anywhere() -> Outcome {
    serves(std::net::Ipv4Addr::UNSPECIFIED.into())
}

fn pipe_emptied() -> Outcome {
    let victim = start(|| {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        sys::put_all(&write, b"high")?;
        sys::keep_as(&read, 100)?;
        step()?;
        same(
            "what was left",
            sys::get(&read).unwrap_or_default(),
            b"high".to_vec(),
        )
    })?;
    victim.stands()?;
    let name = format!("/proc/{}/fd/100", victim.pid);
    at(Untrusted, || {
        if let Ok(read) = sys::open(&name, OFlag::O_RDONLY | OFlag::O_NONBLOCK) {
            let _ = sys::get(&read);
        }
        Ok(())
    })?;
    victim.join_after_step()
}

fn net_server_falls() -> Outcome {
    // a listener at the network of the system lowers nobody who accepts
    let (listener, to) = crate::scenarios::net::listener(address(System))?;
    let server = start(|| {
        let (connection, _) = listener.accept()?;
        // where it may send, it keeps the connection until it is killed; else its end tells the client so
        if lower(Untrusted).is_ok() && sys::put_all(&connection, b"l").is_ok() {
            nix::unistd::pause();
        }
        Ok(())
    })?;
    let played = start(|| hears(crate::scenarios::net::connect(to)?))?.join();
    server.kill()?;
    played
}

fn promoted() -> Outcome {
    let file = place::path(place::LOW, "file");
    let low = spawn(Untrusted, || {
        fs::write(&file, "high")?;
        let fd = sys::both(&file)?;
        let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
        let (from, to) = (read.as_raw_fd(), fd.as_raw_fd());
        let splices = move || syscall!(libc::SYS_splice, from, 0, to, 0, 4, 0);
        let mover = asleep(&[libc::SYS_splice], splices)?;
        tell("moves")?;
        while sys::writes(&file).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        sys::put_all(&write, b"low!")?;
        let _ = mover.join();
        Ok(())
    })?;
    told("moves")?;
    // it may be refused while somebody is about to write
    let code = crate::scenarios::daemon::quietly(&["promote", &file])?;
    if code != 0 {
        return low.kill();
    }
    low.join()?;
    ensure(
        fs::read(&file)? != b"low!",
        "a low subject has written to what was promoted",
    )
}

fn device_ioctl() -> Outcome {
    const ADD: u64 = 0x4c80;
    const REMOVE: u64 = 0x4c81;
    let _ = Command::new("modprobe").arg("loop").status();
    start(|| {
        let control = sys::both("/dev/loop-control")?;
        lower(Untrusted)?;
        let made = sys::ioctl(&control, ADD, 77);
        let _ = sys::ioctl(&control, REMOVE, 77);
        refused_any(&[Errno::EPERM, Errno::EIO, Errno::EACCES], made)
    })?
    .join()
}

fn born_into() -> Outcome {
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let at = place::directory(SYSTEM, "groups")?;
    nix::mount::mount(
        Some("scenario"),
        at.as_str(),
        Some("cgroup2"),
        nix::mount::MsFlags::empty(),
        None::<&str>,
    )?;
    let group = format!("{at}/service");
    fs::create_dir(&group)?;
    let played = crate::scenarios::subject::at(Untrusted, || {
        let group = sys::open(&group, OFlag::O_DIRECTORY)?;
        let mut how = [0u64; 11];
        how[0] = INTO_CGROUP;
        how[4] = libc::SIGCHLD as u64;
        how[10] = group.as_raw_fd() as u64;
        let born = syscall!(libc::SYS_clone3, how.as_ptr(), 88);
        if born == Ok(0) {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        if let Ok(pid) = born {
            syscall!(libc::SYS_wait4, pid, 0, 0, 0)?;
        }
        refused_any(&[Errno::EPERM, Errno::EACCES], born)
    });
    fs::remove_dir(&group)?;
    nix::mount::umount2(at.as_str(), nix::mount::MntFlags::MNT_DETACH)?;
    played
}
