//! Remedies: what would let through what was refused, for `why` and `learn`.
//!
//! Each model has a module of its own. They have the same parts under the same names: `gather` takes refusals from a log's
//! records, `explain` says of one what refused it and what would let it through, `plan` finds the fewest rules for many, and
//! `write` puts these down. What is proposed was checked: what was refused is decided anew, and what does not help is not proposed.
//!
//! `why` has what a model says by [`Explain`], and `learn` what is proposed for one by [`Propose`].
#![forbid(unsafe_code)]

pub mod apparmor;
mod capability;
mod explanation;
pub mod learn;
pub mod lomac;
mod object_manager;
mod proposal;
pub mod selinux;
mod sum;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_audit::Record;
use tidegate_bundle::Policy;

pub use self::capability::CapsLine;
pub use self::explanation::{Explain, Explanation, Shown};
pub use self::proposal::Propose;
use crate::apparmor::Amendment;
use crate::lomac::{Fix, Fixes, Refusal};
use crate::object_manager::OnlyAdvice;
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
    /// The lines that `why` prints.
    pub fn lines(&self, shown: &Shown<'_>) -> Vec<String> {
        let advice = |text: &String| vec![format!("fix: no statement: {text}")];
        let said = [
            self.amendment.as_ref().map(|it| it.lines(shown)),
            self.te.as_ref().map(|it| it.lines(shown)),
            self.caps.as_ref().map(|it| it.lines(shown)),
            self.advice.as_ref().map(advice),
        ];
        let fixes = || Fixes {
            fixes: self.fixes.clone(),
            suspicion: self.suspicion.clone(),
            advice: None,
        };
        let said = said.into_iter().flatten().next();
        said.unwrap_or_else(|| fixes().lines(shown))
    }
}

impl<T: Into<Remedy>> From<Explanation<T>> for Remedy {
    fn from(explanation: Explanation<T>) -> Remedy {
        match explanation {
            Explanation::Refused(it) => it.into(),
            Explanation::Advice(text) => Remedy {
                advice: Some(text),
                ..Remedy::default()
            },
        }
    }
}

impl From<CapsLine> for Remedy {
    fn from(line: CapsLine) -> Remedy {
        Remedy {
            caps: Some(line),
            ..Remedy::default()
        }
    }
}

impl From<OnlyAdvice> for Remedy {
    fn from(none: OnlyAdvice) -> Remedy {
        match none {}
    }
}

impl From<TeRefusal> for Remedy {
    fn from(refusal: TeRefusal) -> Remedy {
        Remedy {
            te: Some(refusal),
            ..Remedy::default()
        }
    }
}

impl From<Amendment> for Remedy {
    fn from(amendment: Amendment) -> Remedy {
        Remedy {
            amendment: Some(amendment),
            ..Remedy::default()
        }
    }
}

impl From<Fixes> for Remedy {
    fn from(found: Fixes) -> Remedy {
        Remedy {
            fixes: found.fixes,
            suspicion: found.suspicion,
            advice: found.advice,
            ..Remedy::default()
        }
    }
}

/// What one model says.
type Said = fn(&[Record], &Arc<Policy>) -> Option<Remedy>;

/// All models, in the order in which they are asked: that of maps has an answer to every refusal.
const MODELS: [Said; 5] = [
    said::<CapsLine>,
    said::<OnlyAdvice>,
    said::<TeRefusal>,
    said_by_levels::<Amendment>,
    said_by_levels::<Fixes>,
];

fn said<T: Explain + Into<Remedy>>(chain: &[Record], policy: &Arc<Policy>) -> Option<Remedy> {
    T::explain(chain, policy).map(Remedy::from)
}

/// Explains a refusal as [`said`] does, if it was made at this policy's levels.
fn said_by_levels<T: Explain + Into<Remedy>>(
    chain: &[Record],
    policy: &Arc<Policy>,
) -> Option<Remedy> {
    Refusal::of(chain, policy).and_then(|_| said::<T>(chain, policy))
}

/// The fixes of a refusal under a policy, given its chain, newest first. `None`: the chain
/// does not begin with a refusal, or not with one under this policy's levels.
pub fn propose(chain: &[Record], policy: &Arc<Policy>) -> Option<Remedy> {
    MODELS.iter().find_map(|said| said(chain, policy))
}
