//! A line of a file of contexts: what it matches, and where libselinux keeps it.

use regex_syntax::hir::Hir;
use tidegate_bundle::te::contexts::Kind;

/// How many components of a path libselinux sorts patterns by: `SPEC_NODE_MAX_DEPTH` of label_file.h.
const MAX_STEMS: u8 = 3;

/// A line that says what the context of some paths is.
#[derive(Debug, Clone)]
pub(super) struct Spec {
    /// The files that it is about; without a kind, all.
    pub kind: Option<Kind>,
    /// The number of its context; without one, `<<none>>`.
    pub context: Option<u16>,
    /// When it is asked: the highest rank first.
    pub rank: u8,
    /// What every path begins with that it is asked about.
    pub prefix: Vec<u8>,
    /// What it matches.
    pub hir: Hir,
}

impl Spec {
    /// A line for one path alone.
    pub fn literal(kind: Option<Kind>, context: Option<u16>, path: Vec<u8>) -> Spec {
        Spec {
            kind,
            context,
            rank: MAX_STEMS + 2,
            prefix: Vec::new(),
            hir: Hir::literal(path),
        }
    }

    /// A line whose text is a pattern.
    pub fn pattern(kind: Option<Kind>, context: Option<u16>, text: &[u8], hir: Hir) -> Spec {
        let (stems, prefix) = stems(text);
        Spec {
            kind,
            context,
            rank: stems + 1,
            prefix,
            hir,
        }
    }

    /// Whether it is about files of a kind.
    pub fn covers(&self, kind: Kind) -> bool {
        self.kind.is_none_or(|own| own == kind)
    }

    /// Whether it is for one path alone.
    pub fn is_literal(&self) -> bool {
        self.rank > MAX_STEMS + 1
    }
}

/// The lines' numbers by precedence: of two that match, the one that stands behind counts.
pub(super) fn precedence(specs: &[Spec]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..specs.len()).collect();
    order.sort_by_key(|&at| match specs[at].is_literal() {
        false => (0, at),
        true if specs[at].kind.is_none() => (1, usize::MAX - at),
        true => (2, usize::MAX - at),
    });
    order
}

/// The path that a text stands for, unless it has to be matched as a pattern (`regex_simplify()` of label_file.h). A
/// backslash before any other character than these makes a pattern of it.
pub(super) fn literal(text: &[u8]) -> Option<Vec<u8>> {
    const SPECIAL: &[u8] = b".^$?*+|[({])}";
    const ESCAPED: &[u8] = b"-_,";
    let mut path = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        path.push(match byte {
            b'\\' => *bytes
                .next()
                .filter(|byte| SPECIAL.contains(byte) || ESCAPED.contains(byte))?,
            byte if SPECIAL.contains(&byte) => return None,
            byte => byte,
        });
    }
    Some(path)
}

/// The number of a pattern's stems, and what a path has to begin with (`insert_spec()` of label_file.h): each stem between
/// slashes.
///
/// libselinux takes the text between slashes for a stem without regard to what the slashes mean, so `/a/b/?c` is asked
/// only below `/a/b/`, and the first character is taken for a slash.
fn stems(text: &[u8]) -> (u8, Vec<u8>) {
    let (mut stems, mut prefix, mut at) = (0, Vec::new(), 0);
    while stems < MAX_STEMS {
        let rest = text.get(at + 1..).unwrap_or_default();
        let Some(length) = rest.iter().position(|&byte| byte == b'/') else {
            break;
        };
        if length > 0 {
            let Some(stem) = literal(&rest[..length]) else {
                break;
            };
            prefix.push(b'/');
            prefix.extend(stem);
            stems += 1;
        }
        at += length + 1;
    }
    if stems > 0 {
        prefix.push(b'/');
    }
    (stems, prefix)
}
