//! Checks profiles that were read: what [`ProfileSet`] promises of them.

use std::collections::HashMap;

use super::BundleError;
use crate::limits::{MAX_LINE, MAX_PROFILE_NAME, MAX_TARGETS};
use crate::profile::{Linked, PathFlags, ProfileSet, RLIMITS, Table, Target, Walk, parent_of};

/// Checks all that the reader did not.
pub(super) fn profiles(set: &ProfileSet) -> Result<(), BundleError> {
    if set.profiles.is_empty() {
        return Err(BundleError::NoProfiles);
    }
    let automata = set.automata.iter().enumerate();
    let highest: Vec<_> = automata
        .map(|(index, table)| {
            automaton(table).map_err(|what| BundleError::Automaton {
                automaton: index,
                what,
            })
        })
        .collect::<Result<_, _>>()?;
    let mut names = HashMap::new();
    for (index, profile) in set.profiles.iter().enumerate() {
        let bad = |what| BundleError::Profile {
            profile: index,
            what,
        };
        if profile.targets.len() > MAX_TARGETS {
            return Err(BundleError::Limit {
                what: "targets of a profile",
                count: profile.targets.len(),
                max: MAX_TARGETS,
            });
        }
        family(profile, &names).map_err(bad)?;
        if names.insert(profile.name.as_str(), index as u32).is_some() {
            return Err(bad("a name that another has"));
        }
        contents(profile, set.profiles.len()).map_err(bad)?;
        let attachment = profile.attachment.map(|attach| attach.walk);
        for walk in [attachment, profile.file, profile.policy]
            .into_iter()
            .flatten()
        {
            walks(walk, set, &highest, profile).map_err(bad)?;
        }
    }
    let overlong = |text: &String| text.len() > MAX_LINE;
    let rule = set.unmediated.iter().position(|rule| {
        [&rule.profile, &rule.class, &rule.file]
            .into_iter()
            .any(overlong)
    });
    match rule {
        Some(index) => Err(BundleError::Unmediated(index)),
        None => Ok(()),
    }
}

/// Checks an automaton: the highest target that it leads to.
fn automaton(table: &Table) -> Result<Option<usize>, &'static str> {
    let width = usize::from(table.width);
    let states = table.accepts.len();
    if !(1..=256).contains(&width) || states == 0 {
        return Err("no states or no classes");
    }
    if table
        .classes
        .iter()
        .any(|&class| usize::from(class) >= width)
    {
        return Err("a class that is not there");
    }
    if table.next.iter().any(|&state| usize::from(state) >= states) {
        return Err("a state that is not there");
    }
    if table.next[..width].iter().any(|&state| state != 0) {
        return Err("a way out of state 0");
    }
    let beyond = |&accept: &u16| usize::from(accept) >= table.perms.len();
    if table.accepts.iter().any(beyond) {
        return Err("permissions that are not there");
    }
    let perms = || table.perms.iter().flatten();
    if perms().any(|perms| perms.allow.intersects(perms.deny)) {
        return Err("a permission that is both allowed and denied");
    }
    Ok(perms().filter_map(|perms| perms.exec.index()).max())
}

/// Checks a profile's name and that its parent stands before it.
fn family(profile: &Linked, before: &HashMap<&str, u32>) -> Result<(), &'static str> {
    if !is_text(&profile.name) {
        return Err("a name that no profile can have");
    }
    let parent = match parent_of(&profile.name) {
        None => None,
        Some(parent) => match before.get(parent) {
            Some(&at) => Some(at),
            None => return Err("a parent that does not stand before it"),
        },
    };
    match parent == profile.parent {
        true => Ok(()),
        false => Err("a parent that its name does not tell of"),
    }
}

fn contents(profile: &Linked, count: usize) -> Result<(), &'static str> {
    if profile
        .disconnected
        .as_ref()
        .is_some_and(|text| !is_text(text))
    {
        return Err("a prefix of disconnected paths that no path can have");
    }
    if PathFlags::from_bits(profile.path_flags.bits()).is_none() {
        return Err("unknown flags");
    }
    let mut limited = 0_u32;
    for limit in &profile.rlimits {
        let is_known = u16::from(limit.resource) < RLIMITS;
        if !is_known || limited & 1 << limit.resource != 0 {
            return Err("a limit of an unknown resource, or two of one");
        }
        limited |= 1 << limit.resource;
    }
    let is_there = |target: &Target| match *target {
        Target::Profile(at) => (at as usize) < count,
        Target::Missing => true,
    };
    match profile.targets.iter().all(is_there) {
        true => Ok(()),
        false => Err("a target that is not there"),
    }
}

fn walks(
    walk: Walk,
    set: &ProfileSet,
    highest: &[Option<usize>],
    profile: &Linked,
) -> Result<(), &'static str> {
    let at = walk.automaton as usize;
    let table = set
        .automata
        .get(at)
        .ok_or("an automaton that is not there")?;
    if usize::from(walk.start) >= table.accepts.len() {
        return Err("a start outside of its automaton");
    }
    match highest[at].is_none_or(|index| index < profile.targets.len()) {
        true => Ok(()),
        false => Err("an execution that leads to no target"),
    }
}

fn is_text(text: &str) -> bool {
    (1..=MAX_PROFILE_NAME).contains(&text.len()) && !text.contains('\0')
}
