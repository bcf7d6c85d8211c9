//! A map's text and that of all it includes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_bundle::limits::{MAX_INCLUDE_DEPTH, MAX_TEXT};
use tidegate_bundle::{Mode, Policy};

use super::Note;
use super::Problem;
use super::syntax::{self, Statement};
use crate::presets;
use crate::similar::did_you_mean;
use crate::text::{self, Unread};
use crate::words::Spanned;

/// One file or preset.
pub(super) struct Unit {
    /// What diagnostics and records call it.
    pub name: String,
    pub text: Arc<str>,
    origin: Origin,
}

impl Unit {
    fn of_text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: text.into(),
            origin: Origin::Text,
        }
    }
}

/// What tells two units apart, and what relative includes are relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Text,
    Preset(&'static str),
    File(PathBuf),
}

/// The map's units, each before those that include it: later rules override
/// earlier ones.
pub(super) struct Units {
    pub units: Vec<Unit>,
    /// The indices of `units` in the order their rules apply.
    pub order: Vec<usize>,
    pub notes: Vec<Note>,
    /// The units between the first and the one being read.
    open: Vec<usize>,
    bytes: usize,
}

impl Units {
    /// Reads a map given as text.
    pub fn of_text(name: &str, text: &str) -> Self {
        Self::of(|_| Ok(Unit::of_text(name, text)))
    }

    /// Reads a map file.
    pub fn of_file(path: &Path) -> Self {
        Self::of(|room| read(path, room))
    }

    /// Reads a preset.
    pub fn of_preset(name: &str) -> Self {
        Self::of(|_| preset(name, &presets::PRESETS))
    }

    /// What a policy was compiled from, as far as it still counts, and `text` as a map
    /// that includes it. Each statement keeps its file and line.
    pub fn of_policy(policy: &Policy, name: &str, text: &str) -> Self {
        let mut units = Self::empty();
        let levels: Vec<_> = policy.levels.iter().rev().map(String::as_str).collect();
        let mode = match policy.mode {
            Mode::Enforcing => "enforcing",
            Mode::Permissive => "permissive",
        };
        let head = format!("levels {}\nmode {mode}\n", levels.join(" > "));
        units.take(Unit::of_text(&policy.name, &head));
        let mut last = 0;
        let mut file: Option<(&str, String)> = None;
        for rule in policy.rules.iter().filter(|rule| rule.line > 0) {
            // a file's statements stand together, in its order
            let same = |(name, _): &(&str, String)| *name == rule.file && rule.line > last;
            if !file.as_ref().is_some_and(same) {
                if let Some((name, text)) = file.replace((&rule.file, String::new())) {
                    units.take(Unit::of_text(name, &text));
                }
                last = 1;
            }
            if let Some((_, text)) = &mut file {
                let gap = (rule.line - last) as usize;
                if text.len() + gap <= MAX_TEXT {
                    text.extend(std::iter::repeat_n('\n', gap));
                }
                text.push_str(&rule.text);
                last = rule.line;
            }
        }
        if let Some((name, text)) = file {
            units.take(Unit::of_text(name, &text));
        }
        units.take(Unit::of_text(name, text));
        units
    }

    fn empty() -> Self {
        Self {
            units: Vec::new(),
            order: Vec::new(),
            notes: Vec::new(),
            open: Vec::new(),
            bytes: 0,
        }
    }

    fn of(first: impl FnOnce(usize) -> Result<Unit, Problem>) -> Self {
        let mut units = Self::empty();
        match first(MAX_TEXT) {
            Ok(unit) => units.take(unit),
            Err(problem) => units.notes.push(Note::nowhere(problem)),
        }
        units
    }

    /// Adds `unit`, what it includes before it.
    fn take(&mut self, unit: Unit) {
        let index = self.units.len();
        let text = Arc::clone(&unit.text);
        self.units.push(unit);
        self.bytes += text.len();
        if self.bytes > MAX_TEXT {
            self.notes.push(Note::at(Problem::TextSize, index, 0..0));
            return;
        }
        self.open.push(index);
        for line in syntax::parse(&text).0 {
            if let Statement::Include(what) = line.statement
                && let Err(problem) = self.include(index, &what)
            {
                self.notes.push(Note::at(problem, index, what.span));
            }
        }
        self.open.pop();
        self.order.push(index);
    }

    fn include(&mut self, from: usize, what: &Spanned<&str>) -> Result<(), Problem> {
        let word = what.value;
        let room = MAX_TEXT.saturating_sub(self.bytes);
        let unit = if word.contains('/') || word.ends_with(".plm") {
            match &self.units[from].origin {
                Origin::File(path) => {
                    let beside = path.parent().unwrap_or(Path::new("")).join(word);
                    read(&beside.components().collect::<PathBuf>(), room)?
                }
                Origin::Text | Origin::Preset(_) => return Err(Problem::IncludeFile),
            }
        } else {
            preset(word, &[&presets::PRESETS[..], &presets::FRAGMENTS].concat())?
        };
        let same = |index: &usize| self.units[*index].origin == unit.origin;
        if self.open.iter().any(same) {
            return Err(Problem::IncludeCycle(unit.name));
        }
        if (0..self.units.len()).any(|index| same(&index)) {
            return Ok(());
        }
        if self.open.len() >= MAX_INCLUDE_DEPTH {
            return Err(Problem::IncludeDepth);
        }
        self.take(unit);
        Ok(())
    }
}

fn preset(name: &str, known: &[presets::Preset]) -> Result<Unit, Problem> {
    match known.iter().find(|preset| preset.name == name) {
        Some(preset) => Ok(Unit {
            name: format!("{name}.plm"),
            text: preset.text.into(),
            origin: Origin::Preset(preset.name),
        }),
        None => Err(Problem::Preset {
            word: name.to_owned(),
            help: did_you_mean(
                name,
                "a file has a `/` in its path or ends in .plm; the presets are",
                known.iter().map(|preset| preset.name),
            ),
        }),
    }
}

/// Reads a map file of at most `room` bytes.
fn read(path: &Path, room: usize) -> Result<Unit, Problem> {
    match text::read(path, room) {
        Ok(text) => Ok(Unit {
            name: text.name,
            text: text.text.into(),
            origin: Origin::File(text.path),
        }),
        Err(Unread::Size) => Err(Problem::TextSize),
        Err(Unread::Why { path, why }) => Err(Problem::Unreadable { path, why }),
    }
}
