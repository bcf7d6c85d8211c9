//! What a rule says beside its level.

use bitflags::bitflags;
use serde::{Deserialize, Serialize};

bitflags! {
    /// A rule's attributes, as the kernel sees them.
    ///
    /// Each covers what `docs/reference/map-language.md` says of it; the compiler has
    /// already cut them to the path itself ([`Node::own`](crate::Node::own)) or
    /// to what is below it ([`Node::below`](crate::Node::below)).
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Attrs: u16 {
        /// Any level may create in this directory; a new child has the lower of
        /// its creator's level and its rule's.
        const CREATOR = 1;
        /// Any level may modify this object.
        const LOWWRITE = 2;
        /// A lower subject may not open this object, for reading either.
        const LOWNOOPEN = 4;
        /// This program is never demoted.
        const NODEMOTE = 8;
        /// This program is not demoted by the network.
        const NONETDEMOTE = 16;
        /// What this program is refused is recorded and let through.
        const PERMISSIVE = 32;
        /// This object neither demotes nor refuses.
        const NEUTRAL = 64;
        /// A rule names this very path, its last component written out, rather
        /// than a rule further up or a `*` reaching it. Only in
        /// [`Node::own`](crate::Node::own).
        const EXPLICIT = 128;
    }
}

impl Attrs {
    /// What a rule without `child-of` says of the things below its path:
    /// `lowwrite` and the attributes of programs are the path's own.
    pub const INHERITED: Attrs = Attrs::CREATOR.union(Attrs::LOWNOOPEN).union(Attrs::NEUTRAL);

    /// Attributes that count only for a program at the top level.
    pub const TRUSTED: Attrs = Attrs::NODEMOTE.union(Attrs::NONETDEMOTE);

    /// The attributes a map may write, by their words.
    pub const WORDS: [(&'static str, Attrs); 6] = [
        ("creator", Attrs::CREATOR),
        ("lowwrite", Attrs::LOWWRITE),
        ("lownoopen", Attrs::LOWNOOPEN),
        ("nodemote", Attrs::NODEMOTE),
        ("nonetdemote", Attrs::NONETDEMOTE),
        ("permissive", Attrs::PERMISSIVE),
    ];
}
