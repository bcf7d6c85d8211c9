//! What lines say of a path, and how what some say is overridden by what others say.
//!
//! The rule is that of `lookup_check_node()` in libselinux 3.8. Lines for one path alone count before any pattern, and of
//! two such lines one for the file's kind before one for all kinds, else the first. Patterns are asked from the node with
//! most stems to the one with least, and the last line that matches counts; but a `<<none>>` ends the search when it is
//! met, even though a later line may match in a node that was not asked yet.

use serde::{Deserialize, Serialize};

/// What some lines say of one kind of file.
///
/// It is all that has to be known of them to tell what they and others say together. What the last automaton says, over
/// what those before it say, is the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Said {
    /// The line that counts, by its number in [`FileContexts::lines`](super::contexts::FileContexts::lines), from 1; 0 if none matches.
    pub line: u16,
    /// The highest rank of a line that matches; 0 without one. Lines of a higher rank are asked before those of a lower
    /// one: it is one more than the number of stems, and 5 for a line of one path.
    pub rank: u8,
    /// The highest rank of a `<<none>>` that no later line hides, as none is asked before it; 0 without one.
    pub none: u8,
}

impl Said {
    /// What is said when these lines stand behind others, of which this is said.
    pub fn over(self, before: Said) -> Said {
        // none of these is asked then
        let ends = before.none > self.rank;
        let is_by_before = self.rank == 0 || ends;
        Said {
            line: if is_by_before { before.line } else { self.line },
            rank: self.rank.max(before.rank),
            none: if ends { before.none } else { self.none },
        }
    }

    /// The line that counts, from 0.
    pub fn line(self) -> Option<u16> {
        self.line.checked_sub(1)
    }
}
