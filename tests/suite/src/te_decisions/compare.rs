//! Asks two deciders the same.

use std::fmt::Debug;

use anyhow::Result;
use tidegate_bundle::te::db::PolicyDb;

use crate::te_decisions::{Decides, Label, Sample, Samples};

/// So many questions are put at once.
const AT_ONCE: usize = 10_000;
/// One in so many samples is asked about contexts, too, as libsepol looks through all it knows for each.
const LABELS: usize = 40;
/// So many differences are shown.
const SHOWN: usize = 10;

/// What came of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Questions that both answered.
    pub asked: u64,
    /// Of these, answers other than the refusal of everything, or the same label: what shows that not all
    /// questions are idle.
    pub telling: u64,
    /// Those that they answered differently.
    pub different: u64,
    /// Some of these, in words.
    pub examples: Vec<String>,
}

/// Asks both about so many samples.
///
/// # Errors
///
/// If one cannot be asked.
pub fn compare(
    db: &PolicyDb,
    samples: &mut Samples<'_>,
    count: usize,
    deciders: [&mut dyn Decides; 2],
) -> Result<Compared> {
    let [one, other] = deciders;
    let mut compared = Compared::default();
    let mut left = count;
    while left > 0 {
        let these: Vec<_> = samples.by_ref().take(left.min(AT_ONCE)).collect();
        left -= these.len();
        let mut look = Look {
            db,
            samples: &*samples,
            compared: &mut compared,
        };
        let answers = (one.access(&these)?, other.access(&these)?);
        look.hold("access", &these, answers, |vector| vector.allowed != 0);
        let few: Vec<_> = these.iter().step_by(LABELS).cloned().collect();
        for label in [Label::Transition, Label::Member, Label::Change] {
            let answers = (one.labels(label, &few)?, other.labels(label, &few)?);
            look.hold(&format!("{label:?}"), &few, answers, Option::is_some);
        }
        let answers = (one.names(&few)?, other.names(&few)?);
        look.hold("name", &few, answers, Option::is_some);
        let answers = (one.changes(&few)?, other.changes(&few)?);
        look.hold("validatetrans", &few, answers, |may| !may);
    }
    Ok(compared)
}

struct Look<'l> {
    db: &'l PolicyDb,
    samples: &'l Samples<'l>,
    compared: &'l mut Compared,
}

impl Look<'_> {
    fn hold<A: PartialEq + Debug>(
        &mut self,
        what: &str,
        samples: &[Sample],
        answers: (Option<Vec<A>>, Option<Vec<A>>),
        tells: impl Fn(&A) -> bool,
    ) {
        let (Some(one), Some(other)) = answers else {
            return;
        };
        for (sample, (one, other)) in samples.iter().zip(one.iter().zip(&other)) {
            self.compared.asked += 1;
            self.compared.telling += u64::from(tells(one));
            if one == other {
                continue;
            }
            self.compared.different += 1;
            if self.compared.examples.len() < SHOWN {
                let text = |at| self.db.context_text(&self.samples.contexts()[at]);
                self.compared.examples.push(format!(
                    "{what} {} {} {} by {}, name {}: {one:?}, {other:?}",
                    text(sample.source),
                    text(sample.target),
                    self.db.classes[sample.class as usize - 1].name,
                    text(sample.third),
                    sample.name
                ));
            }
        }
    }
}
