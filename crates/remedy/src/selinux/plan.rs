//! What is proposed for a SELinux policy, and what is not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::{Context, Number, PolicyDb, Rule, Says};
use tidegate_bundle::te::decide::{Because, Decider};

use super::explain::reasons;
use super::gather::{Gathered, Seen};
use super::need::Need;
use crate::sum::Sum;

/// A rule that is added.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Added {
    /// `allow` of types, for a class; its permissions stand beside it.
    Types(Number, Number, Number),
    /// `allow` of roles.
    Roles(Number, Number),
}

/// Rules, and the permissions of those of types.
pub type Rules = BTreeMap<Added, u32>;

/// A rule with the refusals that it is for.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// The rule.
    pub rule: Added,
    /// Its permissions.
    pub permissions: u32,
    /// The refusals.
    pub of: Sum,
    /// What was refused, for example.
    pub examples: BTreeSet<String>,
}

/// Refusals that no rule is proposed for.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// Why not.
    pub reason: String,
    /// What of the policy that is about: a rule, a constraint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The refusals.
    #[serde(flatten)]
    pub of: Sum,
    /// What was refused, for example.
    pub example: String,
}

/// What became of the refusals.
#[derive(Debug, Default)]
pub struct Plan {
    /// Rules, which were checked.
    pub proposed: Vec<Proposed>,
    /// What booleans fix: `name=on`, the rule that they turn on, and the refusals.
    pub booleans: Vec<Told>,
    /// What looks like an attack.
    pub suspicious: Vec<Told>,
    /// What constraints refuse, and what else no rule lets through.
    pub unfixed: Vec<Told>,
    /// Refusals that the policy lets through already.
    pub settled: u64,
}

impl Plan {
    /// All that is added.
    pub fn rules(&self) -> Rules {
        let each = self.proposed.iter();
        each.map(|it| (it.rule.clone(), it.permissions)).collect()
    }
}

/// Rules and booleans that let something through.
#[derive(Debug, Clone, Default)]
struct Fix {
    rules: Rules,
    booleans: BTreeMap<Number, bool>,
}

/// Decides what to propose; `attacks` has what looks like an attack proposed, too. `compiles` says whether the policy
/// compiles with rules added, or what its compiler says.
pub fn plan(
    gathered: &Gathered,
    te: &Te,
    attacks: bool,
    compiles: impl Fn(&Rules) -> Result<(), String>,
) -> Plan {
    let mut plan = Plan::default();
    for (why, (of, example)) in &gathered.unlearned {
        plan.unfixed.push(Told {
            reason: why.text(),
            rules: Vec::new(),
            of: of.clone(),
            example: example.clone(),
        });
    }
    let decider = te.decider();
    let mut kept: Vec<(&Seen, Fix)> = Vec::new();
    for seen in gathered.seen.values() {
        let need = &seen.need;
        let refused = decider.explain(&need.source, &need.target, need.class, need.permissions);
        if refused.is_empty() && need.unknown.is_empty() {
            plan.settled += seen.of.count;
            continue;
        }
        let (fix, hindered) = fix(&decider, need);
        if hindered {
            plan.unfixed.push(hindrance(seen, te));
        }
        if fix.rules.is_empty() && fix.booleans.is_empty() {
            continue;
        }
        match &seen.suspicion {
            Some(why) if !attacks => plan.suspicious.push(Told {
                reason: format!("it looks like an attack: {why}"),
                rules: fix
                    .rules
                    .iter()
                    .map(|(rule, mask)| rule.text(*mask, &te.db))
                    .chain(settings(&fix, &te.db))
                    .collect(),
                ..about(seen, String::new())
            }),
            _ if !helps(te, &fix, need) => {
                let reason = "a rule was found, but by it the refusal stays".to_owned();
                plan.unfixed.push(about(seen, reason));
            }
            _ => kept.push((seen, fix)),
        }
    }
    for (seen, fix) in &kept {
        let settings = settings(fix, &te.db);
        if !settings.is_empty() {
            let words = settings.iter().map(|it| format!("--te-boolean {it}"));
            plan.booleans.push(Told {
                rules: dormant(&decider, &seen.need, &te.db),
                ..about(seen, words.collect::<Vec<_>>().join(" "))
            });
        }
    }
    propose(&mut plan, kept, te, compiles);
    plan
}

/// Adds up rules, but for those with which the policy does not compile.
fn propose(
    plan: &mut Plan,
    kept: Vec<(&Seen, Fix)>,
    te: &Te,
    compiles: impl Fn(&Rules) -> Result<(), String>,
) {
    let mut all: BTreeMap<Added, Proposed> = BTreeMap::new();
    for (seen, fix) in kept {
        for (rule, permissions) in fix.rules {
            let new = || Proposed {
                rule: rule.clone(),
                permissions: 0,
                of: Sum::default(),
                examples: BTreeSet::new(),
            };
            let proposed = all.entry(rule.clone()).or_insert_with(new);
            proposed.permissions |= permissions;
            proposed.of.join(&seen.of);
            proposed.examples.insert(seen.example.clone());
        }
    }
    plan.proposed = all.into_values().collect();
    if compiles(&plan.rules()).is_ok() {
        return;
    }
    let mut good = Rules::new();
    for mut it in std::mem::take(&mut plan.proposed) {
        let (kept, why) = compiling(&it, &mut good, &compiles);
        if let Some(why) = why {
            plan.unfixed.push(Told {
                reason: format!("the policy does not compile with the rule: {why}"),
                rules: vec![it.rule.text(it.permissions & !kept, &te.db)],
                of: it.of.clone(),
                example: it.examples.first().cloned().unwrap_or_default(),
            });
        }
        it.permissions &= kept;
        if good.contains_key(&it.rule) {
            plan.proposed.push(it);
        }
    }
}

/// The permissions of a rule with which the policy compiles, beside rules that it does with, which the rule joins; and
/// what the compiler says of the others.
fn compiling(
    it: &Proposed,
    good: &mut Rules,
    compiles: &impl Fn(&Rules) -> Result<(), String>,
) -> (u32, Option<String>) {
    let mut kept = 0;
    let mut said = None;
    // all of them, or else each by itself
    let each = (0..32).map(|bit| it.permissions & 1 << bit);
    for some in std::iter::once(it.permissions).chain(each.filter(|&bit| bit != 0)) {
        if kept == it.permissions && kept != 0 || some == it.permissions && said.is_some() {
            break;
        }
        let before = good.insert(it.rule.clone(), kept | some);
        match (compiles(good), before) {
            (Ok(()), _) => kept |= some,
            (Err(why), before) => {
                said.get_or_insert(why);
                match before {
                    Some(before) => good.insert(it.rule.clone(), before),
                    None => good.remove(&it.rule),
                };
            }
        }
    }
    (kept, said)
}

/// What lets through what is needed, and whether something of it no rule does.
fn fix(decider: &Decider<'_>, need: &Need) -> (Fix, bool) {
    let mut fix = Fix::default();
    let mut hindered = !need.unknown.is_empty();
    let mut left = vec![(need.source.clone(), need.target.clone(), need.permissions)];
    while let Some((source, target, permissions)) = left.pop() {
        for refused in decider.explain(&source, &target, need.class, permissions) {
            let is_hindrance = |it: &Because| matches!(it, Because::Constraint(_));
            if refused.because.iter().any(is_hindrance) {
                hindered = true;
                continue;
            }
            for because in refused.because {
                match because {
                    Because::NoRule(mut dormant) if !dormant.is_empty() => {
                        dormant.sort_by_key(|it| it.settings.len());
                        // each permission may have a rule of its own
                        let mut open = refused.permissions;
                        for it in dormant {
                            if let Says::Allow(given) = it.rule.says
                                && given & open != 0
                            {
                                open &= !given;
                                fix.booleans.extend(it.settings);
                            }
                        }
                    }
                    Because::NoRule(_) => {
                        let rule = Added::Types(source.kind, target.kind, need.class);
                        *fix.rules.entry(rule).or_default() |= refused.permissions;
                    }
                    Because::Role => {
                        fix.rules.insert(Added::Roles(source.role, target.role), 0);
                    }
                    Because::Bounds { source, target } => {
                        left.push((source, target, refused.permissions));
                    }
                    Because::Constraint(_) => {}
                }
            }
        }
    }
    (fix, hindered)
}

/// Whether what was refused is let through with a fix, but for what no rule lets through.
fn helps(te: &Te, fix: &Fix, need: &Need) -> bool {
    let mut db = te.db.clone();
    for (rule, permissions) in &fix.rules {
        match *rule {
            Added::Types(source, target, class) => db.rules.push(Rule {
                source,
                target,
                class,
                says: Says::Allow(*permissions),
            }),
            Added::Roles(from, to) => db.role_allows.push((from, to)),
        }
    }
    let mut values = te.values();
    for (&number, &value) in &fix.booleans {
        values[number as usize - 1] = value;
    }
    let decider = Decider::new(&db, &values);
    let left = decider.explain(&need.source, &need.target, need.class, need.permissions);
    let is_hindrance = |it: &Because| is_constraint(&decider, it, need.class);
    left.iter().all(|it| it.because.iter().any(is_hindrance))
}

/// Whether a constraint refuses, the source's or that of what bounds it.
fn is_constraint(decider: &Decider<'_>, because: &Because, class: Number) -> bool {
    match because {
        Because::Constraint(_) => true,
        Because::Bounds { source, target } => {
            let refused = |(source, target): (&Context, &Context)| {
                decider.explain(source, target, class, u32::MAX)
            };
            let all = refused((source, target));
            all.iter()
                .flat_map(|it| &it.because)
                .any(|it| is_constraint(decider, it, class))
        }
        Because::NoRule(_) | Because::Role => false,
    }
}

/// Which constraint it is, or what the policy does not know.
fn hindrance(seen: &Seen, te: &Te) -> Told {
    let need = &seen.need;
    let decider = te.decider();
    let refused = decider.explain(&need.source, &need.target, need.class, need.permissions);
    let mut told = about(seen, String::new());
    let mut why = BTreeSet::new();
    for reason in reasons(need, &refused, &te.db) {
        if reason.kind.is_final() {
            why.insert(format!(
                "{{ {} }}: {}",
                reason.permissions.join(" "),
                reason.kind.text()
            ));
            told.rules.extend(reason.rule);
        }
    }
    told.reason = match why.is_empty() {
        true => "a constraint refuses it to the type that bounds the source's".into(),
        false => why.into_iter().collect::<Vec<_>>().join("; "),
    };
    told
}

/// The rules that booleans turn on.
fn dormant(decider: &Decider<'_>, need: &Need, db: &PolicyDb) -> Vec<String> {
    let refused = decider.explain(&need.source, &need.target, need.class, need.permissions);
    let of = reasons(need, &refused, db).into_iter();
    of.filter(|it| !it.booleans.is_empty())
        .filter_map(|it| it.rule)
        .collect()
}

fn settings(fix: &Fix, db: &PolicyDb) -> Vec<String> {
    let each = fix.booleans.iter().map(|(&number, &value)| {
        let name = &db.booleans[number as usize - 1].name;
        format!("{name}={}", if value { "on" } else { "off" })
    });
    each.collect()
}

fn about(seen: &Seen, reason: String) -> Told {
    Told {
        reason,
        rules: Vec::new(),
        of: seen.of.clone(),
        example: seen.example.clone(),
    }
}

impl Added {
    /// As a policy's source has it.
    pub fn text(&self, permissions: u32, db: &PolicyDb) -> String {
        let role = |number: Number| &db.roles[number as usize - 1].name;
        match *self {
            Added::Types(source, target, class) => format!(
                "allow {} {}:{} {};",
                db.type_text(source),
                target_text(source, target, db),
                db.classes[class as usize - 1].name,
                db.permissions_text(class, permissions)
            ),
            Added::Roles(from, to) => format!("allow {} {};", role(from), role(to)),
        }
    }

    /// The same in CIL.
    pub fn cil(&self, permissions: u32, db: &PolicyDb) -> String {
        let role = |number: Number| &db.roles[number as usize - 1].name;
        match *self {
            Added::Types(source, target, class) => format!(
                "(allow {} {} ({} ({})))",
                db.type_text(source),
                target_text(source, target, db),
                db.classes[class as usize - 1].name,
                db.permission_names(class, permissions).join(" ")
            ),
            Added::Roles(from, to) => format!("(roleallow {} {})", role(from), role(to)),
        }
    }
}

fn target_text(source: Number, target: Number, db: &PolicyDb) -> &str {
    match source == target {
        true => "self",
        false => db.type_text(target),
    }
}
