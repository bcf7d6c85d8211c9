//! What a model says of a refusal.

use std::sync::Arc;

use tidegate_audit::Record;
use tidegate_bundle::Policy;

/// What a model says of a refusal of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation<T> {
    /// By what it was refused, and what would let it through.
    Refused(T),
    /// What helps where no rule does.
    Advice(String),
}

impl<T> Explanation<T> {
    /// Returns what refused, if that is known.
    pub fn refused(self) -> Option<T> {
        match self {
            Explanation::Refused(it) => Some(it),
            Explanation::Advice(_) => None,
        }
    }

    /// Returns the advice, if no rule helps.
    pub fn advice(self) -> Option<String> {
        match self {
            Explanation::Refused(_) => None,
            Explanation::Advice(text) => Some(text),
        }
    }
}

/// How `why` shows what it says.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// All fixes, with what each lets through and gives away; else the narrowest, in a line.
    pub all: bool,
    /// Where the statements of a map belong, in words.
    pub map: &'a str,
}

/// A model's part in `why`. Each model has one type with it, which is what the model says of a refusal.
pub trait Explain: Sized {
    /// What there is to say of the refusal that a chain begins with, newest first, by a policy. `None`: the model did not
    /// refuse it.
    fn explain(chain: &[Record], policy: &Arc<Policy>) -> Option<Explanation<Self>>;

    /// The lines that `why` prints.
    fn lines(&self, shown: &Shown<'_>) -> Vec<String>;
}
