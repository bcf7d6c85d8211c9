//! The table of rules, and those that booleans decide on: `avtab_read_item()` of the kernel's avtab.c,
//! `cond_read_list()` of conditional.c.

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;

use super::{PolicyDbError, Reader, version};
use crate::te::db::{BooleanTerm, Conditional, Extended, ExtendedKind, Number, Rule, Says, Type};

/// What a rule says (`AVTAB_*`).
const ALLOWED: u16 = 0x1;
const AUDITALLOW: u16 = 0x2;
const AUDITDENY: u16 = 0x4;
const TRANSITION: u16 = 0x10;
const MEMBER: u16 = 0x20;
const CHANGE: u16 = 0x40;
const XPERMS_ALLOWED: u16 = 0x100;
const XPERMS_AUDITALLOW: u16 = 0x200;
const XPERMS_DONTAUDIT: u16 = 0x400;
/// A rule of a conditional held when the policy was written.
const ENABLED: u16 = 0x8000;
/// Values that a conditional's expression has at once, at most (`COND_EXPR_MAXDEPTH`).
const MAX_DEPTH: usize = 10;

const WHAT: &str = "a rule";
const CONDITIONAL: &str = "a conditional";

/// What no two rules may have in common: source, target, class, and what is said.
type Key = (Number, Number, Number, std::mem::Discriminant<Says>);

/// In which conditional and in which of its lists a rule on types stood.
type Seen = HashMap<Key, (usize, bool, bool)>;

impl Reader<'_> {
    /// Reads all rules.
    pub fn rules(&mut self) -> Result<(), PolicyDbError> {
        let count = self.stream.count("the table of rules", 12)?;
        let mut keys = HashSet::new();
        for _ in 0..count {
            let rule = self.rule()?;
            if !matches!(rule.says, Says::Extended(_)) && !keys.insert(key(&rule)) {
                return Err(self.fault(&rule, "it stands twice"));
            }
            self.db.rules.push(rule);
        }
        let count = self.stream.count(CONDITIONAL, 16)?;
        let mut seen = Seen::new();
        for at in 0..count {
            let conditional = self.conditional()?;
            for (is_true, rules) in [
                (true, &conditional.when_true),
                (false, &conditional.when_false),
            ] {
                for rule in rules {
                    self.is_one_of_its_kind(rule, at, is_true, &keys, &mut seen)?;
                }
            }
            self.db.conditionals.push(conditional);
        }
        Ok(())
    }

    fn rule(&mut self) -> Result<Rule, PolicyDbError> {
        let mut word = || self.stream.u16(WHAT);
        let [source, target, class, says] = [word()?, word()?, word()?, word()?];
        let types = self.db.types.len();
        let source = self.stream.among(source.into(), types, WHAT)?;
        let target = self.stream.among(target.into(), types, WHAT)?;
        let classes = self.db.classes.len();
        let class = self.stream.among(class.into(), classes, WHAT)?;
        let says = match says & !ENABLED {
            ALLOWED => Says::Allow(self.stream.u32(WHAT)?),
            AUDITALLOW => Says::AuditAllow(self.stream.u32(WHAT)?),
            AUDITDENY => Says::AuditDeny(self.stream.u32(WHAT)?),
            TRANSITION => Says::Transition(self.real_type(WHAT)?),
            MEMBER => Says::Member(self.real_type(WHAT)?),
            CHANGE => Says::Change(self.real_type(WHAT)?),
            XPERMS_ALLOWED => Says::Extended(self.extended(ExtendedKind::Allow)?),
            XPERMS_AUDITALLOW => Says::Extended(self.extended(ExtendedKind::AuditAllow)?),
            XPERMS_DONTAUDIT => Says::Extended(self.extended(ExtendedKind::DontAudit)?),
            _ => return Err(self.stream.error(WHAT)),
        };
        Ok(Rule {
            source,
            target,
            class,
            says,
        })
    }

    /// A type that a context may have: no attribute.
    pub fn real_type(&mut self, what: &'static str) -> Result<Number, PolicyDbError> {
        let number = self.stream.number(self.db.types.len(), what)?;
        match is_real(&self.db.types[number as usize - 1]) {
            true => Ok(number),
            false => Err(self.stream.error(what)),
        }
    }

    fn extended(&mut self, kind: ExtendedKind) -> Result<Extended, PolicyDbError> {
        let what = "a rule of extended permissions";
        let [specified, driver] = [self.stream.u8(what)?, self.stream.u8(what)?];
        if self.db.version < version::XPERMS_IOCTL || !(1..=3).contains(&specified) {
            return Err(self.stream.error(what));
        }
        let mut permissions = [0; 8];
        for word in &mut permissions {
            *word = self.stream.u32(what)?;
        }
        Ok(Extended {
            kind,
            specified,
            driver,
            permissions,
        })
    }

    fn conditional(&mut self) -> Result<Conditional, PolicyDbError> {
        let _state_when_written = self.stream.u32(CONDITIONAL)?;
        let terms = self.stream.count(CONDITIONAL, 8)?;
        let mut expression = Vec::new();
        let mut depth = 0;
        for _ in 0..terms {
            let term = self.boolean_term()?;
            depth = after(term, depth).ok_or_else(|| self.stream.error(CONDITIONAL))?;
            expression.push(term);
        }
        if depth != 1 {
            return Err(self.stream.error(CONDITIONAL));
        }
        Ok(Conditional {
            expression,
            when_true: self.rules_of_a_conditional()?,
            when_false: self.rules_of_a_conditional()?,
        })
    }

    fn boolean_term(&mut self) -> Result<BooleanTerm, PolicyDbError> {
        let [kind, boolean] = [self.stream.u32(CONDITIONAL)?, self.stream.u32(CONDITIONAL)?];
        Ok(match kind {
            1 => {
                let booleans = self.db.booleans.len();
                BooleanTerm::Is(self.stream.among(boolean, booleans, CONDITIONAL)?)
            }
            2 => BooleanTerm::Not,
            3 => BooleanTerm::Or,
            4 => BooleanTerm::And,
            5 => BooleanTerm::Xor,
            6 => BooleanTerm::Equal,
            7 => BooleanTerm::Differs,
            _ => return Err(self.stream.error(CONDITIONAL)),
        })
    }

    fn rules_of_a_conditional(&mut self) -> Result<Vec<Rule>, PolicyDbError> {
        let count = self.stream.count(CONDITIONAL, 12)?;
        let mut rules = Vec::new();
        for _ in 0..count {
            let rule = self.rule()?;
            if matches!(rule.says, Says::Extended(_)) && self.db.version < version::COND_XPERMS {
                return Err(self.fault(
                    &rule,
                    "extended permissions in a conditional need version 34",
                ));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    /// Checks that no two rules on types can hold at once for the same source, target and class, as it would
    /// depend on their order what they say: `cond_insertf()`. Both lists of one conditional may have one.
    fn is_one_of_its_kind(
        &self,
        rule: &Rule,
        conditional: usize,
        is_true: bool,
        unconditional: &HashSet<Key>,
        seen: &mut Seen,
    ) -> Result<(), PolicyDbError> {
        if !matches!(
            rule.says,
            Says::Transition(_) | Says::Member(_) | Says::Change(_)
        ) {
            return Ok(());
        }
        let key = key(rule);
        let is_new = !unconditional.contains(&key);
        let before = *seen.entry(key).or_insert((conditional, false, false));
        let is_new = is_new && before.0 == conditional && !before.2 && (!before.1 || !is_true);
        seen.insert(
            key,
            (conditional, before.1 || is_true, before.2 || !is_true),
        );
        match is_new {
            true => Ok(()),
            false => Err(self.fault(rule, "another says of which type it is, too")),
        }
    }

    fn fault(&self, rule: &Rule, fault: &'static str) -> PolicyDbError {
        let name = |number: Number| &self.db.types[number as usize - 1].name;
        PolicyDbError::Fault {
            of: format!(
                "the rule of `{}` and `{}` for the class `{}`",
                name(rule.source),
                name(rule.target),
                self.db.classes[rule.class as usize - 1].name
            ),
            fault,
        }
    }
}

fn key(rule: &Rule) -> Key {
    let says = discriminant(&rule.says);
    (rule.source, rule.target, rule.class, says)
}

/// How many values there are after a term, if it has its operands and there is room.
fn after(term: BooleanTerm, depth: usize) -> Option<usize> {
    match term {
        BooleanTerm::Is(_) => (depth < MAX_DEPTH).then_some(depth + 1),
        BooleanTerm::Not => (depth >= 1).then_some(depth),
        _ => (depth >= 2).then(|| depth - 1),
    }
}

/// Whether a context may have this type.
pub(super) fn is_real(symbol: &Type) -> bool {
    !symbol.attribute && !symbol.name.is_empty()
}
