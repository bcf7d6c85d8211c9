//! The `profile` section's content: profiles, their automata, and what nothing mediates of them.
//!
//! An automaton's tables are most of a bundle, and are written as they lie in memory: 16 bits for
//! a state, little-endian. Their sizes are checked against what is there before any is copied.

use super::BundleError;
use super::section::{Reader, Writer};
use crate::limits::{
    MAX_AUTOMATA, MAX_AUTOMATA_BYTES, MAX_LINE, MAX_PROFILES, MAX_STATES, MAX_UNMEDIATED,
};
use crate::profile::{LeftOut, ProfileSet, Table};

/// The content of the `profile` section.
pub(super) fn write(set: &ProfileSet) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(&set.profiles);
    out.value(&set.automata.len());
    for table in &set.automata {
        out.0.extend_from_slice(&table.classes[..]);
        out.value(&table.width);
        out.value(&table.accepts.len());
        for number in table.next.iter().chain(&table.accepts) {
            out.0.extend_from_slice(&number.to_le_bytes());
        }
        out.list(&table.perms);
    }
    out.list(&set.unmediated);
    out.0
}

/// The content of the `left-out` section.
pub(super) fn write_left_out(set: &ProfileSet) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    let each = set.left_out.iter();
    let each: Vec<_> = each
        .map(|it| (&it.profiles, &it.file, it.line, &it.why))
        .collect();
    out.list(&each);
    out.0
}

/// The content of the `disabled` section: which of those that were left out are disabled, by their numbers from 0.
pub(super) fn write_disabled(set: &ProfileSet) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(&disabled(set).collect::<Vec<_>>());
    out.0
}

/// The numbers of those that are disabled.
pub(super) fn disabled(set: &ProfileSet) -> impl Iterator<Item = u32> {
    let each = (0..).zip(&set.left_out);
    each.filter_map(|(at, it)| it.disabled.then_some(at))
}

impl Reader<'_> {
    /// Reads the `left-out` section.
    pub fn left_out(mut self) -> Result<Vec<LeftOut>, BundleError> {
        let found: Vec<(Vec<String>, String, u32, String)> =
            self.list("profiles that were left out", MAX_PROFILES)?;
        self.finish()?;
        let each = found.into_iter();
        let found: Vec<LeftOut> = each
            .map(|(profiles, file, line, why)| LeftOut {
                profiles,
                file,
                line,
                why,
                disabled: false,
            })
            .collect();
        let overlong = |it: &LeftOut| {
            let mut texts = it.profiles.iter().chain([&it.file, &it.why]);
            texts.any(|text| text.len() > MAX_LINE)
        };
        match found.iter().position(overlong) {
            Some(index) => Err(BundleError::LeftOut(index)),
            None => Ok(found),
        }
    }

    /// Reads the `disabled` section, for those that were left out.
    pub fn disabled(mut self, left_out: &mut [LeftOut]) -> Result<(), BundleError> {
        let found: Vec<u32> = self.list("profiles that are disabled", MAX_PROFILES)?;
        self.finish()?;
        for index in found {
            let one = left_out.get_mut(index as usize);
            one.ok_or(BundleError::Disabled(index))?.disabled = true;
        }
        Ok(())
    }

    /// Reads the `profile` section, whose indices are still to be checked.
    pub fn profiles(mut self) -> Result<ProfileSet, BundleError> {
        let profiles = self.list("profiles", MAX_PROFILES)?;
        let count = self.count("automata", MAX_AUTOMATA)?;
        let mut automata = Vec::new();
        let mut bytes = 0;
        for _ in 0..count {
            let table = self.automaton()?;
            bytes += table.bytes();
            all_fit(bytes)?;
            automata.push(table);
        }
        let unmediated = self.list("rules that nothing mediates", MAX_UNMEDIATED)?;
        self.finish()?;
        Ok(ProfileSet {
            profiles,
            automata,
            unmediated,
            left_out: Vec::new(),
        })
    }

    fn automaton(&mut self) -> Result<Table, BundleError> {
        let classes = Box::new(super::array(self.bytes("classes", 256)?));
        let width: u16 = self.value("width")?;
        let states = self.count("states of an automaton", MAX_STATES)?;
        Ok(Table {
            classes,
            width,
            next: self.numbers("states", states * usize::from(width))?,
            accepts: self.numbers("states' permissions", states)?,
            perms: self.list("permissions of an automaton", MAX_STATES)?,
        })
    }

    /// So many numbers of 16 bits.
    pub fn numbers(&mut self, what: &'static str, count: usize) -> Result<Vec<u16>, BundleError> {
        let bytes = self.bytes(what, 2 * count)?.chunks_exact(2);
        Ok(bytes
            .map(|pair| u16::from_le_bytes(super::array(pair)))
            .collect())
    }
}

/// Whether automata of so many bytes may be in one policy.
pub(super) fn all_fit(bytes: usize) -> Result<(), BundleError> {
    match bytes > MAX_AUTOMATA_BYTES {
        true => Err(BundleError::Limit {
            what: "bytes of automata",
            count: bytes,
            max: MAX_AUTOMATA_BYTES,
        }),
        false => Ok(()),
    }
}
