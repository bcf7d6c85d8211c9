//! Maps made up at random.

use proptest::prelude::*;
use tidegate_bundle::Attrs;

/// Levels of the maps made here, lowest first.
pub const LEVELS: [&str; 3] = ["low", "mid", "top"];

/// The attributes, by their words.
pub const ATTRS: [(&str, Attrs); 6] = [
    ("creator", Attrs::CREATOR),
    ("lowwrite", Attrs::LOWWRITE),
    ("lownoopen", Attrs::LOWNOOPEN),
    ("nodemote", Attrs::NODEMOTE),
    ("nonetdemote", Attrs::NONETDEMOTE),
    ("permissive", Attrs::PERMISSIVE),
];

/// Few names, so that rules meet; among them all that has a meaning somewhere.
pub const NAMES: [&str; 10] = [
    "a", "b", "run", "tidegate", "level", "low", "sys", "fs", "home", "root",
];

/// A path statement as a person would say it.
#[derive(Debug, Clone)]
pub struct Said {
    /// 3 is `neutral`.
    pub level: usize,
    pub home: bool,
    /// `*` is any component.
    pub path: Vec<&'static str>,
    pub child_of: bool,
    pub attrs: Vec<usize>,
}

impl Said {
    /// Its line of the map.
    pub fn line(&self) -> String {
        let level = LEVELS.get(self.level).unwrap_or(&"neutral");
        let mut path = if self.home {
            "~".to_owned()
        } else {
            String::new()
        };
        for name in &self.path {
            path += "/";
            path += name;
        }
        if path.is_empty() {
            path += "/";
        }
        let mut line = format!("{level} {path}");
        if self.child_of {
            line += " child-of";
        }
        for attr in &self.attrs {
            line += " ";
            line += ATTRS[*attr].0;
        }
        line
    }

    /// The patterns it stands for.
    pub fn patterns(&self) -> Vec<Vec<&'static str>> {
        let homes: &[&[&str]] = if self.home {
            &[&["root"], &["home", "*"]]
        } else {
            &[&[]]
        };
        homes
            .iter()
            .map(|home| [home, self.path.as_slice()].concat())
            .collect()
    }
}

/// A whole map that compiles: no duplicates, nothing reserved, a root.
pub fn maps(rules: usize) -> impl Strategy<Value = Vec<Said>> {
    let name = prop_oneof![6 => prop::sample::select(&NAMES[..]), 3 => Just("*")];
    let rule = (
        0..4usize,
        prop::bool::weighted(0.15),
        prop::collection::vec(name, 0..5),
        any::<bool>(),
        prop::sample::subsequence((0..ATTRS.len()).collect::<Vec<_>>(), 0..3),
    );
    let rule = rule.prop_map(|(level, home, path, child_of, attrs)| Said {
        level,
        home,
        path,
        child_of,
        attrs: if level == 3 { Vec::new() } else { attrs },
    });
    prop::collection::vec(rule, 0..rules).prop_map(|mut rules| {
        let root = Said {
            level: 2,
            home: false,
            path: vec![],
            child_of: false,
            attrs: vec![],
        };
        rules.insert(0, root);
        let mut seen = std::collections::HashSet::new();
        rules.retain(|rule| {
            let reserved = rule.patterns().iter().any(|pattern| {
                pattern.starts_with(&["run", "tidegate"])
                    || pattern.starts_with(&["sys", "fs", "bpf"])
            });
            !reserved && seen.insert((rule.home, rule.path.clone(), rule.child_of))
        });
        rules
    })
}

/// The map's text.
pub fn text(rules: &[Said]) -> String {
    let mut text = "levels top > mid > low\n".to_owned();
    for rule in rules {
        text += &rule.line();
        text += "\n";
    }
    text
}
