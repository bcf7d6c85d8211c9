//! Remedies: what would let through what was refused, for `why` and `learn`.
//!
//! Each model has a module of its own. They have the same parts under the same names: `gather` takes refusals from a log's
//! records, `explain` says of one what refused it and what would let it through, `plan` finds the fewest rules for many, and
//! `write` puts these down. What is proposed was checked: what was refused is decided anew, and what does not help is not proposed.
#![forbid(unsafe_code)]

pub mod apparmor;
mod capability;
mod explanation;
pub mod learn;
pub mod lomac;
mod object_manager;
pub mod selinux;
mod sum;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::Record;
use tidegate_bundle::Policy;

pub use self::capability::CapsLine;
pub use self::explanation::Explanation;
use crate::apparmor::Amendment;
use crate::lomac::{Fix, Refusal};
use crate::selinux::TeRefusal;

/// What is known of how to fix a refusal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The fixes, the narrowest first.
    pub fixes: Vec<Fix>,
    /// Why it looks like an attack, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<String>,
    /// Of a profile's refusal: by what, and the rule that would allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amendment: Option<Amendment>,
    /// Of a SELinux policy's refusal: what refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub te: Option<TeRefusal>,
    /// Of a capability file's refusal: the line that would give it, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caps: Option<CapsLine>,
    /// What helps where no fix does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Remedy {
    /// What a profile's refusal lacks.
    pub fn of_profile(explanation: Explanation<Amendment>) -> Remedy {
        Remedy::of(explanation, |remedy, amendment| {
            remedy.amendment = Some(amendment);
        })
    }

    fn of<T>(explanation: Explanation<T>, put: impl FnOnce(&mut Remedy, T)) -> Remedy {
        let mut remedy = Remedy::default();
        match explanation {
            Explanation::Refused(it) => put(&mut remedy, it),
            Explanation::Advice(text) => remedy.advice = Some(text),
        }
        remedy
    }
}

/// The fixes of a refusal under a policy, given its chain, newest first. `None`: the chain
/// does not begin with a refusal, or not with one under this policy's levels.
pub fn propose(chain: &[Record], policy: &Arc<Policy>) -> Option<Remedy> {
    let record = chain.first()?;
    if let Some(line) = capability::explain(record) {
        return Some(Remedy::of(line, |remedy, line| remedy.caps = Some(line)));
    }
    if let Some(advice) = object_manager::advice(record, policy) {
        return Some(Remedy::of(Explanation::Advice(advice), |_, ()| ()));
    }
    if let Some(te) = &policy.te
        && let Some(refusal) = selinux::explain(record, te)
    {
        return Some(Remedy::of(refusal, |remedy, refusal| {
            remedy.te = Some(refusal);
        }));
    }
    let refusal = Refusal::of(chain, policy)?;
    if let Some(amendment) = apparmor::explain(record, &policy.profiles) {
        return Some(Remedy::of_profile(amendment));
    }
    let found = lomac::explain(&refusal, policy);
    Some(Remedy {
        fixes: found.fixes,
        suspicion: found.suspicion,
        advice: found.advice,
        ..Remedy::default()
    })
}
