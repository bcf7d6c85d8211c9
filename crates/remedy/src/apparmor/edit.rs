//! Rules put into a file of profiles, and the change as diff(1) shows it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Lines of a file that are shown around a change.
const CONTEXT: usize = 3;

/// Rules that are put before the byte at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insert {
    /// The bracket that closes the profile; the end of a file that has no brackets.
    pub at: usize,
    /// A line each.
    pub rules: Vec<String>,
}

/// A file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file's path.
    pub file: PathBuf,
    /// As it is; `None`: it is not there yet.
    pub old: Option<String>,
    edits: Vec<Edit>,
}

/// Lines that take the place of others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    /// The first that is removed, or before which the new ones stand, from 0.
    line: usize,
    removed: usize,
    lines: Vec<String>,
}

impl Change {
    /// Of a file of profiles.
    pub fn new(file: PathBuf, old: Option<String>, mut inserts: Vec<Insert>) -> Change {
        inserts.sort_by_key(|insert| insert.at);
        let text = old.as_deref().unwrap_or_default();
        let mut edits = Vec::new();
        let mut left = &inserts[..];
        while let Some(first) = left.first() {
            let start = text[..first.at].rfind('\n').map_or(0, |at| at + 1);
            let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
            let of_line = left.iter().take_while(|insert| insert.at <= end).count();
            let (here, rest) = left.split_at(of_line);
            edits.push(edit(text, start, end, here));
            left = rest;
        }
        Change { file, old, edits }
    }

    /// The file with the rules.
    pub fn new_text(&self) -> String {
        let mut new = String::new();
        let mut next = 0;
        let old: Vec<&str> = self
            .old
            .iter()
            .flat_map(|old| old.split_inclusive('\n'))
            .collect();
        for edit in &self.edits {
            new.extend(old[next..edit.line].iter().copied());
            for line in &edit.lines {
                new.push_str(line);
                new.push('\n');
            }
            next = edit.line + edit.removed;
        }
        new.extend(old[next..].iter().copied());
        new
    }

    /// The change as patch(1) takes it, in the root directory with `-p1`.
    pub fn diff(&self) -> String {
        let mut out = String::new();
        // writing into a String does not fail
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let name = |side: &str, path: &Path| format!("{side}{}", path.display());
        match self.old {
            Some(_) => writeln!(out, "--- {}", name("a", &self.file))?,
            None => writeln!(out, "--- /dev/null")?,
        }
        writeln!(out, "+++ {}", name("b", &self.file))?;
        let old: Vec<&str> = self
            .old
            .iter()
            .flat_map(|old| old.split_inclusive('\n'))
            .collect();
        let (mut left, mut grown) = (&self.edits[..], 0);
        while let Some(first) = left.first() {
            // edits whose surroundings meet are one hunk
            let near = |pair: &[Edit]| pair[1].line <= pair[0].line + pair[0].removed + 2 * CONTEXT;
            let together = 1 + left.windows(2).take_while(|pair| near(pair)).count();
            let (hunk, rest) = left.split_at(together);
            let begin = first.line.saturating_sub(CONTEXT);
            let last = &hunk[together - 1];
            let end = (last.line + last.removed + CONTEXT).min(old.len());
            let added: usize = hunk.iter().map(|edit| edit.lines.len()).sum();
            let removed: usize = hunk.iter().map(|edit| edit.removed).sum();
            let new_len = end - begin + added - removed;
            writeln!(
                out,
                "@@ -{} +{} @@",
                range(begin, end - begin),
                range(begin + grown, new_len)
            )?;
            let mut next = begin;
            for edit in hunk {
                put(out, ' ', &old[next..edit.line])?;
                next = edit.line + edit.removed;
                put(out, '-', &old[edit.line..next])?;
                for line in &edit.lines {
                    writeln!(out, "+{line}")?;
                }
            }
            put(out, ' ', &old[next..end])?;
            grown = grown + added - removed;
            left = rest;
        }
        Ok(())
    }
}

/// What becomes of a line, from its beginning to its end.
fn edit(text: &str, start: usize, end: usize, inserts: &[Insert]) -> Edit {
    let line = text[..start].matches('\n').count();
    let indent: String = text[start..end]
        .chars()
        .take_while(|c| *c == ' ' || *c == '\t')
        .collect();
    if let [insert] = inserts
        && start + indent.len() == insert.at
    {
        // a bracket on a line of its own, or the end of a file of rules
        let is_block = insert.at < end;
        let rules = insert.rules.iter();
        return Edit {
            line,
            removed: 0,
            lines: rules
                .map(|rule| {
                    if is_block {
                        format!("{indent}  {rule}")
                    } else {
                        rule.clone()
                    }
                })
                .collect(),
        };
    }
    let mut lines = vec![String::new()];
    let mut next = start;
    for insert in inserts {
        lines
            .last_mut()
            .expect("a line")
            .push_str(text[next..insert.at].trim_end());
        lines.extend(insert.rules.iter().map(|rule| match insert.at < end {
            true => format!("{indent}  {rule}"),
            false => rule.clone(),
        }));
        if insert.at < end {
            lines.push(indent.clone());
        }
        next = insert.at;
    }
    lines.last_mut().expect("a line").push_str(&text[next..end]);
    Edit {
        line,
        removed: 1,
        lines,
    }
}

/// Lines of the old file; its last may lack its end.
fn put(out: &mut String, sign: char, lines: &[&str]) -> std::fmt::Result {
    for line in lines {
        match line.strip_suffix('\n') {
            Some(line) => writeln!(out, "{sign}{line}")?,
            None => writeln!(out, "{sign}{line}\n\\ No newline at end of file")?,
        }
    }
    Ok(())
}

/// Lines of a hunk: from which on, and how many. None are counted from the line before.
fn range(begin: usize, lines: usize) -> String {
    format!("{},{lines}", if lines == 0 { begin } else { begin + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: Option<&str>, inserts: &[(usize, &str)]) -> Change {
        let inserts = inserts.iter().map(|(at, rule)| Insert {
            at: *at,
            rules: vec![(*rule).to_owned()],
        });
        Change::new(
            "/etc/apparmor.d/x".into(),
            old.map(str::to_owned),
            inserts.collect(),
        )
    }

    #[test]
    fn a_rule_stands_before_the_bracket() {
        let old = "profile x {\n  /a r,\n}\n";
        let change = change(Some(old), &[(old.find('}').unwrap(), "/b r,")]);
        assert_eq!(change.new_text(), "profile x {\n  /a r,\n  /b r,\n}\n");
        assert_eq!(
            change.diff(),
            "--- a/etc/apparmor.d/x\n+++ b/etc/apparmor.d/x\n@@ -1,3 +1,4 @@\n profile x {\n   /a r,\n+  /b r,\n }\n"
        );
    }

    #[test]
    fn a_block_of_one_line_becomes_several() {
        let old = "profile x {\n  ^h { ptrace, }\n}";
        let inner = old.find('}').unwrap();
        let change = change(Some(old), &[(inner, "/b r,"), (old.len() - 1, "/c r,")]);
        assert_eq!(
            change.new_text(),
            "profile x {\n  ^h { ptrace,\n    /b r,\n  }\n  /c r,\n}"
        );
        assert!(
            change
                .diff()
                .ends_with(" }\n\\ No newline at end of file\n")
        );
    }

    #[test]
    fn a_file_of_rules_grows_at_its_end_and_a_new_one_begins() {
        let grown = change(Some("/a r,"), &[(5, "/b r,")]);
        assert_eq!(grown.new_text(), "/a r,\n/b r,\n");
        let grown = change(Some("/a r,\n"), &[(6, "/b r,")]);
        assert_eq!(grown.new_text(), "/a r,\n/b r,\n");
        let new = change(None, &[(0, "/b r,")]);
        assert_eq!(new.new_text(), "/b r,\n");
        assert_eq!(
            new.diff(),
            "--- /dev/null\n+++ b/etc/apparmor.d/x\n@@ -0,0 +1,1 @@\n+/b r,\n"
        );
    }

    #[test]
    fn far_changes_are_hunks_of_their_own() {
        let old: String = (0..30).map(|n| format!("l{n}\n")).collect();
        let change = change(Some(&old), &[(0, "a"), (old.find("l20").unwrap(), "b")]);
        let diff = change.diff();
        assert!(diff.contains("@@ -1,3 +1,4 @@"), "{diff}");
        assert!(diff.contains("@@ -18,6 +19,7 @@"), "{diff}");
    }
}
