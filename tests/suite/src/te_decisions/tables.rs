//! The kernel's tables, asked by the kernel's own code (`tidegate_flask`).

use anyhow::{Context as _, Result};
use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::Context;
use tidegate_flask::{Image, Labelling, Numbering, Server, Sid};

use crate::te_decisions::{Decides, Label, Sample, Vector};

/// Where the image is laid out: anywhere but at the beginning of an arena, which is nothing's.
const BASE: u32 = 8192;

/// Decides by the image that the kernel would read.
#[derive(Debug)]
pub struct Tables<'t> {
    te: &'t Te,
    /// Laid out with the ranges of the contexts that are asked about.
    image: Option<Image>,
    sids: Vec<Sid>,
}

impl<'t> Tables<'t> {
    /// Of this policy, with its booleans as they are set.
    pub fn new(te: &'t Te) -> Self {
        Self {
            te,
            image: None,
            sids: Vec::new(),
        }
    }

    fn image(&self) -> Result<&Image> {
        self.image.as_ref().context("no contexts were told")
    }

    fn pair(&self, sample: &Sample) -> (Sid, Sid) {
        (self.sids[sample.source], self.sids[sample.target])
    }
}

impl Decides for Tables<'_> {
    fn know(&mut self, contexts: &[Context]) -> Result<()> {
        let db = &self.te.db;
        let mut numbering = Numbering::default();
        if db.mls {
            let texts: Vec<_> = contexts.iter().map(|c| db.range_text(&c.range)).collect();
            for text in &texts {
                numbering.ranges.take(text);
            }
        }
        let image = Image::of(db, &self.te.values(), None, numbering, BASE)?;
        let sids = contexts.iter().map(|context| image.sid(context));
        self.sids = sids
            .collect::<Option<_>>()
            .context("a context has no SID")?;
        let server = Server::of(&image);
        let valid = self.sids.iter().all(|&sid| server.is_valid(sid));
        anyhow::ensure!(valid, "a context is not valid by the tables");
        self.image = Some(image);
        Ok(())
    }

    fn access(&mut self, samples: &[Sample]) -> Result<Option<Vec<Vector>>> {
        let image = self.image()?;
        let vectors = samples.iter().map(|sample| {
            let (source, target) = self.pair(sample);
            let number = image.classes.number(sample.class);
            let class = image.classes.get(number);
            let decision = Server::of(image).access(source, target, number);
            Vector {
                allowed: class.in_policy(decision.allow),
                auditallow: class.in_policy(decision.auditallow),
                auditdeny: !class.in_policy(!decision.auditdeny),
                permissive: Server::of(image).is_permissive(source),
            }
        });
        Ok(Some(vectors.collect()))
    }

    fn labels(&mut self, label: Label, samples: &[Sample]) -> Result<Option<Vec<Option<String>>>> {
        let image = self.image()?;
        let server = Server::of(image);
        let kind = match label {
            Label::Transition => Labelling::Transition,
            Label::Member => Labelling::Member,
            Label::Change => Labelling::Change,
        };
        let contexts = samples.iter().map(|sample| {
            let (source, target) = self.pair(sample);
            let class = image.classes.number(sample.class);
            let sid = server.label(kind, source, target, class, None);
            server.is_valid(sid).then(|| image.numbering.context(sid))?
        });
        Ok(Some(contexts.collect()))
    }

    fn changes(&mut self, samples: &[Sample]) -> Result<Option<Vec<bool>>> {
        let image = self.image()?;
        let changes = samples.iter().map(|sample| {
            let (old, new) = self.pair(sample);
            let class = image.classes.number(sample.class);
            Server::of(image).validates(old, new, self.sids[sample.third], class)
        });
        Ok(Some(changes.collect()))
    }
}
