//! What a log says of how many checks passed, and which.

use serde::Serialize;

/// How many checks passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// So many passed.
    pub passed: u64,
    /// So many failed.
    pub failed: u64,
}

/// A single check, as far as a log names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// Its name or its words.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// How long it took, where that is known: in a machine, since the check before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The counts of a log: the last `N passed, N failed`, or all that test programs say (`test result: …`) added up.
pub fn counts(log: &str) -> Counts {
    let mut told = None;
    let mut summed = None;
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("test result: ") {
            let sum: &mut Counts = summed.get_or_insert_default();
            sum.passed += before(rest, " passed").unwrap_or(0);
            sum.failed += before(rest, " failed").unwrap_or(0);
        } else if let Some(counts) = closing(line) {
            told = Some(counts);
        }
    }
    told.or(summed).unwrap_or_default()
}

/// The closing line of a part, `N passed, N failed`.
fn closing(line: &str) -> Option<Counts> {
    let (passed, rest) = line.split_once(" passed, ")?;
    let failed = rest.strip_suffix(" failed")?;
    Some(Counts {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    })
}

/// The number before a word.
fn before(text: &str, word: &str) -> Option<u64> {
    let (head, _) = text.split_once(word)?;
    head.rsplit(' ').next()?.parse().ok()
}

/// The checks that a log names, by the lines of test programs (`test NAME ... ok`) and of scripts (`ok      WORDS`).
pub fn cases(log: &str) -> Vec<Case> {
    log.lines().filter_map(case).collect()
}

/// The check that a line names.
pub fn case(line: &str) -> Option<Case> {
    let case = |name: &str, passed| {
        Some(Case {
            name: name.trim().to_owned(),
            passed,
            seconds: None,
        })
    };
    if let Some(name) = line.strip_prefix("ok      ") {
        return case(name, true);
    }
    if let Some(name) = line.strip_prefix("FAILED  ") {
        return case(name, false);
    }
    let (name, end) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    match end {
        "ok" => case(name, true),
        "FAILED" => case(name, false),
        _ => None,
    }
}

/// Whether a line tells of something that failed.
pub fn tells_failure(line: &str) -> bool {
    ["FAIL", "panicked", "NOT AS PROMISED"]
        .iter()
        .any(|word| line.contains(word))
        || line.starts_with("error")
        // the lab tells so what a machine's kernel complained of
        || line.starts_with("kernel: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_test_programs_are_added_up() {
        let log = "test result: ok. 3 passed; 0 failed; 0 ignored\nx\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        let all = Counts {
            passed: 4,
            failed: 2,
        };
        assert_eq!(counts(log), all);
    }

    #[test]
    fn the_last_closing_line_counts() {
        let log = "1 passed, 0 failed\ntest result: ok. 3 passed; 0 failed\n12 passed, 1 failed\nand 3 passed, 0 failed\n";
        let last = Counts {
            passed: 12,
            failed: 1,
        };
        assert_eq!(counts(log), last);
        assert_eq!(counts("nothing"), Counts::default());
    }

    #[test]
    fn checks_are_named() {
        let log = "ok      cat → 0 /x/\nFAILED  ls → 1\n        what it said\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored\n";
        let found: Vec<_> = cases(log).into_iter().map(|c| (c.name, c.passed)).collect();
        let named = [
            ("cat → 0 /x/", true),
            ("ls → 1", false),
            ("a::b", true),
            ("c", false),
        ];
        assert_eq!(found, named.map(|(n, p)| (n.to_owned(), p)));
    }
}
