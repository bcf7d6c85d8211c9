//! One operation after the other: this kernel and the reference model agree on each verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use tidegate_policy::caps::decide::Layer;
use tidegate_policy::caps::model::{Fd, Pid, Refusal, Revoke, World};
use tidegate_policy::caps::permission::{APPEND, CONNECT, CREATE, LOCK, READ, WRITE};
use tidegate_policy::caps::{Class, Object};

use crate::file::{self, EXPIRES, FILES, NEW, PORTS, ROOT, SOCKETS, SUBJECTS};
use crate::stage::{self, ACTORS, Answer, Stage, remove};

/// Operations of a sequence.
const LENGTH: usize = 70;
/// Seconds that pass at once: more than anything is good for that expires.
const WHILE: u64 = EXPIRES + 1;

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

struct Play {
    rng: Rng,
    stage: Stage,
    world: World,
    actors: BTreeMap<usize, Actor>,
    domains: usize,
    descriptions: usize,
    /// Domains that have handed an open file over.
    sent: BTreeMap<usize, BTreeSet<usize>>,
    /// By open file and domain, whom what it has comes by.
    ancestors: BTreeMap<(usize, usize), BTreeSet<usize>>,
    lines: Vec<u32>,
    /// Sessions, by the kernel's numbers.
    sessions: Vec<u64>,
    /// Subjects that somebody has narrowed itself by, and those that were taken back: none is both. What a process had bound before
    /// it narrowed itself a later layer did not give; in the kernel it does not go with that, in the model it does.
    narrowed: BTreeSet<usize>,
    taken: BTreeSet<usize>,
    has_time: bool,
    since: Instant,
    tally: BTreeMap<&'static str, [u32; 2]>,
    trace: Vec<String>,
}

/// Plays the sequence of a seed: how often each operation was allowed and refused.
pub fn sequence(seed: u64) -> Result<String> {
    let mut rng = Rng::with_seed(seed);
    let (text, caps) = file::draw(&mut rng, &stage::path());
    let mut play = Play {
        stage: Stage::new(&text, &caps.to_bundle())?,
        lines: caps.capabilities.iter().map(|it| it.source.line).collect(),
        world: World::new(vec![caps]),
        actors: BTreeMap::new(),
        domains: 0,
        descriptions: 0,
        sent: BTreeMap::new(),
        ancestors: BTreeMap::new(),
        sessions: Vec::new(),
        narrowed: BTreeSet::new(),
        taken: BTreeSet::new(),
        has_time: text.contains("expires"),
        since: Instant::now(),
        tally: BTreeMap::new(),
        trace: Vec::new(),
        rng,
    };
    let played = play.run();
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

impl Play {
    fn run(&mut self) -> Result<()> {
        for at in 0..3 {
            let subject = self.rng.usize(..SUBJECTS.len()) * usize::from(at > 0);
            self.stage.start(at, Some(SUBJECTS[subject]))?;
            let pid = self.world.start(Layer {
                files: 0,
                subject: subject as u32,
            });
            let domain = self.domain();
            let number = self.stage.number(at)?;
            self.actors.insert(
                at,
                Actor {
                    pid,
                    number,
                    is_deaf: false,
                    domain,
                    slots: Vec::new(),
                    maps: Vec::new(),
                },
            );
        }
        // those of sequences before may not have ended
        let mut sessions = stage::sessions()?;
        self.sessions = sessions.split_off(sessions.len() - self.actors.len());
        for _ in 0..LENGTH {
            let living: Vec<usize> = self.actors.keys().copied().collect();
            if living.is_empty() {
                break;
            }
            let at = living[self.rng.usize(..living.len())];
            match self.rng.u32(..100) {
                0..22 => self.open(at)?,
                22..30 => self.connect(at)?,
                30..64 => self.using(at)?,
                64..74 => self.hand(at)?,
                74..78 => self.narrow(at)?,
                78..83 => self.exec(at)?,
                83..87 => self.fork(at)?,
                87..90 => self.close(at)?,
                90..98 => self.revoke()?,
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

    /// Compares what the kernel and the model say.
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

    /// An actor has a descriptor more.
    fn keep(&mut self, at: usize, slot: Slot) {
        if let Some(actor) = self.actors.get_mut(&at) {
            let owner = actor.domain;
            actor.slots.push(Slot { owner, ..slot });
        }
    }

    fn open(&mut self, at: usize) -> Result<()> {
        let (mode, wanted) = [
            ("r", READ),
            ("w", WRITE),
            ("rw", READ | WRITE),
            ("a", APPEND),
            ("c", WRITE),
        ][self.rng.usize(..5)];
        let name = match mode {
            "c" => NEW[self.rng.usize(..NEW.len())],
            _ => FILES[self.rng.usize(..FILES.len())],
        };
        let object = Object::Path(Class::File, path_of(name).into());
        let pid = self.actors[&at].pid;
        // to create names its object by itself
        let created = match mode {
            "c" => self.world.bind(pid, &object, CREATE).map(drop),
            _ => Ok(()),
        };
        let answer = self.ask(at, &format!("open {} {mode}", path_of(name)))?;
        let model = created.and_then(|()| self.world.bind(pid, &object, wanted));
        if mode == "c" {
            remove(&path_of(name))?;
        }
        self.bound("open", at, answer, model, object, wanted)
    }

    fn connect(&mut self, at: usize) -> Result<()> {
        let (object, words) = if self.rng.bool() {
            let port = PORTS[self.rng.usize(..PORTS.len())];
            (
                Object::Inet(Class::Tcp, [127, 0, 0, 1].into(), port),
                format!("tcp {port}"),
            )
        } else {
            let path = format!("{ROOT}/run/{}", SOCKETS[self.rng.usize(..SOCKETS.len())]);
            (Object::Unix(path.clone().into()), format!("unix {path}"))
        };
        let pid = self.actors[&at].pid;
        let answer = self.ask(at, &words)?;
        let model = self.world.bind(pid, &object, CONNECT | READ | WRITE);
        self.bound("connect", at, answer, model, object, READ | WRITE)
    }

    fn bound(
        &mut self,
        what: &'static str,
        at: usize,
        answer: Answer,
        model: Result<Option<Fd>, Refusal>,
        object: Object,
        mode: u32,
    ) -> Result<()> {
        if self.agree(what, &answer, model.map(drop), false)? {
            self.descriptions += 1;
            let fd = model.ok().flatten().context("nothing is bound")?;
            let slot = Slot {
                fd: answer.unwrap_or_default(),
                model: Some(fd),
                object,
                mode,
                description: self.descriptions,
                owner: 0,
                part: false,
            };
            self.keep(at, slot);
        }
        Ok(())
    }

    fn slot(&mut self, at: usize) -> Option<(usize, Slot)> {
        let slots = &self.actors[&at].slots;
        let one = (!slots.is_empty()).then(|| self.rng.usize(..slots.len()))?;
        Some((one, slots[one].clone()))
    }

    /// What the model says of a use.
    fn access(&mut self, pid: Pid, slot: &Slot, right: u32) -> Result<(), Refusal> {
        self.world
            .access(pid, slot.model.ok_or(Refusal::Descriptor)?, right)
    }

    fn using(&mut self, at: usize) -> Result<()> {
        let Some((_, slot)) = self.slot(at) else {
            return Ok(());
        };
        let is_file = slot.object.class() == Class::File;
        let mut ways = match is_file {
            true => vec![("lock", "", LOCK)],
            false => vec![
                ("send", "", WRITE),
                ("recv", "", READ),
                ("splice", "", READ),
            ],
        };
        if is_file && slot.mode & READ != 0 {
            ways.extend([("read", "", READ), ("map", " r", READ)]);
        }
        if is_file && slot.mode & (WRITE | APPEND) != 0 {
            ways.push(("write", "", slot.mode & (WRITE | APPEND)));
        }
        if is_file && slot.mode == READ | WRITE {
            ways.push(("map", " rw", READ | WRITE));
        }
        let (what, how, right) = ways[self.rng.usize(..ways.len())];
        let pid = self.actors[&at].pid;
        let answer = self.ask(at, &format!("{what} {}{how}", slot.fd))?;
        let model = self.access(pid, &slot, right);
        let said = self.agree(what, &answer, model, slot.part)?;
        if said && what == "map" {
            let actor = self.actors.get_mut(&at).context("it is gone")?;
            actor.maps.extend(slot.model.map(|fd| (fd, right)));
        }
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<()> {
        let Some((one, slot)) = self.slot(at) else {
            return Ok(());
        };
        // the model keeps it, as mappings do
        self.ask(at, &format!("close {}", slot.fd))?.ok();
        self.actors
            .get_mut(&at)
            .context("it is gone")?
            .slots
            .remove(one);
        Ok(())
    }

    fn hand(&mut self, at: usize) -> Result<()> {
        let Some((_, slot)) = self.slot(at) else {
            return Ok(());
        };
        let others = self
            .actors
            .iter()
            .filter(|&(&to, other)| to != at && !other.is_deaf);
        let others: Vec<usize> = others.map(|(&to, _)| to).collect();
        let Some(model) = slot.model.filter(|_| !others.is_empty()) else {
            return Ok(());
        };
        let to = others[self.rng.usize(..others.len())];
        let (from, receiver) = (self.actors[&at].pid, self.actors[&to].clone());
        let key = |domain| (slot.description, domain);
        let known =
            |domain: usize| domain == slot.owner || self.ancestors.contains_key(&key(domain));
        // what comes back, or comes twice, is what the domain had of it anyway; and of whom else it is, the kernel has to guess where
        // others have handed it over, too
        let mut sent = self
            .sent
            .get(&slot.description)
            .cloned()
            .unwrap_or_default();
        sent.insert(slot.owner);
        let mut chain = self
            .ancestors
            .get(&key(slot.owner))
            .cloned()
            .unwrap_or_default();
        chain.insert(slot.owner);
        if known(receiver.domain) || self.opener(&slot, receiver.domain) || sent != chain {
            return Ok(());
        }
        let (inbox, outside) = self.stage.inbox(to);
        let given = self.ask(at, &format!("give {outside} {}", slot.fd))?;
        if given == Err(libc::EACCES) && self.tally.contains_key("revoke") {
            // it may have no socket any more
            return Ok(());
        }
        given.map_err(|errno| anyhow::anyhow!("give: errno {errno}"))?;
        self.sent.insert(slot.description, sent);
        self.ancestors.insert(key(receiver.domain), chain);
        let answer = self.ask(to, &format!("take {inbox}"))?;
        let received = self.world.pass(from, model, receiver.pid);
        let is_deaf = answer == Err(libc::EACCES);
        if is_deaf {
            self.actors.get_mut(&to).context("it is gone")?.is_deaf = true;
        }
        let answer = match answer.as_deref() {
            Ok("none") => Err(libc::EACCES),
            _ => answer,
        };
        if self.agree("take", &answer, received.map(drop), slot.part || is_deaf)? {
            let fd = received.ok().context("nothing was received")?;
            let has = |right| {
                slot.mode & right == 0 || self.world.clone().access(receiver.pid, fd, right).is_ok()
            };
            let part = slot.part || !has(READ) || !has(WRITE) || !has(APPEND);
            let received = Slot {
                fd: answer.unwrap_or_default(),
                model: Some(fd),
                part,
                ..slot
            };
            self.keep(to, received);
        }
        Ok(())
    }

    /// Has a domain opened this itself?
    fn opener(&self, slot: &Slot, domain: usize) -> bool {
        let all = self.actors.values().flat_map(|actor| &actor.slots);
        all.into_iter()
            .any(|other| other.description == slot.description && other.owner == domain)
    }

    fn narrow(&mut self, at: usize) -> Result<()> {
        let subject = self.rng.usize(..SUBJECTS.len());
        if self.taken.contains(&subject) {
            return Ok(());
        }
        let layer = Layer {
            files: 0,
            subject: subject as u32,
        };
        let pid = self.actors[&at].pid;
        let bundle = self.stage.bundle;
        let answer = self.ask(at, &format!("narrow {} {bundle}", SUBJECTS[subject]))?;
        if self.agree("narrow", &answer, Ok(()), self.is_all_taken(pid))? {
            let had = self.world.layers(pid).contains(&layer);
            self.narrowed.insert(subject);
            self.world.narrow(pid, layer).ok();
            let domain = if had {
                self.actors[&at].domain
            } else {
                self.domain()
            };
            self.actors.get_mut(&at).context("it is gone")?.domain = domain;
        }
        Ok(())
    }

    /// Was all taken from its session? Then it has no socket, either.
    fn is_all_taken(&self, pid: Pid) -> bool {
        let mut world = self.world.clone();
        let object = Object::Path(Class::Program, format!("{ROOT}/bin/same").into());
        world
            .bind(pid, &object, tidegate_policy::caps::permission::EXECUTE)
            .is_err()
    }

    fn exec(&mut self, at: usize) -> Result<()> {
        let program = format!(
            "{ROOT}/bin/{}",
            ["tool", "plug", "same"][self.rng.usize(..3)]
        );
        let pid = self.actors[&at].pid;
        let before = self.world.layers(pid).clone();
        let answer = self.ask(at, &format!("exec {program}"))?;
        let model = self.world.exec(pid, program.as_bytes());
        let said = self.agree("exec", &answer, model, false)?;
        let actor = self.actors.get_mut(&at).context("it is gone")?;
        if said {
            actor.maps.clear();
        }
        if said && *self.world.layers(pid) != before {
            self.domains += 1;
            actor.domain = self.domains;
            let left = self.world.descriptors(pid);
            for slot in &mut actor.slots {
                let mut chain = self
                    .ancestors
                    .get(&(slot.description, slot.owner))
                    .cloned()
                    .unwrap_or_default();
                chain.insert(slot.owner);
                self.ancestors
                    .insert((slot.description, self.domains), chain);
                slot.owner = self.domains;
                slot.model = slot.model.filter(|fd| left.contains(fd));
                let has = |right| {
                    slot.mode & right == 0
                        || slot
                            .model
                            .is_some_and(|fd| self.world.clone().access(pid, fd, right).is_ok())
                };
                slot.part |= !has(READ) || !has(WRITE) || !has(APPEND);
            }
        }
        Ok(())
    }

    fn fork(&mut self, at: usize) -> Result<()> {
        let used: BTreeSet<usize> = self.actors.keys().copied().collect();
        // a channel serves one actor only
        let next = self
            .trace
            .iter()
            .filter(|line| line.contains(": fork "))
            .count()
            + 3;
        if next >= ACTORS || used.contains(&next) {
            return Ok(());
        }
        let (input, output) = self.stage.ends(next);
        self.ask(at, &format!("fork {input} {output}"))?
            .map_err(|errno| anyhow::anyhow!("fork: errno {errno}"))?;
        ensure!(
            self.stage.answer(next)? == "ok ",
            "the child says something else"
        );
        let pid = self.world.fork(self.actors[&at].pid);
        let number = self.stage.number(next)?;
        let child = Actor {
            pid,
            number,
            is_deaf: false,
            ..self.actors[&at].clone()
        };
        self.actors.insert(next, child);
        Ok(())
    }

    fn revoke(&mut self) -> Result<()> {
        let living: Vec<Pid> = self.actors.values().map(|actor| actor.pid).collect();
        let (what, words) = match self.rng.u32(..8) {
            0 => {
                let session = self
                    .world
                    .session(living[self.rng.usize(..living.len())])
                    .context("a session")?;
                (
                    Revoke::Session(session),
                    ["--caps-session".into(), self.sessions[session].to_string()],
                )
            }
            1 => {
                let subject = self.rng.usize(..SUBJECTS.len());
                let layer = Layer {
                    files: 0,
                    subject: subject as u32,
                };
                if self.narrowed.contains(&subject) {
                    return Ok(());
                }
                self.taken.insert(subject);
                (
                    Revoke::Subject(layer),
                    [
                        "--subject".into(),
                        format!("random.caps:{}", SUBJECTS[subject]),
                    ],
                )
            }
            2..5 => {
                let at = self.rng.usize(..self.lines.len());
                (
                    Revoke::Capability(0, at as u32),
                    [
                        "--capability".into(),
                        format!("random.caps:{}", self.lines[at]),
                    ],
                )
            }
            5 => {
                let port = PORTS[self.rng.usize(..PORTS.len())];
                let object = Object::Inet(Class::Tcp, [127, 0, 0, 1].into(), port);
                (
                    Revoke::Object(None, object),
                    ["--object".into(), format!("tcp:127.0.0.1:{port}")],
                )
            }
            6 => {
                let path = format!("{ROOT}/run/{}", SOCKETS[self.rng.usize(..SOCKETS.len())]);
                (
                    Revoke::Object(None, Object::Unix(path.clone().into())),
                    ["--object".into(), format!("unix:{path}")],
                )
            }
            _ => {
                let path = path_of(FILES[self.rng.usize(..FILES.len())]);
                (
                    Revoke::Object(None, Object::Path(Class::File, path.clone().into())),
                    ["--object".into(), format!("file:{path}")],
                )
            }
        };
        self.trace.push(format!("revoke {}", words.join(" ")));
        let killed = stage::revoke(&words)?;
        self.trace.push(format!("  killed {killed:?}"));
        self.world.revoke(&what);
        let tally = self.tally.entry("revoke").or_default();
        *tally = [tally[0] + 1, tally[1] + killed.len() as u32];
        // the program itself is mapped, but not bound; what was mapped by a descriptor goes
        let dead = self
            .actors
            .iter()
            .filter(|(_, actor)| killed.contains(&actor.number));
        let dead: Vec<usize> = dead.map(|(&at, _)| at).collect();
        for (&at, actor) in &self.actors {
            let lost = |&(fd, right): &(Fd, u32)| {
                self.world.clone().access(actor.pid, fd, right) == Err(Refusal::Revoked)
            };
            ensure!(
                !actor.maps.iter().any(lost) || dead.contains(&at),
                "{at} has mapped what was taken back, and lives"
            );
            ensure!(
                !actor.maps.is_empty() || !dead.contains(&at),
                "{at} was killed, and has mapped nothing"
            );
        }
        self.actors.retain(|at, _| !dead.contains(at));
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        std::thread::sleep(Duration::from_secs(WHILE));
        self.world.pass_time(WHILE);
        self.since = Instant::now();
        self.trace.push("time passes".into());
        Ok(())
    }
}
