//! Rules on single ioctls and netlink messages.

use tidegate_bundle::te::db::{ExtendedKind, Number, Says};

use super::writer::Writer;
use crate::part;
use crate::rows::rules;

impl Writer<'_> {
    /// A list for each class. Such rules are few, so each is kept as it is written, its names as sets of types.
    pub(super) fn extended(&mut self) {
        let mut lists: Vec<Vec<[u32; 14]>> = vec![Vec::new(); self.classes.list.len() + 1];
        for rule in rules(self.db, self.booleans) {
            let Says::Extended(extended) = &rule.says else {
                continue;
            };
            let says = match extended.kind {
                ExtendedKind::Allow => 2,
                ExtendedKind::AuditAllow => 4,
                ExtendedKind::DontAudit => 8,
            };
            let mut words = [0; 14];
            words[..5].copy_from_slice(&[
                self.named(rule.source),
                self.named(rule.target),
                extended.specified.into(),
                extended.driver.into(),
                says,
            ]);
            words[6..].copy_from_slice(&extended.permissions);
            lists[self.classes.number(rule.class) as usize].push(words);
        }
        if lists.iter().all(Vec::is_empty) {
            return;
        }
        let places: Vec<u32> = lists
            .into_iter()
            .map(|rules| match rules.len() as u32 {
                0 => 0,
                count => {
                    let words = rules.into_iter().flatten();
                    self.out.list([count, 0].into_iter().chain(words))
                }
            })
            .collect();
        self.head[part::EXTENDED] = self.out.list(places);
    }

    /// The types that a rule's name stands for, as a bitmap.
    fn named(&mut self, name: Number) -> u32 {
        let members = self.db.memberships.iter().enumerate();
        let types: Vec<u32> = members
            .filter(|(_, names)| names.contains(name as usize - 1))
            .filter(|(kind, _)| !self.db.types[*kind].attribute)
            .map(|(kind, _)| self.numbers.types[kind])
            .collect();
        self.out.bitmap(self.numbering.types.len(), types)
    }
}
