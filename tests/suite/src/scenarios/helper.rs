//! What copies of this program do when a scenario executes them: one thing each,
//! and the exit status says what came of it: an error number, or 0.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, SockType, UnixAddr, sendto};
use nix::unistd::{geteuid, getuid, setresuid};

use crate::scenarios::check::{Attempt, Outcome, PATIENCE};
use crate::scenarios::forge::forge;
use crate::scenarios::subject::{Level, become_alice};
use crate::scenarios::topics::{ADOPTED, keeps};
use crate::scenarios::{level, place, run, sys, unixsock};
use crate::wait;

/// The exit status of `level`: this and the level's number.
pub const LEVEL: i32 = 200;

/// Runs a helper.
pub fn main(words: &[&str]) -> ExitCode {
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    match words {
        ["report", name] => status(run::report(name)),
        // the level it was started at
        ["level"] => level_status(),
        ["write", path] => errno(append(path)),
        ["read-write", from, to] => errno(fs::read(from).and_then(|_| append(to))),
        ["read-exec-read-write", from, to] => exec(&["read-write", from, to]),
        ["open-exec-get-write", from, to] => match sys::reads(from) {
            Ok(file) => match sys::keep_as(&file, 100) {
                Ok(_) => exec(&["get-write", to]),
                Err(_) => ExitCode::FAILURE,
            },
            Err(e) => errno(Err::<(), _>(e)),
        },
        ["get-write", to] => errno(get_write(to)),
        ["core", to, report] => core(to, report),
        ["stand"] => status(crate::scenarios::subject::step()),
        // through a descriptor that it inherited
        ["write-fd", fd] => errno(write_fd(fd)),
        ["net-write", address, path] => errno(net_write(address, path)),
        ["squat", what, file] => squat(what, file),
        ["squat-forged", what, file] => squat_forged(what, file),
        // of a file that only a trusted program may read and not fall
        ["number", file] => {
            let number = fs::read_to_string(file)
                .ok()
                .and_then(|n| n.trim().parse::<u32>().ok());
            println!("{}", number.unwrap_or(0));
            ExitCode::SUCCESS
        }
        ["fall-and-poke", address] => status(fall_and_poke(address)),
        ["relay", kind, name, sign] => status(relay(kind, name, sign)),
        ["listen", path, sign] => status(listens(path, sign)),
        // ENODATA: none
        ["take", path, sign] => errno(takes(path, sign)),
        ["send-socket", name, family, kind] => errno(send_socket(name, family, kind)),
        ["send-descriptor", name, path] => errno(send_descriptor(name, path)),
        ["make-code"] => errno(make_code()),
        ["pair-as-owner"] => errno(pair_as_owner()),
        ["keep-socket", kind] => status(keeps(kind)),
        _ => ExitCode::from(2),
    }
}

/// Handles a core dump: reads it, tries to write, and reports both.
fn core(to: &str, report: &str) -> ExitCode {
    let read = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap_or(0);
    let errno = append(to).made().err().map_or(0, |e| e as i32);
    status(fs::write(report, format!("{read} {errno}\n")).map_err(Into::into))
}

/// Has a file open from before Tidegate starts, and makes one once it has started.
fn squat(what: &str, file: &str) -> ExitCode {
    let Ok(_open) = fs::File::open(file) else {
        return ExitCode::FAILURE;
    };
    for _ in 0..6000 {
        if fs::exists("/run/tidegate/tidegate.sock").unwrap_or(false) {
            return errno(fs::write(format!("{}/{what}", place::TMPFS), "x"));
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    ExitCode::FAILURE
}

/// The same of a user who says that its program is a trusted one.
fn squat_forged(what: &str, file: &str) -> ExitCode {
    let by = ADOPTED.into_iter().find(|(name, _)| *name == what);
    let Some((_, by)) = by else {
        return ExitCode::from(2);
    };
    let program = format!("{}/trusted", place::BIN);
    let forged = become_alice().and_then(|()| forge(&program, by));
    match forged {
        Ok(true) => squat(what, file),
        _ => ExitCode::FAILURE,
    }
}

/// Falls, and writes to memory through a descriptor that it inherited.
fn fall_and_poke(address: &str) -> Outcome {
    crate::scenarios::subject::lower(Level::Untrusted)?;
    let address: u64 = address.parse().unwrap_or(0);
    crate::sys::syscall!(libc::SYS_pwrite64, 100, b"l".as_ptr(), 1, address)?;
    Ok(())
}

/// Passes on what one client says to another, as a bus does: of connections to the first that came; of datagrams to
/// whose name is that of a reader. It gives a sign when clients may come.
fn relay(kind: &str, name: &str, sign: &str) -> Outcome {
    let own = UnixAddr::new_abstract(name.as_bytes())?;
    if kind == "datagrams" {
        let server = unixsock::named(SockType::Datagram, &own)?;
        fs::write(sign, "")?;
        let said = sys::get(&server)?;
        let reader = UnixAddr::new_abstract(format!("{name}-reader").as_bytes())?;
        sendto(server.as_raw_fd(), &said, &reader, MsgFlags::empty())?;
    } else {
        let kind = match kind {
            "packets" => SockType::SeqPacket,
            _ => SockType::Stream,
        };
        let server = unixsock::named(kind, &own)?;
        fs::write(sign, "")?;
        let (reader, other) = (unixsock::accepted(&server)?, unixsock::accepted(&server)?);
        sys::put_all(&reader, &sys::get(&other)?)?;
    }
    nix::unistd::pause();
    Ok(())
}

/// Has a socket for datagrams that has a file, and gives a sign when it is there.
fn listens(path: &str, sign: &str) -> Outcome {
    let _server = unixsock::named(SockType::Datagram, &unixsock::file_name(path)?)?;
    fs::write(sign, "")?;
    nix::unistd::pause();
    Ok(())
}

/// Has such a socket, gives the sign, and takes the descriptor that the first message brings.
fn takes(path: &str, sign: &str) -> Result<(), Errno> {
    let server = unixsock::named(SockType::Datagram, &unixsock::file_name(path)?)?;
    fs::write(sign, "").map_err(|_| Errno::EIO)?;
    let mut taken = false;
    wait::until(PATIENCE, || match unixsock::receive(&server) {
        Ok(got) => {
            taken = !got.fds.is_empty();
            Ok(true)
        }
        Err(Errno::EAGAIN) => Ok(false),
        Err(e) => Err(e),
    })?;
    if taken { Ok(()) } else { Err(Errno::ENODATA) }
}

/// Makes a socket and sends it to an abstract name.
fn send_socket(name: &str, family: &str, kind: &str) -> Result<(), Errno> {
    let number = |text: &str| text.parse::<i32>().map_err(|_| Errno::EINVAL);
    let to = UnixAddr::new_abstract(name.as_bytes())?;
    let made = sys::owned(crate::sys::syscall!(
        libc::SYS_socket,
        number(family)?,
        number(kind)?,
        0
    )?)?;
    let socket = unixsock::fresh(SockType::Datagram)?;
    unixsock::send(&socket, Some(&to), &[made.as_raw_fd()])
}

fn send_descriptor(name: &str, path: &str) -> Result<(), Errno> {
    let to = UnixAddr::new_abstract(name.as_bytes())?;
    let file = crate::scenarios::sys::reads(path)?;
    let socket = unixsock::fresh(SockType::Datagram)?;
    unixsock::send(&socket, Some(&to), &[file.as_raw_fd()])
}

/// As a setuid program takes its owner's number for its real one, and makes sockets.
fn pair_as_owner() -> Result<(), Errno> {
    let owner = geteuid();
    if owner == getuid() {
        return Err(Errno::EINVAL);
    }
    setresuid(owner, owner, owner)?;
    unixsock::pair(SockType::Stream).map(drop)
}

/// Makes code as it runs, as compilers and drivers do: in memory of its own, and in a memfd that it has mapped twice.
fn make_code() -> Result<(), Errno> {
    use libc::{MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
    let own = sys::Map::anonymous(MAP_PRIVATE)?;
    own.poke(0xc3);
    own.protect(PROT_READ | PROT_EXEC)?;
    let memory = sys::memfd(0)?;
    sys::put_all(&memory, &[0xc3; sys::PAGE])?;
    let _written = sys::Map::of(&memory, PROT_READ | PROT_WRITE, MAP_SHARED)?;
    sys::Map::of(&memory, PROT_READ | PROT_EXEC, MAP_SHARED).map(drop)
}

fn status(outcome: Outcome) -> ExitCode {
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn errno(attempt: impl Attempt) -> ExitCode {
    ExitCode::from(attempt.made().err().map_or(0, |e| e as u8))
}

fn level_status() -> ExitCode {
    match level::by_writing() {
        Ok(level) => ExitCode::from((LEVEL + level as i32) as u8),
        Err(_) => ExitCode::FAILURE,
    }
}

fn append(path: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(b"x")
}

fn write_fd(fd: &str) -> Result<(), Errno> {
    let fd: i32 = fd.parse().map_err(|_| Errno::EINVAL)?;
    // SAFETY: the buffer is a byte long; whether the descriptor is open the kernel says.
    let n = unsafe { libc::write(fd, c"x".as_ptr().cast(), 1) };
    if n == 1 { Ok(()) } else { Err(Errno::last()) }
}

/// Reads what it inherited, and writes.
fn get_write(to: &str) -> std::io::Result<()> {
    let mut buffer = [0u8; 8];
    // SAFETY: the buffer is as long as said; whether the descriptor is open the kernel says.
    if unsafe { libc::read(100, buffer.as_mut_ptr().cast(), buffer.len()) } <= 0 {
        return Err(std::io::Error::last_os_error());
    }
    append(to)
}

fn net_write(address: &str, path: &str) -> std::io::Result<()> {
    let mut stream = std::net::TcpStream::connect(address)?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    append(path)
}

fn exec(args: &[&str]) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let program = format!("{}/scenarios", place::BIN);
    let e = std::process::Command::new(program)
        .arg("--helper")
        .args(args)
        .exec();
    errno(Err::<(), _>(e))
}

/// The level that a helper's exit status tells.
pub fn level_of_status(code: i32) -> Option<Level> {
    Level::ALL.into_iter().find(|l| LEVEL + *l as i32 == code)
}
