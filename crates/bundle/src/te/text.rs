//! Rules, constraints and conditions as a policy's source has them, in the form in which setools print them.
//!
//! A binary policy has no brackets, so they stand as setools set them. Of a constraint's types one from version 29 on
//! tells which attributes they were written as; in older ones they are called by an attribute that has just these types.

use std::fmt::Write as _;

use super::db::{
    Attribute, Bitmap, BooleanTerm, Conditional, Constraint, Extended, ExtendedKind, Number,
    Operator, Part, PolicyDb, Rule, Says, Side, Symbol, Term,
};

/// What of an expression binds how tightly, so that brackets stand as setools set them: they compare with the
/// operator before only, and so set more than are needed.
struct Infix {
    stack: Vec<(String, bool)>,
    before: u8,
}

impl Infix {
    fn new(tightest: u8) -> Infix {
        Infix {
            stack: Vec::new(),
            before: tightest,
        }
    }

    fn operand(&mut self, text: String) {
        self.stack.push((text, false));
    }

    fn pop(&mut self) -> (String, bool) {
        self.stack
            .pop()
            .expect("an expression has its operands: the reader has checked it")
    }

    fn two(&mut self, operator: &str, binds: u8, [first, second]: [String; 2]) {
        let text = match self.before > binds {
            true => format!("{first} {operator} {second}"),
            false => format!("( {first} {operator} {second} )"),
        };
        self.stack.push((text, true));
        self.before = binds;
    }
}

impl PolicyDb {
    /// A type's or attribute's name.
    ///
    /// # Panics
    ///
    /// If the policy has no such number, here and below.
    pub fn type_text(&self, number: Number) -> &str {
        &self.types[number as usize - 1].name
    }

    /// The names of permissions of a class, in the alphabet's order.
    pub fn permission_names(&self, class: Number, mask: u32) -> Vec<&str> {
        let all = self.classes[class as usize - 1].permissions.iter();
        let set = all.enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        let mut names: Vec<_> = set.map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The same in one word, or in braces.
    pub fn permissions_text(&self, class: Number, mask: u32) -> String {
        braced(&self.permission_names(class, mask))
    }

    /// A rule's text: `allow httpd_t etc_t:file { getattr open read };`.
    pub fn rule_text(&self, rule: &Rule) -> String {
        let what = match &rule.says {
            Says::Allow(mask) | Says::AuditAllow(mask) => self.permissions_text(rule.class, *mask),
            Says::AuditDeny(mask) => self.permissions_text(rule.class, !mask),
            Says::Transition(kind) | Says::Member(kind) | Says::Change(kind) => {
                self.type_text(*kind).to_owned()
            }
            Says::Extended(extended) => extended_text(extended),
        };
        format!(
            "{} {} {}:{} {what};",
            keyword(&rule.says),
            self.type_text(rule.source),
            self.type_text(rule.target),
            self.classes[rule.class as usize - 1].name
        )
    }

    /// The text of a conditional's rule: the same, and `[ boolean ]:True`.
    pub fn conditional_rule_text(&self, rule: &Rule, of: &Conditional, when: bool) -> String {
        let when = if when { "True" } else { "False" };
        let condition = self.condition_text(&of.expression);
        format!("{} [ {condition} ]:{when}", self.rule_text(rule))
    }

    /// An expression over booleans.
    pub fn condition_text(&self, expression: &[BooleanTerm]) -> String {
        let mut infix = Infix::new(5);
        for term in expression {
            let (operator, binds) = match term {
                BooleanTerm::Is(number) => {
                    infix.operand(self.booleans[*number as usize - 1].name.clone());
                    continue;
                }
                BooleanTerm::Not => {
                    let text = match infix.pop() {
                        (operand, true) => format!("! ( {operand} )"),
                        (operand, false) => format!("! {operand}"),
                    };
                    infix.stack.push((text, true));
                    infix.before = 5;
                    continue;
                }
                BooleanTerm::Or => ("||", 1),
                BooleanTerm::And => ("&&", 3),
                BooleanTerm::Xor => ("^", 2),
                BooleanTerm::Equal => ("==", 4),
                BooleanTerm::Differs => ("!=", 4),
            };
            // setools put the last operand first, of what is the same either way round
            let [last, first] = [infix.pop().0, infix.pop().0];
            infix.two(operator, binds, [last, first]);
        }
        infix.pop().0
    }

    /// A constraint of a class: `mlsconstrain file { read } (l1 dom l2);`; one without permissions is of a change of
    /// contexts (`validatetrans`).
    pub fn constraint_text(&self, class: Number, constraint: &Constraint) -> String {
        let is_of_levels = |term: &Term| match term {
            Term::Compare(attribute, _) => !matches!(
                attribute,
                Attribute::User | Attribute::Role | Attribute::Type
            ),
            _ => false,
        };
        let mls = match constraint.expression.iter().any(is_of_levels) {
            true => "mls",
            false => "",
        };
        let name = &self.classes[class as usize - 1].name;
        let expression = self.expression_text(&constraint.expression);
        match constraint.permissions {
            0 => format!("{mls}validatetrans {name} ({expression});"),
            mask => {
                let permissions = self.permissions_text(class, mask);
                format!("{mls}constrain {name} {permissions} ({expression});")
            }
        }
    }

    fn expression_text(&self, expression: &[Term]) -> String {
        let mut infix = Infix::new(4);
        for term in expression {
            let (operator, binds, operands) = match term {
                Term::Not => {
                    let text = format!("not ( {} )", infix.pop().0);
                    infix.operand(text);
                    infix.before = 4;
                    continue;
                }
                Term::And => ("and", 2, None),
                Term::Or => ("or", 1, None),
                Term::Compare(attribute, how) => {
                    let operands = compared(*attribute).map(str::to_owned);
                    (compares(*how), 3, Some(operands))
                }
                Term::Among(part, how, names, written) => {
                    let names = match part.what == Symbol::Type && !written.is_clear() {
                        true => written,
                        false => names,
                    };
                    let operands = [self::part(*part), self.names_text(part.what, names)];
                    (compares(*how), 3, Some(operands))
                }
            };
            let operands = operands.unwrap_or_else(|| {
                let [second, first] = [infix.pop().0, infix.pop().0];
                [first, second]
            });
            infix.two(operator, binds, operands);
        }
        infix.pop().0
    }

    fn names_text(&self, what: Symbol, names: &Bitmap) -> String {
        let text: Vec<&str> = match what {
            Symbol::User => names.ones().map(|at| &*self.users[at].name).collect(),
            Symbol::Role => names.ones().map(|at| &*self.roles[at].name).collect(),
            Symbol::Type => match self.attribute_of(names) {
                Some(attribute) => vec![attribute],
                // of those that were written the reader has not checked that they are there
                None => {
                    let known = names.ones().filter_map(|at| self.types.get(at));
                    known.map(|it| &*it.name).collect()
                }
            },
        };
        braced(&text)
    }

    /// An attribute that just these types have.
    fn attribute_of(&self, names: &Bitmap) -> Option<&str> {
        let first = names.ones().next()?;
        if names.count_ones(..) == 1 {
            return None;
        }
        let mut attributes = self.memberships.get(first)?.ones();
        let has_just_these = |&attribute: &usize| {
            let is_attribute = self.types[attribute].attribute;
            is_attribute && self.members(attribute as Number + 1).eq(names.ones())
        };
        attributes
            .find(has_just_these)
            .map(|at| &*self.types[at].name)
    }

    /// The types of an attribute, or a type itself, by their numbers less 1.
    pub fn members(&self, number: Number) -> impl Iterator<Item = usize> {
        let at = number as usize - 1;
        let all = self.memberships.iter().enumerate();
        let is_real = |of: &usize| !self.types[*of].attribute && !self.types[*of].name.is_empty();
        all.filter(move |(_, names)| names.contains(at))
            .map(|(of, _)| of)
            .filter(is_real)
    }
}

/// What a rule begins with.
pub fn keyword(says: &Says) -> &'static str {
    match says {
        Says::Allow(_) => "allow",
        Says::AuditAllow(_) => "auditallow",
        Says::AuditDeny(_) => "dontaudit",
        Says::Transition(_) => "type_transition",
        Says::Member(_) => "type_member",
        Says::Change(_) => "type_change",
        Says::Extended(extended) => match extended.kind {
            ExtendedKind::Allow => "allowxperm",
            ExtendedKind::AuditAllow => "auditallowxperm",
            ExtendedKind::DontAudit => "dontauditxperm",
        },
    }
}

/// A name, or several in braces.
pub fn braced(names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        names => format!("{{ {} }}", names.join(" ")),
    }
}

/// `ioctl { 0x5401 0x5403-0x5405 }`.
fn extended_text(of: &Extended) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for bit in (0..256).filter(|bit| of.permissions[*bit as usize / 32] >> (bit % 32) & 1 == 1) {
        let (first, last) = match of.specified {
            // all of a driver
            2 => (bit << 8, bit << 8 | 0xff),
            _ => (
                u32::from(of.driver) << 8 | bit,
                u32::from(of.driver) << 8 | bit,
            ),
        };
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == first => *end = last,
            _ => ranges.push((first, last)),
        }
    }
    let mut words: Vec<String> = Vec::new();
    for (first, last) in ranges {
        let mut word = format!("{first:#06x}");
        if last > first {
            // writing into a String does not fail
            let _ = write!(word, "-{last:#06x}");
        }
        words.push(word);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let what = if of.specified == 3 { "nlmsg" } else { "ioctl" };
    format!("{what} {}", braced(&words))
}

fn compared(attribute: Attribute) -> [&'static str; 2] {
    match attribute {
        Attribute::User => ["u1", "u2"],
        Attribute::Role => ["r1", "r2"],
        Attribute::Type => ["t1", "t2"],
        Attribute::Low1Low2 => ["l1", "l2"],
        Attribute::Low1High2 => ["l1", "h2"],
        Attribute::High1Low2 => ["h1", "l2"],
        Attribute::High1High2 => ["h1", "h2"],
        Attribute::Low1High1 => ["l1", "h1"],
        Attribute::Low2High2 => ["l2", "h2"],
    }
}

fn compares(how: Operator) -> &'static str {
    match how {
        Operator::Equal => "==",
        Operator::Differs => "!=",
        Operator::Dominates => "dom",
        Operator::DominatedBy => "domby",
        Operator::Incomparable => "incomp",
    }
}

fn part(part: Part) -> String {
    let what = match part.what {
        Symbol::User => 'u',
        Symbol::Role => 'r',
        Symbol::Type => 't',
    };
    let of = match part.of {
        Side::Source => 1,
        Side::Target => 2,
        Side::Third => 3,
    };
    format!("{what}{of}")
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn rules_read_as_setools_print_them() {
        let db = example(34);
        let text: Vec<_> = db.rules.iter().map(|rule| db.rule_text(rule)).collect();
        assert_eq!(text[0], "allow staff file_t:file { open read write };");
        assert_eq!(text[1], "auditallow aide_t file_t:file read;");
        assert_eq!(text[2], "dontaudit staff file_t:file open;");
        assert_eq!(text[4], "type_transition boss_t file_t:process aide_t;");
        assert_eq!(text[7], "allowxperm staff file_t:file ioctl 0x5401;");
        assert_eq!(
            text[8],
            "dontauditxperm staff file_t:file ioctl 0x0100-0x01ff;"
        );
        let conditional = &db.conditionals[0];
        assert_eq!(
            db.conditional_rule_text(&conditional.when_false[0], conditional, false),
            "type_transition aide_t file_t:file file_t; [ ! strict && open ]:False"
        );
    }

    #[test]
    fn brackets_stand_where_setools_set_them() {
        let mut db = example(34);
        let is = |number| BooleanTerm::Is(number);
        let text = |terms: &[BooleanTerm]| db.condition_text(terms);
        use BooleanTerm::{And, Not, Or};
        assert_eq!(text(&[is(1)]), "open");
        assert_eq!(
            text(&[is(1), is(2), And, is(1), And]),
            "( open && strict && open )"
        );
        assert_eq!(text(&[is(1), is(2), Or, Not]), "! ( strict || open )");
        let class = &db.classes[1];
        assert_eq!(
            db.constraint_text(2, &class.constraints[0]),
            "mlsconstrain file write (h1 dom h2 or ( t1 == boss_t ));"
        );
        assert_eq!(
            db.constraint_text(2, &class.validations[0]),
            "validatetrans file (t3 == boss_t and ( u1 == u2 ));"
        );
        let part = Part {
            of: Side::Target,
            what: Symbol::Type,
        };
        let staff = Term::Among(
            part,
            Operator::Differs,
            [0, 1].into_iter().collect(),
            Bitmap::new(),
        );
        db.classes[1].constraints[0].expression = vec![staff, Term::Not];
        assert_eq!(
            db.constraint_text(2, &db.classes[1].constraints[0]),
            "constrain file write (not ( t2 != staff ));"
        );
    }
}
