//! The process that makes the objects, the one that plays, and the one that tells them to.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::te_ops::op::{Op, all, of_debian};
use crate::te_ops::policy::MAKER;
use crate::te_ops::sys::{OBJ, at, clear, get_xattr, leave, sys};
use crate::te_ops::world;

/// The system that enforces the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    Selinux,
    Tidegate,
}

/// A process in a domain, which is told a line and says one.
pub struct Player {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Player {
    /// Starts one in a context.
    pub fn start(system: System, context: &str, what: &str) -> io::Result<Self> {
        let mut command = match system {
            System::Selinux => {
                let context = context.to_owned();
                let mut command = Command::new("/payload/te-ops");
                // SAFETY: as runcon(1) does; this process has one thread.
                unsafe { command.pre_exec(move || fs::write("/proc/self/attr/exec", &context)) };
                command
            }
            System::Tidegate => {
                let mut command = Command::new("/payload/tidegate");
                command.args(["run", "--context", context, "--", "/payload/te-ops"]);
                command
            }
        };
        let mut child = command
            .args(what.split(' '))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            child,
            to: to.expect("a pipe"),
            from: BufReader::new(from.expect("a pipe")),
        })
    }

    /// Tells it a line; what it says, and before that which label it saw.
    pub fn ask(&mut self, line: &str) -> io::Result<(String, String)> {
        // a process that was killed reads nothing any more
        let told = writeln!(self.to, "{line}").is_ok();
        let mut label = String::new();
        loop {
            let mut said = String::new();
            if !told || self.from.read_line(&mut said)? == 0 {
                return Ok(("ended".into(), label));
            }
            match said.trim_end().strip_prefix("label ") {
                Some(seen) => label = seen.to_owned(),
                None => return Ok((said.trim_end().to_owned(), label)),
            }
        }
    }

    pub fn end(self) -> io::Result<()> {
        let Self {
            mut child,
            to,
            from,
        } = self;
        drop((to, from));
        child.wait().map(drop)
    }
}

/// Has an operation made, played and cleared away; what became of it, and what label came of it.
pub fn one(
    maker: &mut Player,
    player: &mut Player,
    op: &Op,
    before: impl FnOnce() -> io::Result<()>,
) -> io::Result<(String, String)> {
    let (made, _) = maker.ask(&format!("make {}", op.name))?;
    let Some(number) = made.strip_prefix("made ") else {
        println!("FAILED  {} was not made: {made}", op.name);
        maker.ask(&format!("clear {}", op.name))?;
        return Ok((format!("not made: {made}"), String::new()));
    };
    let (mut verdict, mut label) = player.ask(&format!("{number} {}", op.name))?;
    if verdict == "waits" {
        before()?;
        (verdict, label) = player.ask("go")?;
    }
    let (cleared, seen) = maker.ask(&format!("clear {}", op.name))?;
    if cleared != "cleared" {
        println!("FAILED  {} was not cleared away: {cleared}", op.name);
    }
    if !seen.is_empty() {
        label = seen;
    }
    Ok((verdict, label))
}

/// What each operation asks, of a list.
fn asked(list: &str) -> io::Result<BTreeMap<String, Vec<String>>> {
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut op = "";
    let text = fs::read_to_string(list)?;
    for line in text.lines() {
        match line.strip_prefix('\t') {
            Some(question) => {
                let what = question.split(' ').next().unwrap_or_default();
                asked
                    .entry(op.to_owned())
                    .or_default()
                    .push(what.to_owned());
            }
            None => op = line,
        }
    }
    Ok(asked)
}

/// Of operations that do not ask for what a domain lacks, one in so many is played there.
const OTHERS: usize = 64;

/// Plays in each context of a list what asks for what it lacks, and some of the rest; in those that lack nothing,
/// or several, everything.
pub fn play(system: System, contexts: &str, list: &str) -> io::Result<()> {
    world::make(system == System::Selinux)?;
    let (ops, asked) = (all(), asked(list)?);
    let mut maker = Player::start(system, MAKER, "make")?;
    for line in fs::read_to_string(contexts)?.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (name, context, lacks) = (word(), word(), word());
        // which of the rest, so that a part of the list plays what the whole does
        let turn: usize = word().parse().unwrap_or_default();
        let asks = |op: &Op| {
            lacks == "-"
                || asked.get(&op.name).is_some_and(|asks| {
                    asks.iter().any(|what| {
                        what == lacks || lacks.ends_with(':') && what.starts_with(lacks)
                    })
                })
        };
        // one that may not fork plays itself, and has then done so
        let once = matches!(lacks, "process:fork" | "process:");
        let mut player = None;
        for (number, op) in ops.iter().enumerate() {
            let plays = asks(op) || (number + turn).is_multiple_of(OTHERS);
            if !plays || op.own && system != System::Selinux {
                continue;
            }
            let mut by = match player.take() {
                Some(player) => player,
                None => Player::start(system, context, "serve")?,
            };
            let (verdict, label) = one(&mut maker, &mut by, op, || Ok(()))?;
            let word = if op.own { "own" } else { "verdict" };
            println!("{word}: {name}: {}={verdict}", op.name);
            if !label.is_empty() && verdict == "ok" {
                println!("label: {name}: {}={label}", op.name);
            }
            if once || verdict == "ended" {
                by.end()?;
            } else {
                player = Some(by);
            }
        }
        if let Some(player) = player {
            player.end()?;
        }
    }
    maker.end()
}

/// Plays in each context of a list what is about a Debian's own files, which nobody makes.
pub fn debian(system: System, contexts: &str) -> io::Result<()> {
    for line in fs::read_to_string(contexts)?.lines() {
        let (name, context) = line.split_once(' ').unwrap_or((line, line));
        let mut player = Player::start(system, context, "serve")?;
        for op in of_debian() {
            let (verdict, _) = player.ask(&format!("0 {}", op.name))?;
            println!("verdict: {name}: {}={verdict}", op.name);
            if verdict == "ended" {
                break;
            }
        }
        player.end()?;
    }
    Ok(())
}

/// Makes what operations need, as it is told, and clears it away.
pub fn make() -> io::Result<()> {
    // SAFETY: no memory is touched.
    unsafe { libc::umask(0) };
    let ops = all();
    let mut kept = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (what, name) = line.split_once(' ').unwrap_or_default();
        let op = ops.iter().find(|op| op.name == name);
        let said = match (what, op) {
            ("make", Some(op)) => match (op.make)() {
                Ok((made, number)) => {
                    kept = Some(made);
                    format!("made {number}")
                }
                Err(e) => e.to_string(),
            },
            ("clear", Some(op)) => {
                if let Some(label) = op
                    .new
                    .and_then(|new| get_xattr(&at(new), "security.selinux").ok())
                {
                    println!("label {label}");
                }
                drop(kept.take());
                match clear(OBJ) {
                    Ok(()) => "cleared".into(),
                    Err(e) => e.to_string(),
                }
            }
            _ => "unknown".into(),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{said}")?;
        out.flush()?;
    }
    Ok(())
}

/// Plays what it is told, in a child each time, so that nothing is left of it. The child may be had to wait for a
/// line: what SELinux was asked so that there is a child is forgotten until then, too.
pub fn serve(waits: bool) -> io::Result<()> {
    let mut ops = all();
    ops.extend(of_debian());
    let mut lines = io::stdin().lines();
    while let Some(line) = lines.next() {
        let line = line?;
        let (number, name) = line.split_once(' ').unwrap_or_default();
        let number = number.parse().unwrap_or_default();
        let wait = waits.then(Gate::new).transpose()?;
        let verdict = match ops.iter().find(|op| op.name == name) {
            Some(op) => played(
                op,
                number,
                || match &wait {
                    None => Ok(()),
                    Some(gate) => gate.open(&mut lines),
                },
                wait.as_ref(),
            ),
            None => "unknown".into(),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{verdict}")?;
        out.flush()?;
    }
    Ok(())
}

/// What a child waits at: memory that it shares, which nobody is asked about.
struct Gate(*mut u8);

impl Gate {
    fn new() -> io::Result<Self> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: an address of the kernel's choice.
        match unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            page => Ok(Self(page.cast())),
        }
    }

    /// Says that the child is there, and lets it go on once told so.
    fn open(&self, mut told: impl Iterator<Item = io::Result<String>>) -> io::Result<()> {
        println!("waits");
        told.next().transpose()?;
        // SAFETY: our own page.
        unsafe { self.0.write_volatile(1) };
        Ok(())
    }

    fn pass(&self) {
        // SAFETY: our own page.
        while unsafe { self.0.read_volatile() } == 0 {
            // SAFETY: no pointers.
            unsafe { libc::usleep(500) };
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { libc::munmap(self.0.cast(), 4096) };
    }
}

fn played(
    op: &Op,
    number: i64,
    opened: impl FnOnce() -> io::Result<()>,
    gate: Option<&Gate>,
) -> String {
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        // by itself, which is then not to be used again
        -1 => match (op.run)(number) {
            Ok(()) => "ok".into(),
            Err(e) => named(e.raw_os_error().unwrap_or(255)),
        },
        0 => {
            for signal in [libc::SIGUSR1, 40] {
                // SAFETY: nothing is called.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            // SAFETY: no pointers. Whoever waits for what never comes ends.
            unsafe { libc::alarm(60) };
            if let Some(gate) = gate {
                gate.pass();
            }
            leave((op.run)(number))
        }
        child => {
            if opened().is_err() {
                return "told nothing".into();
            }
            let mut status = 0;
            let _ = sys!(libc::waitpid(child, &raw mut status, 0));
            match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
                (true, 0) => "ok".into(),
                (true, code) => named(code),
                (false, _) => format!("signal {}", libc::WTERMSIG(status)),
            }
        }
    }
}

/// An error by its name.
fn named(code: i32) -> String {
    nix::errno::Errno::from_raw(code)
        .to_string()
        .split(':')
        .next()
        .unwrap_or_default()
        .into()
}
