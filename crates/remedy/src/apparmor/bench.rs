//! Profiles with rules added, compiled by `apparmor_parser` as they would be.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use thiserror::Error;
use tidegate_bundle::profile::ProfileSet;
use tidegate_policy::profile::{
    self, Block, LinkError, Parsed, Parser, Source, Statement, overlay, source,
};

use super::edit::{Change, Insert};
use super::need::Need;
use super::verdict::is_for;

/// The profiles' files, what they say, and what it compiles to.
pub struct Bench {
    parser: Parser,
    parsed: Vec<Parsed>,
    sources: Vec<Source>,
    /// The profiles as they are.
    pub set: ProfileSet,
}

/// Why profiles cannot be looked at.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A file of theirs cannot be read.
    #[error("cannot read {}: {source}", .file.display())]
    Unreadable {
        /// The file's path.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// They do not go together.
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Rules by the profile that they are for.
pub type Added = BTreeMap<String, Vec<String>>;

impl Bench {
    /// For profiles that this compiler compiled, by paths that begin at the root.
    ///
    /// # Errors
    /// If a file of theirs cannot be read, or they are no set.
    pub fn new(parser: Parser, parsed: Vec<Parsed>) -> Result<Bench, BenchError> {
        let read = |of: &Parsed| {
            source(&of.file, &parser.base).map_err(|source| BenchError::Unreadable {
                file: of.file.clone(),
                source,
            })
        };
        let sources = parsed.iter().map(read).collect::<Result<_, _>>()?;
        let set = profile::link(&parsed, &[])?;
        Ok(Bench {
            parser,
            parsed,
            sources,
            set,
        })
    }

    /// The compiler, where profiles include from this directory.
    fn parser(&self, base: &Path) -> Parser {
        Parser {
            base: base.to_owned(),
            ..self.parser.clone()
        }
    }

    /// Where a profile stands, and the number of the file that is compiled.
    fn block(&self, profile: &str) -> Option<(usize, &Block)> {
        let files = self.sources.iter().enumerate();
        let mut blocks = files.flat_map(|(at, s)| s.blocks.iter().map(move |block| (at, block)));
        blocks.find(|(_, block)| block.profile == profile)
    }

    /// The file that a profile's new rules belong in: what it alone includes of `local/`, or its own.
    pub fn file_for(&self, profile: &str) -> Option<&Path> {
        let (_, block) = self.block(profile)?;
        Some(self.local(block).unwrap_or(&block.file))
    }

    fn local<'s>(&'s self, block: &'s Block) -> Option<&'s Path> {
        let mut all = self.sources.iter().flat_map(|s| &s.blocks);
        let is_file =
            |local: &&PathBuf| !local.is_dir() && local.parent().is_some_and(Path::is_dir);
        let mine = block.locals.iter().find(is_file)?;
        let alone = all.all(|other| other.profile == block.profile || !other.locals.contains(mine));
        alone.then_some(mine)
    }

    /// The files with rules added.
    pub fn changes(&self, added: &Added) -> io::Result<Vec<Change>> {
        let mut inserts: BTreeMap<&Path, Vec<Insert>> = BTreeMap::new();
        let mut olds: BTreeMap<&Path, Option<String>> = BTreeMap::new();
        for (profile, rules) in added.iter().filter(|(_, rules)| !rules.is_empty()) {
            let Some((_, block)) = self.block(profile) else {
                continue;
            };
            let local = self.local(block);
            let file = local.unwrap_or(&block.file);
            let old = match fs::read_to_string(file) {
                Ok(text) => Some(text),
                Err(e) if e.kind() == io::ErrorKind::NotFound && local.is_some() => None,
                Err(e) => return Err(e),
            };
            let end = old.as_ref().map_or(0, String::len);
            inserts.entry(file).or_default().push(Insert {
                at: if local.is_some() { end } else { block.end },
                rules: rules.clone(),
            });
            olds.insert(file, old);
        }
        let each = inserts.into_iter().map(|(file, inserts)| {
            let old = olds.remove(file).flatten();
            Change::new(file.to_owned(), old, inserts)
        });
        Ok(each.collect())
    }

    /// What the profiles are with rules added; or why they cannot be.
    pub fn with(&self, added: &Added) -> Result<ProfileSet, String> {
        let failed = |e: io::Error| e.to_string();
        let changes = self.changes(added).map_err(failed)?;
        let dir = TempDir::new().map_err(failed)?;
        let base = dir.path().join("base");
        let files = changes
            .iter()
            .map(|c| (c.file.as_path(), c.new_text()))
            .collect();
        overlay(&self.parser.base, &base, &files).map_err(failed)?;
        let concerned: BTreeSet<usize> = added
            .keys()
            .filter_map(|profile| Some(self.block(profile)?.0))
            .collect();
        let mut parsed = self.parsed.clone();
        for at in concerned {
            let file = &self.parsed[at].file;
            let other = match file.strip_prefix(&self.parser.base) {
                Ok(below) => base.join(below),
                Err(_) => match files.get(file.as_path()) {
                    Some(text) => {
                        let name = file.file_name().unwrap_or(OsStr::new("profile"));
                        let other = dir.path().join(name);
                        fs::write(&other, text).map_err(failed)?;
                        other
                    }
                    None => file.clone(),
                },
            };
            let compiled = self.parser(&base).parse(&other);
            let compiled = compiled.map_err(|e| {
                let text = e.to_string();
                let text = text.replace(&*other.to_string_lossy(), &file.to_string_lossy());
                // the first line is the file's
                let said = text
                    .lines()
                    .skip(1)
                    .filter(|line| !line.starts_with("Warning"));
                let said = said.collect::<Vec<_>>().join("; ");
                format!("apparmor_parser does not compile it: {said}")
            })?;
            parsed[at].profiles = compiled.into_iter().flat_map(|p| p.profiles).collect();
        }
        profile::link(&parsed, &[]).map_err(|e| e.to_string())
    }

    /// The `deny` that keeps a profile from what is needed, whatever else allows it.
    pub fn denies(&self, need: &Need) -> Option<&Statement> {
        let (at, _) = self.block(&need.profile)?;
        let all = self.sources[at].statements.iter();
        let denies: Vec<&Statement> = all
            .filter(|s| s.profile == need.profile)
            .filter(|s| s.text.split_whitespace().any(|word| word == "deny"))
            .collect();
        if denies.is_empty() {
            return None;
        }
        // what each would allow if it allowed it says what it is about
        let file = &self.parsed[at].file;
        let text = fs::read_to_string(file).ok()?;
        let own = self.sources[at].blocks.iter().filter(|b| b.file == *file);
        let mut probe = text[..own.map(|block| block.begin).min()?].to_owned();
        for (number, deny) in denies.iter().enumerate() {
            probe.push_str(&format!(
                "\nprofile probe{number} {{\n  {},\n}}\n",
                allowing(&deny.text)
            ));
        }
        let dir = TempDir::new().ok()?;
        let file = dir.path().join("probe");
        fs::write(&file, probe).ok()?;
        let parsed = self.parser.parse(&file).ok()?;
        let set = profile::link(&parsed, &[]).ok()?;
        let mut each = denies.into_iter().enumerate();
        let found = each.find(|(number, _)| is_for(&set, &format!("probe{number}"), need));
        found.map(|(_, deny)| deny)
    }
}

/// What a rule that denies would be if it allowed.
fn allowing(rule: &str) -> String {
    let words = rule
        .split(' ')
        .filter(|word| !matches!(*word, "audit" | "deny"));
    let word = |word: &str| match word.chars().all(|c| "rwaklmx".contains(c)) {
        // a rule that allows an execution says where it leads
        true => word.replace('x', "ix"),
        false => word.to_owned(),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}
