//! A process that does what a line on standard input says, and answers with a line: `ok …`, or an errno.
//!
//! It keeps nothing but its descriptors, which the driver knows by their numbers: so it goes on the same after an execution.

use std::ffi::CString;
use std::io::{Error, Read, Result};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::caps_random::calls;
use crate::caps_random::race;

/// The daemon, which narrows a process that asks here.
const DAEMON: &str = "/run/tidegate/tidegate.sock";

/// Serves lines until there are no more.
pub fn run() {
    answer(Ok(String::new()));
    while let Some(line) = line() {
        let words: Vec<&str> = line.split(' ').collect();
        answer(act(&words));
    }
}

/// A line, read by the byte: what follows is for the program that is executed next.
fn line() -> Option<String> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        match calls::read(0, &mut byte) {
            Ok(1) if byte[0] == b'\n' => return String::from_utf8(text).ok(),
            Ok(1) => text.push(byte[0]),
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            _ => return None,
        }
    }
}

fn answer(result: Result<String>) {
    let text = match result {
        Ok(text) => format!("ok {text}\n"),
        Err(e) => format!("{}\n", e.raw_os_error().unwrap_or(-1)),
    };
    // an actor that nobody listens to has nothing more to do
    if calls::write(1, text.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

fn number(word: &str) -> i32 {
    word.parse().unwrap_or(-1)
}

/// Does one thing.
pub fn act(words: &[&str]) -> Result<String> {
    let fd = |at: usize| number(words[at]);
    let done = |()| String::new();
    match words[0] {
        "open" => calls::open(words[1], words[2]).map(|fd| fd.to_string()),
        "read" => calls::pread(fd(1)).map(done),
        "write" => calls::write(fd(1), b"x").map(done),
        "lock" => calls::lock(fd(1)).map(done),
        "map" => calls::map(fd(1), words[2] == "rw").map(|at| at.to_string()),
        "close" => calls::close(fd(1)).map(done),
        "tcp" => calls::connect_tcp(number(words[1]) as u16).map(|fd| fd.to_string()),
        "unix" => calls::connect_unix(words[1]).map(|fd| fd.to_string()),
        "send" => calls::send(fd(1)).map(done),
        "recv" => calls::receive(fd(1)).map(done),
        "splice" => calls::splice(fd(1)).map(done),
        "give" => calls::give(fd(1), fd(2)).map(done),
        "take" => calls::take(fd(1)).map(|fd| fd.map_or("none".into(), |fd| fd.to_string())),
        "getfd" => calls::take_from(fd(1), fd(2)).map(|fd| fd.to_string()),
        "narrow" => narrow(words[1], fd(2)),
        "fork" => {
            if calls::fork()? == 0 {
                calls::become_of(fd(1), 0)?;
                calls::become_of(fd(2), 1)?;
            }
            Ok(String::new())
        }
        "exec" => {
            let program = CString::new(words[1])?;
            Err(calls::exec(&program))
        }
        "pid" => Ok(std::process::id().to_string()),
        "stop" => Ok(String::new()),
        "race" => race::race(&words[1..]),
        _ => Err(Error::from_raw_os_error(libc::ENOSYS)),
    }
}

/// Asks to be limited by a subject of the bundle, at once.
fn narrow(subject: &str, bundle: i32) -> Result<String> {
    let mut stream = UnixStream::connect(DAEMON)?;
    stream.set_read_timeout(Some(Duration::from_secs(300)))?;
    let question = serde_json::json!({"ask": "capabilities", "subject": subject, "now": true});
    let text = format!("{question}\n");
    calls::send_with(stream.as_raw_fd(), bundle, text.as_bytes())?;
    let mut answer = String::new();
    let mut bytes = [0; 4096];
    while !answer.ends_with('\n') {
        match stream.read(&mut bytes)? {
            0 => break,
            n => answer += &String::from_utf8_lossy(&bytes[..n]),
        }
    }
    match answer.contains("limited by") || answer.contains("session ") {
        true => Ok(String::new()),
        false => Err(Error::from_raw_os_error(libc::E2BIG)),
    }
}
