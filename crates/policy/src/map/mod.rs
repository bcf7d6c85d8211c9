//! The compiler of the map language: text to [`Policy`]. `docs/reference/map-language.md` is its
//! reference.

mod builtin;
mod gather;
mod lint;
mod pattern;
mod problem;
mod read;
mod rules;
mod syntax;
mod trie;

use std::path::Path;
use std::sync::Arc;

use miette::{Diagnostic, NamedSource};
use thiserror::Error;
use tidegate_bundle::names::is_policy_name;
use tidegate_bundle::profile::ProfileSet;
use tidegate_bundle::{Network, Policy};

pub use self::pattern::PathProblem;
pub use self::problem::Problem;
use self::read::Units;
use crate::finding::{self, Labelled};

/// A problem in a map, with its place.
pub type Finding = finding::Finding<Problem>;
type Note = finding::Note<Problem>;

/// Why a map did not compile: every error found, and the warnings beside them.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{}", finding::summary("the map", .findings))]
pub struct MapErrors {
    /// What was found, by file and place.
    #[related]
    pub findings: Vec<Finding>,
}

impl Labelled for Problem {
    fn label(&self) -> &'static str {
        match self {
            Problem::RuleTwice
            | Problem::NetworkTwice
            | Problem::LevelsTwice
            | Problem::ModeTwice
            | Problem::LevelTwice(_) => "again here",
            Problem::Expected(..) => "expected here",
            Problem::NoRoot(_) => "these levels need a rule for `/`",
            _ => "here",
        }
    }
}

/// A map that compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The policy.
    pub policy: Policy,
    /// What it says that cannot mean what it seems to.
    pub warnings: Vec<Finding>,
}

/// Compiles a map file. The policy's name is the file's, without extension.
///
/// # Errors
///
/// Everything wrong in the file and in what it includes.
pub fn compile_file(path: &Path) -> Result<Compiled, MapErrors> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    compile(&name, Units::of_file(path))
}

/// Compiles a map given as text; it can include presets, but no files.
/// `name` is both the policy's name and the file's in diagnostics.
///
/// # Errors
///
/// Everything wrong in the text.
pub fn compile_str(name: &str, text: &str) -> Result<Compiled, MapErrors> {
    compile(name, Units::of_text(name, text))
}

/// Compiles a policy again with more statements, which override it as those of a file do that
/// includes what it was compiled from. `name` is the new policy's name, and what the
/// statements' file is called.
///
/// # Errors
///
/// Everything wrong in the statements.
pub fn extend(policy: &Policy, name: &str, statements: &str) -> Result<Compiled, MapErrors> {
    compile(name, Units::of_policy(policy, name, statements))
}

/// Compiles one of [`PRESETS`](crate::PRESETS).
///
/// # Errors
///
/// If there is no preset of that name.
pub fn compile_preset(name: &str) -> Result<Compiled, MapErrors> {
    compile(name, Units::of_preset(name))
}

fn compile(name: &str, mut units: Units) -> Result<Compiled, MapErrors> {
    let mut notes = std::mem::take(&mut units.notes);
    if !is_policy_name(name) {
        notes.push(Note::nowhere(Problem::PolicyName));
    }
    let policy = gather::gather(&units, &mut notes).and_then(|rules| {
        let (nodes, edges) = match trie::build(&rules.paths) {
            Ok(built) => built,
            Err(trie::TooManyNodes) => {
                notes.push(Note::nowhere(Problem::Nodes));
                return None;
            }
        };
        let network = |&((addr, prefix), level, source)| Network {
            addr,
            prefix,
            level,
            source,
        };
        Some(Policy {
            name: name.to_owned(),
            mode: rules.mode,
            levels: rules.levels,
            nodes,
            edges,
            networks: rules.networks.iter().map(network).collect(),
            rules: rules.sources,
            profiles: ProfileSet::default(),
            te: None,
            options: Vec::new(),
        })
    });
    let sources = units
        .units
        .iter()
        .map(|unit| NamedSource::new(&unit.name, Arc::clone(&unit.text)));
    let findings = finding::findings(notes, &sources.collect::<Vec<_>>());
    match policy {
        Some(policy) if !findings.iter().any(Finding::is_error) => Ok(Compiled {
            policy,
            warnings: findings,
        }),
        _ => Err(MapErrors { findings }),
    }
}
