//! Fixes are checked, not guessed: each draft's statements are added to the policy as
//! an including file's would be, and the case is decided anew by the reference model.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_bundle::Policy;
use tidegate_model::{Asked, Case, Ruling, Thing};
use tidegate_policy::{Effects, map};

use super::draft::Draft;
use super::statement::lines;

/// What the added statements' file is called.
const FILE: &str = "fix";

/// Policies that are kept.
const KEPT: usize = 128;

/// A policy with statements added.
#[derive(Debug, Clone)]
struct Extended {
    policy: Arc<Policy>,
    opens: bool,
}

/// A policy, and what it becomes with statements added; each is compiled once.
#[derive(Debug)]
pub struct Bench {
    /// The policy in force.
    pub policy: Arc<Policy>,
    compiled: HashMap<String, Option<Extended>>,
}

impl Bench {
    /// For a policy.
    pub fn new(policy: Arc<Policy>) -> Bench {
        Bench {
            policy,
            compiled: HashMap::new(),
        }
    }

    /// The policy with these statements; `None` if they are no map, or warned of.
    pub fn with(&mut self, statements: &str) -> Option<Arc<Policy>> {
        self.extended(statements).map(|e| e.policy)
    }

    /// Whether statements that compile open a secret.
    pub fn opens(&mut self, draft: &Draft) -> bool {
        let extended = self.extended(&lines(&draft.statements));
        extended.is_some_and(|e| e.opens)
    }

    fn extended(&mut self, statements: &str) -> Option<Extended> {
        if statements.is_empty() {
            let policy = Arc::clone(&self.policy);
            return Some(Extended {
                policy,
                opens: false,
            });
        }
        if let Some(known) = self.compiled.get(statements) {
            return known.clone();
        }
        let compiled = map::extend(&self.policy, FILE, statements).ok();
        let clean = compiled.filter(|c| c.warnings.iter().all(|w| w.file() != Some(FILE)));
        let extended = clean.map(|c| Extended {
            opens: !Effects::of(&self.policy, &c.policy).opened.is_empty(),
            policy: Arc::new(c.policy),
        });
        if self.compiled.len() >= KEPT {
            self.compiled.clear();
        }
        self.compiled.insert(statements.into(), extended.clone());
        extended
    }

    /// What a draft makes of a case: the policy with its statements, if that lets through
    /// what was refused.
    pub fn fixed(&mut self, case: &Case, draft: &Draft) -> Option<Arc<Policy>> {
        let policy = self.with(&lines(&draft.statements))?;
        let allowed = match &draft.promote {
            None => allows(case, &policy),
            Some((path, level)) => allows(&promoted(case, path, *level), &policy),
        };
        allowed.then_some(policy)
    }
}

/// Whether a policy lets a case through.
pub fn allows(case: &Case, policy: &Arc<Policy>) -> bool {
    matches!(case.decide(policy), Ruling::Allowed | Ruling::Recorded)
}

/// The case after an object was given a level.
fn promoted(case: &Case, path: &str, level: u8) -> Case {
    let mut case = case.clone();
    for deed in &mut case.deeds {
        let thing: Option<&mut Thing> = match &mut deed.asked {
            Asked::Open(thing, _)
            | Asked::Map(thing)
            | Asked::Exec(thing)
            | Asked::Look(thing)
            | Asked::Change(thing)
            | Asked::Remove(thing)
            | Asked::Reach(thing) => Some(thing),
            _ => None,
        };
        if let Some(thing) = thing.filter(|thing| thing.path == path) {
            thing.given = Some(level);
        }
    }
    case
}
