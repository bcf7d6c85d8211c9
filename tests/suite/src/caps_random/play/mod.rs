//! One operation after the other: this kernel and the reference model agree on each verdict.
//!
//! A sequence is a list of numbers, one for each step, from which alone the step is drawn: so what is left is played the same way
//! when others are left out.

mod bind;
mod change;
mod hand;
mod revoke;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use tidegate_bundle::caps::Object;
use tidegate_policy::caps;
use tidegate_policy::caps::decide::Layer;
use tidegate_policy::caps::model::{Fd, Pid, Refusal, World};

use crate::caps_random::file::{self, EXPIRES, ROOT, SUBJECTS};
use crate::caps_random::shrink;
use crate::caps_random::stage::{self, Answer, Stage};

/// Steps of a sequence.
const LENGTH: usize = 70;
/// Actors that are started.
const STARTED: usize = 3;
/// Seconds that pass at once: more than anything is good for that expires.
const WHILE: u64 = EXPIRES + 1;
/// How often a sequence that fails is played to find a shorter one.
const TRIES: usize = 150;

/// A descriptor of an actor's.
#[derive(Debug, Clone)]
struct Slot {
    fd: String,
    /// What the model has for it; `None`: it has none any more.
    model: Option<Fd>,
    object: Object,
    mode: u32,
    /// The open file, which several descriptors share.
    description: usize,
    /// The domain that has what was bound.
    owner: usize,
    /// The kernel may refuse more than the model: of what was asked for, it has a part.
    part: bool,
}

#[derive(Debug, Clone)]
struct Actor {
    pid: Pid,
    /// Its process.
    number: u64,
    /// It cannot be handed anything any more.
    is_deaf: bool,
    domain: usize,
    slots: Vec<Slot>,
    /// What it has mapped: by which descriptor of the model's, and for what.
    maps: Vec<(Fd, u32)>,
}

/// What the kernel knows of an open file, by domains: from that it guesses which one hands it over.
#[derive(Debug, Clone, Default)]
struct Description {
    /// The domains that have it, or were refused it, and those by which each has come to it.
    holders: BTreeMap<usize, BTreeSet<usize>>,
    /// The domains that have handed it over by a message.
    sent: BTreeSet<usize>,
    /// Somebody has it by more than the model knows, so that uses of his are taken from others, too.
    is_guessed: bool,
}

struct Play {
    rng: Rng,
    stage: Stage,
    world: World,
    actors: BTreeMap<usize, Actor>,
    /// Actors so far: a channel serves one only.
    born: usize,
    domains: usize,
    /// By domain that narrowed itself, the one before, which has what it had bound.
    before: BTreeMap<usize, usize>,
    /// Domains from which descriptors were taken, nobody knows which.
    hands: BTreeSet<usize>,
    descriptions: Vec<Description>,
    lines: Vec<u32>,
    /// Sessions, by the kernel's numbers.
    sessions: Vec<u64>,
    has_time: bool,
    since: Instant,
    tally: BTreeMap<&'static str, [u32; 2]>,
    trace: Vec<String>,
}

/// Plays the sequence of a seed: how often each operation was allowed and refused. Of one that fails, a shorter one is told, for which is
/// looked as long as there is `time` left.
pub fn sequence(seed: u64, time: &mut Duration) -> Result<String> {
    let mut rng = Rng::with_seed(seed);
    let (text, _) = file::draw(&mut rng, &stage::path());
    let subjects: [usize; STARTED] =
        std::array::from_fn(|at| rng.usize(..SUBJECTS.len()) * usize::from(at > 0));
    let steps: Vec<u64> = (0..LENGTH).map(|_| rng.u64(..)).collect();
    let mut failure = match play(&text, subjects, &steps) {
        Ok(tally) => return Ok(tally),
        Err(failure) => failure,
    };
    println!("sequence {seed} fails: {}", failure.root_cause());
    let (kind, began) = (kind(&failure), Instant::now());
    let mut fails = |text: &str, steps: &[u64]| {
        if began.elapsed() > *time {
            return false;
        }
        match play(text, subjects, steps) {
            Err(e) if self::kind(&e) == kind => {
                failure = e;
                true
            }
            _ => false,
        }
    };
    let steps = shrink::shortest(&steps, TRIES, |steps| fails(&text, steps));
    let lines: Vec<&str> = text.lines().collect();
    let lines = shrink::shortest(&lines, TRIES, |lines| {
        let text = lines.join("\n") + "\n";
        file::is_whole(&text) && fails(&text, &steps)
    });
    *time = time.saturating_sub(began.elapsed());
    Err(failure.context(format!(
        "{} of {LENGTH} steps and {} lines fail",
        steps.len(),
        lines.len()
    )))
}

/// What a failure is, whatever numbers it tells.
fn kind(e: &anyhow::Error) -> String {
    let said = e.root_cause().to_string();
    said.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Plays these steps under this file.
fn play(text: &str, subjects: [usize; STARTED], steps: &[u64]) -> Result<String> {
    let compiled = caps::compile_str(&stage::path(), text);
    let caps = compiled.map_err(|e| anyhow::anyhow!("{e:?}"))?.capabilities;
    let mut play = Play {
        stage: Stage::new(text, &caps.to_bundle())?,
        lines: caps.capabilities.iter().map(|it| it.source.line).collect(),
        world: World::new(vec![caps]),
        actors: BTreeMap::new(),
        born: 0,
        domains: 0,
        before: BTreeMap::new(),
        hands: BTreeSet::new(),
        descriptions: Vec::new(),
        sessions: Vec::new(),
        has_time: text.contains("expires"),
        since: Instant::now(),
        tally: BTreeMap::new(),
        trace: Vec::new(),
        rng: Rng::with_seed(0),
    };
    let played = play.run(subjects, steps);
    played.with_context(|| {
        let trace = play.trace.join("\n    ");
        format!("after\n    {trace}\nof\n{text}")
    })?;
    let told = play
        .tally
        .iter()
        .map(|(what, [yes, no])| format!("{what} {yes}/{no}"));
    Ok(told.collect::<Vec<_>>().join(" "))
}

fn path_of(name: &str) -> String {
    format!("{ROOT}/in/{name}")
}

fn layer(subject: usize) -> Layer {
    Layer {
        files: 0,
        subject: subject as u32,
    }
}

impl Play {
    fn run(&mut self, subjects: [usize; STARTED], steps: &[u64]) -> Result<()> {
        for (at, subject) in subjects.into_iter().enumerate() {
            self.stage.start(at, Some(SUBJECTS[subject]))?;
            let actor = Actor {
                pid: self.world.start(layer(subject)),
                number: self.stage.number(at)?,
                is_deaf: false,
                domain: self.domain(),
                slots: Vec::new(),
                maps: Vec::new(),
            };
            self.actors.insert(at, actor);
        }
        self.born = STARTED;
        // those of sequences before may not have ended
        let mut sessions = stage::sessions()?;
        self.sessions = sessions.split_off(sessions.len() - STARTED);
        for &step in steps {
            self.rng = Rng::with_seed(step);
            let living: Vec<usize> = self.actors.keys().copied().collect();
            if living.is_empty() {
                break;
            }
            let at = living[self.rng.usize(..living.len())];
            match self.rng.u32(..100) {
                0..20 => drop(self.open(at)?),
                20..27 => self.connect(at)?,
                27..56 => self.using(at)?,
                56..65 => self.hand(at)?,
                65..70 => self.chain(at)?,
                70..74 => self.take_from(at)?,
                74..78 => self.narrow(at)?,
                78..83 => self.exec(at)?,
                83..88 => self.fork(at)?,
                88..90 => self.close(at)?,
                90 => self.narrow_late(at)?,
                91..98 => self.revoke()?,
                _ => self.wait()?,
            }
            // as the model has it no time passes by itself
            if self.has_time && self.since.elapsed() > Duration::from_secs(EXPIRES / 2) {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn domain(&mut self) -> usize {
        self.domains += 1;
        self.domains
    }

    /// A domain, and those that it was narrowed from by its own processes: what they had bound it has.
    fn lineage(&self, domain: usize) -> Vec<usize> {
        std::iter::successors(Some(domain), |domain| self.before.get(domain).copied()).collect()
    }

    /// Compares what the kernel and the model say. `part`: the kernel may know less, and be stricter.
    fn agree(
        &mut self,
        what: &'static str,
        answer: &Answer,
        model: Result<(), Refusal>,
        part: bool,
    ) -> Result<bool> {
        let said = match answer {
            Ok(_) => true,
            Err(libc::EACCES | libc::EPERM) => false,
            Err(other) => bail!("{what}: errno {other}"),
        };
        self.tally.entry(what).or_default()[usize::from(!said)] += 1;
        self.trace
            .push(format!("  {what}: {answer:?}, model {model:?}"));
        let slow = self.has_time && self.since.elapsed() >= Duration::from_secs(EXPIRES);
        // it may have expired meanwhile
        let stricter = !said && (part || slow);
        ensure!(
            said == model.is_ok() || stricter,
            "{what}: the kernel says {answer:?}, and the model {model:?}"
        );
        Ok(said)
    }

    fn ask(&mut self, at: usize, words: &str) -> Result<Answer> {
        self.trace.push(format!("{at}: {words}"));
        self.stage.ask(at, words)
    }

    fn actor(&mut self, at: usize) -> Result<&mut Actor> {
        self.actors.get_mut(&at).context("it is gone")
    }

    fn slot(&mut self, at: usize) -> Option<(usize, Slot)> {
        let slots = &self.actors[&at].slots;
        let one = (!slots.is_empty()).then(|| self.rng.usize(..slots.len()))?;
        Some((one, slots[one].clone()))
    }
}
