//! The smallest set of mends: greedy set cover over those that were checked, weighed by
//! what they give away.
//!
//! Greedy choice takes, again and again, the mend with the least weight for each kind of
//! refusal that it adds. What was chosen is compiled whole each time, and everything that
//! was mended has to stay so; and what looks like an attack has to stay refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidegate_model::Case;
use tidegate_policy::Policy;

use super::gather::Kind;
use crate::mend::{self, Bench, Draft, Mend, Statement, Trust};

/// Siblings that were refused the same, from which on their directory is named.
const SIBLINGS: usize = 3;
/// Mends that are looked at of each refusal.
const DRAFTS: usize = 6;

/// A mend that was chosen, or that is told of, and the kinds it is for.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The mend.
    pub mend: Mend,
    /// Indices of the kinds.
    pub kinds: Vec<usize>,
}

/// What is proposed.
#[derive(Debug, Default)]
pub struct Plan {
    /// To be added to the map.
    pub chosen: Vec<Choice>,
    /// To be looked at first: why, and what would mend it.
    pub refused: Vec<(String, Choice)>,
    /// No statement mends these; what does.
    pub unmended: Vec<(String, Vec<usize>)>,
    /// The policy lets these through already.
    pub settled: Vec<usize>,
}

/// A mend that may be chosen.
struct Candidate {
    draft: Draft,
    after: Arc<Policy>,
    kinds: Vec<usize>,
}

/// Decides what to propose. `tell` hears how far it has come: done, of how many.
pub fn plan(
    kinds: &[Kind],
    policy: &Arc<Policy>,
    include_untrusted: bool,
    mut tell: impl FnMut(usize, usize),
) -> Plan {
    let mut plan = Plan::default();
    let mut bench = Bench::new(Arc::clone(policy));
    let siblings = siblings(kinds);
    let cases: Vec<Option<Case>> = kinds.iter().map(|k| k.refusal.case(policy)).collect();
    let mut candidates: BTreeMap<String, Candidate> = BTreeMap::new();
    let mut unmended: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut open: Vec<usize> = Vec::new();
    let mut shut: BTreeMap<(String, String), Choice> = BTreeMap::new();
    let mut attacks: Vec<usize> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        tell(at, kinds.len());
        let refusal = &kind.refusal;
        if cases[at]
            .as_ref()
            .is_some_and(|case| mend::allows(case, policy))
        {
            plan.settled.push(at);
            continue;
        }
        let mut drafts = mend::drafts(refusal, policy, siblings[at]);
        drafts.truncate(DRAFTS);
        let checked = mend::checked(refusal, drafts, &mut bench);
        let suspicion = mend::suspicion(refusal, policy).filter(|_| !include_untrusted);
        if suspicion.is_some() {
            attacks.push(at);
        }
        let usable = |d: &Draft| d.promote.is_none() && d.trust < Trust::Secret;
        match (suspicion, checked.first()) {
            (_, None) => unmended
                .entry(mend::advice(refusal, policy))
                .or_default()
                .push(at),
            (None, _) if checked.iter().any(|(draft, _)| usable(draft)) => {
                open.push(at);
                for (draft, after) in checked.into_iter().filter(|(draft, _)| usable(draft)) {
                    candidates
                        .entry(mend::lines(&draft.statements))
                        .or_insert_with(|| Candidate {
                            draft,
                            after,
                            kinds: Vec::new(),
                        });
                }
            }
            (why, Some((draft, after))) => {
                let why = why.unwrap_or("it takes more than to let through what was refused");
                put_by(&mut shut, why, mend::describe(draft, policy, after), at);
            }
        }
    }
    for candidate in candidates.values_mut() {
        candidate.kinds = open
            .iter()
            .copied()
            .filter(|&at| concerns(policy, &candidate.after, kinds, at))
            .filter(|&at| lets(&cases, at, &candidate.after))
            .collect();
        // what would let an attack through is not chosen for anything
        if attacks.iter().any(|&at| lets(&cases, at, &candidate.after)) {
            candidate.kinds.clear();
        }
    }
    let left = choose(&mut plan, candidates, open, &cases, &attacks, &mut bench);
    for at in left {
        let drafts = mend::drafts(&kinds[at].refusal, policy, false);
        match mend::checked(&kinds[at].refusal, drafts, &mut bench).first() {
            Some((draft, after)) => {
                let why = "whatever mends it lets through what looks like an attack, or contradicts another mend";
                put_by(&mut shut, why, mend::describe(draft, policy, after), at);
            }
            None => unmended
                .entry(mend::advice(&kinds[at].refusal, policy))
                .or_default()
                .push(at),
        }
    }
    plan.refused = shut
        .into_iter()
        .map(|((why, _), choice)| (why, choice))
        .collect();
    plan.unmended = unmended.into_iter().collect();
    plan
}

/// Puts a mend aside that is only told of.
fn put_by(shut: &mut BTreeMap<(String, String), Choice>, why: &str, mend: Mend, at: usize) {
    let what = format!("{}{:?}", mend.statements.join("\n"), mend.command);
    let choice = shut.entry((why.to_owned(), what)).or_insert(Choice {
        mend,
        kinds: Vec::new(),
    });
    choice.kinds.push(at);
}

/// The greedy choice; the kinds for which nothing could be chosen.
fn choose(
    plan: &mut Plan,
    candidates: BTreeMap<String, Candidate>,
    open: Vec<usize>,
    cases: &[Option<Case>],
    attacks: &[usize],
    bench: &mut Bench,
) -> Vec<usize> {
    let mut left = open;
    let mut candidates: Vec<Candidate> = candidates.into_values().collect();
    let mut statements: Vec<Statement> = Vec::new();
    let mut picked: Vec<Candidate> = Vec::new();
    while !left.is_empty() {
        let worth = |c: &Candidate| {
            let adds = c.kinds.iter().filter(|at| left.contains(at)).count() as u64;
            (adds > 0).then(|| weight(&c.draft) * 1000 / adds)
        };
        // of equals the first by its text
        let best = (0..candidates.len()).filter_map(|i| Some((worth(&candidates[i])?, i)));
        let Some((_, best)) = best.min() else { break };
        let candidate = candidates.remove(best);
        let mut more = statements.clone();
        let fits = candidate
            .draft
            .statements
            .iter()
            .try_for_each(|s| Statement::merge(&mut more, s));
        let whole = fits.and_then(|()| bench.with(&mend::lines(&more)));
        let kept = whole.is_some_and(|policy| {
            let mended = picked.iter().chain([&candidate]).flat_map(|c| &c.kinds);
            mended.into_iter().all(|&at| lets(cases, at, &policy))
                && !attacks.iter().any(|&at| lets(cases, at, &policy))
        });
        if kept {
            left.retain(|at| !candidate.kinds.contains(at));
            statements = more;
            picked.push(candidate);
        }
    }
    prune(&mut picked);
    let base = Arc::clone(&bench.policy);
    for Candidate {
        draft,
        after,
        kinds,
    } in picked
    {
        let mut mend = mend::describe(&draft, &base, &after);
        // what two of them say of one place is one statement
        let merged = |s: &Statement| statements.iter().find(|m| m.place == s.place);
        let merged = draft.statements.iter().filter_map(merged);
        mend.statements = merged.map(Statement::text).collect();
        plan.chosen.push(Choice { mend, kinds });
    }
    left
}

/// Drops what the others have made needless, the widest first; then each kind is told of
/// once, where it was mended first.
fn prune(picked: &mut Vec<Candidate>) {
    let mut order: Vec<usize> = (0..picked.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(weight(&picked[i].draft)));
    let mut dropped = vec![false; picked.len()];
    for i in order {
        let others = |at: &usize| {
            (0..picked.len()).any(|j| j != i && !dropped[j] && picked[j].kinds.contains(at))
        };
        dropped[i] = picked[i].kinds.iter().all(others);
    }
    let mut keep = dropped.iter().map(|d| !d);
    picked.retain(|_| keep.next().unwrap_or(true));
    let mut told = std::collections::HashSet::new();
    for candidate in picked {
        candidate.kinds.retain(|at| told.insert(*at));
    }
}

/// What a mend gives away, as a number.
fn weight(draft: &Draft) -> u64 {
    let trust = match draft.trust {
        Trust::Nothing => 0,
        Trust::Object => 200,
        Trust::Network => 500,
        Trust::ProgramOnNetwork => 1000,
        Trust::Secret => 3000,
        Trust::Program => 10_000,
        Trust::Anything => 30_000,
    };
    trust + u64::from(draft.width) + 1
}

fn lets(cases: &[Option<Case>], at: usize, policy: &Arc<Policy>) -> bool {
    let case = cases[at].as_ref();
    case.is_some_and(|case| mend::allows(case, policy))
}

/// Whether two policies say different things of what a refusal is about, so that it is
/// worth deciding anew.
fn concerns(before: &Policy, after: &Policy, kinds: &[Kind], at: usize) -> bool {
    let refusal = &kinds[at].refusal;
    let falls = refusal.falls.iter();
    let said = |policy: &Policy, path: &str| {
        let rule = policy.lookup(path.as_bytes());
        (rule.level, rule.attrs)
    };
    let differs = |path: &str| said(before, path) != said(after, path);
    let objects = || falls.clone().map(|f| &f.object).chain([&refusal.object]);
    objects()
        .filter_map(|o| o.path.as_deref())
        .any(|path| differs(path) || mend::split(path).is_some_and(|(dir, _)| differs(dir)))
        || objects()
            .filter_map(|o| o.address)
            .any(|a| before.network(a).map(|n| n.level) != after.network(a).map(|n| n.level))
        || falls.clone().filter_map(|f| f.exe.as_deref()).any(differs)
        || refusal.exe.as_deref().is_some_and(differs)
}

/// Whether so many others in a directory were refused the same.
fn siblings(kinds: &[Kind]) -> Vec<bool> {
    let place = |kind: &Kind| {
        let refusal = &kind.refusal;
        let dir = mend::split(refusal.path()?)?.0.to_owned();
        Some((dir, refusal.op as u8, refusal.level))
    };
    let mut paths: HashMap<_, std::collections::HashSet<&str>> = HashMap::new();
    for kind in kinds {
        if let (Some(place), Some(path)) = (place(kind), kind.refusal.path()) {
            paths.entry(place).or_default().insert(path);
        }
    }
    let many = |place| paths.get(&place).is_some_and(|p| p.len() >= SIBLINGS);
    kinds.iter().map(|k| place(k).is_some_and(many)).collect()
}
