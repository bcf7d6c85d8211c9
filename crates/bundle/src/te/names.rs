//! Symbols of a policy by their names.

use super::INITIAL_SIDS;
use super::db::{Context, Number, PolicyDb};

impl PolicyDb {
    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<Number> {
        number(self.classes.iter().position(|class| class.name == name))
    }

    /// The context of the initial SID of this name.
    pub fn initial_sid(&self, name: &str) -> Option<&Context> {
        let number = INITIAL_SIDS.iter().position(|known| *known == name)? as u32 + 1;
        let mut all = self.initial_sids.iter();
        all.find(|(sid, _)| *sid == number)
            .map(|(_, context)| context)
    }

    /// A permission's bit in a class.
    ///
    /// # Panics
    ///
    /// If the class is none of the policy's.
    pub fn permission(&self, class: Number, name: &str) -> Option<u32> {
        let permissions = &self.classes[class as usize - 1].permissions;
        let bit = permissions.iter().position(|other| other == name)?;
        Some(1 << bit)
    }

    /// The type of this name or alias, which is no attribute.
    pub fn type_named(&self, name: &str) -> Option<Number> {
        let is_it = |symbol: &super::db::Type| !symbol.attribute && symbol.name == name;
        let alias = || self.type_aliases.iter().find(|(alias, _)| alias == name);
        let of_its_own = self.types.iter().position(is_it);
        number(of_its_own.filter(|_| !name.is_empty())).or_else(|| alias().map(|(_, of)| *of))
    }

    /// The type or attribute of this name, or the type of this alias.
    pub fn type_or_attribute(&self, name: &str) -> Option<Number> {
        let is_it = |symbol: &super::db::Type| symbol.attribute && symbol.name == name;
        self.type_named(name)
            .or_else(|| number(self.types.iter().position(is_it)))
    }

    /// The role of this name.
    pub fn role(&self, name: &str) -> Option<Number> {
        number(self.roles.iter().position(|role| role.name == name))
    }

    /// The user of this name.
    pub fn user(&self, name: &str) -> Option<Number> {
        number(self.users.iter().position(|user| user.name == name))
    }

    /// The sensitivity of this name or alias.
    pub fn sensitivity(&self, name: &str) -> Option<Number> {
        let mut all = self.sensitivities.iter();
        number(all.position(|level| is_called(&level.name, &level.aliases, name)))
    }

    /// The category of this name or alias.
    pub fn category(&self, name: &str) -> Option<Number> {
        let mut all = self.categories.iter();
        number(all.position(|category| is_called(&category.name, &category.aliases, name)))
    }

    /// The class of processes, where it can be told when one changes its context: the kernel takes no policy
    /// without.
    pub fn process_class(&self) -> Option<Number> {
        let process = self.class("process")?;
        (self.process_transitions(process) != 0).then_some(process)
    }

    /// The permissions by which a process changes its context.
    pub(super) fn process_transitions(&self, process: Number) -> u32 {
        let permission = |name| self.permission(process, name).unwrap_or(0);
        permission("transition") | permission("dyntransition")
    }
}

fn number(at: Option<usize>) -> Option<Number> {
    at.map(|at| at as Number + 1)
}

fn is_called(own: &str, aliases: &[String], name: &str) -> bool {
    own == name || aliases.iter().any(|alias| alias == name)
}
