//! A statement of the map language that is to be proposed.

use std::fmt::Write as _;

use tidegate_audit::is_unseen;
use tidegate_bundle::{Attrs, Policy, Rule};

/// A statement: what it is about, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The level's name, or `neutral`.
    pub level: String,
    /// What it is about.
    pub place: Place,
    /// Its attributes; none for a network.
    pub attrs: Attrs,
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A path, with [`ANY`] for any component, and whether only what is below is meant.
    Path(String, bool),
    /// An address.
    Network(String),
}

impl Statement {
    /// Of a path and what is below it.
    pub fn path(level: &str, path: &str, attrs: Attrs) -> Statement {
        let place = Place::Path(path.into(), false);
        let level = level.into();
        Statement {
            level,
            place,
            attrs,
        }
    }

    /// Only of what is below a path.
    pub fn child_of(level: &str, path: &str, attrs: Attrs) -> Statement {
        let place = Place::Path(path.into(), true);
        let level = level.into();
        Statement {
            level,
            place,
            attrs,
        }
    }

    /// Of an address.
    pub fn network(level: &str, address: std::net::IpAddr) -> Statement {
        let place = Place::Network(address.to_canonical().to_string());
        let level = level.into();
        Statement {
            level,
            place,
            attrs: Attrs::empty(),
        }
    }

    /// Whether it could say something of a path.
    pub fn may_cover(&self, path: &str) -> bool {
        match &self.place {
            Place::Path(of, _) => {
                let literal = of.split(ANY).next().unwrap_or_default();
                path.starts_with(literal)
            }
            Place::Network(_) => false,
        }
    }

    /// Whether it speaks of an address.
    pub fn is_of(&self, address: std::net::IpAddr) -> bool {
        matches!(&self.place, Place::Network(of) if *of == address.to_canonical().to_string())
    }

    /// Its line of a map.
    pub fn text(&self) -> String {
        let mut line = match &self.place {
            Place::Path(path, false) => format!("{} {}", self.level, written(path)),
            Place::Path(path, true) => format!("{} {} child-of", self.level, written(path)),
            Place::Network(address) => format!("{} network {address}", self.level),
        };
        for (name, _) in self.attrs.iter_names() {
            line.push(' ');
            line.push_str(&name.to_ascii_lowercase());
        }
        line
    }

    /// This one and another in one; `None` if they say different things of one place.
    /// Of different places both stand.
    pub fn merge(statements: &mut Vec<Statement>, new: &Statement) -> Option<()> {
        match statements.iter_mut().find(|s| s.place == new.place) {
            Some(old) if old.level != new.level => None,
            Some(old) => {
                old.attrs |= new.attrs;
                Some(())
            }
            None => {
                statements.push(new.clone());
                Some(())
            }
        }
    }
}

/// The text of a map with these statements.
pub fn lines(statements: &[Statement]) -> String {
    statements.iter().fold(String::new(), |mut text, s| {
        let _ = writeln!(text, "{}", s.text());
        text
    })
}

/// What a rule's attributes are in a statement that takes its place at another level:
/// those that would say nothing there are left out.
pub fn kept(policy: &Policy, rule: Rule, level: u8) -> Attrs {
    let mut attrs = rule.attrs - Attrs::EXPLICIT - Attrs::NEUTRAL;
    if level == 0 {
        attrs -= Attrs::CREATOR | Attrs::LOWWRITE | Attrs::LOWNOOPEN;
    }
    if level < policy.top() {
        attrs -= Attrs::NODEMOTE | Attrs::NONETDEMOTE | Attrs::PERMISSIVE;
    }
    attrs
}

/// A path with `*` for any component, as a map writes it. What was a `*` in a name is
/// [`ANY`] here, so that a file of that name stays one.
fn written(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%~".contains(c);
    let begins = path.starts_with(['~', '@']);
    if !begins && path.chars().all(|c| plain(c) || c == ANY) {
        return path.replace(ANY, "*");
    }
    let mut out = String::from("\"");
    for c in path.chars() {
        match c {
            ANY => out.push('*'),
            '"' | '\\' | '*' => out.extend(['\\', c]),
            c if is_unseen(c) => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Any one component, in a path that is to be written: no path has this byte.
pub const ANY: char = '\0';

#[cfg(test)]
mod tests {
    use tidegate_policy::map;

    use super::*;

    #[test]
    fn a_path_is_written_so_that_it_is_read_again() {
        for path in [
            "/home/ann/My Files/x",
            "/srv/*",
            "/srv/a\"b\\c",
            "/srv/new\nsystem",
            "/srv/#x",
            "/é/コ",
            "/a/[x]{y}?",
            "/a/\u{85}",
        ] {
            let line = Statement::path("low", path, Attrs::empty()).text();
            assert_eq!(line.lines().count(), 1, "{line}");
            let map = format!("levels top > low\ntop /\n{line}\n");
            let policy = map::compile_str("x", &map).expect(&line).policy;
            assert_eq!(policy.lookup(path.as_bytes()).level, 0, "{line}");
            assert_eq!(policy.lookup(b"/srv/other").level, 1, "{line}");
        }
        let any = Statement::child_of("low", "/run/user/\0/x y", Attrs::CREATOR);
        assert_eq!(any.text(), "low \"/run/user/*/x y\" child-of creator");
    }

    #[test]
    fn statements_of_one_place_become_one() {
        let one = Statement::path("user", "/a", Attrs::CREATOR);
        let mut all = vec![one.clone()];
        Statement::merge(&mut all, &Statement::path("user", "/a", Attrs::LOWWRITE)).unwrap();
        Statement::merge(&mut all, &Statement::child_of("low", "/a", Attrs::empty())).unwrap();
        assert_eq!(lines(&all), "user /a creator lowwrite\nlow /a child-of\n");
        assert!(
            Statement::merge(&mut all, &Statement::path("low", "/a", Attrs::empty())).is_none()
        );
    }
}
