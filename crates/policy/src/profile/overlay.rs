//! Files of profiles with some of their text changed, where the parser finds all that they include.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

use super::{Source, Statement};

/// A directory as another one is, but for some files below it.
///
/// # Errors
///
/// If one of the two cannot be read or written.
pub fn overlay(from: &Path, to: &Path, files: &BTreeMap<&Path, String>) -> io::Result<()> {
    fs::create_dir(to)?;
    let concerns = |path: &Path| files.keys().any(|file| file.starts_with(path));
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let (path, here) = (entry.path(), to.join(entry.file_name()));
        match files.get(path.as_path()) {
            Some(_) => {}
            None if concerns(&path) => overlay(&path, &here, files)?,
            None => symlink(fs::canonicalize(&path).unwrap_or(path), here)?,
        }
    }
    for (file, text) in files {
        if file.parent() == Some(from) {
            fs::write(to.join(file.file_name().unwrap_or_default()), text)?;
        }
    }
    Ok(())
}

/// A file of profiles without some of its rules, and where it includes from.
pub(super) struct Without {
    pub file: PathBuf,
    pub base: PathBuf,
    /// Where both are, as long as they are wanted.
    _dir: TempDir,
}

impl Without {
    /// Copies what has to be another text. The lines stay where they were.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written, or if the parser would not find the copy of one.
    pub fn rules(
        file: &Path,
        base: &Path,
        source: &Source,
        rules: &[&Statement],
    ) -> io::Result<Self> {
        let mut texts: BTreeMap<&Path, String> = BTreeMap::new();
        for rule in rules {
            let path = rule.file.as_path();
            if path != file && !is_found(path, base, source) {
                return Err(io::Error::other(format!(
                    "{}:{}: a rule that cannot be enforced as it is written, and cannot be left out, \
                     as its file is not included from {}",
                    path.display(),
                    rule.line,
                    base.display()
                )));
            }
            let text = match texts.entry(path) {
                Entry::Occupied(held) => held.into_mut(),
                Entry::Vacant(place) => place.insert(fs::read_to_string(path)?),
            };
            blank(text, &rule.span)
                .ok_or_else(|| io::Error::other("a file changed while it was read"))?;
        }
        let dir = TempDir::new()?;
        let copied = dir.path().join("base");
        overlay(base, &copied, &texts)?;
        let file = match (file.strip_prefix(base), texts.get(file)) {
            (Ok(below), _) => copied.join(below),
            (Err(_), Some(text)) => {
                let beside = dir.path().join("own");
                fs::create_dir(&beside)?;
                let own = beside.join(file.file_name().unwrap_or_default());
                fs::write(&own, text)?;
                own
            }
            (Err(_), None) => file.to_owned(),
        };
        Ok(Without {
            file,
            base: copied,
            _dir: dir,
        })
    }
}

/// Whether a file is looked for below the base, by names alone.
fn is_found(path: &Path, base: &Path, source: &Source) -> bool {
    let below = path.strip_prefix(base);
    let is_plain = |below: &Path| {
        below
            .components()
            .all(|c| matches!(c, Component::Normal(_)))
    };
    below.is_ok_and(is_plain) && !source.elsewhere.iter().any(|file| file == path)
}

/// Puts blanks in the place of a rule; `None`: it does not stand there.
fn blank(text: &mut String, span: &Range<usize>) -> Option<()> {
    let kept = |byte| if byte == b'\n' { '\n' } else { ' ' };
    let blanks: String = text.get(span.clone())?.bytes().map(kept).collect();
    text.replace_range(span.clone(), &blanks);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    /// A base with a file of profiles `main`, which includes `abstractions/x`.
    fn base(main: &str) -> TempDir {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("abstractions")).unwrap();
        fs::write(dir.path().join("abstractions/x"), "network inet,\nunix,\n").unwrap();
        fs::write(dir.path().join("abstractions/y"), "mount,\n").unwrap();
        fs::write(dir.path().join("main"), main).unwrap();
        dir
    }

    /// The file and its base without the rules of a class.
    fn without(file: &Path, base: &Path, class: &str) -> io::Result<Without> {
        let source = source(file, base).unwrap();
        let of_class = |s: &&Statement| s.class == class;
        let rules: Vec<_> = source.statements.iter().filter(of_class).collect();
        assert!(!rules.is_empty());
        Without::rules(file, base, &source, &rules)
    }

    #[test]
    fn rules_are_gone_and_the_rest_stands_where_it_stood() {
        let main = "profile a {\n  include <abstractions/x>\n  network\n   inet6, signal,\n}\n";
        let dir = base(main);
        let copy = without(&dir.path().join("main"), dir.path(), "network").unwrap();
        let text = fs::read_to_string(&copy.file).unwrap();
        assert_eq!(text.lines().count(), main.lines().count());
        assert!(!text.contains("network") && text.contains(" signal,"));
        let x = fs::read_to_string(copy.base.join("abstractions/x")).unwrap();
        assert_eq!(x.trim_start_matches([' ', '\n']), "unix,\n");
        let y = fs::read_to_string(copy.base.join("abstractions/y")).unwrap();
        assert_eq!(y, "mount,\n");
        // what was read is as it was
        assert_eq!(fs::read_to_string(dir.path().join("main")).unwrap(), main);
    }

    #[test]
    fn a_file_beside_the_base_has_a_copy_of_its_own() {
        let dir = base("");
        let other = TempDir::new().unwrap();
        let file = other.path().join("b");
        fs::write(
            &file,
            "profile b {\n  include <abstractions/y>\n  unix,\n}\n",
        )
        .unwrap();
        let copy = without(&file, dir.path(), "unix").unwrap();
        assert_ne!(copy.file, file);
        assert!(!fs::read_to_string(&copy.file).unwrap().contains("unix"));
        assert!(copy.base.join("abstractions/y").exists());
        // one that is as it was is read where it is
        let copy = without(&file, dir.path(), "mount").unwrap();
        assert_eq!(copy.file, file);
    }

    #[test]
    fn a_rule_that_the_parser_would_still_find_is_an_error() {
        let dir = base("");
        let x = dir.path().join("abstractions/x");
        let main = dir.path().join("main");
        for include in [
            format!("\"{}\"", x.display()),
            "<abstractions/../abstractions/x>".into(),
        ] {
            fs::write(&main, format!("profile a {{\n  include {include}\n}}\n")).unwrap();
            let error = without(&main, dir.path(), "network").map(drop).unwrap_err();
            assert!(error.to_string().contains("cannot be left out"), "{error}");
        }
    }
}
