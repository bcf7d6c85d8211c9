//! File contexts, as text and as a bundle has them.

use tidegate_bundle::te::contexts::{FileContexts, Kind, Said};
use tidegate_policy::te::contexts::{self, Text, Texts};

/// Compiles any text as file contexts, and as substitutions.
///
/// # Panics
///
/// If a finding cannot be shown, or what was compiled does not come back from a bundle.
pub fn compile(bytes: &[u8]) {
    let text = |name: &str| Text {
        name: name.into(),
        text: String::from_utf8_lossy(bytes).into_owned(),
    };
    let texts = [
        Texts {
            policy: text("file_contexts"),
            ..Texts::default()
        },
        Texts {
            policy: Text {
                name: "file_contexts".into(),
                text: "/a(/.*)? u:r:t\n".into(),
            },
            subs: text("file_contexts.subs"),
            ..Texts::default()
        },
    ];
    for texts in texts {
        match contexts::compile(&texts) {
            Ok(contexts) => {
                walk(&contexts, bytes);
                let read = FileContexts::from_bytes(&contexts.to_bytes());
                assert_eq!(read, Ok(contexts));
            }
            Err(errors) => {
                assert!(!errors.0.is_empty());
                for finding in errors.0 {
                    assert!(finding.to_string().starts_with("file_contexts"));
                }
            }
        }
    }
}

/// Reads any bytes as a bundle's file contexts.
///
/// # Panics
///
/// If what was accepted cannot be walked.
pub fn read(bytes: &[u8]) {
    if let Ok(contexts) = FileContexts::from_bytes(bytes) {
        walk(&contexts, bytes);
    }
}

/// Walks file contexts as the kernel does.
fn walk(contexts: &FileContexts, bytes: &[u8]) {
    for automaton in &contexts.automata {
        let width = usize::from(automaton.width);
        let mut state = usize::from(automaton.start);
        for &byte in b"/usr/a\0".iter().chain(bytes) {
            let class = usize::from(automaton.classes[usize::from(byte)]);
            let next = usize::from(automaton.next[state * width + class]);
            assert!(state != 0 || next == 0);
            state = next;
            let said = automaton.answers[usize::from(automaton.accepts[state])];
            assert!(state != 0 || said == [Said::default(); 7]);
        }
    }
    for kind in Kind::ALL {
        contexts.lookup(bytes, kind);
    }
}

/// File contexts as a bundle has them.
///
/// # Panics
///
/// If they do not compile.
pub fn good() -> Vec<u8> {
    let text = "/.* u:r:t\n/a(/.*)? -d u:r:a\n/(a|b)[^/]*/c <<none>>\n/a/b -- u:r:b:s0\n";
    let policy = Text {
        name: "file_contexts".into(),
        text: text.into(),
    };
    let texts = Texts {
        policy,
        ..Texts::default()
    };
    contexts::compile(&texts).expect("they compile").to_bytes()
}
