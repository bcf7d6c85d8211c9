//! File contexts that no compiler makes.

use super::te_contexts::write;
use super::{BundleError, made};
use crate::limits::{MAX_CONTEXT, MAX_LINE};
use crate::te::contexts::{Automaton, FileContexts, Kind, Said};

fn contexts() -> FileContexts {
    made::file_contexts("/.* u:r:default\n/a(/.*)? -d u:r:a\n/a/none -- <<none>>\n")
}

/// What the reader says is wrong with file contexts changed by `change`.
fn changed(change: impl FnOnce(&mut FileContexts)) -> &'static str {
    let mut contexts = contexts();
    change(&mut contexts);
    match FileContexts::from_bytes(&contexts.to_bytes()) {
        Err(BundleError::FileContexts(what)) => what,
        other => panic!("{other:?}"),
    }
}

fn automaton(change: impl FnOnce(&mut Automaton)) -> &'static str {
    changed(|contexts| change(&mut contexts.automata[0]))
}

#[test]
fn file_contexts_are_kept() {
    let contexts = contexts();
    assert_eq!(contexts.automata.len(), 1);
    let read = FileContexts::from_bytes(&write(&contexts)).unwrap();
    assert_eq!(read, contexts);
    assert_eq!(read.lookup(b"/a/b", Kind::Directory).context, Some("u:r:a"));
    assert_eq!(
        FileContexts::from_bytes(&FileContexts::default().to_bytes()),
        Ok(FileContexts::default())
    );
}

#[test]
fn what_is_cut_off_or_goes_on_is_refused() {
    let mut bytes = contexts().to_bytes();
    for end in 0..bytes.len() {
        assert!(FileContexts::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    bytes.push(0);
    let trailing = BundleError::SectionTrailing {
        section: "te",
        bytes: 1,
    };
    assert_eq!(FileContexts::from_bytes(&bytes), Err(trailing));
}

#[test]
fn counts_beyond_the_limits_are_refused_before_anything_is_read() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let head = [&[0, 0, 0, 1][..], &[0; 256], &[1, 0]].concat();
    for (before, what, max) in [
        (&[][..], "contexts of files", 65_535),
        (&[0], "files of file contexts", 3),
        (&[0, 0], "lines of file contexts", 65_535),
        (&[0, 0, 0], "automata of file contexts", 8),
        (&head, "states of an automaton", 65_536),
        (
            &[&head[..], &[1], &[0; 4]].concat(),
            "answers of an automaton",
            65_536,
        ),
    ] {
        let count = usize::MAX;
        assert_eq!(
            FileContexts::from_bytes(&[before, &huge].concat()),
            Err(BundleError::Limit { what, count, max })
        );
    }
    // within the limit, but not there: 65,535 classes of 65,536 states
    let head = [
        &[0, 0, 0, 1][..],
        &[0; 256],
        &[0xff, 0xff, 3, 0, 0x80, 0x80, 4],
    ]
    .concat();
    let malformed = BundleError::Malformed {
        section: "te",
        what: "states",
    };
    assert_eq!(FileContexts::from_bytes(&head), Err(malformed));
}

#[test]
fn lines_and_texts() {
    let bad = "a context that no file can have";
    for context in [
        "".to_owned(),
        "a\0b".to_owned(),
        "x".repeat(MAX_CONTEXT + 1),
    ] {
        assert_eq!(changed(|c| c.contexts[0] = context), bad);
    }
    assert_eq!(
        changed(|c| c.files[0] = "x".repeat(MAX_LINE + 1)),
        "an overlong file name"
    );
    assert_eq!(
        changed(|c| c.lines[0].file = c.files.len() as u8),
        "a line of a file that is not there"
    );
    assert_eq!(
        changed(|c| c.lines[0].context = Some(c.contexts.len() as u16)),
        "a line with a context that is not there"
    );
}

#[test]
fn automata() {
    let empty = "an automaton without states or classes";
    let resized = |change: fn(&mut Automaton)| {
        automaton(|a| {
            change(a);
            a.next.resize(a.accepts.len() * usize::from(a.width), 0);
        })
    };
    assert_eq!(resized(|a| a.width = 0), empty);
    assert_eq!(resized(|a| a.width = 257), empty);
    assert_eq!(resized(|a| a.accepts.clear()), empty);
    assert_eq!(
        automaton(|a| a.classes[7] = a.width as u8),
        "a class that is not there"
    );
    let no_state = "a state that is not there";
    assert_eq!(automaton(|a| a.start = a.accepts.len() as u16), no_state);
    assert_eq!(
        automaton(|a| *a.next.last_mut().unwrap() = a.accepts.len() as u16),
        no_state
    );
    assert_eq!(automaton(|a| a.next[1] = 1), "a way out of state 0");
    assert_eq!(
        automaton(|a| a.accepts[1] = a.answers.len() as u16),
        "an answer that is not there"
    );
}

#[test]
fn answers() {
    let says = |said: Said| {
        automaton(move |a| {
            let last = a.answers.len() - 1;
            a.answers[last][3] = said;
        })
    };
    let said = |line, rank, none| Said { line, rank, none };
    assert_eq!(says(said(0, 1, 0)), "an answer of no line");
    assert_eq!(says(said(0, 0, 1)), "an answer of no line");
    assert_eq!(says(said(4, 1, 0)), "an answer of a line that is not there");
    assert_eq!(says(said(1, 0, 0)), "an answer that overrides nothing");
    assert_eq!(
        automaton(|a| a.accepts[0] = a.answers.len() as u16 - 1),
        "an answer in state 0"
    );
}
