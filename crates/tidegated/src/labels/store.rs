//! `/var/lib/tidegate/given` (`format.rs`): the levels that no path rule gives back, and the contexts
//! that the `te` model gave, over a reboot, and over the time that a disk is away.
//!
//! What was given since it was last written is lost when the machine goes down of a
//! sudden: no `clean` stands beside it then, and what has changed since where lower
//! objects may be is taken for the lowest (`crash_recovery.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tidegate_bundle::Policy;
use tidegate_monitor::{Given, Guard, Labelled, Monitor, boot_id};
use tidegate_protocol::Code;

use crate::error::{DaemonError, Outcome};
use crate::instance::{directory, remove_whole, write_whole};
use crate::labels::filesystem::{self, Filesystem, Mounts};
use crate::labels::format::{Away, Labels, Saved, Table, UNMOUNTED, entries, label, lower};
use crate::locks::{DISKS, Held, MOUNTS, Ordered};
use crate::policy_history::Policies;
use crate::{labels::crash_recovery, paths};

/// What is known of filesystems beside the monitor's table.
#[derive(Debug, Default)]
pub struct Disks {
    /// Locked while the table is written down, or an older one could come last.
    known: Ordered<DISKS, Known>,
    mounts: Ordered<MOUNTS, Mounts>,
}

/// See [`Disks`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Known {
    /// What a device of this boot is called, mounted or not: its levels are in the table.
    here: BTreeMap<u32, String>,
    /// What has not been mounted in this boot.
    away: BTreeMap<String, Away>,
    /// The file's time; `None` while there is no file.
    at: Option<i64>,
}

/// What is to be done as disks are mounted.
#[derive(Debug, Default)]
struct Arrival {
    table: Table,
    since: BTreeMap<u32, i64>,
    /// Of another disk that had the number before.
    gone: Vec<Given>,
    labels: Labels,
    labels_gone: Vec<Labelled>,
}

impl Disks {
    /// What the file says in the boot that it was written in, for the daemon that takes over. Where
    /// it was not, as the disk was full, all of it is to be put into the table once more.
    pub fn read(monitor: &Monitor, policies: &Policies) -> Outcome<Disks> {
        let Some(saved) = read()? else {
            return Ok(Disks::default());
        };
        let mut known = Known {
            at: Some(saved.at),
            ..Known::default()
        };
        if saved.boot == boot_id()? {
            known.here = named(&saved);
            known.away = saved.away;
        } else {
            let policy = policies.in_force(monitor)?;
            known.away = saved.sort("", &policy.levels, &[], true).away;
        }
        Ok(Disks::new(known))
    }

    /// Whether the clock is behind the file's time. What changes now would seem to have changed
    /// before that, so until it is written anew nothing may be told by that time.
    ///
    /// # Errors
    /// The mark that says that it may cannot be taken away.
    pub fn clock_is_behind(&self) -> Outcome<bool> {
        let behind = self.lock().is_behind(now());
        if behind && Path::new(paths::STEADY).exists() {
            remove_whole(paths::STEADY)?;
        }
        Ok(behind)
    }

    fn new(known: Known) -> Disks {
        Disks {
            known: Ordered::new(known),
            ..Disks::default()
        }
    }

    fn lock(&self) -> Held<'_, Known> {
        self.known.lock()
    }

    fn mounted(&self) -> Outcome<Arc<Vec<Filesystem>>> {
        let mut mounts = self.mounts.lock();
        mounts.now()
    }
}

/// The devices of a file, and what they are called.
fn named(saved: &Saved) -> BTreeMap<u32, String> {
    let named = saved.filesystems.iter();
    named
        .filter(|(_, (identity, _))| identity != UNMOUNTED)
        .map(|(dev, (identity, _))| (*dev, identity.clone()))
        .collect()
}

/// Whether an identity is a disk's own, and not where it was plugged in.
fn is_own(identity: &str) -> bool {
    identity.starts_with("uuid=")
}

/// The wall clock, in seconds.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl Known {
    fn is_behind(&self, now: i64) -> bool {
        self.at.is_some_and(|at| now < at)
    }

    /// Whether a disk is mounted that was not, or was not known as what it is.
    fn is_new(&self, fs: &Filesystem) -> bool {
        fs.on_disk()
            && match self.here.get(&fs.dev) {
                None => true,
                // one that does not tell just now is the one it was
                Some(known) => *known != fs.identity && is_own(&fs.identity),
            }
    }

    /// What a device is called.
    fn called(&self, dev: u32, mounted: &[Filesystem]) -> String {
        let now = mounted.iter().find(|f| f.dev == dev);
        let known = self.here.get(&dev);
        match (now, known) {
            (Some(fs), Some(known)) if !fs.memory && is_own(known) => known.clone(),
            (Some(fs), _) => fs.identity.clone(),
            (None, known) => known.cloned().unwrap_or_else(|| UNMOUNTED.into()),
        }
    }

    /// Disks have been mounted: what is known of them, by their names, goes into the table, be
    /// it that they were away or had other numbers.
    fn meet(
        &mut self,
        new: &[&Filesystem],
        mounted: &[Filesystem],
        given: &[Given],
        labelled: &[Labelled],
    ) -> Arrival {
        let mut out = Arrival::default();
        let mut left: BTreeSet<u32> = BTreeSet::new();
        for fs in new {
            if let Some(other) = self.here.get(&fs.dev).filter(|other| is_own(other)) {
                let of = given.iter().filter(|g| g.dev == fs.dev).copied();
                let labels = labelled.iter().filter(|l| l.dev == fs.dev).cloned();
                let away = self.away.entry(other.clone()).or_default();
                away.add(None, of.clone());
                away.add_labelled(labels.clone());
                out.gone.extend(of);
                out.labels_gone.extend(labels);
            }
            self.here.remove(&fs.dev);
        }
        for fs in new {
            let same = self.here.iter().filter(|(_, name)| **name == fs.identity);
            let same: BTreeSet<u32> = same.map(|(dev, _)| *dev).collect();
            let mut known = Away::default();
            known.add(
                None,
                given.iter().filter(|g| same.contains(&g.dev)).copied(),
            );
            known.add_labelled(labelled.iter().filter(|l| same.contains(&l.dev)).cloned());
            if let Some(away) = self.away.get(&fs.identity) {
                known.add(away.since, away.given.iter().copied());
                known.add_labelled(away.labelled.iter().cloned());
            }
            for l in known.labelled {
                label(&mut out.labels, Labelled { dev: fs.dev, ..l });
            }
            for g in known.given {
                lower(&mut out.table, Given { dev: fs.dev, ..g });
            }
            out.since.extend(known.since.map(|since| (fs.dev, since)));
            // it has another number now: under that one it would be found as it was
            let is_left = |dev: &u32| same.contains(dev) && mounted.iter().all(|f| f.dev != *dev);
            out.gone
                .extend(given.iter().filter(|g| is_left(&g.dev)).copied());
            let old = labelled.iter().filter(|l| is_left(&l.dev));
            out.labels_gone.extend(old.cloned());
            left.extend(same.iter().filter(|dev| is_left(dev)));
        }
        self.here.retain(|dev, _| !left.contains(dev));
        for fs in new {
            self.here.insert(fs.dev, fs.identity.clone());
            self.away.remove(&fs.identity);
        }
        // what is there already may have fallen further
        for g in given.iter().filter(|g| !out.gone.contains(g)) {
            if out.table.contains_key(&(g.dev, g.ino, g.generation)) {
                lower(&mut out.table, *g);
            }
        }
        // and has the label that it was given last
        for l in labelled.iter().filter(|l| !out.labels_gone.contains(l)) {
            out.labels.remove(&(l.dev, l.ino, l.generation));
        }
        out
    }
}

/// Writes the table down.
pub fn save(monitor: &Monitor, policies: &Policies, disks: &Disks) -> Outcome {
    write(&mut disks.lock(), &disks.mounted()?, monitor, policies)
}

fn write(
    known: &mut Known,
    mounted: &[Filesystem],
    monitor: &Monitor,
    policies: &Policies,
) -> Outcome {
    let policy = policies.in_force(monitor)?;
    let mut saved = Saved {
        boot: boot_id()?,
        at: now(),
        levels: policy.levels.clone(),
        filesystems: BTreeMap::new(),
        labelled: BTreeMap::new(),
        away: known.away.clone(),
    };
    let mut given = monitor.given()?;
    given.sort_unstable();
    let mut labelled = monitor.labelled()?;
    labelled.sort_unstable();
    // a disk that has no levels yet is suspect all the same, should it be away after a crash
    let disks = mounted.iter().filter(|f| f.on_disk()).map(|f| f.dev);
    let devs = disks.chain(known.here.keys().copied());
    let devs = devs.chain(labelled.iter().map(|l| l.dev));
    for dev in devs.chain(given.iter().map(|g| g.dev)) {
        let called = || (known.called(dev, mounted), Vec::new());
        saved.filesystems.entry(dev).or_insert_with(called);
    }
    for g in given {
        if let Some((_, of)) = saved.filesystems.get_mut(&g.dev) {
            of.push(g);
        }
    }
    for l in labelled {
        saved.labelled.entry(l.dev).or_default().push(l);
    }
    directory(paths::STATE, 0o700)?;
    write_whole(paths::GIVEN, saved.to_text().as_bytes(), 0o600)?;
    known.at = Some(saved.at);
    if !Path::new(paths::STEADY).exists() {
        write_whole(paths::STEADY, b"", 0o600)?;
    }
    Ok(())
}

/// Writes it for the last time: from here on nothing is given, until [`reopen`]. What outlives
/// the daemon is refused what would need it.
///
/// # Errors
/// Then levels are given as before.
pub fn save_clean(monitor: &Monitor, policies: &Policies, disks: &Disks) -> Outcome {
    // first: nothing may be given for as long as a disk that has come is searched
    let mut known = disks.lock();
    monitor.close_given(true);
    let written = last(
        || {
            thread::sleep(UNDER_WAY);
            let (mut given, mut labelled) = (monitor.given()?, monitor.labelled()?);
            given.sort_unstable();
            labelled.sort_unstable();
            Ok((given, labelled))
        },
        || write(&mut known, &disks.mounted()?, monitor, policies),
    );
    written
        .and_then(|()| write_whole(paths::CLEAN, b"", 0o600))
        .inspect_err(|_| monitor.close_given(false))
}

/// Creations that had begun when no more levels were to be given are over by then.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// Saves until nothing has come to the table meanwhile.
fn last<T: PartialEq>(
    given: impl Fn() -> Outcome<T>,
    mut save: impl FnMut() -> Outcome,
) -> Outcome {
    const TRIES: usize = 5;
    let mut before = given()?;
    for _ in 0..TRIES {
        save()?;
        let after = given()?;
        if before == after {
            return Ok(());
        }
        before = after;
    }
    Err(DaemonError::new(
        Code::Internal,
        "levels go on being given: what changes now is suspect at the next start",
    ))
}

/// Has levels given again that were written down for the last time: that end did not come.
///
/// # Errors
/// As long as what was written down counts as all there is, none may be given.
pub fn reopen(monitor: &Monitor) -> Outcome {
    unclean()?;
    monitor.close_given(false);
    Ok(())
}

/// From here on a machine that goes down has not ended cleanly; whether it had.
fn unclean() -> Outcome<bool> {
    let clean = Path::new(paths::CLEAN).exists();
    if clean {
        // this needs no room, where writing would
        remove_whole(paths::CLEAN)?;
    }
    Ok(clean)
}

/// What the file says; `None` if there is none.
fn read() -> Outcome<Option<Saved>> {
    let path = paths::GIVEN;
    if !Path::new(path).exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(|e| DaemonError::io(format!("read {path}"), e))?;
    let saved = Saved::from_text(&text).ok_or_else(|| {
        DaemonError::new(
            Code::Internal,
            format!(
                "{path} is damaged, and without it what low subjects made could rise; \
                 restore it, or remove it to start all the same, with the lowest level \
                 for all that is in `creator` areas"
            ),
        )
    })?;
    Ok(Some(saved))
}

/// What a start begins with.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The table.
    pub given: Vec<Given>,
    /// The contexts.
    pub labelled: Vec<Labelled>,
    /// All contexts that are known, those of disks that are away among them.
    pub contexts: BTreeSet<String>,
    /// What is known besides.
    pub disks: Disks,
    /// What was found, in words.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Levels that will be in their table, or labels in theirs if they are more; with those of disks that are away.
    pub fn count(&self) -> usize {
        let known = self.disks.lock();
        let away = |count: fn(&Away) -> usize| known.away.values().map(count).sum::<usize>();
        let levels = self.given.len() + away(|a| a.given.len());
        let labels = self.labelled.len() + away(|a| a.labelled.len());
        levels.max(labels)
    }
}

/// Reads it back, if it is there, for a policy that is about to be put in force. From here on a
/// machine that goes down has not ended cleanly.
///
/// # Errors
/// A damaged file: without it objects would rise to their rules' levels.
pub fn load(policy: &Policy) -> Outcome<Loaded> {
    let saved = read()?;
    let clean = unclean()?;
    let (at, saved) = match saved {
        Some(mut saved) => {
            let at = saved.at;
            if !Path::new(paths::STEADY).exists() {
                saved.at = i64::MIN;
            }
            (Some(at), saved)
        }
        // for the first time, or after an end with nothing to tell
        None if clean || !Path::new(paths::LAST).exists() => return Ok(Loaded::default()),
        // it could never be written, or has been removed
        None => {
            let nothing = Saved {
                at: i64::MIN,
                ..Saved::default()
            };
            (None, nothing)
        }
    };
    let (boot, mounted) = (boot_id()?, filesystem::mounted()?);
    let same = saved.boot == boot;
    let here = if same {
        named(&saved)
    } else {
        let disks = mounted.iter().filter(|f| f.on_disk());
        disks.map(|f| (f.dev, f.identity.clone())).collect()
    };
    let contexts = saved.contexts().map(str::to_owned).collect();
    let sorted = saved.sort(&boot, &policy.levels, &mounted, !clean && !same);
    let mut table = sorted.table;
    let warnings = crash_recovery::add(policy, &mounted, &sorted.since, &mut table, &|| ());
    let away = sorted.away;
    Ok(Loaded {
        given: entries(table),
        labelled: sorted.labels.into_values().collect(),
        contexts,
        disks: Disks::new(Known { here, away, at }),
        warnings,
    })
}

/// Gives disks that have been mounted what is known of them; `None` if there are no new ones,
/// else what to tell. What is remembered of their objects does not count afterwards. `alive` is called again and again
/// meanwhile, as a disk may take long.
///
/// # Errors
/// Without room in the table, for one: then they are new the next time, too.
pub fn arrive(
    monitor: &Monitor,
    policies: &Policies,
    disks: &Disks,
    guard: &Guard,
    alive: &dyn Fn(),
) -> Outcome<Option<Vec<String>>> {
    let mounted = disks.mounted()?;
    let mut known = disks.lock();
    let new: Vec<_> = mounted.iter().filter(|f| known.is_new(f)).collect();
    if new.is_empty() {
        return Ok(None);
    }
    let policy = policies.in_force(monitor)?;
    let mut next = known.clone();
    let Arrival {
        mut table,
        since,
        mut gone,
        labels,
        mut labels_gone,
    } = next.meet(&new, &mounted, &monitor.given()?, &monitor.labelled()?);
    let restore = |table: &Table| -> Outcome {
        if !table.is_empty() {
            // what was open for writing may be above its holder then
            let _raising = guard.raise(monitor)?;
            monitor.restore_given(&entries(table.clone()))?;
            policies.renew(monitor, guard)?.complain();
        }
        Ok(())
    };
    // what is known does not wait for what has to be searched for
    restore(&table)?;
    if !labels.is_empty() {
        monitor.restore_labelled(&labels.values().cloned().collect::<Vec<_>>())?;
        policies.renew(monitor, guard)?.complain();
    }
    labels_gone.retain(|l| !labels.contains_key(&(l.dev, l.ino, l.generation)));
    monitor.forget_labelled(&labels_gone)?;
    gone.retain(|g| !table.contains_key(&(g.dev, g.ino, g.generation)));
    monitor.forget_given(&gone)?;
    let warnings = crash_recovery::add(&policy, &mounted, &since, &mut table, alive);
    if !since.is_empty() {
        restore(&table)?;
    }
    *known = next;
    Ok(Some(warnings))
}

/// Forgets what is surely gone and was not seen to go: inodes that ext4 says are others now.
pub fn prune(monitor: &Monitor, disks: &Disks) -> Outcome {
    let given = monitor.given()?;
    let devs: BTreeSet<u32> = given.iter().map(|g| g.dev).collect();
    let mounted = disks.mounted()?;
    for dev in devs {
        let Some(fs) = mounted.iter().find(|f| f.dev == dev) else {
            continue;
        };
        let gone: Vec<Given> = given
            .iter()
            .filter(|g| g.dev == dev && fs.is_gone(g))
            .copied()
            .collect();
        monitor.forget_given(&gone)?;
    }
    let is_gone = |l: &Labelled| {
        let inode = Given {
            dev: l.dev,
            ino: l.ino,
            generation: l.generation,
            level: 0,
        };
        let fs = mounted.iter().find(|fs| fs.dev == l.dev);
        fs.is_some_and(|fs| fs.is_gone(&inode))
    };
    let gone: Vec<Labelled> = monitor.labelled()?.into_iter().filter(is_gone).collect();
    monitor.forget_labelled(&gone)?;
    Ok(())
}

#[cfg(test)]
mod tests;
