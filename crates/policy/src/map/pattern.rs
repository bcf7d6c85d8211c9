//! A rule's path.

use miette::Diagnostic;
use thiserror::Error;
use tidegate_bundle::escape::{Byte, unescape};
use tidegate_bundle::limits::{MAX_DEPTH, MAX_NAME};

/// What `\\` may stand before in quotes.
const ESCAPED: &[u8] = b"\\\"*";

/// One component of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Component {
    /// These bytes.
    Name(Vec<u8>),
    /// Any one component.
    Star,
}

/// A path's components from the root; none is the root itself.
pub(crate) type Pattern = Vec<Component>;

/// A path as a statement writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// Whether it began with `~` or `@{HOME}`.
    pub home: bool,
    /// The components; after the home, if it begins with one.
    pub components: Pattern,
}

/// What is wrong with a path.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum PathProblem {
    /// It begins with neither `/` nor a home.
    #[error("a path begins with `/`, `~` or `@{{HOME}}`")]
    #[diagnostic(code(plm::path_relative))]
    Relative,
    /// Another variable than `@{HOME}`.
    #[error("unknown variable `{0}`")]
    #[diagnostic(
        code(plm::path_variable),
        help("`@{{HOME}}` is the only variable, and stands at the beginning")
    )]
    Variable(String),
    /// `~name`.
    #[error("`~` stands for every user's home; it takes no name")]
    #[diagnostic(code(plm::path_home), help("write one user's home out, as /home/{0}"))]
    NamedHome(String),
    /// `//`, or a `/` at the end.
    #[error("an empty component")]
    #[diagnostic(
        code(plm::path_empty),
        help(
            "write single slashes and none at the end; \
             for what is below a directory only, write `child-of` after its path"
        )
    )]
    Empty,
    /// `.` or `..`.
    #[error("`{0}` is not part of a canonical path")]
    #[diagnostic(
        code(plm::path_dot),
        help("write the path that the kernel resolves it to")
    )]
    Dot(String),
    /// `*` beside other characters.
    #[error("`*` stands for one whole component")]
    #[diagnostic(
        code(plm::path_star),
        help("a `*` that is part of a name is written `\\*`, in quotes")
    )]
    PartialStar,
    /// A character that other languages give a meaning.
    #[error("`{0}` has no meaning in a path here")]
    #[diagnostic(
        code(plm::path_glob),
        help(
            "only `*` for one whole component is known; \
             if the name really has a `{0}`, put the path in quotes"
        )
    )]
    Glob(char),
    /// A `\` that begins no known escape.
    #[error("unknown escape `{0}`")]
    #[diagnostic(
        code(plm::path_escape),
        help(r#"in quotes, `\\`, `\"`, `\*` and `\xHH` are known"#)
    )]
    Escape(String),
    /// A byte no file name can have.
    #[error("a file name cannot hold byte {0:#04x}")]
    #[diagnostic(code(plm::path_byte))]
    Byte(u8),
    /// A component over 255 bytes.
    #[error("a component of {0} bytes")]
    #[diagnostic(code(plm::path_name), help("file names have at most {MAX_NAME} bytes"))]
    LongName(usize),
    /// Too many components.
    #[error("a path of {0} components")]
    #[diagnostic(code(plm::path_depth), help("at most {MAX_DEPTH} are allowed"))]
    Deep(usize),
}

impl PathPattern {
    /// Reads a bare word.
    pub fn parse_word(word: &str) -> Result<Self, PathProblem> {
        let (home, rest) = Self::split_home(word)?;
        if let Some(c) = rest.chars().find(|c| "?[]{}\\".contains(*c)) {
            return Err(PathProblem::Glob(c));
        }
        Self::components(home, &rest.bytes().map(Byte::Plain).collect::<Vec<_>>())
    }

    /// Reads a quoted path, quotes included.
    pub fn parse_quoted(quoted: &str) -> Result<Self, PathProblem> {
        let inner = quoted.strip_prefix('"').unwrap_or(quoted);
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        let (home, rest) = Self::split_home(inner)?;
        let bytes = unescape(rest, ESCAPED).map_err(PathProblem::Escape)?;
        Self::components(home, &bytes)
    }

    /// The patterns it stands for, and whether each is a home's.
    pub fn expand(&self) -> Vec<Pattern> {
        if !self.home {
            return vec![self.components.clone()];
        }
        let name = |name: &str| Component::Name(name.into());
        [vec![name("root")], vec![name("home"), Component::Star]]
            .into_iter()
            .map(|mut home| {
                home.extend(self.components.iter().cloned());
                home
            })
            .collect()
    }

    fn split_home(path: &str) -> Result<(bool, &str), PathProblem> {
        let (home, rest) = if let Some(rest) = path.strip_prefix('~') {
            (true, rest)
        } else if let Some(rest) = path.strip_prefix("@{HOME}") {
            (true, rest)
        } else {
            (false, path)
        };
        if path.starts_with("@{") && !home {
            let end = path.find('}').map_or(path.len(), |end| end + 1);
            return Err(PathProblem::Variable(path[..end].to_owned()));
        }
        match (home, rest.starts_with('/')) {
            (true, false) if rest.is_empty() => Ok((true, rest)),
            (true, false) => {
                let user = rest.split('/').next().unwrap_or(rest);
                Err(PathProblem::NamedHome(user.to_owned()))
            }
            (false, false) => Err(PathProblem::Relative),
            (_, true) => Ok((home, rest)),
        }
    }

    /// Splits `path`, which is empty or begins with `/`.
    fn components(home: bool, path: &[Byte]) -> Result<Self, PathProblem> {
        let Some((_, path)) = path.split_first() else {
            return Ok(Self {
                home,
                components: Vec::new(),
            });
        };
        if path.is_empty() && !home {
            return Ok(Self {
                home,
                components: Vec::new(),
            });
        }
        let components = path
            .split(|byte| *byte == Byte::Plain(b'/'))
            .map(component)
            .collect::<Result<Pattern, _>>()?;
        // The longer of a home's two expansions has two components more.
        let depth = components.len() + if home { 2 } else { 0 };
        if depth > MAX_DEPTH {
            return Err(PathProblem::Deep(depth));
        }
        Ok(Self { home, components })
    }
}

fn component(bytes: &[Byte]) -> Result<Component, PathProblem> {
    if bytes == [Byte::Plain(b'*')] {
        return Ok(Component::Star);
    }
    if bytes.contains(&Byte::Plain(b'*')) {
        return Err(PathProblem::PartialStar);
    }
    let name: Vec<u8> = bytes.iter().map(|byte| byte.value()).collect();
    match name.as_slice() {
        b"" => return Err(PathProblem::Empty),
        b"." => return Err(PathProblem::Dot(".".into())),
        b".." => return Err(PathProblem::Dot("..".into())),
        _ => {}
    }
    if let Some(byte) = name.iter().find(|byte| matches!(byte, 0 | b'/')) {
        return Err(PathProblem::Byte(*byte));
    }
    if name.len() > MAX_NAME {
        return Err(PathProblem::LongName(name.len()));
    }
    Ok(Component::Name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> Result<Vec<String>, PathProblem> {
        let parsed = if path.starts_with('"') {
            PathPattern::parse_quoted(path)?
        } else {
            PathPattern::parse_word(path)?
        };
        Ok(parsed
            .expand()
            .iter()
            .map(|pattern| {
                pattern
                    .iter()
                    .map(|component| match component {
                        Component::Star => "/*".to_owned(),
                        Component::Name(name) => format!("/{}", String::from_utf8_lossy(name)),
                    })
                    .collect()
            })
            .collect())
    }

    #[test]
    fn paths() {
        assert_eq!(words("/").unwrap(), [""]);
        assert_eq!(words("/a/*/b").unwrap(), ["/a/*/b"]);
        assert_eq!(words("~").unwrap(), ["/root", "/home/*"]);
        assert_eq!(words("~/.ssh").unwrap(), ["/root/.ssh", "/home/*/.ssh"]);
        assert_eq!(words("@{HOME}/x").unwrap(), words("~/x").unwrap());
        assert_eq!(
            words(r#""~/My \"Files\" \*""#).unwrap()[0],
            r#"/root/My "Files" *"#
        );
        assert_eq!(words(r#""/\xc3\xa9 ?""#).unwrap(), ["/é ?"]);
        assert_eq!(words("/Ünï/コ").unwrap(), ["/Ünï/コ"]);
    }

    #[test]
    fn an_escaped_star_is_a_name() {
        let path = PathPattern::parse_quoted(r#""/\*""#).unwrap();
        assert_eq!(path.components, [Component::Name(b"*".to_vec())]);
    }

    #[test]
    fn what_is_not_a_path() {
        let of = |path: &str| words(path).unwrap_err();
        assert_eq!(of("etc"), PathProblem::Relative);
        assert_eq!(of("\"\""), PathProblem::Relative);
        assert_eq!(of("/a//b"), PathProblem::Empty);
        assert_eq!(of("/a/"), PathProblem::Empty);
        assert_eq!(of("~/"), PathProblem::Empty);
        assert_eq!(of("/a/../b"), PathProblem::Dot("..".into()));
        assert_eq!(of("/a/."), PathProblem::Dot(".".into()));
        assert_eq!(of(r#""/\x2e""#), PathProblem::Dot(".".into()));
        assert_eq!(of("/a/*.txt"), PathProblem::PartialStar);
        assert_eq!(of("/a/**"), PathProblem::PartialStar);
        assert_eq!(of("/a?"), PathProblem::Glob('?'));
        assert_eq!(of("/{a,b}"), PathProblem::Glob('{'));
        assert_eq!(of("~ann/x"), PathProblem::NamedHome("ann".into()));
        assert_eq!(of("@{PROC}/x"), PathProblem::Variable("@{PROC}".into()));
        assert_eq!(of("@{HOME"), PathProblem::Variable("@{HOME".into()));
        assert_eq!(of(r#""/\n""#), PathProblem::Escape(r"\n".into()));
        assert_eq!(of(r#""/\xg0""#), PathProblem::Escape(r"\xg0".into()));
        assert_eq!(of(r#""/\xé""#), PathProblem::Escape(r"\xé".into()));
        assert_eq!(of(r#""/a\x00""#), PathProblem::Byte(0));
        assert_eq!(of(r#""/a\x2fb""#), PathProblem::Byte(b'/'));
        assert_eq!(
            of(&format!("/{}", "a".repeat(256))),
            PathProblem::LongName(256)
        );
        assert_eq!(of(&"/a".repeat(65)), PathProblem::Deep(65));
        assert!(words(&"/a".repeat(64)).is_ok());
        assert_eq!(of(&format!("~{}", "/a".repeat(63))), PathProblem::Deep(65));
    }
}
