//! Rules of a SELinux policy by what they speak of: what sesearch(1) of setools finds, in its syntax and order.

use std::collections::BTreeSet;

use regex_lite::Regex;
use serde::Serialize;
use tidegate_bundle::te::db::{
    Bitmap, Conditional, Number, PolicyDb, RangeTransition, RoleTransition, Rule, Says,
};
use tidegate_bundle::te::text::keyword;

use super::args::Sesearch;
use crate::exit::{Code, Failure, Outcome};

/// A rule that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Found {
    /// Its text.
    pub rule: String,
    /// What it begins with.
    pub kind: &'static str,
    /// Its source: a type, an attribute or a role.
    pub source: String,
    /// Its target.
    pub target: String,
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Its permissions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// What something becomes by it: a type, a role or a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The condition under which it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What that has to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<bool>,
    /// Whether it holds with the booleans as they are set.
    pub holds: bool,
}

/// The types and attributes by which a rule may name what is looked for.
enum Names {
    Any,
    These(Bitmap),
}

impl Names {
    fn has(&self, number: Number) -> bool {
        match self {
            Names::Any => true,
            Names::These(these) => these.contains(number as usize - 1),
        }
    }
}

/// What is looked for.
pub struct Search<'s> {
    db: &'s PolicyDb,
    values: Vec<bool>,
    args: &'s Sesearch,
    classes: Vec<bool>,
    booleans: Vec<bool>,
    default: Names,
    kinds: Vec<&'static str>,
}

impl<'s> Search<'s> {
    /// Of a policy with its booleans' values.
    ///
    /// # Errors
    /// If it asks for nothing, or names what the policy does not have.
    pub fn new(db: &'s PolicyDb, values: Vec<bool>, args: &'s Sesearch) -> Outcome<Search<'s>> {
        let kinds = args.kinds();
        if kinds.is_empty() && !args.role_allow && !args.role_transition && !args.range_transition {
            return Err(usage(
                "say which rules: -A, -T, --dontaudit, --role_allow, …",
            ));
        }
        let of_access = args.perms.is_some() || args.boolean.is_some();
        let others = args.role_allow || args.role_transition || args.range_transition;
        if of_access && others {
            return Err(usage("-p and -b go with rules on types only"));
        }
        let names = |text: &Option<String>, is_pattern, each: &[&str], what: &str| {
            chosen(text.as_deref(), is_pattern, each, what)
        };
        let classes: Vec<&str> = db.classes.iter().map(|it| it.name.as_str()).collect();
        let booleans: Vec<&str> = db.booleans.iter().map(|it| it.name.as_str()).collect();
        let default = match kinds.is_empty() {
            true => Names::Any,
            false => default_names(db, args.default.as_deref(), args.rd)?,
        };
        Ok(Search {
            classes: names(&args.class, args.rc, &classes, "class")?,
            booleans: names(&args.boolean, args.rb, &booleans, "boolean")?,
            default,
            db,
            values,
            args,
            kinds,
        })
    }

    /// All that is found, in the order in which setools print it.
    ///
    /// # Errors
    /// If a name is none of the policy's.
    pub fn all(&self) -> Outcome<Vec<Found>> {
        let mut all = Vec::new();
        if !self.kinds.is_empty() {
            all.extend(self.of_types()?);
        }
        if self.args.role_allow || self.args.role_transition {
            all.extend(self.of_roles()?);
        }
        if self.args.range_transition {
            all.extend(self.of_ranges()?);
        }
        Ok(all)
    }

    fn of_types(&self) -> Outcome<Vec<Found>> {
        let args = self.args;
        let source = type_names(self.db, args.source.as_deref(), args.rs, args.ds)?;
        let target = type_names(self.db, args.target.as_deref(), args.rt, args.dt)?;
        let wanted = self.permissions()?;
        let is_for = |rule: &Rule| {
            self.kinds.contains(&keyword(&rule.says))
                && self.classes[rule.class as usize - 1]
                && self.is_by(rule, &wanted)
                && source.has(rule.source)
                && target.has(rule.target)
        };
        let mut found = Vec::new();
        if args.boolean.is_none() {
            let rules = self.db.rules.iter().filter(|rule| is_for(rule));
            found.extend(rules.map(|rule| self.found(rule, None)));
            found.extend(self.by_name(&source, &target));
        }
        for of in self
            .db
            .conditionals
            .iter()
            .filter(|of| self.is_conditional(of))
        {
            for (when, rules) in [(true, &of.when_true), (false, &of.when_false)] {
                let rules = rules.iter().filter(|rule| is_for(rule));
                found.extend(rules.map(|rule| self.found(rule, Some((of, when)))));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Transitions by name: a rule for each source.
    fn by_name(&self, source: &Names, target: &Names) -> Vec<Found> {
        let is_wanted = self.kinds.contains(&"type_transition") && self.args.perms.is_none();
        let all = self.db.name_transitions.iter().filter(|it| {
            is_wanted
                && self.classes[it.class as usize - 1]
                && target.has(it.target)
                && self.default.has(it.becomes)
        });
        let each = all.flat_map(|it| it.sources.ones().map(move |at| (at as Number + 1, it)));
        let each = each.filter(|(from, _)| source.has(*from));
        each.map(|(from, it)| {
            let class = &self.db.classes[it.class as usize - 1].name;
            let [from, to] = [from, it.target].map(|it| self.db.type_text(it));
            let becomes = self.db.type_text(it.becomes);
            let name = &it.name;
            Found {
                rule: format!("type_transition {from} {to}:{class} {becomes} {name};"),
                class: Some(class.clone()),
                default: Some(becomes.to_owned()),
                ..found("type_transition", from, to)
            }
        })
        .collect()
    }

    fn of_roles(&self) -> Outcome<Vec<Found>> {
        let args = self.args;
        let roles: Vec<&str> = self.db.roles.iter().map(|it| it.name.as_str()).collect();
        let role = |number: Number| roles[number as usize - 1];
        let source = chosen(args.source.as_deref(), args.rs, &roles, "role")?;
        let default = chosen(args.default.as_deref(), args.rd, &roles, "role")?;
        let is_source = |number: Number| source[number as usize - 1];
        let mut all = Vec::new();
        if args.role_allow && args.class.is_none() && args.default.is_none() {
            // a type may be meant, where transitions are looked for, too
            let target = chosen(args.target.as_deref(), args.rt, &roles, "role");
            let target = match target {
                Err(_) if args.role_transition => vec![false; roles.len()],
                target => target?,
            };
            let pairs = self.db.role_allows.iter();
            let pairs = pairs.filter(|(from, to)| is_source(*from) && target[*to as usize - 1]);
            all.extend(pairs.map(|&(from, to)| Found {
                rule: format!("allow {} {};", role(from), role(to)),
                ..found("allow", role(from), role(to))
            }));
        }
        if args.role_transition {
            let target = match type_names(self.db, args.target.as_deref(), args.rt, args.dt) {
                // and a role, where these are
                Err(_) if args.role_allow => return Ok(sorted(all)),
                target => target?,
            };
            let is_for = |it: &&RoleTransition| {
                is_source(it.role)
                    && self.classes[it.class as usize - 1]
                    && default[it.becomes as usize - 1]
                    && target.has(it.kind)
            };
            all.extend(self.db.role_transitions.iter().filter(is_for).map(|it| {
                let class = &self.db.classes[it.class as usize - 1].name;
                let (from, kind) = (role(it.role), self.db.type_text(it.kind));
                let becomes = role(it.becomes);
                Found {
                    rule: format!("role_transition {from} {kind}:{class} {becomes};"),
                    class: Some(class.clone()),
                    default: Some(becomes.to_owned()),
                    ..found("role_transition", from, kind)
                }
            }));
        }
        Ok(sorted(all))
    }

    fn of_ranges(&self) -> Outcome<Vec<Found>> {
        let args = self.args;
        let source = type_names(self.db, args.source.as_deref(), args.rs, args.ds)?;
        let target = type_names(self.db, args.target.as_deref(), args.rt, args.dt)?;
        let range = args.default.as_ref().map(|text| {
            let range = self.db.range_named(text);
            range.ok_or_else(|| usage(&format!("the policy has no range `{text}`")))
        });
        let range = range.transpose()?;
        let is_for = |it: &&RangeTransition| {
            self.classes[it.class as usize - 1]
                && range.as_ref().is_none_or(|range| *range == it.range)
                && source.has(it.source)
                && target.has(it.target)
        };
        let all = self.db.range_transitions.iter().filter(is_for);
        Ok(sorted(
            all.map(|it| {
                let class = &self.db.classes[it.class as usize - 1].name;
                let [from, to] = [it.source, it.target].map(|it| self.db.type_text(it));
                let range = super::range_text(self.db, &it.range);
                Found {
                    rule: format!("range_transition {from} {to}:{class} {range};"),
                    class: Some(class.clone()),
                    default: Some(range),
                    ..found("range_transition", from, to)
                }
            })
            .collect(),
        ))
    }

    /// The permissions that are looked for, which some class has to have.
    fn permissions(&self) -> Outcome<Option<BTreeSet<&'s str>>> {
        let Some(text) = &self.args.perms else {
            return Ok(None);
        };
        let mut wanted = BTreeSet::new();
        for name in text.split(',') {
            let mut all = self.db.classes.iter().flat_map(|it| &it.permissions);
            if !all.any(|known| known == name) {
                return Err(unknown("permission", name));
            }
            wanted.insert(name);
        }
        Ok(Some(wanted))
    }

    /// Whether a rule is about these permissions, or makes something of this type.
    fn is_by(&self, rule: &Rule, wanted: &Option<BTreeSet<&str>>) -> bool {
        let kind = match &rule.says {
            Says::Transition(kind) | Says::Member(kind) | Says::Change(kind) => Some(*kind),
            _ => None,
        };
        if let Some(kind) = kind {
            return wanted.is_none() && self.default.has(kind);
        }
        if self.args.default.is_some() {
            return false;
        }
        let Some(wanted) = wanted else {
            return true;
        };
        let names: BTreeSet<&str> = match &rule.says {
            Says::Allow(mask) | Says::AuditAllow(mask) => self
                .db
                .permission_names(rule.class, *mask)
                .into_iter()
                .collect(),
            Says::AuditDeny(mask) => self
                .db
                .permission_names(rule.class, !mask)
                .into_iter()
                .collect(),
            Says::Extended(of) if of.specified == 3 => BTreeSet::from(["nlmsg"]),
            _ => BTreeSet::from(["ioctl"]),
        };
        match (self.args.ep, self.args.sp) {
            (true, _) => names == *wanted,
            (_, true) => wanted.is_subset(&names),
            _ => !names.is_disjoint(wanted),
        }
    }

    fn is_conditional(&self, of: &Conditional) -> bool {
        if self.args.boolean.is_none() {
            return true;
        }
        let is_chosen = |number: &Number| self.booleans[*number as usize - 1];
        let named = of.booleans();
        match self.args.eb && !self.args.rb {
            true => {
                let chosen = self.booleans.iter().filter(|is| **is).count();
                named.iter().all(is_chosen) && named.len() == chosen
            }
            false => named.iter().any(is_chosen),
        }
    }

    fn found(&self, rule: &Rule, of: Option<(&Conditional, bool)>) -> Found {
        let db = self.db;
        let permissions = match rule.says {
            Says::Allow(mask) | Says::AuditAllow(mask) => mask,
            Says::AuditDeny(mask) => !mask,
            _ => 0,
        };
        let permissions = db.permission_names(rule.class, permissions);
        let default = match rule.says {
            Says::Transition(kind) | Says::Member(kind) | Says::Change(kind) => Some(kind),
            _ => None,
        };
        let [source, target] = [rule.source, rule.target].map(|it| db.type_text(it));
        Found {
            rule: match of {
                // setools print no condition of these
                Some(_) if matches!(rule.says, Says::Extended(_)) => db.rule_text(rule),
                Some((of, when)) => db.conditional_rule_text(rule, of, when),
                None => db.rule_text(rule),
            },
            class: Some(db.classes[rule.class as usize - 1].name.clone()),
            permissions: permissions.into_iter().map(str::to_owned).collect(),
            default: default.map(|it| db.type_text(it).to_owned()),
            condition: of.map(|(of, _)| db.condition_text(&of.expression)),
            when: of.map(|(_, when)| when),
            holds: of.is_none_or(|(of, when)| of.is_true(&self.values) == when),
            ..found(keyword(&rule.says), source, target)
        }
    }
}

fn found(kind: &'static str, source: &str, target: &str) -> Found {
    Found {
        kind,
        source: source.to_owned(),
        target: target.to_owned(),
        holds: true,
        ..Found::default()
    }
}

fn sorted(mut all: Vec<Found>) -> Vec<Found> {
    all.sort();
    all
}

/// What a type, an attribute or an alias, or a pattern for types, may be named by: itself if `direct`, else as well by each
/// attribute that a type of it has, and by each type that has the attribute.
fn type_names(db: &PolicyDb, text: Option<&str>, is_pattern: bool, direct: bool) -> Outcome<Names> {
    let Some(text) = text else {
        return Ok(Names::Any);
    };
    let types: Vec<usize> = match (is_pattern, direct) {
        (true, true) => return matching(db, text),
        (false, true) => {
            let itself = number(db, text)? as usize - 1;
            return Ok(Names::These(Bitmap::from_iter([itself])));
        }
        (true, false) => {
            let pattern = pattern(text)?;
            let types = db.types.iter().enumerate();
            let types = types.filter(|(_, it)| !it.attribute && !it.name.is_empty());
            let types = types.filter(|(_, it)| pattern.is_match(&it.name));
            types.map(|(at, _)| at).collect()
        }
        (false, false) => db.members(number(db, text)?).collect(),
    };
    let mut names = Bitmap::new();
    for at in types {
        names.union_with(&db.memberships[at]);
    }
    Ok(Names::These(names))
}

/// What something may become: a type, one of an attribute, or what a pattern matches.
fn default_names(db: &PolicyDb, text: Option<&str>, is_pattern: bool) -> Outcome<Names> {
    match text {
        None => Ok(Names::Any),
        Some(text) if is_pattern => matching(db, text),
        Some(text) => Ok(Names::These(db.members(number(db, text)?).collect())),
    }
}

/// The types and attributes whose names match a pattern.
fn matching(db: &PolicyDb, text: &str) -> Outcome<Names> {
    let pattern = pattern(text)?;
    let all = 0..db.types.len();
    let these = all.filter(|&at| pattern.is_match(db.type_text(at as Number + 1)));
    Ok(Names::These(these.collect()))
}

/// The number of a type, an attribute or an alias.
fn number(db: &PolicyDb, name: &str) -> Outcome<Number> {
    let number = db.type_or_attribute(name);
    number.ok_or_else(|| unknown("type or attribute", name))
}

/// Which of these names are listed, or match a pattern; all of them without either.
fn chosen(text: Option<&str>, is_pattern: bool, of: &[&str], what: &str) -> Outcome<Vec<bool>> {
    let Some(text) = text else {
        return Ok(vec![true; of.len()]);
    };
    if is_pattern {
        let pattern = pattern(text)?;
        return Ok(of.iter().map(|name| pattern.is_match(name)).collect());
    }
    let listed: Vec<&str> = text.split(',').collect();
    if let Some(name) = listed.iter().find(|name| !of.contains(name)) {
        return Err(unknown(what, name));
    }
    Ok(of.iter().map(|name| listed.contains(name)).collect())
}

fn pattern(text: &str) -> Outcome<Regex> {
    Regex::new(text).map_err(|e| usage(&format!("`{text}` is not a regular expression: {e}")))
}

fn unknown(what: &str, name: &str) -> Failure {
    usage(&format!("the policy has no {what} `{name}`"))
}

fn usage(text: &str) -> Failure {
    Failure::new(Code::Usage, text.to_owned())
}
