//! The catalogue of bypasses, for the tests of those who play what it names.

const BYPASSES: &str = include_str!("../../../docs/dev/bypasses.md");

/// Checks that each row of a section, by its heading, names what plays it, and that all of that is known.
///
/// # Panics
///
/// If there is no such section, it has no rows, or something that a row names is not played.
pub fn are_played(heading: &str, is_played: impl Fn(&str) -> bool) {
    let section = BYPASSES.split("\n## ").find_map(|section| {
        let (first, rest) = section.split_once('\n')?;
        (first == heading).then_some(rest)
    });
    let section = section.unwrap_or_else(|| panic!("there is no section `{heading}`"));
    let mut rows = section
        .lines()
        .filter(|line| line.starts_with("| B"))
        .peekable();
    assert!(rows.peek().is_some(), "`{heading}` has no rows");
    for row in rows {
        let played = row.trim_matches('|').split('|').nth(3).unwrap_or_default();
        let mut names = played.split('`').skip(1).step_by(2).peekable();
        assert!(names.peek().is_some(), "nothing plays {row}");
        for name in names {
            assert!(is_played(name), "nothing plays `{name}`: {row}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_name_of_a_section_is_asked_for() {
        let names = RefCell::new(Vec::new());
        are_played("Opening and attributes", |name| {
            names.borrow_mut().push(name.to_owned());
            true
        });
        let names = names.into_inner();
        assert!(names.contains(&"opath-reopen".into()));
        assert!(!names.contains(&"hard-link-up".into()));
    }

    #[test]
    #[should_panic(expected = "nothing plays `opath-reopen`")]
    fn what_nobody_plays_is_told() {
        are_played("Opening and attributes", |_| false);
    }
}
