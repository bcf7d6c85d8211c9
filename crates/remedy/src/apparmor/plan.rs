//! What is proposed for the profiles, and what is not.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::Serialize;
use tidegate_bundle::profile::{Access, ProfileSet};
use tidegate_policy::profile::Statement;

use super::bench::{Added, Bench};
use super::gather::{Gathered, Seen};
use super::need::Object;
use super::rule::{Rule, transition};
use super::verdict::{Verdict, unmet, verdict};
use crate::sum::Sum;

/// Refusals, and what lets them through or why nothing does.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// The profile.
    pub profile: String,
    /// The rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file that it is put in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What the records did not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<&'static str>,
    /// Why there is no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    pub proposed: Vec<Told>,
    /// What a `deny` refuses.
    pub denied: Vec<Told>,
    /// What no rule lets through that was found.
    pub unfixed: Vec<Told>,
    /// Refusals that the profiles let through already.
    pub settled: u64,
    /// Refusals of programs that come to have a profile of their own by a proposed rule.
    pub elsewhere: u64,
    /// What is added.
    pub added: Added,
}

/// A rule that is tried.
struct Tried {
    seen: Seen,
    rule: Rule,
}

/// Decides what to propose. `tell` hears what is being done.
pub fn plan(gathered: &Gathered, bench: &Bench, mut tell: impl FnMut(&str)) -> Plan {
    let mut plan = Plan::default();
    for ((why, profile), (of, example)) in &gathered.unlearned {
        plan.unfixed.push(Told {
            reason: Some(why.text().to_owned()),
            profile: profile.clone(),
            ..about(of, example)
        });
    }
    let mut tried = Vec::new();
    for seen in merged(gathered, &bench.set, &mut plan.elsewhere) {
        let profile = &seen.need.profile;
        let reason = match verdict(&bench.set, &seen.need) {
            Verdict::Allowed => {
                plan.settled += seen.of.count;
                continue;
            }
            Verdict::NoProfile => "the policy has no such profile",
            _ if bench.file_for(profile).is_none() => "where the profile stands was not found",
            _ => {
                let rule = Rule::new(&seen.need, &bench.set);
                tried.push(Tried { seen, rule });
                continue;
            }
        };
        plan.unfixed.push(failed(&seen, reason.to_owned()));
    }
    let tried = checked(tried, bench, &mut plan, &mut tell);
    plan.added = added(&tried);
    for Tried { seen, rule } in tried {
        let file = bench.file_for(&seen.need.profile).map(Path::display);
        plan.proposed.push(Told {
            profile: seen.need.profile.clone(),
            rule: Some(rule.text),
            file: file.map(|file| file.to_string()),
            notes: rule.notes,
            ..about(&seen.of, &seen.example)
        });
    }
    plan
}

/// The rules that compile, and let through what they are for. What is left of one that does not help
/// is tried again.
fn checked(
    mut tried: Vec<Tried>,
    bench: &Bench,
    plan: &mut Plan,
    tell: &mut impl FnMut(&str),
) -> Vec<Tried> {
    while !tried.is_empty() {
        tell("compiling the profiles with what is proposed");
        let Ok(set) = bench.with(&added(&tried)) else {
            tried = compiling(tried, bench, plan, tell);
            continue;
        };
        let (helping, others): (Vec<_>, Vec<_>) = tried
            .into_iter()
            .partition(|one| unmet(&set, &one.seen.need).is_empty());
        if others.is_empty() {
            return helping;
        }
        tried = helping;
        tried.extend(
            others
                .into_iter()
                .filter_map(|one| left(one, &set, bench, plan)),
        );
    }
    tried
}

/// What is left of a rule without what it does not let through, which is told.
fn left(one: Tried, set: &ProfileSet, bench: &Bench, plan: &mut Plan) -> Option<Tried> {
    let Tried { mut seen, .. } = one;
    let access = seen.need.access;
    seen.need.access = unmet(set, &seen.need);
    match bench.denies(&seen.need) {
        Some(deny) => plan.denied.push(failed(&seen, by(deny))),
        None => {
            let reason = "the rule that it takes was not found";
            plan.unfixed.push(failed(&seen, reason.into()));
        }
    }
    seen.need.access = access - seen.need.access;
    let is_left = matches!(seen.need.object, Object::File(_)) && !seen.need.access.is_empty();
    is_left.then(|| Tried {
        rule: Rule::new(&seen.need, &bench.set),
        seen,
    })
}

/// What of all is needed of each profile and object. Whoever a proposed rule gives a profile of its
/// own is not learned for the one that it comes from.
fn merged(gathered: &Gathered, set: &ProfileSet, elsewhere: &mut u64) -> Vec<Seen> {
    let mut leaving = HashSet::new();
    for Seen { need, .. } in gathered.seen.values() {
        if let Object::File(path) = &need.object
            && need.access.contains(Access::EXEC)
            && transition(need, path, set) != "ix"
        {
            leaving.insert((&need.profile, path));
        }
    }
    let mut all: BTreeMap<(&str, &Object), Seen> = BTreeMap::new();
    for ((profile, object, program), seen) in &gathered.seen {
        let is_leaving = |(from, path): &(&String, &String)| *from == profile && program.is(path);
        if leaving.iter().any(is_leaving) {
            *elsewhere += seen.of.count;
            continue;
        }
        all.entry((profile, object))
            .and_modify(|known| {
                known.need.add(&seen.need);
                known.of.join(&seen.of);
            })
            .or_insert_with(|| seen.clone());
    }
    all.into_values().collect()
}

fn added(tried: &[Tried]) -> Added {
    let mut added = Added::new();
    for one in tried {
        let rules = added.entry(one.seen.need.profile.clone()).or_default();
        if !rules.contains(&one.rule.text) {
            rules.push(one.rule.text.clone());
        }
    }
    added
}

/// The rules that compile with those before them.
fn compiling(
    tried: Vec<Tried>,
    bench: &Bench,
    plan: &mut Plan,
    tell: &mut impl FnMut(&str),
) -> Vec<Tried> {
    let mut kept: Vec<Tried> = Vec::new();
    for one in tried {
        tell("looking for the rules that do not compile");
        kept.push(one);
        if let Err(why) = bench.with(&added(&kept))
            && let Some(one) = kept.pop()
        {
            plan.unfixed
                .push(failed(&one.seen, format!("`{}`: {why}", one.rule.text)));
        }
    }
    kept
}

/// The rule that refuses.
pub fn by(deny: &Statement) -> String {
    format!(
        "{}:{}: `{},` refuses it",
        deny.file.display(),
        deny.line,
        deny.text
    )
}

fn failed(seen: &Seen, reason: String) -> Told {
    Told {
        profile: seen.need.profile.clone(),
        reason: Some(reason),
        ..about(&seen.of, &seen.example)
    }
}

fn about(of: &Sum, example: &str) -> Told {
    Told {
        profile: String::new(),
        rule: None,
        file: None,
        notes: Vec::new(),
        reason: None,
        of: of.clone(),
        example: example.to_owned(),
    }
}
