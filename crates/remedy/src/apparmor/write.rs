//! What is proposed for the profiles, as a patch that explains itself, and as JSON.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use tidegate_audit::printable;

use super::bench::Bench;
use super::gather::Gathered;
use super::plan::{Plan, Told};
use crate::proposal::Propose;

/// What `learn --json` prints of profiles.
#[derive(Debug, Serialize)]
pub struct Proposal {
    /// Rules, each with the refusals that it is for.
    pub proposed: Vec<Told>,
    /// What a `deny` refuses.
    pub denied: Vec<Told>,
    /// What no rule lets through, with what does.
    pub unfixed: Vec<Told>,
    /// Refusals in all.
    pub refusals: u64,
    /// Refusals that the profiles let through already.
    pub settled: u64,
    /// Refusals of programs that come to have a profile of their own by a proposed rule.
    pub elsewhere: u64,
    /// Refusals that were left out: too many kinds.
    pub left_out: u64,
    /// The change.
    pub patch: String,
}

impl Propose for Proposal {
    fn text(&self) -> &str {
        &self.patch
    }

    fn counts(&self) -> String {
        format!(
            "{} rules proposed, {} refused by a `deny`, {} that no rule lets through",
            self.proposed.len(),
            self.denied.len(),
            self.unfixed.len()
        )
    }
}

impl Proposal {
    /// Of a plan.
    pub fn new(plan: Plan, gathered: &Gathered, bench: &Bench) -> io::Result<Proposal> {
        let changes = bench.changes(&plan.added)?;
        let mut proposal = Proposal {
            proposed: plan.proposed,
            denied: plan.denied,
            unfixed: plan.unfixed,
            refusals: gathered.refusals,
            settled: plan.settled,
            elsewhere: plan.elsewhere,
            left_out: gathered.left_out,
            patch: String::new(),
        };
        // writing into a String does not fail
        let _ = proposal.head();
        for change in changes {
            proposal.patch.push('\n');
            proposal.patch.push_str(&change.diff());
        }
        Ok(proposal)
    }

    fn head(&mut self) -> std::fmt::Result {
        let mut out = String::new();
        writeln!(
            out,
            "# Proposed by `tidegate learn` from {} refusals by profiles.",
            self.refusals
        )?;
        writeln!(
            out,
            "# Read it; `patch -d / -p1` puts it into the profiles' files."
        )?;
        for (count, what) in [
            (self.settled, "are let through by the profiles already"),
            (
                self.elsewhere,
                "are of programs that have a profile of their own by what is proposed: learn again then",
            ),
            (self.left_out, "are left out: of too many kinds"),
        ] {
            if count > 0 {
                writeln!(out, "# {count} of them {what}.")?;
            }
        }
        for told in &self.proposed {
            comment(&mut out, told)?;
        }
        for (title, of) in [
            ("Refused by a rule: not proposed", &self.denied),
            ("No rule lets these through", &self.unfixed),
        ] {
            if !of.is_empty() {
                writeln!(out, "\n# ---- {title} {}", "-".repeat(70 - title.len()))?;
            }
            for told in of {
                comment(&mut out, told)?;
            }
        }
        self.patch = out;
        Ok(())
    }
}

fn comment(out: &mut String, told: &Told) -> std::fmt::Result {
    let rule = told.rule.as_deref().unwrap_or("no rule");
    writeln!(
        out,
        "\n# profile {}: {}",
        printable(&told.profile),
        printable(rule)
    )?;
    writeln!(out, "#   {}", told.of.words())?;
    writeln!(out, "#   such as: {}", told.example)?;
    if let Some(file) = &told.file {
        writeln!(out, "#   goes to: {}", printable(file))?;
    }
    for note in &told.notes {
        writeln!(out, "#   note:    {note}")?;
    }
    if let Some(reason) = &told.reason {
        writeln!(out, "#   instead: {}", printable(reason))?;
    }
    Ok(())
}
