//! The smallest set of mends: greedy set cover over those that were checked, weighed by
//! what they give away.
//!
//! Greedy choice takes, again and again, the mend with the least weight for each kind of
//! refusal that it adds. What was chosen is compiled whole each time, and everything that
//! was mended has to stay so; and what looks like an attack has to stay refused.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
    /// What it mends.
    kinds: Vec<usize>,
}

/// The refusals, and what the reference model is asked of each.
struct Given<'a> {
    kinds: &'a [Kind],
    cases: Vec<Option<Case>>,
    /// Those that look like attacks.
    attacks: Vec<usize>,
}

impl Given<'_> {
    fn lets(&self, at: usize, policy: &Arc<Policy>) -> bool {
        let case = self.cases[at].as_ref();
        case.is_some_and(|case| mend::allows(case, policy))
    }

    /// Whether a policy lets an attack through that these statements speak of.
    fn attacked(&self, policy: &Arc<Policy>, statements: &[Statement]) -> bool {
        let spoken = |at: &&usize| concerns(statements, &self.kinds[**at]);
        let mut attacks = self.attacks.iter().filter(spoken);
        attacks.any(|&at| self.lets(at, policy))
    }
}

/// What no statement is chosen for.
#[derive(Default)]
struct Rest {
    shut: BTreeMap<(String, String), Choice>,
    unmended: BTreeMap<String, Vec<usize>>,
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
    let mut given = Given {
        kinds,
        cases: kinds.iter().map(|k| k.refusal.case(policy)).collect(),
        attacks: Vec::new(),
    };
    let all = 0..kinds.len();
    let (settled, open): (Vec<usize>, _) = all.partition(|&at| given.lets(at, policy));
    plan.settled = settled;
    let suspicion =
        |at: usize| mend::suspicion(&kinds[at].refusal, policy).filter(|_| !include_untrusted);
    given.attacks = open
        .iter()
        .copied()
        .filter(|&at| suspicion(at).is_some())
        .collect();
    let siblings = siblings(kinds);
    let mut candidates: BTreeMap<String, Candidate> = BTreeMap::new();
    let mut rest = Rest::default();
    let mut mendable: Vec<usize> = Vec::new();
    for (done, &at) in open.iter().enumerate() {
        tell(done, open.len());
        let mut drafts = mend::drafts(&kinds[at].refusal, policy, siblings[at]);
        drafts.truncate(DRAFTS);
        if let Some(why) = suspicion(at) {
            rest.put_by(why, at, &given, drafts, &mut bench);
            continue;
        }
        let checked = mend::checked(&kinds[at].refusal, drafts, &mut bench);
        let usable = |d: &Draft| d.promote.is_none() && d.trust < Trust::Secret;
        let (usable, wider): (Vec<_>, Vec<_>) = checked.into_iter().partition(|(d, _)| usable(d));
        if usable.is_empty() {
            let wider = wider.into_iter().map(|(draft, _)| draft).collect();
            let why = "it takes more than to let through what was refused";
            rest.put_by(why, at, &given, wider, &mut bench);
            continue;
        }
        mendable.push(at);
        for (draft, after) in usable {
            candidates
                .entry(mend::lines(&draft.statements))
                .or_insert_with(|| Candidate::new(draft, &after, &open, &given));
        }
    }
    let candidates = candidates.into_values().collect();
    for at in choose(&mut plan, candidates, &mendable, &given, &mut bench) {
        let drafts = mend::drafts(&kinds[at].refusal, policy, false);
        let why =
            "what mends it lets through what looks like an attack, or contradicts another mend";
        rest.put_by(why, at, &given, drafts, &mut bench);
    }
    let shut = rest.shut.into_iter();
    plan.refused = shut.map(|((why, _), choice)| (why, choice)).collect();
    plan.unmended = rest.unmended.into_iter().collect();
    plan
}

impl Candidate {
    /// With all that it mends; nothing, if it lets an attack through.
    fn new(draft: Draft, after: &Arc<Policy>, open: &[usize], given: &Given<'_>) -> Candidate {
        let mut kinds = Vec::new();
        if !given.attacked(after, &draft.statements) {
            let spoken = |at: &usize| concerns(&draft.statements, &given.kinds[*at]);
            let mended = open.iter().copied().filter(spoken);
            kinds.extend(mended.filter(|&at| given.lets(at, after)));
        }
        Candidate { draft, kinds }
    }
}

impl Rest {
    /// Puts a refusal aside, with its narrowest mend if it has one.
    fn put_by(
        &mut self,
        why: &str,
        at: usize,
        given: &Given<'_>,
        drafts: Vec<Draft>,
        bench: &mut Bench,
    ) {
        let refusal = &given.kinds[at].refusal;
        let checked = mend::checked(refusal, drafts, bench);
        let Some((draft, after)) = checked.first() else {
            let advice = mend::advice(refusal, &bench.policy);
            self.unmended.entry(advice).or_default().push(at);
            return;
        };
        let what = format!("{}{:?}", mend::lines(&draft.statements), draft.promote);
        let choice = self.shut.entry((why.to_owned(), what));
        let choice = choice.or_insert_with(|| Choice {
            mend: mend::describe(draft, &bench.policy, after),
            kinds: Vec::new(),
        });
        choice.kinds.push(at);
    }
}

/// The greedy choice; the kinds for which nothing could be chosen.
fn choose(
    plan: &mut Plan,
    mut candidates: Vec<Candidate>,
    mendable: &[usize],
    given: &Given<'_>,
    bench: &mut Bench,
) -> Vec<usize> {
    let mut left: BTreeSet<usize> = mendable.iter().copied().collect();
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
        let whole = fits.and_then(|()| bench.with(&mend::lines(&more)));
        let kept = whole.is_some_and(|policy| {
            // only what the new statements speak of can have changed
            let spoken = |at: &&usize| concerns(new, &given.kinds[**at]);
            let mended = picked.iter().chain([&candidate]).flat_map(|c| &c.kinds);
            let stay = mended.filter(spoken).all(|&at| given.lets(at, &policy));
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
        let mut mended = picked.iter().flat_map(|c| &c.kinds);
        mended.all(|&at| given.lets(at, &policy)) && !given.attacked(&policy, &fewer)
    };
    if whole.is_some_and(stays) {
        (picked, statements) = (pruned, fewer);
    }
    let base = Arc::clone(&bench.policy);
    for Candidate { draft, kinds } in picked {
        let Some(after) = bench.with(&mend::lines(&draft.statements)) else {
            continue; // it compiled before
        };
        let mut mend = mend::describe(&draft, &base, &after);
        // what two of them say of one place is one statement
        let merged = |s: &Statement| statements.iter().find(|m| m.place == s.place);
        let merged = draft.statements.iter().filter_map(merged);
        mend.statements = merged.map(Statement::text).collect();
        plan.chosen.push(Choice { mend, kinds });
    }
    left.into_iter().collect()
}

/// All statements of several candidates in one map.
fn merged(picked: &[Candidate], bench: &mut Bench) -> (Vec<Statement>, Option<Arc<Policy>>) {
    let mut all = Vec::new();
    let mut each = picked.iter().flat_map(|c| &c.draft.statements);
    let fits = each.try_for_each(|s| Statement::merge(&mut all, s));
    let policy = fits.and_then(|()| bench.with(&mend::lines(&all)));
    (all, policy)
}

/// Without what the others have made needless, the widest first; each kind is told of
/// once, where it was mended first.
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

/// Whether statements may change what is said of a refusal, so that it is worth deciding
/// anew.
fn concerns(statements: &[Statement], kind: &Kind) -> bool {
    let refusal = &kind.refusal;
    let falls = &refusal.falls;
    let objects = || falls.iter().map(|f| &f.object).chain([&refusal.object]);
    let programs = falls.iter().map(|f| &f.exe).chain([&refusal.exe]).flatten();
    let mut paths = objects().filter_map(|o| o.path.as_ref()).chain(programs);
    let mut addresses = objects().filter_map(|o| o.address);
    paths.any(|path| statements.iter().any(|s| s.may_cover(path)))
        || addresses.any(|a| statements.iter().any(|s| s.is_of(a)))
}

/// Whether so many others in a directory were refused the same.
fn siblings(kinds: &[Kind]) -> Vec<bool> {
    let place = |kind: &Kind| {
        let refusal = &kind.refusal;
        let dir = mend::split(refusal.path()?)?.0.to_owned();
        Some((dir, refusal.op as u8, refusal.level))
    };
    let mut paths: HashMap<_, HashSet<&str>> = HashMap::new();
    for kind in kinds {
        if let (Some(place), Some(path)) = (place(kind), kind.refusal.path()) {
            paths.entry(place).or_default().insert(path);
        }
    }
    let many = |place| paths.get(&place).is_some_and(|p| p.len() >= SIBLINGS);
    kinds.iter().map(|k| place(k).is_some_and(many)).collect()
}
