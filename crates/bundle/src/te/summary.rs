//! A policy in short.

use serde::Serialize;

use super::Te;
use super::db::{Rule, Says, Unknown};

/// What a policy has, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The version that it is written in.
    pub version: u32,
    /// Whether contexts have ranges.
    pub mls: bool,
    /// What becomes of classes and permissions that it does not know: `deny`, `reject` or `allow`.
    pub unknown: &'static str,
    /// Classes of objects.
    pub classes: usize,
    /// Types.
    pub types: usize,
    /// Attributes of types.
    pub attributes: usize,
    /// Types whose domains are permissive.
    pub permissive: usize,
    /// Roles.
    pub roles: usize,
    /// Users.
    pub users: usize,
    /// Sensitivities.
    pub sensitivities: usize,
    /// Categories.
    pub categories: usize,
    /// Rules on access, those of conditionals among them.
    pub access_rules: usize,
    /// Rules on single ioctls and messages.
    pub extended_rules: usize,
    /// Transitions, members and changes, those by name among them.
    pub type_rules: usize,
    /// Transitions of roles and of ranges.
    pub role_and_range_transitions: usize,
    /// Rules that booleans decide on: so many of the above.
    pub conditional_rules: usize,
    /// Constraints.
    pub constraints: usize,
    /// Booleans.
    pub booleans: usize,
    /// Those that are set to another value than the policy gives them.
    pub booleans_set: usize,
    /// Contexts of filesystems and of paths in them, of ports, interfaces and addresses.
    pub contexts: usize,
    /// Kinds of statements that are read past.
    pub passed_over: Vec<&'static str>,
}

impl Te {
    /// The policy in short.
    pub fn summary(&self) -> Summary {
        let db = &self.db;
        let conditional: Vec<&Rule> = {
            let all = db.conditionals.iter();
            all.flat_map(|it| it.when_true.iter().chain(&it.when_false))
                .collect()
        };
        let rules = || db.rules.iter().chain(conditional.iter().copied());
        let attributes = db.types.iter().filter(|it| it.attribute).count();
        let types = db.types.iter().filter(|it| !it.name.is_empty()).count() - attributes;
        let constraints = db.classes.iter();
        let paths: usize = db.genfs.iter().map(|genfs| genfs.paths.len()).sum();
        let addresses = db.nodes.len() + db.nodes6.len();
        let is_access = |rule: &&Rule| {
            matches!(
                rule.says,
                Says::Allow(_) | Says::AuditAllow(_) | Says::AuditDeny(_)
            )
        };
        let extended_rules = rules()
            .filter(|rule| matches!(rule.says, Says::Extended(_)))
            .count();
        let access_rules = rules().filter(is_access).count();
        let names = db.name_transitions.len();
        Summary {
            version: db.version,
            mls: db.mls,
            unknown: match db.unknown {
                Unknown::Deny => "deny",
                Unknown::Reject => "reject",
                Unknown::Allow => "allow",
            },
            classes: db.classes.len(),
            types,
            attributes,
            permissive: db.permissive.count_ones(..),
            roles: db.roles.len(),
            users: db.users.len(),
            sensitivities: db.sensitivities.len(),
            categories: db.categories.len(),
            access_rules,
            extended_rules,
            type_rules: rules().count() - access_rules - extended_rules + names,
            role_and_range_transitions: db.role_transitions.len() + db.range_transitions.len(),
            conditional_rules: conditional.len(),
            constraints: constraints
                .map(|class| class.constraints.len() + class.validations.len())
                .sum(),
            booleans: db.booleans.len(),
            booleans_set: self.booleans.len(),
            contexts: db.fs_uses.len() + paths + db.ports.len() + db.interfaces.len() + addresses,
            passed_over: db.passed_over.clone(),
        }
    }
}
