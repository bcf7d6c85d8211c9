//! What is proposed for a SELinux policy, as CIL or as a module's source, and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use tidegate_audit::printable;
use tidegate_bundle::te::db::PolicyDb;

use super::gather::Gathered;
use super::plan::{Added, Plan, Proposed, Rules, Told};
use crate::proposal::Propose;
use crate::sum::Sum;

/// So many examples of each rule are shown.
const EXAMPLES: usize = 3;

/// How rules are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// CIL, which `--te` and semodule(8) take
    Cil,
    /// A module's source, as checkmodule(8) takes it
    Te,
}

/// What `learn --json` prints of a SELinux policy.
#[derive(Debug, Serialize)]
pub struct Proposal {
    /// Rules, each with the refusals that it is for.
    pub proposed: Vec<Rule>,
    /// Booleans that fix, each with the rule that it turns on.
    pub booleans: Vec<Told>,
    /// What looks like an attack.
    pub suspicious: Vec<Told>,
    /// What constraints refuse, and what else no rule lets through.
    pub unfixed: Vec<Told>,
    /// Refusals in all.
    pub refusals: u64,
    /// Refusals that the policy lets through already.
    pub settled: u64,
    /// Refusals that were left out: too many kinds.
    pub left_out: u64,
    /// The rules, in the syntax that was asked for.
    pub text: String,
}

/// A rule with the refusals that it is for.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// As a policy's source has it.
    pub rule: String,
    /// In CIL.
    pub cil: String,
    /// The refusals.
    #[serde(flatten)]
    pub of: Sum,
    /// What was refused, for example.
    pub examples: Vec<String>,
}

impl Propose for Proposal {
    fn text(&self) -> &str {
        &self.text
    }

    fn counts(&self) -> String {
        format!(
            "{} rules proposed, {} that booleans fix, {} to be looked at first, {} that no rule lets through",
            self.proposed.len(),
            self.booleans.len(),
            self.suspicious.len(),
            self.unfixed.len()
        )
    }
}

impl Proposal {
    /// Of a plan.
    pub fn new(plan: Plan, gathered: &Gathered, db: &PolicyDb, syntax: Syntax) -> Proposal {
        let rules = plan.rules();
        let rule = |it: Proposed| Rule {
            rule: it.rule.text(it.permissions, db),
            cil: it.rule.cil(it.permissions, db),
            of: it.of,
            examples: it.examples.into_iter().take(EXAMPLES).collect(),
        };
        let mut proposal = Proposal {
            proposed: plan.proposed.into_iter().map(rule).collect(),
            booleans: plan.booleans,
            suspicious: plan.suspicious,
            unfixed: plan.unfixed,
            refusals: gathered.refusals,
            settled: plan.settled,
            left_out: gathered.left_out,
            text: String::new(),
        };
        let mut out = String::new();
        // writing into a String does not fail
        let _ = proposal.write(&mut out, &rules, db, syntax);
        proposal.text = out;
        proposal
    }

    fn write(
        &self,
        out: &mut String,
        rules: &Rules,
        db: &PolicyDb,
        syntax: Syntax,
    ) -> std::fmt::Result {
        let mark = match syntax {
            Syntax::Cil => ";",
            Syntax::Te => "#",
        };
        writeln!(
            out,
            "{mark} Proposed by `tidegate learn` from {} refusals by the SELinux policy.",
            self.refusals
        )?;
        writeln!(out, "{mark} Read it before you put it in force.")?;
        for (count, what) in [
            (self.settled, "are let through by the policy already"),
            (self.left_out, "are left out: of too many kinds"),
        ] {
            if count > 0 {
                writeln!(out, "{mark} {count} of them {what}.")?;
            }
        }
        if syntax == Syntax::Te && !rules.is_empty() {
            write!(out, "\n{}", requirements(rules, db))?;
        }
        for it in &self.proposed {
            writeln!(out, "\n{mark} {}", it.of.words())?;
            for example in &it.examples {
                writeln!(out, "{mark}   such as: {}", printable(example))?;
            }
            writeln!(
                out,
                "{}",
                match syntax {
                    Syntax::Cil => &it.cil,
                    Syntax::Te => &it.rule,
                }
            )?;
        }
        for (title, word, told) in [
            ("Booleans fix these", "fix:     ", &self.booleans),
            (
                "Not proposed: look at these first",
                "instead: ",
                &self.suspicious,
            ),
            ("No rule lets these through", "instead: ", &self.unfixed),
        ] {
            if !told.is_empty() {
                let line = "-".repeat(70 - title.len());
                writeln!(out, "\n{mark} ---- {title} {line}")?;
            }
            for it in told {
                writeln!(out, "\n{mark} {}", it.of.words())?;
                writeln!(out, "{mark}   such as: {}", printable(&it.example))?;
                writeln!(out, "{mark}   {word}{}", printable(&it.reason))?;
                for rule in &it.rules {
                    writeln!(out, "{mark}   {}", printable(rule))?;
                }
            }
        }
        Ok(())
    }
}

/// Rules in CIL, as they are compiled to be checked.
pub fn cil(rules: &Rules, db: &PolicyDb) -> String {
    let each = rules.iter();
    each.map(|(rule, permissions)| rule.cil(*permissions, db) + "\n")
        .collect()
}

/// What a module's source begins with.
fn requirements(rules: &Rules, db: &PolicyDb) -> String {
    let mut symbols = BTreeSet::new();
    let mut classes: BTreeMap<u32, u32> = BTreeMap::new();
    for (rule, permissions) in rules {
        match *rule {
            Added::Types(source, target, class) => {
                symbols.extend([source, target].map(|it| format!("type {};", db.type_text(it))));
                *classes.entry(class).or_default() |= permissions;
            }
            Added::Roles(from, to) => {
                let role = |it: u32| format!("role {};", db.roles[it as usize - 1].name);
                symbols.extend([from, to].map(role));
            }
        }
    }
    symbols.extend(classes.into_iter().map(|(class, permissions)| {
        let name = &db.classes[class as usize - 1].name;
        format!("class {name} {};", db.permissions_text(class, permissions))
    }));
    let lines: String = symbols.iter().map(|it| format!("\t{it}\n")).collect();
    format!("module learned 1.0;\n\nrequire {{\n{lines}}}\n")
}
