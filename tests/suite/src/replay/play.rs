//! Plays a sequence on the kernel and on the model side by side.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tidegate_bundle::Policy;
use tidegate_model::{Act, FIRST, Level, Op, Pid, Verdict, World};
use tidegate_monitor::Monitor;

use crate::replay::attempt::network;
use crate::replay::control::{Control, Outcome};
use crate::replay::wire::{Answer, Request};
use crate::replay::{inspect, sandbox};

/// How long an operation is tried which the kernel is too busy for: other work of the machine may keep a task from coming to rest.
const PATIENCE: Duration = Duration::from_secs(20);
/// Times that a sequence is played in which an exec is killed that should not be.
const TRIES_OF_EXEC: u32 = 3;

/// The first operation on which kernel and model differ.
#[derive(Debug, Clone)]
pub struct Divergence {
    /// Its place in the sequence.
    pub at: usize,
    /// What differs, in words.
    pub what: String,
    /// Whether it may be the kernel's being busy, told in the only way an exec
    /// can tell: it is to be played again.
    pub perhaps_busy: bool,
}

/// What was played.
#[derive(Debug, Default)]
pub struct Tally {
    /// Operations.
    pub ops: usize,
    sequences: usize,
    refused: usize,
    demoted: usize,
    busy: usize,
    kinds: BTreeMap<(String, String), usize>,
}

impl Tally {
    /// Counts an operation.
    pub fn count(&mut self, before: &World, op: &Op, verdict: Verdict, after: &World) {
        self.ops += 1;
        self.refused += usize::from(verdict != Verdict::Done);
        self.demoted += usize::from(!changes(before, after).is_empty());
        let kind = format!("{:?}", op.act);
        let kind = kind
            .split(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        *self
            .kinds
            .entry((kind.to_owned(), verdict.to_string()))
            .or_default() += 1;
    }

    /// Each kind of operation with its verdicts.
    pub fn table(&self) -> String {
        let line = |((kind, verdict), n): (&(String, String), &usize)| {
            format!("{kind:10} {verdict:8} {n:6}\n")
        };
        self.kinds.iter().map(line).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations in {} sequences: {} refused, {} demotions, {} tried again",
            self.ops, self.sequences, self.refused, self.demoted, self.busy
        )
    }
}

/// The levels that an operation changed, in words.
pub fn changes(before: &World, after: &World) -> String {
    let fell = |(pid, _, level): (Pid, u8, Level)| {
        let was = before.living().find(|(p, ..)| *p == pid)?.2;
        let names = (after.level_name(was), after.level_name(level));
        (was != level).then(|| format!(", p{pid} {} → {}", names.0, names.1))
    };
    after.living().filter_map(fell).collect()
}

/// The property, by the bytes that a process has really read.
fn wrong_bytes(world: &World, pid: Pid, got: Outcome) -> Option<String> {
    let Outcome::Answered(Answer { seen, .. }) = got else {
        return None;
    };
    let (level, lowest) = (world.level_of(pid), seen.trailing_zeros() as Level);
    if world.is_trusted(pid) {
        None
    } else if lowest < level {
        let names = (world.level_name(level), world.level_name(lowest));
        Some(format!(
            "p{pid} at {} has read a byte of {}",
            names.0, names.1
        ))
    } else if lowest < world.seen(pid)? {
        let name = world.level_name(lowest);
        Some(format!(
            "how p{pid} came to a byte of {name} the model cannot tell"
        ))
    } else {
        None
    }
}

/// Whether its call says something else than `EAGAIN` where the kernel is busy.
fn hides_busy(act: &Act) -> bool {
    matches!(
        act,
        Act::Take { .. }
            | Act::Peek { .. }
            | Act::Poke { .. }
            | Act::Attach { .. }
            | Act::Enqueue { .. }
            | Act::Dequeue { .. }
    )
}

/// Plays sequences on this kernel.
pub struct Player {
    policy: Arc<Policy>,
    monitor: Monitor,
    control: Control,
    /// One for each network, so that whoever dials is answered.
    listeners: Vec<TcpListener>,
    place: String,
    /// Sandboxes made so far: each has a number of its own.
    made: u32,
    /// The kernel's numbers of segments and queues.
    segments: Vec<i64>,
    queues: Vec<i64>,
}

impl Player {
    /// Gets ready.
    pub fn new(policy: Arc<Policy>) -> Result<Player> {
        let monitor = Monitor::open()?;
        let own = monitor.subject_of(std::process::id())?;
        ensure!(
            own.is_some(),
            "not nodemote: is policy/replay.plm in force?"
        );
        sandbox::install()?;
        let listeners = (0..=policy.top()).map(|level| {
            let listener = TcpListener::bind(network(level))?;
            listener.set_nonblocking(true).map(|()| listener)
        });
        Ok(Player {
            listeners: listeners.collect::<io::Result<_>>().context("listen")?,
            control: Control::start()?,
            policy,
            monitor,
            place: String::new(),
            made: 0,
            segments: Vec::new(),
            queues: Vec::new(),
        })
    }

    /// Plays in this place from now on.
    pub fn move_to(&mut self, place: &str) -> Result<()> {
        self.place = place.to_owned();
        std::fs::create_dir_all(place).context("make the place of the sandboxes")
    }

    fn root(&self) -> String {
        format!("{}/{}", self.place, self.made)
    }

    /// The world that the next sequence begins with.
    pub fn fresh_world(&self) -> World {
        World::new(Arc::clone(&self.policy), &self.root())
    }

    /// Plays a sequence, and again where the kernel may have been too busy for it.
    pub fn play(&mut self, ops: &[Op], tally: &mut Tally) -> Result<Option<Divergence>> {
        let mut found = self.play_once(ops, tally)?;
        for _ in 1..TRIES_OF_EXEC {
            if !found.as_ref().is_some_and(|d| d.perhaps_busy) {
                break;
            }
            tally.busy += 1;
            found = self.play_once(ops, tally)?;
        }
        Ok(found)
    }

    /// Plays a sequence in a sandbox of its own.
    fn play_once(&mut self, ops: &[Op], tally: &mut Tally) -> Result<Option<Divergence>> {
        let root = self.root();
        sandbox::make(&root)?;
        self.control.spawn(FIRST)?;
        tally.sequences += 1;
        let found = self.steps(ops, &root, tally);
        let ended = self.control.end();
        self.forget_ipc();
        sandbox::remove(&root)?;
        self.made += 1;
        ended?;
        found
    }

    fn steps(&mut self, ops: &[Op], root: &str, tally: &mut Tally) -> Result<Option<Divergence>> {
        let mut world = self.fresh_world();
        for (at, op) in ops.iter().enumerate() {
            let before = world.clone();
            let Some(expected) = world.step(op) else {
                continue;
            };
            let got = self.attempt(op, root, (&before, &world), expected, tally)?;
            tally.count(&before, op, expected, &world);
            let wrong = match self.verdict(op, got)? {
                (verdict, _) if verdict == Some(expected) => match self.wrong_level(&world)? {
                    None => wrong_bytes(&world, op.who, got),
                    wrong => wrong,
                },
                (_, got) => Some(format!("the model says {expected}, the kernel {got}")),
            };
            if let Some(what) = wrong {
                let perhaps_busy = matches!(op.act, Act::Exec { .. })
                    && expected == Verdict::Done
                    && got == Outcome::Ended;
                return Ok(Some(Divergence {
                    at,
                    what,
                    perhaps_busy,
                }));
            }
        }
        let wrong = inspect::wrong(&self.monitor, root, &world)?;
        Ok(wrong.map(|what| Divergence {
            at: ops.len() - 1,
            what,
            perhaps_busy: false,
        }))
    }

    /// Has an operation tried, and again while the kernel is too busy for it. The worlds are the model's before and after it.
    fn attempt(
        &mut self,
        op: &Op,
        root: &str,
        (before, after): (&World, &World),
        expected: Verdict,
        tally: &mut Tally,
    ) -> Result<Outcome> {
        let number = match &op.act {
            Act::Take { from: pid, .. }
            | Act::Signal { pid }
            | Act::Kill { pid }
            | Act::Renice { pid }
            | Act::Peek { pid }
            | Act::Poke { pid } => self.control.number(*pid)?,
            Act::Attach { id, .. } | Act::Drop { id } => self.segments[usize::from(*id)],
            Act::Enqueue { id } | Act::Dequeue { id } => self.queues[usize::from(*id)],
            _ => 0,
        };
        let request = Request::Try {
            op: op.clone(),
            root: root.to_owned(),
            number,
            level: before.level_of(op.who),
            floor: before.floor(op),
        };
        let until = Instant::now() + PATIENCE;
        loop {
            let outcome = self.control.ask(op.who, &request)?;
            let busy = match outcome {
                Outcome::Answered(Answer { errno: 0, .. }) => false,
                Outcome::Answered(Answer { errno, .. }) => {
                    // a refusal with a fall is told from one that had no time for it by the levels
                    errno == libc::EAGAIN
                        || hides_busy(&op.act)
                            && (expected == Verdict::Done || self.wrong_level(after)?.is_some())
                }
                _ => false,
            };
            if !busy || Instant::now() > until {
                return Ok(outcome);
            }
            tally.busy += 1;
            sleep(Duration::from_millis(20));
        }
    }

    /// What the kernel's answer means, and in words; takes note of what was made.
    fn verdict(&mut self, op: &Op, outcome: Outcome) -> Result<(Option<Verdict>, String)> {
        let answer = match outcome {
            Outcome::Answered(answer) => answer,
            Outcome::Ended => {
                self.control.ended(op.who)?;
                return Ok((Some(Verdict::Killed), Verdict::Killed.to_string()));
            }
            Outcome::Silent => return Ok((None, "nothing".into())),
        };
        if answer.errno != 0 {
            let verdict = Verdict::of_errno(answer.errno);
            return Ok((
                verdict,
                io::Error::from_raw_os_error(answer.errno).to_string(),
            ));
        }
        match &op.act {
            Act::Fork { .. } | Act::Share { .. } => self.control.born(answer.value)?,
            Act::Thread => self.control.set_second(op.who, Some(answer.value as u32)),
            Act::Exec { .. } => self.control.set_second(op.who, None),
            Act::Exit => self.control.ended(op.who)?,
            Act::Kill { pid } => self.control.ended(*pid)?,
            Act::Segment { .. } => self.segments.push(answer.value),
            Act::Queue { .. } => self.queues.push(answer.value),
            Act::Dial { network, .. } => self.hang_up(*network),
            _ => {}
        }
        Ok((Some(Verdict::Done), Verdict::Done.to_string()))
    }

    /// Takes what was dialled and lets it go.
    fn hang_up(&self, network: Level) {
        while self.listeners[usize::from(network)].accept().is_ok() {}
    }

    /// The first process whose level is not the model's.
    fn wrong_level(&self, world: &World) -> Result<Option<String>> {
        for (pid, _, expected) in world.living() {
            let levels = self.control.levels(&self.monitor, pid, self.policy.top())?;
            if let Some(level) = levels.iter().find(|level| **level != expected) {
                let names = (world.level_name(expected), world.level_name(*level));
                return Ok(Some(format!(
                    "the model has p{pid} at {}, the kernel at {}",
                    names.0, names.1
                )));
            }
        }
        Ok(None)
    }

    fn forget_ipc(&mut self) {
        for id in self.segments.drain(..) {
            // SAFETY: this command takes no buffer. One that was removed is gone already.
            unsafe { libc::shmctl(id as i32, libc::IPC_RMID, std::ptr::null_mut()) };
        }
        for id in self.queues.drain(..) {
            // SAFETY: as above.
            unsafe { libc::msgctl(id as i32, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }

    /// A sequence with what the model expects of each operation, and the divergence.
    pub fn tell(&self, ops: &[Op], divergence: &Divergence) -> String {
        let mut world = self.fresh_world();
        let mut text = String::new();
        for op in ops {
            let before = world.clone();
            if let Some(verdict) = world.step(op) {
                text += &format!("  {op}  → {verdict}{}\n", changes(&before, &world));
            }
        }
        text + &format!("  {}\n", divergence.what)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.forget_ipc();
        if let Err(error) = self.control.end() {
            eprintln!("replay: {error:#}");
        }
    }
}
