//! File contexts in the `te` section.
//!
//! As with profiles, automata are most of it, and are written as they lie in memory: 16 bits for a state, little-endian.
//! Their sizes are checked against what is there before any is copied.

use super::BundleError;
use super::section::{Reader, Writer};
use crate::limits::{
    MAX_CONTEXT, MAX_FILE_AUTOMATA, MAX_FILE_CONTEXTS_LINES, MAX_FILES_OF_CONTEXTS, MAX_LINE,
    MAX_STATES,
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
        out.0.extend_from_slice(&automaton.classes[..]);
        out.value(&automaton.width);
        out.value(&automaton.start);
        out.value(&automaton.accepts.len());
        for number in automaton.next.iter().chain(&automaton.accepts) {
            out.0.extend_from_slice(&number.to_le_bytes());
        }
        out.list(&automaton.answers);
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
                (0..count)
                    .map(|_| self.file_automaton())
                    .collect::<Result<_, _>>()?
            },
        };
        check(&contexts).map_err(BundleError::FileContexts)?;
        Ok(contexts)
    }

    fn file_automaton(&mut self) -> Result<Automaton, BundleError> {
        let classes = Box::new(super::array(self.bytes("classes", 256)?));
        let width: u16 = self.value("width")?;
        let start = self.value("start")?;
        let states = self.count("states of an automaton", MAX_STATES)?;
        Ok(Automaton {
            classes,
            width,
            next: self.numbers("states", states * usize::from(width))?,
            accepts: self.numbers("states' answers", states)?,
            answers: self.list("answers of an automaton", MAX_STATES)?,
            start,
        })
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
    let width = usize::from(automaton.width);
    let states = automaton.accepts.len();
    if !(1..=256).contains(&width) || states == 0 {
        return Err("an automaton without states or classes");
    }
    if automaton
        .classes
        .iter()
        .any(|&class| usize::from(class) >= width)
    {
        return Err("a class that is not there");
    }
    let beyond = |&state: &u16| usize::from(state) >= states;
    if beyond(&automaton.start) || automaton.next.iter().any(beyond) {
        return Err("a state that is not there");
    }
    if automaton.next[..width].iter().any(|&state| state != 0) {
        return Err("a way out of state 0");
    }
    let answers = automaton.answers.len();
    if automaton
        .accepts
        .iter()
        .any(|&at| usize::from(at) >= answers)
    {
        return Err("an answer that is not there");
    }
    if automaton.answers[usize::from(automaton.accepts[0])] != [Said::default(); 7] {
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
