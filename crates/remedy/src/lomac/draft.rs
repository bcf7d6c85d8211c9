//! What might fix a refusal, before it is checked.

use serde::{Deserialize, Serialize};

use super::statement::Statement;

/// What a fix trusts, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// Nothing: what is lower stays lower, and a reader of it falls.
    Nothing,
    /// One file or socket.
    Object,
    /// What one address says.
    Network,
    /// One program, with the network.
    ProgramOnNetwork,
    /// Whoever is lower, with a secret or a device.
    Secret,
    /// One program, with whatever it reads.
    Program,
    /// One program, with everything.
    Anything,
}

/// A possible fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What is added to the map.
    pub statements: Vec<Statement>,
    /// Instead of a statement: this object is given this level.
    pub promote: Option<(String, u8)>,
    /// What it trusts.
    pub trust: Trust,
    /// How many paths it covers, roughly: 1 is one file.
    pub width: u32,
    /// What it lets through.
    pub lets: String,
    /// What it gives away.
    pub gives: String,
}

impl Draft {
    /// Statements that trust nothing.
    pub fn new(statements: Vec<Statement>, width: u32, lets: String, gives: String) -> Draft {
        Draft {
            statements,
            promote: None,
            trust: Trust::Nothing,
            width,
            lets,
            gives,
        }
    }

    /// The same, trusting something.
    pub fn trusting(self, trust: Trust) -> Draft {
        Draft { trust, ..self }
    }

    /// An object is given a level, by a command.
    pub fn promote(path: &str, level: u8, lets: String, gives: String) -> Draft {
        Draft {
            promote: Some((path.into(), level)),
            ..Draft::new(Vec::new(), 1, lets, gives)
        }
    }

    /// Two drafts in one; `None` if they contradict each other.
    pub fn and(&self, other: &Draft) -> Option<Draft> {
        let mut statements = self.statements.clone();
        for statement in &other.statements {
            Statement::merge(&mut statements, statement)?;
        }
        if self.promote.is_some() && other.promote.is_some() {
            return None;
        }
        Some(Draft {
            statements,
            promote: self.promote.clone().or_else(|| other.promote.clone()),
            trust: self.trust.max(other.trust),
            width: self.width + other.width,
            lets: joined(&self.lets, &other.lets),
            gives: joined(&self.gives, &other.gives),
        })
    }
}

fn joined(one: &str, other: &str) -> String {
    if one == other {
        one.into()
    } else {
        format!("{one}; {other}")
    }
}
