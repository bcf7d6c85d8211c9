//! Did you mean …?

/// Returns the word of `known` that is closest to `word`, if any is close.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, known)| *distance <= known.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A help text: the closest of `known`, or all of them.
pub(crate) fn did_you_mean<'k>(
    word: &str,
    what: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> String {
    match closest(word, known.clone()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => {
            let known: Vec<_> = known
                .into_iter()
                .map(|known| format!("`{known}`"))
                .collect();
            format!("{what}: {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_and_another_word_is_not() {
        let known = ["creator", "lowwrite", "lownoopen"];
        assert_eq!(
            did_you_mean("lowrite", "attributes", known),
            "did you mean `lowwrite`?"
        );
        assert_eq!(
            did_you_mean("banana", "attributes", known),
            "attributes: `creator`, `lowwrite`, `lownoopen`"
        );
        assert_eq!(closest("x", ["low"]), None);
    }
}
