//! The scenes: each binds something, takes the permission back, and uses it.

mod flood;
mod labels;
mod objects;
mod overlays;

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use libtest_mimic::Trial;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::te_live::domain::{Holder, set, soon, tidegate};
use crate::te_live::place;
use crate::trials::Asked;

/// EACCES: what the policy refuses.
const REFUSED: &str = "13";
/// EINVAL: what is no context.
const INVALID: &str = "22";
/// EXDEV
const OTHER_DEVICE: &str = "18";
/// EAGAIN
const AGAIN: &str = "11";
const KILLED: Option<i32> = Some(9);

/// What was expected, and what came.
#[derive(Default)]
struct Checks {
    passed: usize,
    failed: Vec<String>,
}

impl Checks {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, came: T, expected: T) {
        if came == expected {
            self.passed += 1;
        } else {
            self.failed
                .push(format!("FAILED  {what}: {came:?}, and not {expected:?}"));
        }
    }

    fn set(&mut self, values: &[&str]) -> String {
        let said = set(values);
        self.same(
            &format!("setsebool {}", values.join(" ")),
            said.as_ref().err().cloned(),
            None,
        );
        said.unwrap_or_default()
    }
}

/// Waits until the audit log has a refusal: it is written a moment after the refused call ends. The last of the log where
/// it does not.
fn logged(what: &str) -> Result<(), String> {
    let mut log = Ok(String::new());
    let is = soon(|| {
        log = tidegate(&["log", "--denied", "-n", "3"]);
        log.as_ref().map_or(true, |log| log.contains(what))
    });
    log.and_then(|log| if is { Ok(()) } else { Err(log) })
}

/// Makes the files.
pub fn make() {
    let _ = fs::create_dir_all(place(""));
    fs::write(place("secret"), "secret").expect("a file");
    for fifo in ["fifo", "go", "said"] {
        let _ = mkfifo(place(fifo).as_str(), Mode::from_bits_truncate(0o666));
    }
}

/// A scene, by the name that docs/dev/bypasses.md has for it.
type Scene = (&'static str, fn(&mut Checks));

const SCENES: &[Scene] = &[
    ("booleans", booleans),
    ("descriptors", descriptors),
    ("appended", appended),
    ("copies", copies),
    ("inherited", inherited),
    ("asked", labels::asked),
    ("setcon", labels::setcon),
    ("relabelled", labels::relabelled),
    ("names", labels::names),
    ("noted", labels::noted),
    ("unspecified", unspecified),
    ("owner", owner),
    ("owner-within", owner_within),
    ("first-message", objects::first_message),
    ("message-put-off", objects::message_put_off),
    ("messages", objects::messages),
    ("opener", objects::opener),
    ("at-once", objects::at_once),
    ("overlay-executed", overlays::executed),
    ("overlay-written", overlays::written),
    ("overlay-mapped", overlays::mapped),
    ("commands", commands),
    ("waiting", waiting),
    ("passed", passed),
    ("ring", ring),
    ("mapping", mapping),
    ("mapping-moved", mapping_moved),
    ("executable", executable),
    ("connection", connection),
    ("unix", unix),
    ("served", served),
    ("numbering", numbering),
    ("labels-flood", flood::labels),
    ("permissive", permissive),
];

/// Plays those that are asked for, each as a trial, and counts what they check.
pub fn play(asked: &Asked) -> ExitCode {
    if !asked.lists() {
        make();
    }
    let counts = Arc::new(Mutex::new((0, 0)));
    let trials = SCENES.iter().map(|&(name, scene)| {
        let counts = Arc::clone(&counts);
        Trial::test(name, move || {
            let mut c = Checks::default();
            scene(&mut c);
            let mut counts = counts.lock().expect("one thread plays");
            counts.0 += c.passed;
            counts.1 += c.failed.len();
            match c.failed[..] {
                [] => Ok(()),
                ref failed => Err(failed.join("\n").into()),
            }
        })
    });
    let came = asked.run(trials.collect());
    if !asked.lists() {
        let (passed, failed) = *counts.lock().expect("one thread played");
        // a scene that panicked has counted nothing
        let failed = failed.max(came.num_failed as usize);
        println!("{passed} passed, {failed} failed");
    }
    came.exit_code()
}

fn booleans(c: &mut Checks) {
    let all = tidegate(&["getsebool"]).unwrap_or_default();
    c.same("getsebool has all", all.lines().count(), 12);
    c.same(
        "getsebool NAME",
        tidegate(&["getsebool", "may_read"]),
        Ok("may_read --> on\n".into()),
    );
    c.same(
        "an unknown one is refused",
        set(&["may_read=off", "may_fly=on"]).is_err(),
        true,
    );
    c.same(
        "and nothing is set then",
        tidegate(&["getsebool", "may_read"]),
        Ok("may_read --> on\n".into()),
    );
    let json = tidegate(&["--json", "getsebool", "may_read"]);
    c.same("as JSON", json, Ok("{\"may_read\":true}\n".into()));
}

fn descriptors(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("opened", holder.does("open"), "ok".into());
    c.same("read", holder.does("read"), "ok".into());
    let said = c.set(&["may_read=off"]);
    c.same(
        "told of",
        said.contains("1 open descriptors are revoked"),
        true,
    );
    c.same(
        "read by a descriptor of before",
        holder.does("read"),
        REFUSED.into(),
    );
    c.same(
        "by a duplicate",
        [holder.does("duplicate"), holder.does("read")],
        ["ok".into(), REFUSED.into()],
    );
    c.same("opened anew", holder.does("open"), REFUSED.into());
    c.same(
        "in the log",
        logged("live_t may not { read } /root/live/secret"),
        Ok(()),
    );
    c.set(&["may_read=on"]);
    c.same("read, given back", holder.does("read"), "ok".into());
}

fn appended(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("opened to append", holder.does("open-write"), "ok".into());
    c.same("appended", holder.does("write"), "ok".into());
    c.set(&["may_write=off"]);
    c.same(
        "appended by a descriptor of before",
        holder.does("write"),
        REFUSED.into(),
    );
    c.set(&["may_write=on"]);
}

/// A child has what its parent had when it was born.
fn copies(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    c.same("a child is born", holder.does("fork-read"), "ok".into());
    c.set(&["may_read=off"]);
    let said = thread::spawn(|| {
        let mut text = String::new();
        let _ = OpenOptions::new()
            .read(true)
            .open(place("said"))
            .and_then(|mut f| f.read_to_string(&mut text));
        text
    });
    let _ = OpenOptions::new()
        .write(true)
        .open(place("go"))
        .map(|mut go| go.write_all(b"g"));
    c.same(
        "a child reads what its parent had opened",
        said.join().unwrap_or_default(),
        REFUSED.into(),
    );
    c.set(&["may_read=on"]);
}

/// A program in another domain does not use what it was left open, if that may not.
fn inherited(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("opened", holder.does("open"), "ok".into());
    c.same(
        "a program of another domain reads what it was left",
        holder.does("exec-read /payload/other-live"),
        REFUSED.into(),
    );
    c.same(
        "one of the same reads it",
        holder.does("exec-read /payload/te-live"),
        "ok".into(),
    );
    c.same("and so does who left it", holder.does("read"), "ok".into());
    let link = "/sys/fs/bpf/tidegate/links/te_guard_file_permission";
    c.same(
        "nobody has such a descriptor: the guard goes",
        soon(|| !fs::exists(link).unwrap_or(true)),
        true,
    );
    c.same(
        "it comes when it is needed",
        holder.does("exec-read /payload/other-live"),
        REFUSED.into(),
    );
}

/// A port is taken by an address of no family.
fn unspecified(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("allowed", holder.does("bind-unspec 7002"), "ok".into());
    c.set(&["may_serve=off"]);
    c.same(
        "not allowed",
        holder.does("bind-unspec 7002"),
        REFUSED.into(),
    );
    c.set(&["may_serve=on"]);
}

/// The kernel sends a signal to whomever a descriptor belongs to.
fn owner(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("itself", holder.does("own-itself"), "ok".into());
    let others = format!("own {}", std::process::id());
    c.same(
        "who may be sent some signals, and not all",
        holder.does(&others),
        REFUSED.into(),
    );
    c.same("a process group", holder.does("own -1"), REFUSED.into());
}

/// In a PID namespace a number is another process's than outside, where nobody may have it.
fn owner_within(c: &mut Checks) {
    for (whom, became) in [("itself", "ok"), ("another", REFUSED)] {
        let said = Holder::new().does(&format!("own-within {whom}"));
        c.same(whom, said, became.into());
    }
    c.same(
        "the log says why",
        logged("no label could be found"),
        Ok(()),
    );
}

/// A process that is governed does not administer what governs it, root or not.
fn commands(c: &mut Checks) {
    let mut holder = Holder::new();
    for command in [
        "setsebool may_read=on",
        "stop",
        "reload --policy /payload/flat.plm",
        "promote /root/live/secret",
    ] {
        c.same(
            command,
            holder.does(&format!("command {command}")),
            "refused".into(),
        );
    }
    c.same(
        "what everybody may ask",
        holder.does("command getsebool"),
        "ok".into(),
    );
    c.same(
        "the policy is in force",
        tidegate(&["getsebool", "may_read"]).is_ok(),
        true,
    );
}

/// A process that waits in read(2) when the permission is taken does not get what comes later.
fn waiting(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("opened", holder.does("fifo"), "ok".into());
    holder.waits("read-fifo");
    c.set(&["may_fifo=off"]);
    // before anything was written
    c.same(
        "who waits to read is refused at once",
        holder.hear(),
        REFUSED.into(),
    );
    c.set(&["may_fifo=on"]);
}

/// A descriptor that was on its way when the permission was taken does not arrive.
fn passed(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    c.same("sent", holder.does("pass"), "ok".into());
    c.set(&["may_read=off"]);
    c.same(
        "it does not arrive",
        holder.does("take"),
        "nothing came".into(),
    );
    c.set(&["may_read=on"]);
}

/// An io_uring may have a descriptor that nobody sees, and workers that nothing interrupts.
fn ring(c: &mut Checks) {
    let (mut holder, mut other) = (Holder::new(), Holder::new());
    holder.does("open");
    c.same("an io_uring", holder.does("ring"), "ok".into());
    c.same(
        "another, of who holds nothing",
        other.does("ring"),
        "ok".into(),
    );
    c.set(&["may_read=off"]);
    c.same(
        "who has it and the descriptor is killed",
        holder.signal(),
        KILLED,
    );
    c.same("who has it alone is not", other.does("ring"), "ok".into());
    c.set(&["may_read=on"]);
}

fn mapping_moved(c: &mut Checks) {
    for _ in 0..4 {
        let mut holder = Holder::new();
        c.same("mapped", holder.does("map"), "ok".into());
        c.same("moved about", holder.does("move-about"), "ok".into());
        c.set(&["may_map=off"]);
        let is_killed = "who moves it from before a look to behind it is killed";
        c.same(is_killed, holder.signal(), KILLED);
        c.set(&["may_map=on"]);
    }
}

fn mapping(c: &mut Checks) {
    let (mut holder, mut other) = (Holder::new(), Holder::new());
    c.same("mapped", holder.does("map"), "ok".into());
    other.does("open");
    let said = c.set(&["may_map=off"]);
    c.same("told of", said.contains("was killed"), true);
    c.same("who has it mapped is killed", holder.signal(), KILLED);
    c.same(
        "who has it only opened is not",
        other.does("read"),
        "ok".into(),
    );
    c.set(&["may_map=on"]);
}

fn executable(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same(
        "memory that is executable",
        holder.does("execmem"),
        "ok".into(),
    );
    c.set(&["may_execmem=off"]);
    c.same("who has it is killed", holder.signal(), KILLED);
    c.set(&["may_execmem=on"]);
}

fn connection(c: &mut Checks) {
    let listener = TcpListener::bind("127.0.0.1:7001").expect("a port");
    let mut holder = Holder::new();
    c.same(
        "connected",
        holder.does("connect 127.0.0.1:7001"),
        "ok".into(),
    );
    let (mut end, _) = listener.accept().expect("a connection");
    c.same("sent", holder.does("send"), "ok".into());
    holder.waits("receive");
    c.set(&["may_connect=off"]);
    c.same(
        "who waits to receive is refused at once",
        holder.hear(),
        REFUSED.into(),
    );
    let _ = end.write_all(b"late");
    c.same(
        "sent by a connection of before",
        holder.does("send"),
        REFUSED.into(),
    );
    c.same("received by it", holder.does("receive"), REFUSED.into());
    c.set(&["may_connect=on"]);
    c.same("sent, given back", holder.does("send"), "ok".into());
}

fn unix(c: &mut Checks) {
    let _ = fs::remove_file(place("socket"));
    let listener = UnixListener::bind(place("socket")).expect("a socket");
    let mut holder = Holder::new();
    c.same("connected", holder.does("connect-unix"), "ok".into());
    let _end = listener.accept();
    c.same("sent", holder.does("send"), "ok".into());
    c.set(&["may_connectto=off"]);
    c.same(
        "sent by a connection of before",
        holder.does("send"),
        REFUSED.into(),
    );
    c.set(&["may_connectto=on"]);
    c.same("sent, given back", holder.does("send"), "ok".into());
}

fn served(c: &mut Checks) {
    let mut holder = Holder::new();
    c.same("bound", holder.does("listen 127.0.0.1:7002"), "ok".into());
    let client = TcpStream::connect("127.0.0.1:7002");
    c.same("accepted", holder.does("accept"), "ok".into());
    c.set(&["may_serve=off"]);
    c.same(
        "sent by a connection that came by the port",
        holder.does("send"),
        REFUSED.into(),
    );
    let again = TcpStream::connect("127.0.0.1:7002");
    c.same("accepted by it", holder.does("accept"), REFUSED.into());
    drop((client, again));
    c.set(&["may_serve=on"]);
}

/// A policy without a SELinux policy in between does not give SIDs other meanings.
fn numbering(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    let flat = ["--policy", "/payload/flat.plm"];
    let with = |te: &'static str| {
        [
            flat[0],
            flat[1],
            "--te",
            te,
            "--file-contexts",
            "/payload/live.fc",
        ]
    };
    c.same(
        "reload without",
        tidegate(&[&["reload"][..], &flat].concat()).is_ok(),
        true,
    );
    c.same(
        "reload with its types in another order",
        tidegate(&[&["reload"][..], &with("/payload/other.pol")].concat()).is_ok(),
        true,
    );
    let ps = tidegate(&["ps", "-Z"]).unwrap_or_default();
    c.same(
        "who was governed is in the same context",
        ps.contains("u:r:live_t"),
        true,
    );
    c.same("and does what that may", holder.does("read"), "ok".into());
    c.same(
        "reload with the first",
        tidegate(&[&["reload"][..], &with("/payload/live.pol")].concat()).is_ok(),
        true,
    );
    c.same("the same then", holder.does("read"), "ok".into());
}

fn permissive(c: &mut Checks) {
    let mut holder = Holder::new();
    holder.does("open");
    holder.does("map");
    let with = [
        "--policy",
        "/payload/flat.plm",
        "--te",
        "/payload/live.pol",
        "--file-contexts",
        "/payload/live.fc",
    ];
    let off = [
        "--te-boolean",
        "may_read=off",
        "--te-boolean",
        "may_map=off",
    ];
    let reload = |more: &[&str]| tidegate(&[&["reload"][..], &with, &off, more].concat());
    c.same(
        "reload, permissive",
        reload(&["--permissive"]).is_ok(),
        true,
    );
    c.same("nothing is revoked", holder.does("read"), "ok".into());
    c.same("reload, enforcing", reload(&[]).is_ok(), true);
    c.same("who has it mapped is killed", holder.signal(), KILLED);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What plays the rest, by the headings that it prints.
    const SYSTEM: &str = include_str!("../../../../te-system/check.sh");

    #[test]
    fn what_the_catalogue_of_bypasses_names_is_played() {
        crate::bypasses::are_played("SELinux policies", |name| {
            let heading = format!("echo \"# {name}\"");
            SCENES.iter().any(|(known, _)| *known == name)
                || SYSTEM.lines().any(|line| line == heading)
        });
    }
}
