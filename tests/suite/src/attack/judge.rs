//! The judge: has calls made in batches, and looks after each whether the guarded world is as it was.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tidegate_monitor::Monitor;

use crate::attack::attacker::{Order, Rounds, share};
use crate::attack::calls::{self, Abi, Row};
use crate::attack::given::ATTACKER;
use crate::attack::log::{PENDING, Reader, Told};
use crate::attack::look::{self, Clocks, Look};
use crate::attack::world::{self, World};
use crate::wait;

/// The control group of attackers: by it all of them are ended at once.
pub const GROUP: &str = "/attack";
const GROUP_DIR: &str = "/sys/fs/cgroup/attack";

/// What an attacker says that cannot do its work; at its own level.
const SAID: &str = "/srv/attack/log/said";

/// Calls of a batch.
pub const BATCH: u64 = 512;
/// How long an attacker may take to its first call: a slow machine takes long for a fall.
const BEGINS: Duration = Duration::from_secs(300);
/// How long an attacker may make no call after that.
const STALL: Duration = Duration::from_secs(10);
/// How long what an attack has set going may take to be over.
const SETTLES: Duration = Duration::from_secs(60);
/// How long attackers that are killed may take to be gone.
const ENDS: Duration = Duration::from_secs(120);
/// Findings after which the rest is not asked for.
const ENOUGH: usize = 5;
/// How long calls are looked for that alone make a difference.
const SHRINKS: Duration = Duration::from_secs(180);

/// What is played, and what it came to.
pub struct Judge {
    seed: u64,
    rows: Vec<Row>,
    monitor: Monitor,
    clocks: Clocks,
    world: World,
    before: Look,
    /// Each result that a row came to, by its number.
    states: BTreeSet<(usize, usize)>,
    /// Calls that were made, and those that returned.
    made: u64,
    returned: u64,
    /// Attackers that others' calls ended, or that stood still.
    lost: u64,
    /// Descriptors that attackers gave up to be able to fall, in a batch at most.
    dropped: u64,
}

/// What a batch came to.
struct Batch {
    changes: Vec<String>,
    last: Vec<Told>,
}

impl Judge {
    /// Makes the world.
    ///
    /// # Errors
    /// Tidegate is not in force, or a part of the world cannot be made.
    pub fn new(seed: u64) -> Result<Self> {
        world::install()?;
        let _ = fs::create_dir(GROUP_DIR);
        limit();
        let monitor = Monitor::open()?;
        let clocks = Clocks::read();
        let mut world = World::make(clocks, world::daemon()?)?;
        let before = world.look(&monitor)?;
        let rows = calls::rows()?;
        let (states, made, returned, lost, dropped) = (BTreeSet::new(), 0, 0, 0, 0);
        Ok(Self {
            seed,
            rows,
            monitor,
            clocks,
            world,
            before,
            states,
            made,
            returned,
            lost,
            dropped,
        })
    }

    /// Makes calls from this one on, to the other one if there is one, or else for so long. Whether nothing was found.
    ///
    /// # Errors
    /// The attack cannot be played, or the world not be looked at.
    pub fn play(&mut self, first: u64, end: Option<u64>, time: Duration) -> Result<bool> {
        let begun = Instant::now();
        let (mut batches, mut findings, mut next) = (0, 0, first);
        println!(
            "seed {}: {} system calls, ioctls, netlink protocols and socket families",
            self.seed,
            self.rows.len()
        );
        while end.map_or(begun.elapsed() < time, |end| next < end) && findings < ENOUGH {
            // a batch is root's or a user's
            let round = self.rows.len() as u64;
            let to = end
                .unwrap_or(u64::MAX)
                .min(next + BATCH)
                .min((next / round + 1) * round);
            // said before: a machine that ends here has told how far it came
            println!("calls {next} to {to} as {}", self.who(next));
            std::io::stdout().flush()?;
            let batch = self.batch(next, to)?;
            batches += 1;
            if !batch.changes.is_empty() {
                findings += 1;
                self.tell(next, to, &batch)?;
            }
            next = to;
        }
        let rows: BTreeSet<usize> = self.states.iter().map(|(row, _)| *row).collect();
        println!(
            "{} calls made, {} returned, of {} of {} rows; {} pairs of a row and its result; {} attackers ended early; \
             {} descriptors given up for a fall; {} s",
            self.made,
            self.returned,
            rows.len(),
            self.rows.len(),
            self.states.len(),
            self.lost,
            self.dropped,
            begun.elapsed().as_secs()
        );
        let made = self.made;
        ensure!(
            end.is_some() || self.returned > made / 2,
            "of {made} calls only {} have returned: attackers do not work",
            self.returned
        );
        println!("{} passed, {findings} failed", batches - findings);
        Ok(findings == 0)
    }

    /// Whether calls are root's: each row is called once by root, and then by a user.
    fn is_root(&self, number: u64) -> bool {
        (number / self.rows.len() as u64) & 1 == 0
    }

    fn who(&self, number: u64) -> &'static str {
        if self.is_root(number) {
            "root"
        } else {
            "a user"
        }
    }

    /// Has calls made, and looks at what has changed. Attackers that are left over, or were lost, are ended before that.
    fn batch(&mut self, from: u64, to: u64) -> Result<Batch> {
        self.world.tidy()?;
        let log = Reader::make(from)?;
        let mut changes = Vec::new();
        while log.next()? < to {
            let before = log.next()?;
            let mut attacker = self.spawn(log.next()?, to)?;
            if self.wait(&mut attacker, &log, to)? {
                changes.extend(self.risen(&attacker));
            } else {
                self.lost += 1;
            }
            end_all()?;
            attacker.wait().context("an attacker")?;
            let said = fs::read_to_string(SAID).unwrap_or_default();
            ensure!(
                log.next()? > before,
                "an attacker makes no call: {}",
                said.trim()
            );
        }
        self.made += to - from;
        self.returned += log.returned()?;
        self.dropped = self.dropped.max(log.dropped()?);
        self.states.extend(log.states()?);
        if let Some(call) = log.leak()? {
            changes.push(format!("secret: read by call {call}"));
        }
        let mut after = Look::new();
        // what ends, or is given back, a moment later is no change
        wait::until(SETTLES, || {
            after = self.world.look(&self.monitor)?;
            anyhow::Ok(look::changes(&self.before, &after).is_empty())
        })?;
        changes.extend(look::changes(&self.before, &after));
        Ok(Batch {
            changes,
            last: log.last()?,
        })
    }

    /// Starts an attacker from a call on.
    fn spawn(&self, from: u64, to: u64) -> Result<Child> {
        let root = self.is_root(from);
        let order = Order {
            seed: self.seed,
            end: to,
            root,
            given: self.world.given.clone(),
        };
        let group = OpenOptions::new()
            .write(true)
            .open(format!("{GROUP_DIR}/cgroup.procs"));
        let group = group.context(GROUP_DIR)?;
        let shared = self.world.shared()?;
        let mut command = Command::new(ATTACKER);
        command
            .arg("run")
            .arg(serde_json::to_string(&order)?)
            .env_clear()
            .current_dir("/");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(SAID).context(SAID)?);
        let prepare = move || {
            // SAFETY: a write of a byte from a constant; it may be made between fork and exec.
            if unsafe { libc::write(group.as_raw_fd(), c"0".as_ptr().cast(), 1) } != 1 {
                return Err(std::io::Error::last_os_error());
            }
            share(&shared)
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(prepare) };
        command.spawn().context(ATTACKER)
    }

    /// Waits until an attacker has made all its calls. `false`: it has ended, or stands still.
    fn wait(&self, attacker: &mut Child, log: &Reader, to: u64) -> Result<bool> {
        let mut patience = BEGINS;
        loop {
            let (before, mut ended) = (log.next()?, false);
            let moved = wait::until(patience, || {
                ended = attacker.try_wait()?.is_some();
                let next = log.next()?;
                anyhow::Ok(ended || next != before || next >= to)
            })?;
            if log.next()? >= to && !ended {
                return Ok(self.is_idle(attacker));
            }
            if ended || !moved {
                return Ok(false);
            }
            patience = STALL;
        }
    }

    /// Waits until the last worker is through, and the attacker sleeps; whether it does.
    fn is_idle(&self, attacker: &Child) -> bool {
        let task = format!("/proc/{}", attacker.id());
        wait::until(STALL, || {
            let sleeps = wait::call(&task) == Some(libc::SYS_pause)
                || wait::state(&task).is_none_or(|state| state == 'Z');
            Ok::<_, ()>(sleeps)
        })
        .unwrap_or(false)
    }

    /// An attacker must be at the lowest level to the end.
    fn risen(&self, attacker: &Child) -> Option<String> {
        match self.monitor.subject_of(attacker.id()) {
            Ok(Some(subject)) if subject.level == 0 => None,
            Ok(subject) => Some(format!(
                "attacker: at {:?}",
                subject.map(|subject| subject.level)
            )),
            // it has just been ended
            Err(_) => None,
        }
    }

    /// Makes the world anew, as an attack has changed it.
    fn repair(&mut self) -> Result<()> {
        end_all()?;
        self.world = World::make(self.clocks, world::daemon()?)?;
        self.before = self.world.look(&self.monitor)?;
        Ok(())
    }

    /// Tells of a finding, and of how few calls it is found with.
    fn tell(&mut self, from: u64, to: u64, batch: &Batch) -> Result<()> {
        println!("FAILED  calls {from} to {to} as {}", self.who(from));
        for change in &batch.changes {
            println!("        {}", cut(change));
        }
        let things: BTreeSet<String> = batch
            .changes
            .iter()
            .map(|change| look::changed(change).to_owned())
            .collect();
        let (mut low, mut high, mut last) = (from, to, batch.last.clone());
        let until = Instant::now() + SHRINKS;
        while high - low > 1 && Instant::now() < until {
            let middle = low + (high - low) / 2;
            let mut found = false;
            for (begin, end) in [(low, middle), (middle, high)] {
                self.repair()?;
                let half = self.batch(begin, end)?;
                // processes that were attacked have other numbers now
                let again = half.changes.iter().map(|change| look::changed(change));
                if again.clone().any(|thing| things.contains(thing))
                    || (again.count() > 0 && things.iter().all(|thing| thing.starts_with("victim")))
                {
                    (low, high, last, found) = (begin, end, half.last, true);
                    break;
                }
            }
            if !found {
                break;
            }
        }
        self.repair()?;
        println!(
            "        seen again with calls {low} to {high}: ATTACK_SEED={} ATTACK_CALLS={low}-{high} plays them",
            self.seed
        );
        println!("        the last of them:");
        for told in last
            .iter()
            .skip_while(|told| told.number < low)
            .take_while(|told| told.number < high)
        {
            println!("        {}", self.line(told));
        }
        Ok(())
    }

    /// A call in words.
    fn line(&self, told: &Told) -> String {
        let Some(row) = self.rows.get(told.row) else {
            return format!("{} of an unknown row", told.number);
        };
        let result = match told.result {
            PENDING => "has not returned".to_owned(),
            errno if (-4095..0).contains(&errno) => {
                nix::errno::Errno::from_raw(-errno as i32).to_string()
            }
            value => format!("{value:#x}"),
        };
        let args: Vec<String> = told.args[..row.args.len().min(6)]
            .iter()
            .map(|arg| format!("{arg:#x}"))
            .collect();
        let abi = if row.abi == Abi::I386 { " (i386)" } else { "" };
        format!(
            "{} {}{abi}({}) → {result}",
            told.number,
            row.name,
            args.join(", ")
        )
    }

    /// Which calls these are, without making them.
    pub fn list(seed: u64, from: u64, to: u64) -> Result<()> {
        let rows = calls::rows()?;
        let mut rounds = Rounds::new(seed, rows.len());
        for number in from..to {
            let row = &rows[rounds.row(number)];
            println!("{number} {} ({:?} {})", row.name, row.abi, row.number);
        }
        Ok(())
    }
}

/// At most so much of a line.
fn cut(line: &str) -> String {
    let mut cut: String = line.chars().take(300).collect();
    if cut.len() < line.len() {
        cut += " …";
    }
    cut
}

/// What attackers harm by numbers alone is bounded: it is the machine's own that is to be looked at.
fn limit() {
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+pids +memory");
    let _ = fs::write(format!("{GROUP_DIR}/pids.max"), "200");
    let _ = fs::write(format!("{GROUP_DIR}/memory.max"), "256M");
}

/// Ends all attackers, and waits until they are gone.
fn end_all() -> Result<()> {
    fs::write(format!("{GROUP_DIR}/cgroup.kill"), "1").context("end the attackers")?;
    let gone = wait::until(ENDS, || {
        let events = fs::read_to_string(format!("{GROUP_DIR}/cgroup.events"))?;
        anyhow::Ok(events.lines().any(|line| line == "populated 0"))
    })?;
    ensure!(gone, "attackers do not end");
    Ok(())
}
