//! The compiler of file contexts: which context a file has by its path, as one automaton that reads a path once.
//!
//! The files are those of file_contexts(5), and the answers are those of selabel_lookup(3) of libselinux 3.8, which Debian
//! 13 has. libselinux asks one pattern after another; here all patterns and substitutions are compiled into a few automata,
//! so that the kernel can tell a path's context by one step in each for each byte. `docs/dev/te-file-contexts.md` has the rules.
//!
//! ```
//! use tidegate_bundle::te::contexts::Kind;
//! use tidegate_policy::te::contexts::{Text, Texts, compile};
//!
//! let policy = Text {
//!     name: "file_contexts".into(),
//!     text: "/.* u:r:default_t\n/srv/www(/.*)? u:r:www_t\n/srv/www/socket -s <<none>>\n".into(),
//! };
//! let contexts = compile(&Texts { policy, ..Texts::default() })?;
//! let of = |path: &str, kind| contexts.lookup(path.as_bytes(), kind);
//! assert_eq!(of("/srv/www/index.html", Kind::Regular).context, Some("u:r:www_t"));
//! assert_eq!(of("/srv/www/socket", Kind::Socket).context, None);
//! assert_eq!(of("/srv/www/socket", Kind::Socket).line.unwrap().number, 3);
//! # Ok::<(), tidegate_policy::te::contexts::ContextsErrors>(())
//! ```

mod alias;
mod compile;
mod pattern;
mod problem;
mod product;
mod read;
mod said;
mod spec;
#[cfg(test)]
mod tests;

use std::path::Path;

use tidegate_bundle::limits::MAX_FILE_CONTEXTS_TEXT;
use tidegate_bundle::te::contexts::FileContexts;

pub use self::problem::{ContextsErrors, ContextsFinding, ContextsProblem};

/// A file's text with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The name, for diagnostics.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The texts that make the file contexts of a policy (selabel_file(5)); one that is not there is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// `file_contexts`.
    pub policy: Text,
    /// `file_contexts.homedirs`, which overrides the policy's.
    pub homedirs: Text,
    /// `file_contexts.local`, which overrides both.
    pub local: Text,
    /// `file_contexts.subs_dist`.
    pub subs_dist: Text,
    /// `file_contexts.subs`, applied before the other.
    pub subs: Text,
}

/// Reads and compiles `file_contexts` at a path, with the files beside it that have its name and an ending of their own.
///
/// # Errors
///
/// Everything wrong in the files.
pub fn compile_files(path: &Path) -> Result<FileContexts, ContextsErrors> {
    let mut texts = Texts::default();
    let mut findings = Vec::new();
    for (text, ending) in [
        (&mut texts.policy, ""),
        (&mut texts.homedirs, ".homedirs"),
        (&mut texts.local, ".local"),
        (&mut texts.subs_dist, ".subs_dist"),
        (&mut texts.subs, ".subs"),
    ] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        text.name = name.to_string_lossy().into_owned();
        match std::fs::read(&name) {
            Ok(bytes) => text.text = String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !ending.is_empty() => {}
            Err(e) => {
                let problem = ContextsProblem::Unreadable(e.to_string());
                findings.push(ContextsFinding::of_file(problem, &text.name));
            }
        }
    }
    match findings.is_empty() {
        true => compile(&texts),
        false => Err(ContextsErrors(findings)),
    }
}

/// Compiles file contexts.
///
/// # Errors
///
/// Everything wrong in the texts.
pub fn compile(texts: &Texts) -> Result<FileContexts, ContextsErrors> {
    let files = [&texts.policy, &texts.homedirs, &texts.local];
    let all = files.into_iter().chain([&texts.subs_dist, &texts.subs]);
    for text in all {
        if text.text.len() > MAX_FILE_CONTEXTS_TEXT {
            let finding = ContextsFinding::of_file(ContextsProblem::TextSize, &text.name);
            return Err(ContextsErrors(vec![finding]));
        }
    }
    let mut read = read::Read::default();
    for text in files {
        read.contexts(text);
    }
    let [dist, local] = [&texts.subs_dist, &texts.subs].map(|text| read.aliases(text));
    if !read.findings.is_empty() {
        return Err(ContextsErrors(read.findings));
    }
    let automata = compile::automata(&read.specs, [&dist, &local]).map_err(|fault| {
        let (problem, spec) = match fault {
            compile::Fault::Large(spec) => (ContextsProblem::Large, spec),
            compile::Fault::States(spec) => (ContextsProblem::States, spec),
        };
        ContextsErrors(vec![read.finding(problem, spec, files)])
    })?;
    Ok(FileContexts {
        automata,
        lines: read.lines,
        files: read.files,
        contexts: read.contexts,
    })
}
