//! Statements to rules: names resolved, clashes told, overrides applied.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

use tidegate_bundle::limits::{MAX_NETWORKS, MAX_RULES};
use tidegate_bundle::names::NEUTRAL;
use tidegate_bundle::network::Cidr;
use tidegate_bundle::{Attrs, Mode, RuleSource};

use super::gather::Levels;
use super::pattern::Pattern;
use super::read::Units;
use super::syntax::{self, PathStatement, Statement};
use super::{Note, Problem, builtin, lint};
use crate::finding::Place;
use crate::similar::did_you_mean;
use crate::words::Spanned;

/// What a path has a rule for: itself with all below, or only what is below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Here,
    ChildOf,
}

/// A rule that survived: for one pattern and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathRule {
    pub pattern: Pattern,
    pub kind: Kind,
    pub level: u8,
    pub attrs: Attrs,
    /// Index into [`Rules::sources`].
    pub source: u32,
}

/// A map's whole meaning, before it becomes a trie.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub mode: Mode,
    /// Lowest first.
    pub levels: Vec<String>,
    pub paths: Vec<PathRule>,
    pub networks: Vec<(Cidr, u8, u32)>,
    pub sources: Vec<RuleSource>,
}

/// What already holds a path's or network's place.
struct Held<T> {
    rule: T,
    /// Index into [`Resolve::statements`].
    statement: usize,
    /// Whether it came from `~` rather than being written out.
    home: bool,
}

/// Resolves the map's path and network statements, each with its unit.
pub(super) fn resolve(
    units: &Units,
    statements: Vec<(usize, syntax::Line<'_>)>,
    levels: Levels<'_>,
    mode: Mode,
    notes: &mut Vec<Note>,
) -> Option<Rules> {
    let mut resolve = Resolve {
        notes,
        levels: levels.names,
        sources: Vec::new(),
        statements: Vec::new(),
        paths: HashMap::new(),
        networks: HashMap::new(),
        lost: Vec::new(),
    };
    for (unit, line) in statements {
        resolve.statement(&units.units[unit].name, unit, line);
    }
    resolve.finish(mode, levels.place)
}

/// The second pass: each rule.
struct Resolve<'n, 'l> {
    notes: &'n mut Vec<Note>,
    levels: &'l [String],
    sources: Vec<RuleSource>,
    /// Where each source was written.
    statements: Vec<Place>,
    paths: HashMap<(Pattern, Kind), Held<(u8, Attrs)>>,
    networks: HashMap<(IpAddr, u8), Held<u8>>,
    /// Statements that lost a place to another, and whether to one of another
    /// file.
    lost: Vec<(usize, bool)>,
}

impl Resolve<'_, '_> {
    fn statement(&mut self, file: &str, unit: usize, line: syntax::Line<'_>) {
        let statement = self.statements.len();
        self.statements.push(Place {
            unit,
            span: line.span,
        });
        self.sources.push(RuleSource {
            file: file.to_owned(),
            line: line.number,
            text: line.text.to_owned(),
        });
        match line.statement {
            Statement::Path(path) => self.path(unit, statement, path),
            Statement::Network { level, networks } => {
                let Some(level) = self.level(unit, &level, false) else {
                    return;
                };
                for network in networks {
                    self.network(statement, network, level);
                }
            }
            Statement::Levels(_) | Statement::Mode(_) | Statement::Include(_) => {}
        }
    }

    fn level(&mut self, unit: usize, word: &Spanned<&str>, neutral: bool) -> Option<u8> {
        if neutral && word.value == NEUTRAL {
            // Where a neutral object's level is asked for all the same (a
            // rename to its place), the top one refuses.
            return Some((self.levels.len() - 1) as u8);
        }
        let found = self.levels.iter().position(|level| level == word.value);
        if found.is_none() {
            let known = self.levels.iter().rev().map(String::as_str);
            let known = known.chain(neutral.then_some(NEUTRAL));
            let problem = Problem::Level {
                word: word.value.to_owned(),
                help: did_you_mean(word.value, "the levels are", known),
            };
            self.notes.push(Note::at(problem, unit, word.span.clone()));
        }
        found.and_then(|index| u8::try_from(index).ok())
    }

    fn path(&mut self, unit: usize, statement: usize, path: PathStatement<'_>) {
        let Some(level) = self.level(unit, &path.level, true) else {
            return;
        };
        let mut attrs: Attrs = path.attrs.iter().map(|attr| attr.value.1).collect();
        if path.level.value == NEUTRAL {
            attrs |= Attrs::NEUTRAL;
        }
        let kind = if path.child_of {
            Kind::ChildOf
        } else {
            Kind::Here
        };
        let home = path.path.value.home;
        lint::path(unit, &path, level, self.levels.len(), self.notes);
        let mut clash = None;
        for pattern in path.path.value.expand() {
            if let Some(reserved) = builtin::reserving(&pattern) {
                let problem = Problem::Reserved(reserved);
                self.notes
                    .push(Note::at(problem, unit, path.path.span.clone()));
                return;
            }
            let held = Held {
                rule: (level, attrs),
                statement,
                home,
            };
            match self.paths.entry((pattern, kind)) {
                Entry::Vacant(place) => {
                    place.insert(held);
                }
                Entry::Occupied(place) if place.get().statement == statement => {}
                Entry::Occupied(mut place) => {
                    let earlier = place.get();
                    let other_unit = self.statements[earlier.statement].unit != unit;
                    if other_unit || (earlier.home && !home) {
                        self.lost.push((earlier.statement, other_unit));
                        place.insert(held);
                    } else if earlier.home == home {
                        clash = Some(earlier.statement);
                    } else {
                        self.lost.push((statement, false));
                    }
                }
            }
        }
        if let Some(earlier) = clash {
            let note = Note::at(Problem::RuleTwice, unit, path.path.span.clone());
            self.notes
                .push(note.earlier(self.statements[earlier].clone(), "first here"));
        }
    }

    fn network(&mut self, statement: usize, network: Cidr, level: u8) {
        let place = self.statements[statement].clone();
        let held = Held {
            rule: level,
            statement,
            home: false,
        };
        if let Some(earlier) = self.networks.insert(network, held) {
            let other = &self.statements[earlier.statement];
            if other.unit == place.unit {
                let note = Note::at(Problem::NetworkTwice, place.unit, place.span);
                self.notes.push(note.earlier(other.clone(), "first here"));
            }
        } else if self.networks.len() == MAX_NETWORKS + 1 {
            self.notes
                .push(Note::at(Problem::Networks, place.unit, place.span));
        }
    }

    /// Drops what was overridden, adds what is built in, and puts all in the
    /// order of the map's text.
    fn finish(mut self, mode: Mode, levels_place: &Place) -> Option<Rules> {
        if !self.paths.contains_key(&(Vec::new(), Kind::Here)) {
            // With an error before, an absence may be its consequence.
            if !self.notes.iter().any(Note::is_error) {
                let top = self.levels.last().cloned().unwrap_or_default();
                let span = levels_place.span.clone();
                self.notes
                    .push(Note::at(Problem::NoRoot(top), levels_place.unit, span));
            }
            return None;
        }
        let mut used = vec![false; self.sources.len()];
        let paths = self.paths.values().map(|held| held.statement);
        for statement in paths.chain(self.networks.values().map(|held| held.statement)) {
            used[statement] = true;
        }
        self.note_shadowed(&used);
        if used.iter().filter(|used| **used).count() > MAX_RULES {
            self.notes.push(Note::at(
                Problem::Rules,
                levels_place.unit,
                levels_place.span.clone(),
            ));
            return None;
        }
        let mut sources = Vec::new();
        let mut index = vec![0u32; self.sources.len()];
        for (statement, source) in self.sources.into_iter().enumerate() {
            if used[statement] {
                index[statement] = sources.len() as u32; // below MAX_RULES
                sources.push(source);
            }
        }
        let mut paths: Vec<PathRule> = self
            .paths
            .into_iter()
            .map(|((pattern, kind), held)| PathRule {
                pattern,
                kind,
                level: held.rule.0,
                attrs: held.rule.1,
                source: index[held.statement],
            })
            .collect();
        paths.sort_by(|a, b| (a.source, &a.pattern).cmp(&(b.source, &b.pattern)));
        builtin::add(self.levels, &mut paths, &mut sources);
        let mut networks: Vec<_> = self
            .networks
            .into_iter()
            .map(|(network, held)| (network, held.rule, index[held.statement]))
            .collect();
        networks.sort_unstable();
        Some(Rules {
            mode,
            levels: self.levels.to_vec(),
            paths,
            networks,
            sources,
        })
    }

    /// Warns of rules that lost every place to others of their own file; an
    /// override by another file is what including is for.
    fn note_shadowed(&mut self, used: &[bool]) {
        let mut lost = std::mem::take(&mut self.lost);
        lost.sort_unstable();
        for losses in lost.chunk_by(|a, b| a.0 == b.0) {
            let statement = losses[0].0;
            if !used[statement] && losses.iter().all(|(_, other_unit)| !other_unit) {
                let place = &self.statements[statement];
                self.notes
                    .push(Note::at(Problem::Shadowed, place.unit, place.span.clone()));
            }
        }
    }
}
