//! A capability file's text and that of all it includes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_bundle::limits::{MAX_INCLUDE_DEPTH, MAX_TEXT};

use super::syntax::{self, Statement};
use super::{CapsProblem as Problem, Note};
use crate::text::{self, Unread};

/// One file.
pub(super) struct Unit {
    /// What diagnostics and records call it.
    pub name: String,
    pub text: Arc<str>,
    /// Its canonical path; none for what is no file.
    path: Option<PathBuf>,
    /// What relative includes are relative to.
    beside: PathBuf,
}

/// The files, each before those that it includes, once.
#[derive(Default)]
pub(super) struct Units {
    pub units: Vec<Unit>,
    pub notes: Vec<Note>,
    /// The units between the first and the one being read.
    open: Vec<usize>,
    bytes: usize,
}

impl Units {
    /// Reads a file given as text.
    pub fn of_text(name: &str, text: &str) -> Self {
        let mut units = Self::default();
        units.take(Unit {
            name: name.to_owned(),
            text: text.into(),
            path: None,
            beside: PathBuf::new(),
        });
        units
    }

    /// Reads a file.
    pub fn of_file(path: &Path) -> Self {
        let mut units = Self::default();
        match read(path, MAX_TEXT) {
            Ok(unit) => units.take(unit),
            Err(problem) => units.notes.push(Note::nowhere(problem)),
        }
        units
    }

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
                && let Err(problem) = self.include(index, what.value)
            {
                self.notes.push(Note::at(problem, index, what.span));
            }
        }
        self.open.pop();
    }

    fn include(&mut self, from: usize, what: &str) -> Result<(), Problem> {
        let from = &self.units[from];
        if from.path.is_none() {
            return Err(Problem::IncludeFile);
        }
        let path: PathBuf = from.beside.join(what).components().collect();
        let unit = read(&path, MAX_TEXT.saturating_sub(self.bytes))?;
        let same = |index: &usize| self.units[*index].path == unit.path;
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

fn read(path: &Path, room: usize) -> Result<Unit, Problem> {
    match text::read(path, room) {
        Ok(text) => Ok(Unit {
            name: text.name,
            text: text.text.into(),
            path: Some(text.path),
            beside: path.parent().unwrap_or(Path::new("")).to_owned(),
        }),
        Err(Unread::Size) => Err(Problem::TextSize),
        Err(Unread::Why { path, why }) => Err(Problem::Unreadable { path, why }),
    }
}
