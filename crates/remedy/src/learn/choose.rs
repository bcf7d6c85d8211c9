//! The greedy choice among the candidates.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tidegate_bundle::Policy;

use super::cover::{Candidate, Choice, Given, Plan, concerns};
use crate::lomac::{self, Bench, Draft, Statement, Trust};

/// The greedy choice; the kinds for which nothing could be chosen.
pub fn choose(
    plan: &mut Plan,
    mut candidates: Vec<Candidate>,
    fixable: &[usize],
    given: &Given<'_>,
    bench: &mut Bench,
) -> Vec<usize> {
    let mut left: BTreeSet<usize> = fixable.iter().copied().collect();
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
        let new = &candidate.draft.statements;
        let mut more = statements.clone();
        let fits = new.iter().try_for_each(|s| Statement::merge(&mut more, s));
        let whole = fits.and_then(|()| bench.with(&lomac::lines(&more)));
        let kept = whole.is_some_and(|policy| {
            // only what the new statements speak of can have changed
            let spoken = |at: &&usize| concerns(new, &given.kinds[**at]);
            let fixed = picked.iter().chain([&candidate]).flat_map(|c| &c.kinds);
            let stay = fixed.filter(spoken).all(|&at| given.lets(at, &policy));
            stay && !given.attacked(&policy, new)
        });
        if kept {
            left.retain(|at| !candidate.kinds.contains(at));
            statements = more;
            picked.push(candidate);
        }
    }
    let pruned = prune(&picked);
    let (fewer, whole) = merged(&pruned, bench);
    let stays = |policy: Arc<Policy>| {
        let mut fixed = picked.iter().flat_map(|c| &c.kinds);
        fixed.all(|&at| given.lets(at, &policy)) && !given.attacked(&policy, &fewer)
    };
    if whole.is_some_and(stays) {
        (picked, statements) = (pruned, fewer);
    }
    let base = Arc::clone(&bench.policy);
    for Candidate { draft, kinds } in picked {
        let Some(after) = bench.with(&lomac::lines(&draft.statements)) else {
            continue; // it compiled before
        };
        let mut fix = lomac::describe(&draft, &base, &after);
        // what two of them say of one place is one statement
        let merged = |s: &Statement| statements.iter().find(|m| m.place == s.place);
        let merged = draft.statements.iter().filter_map(merged);
        fix.statements = merged.map(Statement::text).collect();
        plan.chosen.push(Choice { fix, kinds });
    }
    left.into_iter().collect()
}

/// All statements of several candidates in one map.
fn merged(picked: &[Candidate], bench: &mut Bench) -> (Vec<Statement>, Option<Arc<Policy>>) {
    let mut all = Vec::new();
    let mut each = picked.iter().flat_map(|c| &c.draft.statements);
    let fits = each.try_for_each(|s| Statement::merge(&mut all, s));
    let policy = fits.and_then(|()| bench.with(&lomac::lines(&all)));
    (all, policy)
}

/// Without what the others have made needless, the widest first; each kind is told of
/// once, where it was fixed first.
fn prune(picked: &[Candidate]) -> Vec<Candidate> {
    let mut order: Vec<usize> = (0..picked.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(weight(&picked[i].draft)));
    let mut dropped = vec![false; picked.len()];
    for i in order {
        let others = |at: &usize| {
            (0..picked.len()).any(|j| j != i && !dropped[j] && picked[j].kinds.contains(at))
        };
        dropped[i] = picked[i].kinds.iter().all(others);
    }
    let mut told = HashSet::new();
    let kept = picked.iter().zip(dropped).filter(|(_, dropped)| !dropped);
    kept.map(|(candidate, _)| Candidate {
        draft: candidate.draft.clone(),
        kinds: candidate
            .kinds
            .iter()
            .copied()
            .filter(|at| told.insert(*at))
            .collect(),
    })
    .collect()
}

/// What a fix gives away, as a number.
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
