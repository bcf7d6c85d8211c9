//! The reference in `tidegate_bundle`.

use anyhow::Result;
use tidegate_bundle::te::db::Context;
use tidegate_bundle::te::decide::Decider;

use crate::te_decisions::{Decides, Label, Sample, Vector};

/// Decides by the policy as it was read.
#[derive(Debug)]
pub struct Reference<'p> {
    decider: Decider<'p>,
    contexts: Vec<Context>,
}

impl<'p> Reference<'p> {
    /// With these decisions.
    pub fn new(decider: Decider<'p>) -> Self {
        Self {
            decider,
            contexts: Vec::new(),
        }
    }

    /// How many samples are explained otherwise than they are decided: what is not allowed has a reason, and the rest
    /// has none.
    pub fn explained_otherwise(&self, samples: &[Sample]) -> usize {
        let classes = &self.decider.db().classes;
        let differs = |sample: &&Sample| {
            let (source, target) = self.pair(sample);
            let count = classes[sample.class as usize - 1].permissions.len();
            let all = (1u64 << count).wrapping_sub(1) as u32;
            let refused = self.decider.explain(source, target, sample.class, all);
            let bits = refused.iter().fold(0, |bits, it| bits | it.permissions);
            let allowed = self.decider.access(source, target, sample.class).allowed;
            bits != all & !allowed || refused.iter().any(|it| it.because.is_empty())
        };
        samples.iter().filter(differs).count()
    }

    fn pair(&self, sample: &Sample) -> (&Context, &Context) {
        (&self.contexts[sample.source], &self.contexts[sample.target])
    }
}

impl Decides for Reference<'_> {
    fn know(&mut self, contexts: &[Context]) -> Result<()> {
        self.contexts = contexts.to_vec();
        Ok(())
    }

    fn access(&mut self, samples: &[Sample]) -> Result<Option<Vec<Vector>>> {
        let vectors = samples.iter().map(|sample| {
            let (source, target) = self.pair(sample);
            let access = self.decider.access(source, target, sample.class);
            Vector {
                allowed: access.allowed,
                auditallow: access.auditallow,
                auditdeny: access.auditdeny,
                permissive: access.permissive,
            }
        });
        Ok(Some(vectors.collect()))
    }

    fn labels(&mut self, label: Label, samples: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        let contexts = samples.iter().map(|sample| {
            let (source, target) = self.pair(sample);
            let context = match label {
                Label::Transition => self.decider.transition(source, target, sample.class, None),
                Label::Member => self.decider.member(source, target, sample.class),
                Label::Change => self.decider.change(source, target, sample.class),
            };
            context
                .ok()
                .map(|context| self.decider.db().context_text(&context))
        });
        Ok(Some(contexts.collect()))
    }

    fn names(&mut self, samples: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        let types = samples.iter().map(|sample| {
            let (source, target) = self.pair(sample);
            let kind = self
                .decider
                .named(source, target, sample.class, &sample.name)?;
            Some(self.decider.db().types[kind as usize - 1].name.clone())
        });
        Ok(Some(types.collect()))
    }

    fn changes(&mut self, samples: &[Sample]) -> Result<Option<Vec<bool>>> {
        let changes = samples.iter().map(|sample| {
            let (old, new) = self.pair(sample);
            let by = &self.contexts[sample.third];
            self.decider.may_change(old, new, by, sample.class)
        });
        Ok(Some(changes.collect()))
    }
}
