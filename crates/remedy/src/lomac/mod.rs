//! The fixes of a refusal: what could be added to the map, so that it is not refused.
//!
//! **The narrowest** is the one that gives least away, and that is asked in this order:
//!
//! 1. *What does it trust?* ([`Trust`]). Best is nothing: a `creator` area, or an object
//!    that is lowered. Then what is lower stays lower, whoever reads it falls, and the
//!    model's promise holds for everything else; nobody has to be believed. After that
//!    comes trust in one named thing, the smaller first: a file, an address, a program
//!    with the network. A secret that is opened comes after those, since what has been
//!    read cannot be taken back, and a program that is trusted with everything last.
//! 2. *How much does it cover?* One file before a directory, a directory before a tree of
//!    many users', a deep tree before a shallow one. A path is generalised only where the
//!    refusal itself shows that it must be (a name with a process's number or random
//!    letters in it, a user's number below /run/user), or where several names in one
//!    directory, or several users, were refused the same.
//! 3. *How many statements?* Then the shorter.
//!
//! Trust comes before width as a statement's width shows in it, while what trust costs
//! shows only on the day it is broken.
//!
//! A fix is **checked**: its statements are compiled on top of the policy, and what was
//! refused is decided anew by the reference model ([`tidegate_model::Case`]), the subject's
//! falls included. What would still be refused is not proposed.

mod advice;
mod cause;
mod check;
mod draft;
mod name;
mod object;
mod reach;
mod refusal;
mod statement;
mod suspect;
#[cfg(test)]
mod tests;
mod trusted;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::Record;
use tidegate_bundle::{Policy, RuleSource};
use tidegate_policy::Effects;

use crate::explanation::{Explain, Explanation, Shown};

pub use advice::advice;
pub use check::{Bench, allows};
pub use draft::{Draft, Trust};
pub use name::{any_home, split};
pub use object::{Evidence, shown};
pub use refusal::Refusal;
pub use statement::{Statement, lines};
pub use suspect::suspicion;

/// Rules beyond which a policy is not compiled again for every question.
const MAX_RULES: usize = 5000;

/// A fix that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What is added to the map, a statement each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// Instead, or besides: a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What it trusts.
    pub trust: Trust,
    /// What it lets through.
    pub lets: String,
    /// What it gives away.
    pub gives: String,
    /// Statements of the map that would count nowhere any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<String>,
    /// Secrets that would be open to lower subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<String>,
}

/// What this model says of its refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fixes {
    /// The fixes, the narrowest first.
    pub fixes: Vec<Fix>,
    /// Why it looks like an attack, if it does.
    pub suspicion: Option<String>,
    /// What helps where no fix does. It is shown as any model's advice is.
    pub advice: Option<String>,
}

impl Explain for Fixes {
    fn explain(chain: &[Record], policy: &Arc<Policy>) -> Option<Explanation<Fixes>> {
        let refusal = Refusal::of(chain, policy)?;
        Some(Explanation::Refused(fixes(&refusal, policy)))
    }

    fn lines(&self, shown: &Shown<'_>) -> Vec<String> {
        if shown.all {
            let each = self.fixes.iter();
            return each.flat_map(|fix| whole(fix, shown.map)).collect();
        }
        match (&self.suspicion, self.fixes.first()) {
            (Some(why), Some(_)) => vec![format!(
                "fix: none proposed, as this looks like an attack ({why}): \
                 `tidegate why --fixes` lists what would"
            )],
            (None, Some(fix)) => vec![format!("fix: {}", how(fix, shown.map))],
            (_, None) => Vec::new(),
        }
    }
}

/// What is to be done; `map` says where statements belong.
fn how(fix: &Fix, map: &str) -> String {
    let statements = fix.statements.join("; ");
    match &fix.command {
        Some(command) if fix.statements.is_empty() => command.clone(),
        Some(command) => format!("{statements}   ({map}); and {command}"),
        None => format!("{statements}   ({map})"),
    }
}

/// A fix with what it lets through and gives away.
fn whole(fix: &Fix, map: &str) -> Vec<String> {
    let mut lines = vec![
        format!("fix: {}", how(fix, map)),
        format!("    lets through: {}", fix.lets),
        format!("    gives away:   {}", fix.gives),
    ];
    let also = |word: &'static str| move |what: &String| format!("    {word} {what}");
    lines.extend(fix.silences.iter().map(also("overrides:   ")));
    lines.extend(fix.opens.iter().map(also("opens:       ")));
    lines
}

/// The fixes of a refusal under a policy.
fn fixes(refusal: &Refusal, policy: &Arc<Policy>) -> Fixes {
    let suspicion = suspicion(refusal, policy).map(str::to_owned);
    let mut bench = Bench::new(Arc::clone(policy));
    let only = |advice: &str| Fixes {
        advice: Some(advice.into()),
        ..Fixes::default()
    };
    if policy.rules.len() > MAX_RULES {
        return only("the policy is too large to try fixes on: `tidegate learn` does");
    }
    if let Some(case) = refusal.case(policy)
        && allows(&case, policy)
    {
        return only("by the policy in force it would not be refused now");
    }
    let drafts = drafts(refusal, policy, Evidence::default());
    let fixes: Vec<Fix> = checked(refusal, drafts, &mut bench)
        .iter()
        .map(|(draft, new)| describe(draft, policy, new))
        .collect();
    let advice = fixes.is_empty().then(|| advice(refusal, policy));
    Fixes {
        fixes,
        suspicion,
        advice,
    }
}

/// What might fix a refusal, the narrowest first.
pub fn drafts(refusal: &Refusal, policy: &Arc<Policy>, evidence: Evidence) -> Vec<Draft> {
    let ground = object::Ground {
        refusal,
        policy,
        evidence,
    };
    let mut drafts = ground.drafts();
    drafts.extend(cause::drafts(refusal, policy));
    drafts.sort_by_cached_key(|d| (d.trust, d.width, d.statements.len(), lines(&d.statements)));
    drafts.dedup();
    drafts
}

/// Those that fix it, the narrowest first, with the policy that each makes. A fix that opens a
/// secret as a side effect is marked as one that opens it on purpose.
pub fn checked(
    refusal: &Refusal,
    drafts: Vec<Draft>,
    bench: &mut Bench,
) -> Vec<(Draft, Arc<Policy>)> {
    let Some(case) = refusal.case(&bench.policy) else {
        return Vec::new();
    };
    let fixed = drafts.into_iter().filter_map(|draft| {
        let after = bench.fixed(&case, &draft)?;
        let least = if bench.opens(&draft) {
            Trust::Secret
        } else {
            Trust::Nothing
        };
        let trust = draft.trust.max(least);
        Some((draft.trusting(trust), after))
    });
    let mut fixed: Vec<_> = fixed.collect();
    fixed.sort_by_key(|(draft, _)| draft.trust);
    fixed
}

/// A fix in words.
pub fn describe(draft: &Draft, before: &Policy, after: &Policy) -> Fix {
    let effects = Effects::of(before, after);
    let named =
        |sources: &[RuleSource]| sources.iter().map(|s| format!("{s}: {}", s.text)).collect();
    let command = draft.promote.as_ref().map(|(path, level)| {
        let level = before.levels.get(usize::from(*level));
        let level = level.map_or("?", String::as_str);
        format!("tidegate promote {} --level {level}", quoted(path))
    });
    Fix {
        statements: draft.statements.iter().map(Statement::text).collect(),
        command,
        trust: draft.trust,
        lets: draft.lets.clone(),
        gives: draft.gives.clone(),
        silences: named(&effects.silenced),
        opens: named(&effects.opened),
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
