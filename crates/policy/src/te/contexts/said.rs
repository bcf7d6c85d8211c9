//! What single lines say, and what has not to be known of what several say.

use tidegate_bundle::te::contexts::Said;

use super::spec::Spec;

/// Returns what a line says, whose number counts from 0.
pub(super) fn by(number: usize, spec: &Spec) -> Said {
    Said {
        line: number as u16 + 1,
        rank: spec.rank,
        none: if spec.context.is_none() { spec.rank } else { 0 },
    }
}

/// Returns what is said, if no line before has a `<<none>>` of a higher rank than the one given: a rank above it hides no
/// more than it does.
pub(super) fn before_none(said: Said, highest: u8) -> Said {
    let rank = said.rank.min(highest.max(1));
    Said { rank, ..said }
}
