//! Links compiled profiles into a [`ProfileSet`].

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::limits::{
    MAX_AUTOMATA, MAX_AUTOMATA_BYTES, MAX_PROFILE_NAME, MAX_PROFILES, MAX_UNMEDIATED,
};
use tidegate_bundle::profile::{
    Attach, Exec, LeftOut, Linked, PathFlags, Perms, ProfileSet, Table, Target, Unmediated, Walk,
    parent_of,
};

use super::dfa::START;
use super::unusable::unusable;
use super::{Automaton, Parsed, Profile, Rules, Statement, TooLarge, unmediated};

/// The number of the class of rules on files: `AA_CLASS_FILE`.
const CLASS_FILE: u8 = 2;
/// The name of what has no profile, as `px -> unconfined` says it.
const UNCONFINED: &str = "unconfined";

/// Why compiled profiles do not make a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum LinkError {
    /// Two profiles of one name.
    #[error("profile `{name}` is in {} and in {}", first.display(), second.display())]
    #[diagnostic(
        code(profile::twice),
        help("rename one of them, or leave one of the files out")
    )]
    Twice {
        /// Their name.
        name: String,
        /// The file of one.
        first: PathBuf,
        /// The file of the other.
        second: PathBuf,
    },
    /// A child without its parent.
    #[error("{}: profile `{name}` is a child of `{parent}`, which is not there", file.display())]
    #[diagnostic(
        code(profile::orphan),
        help("give the file with its parent, too, or the profile a name without `//`")
    )]
    Orphan {
        /// The child.
        name: String,
        /// The parent.
        parent: String,
        /// The child's file.
        file: PathBuf,
    },
    /// A name, or another text, that cannot be kept.
    #[error(
        "{}: profile `{name}` has a {what} that is longer than {max} bytes or has a NUL in it",
        file.display()
    )]
    #[diagnostic(code(profile::text))]
    Text {
        /// The profile.
        name: String,
        /// What of it.
        what: &'static str,
        /// How long it may be.
        max: usize,
        /// The profile's file.
        file: PathBuf,
    },
    /// Rules whose automaton is too large.
    #[error(
        "{}: profile `{name}`: its {rules} make an automaton of {states} states, where 65,536 are possible",
        file.display()
    )]
    #[diagnostic(
        code(profile::too_large),
        help("join rules whose paths differ in a few places only, or make it two profiles")
    )]
    TooLarge {
        /// The profile.
        name: String,
        /// Which of its rules.
        rules: &'static str,
        /// The states of their automaton.
        states: usize,
        /// The profile's file.
        file: PathBuf,
    },
    /// More of something than a policy may have.
    #[error("the profiles have {count} {what}, where at most {max} are allowed")]
    #[diagnostic(code(profile::limit), help("load fewer profiles"))]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
        /// The limit.
        max: usize,
    },
}

impl LinkError {
    /// The profile that does not fit, and its file; of two of one name the second.
    fn profile(&self) -> Option<(&str, &Path)> {
        match self {
            LinkError::Twice { name, second, .. } => Some((name, second)),
            LinkError::Orphan { name, file, .. }
            | LinkError::Text { name, file, .. }
            | LinkError::TooLarge { name, file, .. } => Some((name, file)),
            LinkError::Limit { .. } => None,
        }
    }
}

/// Links the profiles of some files. The statements of the same files say where a rule
/// stands that nothing mediates.
///
/// # Errors
///
/// The first thing that does not fit together.
pub fn link(parsed: &[Parsed], statements: &[Statement]) -> Result<ProfileSet, LinkError> {
    link_beside(parsed, statements, Vec::new())
}

/// Links the profiles of some files as [`link`] does, where other profiles were left out. A rule that leads
/// to one of those by its name is refused.
///
/// # Errors
///
/// The first thing that does not fit together.
pub fn link_beside(
    parsed: &[Parsed],
    statements: &[Statement],
    left_out: Vec<LeftOut>,
) -> Result<ProfileSet, LinkError> {
    let names = left_out.iter().flat_map(|it| &it.profiles);
    let names = names.map(String::as_str).collect();
    let set = link_all(parsed, statements, &names)?;
    Ok(ProfileSet { left_out, ..set })
}

/// Links the profiles of some files, and leaves out each profile that does not fit, with its
/// children, beside what was left out before.
///
/// # Errors
///
/// What is wrong with all of them together.
pub fn link_usable(
    mut parsed: Vec<Parsed>,
    statements: &[Statement],
    mut left_out: Vec<LeftOut>,
) -> Result<ProfileSet, LinkError> {
    loop {
        let fault = match link_beside(&parsed, statements, left_out.clone()) {
            Ok(set) => return Ok(set),
            Err(fault) => fault,
        };
        let one = fault.profile().and_then(|(name, file)| {
            let gone = remove(&mut parsed, name, file)?;
            let is_head = |s: &&Statement| {
                s.class == "profile" && s.file == file && gone.contains(&s.profile)
            };
            let line = statements.iter().find(is_head).map_or(0, |s| s.line);
            let why = fault.to_string();
            Some(unusable(gone.into_iter(), file, line, &why))
        });
        match one {
            Some(one) => left_out.push(one),
            None => return Err(fault),
        }
    }
}

/// Links profiles beside which there are some that were left out.
fn link_all(
    parsed: &[Parsed],
    statements: &[Statement],
    left_out: &HashSet<&str>,
) -> Result<ProfileSet, LinkError> {
    let found = by_name(parsed)?;
    limit("profiles", found.len(), MAX_PROFILES)?;
    let names = found.keys().zip(0..).map(|(&name, at)| (name, at));
    let mut linker = Linker {
        names: names.collect(),
        tables: HashMap::new(),
        bytes: 0,
        unmediated: unmediated::rules(parsed, statements),
        statements,
        left_out,
    };
    let profiles: Vec<Linked> = found
        .into_values()
        .map(|source| linker.profile(source))
        .collect::<Result<_, _>>()?;
    let mut unmediated = linker.unmediated;
    unmediated.sort();
    unmediated.dedup();
    limit(
        "rules that nothing mediates",
        unmediated.len(),
        MAX_UNMEDIATED,
    )?;
    let mut tables: Vec<(Table, u32)> = linker.tables.into_iter().collect();
    tables.sort_unstable_by_key(|(_, at)| *at);
    Ok(ProfileSet {
        profiles,
        automata: tables.into_iter().map(|(table, _)| table).collect(),
        unmediated,
        left_out: Vec::new(),
    })
}

/// Takes a profile out of its file, with its children: their names. Of several of the name it is the last.
fn remove(parsed: &mut [Parsed], name: &str, file: &Path) -> Option<Vec<String>> {
    let children = format!("{name}//");
    let is_meant = |profile: &Profile| profile.name == name || profile.name.starts_with(&children);
    let has = |parsed: &&mut Parsed| {
        parsed.file == file && parsed.profiles.iter().any(|profile| profile.name == name)
    };
    let found = parsed.iter_mut().rev().find(has)?;
    let profiles = std::mem::take(&mut found.profiles).into_iter();
    let (gone, left): (Vec<Profile>, _) = profiles.partition(is_meant);
    found.profiles = left;
    let mut names: Vec<String> = gone.into_iter().map(|profile| profile.name).collect();
    names.sort();
    Some(names)
}

/// A profile, and its file.
#[derive(Debug, Clone, Copy)]
struct Source<'p> {
    profile: &'p Profile,
    file: &'p PathBuf,
}

/// The profiles in the order of their names, in which what a name begins with stands before it: a
/// parent before its children.
fn by_name(parsed: &[Parsed]) -> Result<BTreeMap<&str, Source<'_>>, LinkError> {
    let mut found = BTreeMap::new();
    for Parsed { file, profiles, .. } in parsed {
        for profile in profiles {
            let source = Source { profile, file };
            source.text("name", &profile.name)?;
            if let Some(disconnected) = &profile.disconnected {
                source.text("prefix of disconnected paths", disconnected)?;
            }
            if let Some(Source { file: first, .. }) = found.insert(profile.name.as_str(), source) {
                return Err(LinkError::Twice {
                    name: profile.name.clone(),
                    first: first.clone(),
                    second: file.clone(),
                });
            }
        }
    }
    Ok(found)
}

impl Source<'_> {
    fn text(&self, what: &'static str, text: &str) -> Result<(), LinkError> {
        if text.len() <= MAX_PROFILE_NAME && !text.contains('\0') {
            return Ok(());
        }
        Err(LinkError::Text {
            name: self.profile.name.chars().take(64).collect(),
            what,
            max: MAX_PROFILE_NAME,
            file: self.file.clone(),
        })
    }
}

fn limit(what: &'static str, count: usize, max: usize) -> Result<(), LinkError> {
    match count > max {
        true => Err(LinkError::Limit { what, count, max }),
        false => Ok(()),
    }
}

struct Linker<'p> {
    /// Where each profile will stand.
    names: HashMap<&'p str, u32>,
    /// The automata so far, and where each will stand.
    tables: HashMap<Table, u32>,
    /// What they take.
    bytes: usize,
    unmediated: Vec<Unmediated>,
    statements: &'p [Statement],
    /// The names of profiles that were left out.
    left_out: &'p HashSet<&'p str>,
}

impl Linker<'_> {
    fn profile(&mut self, source: Source<'_>) -> Result<Linked, LinkError> {
        let profile = source.profile;
        let parent = match parent_of(&profile.name) {
            None => None,
            Some(parent) => match self.names.get(parent) {
                Some(&at) => Some(at),
                None => {
                    return Err(LinkError::Orphan {
                        name: profile.name.clone(),
                        parent: parent.to_owned(),
                        file: source.file.clone(),
                    });
                }
            },
        };
        let attachment = match &profile.attachment.pattern {
            None => None,
            Some(rules) => {
                let automaton = self.table(source, "attachment", rules, None)?;
                Some(Attach {
                    walk: walk(automaton, START),
                    length: profile.attachment.length,
                })
            }
        };
        let mut targets = Targets::default();
        let mut file = match &profile.file {
            None => None,
            Some(rules) => {
                let automaton = self.table(source, "rules on files", rules, Some(&mut targets))?;
                Some(walk(automaton, rules.file_start))
            }
        };
        let mut policy = None;
        if let Some(rules) = &profile.policy {
            let begin = rules.dfa.step(rules.start, CLASS_FILE);
            let has_file = file.is_none() && begin != 0;
            let targets = has_file.then_some(&mut targets);
            let automaton = self.table(source, "rules", rules, targets)?;
            policy = Some(walk(automaton, rules.start));
            if has_file {
                file = Some(walk(automaton, begin));
            }
        }
        if !profile.attachment.xattrs.is_empty() {
            self.whole(source, "xattrs");
        }
        if profile.secmark != 0 {
            self.whole(source, "secmark");
        }
        Ok(Linked {
            name: profile.name.clone(),
            parent,
            is_hat: profile.is_hat,
            mode: profile.mode,
            audit: profile.audit,
            path_flags: profile.path_flags & PathFlags::all(),
            disconnected: profile.disconnected.clone(),
            capabilities: profile.capabilities,
            rlimits: profile.rlimits.clone(),
            attachment,
            file,
            policy,
            targets: targets.list,
        })
    }

    /// Tells of a profile as a whole, where no statement has told it by its line.
    fn whole(&mut self, source: Source<'_>, class: &str) {
        let name = &source.profile.name;
        let is_told = |it: &Unmediated| it.profile == *name && it.class == class;
        if !self.unmediated.iter().any(is_told) {
            self.unmediated
                .push(unmediated::whole(name, class, source.file));
        }
    }

    /// Lays out an automaton, unless there is an equal one: where it will stand. Only of one with
    /// rules on files, which has targets, do executions lead anywhere.
    fn table(
        &mut self,
        source: Source<'_>,
        what: &'static str,
        rules: &Rules,
        mut targets: Option<&mut Targets>,
    ) -> Result<u32, LinkError> {
        let Automaton {
            classes,
            width,
            next,
        } = Automaton::new(&rules.dfa).map_err(|TooLarge(states)| LinkError::TooLarge {
            name: source.profile.name.clone(),
            rules: what,
            states,
            file: source.file.clone(),
        })?;
        let mut perms = Vec::new();
        let mut seen = HashMap::new();
        let mut accepts = Vec::with_capacity(rules.accepts.len());
        for pair in &rules.accepts {
            let pair = pair.map(|perms| Perms {
                exec: match targets.as_deref_mut() {
                    Some(targets) => self.exec(source, rules, perms.exec, targets),
                    None => Exec::default(),
                },
                ..perms
            });
            let at = *seen.entry(pair).or_insert_with(|| {
                perms.push(pair);
                perms.len() - 1
            });
            // there are no more of them than states, which have 16 bits
            accepts.push(at as u16);
        }
        let table = Table {
            classes,
            width,
            next,
            accepts,
            perms,
        };
        if let Some(&at) = self.tables.get(&table) {
            return Ok(at);
        }
        self.bytes += table.bytes();
        limit("bytes of automata", self.bytes, MAX_AUTOMATA_BYTES)?;
        let at = self.tables.len();
        limit("automata", at + 1, MAX_AUTOMATA)?;
        self.tables.insert(table, at as u32);
        Ok(at as u32)
    }

    /// Where an execution leads, with an index into the profile's targets.
    fn exec(
        &mut self,
        source: Source<'_>,
        rules: &Rules,
        exec: Exec,
        targets: &mut Targets,
    ) -> Exec {
        let Some(index) = exec.index() else {
            return exec;
        };
        let is_child = exec.0 & Exec::CHILD != 0;
        let name = &rules.names[index];
        // the name of no profile, which is always there: what the rule says of profiles that are
        // not has no meaning
        if name == UNCONFINED && !is_child && !self.names.contains_key(UNCONFINED) {
            return Exec(exec.0 & Exec::UNSAFE | Exec::UNCONFINED);
        }
        let at = match targets.seen.get(&(index, is_child)) {
            Some(&at) => at,
            None => {
                let at = targets.list.len() as u32;
                targets.list.push(self.target(source, name, is_child));
                targets.seen.insert((index, is_child), at);
                at
            }
        };
        // several profiles confine further, and one that was left out is there as it is written: a
        // task that asks for them is not to be confined by less
        let is_written =
            unmediated::class_of(name).is_some() || self.is_left_out(source, name, is_child);
        let fallback = match is_written && targets.list[at as usize] == Target::Missing {
            true => Exec::INHERIT | Exec::UNCONFINED,
            false => 0,
        };
        Exec(exec.0 & !(Exec::INDEX | fallback) | at)
    }

    /// Whether a profile of this name was left out.
    fn is_left_out(&self, source: Source<'_>, name: &str, is_child: bool) -> bool {
        match is_child {
            true => {
                let child = format!("{}//{name}", source.profile.name);
                self.left_out.contains(child.as_str())
            }
            false => self.left_out.contains(name),
        }
    }

    fn target(&mut self, source: Source<'_>, name: &str, is_child: bool) -> Target {
        let profile = source.profile.name.as_str();
        if let Some(class) = unmediated::class_of(name) {
            let found = unmediated::leading_to(self.statements, profile, name, class);
            match found.is_empty() {
                true => self
                    .unmediated
                    .push(unmediated::whole(profile, class, source.file)),
                false => self.unmediated.extend(found),
            }
            return Target::Missing;
        }
        let child;
        let name = match is_child {
            true => {
                child = format!("{profile}//{name}");
                &child
            }
            false => name,
        };
        match self.names.get(name) {
            Some(&at) => Target::Profile(at),
            None => Target::Missing,
        }
    }
}

/// The targets of one profile.
#[derive(Debug, Default)]
struct Targets {
    list: Vec<Target>,
    /// By name's index and whether a child is meant, which of them it is.
    seen: HashMap<(usize, bool), u32>,
}

fn walk(automaton: u32, start: u32) -> Walk {
    Walk {
        automaton,
        // there are no more states than that, or there would be no table
        start: start as u16,
    }
}
