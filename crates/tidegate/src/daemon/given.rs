//! `/var/lib/tidegate/given`: the levels that no path rule gives back, over a
//! reboot. A line each, under the filesystem they are on, and a checksum.
//!
//! What was given since it was last written is lost when the machine goes down of a
//! sudden: no `clean` stands beside it then, and what has changed since where lower
//! objects may be is taken for the lowest (`suspects.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use tidegate_monitor::{Given, Monitor, boot_id};
use tidegate_policy::Policy;

use super::Policies;
use super::filesystem::{self, Filesystem};
use super::instance::{directory, remove_whole, write_whole};
use super::suspects;
use crate::exit::{Code, Failure, Outcome};
use crate::places;

/// The file's first line.
const MAGIC: &str = "tidegate-given 2";

/// What a filesystem is called that was gone before anybody asked.
const UNMOUNTED: &str = "unmounted";

/// From here on a number stands for no device: the filesystem was not mounted when
/// the file was written, and is known by its identity alone.
const ABSENT: u32 = 0xfff0_0000;

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Saved {
    boot: String,
    /// When the levels were these, in seconds of the wall clock.
    at: i64,
    levels: Vec<String>,
    /// By device number of that boot: the identity, and the objects.
    filesystems: BTreeMap<u32, (String, Vec<Given>)>,
}

impl Saved {
    fn to_text(&self) -> String {
        let mut text = format!(
            "{MAGIC}\nboot {}\nat {}\nlevels {}\n",
            self.boot,
            self.at,
            self.levels.join(" ")
        );
        for (dev, (identity, given)) in &self.filesystems {
            text += &format!("filesystem {dev} {identity}\n");
            for g in given {
                text += &format!("{} {} {}\n", g.ino, g.generation, g.level);
            }
        }
        let sum = checksum(&text);
        text + &sum + "\n"
    }

    /// `None` if it is not what `to_text` wrote.
    fn from_text(text: &str) -> Option<Saved> {
        let (body, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = format!("{body}\n");
        if checksum(&body) != sum {
            return None;
        }
        let mut saved = Saved::default();
        let mut lines = body.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        saved.boot = lines.next()?.strip_prefix("boot ")?.into();
        saved.at = lines.next()?.strip_prefix("at ")?.parse().ok()?;
        let levels = lines.next()?.strip_prefix("levels ")?;
        saved.levels = levels.split(' ').map(Into::into).collect();
        let mut dev = None;
        for line in lines {
            if let Some(rest) = line.strip_prefix("filesystem ") {
                let (number, identity) = rest.split_once(' ')?;
                let number = number.parse().ok()?;
                saved
                    .filesystems
                    .insert(number, (identity.into(), Vec::new()));
                dev = Some(number);
                continue;
            }
            let mut words = line.split(' ');
            let given = Given {
                dev: dev?,
                ino: words.next()?.parse().ok()?,
                generation: words.next()?.parse().ok()?,
                level: words.next()?.parse().ok()?,
            };
            saved.filesystems.get_mut(&given.dev)?.1.push(given);
        }
        Some(saved)
    }

    /// A level of this file's as a policy numbers it; one that is no more is the lowest.
    fn level_in(&self, levels: &[String], level: u8) -> u8 {
        let name = self.levels.get(usize::from(level));
        let at = name.and_then(|name| levels.iter().position(|l| l == name));
        at.unwrap_or(0) as u8
    }

    /// Takes over what an earlier file says of filesystems that are not mounted now.
    fn carry(&mut self, before: &Saved, mounted: &[Filesystem]) {
        for (identity, given) in before.filesystems.values() {
            let here = mounted.iter().any(|f| f.identity == *identity)
                || self.filesystems.values().any(|(i, _)| i == identity);
            if here || identity == UNMOUNTED || filesystem::is_memory(identity) {
                continue;
            }
            let dev = (ABSENT..).find(|dev| !self.filesystems.contains_key(dev));
            let given = given.iter().map(|g| Given {
                level: before.level_in(&self.levels, g.level),
                ..*g
            });
            if let Some(dev) = dev {
                self.filesystems
                    .insert(dev, (identity.clone(), given.collect()));
            }
        }
    }

    /// The entries under this boot's device numbers and this policy's levels. A
    /// level that is no more is the lowest; what was in memory is gone. Of filesystems that
    /// are called the same, as a disk and its copy are, nobody can tell which one it was: the
    /// entries hold for each, the lowest of two.
    fn translate(self, boot: &str, levels: &[String], mounted: &[Filesystem]) -> Vec<Given> {
        let same_boot = self.boot == boot;
        let mut devs: HashMap<&str, Vec<u32>> = HashMap::new();
        for f in mounted.iter().filter(|f| !f.memory) {
            devs.entry(&f.identity).or_default().push(f.dev);
        }
        let mut out = BTreeMap::new();
        for (old, (identity, given)) in &self.filesystems {
            let own = [*old];
            let devs = if same_boot && *old < ABSENT {
                &own[..]
            } else {
                devs.get(identity.as_str()).map_or(&[][..], Vec::as_slice)
            };
            for (dev, g) in devs
                .iter()
                .flat_map(|dev| given.iter().map(move |g| (*dev, g)))
            {
                let level = self.level_in(levels, g.level);
                let lowest = out.entry((dev, g.ino, g.generation)).or_insert(level);
                *lowest = level.min(*lowest);
            }
        }
        let given = out.into_iter();
        given
            .map(|((dev, ino, generation), level)| Given {
                dev,
                ino,
                generation,
                level,
            })
            .collect()
    }
}

fn checksum(text: &str) -> String {
    format!("blake3 {}", blake3::hash(text.as_bytes()).to_hex())
}

/// Writes the table down; one at a time, or an older one could come last.
pub fn save(monitor: &Monitor, policies: &Policies) -> Outcome {
    static SAVING: Mutex<()> = Mutex::new(());
    let _one = SAVING.lock().unwrap_or_else(|e| e.into_inner());
    let Some(policy) = policies.get(monitor.status()?.seqno) else {
        return Ok(());
    };
    let mounted = filesystem::mounted()?;
    let identities: HashMap<u32, &str> = mounted
        .iter()
        .map(|f| (f.dev, f.identity.as_str()))
        .collect();
    let before = fs::read_to_string(places::GIVEN)
        .ok()
        .and_then(|text| Saved::from_text(&text))
        .unwrap_or_default();
    let mut saved = Saved {
        boot: boot_id()?,
        at: jiff::Timestamp::now().as_second(),
        levels: policy.levels.clone(),
        filesystems: BTreeMap::new(),
    };
    for given in monitor.given()? {
        // what is not mounted now is known by what it was called before
        let called = || {
            let (identity, _) = before.filesystems.get(&given.dev)?;
            (before.boot == saved.boot).then_some(identity.as_str())
        };
        let identity = identities.get(&given.dev).copied();
        let identity = identity.or_else(called).unwrap_or(UNMOUNTED).to_owned();
        let entry = saved
            .filesystems
            .entry(given.dev)
            .or_insert_with(|| (identity, vec![]));
        entry.1.push(given);
    }
    saved.carry(&before, &mounted);
    for (_, given) in saved.filesystems.values_mut() {
        given.sort_unstable();
    }
    directory(places::STATE, 0o700)?;
    write_whole(places::GIVEN, saved.to_text().as_bytes(), 0o600)
}

/// Writes it for the last time: from here on nothing is given.
pub fn save_clean(monitor: &Monitor, policies: &Policies) -> Outcome {
    save(monitor, policies)?;
    write_whole(places::CLEAN, b"", 0o600)
}

/// Reads it back, if it is there, for a policy that is about to be put in force; what was
/// found beside, in words. From here on a machine that goes down has not ended cleanly.
///
/// # Errors
/// A damaged file: without it objects would rise to their rules' levels.
pub fn load(policy: &Policy) -> Outcome<(Vec<Given>, Vec<String>)> {
    let clean = Path::new(places::CLEAN).exists();
    if clean {
        // this needs no room, where writing would
        remove_whole(places::CLEAN)?;
    }
    if !Path::new(places::GIVEN).exists() {
        return Ok(Default::default());
    }
    let text = fs::read_to_string(places::GIVEN)
        .map_err(|e| Failure::io(format!("read {}", places::GIVEN), e))?;
    let saved = Saved::from_text(&text).ok_or_else(|| {
        let path = places::GIVEN;
        Failure::new(
            Code::Internal,
            format!(
                "{path} is damaged, and without it what low subjects made could rise; \
                 restore it, or remove it to start all the same"
            ),
        )
    })?;
    let (boot, mounted) = (boot_id()?, filesystem::mounted()?);
    let (at, sudden) = (saved.at, !clean && saved.boot != boot);
    let mut given = saved.translate(&boot, &policy.levels, &mounted);
    let mut warnings = Vec::new();
    if sudden {
        warnings = suspects::add(policy, &mounted, at, &mut given);
    }
    Ok((given, warnings))
}

/// Forgets what is surely gone: filesystems in memory that are mounted no more,
/// and inodes that ext4 says are others now.
pub fn prune(monitor: &Monitor) -> Outcome {
    let given = monitor.given()?;
    let devs: BTreeSet<u32> = given.iter().map(|g| g.dev).collect();
    let mounted = filesystem::mounted()?;
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Saved {
        let given = |ino, level| Given {
            dev: 8388609,
            ino,
            generation: 77,
            level,
        };
        Saved {
            boot: "b1".into(),
            at: 1_700_000_000,
            levels: vec!["untrusted".into(), "user".into(), "system".into()],
            filesystems: BTreeMap::from([
                (
                    8388609,
                    ("uuid=1234".into(), vec![given(12, 0), given(13, 1)]),
                ),
                (
                    30,
                    (
                        "tmpfs tmp".into(),
                        vec![Given {
                            dev: 30,
                            ..given(5, 0)
                        }],
                    ),
                ),
            ]),
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Saved::from_text(&saved().to_text()), Some(saved()));
    }

    #[test]
    fn a_damaged_file_is_noticed() {
        let text = saved().to_text();
        for cut in 0..text.len() {
            assert_eq!(Saved::from_text(&text[..cut]), None, "cut at {cut}");
        }
        assert_eq!(Saved::from_text(&text.replace("12 77 0", "12 77 2")), None);
    }

    #[test]
    fn devices_and_levels_are_translated_after_a_reboot() {
        let disk = Filesystem {
            dev: 99,
            identity: "uuid=1234".into(),
            ..Filesystem::default()
        };
        let tmp = Filesystem {
            dev: 31,
            identity: "tmpfs tmp".into(),
            memory: true,
            ..Filesystem::default()
        };
        let levels = ["low".to_string(), "untrusted".into(), "system".into()];
        let given = saved().translate("b2", &levels, &[disk, tmp]);
        let expect = |ino, level| Given {
            dev: 99,
            ino,
            generation: 77,
            level,
        };
        // `untrusted` is 1 now; `user` is no more, so the lowest
        assert_eq!(given, [expect(12, 1), expect(13, 0)]);
    }

    #[test]
    fn a_disk_and_its_copy_both_have_the_levels() {
        let disk = |dev| Filesystem {
            dev,
            identity: "uuid=1234".into(),
            ..Filesystem::default()
        };
        let given = saved().translate("b2", &saved().levels, &[disk(98), disk(99)]);
        let of = |dev| given.iter().filter(|g| g.dev == dev).count();
        assert_eq!((of(98), of(99)), (2, 2));
    }

    #[test]
    fn within_one_boot_devices_stay() {
        let given = saved().translate("b1", &saved().levels, &[]);
        assert_eq!(given.len(), 3);
        assert!(given.iter().any(|g| g.dev == 30));
    }

    #[test]
    fn a_disk_that_is_away_keeps_its_levels() {
        let mut now = Saved {
            boot: "b2".into(),
            levels: vec!["low".into(), "user".into()],
            ..Saved::default()
        };
        now.carry(&saved(), &[]);
        // the tmpfs is gone for good; `untrusted` and `system` are no more
        let [(identity, given)] = now.filesystems.values().collect::<Vec<_>>()[..] else {
            panic!("{now:?}");
        };
        assert_eq!((identity.as_str(), given.len()), ("uuid=1234", 2));
        assert_eq!((given[0].level, given[1].level), (0, 1));
        // not by its number, not even in this boot
        assert!(now.translate("b2", &saved().levels, &[]).is_empty());
    }

    #[test]
    fn a_disk_that_is_here_is_not_taken_over() {
        let mut now = Saved::default();
        let disk = Filesystem {
            identity: "uuid=1234".into(),
            ..Filesystem::default()
        };
        now.carry(&saved(), &[disk]);
        assert!(now.filesystems.is_empty());
    }
}
