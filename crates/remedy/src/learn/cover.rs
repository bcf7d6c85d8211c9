//! The smallest set of fixes: greedy set cover over those that were checked, weighed by
//! what they give away.
//!
//! Greedy choice takes, again and again, the fix with the least weight for each kind of
//! refusal that it adds. What was chosen is compiled whole each time, and everything that
//! was fixed has to stay so; and what looks like an attack has to stay refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tidegate_bundle::Policy;
use tidegate_model::Case;

use super::choose::choose;
use super::gather::Kind;
use crate::lomac::{self, Bench, Draft, Evidence, Fix, Statement, Trust};

/// Siblings that were refused the same, from which on their directory is named.
const SIBLINGS: usize = 3;
/// Users' homes in which the same was refused, from which on any home is named.
const HOMES: usize = 2;
/// Fixes that are looked at of each refusal.
const DRAFTS: usize = 6;

/// A fix that is proposed, and the kinds of refusals that it ends.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The fix.
    pub fix: Fix,
    /// Indices of the kinds.
    pub kinds: Vec<usize>,
}

/// What is proposed.
#[derive(Debug, Default)]
pub struct Plan {
    /// To be added to the map.
    pub chosen: Vec<Choice>,
    /// To be looked at first: why, and what would fix it.
    pub refused: Vec<(String, Choice)>,
    /// No statement fixes these; what does.
    pub unfixed: Vec<(String, Vec<usize>)>,
    /// The policy lets these through already.
    pub settled: Vec<usize>,
}

/// A fix that may be chosen.
pub struct Candidate {
    /// The fix.
    pub draft: Draft,
    /// What it fixes.
    pub kinds: Vec<usize>,
}

/// The refusals, and what the reference model is asked of each.
pub struct Given<'a> {
    /// All kinds.
    pub kinds: &'a [Kind],
    cases: Vec<Option<Case>>,
    /// Those that look like attacks.
    attacks: Vec<usize>,
}

impl Given<'_> {
    /// Whether a policy lets one of them through.
    pub fn lets(&self, at: usize, policy: &Arc<Policy>) -> bool {
        let case = self.cases[at].as_ref();
        case.is_some_and(|case| lomac::allows(case, policy))
    }

    /// Whether a policy lets an attack through that these statements speak of.
    pub fn attacked(&self, policy: &Arc<Policy>, statements: &[Statement]) -> bool {
        let spoken = |at: &&usize| concerns(statements, &self.kinds[**at]);
        let mut attacks = self.attacks.iter().filter(spoken);
        attacks.any(|&at| self.lets(at, policy))
    }
}

/// What no statement is chosen for.
#[derive(Default)]
struct Rest {
    shut: BTreeMap<(String, String), Choice>,
    unfixed: BTreeMap<String, Vec<usize>>,
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
        |at: usize| lomac::suspicion(&kinds[at].refusal, policy).filter(|_| !include_untrusted);
    given.attacks = open
        .iter()
        .copied()
        .filter(|&at| suspicion(at).is_some())
        .collect();
    let evidence = evidence(kinds);
    let mut candidates: BTreeMap<String, Candidate> = BTreeMap::new();
    let mut rest = Rest::default();
    let mut fixable: Vec<usize> = Vec::new();
    for (done, &at) in open.iter().enumerate() {
        tell(done, open.len());
        let mut drafts = lomac::drafts(&kinds[at].refusal, policy, evidence[at]);
        drafts.truncate(DRAFTS);
        if let Some(why) = suspicion(at) {
            rest.put_by(why, at, &given, drafts, &mut bench);
            continue;
        }
        let checked = lomac::checked(&kinds[at].refusal, drafts, &mut bench);
        let usable = |d: &Draft| d.promote.is_none() && d.trust < Trust::Secret;
        let (usable, wider): (Vec<_>, Vec<_>) = checked.into_iter().partition(|(d, _)| usable(d));
        if usable.is_empty() {
            let wider = wider.into_iter().map(|(draft, _)| draft).collect();
            let why = "it takes more than to let through what was refused";
            rest.put_by(why, at, &given, wider, &mut bench);
            continue;
        }
        fixable.push(at);
        for (draft, after) in usable {
            candidates
                .entry(lomac::lines(&draft.statements))
                .or_insert_with(|| Candidate::new(draft, &after, &open, &given));
        }
    }
    let candidates = candidates.into_values().collect();
    for at in choose(&mut plan, candidates, &fixable, &given, &mut bench) {
        let drafts = lomac::drafts(&kinds[at].refusal, policy, Evidence::default());
        let why =
            "what fixes it lets through what looks like an attack, or contradicts another fix";
        rest.put_by(why, at, &given, drafts, &mut bench);
    }
    let shut = rest.shut.into_iter();
    plan.refused = shut.map(|((why, _), choice)| (why, choice)).collect();
    plan.unfixed = rest.unfixed.into_iter().collect();
    plan
}

impl Candidate {
    /// With all that it fixes; nothing, if it lets an attack through.
    fn new(draft: Draft, after: &Arc<Policy>, open: &[usize], given: &Given<'_>) -> Candidate {
        let mut kinds = Vec::new();
        if !given.attacked(after, &draft.statements) {
            let spoken = |at: &usize| concerns(&draft.statements, &given.kinds[*at]);
            let fixed = open.iter().copied().filter(spoken);
            kinds.extend(fixed.filter(|&at| given.lets(at, after)));
        }
        Candidate { draft, kinds }
    }
}

impl Rest {
    /// Puts a refusal aside, with its narrowest fix if it has one.
    fn put_by(
        &mut self,
        why: &str,
        at: usize,
        given: &Given<'_>,
        drafts: Vec<Draft>,
        bench: &mut Bench,
    ) {
        let refusal = &given.kinds[at].refusal;
        let checked = lomac::checked(refusal, drafts, bench);
        let Some((draft, after)) = checked.first() else {
            let advice = lomac::advice(refusal, &bench.policy);
            self.unfixed.entry(advice).or_default().push(at);
            return;
        };
        let what = format!("{}{:?}", lomac::lines(&draft.statements), draft.promote);
        let choice = self.shut.entry((why.to_owned(), what));
        let choice = choice.or_insert_with(|| Choice {
            fix: lomac::describe(draft, &bench.policy, after),
            kinds: Vec::new(),
        });
        choice.kinds.push(at);
    }
}

/// Whether statements may change what is said of a refusal, so that it is worth deciding
/// anew.
pub fn concerns(statements: &[Statement], kind: &Kind) -> bool {
    let refusal = &kind.refusal;
    let falls = &refusal.falls;
    let objects = || falls.iter().map(|f| &f.object).chain([&refusal.object]);
    let programs = falls.iter().map(|f| &f.exe).chain([&refusal.exe]).flatten();
    let mut paths = objects().filter_map(|o| o.path.as_ref()).chain(programs);
    let mut addresses = objects().filter_map(|o| o.address);
    paths.any(|path| statements.iter().any(|s| s.may_cover(path)))
        || addresses.any(|a| statements.iter().any(|s| s.is_of(a)))
}

/// What refusals have in common: a path that stands for several, the operation, the level.
type Likeness = (String, u8, u8);

/// What else was refused the same as each.
fn evidence(kinds: &[Kind]) -> Vec<Evidence> {
    let like = |kind: &Kind, path: String| (path, kind.refusal.op as u8, kind.refusal.level);
    let dir = |kind: &Kind| {
        let (dir, _) = lomac::split(kind.refusal.path()?)?;
        Some(like(kind, dir.to_owned()))
    };
    let home = |kind: &Kind| Some(like(kind, lomac::any_home(kind.refusal.path()?)?));
    let count = |of: &dyn Fn(&Kind) -> Option<Likeness>| {
        let mut paths: HashMap<_, HashSet<&str>> = HashMap::new();
        for kind in kinds {
            if let (Some(like), Some(path)) = (of(kind), kind.refusal.path()) {
                paths.entry(like).or_default().insert(path);
            }
        }
        paths
    };
    let (dirs, homes) = (count(&dir), count(&home));
    let each = kinds.iter().map(|kind| Evidence {
        siblings: dir(kind).is_some_and(|like| dirs[&like].len() >= SIBLINGS),
        homes: home(kind).is_some_and(|like| homes[&like].len() >= HOMES),
    });
    each.collect()
}
