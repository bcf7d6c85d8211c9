//! Which questions are asked.

use fastrand::Rng;
use tidegate_bundle::te::db::{Bitmap, Context, Level, Number, PolicyDb, Range, Rule};

/// Contexts with each type.
const EACH: usize = 3;
/// The role that any object may have.
const OBJECT_R: Number = 1;

/// A question: contexts by their places in [`Samples::contexts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The source's context.
    pub source: usize,
    /// For what.
    pub target: usize,
    /// A third one, of the subject that changes the source's context to the target's.
    pub third: usize,
    /// A class of the policy.
    pub class: Number,
    /// A name for what is made.
    pub name: String,
}

/// Questions about a policy: half of them are about a pair and a class that some rule speaks of, whether it holds at
/// the moment or not, the rest about any. Contexts are valid; those of subjects have roles that their types may have,
/// where there is any, and users that these may have; ranges lie anywhere in the user's.
#[derive(Debug)]
pub struct Samples<'p> {
    db: &'p PolicyDb,
    random: Rng,
    contexts: Vec<Context>,
    /// Contexts by type, and the types that have any.
    by_type: Vec<Vec<usize>>,
    types: Vec<usize>,
    rules: Vec<&'p Rule>,
    /// Types by the names of rules for them.
    members: Vec<Vec<usize>>,
}

impl<'p> Samples<'p> {
    /// Of a policy, always the same by the same seed.
    ///
    /// # Panics
    ///
    /// If no type of it can be in a context.
    pub fn new(db: &'p PolicyDb, seed: u64) -> Self {
        let conditional = |it: &'p tidegate_bundle::te::db::Conditional| {
            it.when_true.iter().chain(&it.when_false)
        };
        let conditional = db.conditionals.iter().flat_map(conditional);
        let mut samples = Self {
            db,
            random: Rng::with_seed(seed),
            contexts: Vec::new(),
            by_type: vec![Vec::new(); db.types.len()],
            types: Vec::new(),
            rules: db.rules.iter().chain(conditional).collect(),
            members: vec![Vec::new(); db.types.len()],
        };
        for at in 0..db.types.len() {
            samples.contexts_of(at);
            if samples.by_type[at].is_empty() {
                continue;
            }
            samples.types.push(at);
            for name in db.memberships[at].ones() {
                samples.members[name].push(at);
            }
        }
        assert!(!samples.types.is_empty(), "a policy has types");
        samples
    }

    /// The contexts that samples speak of.
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    fn contexts_of(&mut self, at: usize) {
        let roles: Vec<_> = (0..self.db.roles.len())
            .filter(|&role| self.db.roles[role].types.contains(at))
            .collect();
        for _ in 0..EACH {
            let role = match self.random.choice(&roles) {
                Some(&role) if self.random.u8(..) < 200 => role as Number + 1,
                _ => OBJECT_R,
            };
            let users: Vec<_> = (0..self.db.users.len())
                .filter(|&user| {
                    role == OBJECT_R || self.db.users[user].roles.contains(role as usize - 1)
                })
                .collect();
            let Some(&user) = self.random.choice(&users) else {
                continue;
            };
            let context = Context {
                user: user as Number + 1,
                role,
                kind: at as Number + 1,
                range: self.range(user),
            };
            if self.db.is_valid(&context) {
                self.by_type[at].push(self.contexts.len());
                self.contexts.push(context);
            }
        }
    }

    /// A range that a user may have.
    fn range(&mut self, user: usize) -> Range {
        let Range { low, high } = &self.db.users[user].range;
        if !self.db.mls || self.random.u8(..) < 32 {
            return self.db.users[user].range.clone();
        }
        let bottom = self.random.u32(low.sensitivity..=high.sensitivity);
        let top = self.random.u32(bottom..=high.sensitivity);
        let lower = self.level(bottom, &low.categories, high);
        let upper = self.level(top, &lower.categories, high);
        Range {
            low: lower,
            high: upper,
        }
    }

    /// A level of this sensitivity with these categories at least, and, where it can, no others than a higher one's.
    fn level(&mut self, sensitivity: Number, least: &Bitmap, most: &Level) -> Level {
        let allowed = &self.db.sensitivities[sensitivity as usize - 1].categories;
        let extra: Vec<_> = most.categories.intersection(allowed).collect();
        let mut categories = least.clone();
        for _ in 0..self.random.usize(0..4) {
            if let Some(&category) = self.random.choice(&extra) {
                categories.grow(category + 1);
                categories.insert(category);
            }
        }
        Level {
            sensitivity,
            categories,
        }
    }

    fn any(&mut self) -> usize {
        let kind = self.random.choice(&self.types).copied();
        self.with(kind.expect("there are types"))
    }

    fn with(&mut self, kind: usize) -> usize {
        let context = self.random.choice(&self.by_type[kind]).copied();
        context.expect("each of these types has contexts")
    }

    /// A context whose type rules call so, if there is one.
    fn called(&mut self, name: Number) -> Option<usize> {
        let kind = self
            .random
            .choice(&self.members[name as usize - 1])
            .copied()?;
        Some(self.with(kind))
    }

    /// One about which a rule speaks, if its names are those of any type.
    fn of_a_rule(&mut self) -> Option<Sample> {
        let rule = *self.random.choice(&self.rules)?;
        let source = self.called(rule.source)?;
        // a rule of a type for itself stands as one of an attribute for the type
        let target = self.called(rule.target)?;
        Some(self.sample(source, target, rule.class))
    }

    /// One in which a transition by name, or of a role or range, may bear.
    fn of_a_transition(&mut self) -> Option<Sample> {
        let db = self.db;
        match self.random.u8(..3) {
            0 => {
                let it = self.random.choice(&db.name_transitions)?;
                let sources: Vec<_> = it.sources.ones().collect();
                let source = *self.random.choice(&sources)? as Number + 1;
                let (source, target) = (self.called(source)?, self.called(it.target)?);
                let mut sample = self.sample(source, target, it.class);
                sample.name.clone_from(&it.name);
                Some(sample)
            }
            1 => {
                let it = self.random.choice(&db.role_transitions)?;
                let target = self.called(it.kind)?;
                let (role, class) = (it.role, it.class);
                let of = |at: &usize| self.contexts[*at].role == role;
                let sources: Vec<_> = (0..self.contexts.len()).filter(of).collect();
                let source = *self.random.choice(&sources)?;
                Some(self.sample(source, target, class))
            }
            _ => {
                let it = self.random.choice(&db.range_transitions)?;
                let (source, target) = (self.called(it.source)?, self.called(it.target)?);
                Some(self.sample(source, target, it.class))
            }
        }
    }

    fn sample(&mut self, source: usize, target: usize, class: Number) -> Sample {
        let names = &self.db.name_transitions;
        let name = match self.random.choice(names) {
            Some(it) => it.name.clone(),
            None => "name".to_owned(),
        };
        Sample {
            source,
            target,
            third: self.any(),
            class,
            name,
        }
    }
}

impl Iterator for Samples<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        let chosen = match self.random.u8(..16) {
            0..8 => self.of_a_rule(),
            8 => self.of_a_transition(),
            _ => None,
        };
        if chosen.is_some() {
            return chosen;
        }
        let (source, target) = (self.any(), self.any());
        let class = self.random.usize(..self.db.classes.len()) as Number + 1;
        Some(self.sample(source, target, class))
    }
}
