//! Contexts of what is made or changed: `security_compute_sid()`, `mls_compute_sid()`,
//! `security_compute_validatetrans()`, `security_bounded_transition()`.

use super::{Decider, Entry, constraint};
use crate::te::db::{Bitmap, Context, DefaultRange, From, Level, Number, Range};
use crate::te::policydb::OBJECT_R_NUMBER;

/// Which of the three it is, as rules say it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Transition,
    Member,
    Change,
}

impl Decider<'_> {
    /// The context of what the source makes of this class, as a process by executing the target, as anything else in
    /// or by the target; by name, where it gets one in a directory.
    ///
    /// # Errors
    ///
    /// The context it would have, where that may not be: SELinux refuses the operation (EACCES).
    pub fn transition(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        name: Option<&str>,
    ) -> Result<Context, Context> {
        self.label(Kind::Transition, source, target, class, name)
    }

    /// The context of the member of a polyinstantiated object that is the source's.
    ///
    /// # Errors
    ///
    /// As [`transition`](Self::transition).
    pub fn member(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
    ) -> Result<Context, Context> {
        self.label(Kind::Member, source, target, class, None)
    }

    /// The context that the target is relabelled to for the source: a terminal at a login.
    ///
    /// # Errors
    ///
    /// As [`transition`](Self::transition).
    pub fn change(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
    ) -> Result<Context, Context> {
        self.label(Kind::Change, source, target, class, None)
    }

    /// Whether an object of this class may go from one context to another by what the third one does
    /// (`validatetrans`).
    pub fn may_change(&self, old: &Context, new: &Context, by: &Context, class: Number) -> bool {
        let mut validations = self.db.classes[class as usize - 1].validations.iter();
        validations.all(|it| constraint::holds(self.db, &it.expression, [old, new, by]))
    }

    /// Whether a thread of many may change to this context, or a process that may not gain privileges execute into
    /// it: the type is the same, or is bounded by it.
    pub fn is_bounded(&self, old: &Context, new: &Context) -> bool {
        let above = |kind: &Number| self.db.types[*kind as usize - 1].bounds;
        std::iter::successors(Some(new.kind), above).any(|kind| kind == old.kind)
    }

    fn label(
        &self,
        kind: Kind,
        source: &Context,
        target: &Context,
        class: Number,
        name: Option<&str>,
    ) -> Result<Context, Context> {
        let of_class = &self.db.classes[class as usize - 1];
        // of processes and sockets the label is the maker's
        let is_own = self.db.process_class() == Some(class) || of_class.name.ends_with("socket");
        let user = match (kind, of_class.default_user) {
            (Kind::Member, _) | (_, From::Target) => target.user,
            _ => source.user,
        };
        let role = match of_class.default_role {
            From::Source => source.role,
            From::Target => target.role,
            From::Unsaid if is_own => source.role,
            From::Unsaid => OBJECT_R_NUMBER,
        };
        let default = match of_class.default_type {
            From::Source => source.kind,
            From::Target => target.kind,
            From::Unsaid if is_own => source.kind,
            From::Unsaid => target.kind,
        };
        let rule = self.rules.get(&(source.kind, target.kind, class));
        let rule = rule.and_then(|entry: &Entry| match kind {
            Kind::Transition => entry.transition,
            Kind::Member => entry.member,
            Kind::Change => entry.change,
        });
        let named = name.and_then(|name| self.named(source, target, class, name));
        let becomes = match kind {
            Kind::Transition => self.role_transition(source, target, class),
            Kind::Member | Kind::Change => None,
        };
        let range = self.range(kind, source, target, class, is_own);
        let has_range = range.is_some();
        let context = Context {
            user,
            role: becomes.unwrap_or(role),
            kind: named.or(rule).unwrap_or(default),
            range: range.unwrap_or_else(|| target.range.clone()),
        };
        match has_range && self.db.is_valid(&context) {
            true => Ok(context),
            false => Err(context),
        }
    }

    /// The type that a transition by name gives to what is made.
    pub fn named(
        &self,
        source: &Context,
        target: &Context,
        class: Number,
        name: &str,
    ) -> Option<Number> {
        let mut all = self.db.name_transitions.iter();
        let of = all.find(|it| {
            it.target == target.kind
                && it.class == class
                && it.name == name
                && it.sources.contains(source.kind as usize - 1)
        });
        of.map(|it| it.becomes)
    }

    fn role_transition(&self, source: &Context, target: &Context, class: Number) -> Option<Number> {
        let mut all = self.db.role_transitions.iter();
        let of = all.find(|it| (it.role, it.kind, it.class) == (source.role, target.kind, class));
        of.map(|it| it.becomes)
    }

    /// The range; none where the greatest lower one of two does not exist.
    fn range(
        &self,
        kind: Kind,
        source: &Context,
        target: &Context,
        class: Number,
        is_own: bool,
    ) -> Option<Range> {
        if !self.db.mls {
            return Some(Range::default());
        }
        let one = |level: &Level| Range {
            low: level.clone(),
            high: level.clone(),
        };
        let (source_range, target_range) = (&source.range, &target.range);
        let of_change = match is_own {
            true => source_range.clone(),
            false => one(&source_range.low),
        };
        match kind {
            Kind::Member => return Some(one(&source_range.low)),
            Kind::Change => return Some(of_change),
            Kind::Transition => {}
        }
        let mut all = self.db.range_transitions.iter();
        let key = (source.kind, target.kind, class);
        if let Some(rule) = all.find(|it| (it.source, it.target, it.class) == key) {
            return Some(rule.range.clone());
        }
        Some(match self.db.classes[class as usize - 1].default_range {
            DefaultRange::SourceLow => one(&source_range.low),
            DefaultRange::SourceHigh => one(&source_range.high),
            DefaultRange::SourceLowHigh => source_range.clone(),
            DefaultRange::TargetLow => one(&target_range.low),
            DefaultRange::TargetHigh => one(&target_range.high),
            DefaultRange::TargetLowHigh => target_range.clone(),
            DefaultRange::GreatestLowest => return common(source_range, target_range),
            DefaultRange::Unsaid => of_change,
        })
    }
}

/// What two ranges have in common (`mls_context_glblub()`), if their sensitivities meet.
fn common(one: &Range, other: &Range) -> Option<Range> {
    let meet = |one: &Range, other: &Range| one.high.sensitivity >= other.low.sensitivity;
    if !meet(one, other) || !meet(other, one) {
        return None;
    }
    let both = |one: &Level, other: &Level| -> Bitmap {
        one.categories.intersection(&other.categories).collect()
    };
    Some(Range {
        low: Level {
            sensitivity: one.low.sensitivity.max(other.low.sensitivity),
            categories: both(&one.low, &other.low),
        },
        high: Level {
            sensitivity: one.high.sensitivity.min(other.high.sensitivity),
            categories: both(&one.high, &other.high),
        },
    })
}
