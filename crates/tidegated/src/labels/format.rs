//! What `/var/lib/tidegate/given` says: a line for each level, and for each context, under the
//! filesystem it is on, and a checksum.

use std::collections::BTreeMap;

use tidegate_monitor::{Given, Labelled};

use crate::labels::filesystem::{self, Filesystem};

/// The file's first line; and of one without contexts.
const MAGIC: &str = "tidegate-given 3";
const MAGIC_2: &str = "tidegate-given 2";

/// What a line begins with that has a context.
const CONTEXT: &str = "context ";

/// What a filesystem is called that was gone before anybody asked.
pub const UNMOUNTED: &str = "unmounted";

/// What the file says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Saved {
    pub boot: String,
    /// When the levels were these, in seconds of the wall clock.
    pub at: i64,
    pub levels: Vec<String>,
    /// By device number of that boot: the identity, and the objects. A disk without any is
    /// there, too: it is known to have been.
    pub filesystems: BTreeMap<u32, (String, Vec<Given>)>,
    /// Contexts of objects on those, by device number.
    pub labelled: BTreeMap<u32, Vec<Labelled>>,
    /// What was not mounted in that boot, by identity.
    pub away: BTreeMap<String, Away>,
}

/// What is known of a filesystem that has not been mounted since the machine started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Away {
    /// The machine crashed while it was mounted: what has changed since then is suspect.
    pub since: Option<i64>,
    /// Its levels; of no device.
    pub given: Vec<Given>,
    /// Its contexts; of no device.
    pub labelled: Vec<Labelled>,
}

impl Away {
    /// Takes over what is known besides.
    pub fn add(&mut self, since: Option<i64>, given: impl IntoIterator<Item = Given>) {
        self.since = self.since.into_iter().chain(since).min();
        self.given
            .extend(given.into_iter().map(|g| Given { dev: 0, ..g }));
        self.given.sort_unstable();
        // of two levels the lower one, which comes first
        self.given.dedup_by_key(|g| (g.ino, g.generation));
    }

    /// The same of contexts.
    pub fn add_labelled(&mut self, labelled: impl IntoIterator<Item = Labelled>) {
        let known = std::mem::take(&mut self.labelled);
        let mut all = Labels::new();
        for l in known.into_iter().chain(labelled) {
            label(&mut all, Labelled { dev: 0, ..l });
        }
        self.labelled = all.into_values().collect();
    }
}

/// Contexts by device, inode and generation.
pub type Labels = BTreeMap<(u32, u64, u32), Labelled>;

/// Of two that are not the same neither counts.
pub fn label(labels: &mut Labels, l: Labelled) {
    let known = labels.entry((l.dev, l.ino, l.generation));
    known.or_insert_with(|| l.clone()).confuse(&l.context);
}

/// Levels by device, inode and generation.
pub type Table = BTreeMap<(u32, u64, u32), u8>;

/// The lowest of two.
pub fn lower(table: &mut Table, g: Given) {
    let level = table.entry((g.dev, g.ino, g.generation)).or_insert(g.level);
    *level = g.level.min(*level);
}

/// As the monitor has them.
pub fn entries(table: Table) -> Vec<Given> {
    let entry = |((dev, ino, generation), level)| Given {
        dev,
        ino,
        generation,
        level,
    };
    table.into_iter().map(entry).collect()
}

/// What the file says, by where it belongs now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    /// The levels on what is mounted.
    pub table: Table,
    /// The contexts there.
    pub labels: Labels,
    /// Devices on which what has changed since then is suspect.
    pub since: BTreeMap<u32, i64>,
    /// What is not mounted.
    pub away: BTreeMap<String, Away>,
}

impl Saved {
    pub fn to_text(&self) -> String {
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
            text += &lines(self.labelled.get(dev).map_or(&[], Vec::as_slice));
        }
        for (identity, away) in &self.away {
            let since = away.since.map_or_else(|| "-".into(), |at| at.to_string());
            text += &format!("away {since} {identity}\n");
            for g in &away.given {
                text += &format!("{} {} {}\n", g.ino, g.generation, g.level);
            }
            text += &lines(&away.labelled);
        }
        let sum = checksum(&text);
        text + &sum + "\n"
    }

    /// `None` if it is not what `to_text` wrote.
    pub fn from_text(text: &str) -> Option<Saved> {
        let (body, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = format!("{body}\n");
        if checksum(&body) != sum {
            return None;
        }
        let mut saved = Saved::default();
        let mut lines = body.lines();
        if ![MAGIC, MAGIC_2].contains(&lines.next()?) {
            return None;
        }
        saved.boot = lines.next()?.strip_prefix("boot ")?.into();
        saved.at = lines.next()?.strip_prefix("at ")?.parse().ok()?;
        let levels = lines.next()?.strip_prefix("levels ")?;
        saved.levels = levels.split(' ').map(Into::into).collect();
        let mut under: Option<(u32, &mut Vec<Given>, &mut Vec<Labelled>)> = None;
        for line in lines {
            if let Some(rest) = line.strip_prefix("filesystem ") {
                let (number, identity) = rest.split_once(' ')?;
                let dev = number.parse().ok()?;
                let entry = saved.filesystems.entry(dev).or_default();
                entry.0 = identity.into();
                let labelled = saved.labelled.entry(dev).or_default();
                under = Some((dev, &mut entry.1, labelled));
                continue;
            }
            if let Some(rest) = line.strip_prefix("away ") {
                let (since, identity) = rest.split_once(' ')?;
                let away = saved.away.entry(identity.into()).or_default();
                away.since = match since {
                    "-" => None,
                    at => Some(at.parse().ok()?),
                };
                under = Some((0, &mut away.given, &mut away.labelled));
                continue;
            }
            let (dev, given, labelled) = under.as_mut()?;
            if let Some(rest) = line.strip_prefix(CONTEXT) {
                let mut words = rest.splitn(3, ' ');
                labelled.push(Labelled {
                    dev: *dev,
                    ino: words.next()?.parse().ok()?,
                    generation: words.next()?.parse().ok()?,
                    context: words.next()?.into(),
                });
                continue;
            }
            let mut words = line.split(' ');
            given.push(Given {
                dev: *dev,
                ino: words.next()?.parse().ok()?,
                generation: words.next()?.parse().ok()?,
                level: words.next()?.parse().ok()?,
            });
        }
        saved.labelled.retain(|_, labelled| !labelled.is_empty());
        Some(saved)
    }

    /// All contexts that it has.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        let here = self.labelled.values();
        let away = self.away.values().map(|away| &away.labelled);
        here.chain(away).flatten().map(|l| l.context.as_str())
    }

    /// A level of this file's as a policy numbers it; one that is no more is the lowest.
    fn level_in(&self, levels: &[String], level: u8) -> u8 {
        let name = self.levels.get(usize::from(level));
        let at = name.and_then(|name| levels.iter().position(|l| l == name));
        at.unwrap_or(0) as u8
    }

    /// The entries under this boot's device numbers and this policy's levels, and what is
    /// suspect if the machine crashed. What was in memory is gone. Of
    /// filesystems that are called the same, as a disk and its copy are, nobody can tell
    /// which one it was: the entries hold for each.
    pub fn sort(
        self,
        boot: &str,
        levels: &[String],
        mounted: &[Filesystem],
        sudden: bool,
    ) -> Sorted {
        let mut out = Sorted::default();
        let since = sudden.then_some(self.at);
        let called = |identity: &str| {
            let of = mounted
                .iter()
                .filter(move |f| !f.memory && f.identity == identity);
            of.map(|f| f.dev).collect::<Vec<_>>()
        };
        if let Some(since) = since {
            let lasting = mounted.iter().filter(|f| !f.memory);
            out.since.extend(lasting.map(|f| (f.dev, since)));
        }
        let here = self.filesystems.iter().map(|(dev, (identity, given))| {
            let devs = if self.boot == boot {
                vec![*dev]
            } else {
                called(identity)
            };
            let labelled = self.labelled.get(dev).map_or(&[][..], Vec::as_slice);
            (identity, devs, since, given, labelled)
        });
        let away = self.away.iter().map(|(identity, away)| {
            let labelled = away.labelled.as_slice();
            (
                identity,
                called(identity),
                away.since,
                &away.given,
                labelled,
            )
        });
        for (identity, devs, since, given, labelled) in here.chain(away) {
            let given = given.iter().map(|g| Given {
                level: self.level_in(levels, g.level),
                ..*g
            });
            for dev in &devs {
                for g in given.clone() {
                    lower(&mut out.table, Given { dev: *dev, ..g });
                }
                for l in labelled {
                    label(
                        &mut out.labels,
                        Labelled {
                            dev: *dev,
                            ..l.clone()
                        },
                    );
                }
                if let Some(since) = since {
                    let first = out.since.entry(*dev).or_insert(since);
                    *first = since.min(*first);
                }
            }
            let lasts = identity != UNMOUNTED && !filesystem::is_memory(identity);
            let says = since.is_some() || given.len() > 0 || !labelled.is_empty();
            if devs.is_empty() && lasts && says {
                let away = out.away.entry(identity.clone()).or_default();
                away.add(since, given);
                away.add_labelled(labelled.iter().cloned());
            }
        }
        out
    }
}

fn lines(labelled: &[Labelled]) -> String {
    let line = |l: &Labelled| format!("{CONTEXT}{} {} {}\n", l.ino, l.generation, l.context);
    labelled.iter().map(line).collect()
}

fn checksum(text: &str) -> String {
    format!("blake3 {}", blake3::hash(text.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(dev: u32, ino: u64, context: &str) -> Labelled {
        Labelled {
            dev,
            ino,
            generation: 77,
            context: context.into(),
        }
    }

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
            away: BTreeMap::from([(
                "uuid=5678".into(),
                Away {
                    since: Some(1_600_000_000),
                    given: vec![Given {
                        dev: 0,
                        ..given(9, 1)
                    }],
                    labelled: vec![labelled(0, 9, "u:object_r:away_t:s0")],
                },
            )]),
            labelled: BTreeMap::from([
                (
                    8388609,
                    vec![labelled(8388609, 12, "u:object_r:a_t:s0-s15:c0.c3")],
                ),
                (30, vec![labelled(30, 5, "unlabeled")]),
            ]),
        }
    }

    fn disk(dev: u32, identity: &str) -> Filesystem {
        Filesystem {
            dev,
            identity: identity.into(),
            ..Filesystem::default()
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
        let tmp = Filesystem {
            memory: true,
            ..disk(31, "tmpfs tmp")
        };
        let levels = ["low".to_string(), "untrusted".into(), "system".into()];
        let now = saved().sort("b2", &levels, &[disk(99, "uuid=1234"), tmp], false);
        // `untrusted` is 1 now; `user` is no more, so the lowest
        assert_eq!(
            now.table,
            Table::from([((99, 12, 77), 1), ((99, 13, 77), 0)])
        );
        assert!(now.since.is_empty());
    }

    #[test]
    fn a_disk_and_its_copy_both_have_the_levels() {
        let disks = [disk(98, "uuid=1234"), disk(99, "uuid=1234")];
        let now = saved().sort("b2", &saved().levels, &disks, false);
        let of = |dev| now.table.keys().filter(|k| k.0 == dev).count();
        assert_eq!((of(98), of(99)), (2, 2));
    }

    #[test]
    fn within_one_boot_devices_stay() {
        let now = saved().sort("b1", &saved().levels, &[], false);
        assert_eq!(now.table.len(), 3);
        assert!(now.table.keys().any(|k| k.0 == 30));
    }

    #[test]
    fn a_disk_that_is_away_keeps_its_levels_and_what_is_suspect() {
        let levels = ["low".to_string(), "user".into()];
        let now = saved().sort("b2", &levels, &[], true);
        // the tmpfs is gone for good; `untrusted` and `system` are no more
        let names: Vec<_> = now.away.keys().collect();
        assert_eq!(names, ["uuid=1234", "uuid=5678"]);
        let away = &now.away["uuid=1234"];
        assert_eq!(away.since, Some(1_700_000_000));
        assert_eq!((away.given[0].level, away.given[1].level), (0, 1));
        assert!(now.table.is_empty() && now.since.is_empty());

        // that it has been away twice changes nothing, nor does a clean end
        let again = Saved {
            boot: "b2".into(),
            at: 1_800_000_000,
            levels: levels.to_vec(),
            away: now.away.clone(),
            ..Saved::default()
        };
        assert_eq!(again.sort("b3", &levels, &[], true).away, now.away);
    }

    #[test]
    fn a_disk_that_comes_back_has_its_levels_and_its_suspects() {
        let disks = [disk(98, "uuid=5678"), disk(99, "uuid=1234")];
        let now = saved().sort("b2", &saved().levels, &disks, false);
        assert_eq!(now.table.get(&(98, 9, 77)), Some(&1));
        assert_eq!(now.since, BTreeMap::from([(98, 1_600_000_000)]));
        assert!(now.away.is_empty());
        // both are searched after a sudden end, each since it was known
        let now = saved().sort("b2", &saved().levels, &disks, true);
        assert_eq!(
            now.since,
            BTreeMap::from([(98, 1_600_000_000), (99, 1_700_000_000)])
        );
    }

    #[test]
    fn a_disk_without_levels_is_suspect_all_the_same() {
        let known = Saved {
            boot: "b1".into(),
            at: 7,
            filesystems: BTreeMap::from([(98, ("uuid=1".into(), vec![]))]),
            ..Saved::default()
        };
        let again = Saved::from_text(&known.to_text()).unwrap();
        assert_eq!(
            again.sort("b2", &[], &[], true).away["uuid=1"].since,
            Some(7)
        );
        assert!(known.sort("b2", &[], &[], false).away.is_empty());
    }

    #[test]
    fn of_two_levels_the_lower_one_is_kept() {
        let given = |level| Given {
            dev: 4,
            ino: 5,
            generation: 6,
            level,
        };
        let mut away = Away::default();
        away.add(Some(9), [given(2), given(1)]);
        away.add(Some(8), [given(3)]);
        away.add(None, []);
        assert_eq!(away.since, Some(8));
        assert_eq!(away.given, [Given { dev: 0, ..given(1) }]);
    }
}
