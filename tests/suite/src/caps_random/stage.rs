//! Where sequences are played: files, listeners, and actors under `tidegate run --caps`.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use serde_json::Value;

use crate::caps_random::calls;
use crate::caps_random::file::{FILES, NEW, PORTS, ROOT, SOCKETS};

const TIDEGATE: &str = "/payload/tidegate";
/// Where copies of this program are ([`ROOT`]/bin).
pub const COPIES: &str = "/srv/random/bin/";
/// Actors, at most: those that are started, and their children.
pub const ACTORS: usize = 6;
/// An answer takes no longer, in milliseconds: emulated kernels are slow.
const PATIENCE: i32 = 300_000;

/// What an actor is asked by, and hears others by.
#[derive(Debug)]
struct Channel {
    /// Where it reads, and where the driver writes.
    questions: (i32, i32),
    answers: (i32, i32),
    /// Where it receives descriptors, and where all others send them.
    inbox: (i32, i32),
}

/// One sequence's surroundings.
#[derive(Debug)]
pub struct Stage {
    channels: Vec<Channel>,
    started: Vec<Child>,
    _tcp: Vec<TcpListener>,
    _unix: Vec<UnixListener>,
    /// Memory with the bundle by which actors narrow themselves.
    pub bundle: i32,
}

/// The capability file.
pub fn path() -> String {
    format!("{ROOT}/random.caps")
}

/// What stays from sequence to sequence.
pub fn prepare() -> Result<()> {
    for directory in ["in", "run", "bin"] {
        fs::create_dir_all(format!("{ROOT}/{directory}"))?;
    }
    for name in ["tool", "plug", "same"] {
        fs::copy("/proc/self/exe", format!("{ROOT}/bin/{name}"))?;
    }
    Ok(())
}

impl Stage {
    /// Files as they are at the beginning, and the listeners.
    pub fn new(text: &str, bundle: &[u8]) -> Result<Stage> {
        fs::write(path(), text)?;
        for name in FILES {
            fs::write(format!("{ROOT}/in/{name}"), format!("{name:4096}"))?;
        }
        for name in NEW {
            remove(&format!("{ROOT}/in/{name}"))?;
        }
        let listen = |port| TcpListener::bind(("127.0.0.1", port)).context("listen");
        let tcp = PORTS.map(listen).into_iter().collect::<Result<_>>()?;
        let unix = SOCKETS.map(|name| {
            let path = format!("{ROOT}/run/{name}");
            remove(&path)?;
            UnixListener::bind(&path).context("listen")
        });
        let mut channels = Vec::new();
        for _ in 0..ACTORS {
            let (from, to) = calls::pipe()?;
            channels.push(Channel {
                questions: (from, to),
                answers: calls::pipe()?,
                inbox: calls::pair()?,
            });
        }
        Ok(Stage {
            channels,
            started: Vec::new(),
            _tcp: tcp,
            _unix: unix.into_iter().collect::<Result<_>>()?,
            bundle: calls::memory(bundle)?,
        })
    }

    /// Starts an actor: as a subject, or not governed.
    pub fn start(&mut self, at: usize, subject: Option<&str>) -> Result<()> {
        let (input, output) = self.ends(at);
        let mut command = match subject {
            Some(subject) => {
                let mut command = Command::new(TIDEGATE);
                command.args(["run", "--caps", &path(), "--caps-subject", subject, "--"]);
                command.arg(format!("{ROOT}/bin/same"));
                command
            }
            None => Command::new(format!("{ROOT}/bin/same")),
        };
        command.arg("actor");
        let input = format!("/proc/self/fd/{input}");
        let output = format!("/proc/self/fd/{output}");
        command.stdin(Stdio::from(fs::File::open(input)?));
        command.stdout(Stdio::from(fs::File::options().write(true).open(output)?));
        self.started
            .push(command.spawn().context("start an actor")?);
        match self.answer(at)?.as_str() {
            "ok " => Ok(()),
            other => bail!("an actor began by saying `{other}`"),
        }
    }

    /// An actor's process.
    pub fn number(&self, at: usize) -> Result<u64> {
        let said = self.ask(at, "pid")?;
        Ok(said
            .map_err(|errno| anyhow!("pid: errno {errno}"))?
            .parse()?)
    }

    /// What a child of an actor reads from and writes to.
    pub fn ends(&self, at: usize) -> (i32, i32) {
        (self.channels[at].questions.0, self.channels[at].answers.1)
    }

    /// Where an actor receives descriptors, and where others send them to it.
    pub fn inbox(&self, at: usize) -> (i32, i32) {
        self.channels[at].inbox
    }

    /// Has an actor begin something.
    pub fn tell(&self, at: usize, words: &str) -> Result<()> {
        Ok(calls::write(
            self.channels[at].questions.1,
            format!("{words}\n").as_bytes(),
        )?)
    }

    /// What it says.
    pub fn answer(&self, at: usize) -> Result<String> {
        let fd = self.channels[at].answers.0;
        let mut text = Vec::new();
        loop {
            if !calls::is_readable(fd, PATIENCE) {
                bail!("actor {at} says nothing");
            }
            let mut byte = [0];
            match calls::read(fd, &mut byte)? {
                1 if byte[0] == b'\n' => return Ok(String::from_utf8(text)?),
                1 => text.push(byte[0]),
                _ => bail!("actor {at} is gone"),
            }
        }
    }

    /// Asks for what may cost an actor its life: `None`, if it did.
    pub fn ask_dying(&self, at: usize, words: &str, process: u64) -> Result<Option<Answer>> {
        self.tell(at, words)?;
        while !calls::is_readable(self.channels[at].answers.0, 20) {
            if has_ended(process) {
                return Ok(None);
            }
        }
        self.said(at).map(Some)
    }

    fn said(&self, at: usize) -> Result<Answer> {
        let answer = self.answer(at)?;
        Ok(match answer.strip_prefix("ok ") {
            Some(said) => Ok(said.to_owned()),
            None => Err(answer.parse().context("an answer")?),
        })
    }

    /// Both. What finds no room, or cannot be known now, is asked for once more.
    pub fn ask(&self, at: usize, words: &str) -> Result<Answer> {
        for _ in 0..20 {
            self.tell(at, words)?;
            let answer = self.said(at)?;
            if answer != Err(libc::EAGAIN) {
                return Ok(answer);
            }
        }
        Ok(Err(libc::EAGAIN))
    }
}

/// Has a process ended? Whoever it belongs to may not have heard of it yet.
fn has_ended(process: u64) -> bool {
    // after the name, which may have parentheses itself
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    state.is_empty() || state.starts_with(['Z', 'X'])
}

/// What came of something, or the errno.
pub type Answer = std::result::Result<String, i32>;

impl Drop for Stage {
    fn drop(&mut self) {
        for channel in &self.channels {
            let Channel {
                questions,
                answers,
                inbox,
            } = channel;
            for fd in [questions, answers, inbox] {
                // a reader of it ends
                drop((calls::close(fd.0), calls::close(fd.1)));
            }
        }
        drop(calls::close(self.bundle));
        for child in &mut self.started {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The numbers of the sessions that there are, rising.
pub fn sessions() -> Result<Vec<u64>> {
    let listed = Command::new(TIDEGATE)
        .args(["sessions", "--json"])
        .output()?;
    // a list, or a session a line
    let values = serde_json::Deserializer::from_slice(&listed.stdout).into_iter::<Value>();
    let mut numbers = Vec::new();
    for value in values {
        let value = value.context("what `sessions` says")?;
        let one = std::slice::from_ref(&value);
        let all = value.as_array().map_or(one, Vec::as_slice);
        numbers.extend(all.iter().filter_map(|session| session["number"].as_u64()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Takes something back, and returns the processes that were killed.
pub fn revoke(words: &[String]) -> Result<Vec<u64>> {
    let done = Command::new(TIDEGATE)
        .args(["revoke", "--json"])
        .args(words)
        .output()?;
    if !done.status.success() {
        bail!("revoke: {}", String::from_utf8_lossy(&done.stderr));
    }
    let said: Value = serde_json::from_slice(&done.stdout).context("what `revoke` says")?;
    let killed = said["killed"]
        .as_array()
        .context("nobody is said to be killed")?;
    Ok(killed
        .iter()
        .filter_map(|lost| lost["pid"].as_u64())
        .collect())
}

/// Removes a file, if there is one.
pub fn remove(path: &str) -> Result<()> {
    match fs::remove_file(Path::new(path)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e).context("remove a file"),
        _ => Ok(()),
    }
}
