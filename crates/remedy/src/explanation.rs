//! What a model says of a refusal.

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
