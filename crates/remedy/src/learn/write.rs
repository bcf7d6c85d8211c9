//! What is proposed, as a map that explains itself, and as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_audit::is_unseen;

use super::cover::{Choice, Plan};
use super::gather::{Gathered, Kind};
use crate::lomac::{Fix, shown};
use crate::proposal::Propose;
use crate::sum::Sum;
use crate::{apparmor, selinux};

/// What `learn --json` prints.
#[derive(Debug, Serialize)]
pub struct Proposal {
    /// To be added to the map, each with the refusals it is for.
    pub proposed: Vec<Told>,
    /// To be looked at first, with the reason.
    pub refused: Vec<Told>,
    /// What no statement fixes, with what does.
    pub unfixed: Vec<Told>,
    /// Refusals in all.
    pub refusals: u64,
    /// Refusals that the policy lets through already.
    pub settled: u64,
    /// Refusals that were left out: too many kinds, or of other levels.
    pub left_out: u64,
    /// Records that the log itself is missing.
    pub lost: u64,
    /// Lines that are no records.
    pub broken: u64,
    /// What the SELinux policy lacks, if it refused anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub te: Option<selinux::Proposal>,
    /// What the profiles lack, if they refused anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<apparmor::Proposal>,
    /// The map.
    pub map: String,
}

/// A fix or its absence, and the refusals it is about.
#[derive(Debug, Serialize)]
pub struct Told {
    /// What fixes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Why it is refused, or what helps instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The refusals.
    #[serde(flatten)]
    pub of: Sum,
    /// What was refused, for example.
    pub example: String,
}

impl Propose for Proposal {
    fn text(&self) -> &str {
        &self.map
    }

    fn counts(&self) -> String {
        format!(
            "{} proposed, {} to be looked at first, {} that no statement fixes",
            self.proposed.len(),
            self.refused.len(),
            self.unfixed.len()
        )
    }
}

impl Proposal {
    /// Of a plan; `include` is the line that takes the policy in.
    pub fn new(plan: &Plan, kinds: &[Kind], gathered: &Counts, include: &str) -> Proposal {
        let told = |choice: &Choice, reason: Option<&String>| Told {
            fix: Some(choice.fix.clone()),
            ..about(kinds, &choice.kinds, reason)
        };
        let mut proposal = Proposal {
            proposed: plan.chosen.iter().map(|c| told(c, None)).collect(),
            refused: plan
                .refused
                .iter()
                .map(|(why, c)| told(c, Some(why)))
                .collect(),
            unfixed: plan
                .unfixed
                .iter()
                .map(|(advice, of)| about(kinds, of, Some(advice)))
                .collect(),
            refusals: gathered.refusals,
            settled: plan.settled.iter().map(|&at| kinds[at].count).sum(),
            left_out: gathered.left_out,
            lost: gathered.lost,
            broken: gathered.broken,
            te: None,
            profiles: None,
            map: String::new(),
        };
        proposal.map = map(&proposal, include);
        proposal
    }
}

/// The numbers of a [`Gathered`] that outlive it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    refusals: u64,
    left_out: u64,
    lost: u64,
    broken: u64,
}

impl From<&Gathered> for Counts {
    fn from(g: &Gathered) -> Counts {
        Counts {
            refusals: g.refusals,
            left_out: g.left_out + g.foreign,
            lost: g.lost,
            broken: g.broken,
        }
    }
}

fn about(kinds: &[Kind], of: &[usize], reason: Option<&String>) -> Told {
    Told {
        fix: None,
        reason: reason.cloned(),
        of: Sum::of(of.iter().map(|&at| &kinds[at])),
        example: of
            .first()
            .map_or_else(String::new, |&at| example(&kinds[at])),
    }
}

/// What was refused: `open-write /home/ann/x`.
fn example(kind: &Kind) -> String {
    let refusal = &kind.refusal;
    let object = &refusal.object;
    let what = object.path.as_deref().map(shown);
    let what = what.or_else(|| object.address.map(|a| a.to_string()));
    match what {
        Some(what) => format!("{} {what}", refusal.op.word()),
        None => refusal.op.word().into(),
    }
}

/// The map: it includes the policy, and adds what is proposed.
pub fn map(proposal: &Proposal, include: &str) -> String {
    let mut out = String::new();
    // writing into a String does not fail
    let _ = head(&mut out, proposal, include);
    out
}

fn head(out: &mut String, p: &Proposal, include: &str) -> std::fmt::Result {
    writeln!(
        out,
        "# Proposed by `tidegate learn` from {} refusals.",
        p.refusals
    )?;
    writeln!(
        out,
        "# Read it before you put it in force: each statement says what it gives away."
    )?;
    for (count, what) in [
        (p.settled, "are let through by the policy already"),
        (
            p.left_out,
            "are left out: of too many kinds, or of another policy's levels",
        ),
    ] {
        if count > 0 {
            writeln!(out, "# {count} of them {what}.")?;
        }
    }
    if p.lost > 0 {
        writeln!(
            out,
            "# {} records were lost before they were written: what they said is not here.",
            p.lost
        )?;
    }
    if p.broken > 0 {
        writeln!(out, "# {} lines of the log are no records.", p.broken)?;
    }
    writeln!(out, "\n{include}")?;
    // a later statement of one place is in the first that named it
    let mut places: Vec<String> = Vec::new();
    for told in &p.proposed {
        comment(out, told)?;
        for statement in told.fix.iter().flat_map(|m| &m.statements) {
            if !places.contains(statement) {
                writeln!(out, "{statement}")?;
                places.push(statement.clone());
            }
        }
    }
    if !p.refused.is_empty() {
        section(out, "Not proposed: look at these first")?;
        for told in &p.refused {
            comment(out, told)?;
            let fix = told.fix.iter();
            for line in fix.flat_map(|m| m.statements.iter().chain(&m.command)) {
                writeln!(out, "# REFUSED: {line}")?;
            }
        }
    }
    if !p.unfixed.is_empty() {
        section(out, "No statement fixes these")?;
        for told in &p.unfixed {
            comment(out, told)?;
        }
    }
    Ok(())
}

fn section(out: &mut String, title: &str) -> std::fmt::Result {
    writeln!(
        out,
        "\n# ---- {title} {}",
        "-".repeat(70usize.saturating_sub(title.len()))
    )
}

fn comment(out: &mut String, told: &Told) -> std::fmt::Result {
    writeln!(out, "\n# {}", told.of.words())?;
    writeln!(out, "#   such as:      {}", told.example)?;
    if let Some(reason) = &told.reason {
        let word = if told.fix.is_some() {
            "not proposed:"
        } else {
            "instead:     "
        };
        writeln!(out, "#   {word} {}", reason.replace(is_unseen, "?"))?;
    }
    if let Some(fix) = &told.fix {
        writeln!(out, "#   lets through: {}", fix.lets)?;
        writeln!(out, "#   gives away:   {}", fix.gives)?;
        for other in &fix.silences {
            writeln!(out, "#   overrides:    {}", shown(other))?;
        }
        for secret in &fix.opens {
            writeln!(out, "#   opens:        {}", shown(secret))?;
        }
    }
    Ok(())
}
