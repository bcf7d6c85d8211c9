//! What `learn` proposes.

/// What is proposed to be added to one model's policy.
pub trait Propose {
    /// The text that is to be added, which explains itself.
    fn text(&self) -> &str;

    /// How much is proposed, and how much is not.
    fn counts(&self) -> String;
}
