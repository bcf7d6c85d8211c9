//! File contexts in the `te` section.
//!
//! As with profiles, automata are most of it.

use super::section::{Reader, Room, Writer};
use super::{BundleError, automaton};
use crate::limits::{
    MAX_BUNDLE, MAX_CONTEXT, MAX_FILE_AUTOMATA, MAX_FILE_CONTEXTS_LINES, MAX_FILES_OF_CONTEXTS,
    MAX_LINE,
};
use crate::te::contexts::{Automaton, FileContexts, Said};

/// The section that they are a part of.
const SECTION: &str = "te";

/// File contexts as a part of the section.
pub(super) fn write(contexts: &FileContexts) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    out.list(&contexts.contexts);
    out.list(&contexts.files);
    out.list(&contexts.lines);
    out.value(&contexts.automata.len());
    for automaton in &contexts.automata {
        automaton::write(&mut out, automaton);
    }
    out.0
}

impl FileContexts {
    /// The form that they have in a bundle.
    pub fn to_bytes(&self) -> Vec<u8> {
        write(self)
    }

    /// Reads that form, from bytes that may be anything.
    ///
    /// # Errors
    ///
    /// The first thing wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<FileContexts, BundleError> {
        let mut reader = Reader::new(bytes, SECTION);
        let contexts = reader.file_contexts()?;
        reader.finish()?;
        Ok(contexts)
    }
}

impl Reader<'_> {
    /// Reads file contexts, and checks them.
    pub fn file_contexts(&mut self) -> Result<FileContexts, BundleError> {
        let contexts = FileContexts {
            contexts: self.list("contexts of files", MAX_FILE_CONTEXTS_LINES)?,
            files: self.list("files of file contexts", MAX_FILES_OF_CONTEXTS)?,
            lines: self.list("lines of file contexts", MAX_FILE_CONTEXTS_LINES)?,
            automata: {
                let count = self.count("automata of file contexts", MAX_FILE_AUTOMATA)?;
                // in memory they are as long as here
                let mut room = Room::new("bytes of automata", MAX_BUNDLE);
                (0..count)
                    .map(|_| self.answering_automaton(&mut room, |_| 0))
                    .collect::<Result<_, _>>()?
            },
        };
        check(&contexts).map_err(BundleError::FileContexts)?;
        Ok(contexts)
    }
}

/// What of file contexts cannot be, if anything.
fn check(contexts: &FileContexts) -> Result<(), &'static str> {
    let is_text =
        |max| move |text: &String| (1..=max).contains(&text.len()) && !text.contains('\0');
    if !contexts.contexts.iter().all(is_text(MAX_CONTEXT)) {
        return Err("a context that no file can have");
    }
    if contexts.files.iter().any(|name| name.len() > MAX_LINE) {
        return Err("an overlong file name");
    }
    let lines = contexts.lines.iter();
    for line in lines {
        if usize::from(line.file) >= contexts.files.len() {
            return Err("a line of a file that is not there");
        }
        if line
            .context
            .is_some_and(|at| usize::from(at) >= contexts.contexts.len())
        {
            return Err("a line with a context that is not there");
        }
    }
    contexts
        .automata
        .iter()
        .try_for_each(|automaton| check_automaton(automaton, contexts))
}

fn check_automaton(automaton: &Automaton, contexts: &FileContexts) -> Result<(), &'static str> {
    automaton.check()?;
    if *automaton.nothing() != [Said::default(); 7] {
        return Err("an answer in state 0");
    }
    let said = automaton.answers.iter().flatten();
    for said in said {
        match said.line() {
            None if said.rank > 0 || said.none > 0 => return Err("an answer of no line"),
            Some(line) if usize::from(line) >= contexts.lines.len() => {
                return Err("an answer of a line that is not there");
            }
            Some(_) if said.rank == 0 => return Err("an answer that overrides nothing"),
            _ => {}
        }
    }
    Ok(())
}
