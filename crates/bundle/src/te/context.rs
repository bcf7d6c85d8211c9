//! Contexts: which can be, and their text (`user:role:type:range`).
//!
//! `policydb_context_isvalid()` of the kernel's security/selinux/ss/policydb.c, `string_to_context_struct()` of
//! services.c, and mls.c.

use std::fmt::Write as _;

use miette::Diagnostic;
use thiserror::Error;

use super::db::{Bitmap, Context, Level, Number, PolicyDb, Range};
use super::policydb::OBJECT_R_NUMBER;

/// Why a text is no context of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[non_exhaustive]
pub enum ContextError {
    /// Fewer parts than a context has, or more.
    #[error("`{0}` is not a context: USER:ROLE:TYPE, and :RANGE where the policy has MLS")]
    #[diagnostic(
        code(te::context),
        help(
            "a context is user:role:type:range, and user:role:type where the policy has no ranges"
        )
    )]
    Form(String),
    /// A name that the policy does not have.
    #[error("`{text}`: the policy has no {what} `{name}`")]
    #[diagnostic(code(te::context_name))]
    Name {
        /// The context.
        text: String,
        /// Of what.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Parts that do not go together.
    #[error("`{0}` cannot be: its user may not have its role or its range, or its role its type")]
    #[diagnostic(code(te::context_invalid))]
    Invalid(String),
}

impl Level {
    /// Whether it is as high as another and has all its categories (`mls_level_dom()`).
    pub fn dominates(&self, other: &Level) -> bool {
        self.sensitivity >= other.sensitivity && other.categories.is_subset(&self.categories)
    }
}

impl Range {
    /// Whether another lies in it (`mls_range_contains()`).
    pub fn contains(&self, other: &Range) -> bool {
        other.low.dominates(&self.low) && self.high.dominates(&other.high)
    }
}

impl PolicyDb {
    /// Whether a context may be: its parts are there, and go together. This takes any numbers.
    pub fn is_valid(&self, context: &Context) -> bool {
        let at = |number: Number| (number as usize).wrapping_sub(1);
        let (Some(user), Some(role), Some(kind)) = (
            self.users.get(at(context.user)),
            self.roles.get(at(context.role)),
            self.types.get(at(context.kind)),
        ) else {
            return false;
        };
        if kind.attribute || kind.name.is_empty() {
            return false;
        }
        let is_object = context.role == OBJECT_R_NUMBER;
        let go_together =
            role.types.contains(at(context.kind)) && user.roles.contains(at(context.role));
        if !is_object && !go_together {
            return false;
        }
        match self.mls {
            true => {
                let range = &context.range;
                self.is_range(range) && (is_object || user.range.contains(range))
            }
            false => context.range == Range::default(),
        }
    }

    /// Whether a range may be: its high level dominates the low one, and each has only categories of its sensitivity
    /// (`mls_range_isvalid()`).
    pub(super) fn is_range(&self, range: &Range) -> bool {
        let is_level = |level: &Level| {
            let at = (level.sensitivity as usize).wrapping_sub(1);
            let sensitivity = self.sensitivities.get(at);
            sensitivity.is_some_and(|it| level.categories.is_subset(&it.categories))
        };
        range.high.dominates(&range.low) && is_level(&range.low) && is_level(&range.high)
    }

    /// A context by its text.
    ///
    /// # Errors
    ///
    /// If it is none that may be under this policy.
    pub fn context(&self, text: &str) -> Result<Context, ContextError> {
        let form = || ContextError::Form(text.to_owned());
        let (user, rest) = text.split_once(':').ok_or_else(form)?;
        let (role, rest) = rest.split_once(':').ok_or_else(form)?;
        let (kind, range) = match rest.split_once(':') {
            Some((kind, range)) => (kind, Some(range)),
            None => (rest, None),
        };
        let named = |number: Option<Number>, what, name: &str| {
            number.ok_or_else(|| ContextError::Name {
                text: text.to_owned(),
                what,
                name: name.to_owned(),
            })
        };
        let context = Context {
            user: named(self.user(user), "user", user)?,
            role: named(self.role(role), "role", role)?,
            kind: named(self.type_named(kind), "type", kind)?,
            range: match (range, self.mls) {
                (Some(range), true) => self.range(range, &named)?,
                (None, false) => Range::default(),
                _ => return Err(form()),
            },
        };
        match self.is_valid(&context) {
            true => Ok(context),
            false => Err(ContextError::Invalid(text.to_owned())),
        }
    }

    /// A range by its text; `None`: it is none that may be under this policy.
    pub fn range_named(&self, text: &str) -> Option<Range> {
        if !self.mls {
            return None;
        }
        let named = |number: Option<Number>, _: &'static str, name: &str| {
            number.ok_or_else(|| ContextError::Form(name.to_owned()))
        };
        let range = self.range(text, &named).ok()?;
        self.is_range(&range).then_some(range)
    }

    /// A range's text, as a context's has it.
    ///
    /// # Panics
    ///
    /// If it is not one of this policy's, or this has none.
    pub fn range_text(&self, range: &Range) -> String {
        let mut text = String::new();
        self.write_level(&range.low, &mut text);
        if range.high != range.low {
            text.push('-');
            self.write_level(&range.high, &mut text);
        }
        text
    }

    fn range(&self, text: &str, named: &impl Named) -> Result<Range, ContextError> {
        let (low, high) = match text.split_once('-') {
            Some((low, high)) => (low, Some(high)),
            None => (text, None),
        };
        let low = self.level(low, named)?;
        let high = high.map(|high| self.level(high, named)).transpose()?;
        Ok(Range {
            high: high.unwrap_or_else(|| low.clone()),
            low,
        })
    }

    /// `s0`, or `s0:c1,c3.c7`.
    fn level(&self, text: &str, named: &impl Named) -> Result<Level, ContextError> {
        let (sensitivity, categories) = match text.split_once(':') {
            Some((sensitivity, categories)) => (sensitivity, Some(categories)),
            None => (text, None),
        };
        let mut level = Level {
            sensitivity: named(self.sensitivity(sensitivity), "sensitivity", sensitivity)?,
            categories: Bitmap::new(),
        };
        let category = |name| named(self.category(name), "category", name);
        for part in categories.into_iter().flat_map(|list| list.split(',')) {
            let (first, last) = match part.split_once('.') {
                None => (category(part)?, category(part)?),
                Some((first, last)) => match (category(first)?, category(last)?) {
                    (first, last) if first < last => (first, last),
                    _ => return named(None, "run of categories", part).map(|_| level),
                },
            };
            level
                .categories
                .grow(level.categories.len().max(last as usize));
            level
                .categories
                .insert_range(first as usize - 1..last as usize);
        }
        Ok(level)
    }

    /// A context's text, as the kernel writes it.
    ///
    /// # Panics
    ///
    /// If it is not valid under this policy.
    pub fn context_text(&self, context: &Context) -> String {
        let mut text = format!(
            "{}:{}:{}",
            self.users[context.user as usize - 1].name,
            self.roles[context.role as usize - 1].name,
            self.types[context.kind as usize - 1].name
        );
        if self.mls {
            text.push(':');
            text += &self.range_text(&context.range);
        }
        text
    }

    fn write_level(&self, level: &Level, text: &mut String) {
        *text += &self.sensitivities[level.sensitivity as usize - 1].name;
        let has = |at: usize| level.categories.contains(at);
        let mut separator = ':';
        for first in level.categories.ones() {
            if first > 0 && has(first - 1) {
                continue;
            }
            let after = (first..).find(|&at| !has(at)).unwrap_or(first + 1);
            let last = after - 1;
            let name = |at: usize| &self.categories[at].name;
            let _ = write!(text, "{separator}{}", name(first));
            separator = ',';
            match last - first {
                0 => {}
                1 => text.extend([",", name(last)]),
                _ => text.extend([".", name(last)]),
            }
        }
    }
}

/// Gives a symbol's number, or says that there is none of that name.
trait Named: Fn(Option<Number>, &'static str, &str) -> Result<Number, ContextError> {}

impl<F: Fn(Option<Number>, &'static str, &str) -> Result<Number, ContextError>> Named for F {}
