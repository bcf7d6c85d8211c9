//! Fixes where the refusal was: what the map says of the object.

use tidegate_audit::is_unseen;
use tidegate_bundle::{Attrs, Policy};
use tidegate_monitor::{Op, Reason};

use super::draft::{Draft, Trust};
use super::name::{any_home, depth, general, is_home, is_random, split};
use super::refusal::Refusal;
use super::statement::{ANY, Statement, kept};

/// Widths: of one file, of a directory with what is below it. Deeper is narrower.
pub const FILE: u32 = 1;
const TREE: u32 = 8;

/// What else was refused the same, so that more than one path is to be named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Several names in one directory: the directory.
    pub siblings: bool,
    /// Several users' homes: any home.
    pub homes: bool,
}

/// What drafts are made of.
pub struct Ground<'a> {
    pub refusal: &'a Refusal,
    pub policy: &'a Policy,
    pub evidence: Evidence,
}

impl Ground<'_> {
    pub(super) fn name(&self, level: u8) -> &str {
        let name = self.policy.levels.get(usize::from(level));
        name.map_or("?", String::as_str)
    }

    pub(super) fn own(&self) -> &str {
        self.name(self.refusal.level)
    }

    /// What the map says of a path, in which [`ANY`] stands for some name.
    pub(super) fn rule(&self, path: &str) -> tidegate_bundle::Rule {
        self.policy.lookup(path.as_bytes())
    }

    /// A path as far as it is to be named.
    pub(super) fn general(&self, path: &str) -> String {
        let general = general(path, self.refusal.pid);
        if self.evidence.homes {
            return any_home(&general).unwrap_or(general);
        }
        general
    }

    fn tree(&self, path: &str) -> u32 {
        let stars = path.matches(ANY).count() as u32;
        TREE + 4 * stars + 8u32.saturating_sub(depth(path))
    }

    /// The drafts, in no order.
    pub fn drafts(&self) -> Vec<Draft> {
        let r = self.refusal;
        if let (Op::Send, Some(address)) = (r.op, r.object.address) {
            return vec![self.lower_network(address)];
        }
        let Some(path) = r.path() else {
            return Vec::new();
        };
        if path.starts_with("/proc/") || path.starts_with("/sys/") {
            return Vec::new(); // not the map's: docs/reference/lomac.md
        }
        match (r.op, r.reason) {
            (_, Reason::Noopen) => self.open(path),
            (Op::Rename | Op::Link, Reason::Launder) => self.place(path),
            (Op::Create, Reason::Rule) if r.class == "file" => self.create(&format!("{path}/#")),
            (Op::Create, Reason::Rule | Reason::NoCreator) => self.create(path),
            (Op::Unlink, Reason::Rule) => self.remove(path),
            (Op::Rename, Reason::Rule) if r.is_about_names(self.policy) => self.create(path),
            (Op::Connect | Op::Send, Reason::Rule) => self.socket(path),
            (
                Op::OpenWrite
                | Op::WriteRevoked
                | Op::Setattr
                | Op::Xattr
                | Op::Mmap
                | Op::ReceiveFd
                | Op::Rename
                | Op::Link,
                Reason::Rule,
            ) => self.change(path),
            _ => Vec::new(),
        }
    }

    /// A directory in which lower subjects may make what is theirs.
    fn creator(&self, dir: &str) -> Draft {
        let rule = self.rule(dir);
        let level = self.name(rule.level);
        let attrs = kept(self.policy, rule, rule.level) | Attrs::CREATOR;
        let shown = shown(dir);
        Draft::new(
            vec![Statement::path(level, dir, attrs)],
            self.tree(dir),
            format!("any level makes, renames and removes files of its own in {shown} and below"),
            format!(
                "anybody may take a name in {shown}; a file there at {level} is as safe as before, and a process that reads a lower one falls"
            ),
        )
    }

    /// Only one name in a directory.
    fn creator_of_one(&self, dir: &str, path: &str) -> Draft {
        let (here, below, place) = (
            self.rule(dir),
            self.rule(&format!("{dir}/\u{1}")),
            self.rule(path),
        );
        let keep = |rule: tidegate_bundle::Rule| kept(self.policy, rule, rule.level);
        let shut = keep(below) - Attrs::CREATOR;
        let level = self.name(place.level);
        Draft::new(
            vec![
                Statement::path(self.name(here.level), dir, keep(here) | Attrs::CREATOR),
                Statement::child_of(self.name(below.level), dir, shut),
                Statement::path(level, path, keep(place) | Attrs::CREATOR),
            ],
            FILE + 2,
            format!(
                "any level makes {} and files below it, and nothing else in {}",
                shown(path),
                shown(dir)
            ),
            format!(
                "anybody may have made {}: a process that reads it then falls",
                shown(path)
            ),
        )
    }

    /// The directory and all below it belong to the subject's level.
    fn lower_tree(&self, dir: &str) -> Draft {
        let attrs = kept(self.policy, self.rule(dir), self.refusal.level);
        let (own, shown) = (self.own(), shown(dir));
        Draft::new(
            vec![Statement::path(own, dir, attrs)],
            self.tree(dir) + TREE,
            format!("{own} may change everything in {shown}"),
            format!("all of {shown} is then at {own}: a process that reads there falls to {own}"),
        )
    }

    fn lower_below(&self, dir: &str) -> Draft {
        let rule = self.rule(&format!("{dir}/\u{1}"));
        let attrs = kept(self.policy, rule, self.refusal.level);
        let (own, shown) = (self.own(), shown(dir));
        Draft::new(
            vec![Statement::child_of(own, dir, attrs)],
            self.tree(dir),
            format!("{own} changes the files in {shown}"),
            format!(
                "the files in {shown} are then at {own}: a process that reads one falls to {own}"
            ),
        )
    }

    /// One object belongs to the subject's level.
    fn lower(&self, path: &str) -> Draft {
        let r = self.refusal;
        let (own, shown) = (self.own(), shown(path));
        let lets = format!("{own} changes {shown}");
        let gives = format!("{shown} is then at {own}: a process that reads it falls to {own}");
        if r.object.given && !r.is_about_names(self.policy) {
            return Draft::promote(path, r.level, lets, gives);
        }
        let attrs = kept(self.policy, self.rule(path), r.level);
        let stars = path.matches(ANY).count() as u32;
        Draft::new(
            vec![Statement::path(own, path, attrs)],
            FILE + 4 * stars,
            lets,
            gives,
        )
    }

    fn create(&self, path: &str) -> Vec<Draft> {
        let path = self.general(path);
        let Some((dir, name)) = split(&path) else {
            return Vec::new();
        };
        let mut drafts = Vec::new();
        let any_name = self.evidence.siblings || name == "#" || is_random(name, self.refusal.pid);
        if !self.refusal.is_shut_out(self.policy, dir) {
            // the directory is open; it is the place that is not
            drafts.extend(if any_name {
                self.place_below(dir)
            } else {
                self.place_of(&path)
            });
        } else if dir == "/" {
            return Vec::new();
        } else if !is_home(dir) {
            drafts.push(self.creator(dir));
            drafts.push(self.lower_tree(dir));
        } else if name != "#" && !is_random(name, self.refusal.pid) {
            // never a whole home: what is made there may be a dotfile
            drafts.push(self.creator_of_one(dir, &path));
        }
        drafts
    }

    fn place_of(&self, path: &str) -> Vec<Draft> {
        let rule = self.rule(path);
        let attrs = kept(self.policy, rule, rule.level) | Attrs::CREATOR;
        let shown = shown(path);
        vec![Draft::new(
            vec![Statement::path(self.name(rule.level), path, attrs)],
            FILE + 1,
            format!("a lower object may have the name {shown}, at its own level"),
            format!("anybody may have made {shown}: a process that reads it then falls"),
        )]
    }

    fn place_below(&self, dir: &str) -> Vec<Draft> {
        let rule = self.rule(&format!("{dir}/\u{1}"));
        let attrs = kept(self.policy, rule, rule.level) | Attrs::CREATOR;
        let shown = shown(dir);
        vec![Draft::new(
            vec![Statement::child_of(self.name(rule.level), dir, attrs)],
            self.tree(dir),
            format!("a lower object may have a name in {shown}, at its own level"),
            format!("anybody may have made a file in {shown}: a process that reads it then falls"),
        )]
    }

    /// A lower object gets a name at a higher place.
    fn place(&self, path: &str) -> Vec<Draft> {
        let path = self.general(path);
        let Some((dir, name)) = split(&path) else {
            return Vec::new();
        };
        if dir != "/" && (self.evidence.siblings || is_random(name, self.refusal.pid)) {
            return self.place_below(dir);
        }
        self.place_of(&path)
    }

    fn remove(&self, path: &str) -> Vec<Draft> {
        let r = self.refusal;
        let Some((dir, _)) = split(path) else {
            return Vec::new();
        };
        if r.made {
            return self.create(path);
        }
        if !r.is_about_names(self.policy) {
            return self.change(path);
        }
        if is_home(dir) || dir == "/" {
            return Vec::new();
        }
        let dir = &self.general(dir);
        let both = self.creator(dir).and(&self.lower(path));
        both.into_iter().chain([self.lower_tree(dir)]).collect()
    }

    fn change(&self, path: &str) -> Vec<Draft> {
        let r = self.refusal;
        if r.made {
            return self.create(path);
        }
        let mut drafts = Vec::new();
        let general = self.general(path);
        let Some((dir, name)) = split(&general) else {
            return Vec::new();
        };
        if (self.evidence.siblings || is_random(name, r.pid)) && dir != "/" && !is_home(dir) {
            drafts.push(self.lower_below(dir));
        } else {
            drafts.push(self.lower(if r.object.given { path } else { &general }));
            drafts.push(self.open_to_all(&general));
        }
        drafts
    }

    /// Anybody may write it, and it is believed all the same.
    fn open_to_all(&self, path: &str) -> Draft {
        let rule = self.rule(path);
        let attrs = kept(self.policy, rule, rule.level) | Attrs::LOWWRITE;
        let (level, shown) = (self.name(rule.level), shown(path));
        Draft::new(
            vec![Statement::path(level, path, attrs)],
            FILE,
            format!("any level writes {shown}"),
            format!(
                "data that anybody has written into {shown} is believed as {level}: no process falls by it"
            ),
        )
        .trusting(Trust::Object)
    }
}

/// A path in words.
pub fn shown(path: &str) -> String {
    path.replace(ANY, "*").replace(is_unseen, "?")
}
