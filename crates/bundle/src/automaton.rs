//! Deterministic automata over bytes: many patterns as one, which reads a name once. What is said of a name is the model's own: a
//! context, or what may be done there.

/// An automaton of its last form. State 0 leads nowhere but to itself, and says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automaton<A> {
    /// The class of each byte, below `width`.
    pub classes: Box<[u8; 256]>,
    /// How many classes there are: 1 to 256.
    pub width: u16,
    /// The next states, `width` of them for each state.
    pub next: Vec<u16>,
    /// By state, what is said of a name that ends there: an index into `answers`.
    pub accepts: Vec<u16>,
    /// What can be said.
    pub answers: Vec<A>,
    /// The state in which a name begins.
    pub start: u16,
}

impl<A> Automaton<A> {
    /// What it says of a name that ends after these bytes.
    pub fn walk(&self, name: &[u8]) -> &A {
        let end = name.iter().fold(self.start, |state, &byte| {
            let class = usize::from(self.classes[usize::from(byte)]);
            self.next[usize::from(state) * usize::from(self.width) + class]
        });
        &self.answers[usize::from(self.accepts[usize::from(end)])]
    }

    /// The bytes that its tables take, without what its answers own.
    pub fn bytes(&self) -> usize {
        self.classes.len()
            + size_of_val(&self.next[..])
            + size_of_val(&self.accepts[..])
            + size_of_val(&self.answers[..])
    }

    /// Checks its form, whoever made it; what it answers is the model's to check.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let width = usize::from(self.width);
        let states = self.accepts.len();
        if !(1..=256).contains(&width) || states == 0 || self.next.len() != states * width {
            return Err("an automaton without states or classes");
        }
        if self
            .classes
            .iter()
            .any(|&class| usize::from(class) >= width)
        {
            return Err("a class that is not there");
        }
        let beyond = |&state: &u16| usize::from(state) >= states;
        if beyond(&self.start) || self.next.iter().any(beyond) {
            return Err("a state that is not there");
        }
        if self.next[..width].iter().any(|&state| state != 0) {
            return Err("a way out of state 0");
        }
        let answers = self.answers.len();
        if self.accepts.iter().any(|&at| usize::from(at) >= answers) {
            return Err("an answer that is not there");
        }
        Ok(())
    }

    /// What is said in state 0, of an automaton whose form is right.
    pub(crate) fn nothing(&self) -> &A {
        &self.answers[usize::from(self.accepts[0])]
    }
}
