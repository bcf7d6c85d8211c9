//! Writes binary policies as SELinux's compilers do: for tests of what reads them.

use super::{
    ALLOW_UNKNOWN, CONTEXTS, CONTEXTS_INFINIBAND, LINUX, MAGIC, MLS, REJECT_UNKNOWN, SYMBOLS,
    version,
};
use crate::te::db::{
    Attribute, Behavior, Bitmap, BooleanTerm, Class, Constraint, Context, DefaultRange,
    ExtendedKind, From, Level, Operator, PolicyDb, Range, Rule, Says, Side, Symbol, Term, Unknown,
};

/// A policy in its own version, which has to have room for what it says. No class inherits: the permissions of each
/// are its own.
pub fn pack(db: &PolicyDb) -> Vec<u8> {
    let mut out = Packer {
        bytes: Vec::new(),
        db,
    };
    out.head();
    out.symbols();
    out.rules();
    out.transitions();
    out.labels();
    out.range_transitions();
    db.memberships.iter().for_each(|names| out.bitmap(names));
    out.bytes
}

struct Packer<'p> {
    bytes: Vec<u8>,
    db: &'p PolicyDb,
}

impl Packer<'_> {
    fn u16(&mut self, number: impl TryInto<u16>) {
        let number = number.try_into().unwrap_or(u16::MAX);
        self.bytes.extend(number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn words<const N: usize>(&mut self, words: [u32; N]) {
        words.into_iter().for_each(|word| self.u32(word));
    }

    fn count(&mut self, count: usize) {
        self.u32(count as u32);
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
    }

    fn counted_text(&mut self, text: &str) {
        self.count(text.len());
        self.text(text);
    }

    fn bitmap(&mut self, bits: &Bitmap) {
        let mut units: Vec<(usize, u64)> = Vec::new();
        for bit in bits.ones() {
            let (start, bit) = (bit / 64 * 64, 1 << (bit % 64));
            match units.last_mut() {
                Some((last, word)) if *last == start => *word |= bit,
                _ => units.push((start, bit)),
            }
        }
        let end = units.last().map_or(0, |(last, _)| last + 64);
        self.words([64, end as u32, units.len() as u32]);
        for (start, word) in units {
            self.count(start);
            self.bytes.extend(word.to_le_bytes());
        }
    }

    fn head(&mut self) {
        let db = self.db;
        self.u32(MAGIC);
        self.count(LINUX.len());
        self.bytes.extend(LINUX);
        let unknown = match db.unknown {
            Unknown::Deny => 0,
            Unknown::Reject => REJECT_UNKNOWN,
            Unknown::Allow => ALLOW_UNKNOWN,
        };
        let contexts = match db.version >= version::INFINIBAND {
            true => CONTEXTS_INFINIBAND,
            false => CONTEXTS,
        };
        let config = unknown | if db.mls { MLS } else { 0 };
        self.words([db.version, config, SYMBOLS, contexts]);
        self.bitmap(&db.capabilities);
        let by_type = |set: &Bitmap| set.ones().map(|bit| bit + 1).collect();
        self.bitmap(&by_type(&db.permissive));
        if db.version >= version::NEVERAUDIT {
            self.bitmap(&by_type(&db.never_audited));
        }
    }

    /// How many numbers a table has, and how many entries, aliases among them.
    fn table(&mut self, numbers: usize, entries: usize) {
        self.words([numbers as u32, entries as u32]);
    }

    fn symbols(&mut self) {
        let db = self.db;
        self.table(0, 0);
        self.table(db.classes.len(), db.classes.len());
        for (at, class) in db.classes.iter().enumerate() {
            self.class(at, class);
        }
        self.table(db.roles.len(), db.roles.len());
        for (at, role) in db.roles.iter().enumerate() {
            let bounds = role.bounds.unwrap_or(0);
            self.words([role.name.len() as u32, at as u32 + 1, bounds]);
            self.text(&role.name);
            self.bitmap(&role.dominates);
            self.bitmap(&role.types);
        }
        let named = || {
            db.types
                .iter()
                .enumerate()
                .filter(|(_, it)| !it.name.is_empty())
        };
        self.table(db.types.len(), named().count() + db.type_aliases.len());
        for (at, it) in named() {
            let properties = 1 | if it.attribute { 2 } else { 0 };
            let bounds = it.bounds.unwrap_or(0);
            self.words([it.name.len() as u32, at as u32 + 1, properties, bounds]);
            self.text(&it.name);
        }
        for (alias, number) in &db.type_aliases {
            self.words([alias.len() as u32, *number, 0, 0]);
            self.text(alias);
        }
        self.table(db.users.len(), db.users.len());
        for (at, user) in db.users.iter().enumerate() {
            let bounds = user.bounds.unwrap_or(0);
            self.words([user.name.len() as u32, at as u32 + 1, bounds]);
            self.text(&user.name);
            self.bitmap(&user.roles);
            self.range(&user.range);
            self.level(&user.level);
        }
        self.table(db.booleans.len(), db.booleans.len());
        for (at, boolean) in db.booleans.iter().enumerate() {
            self.words([at as u32 + 1, boolean.value.into()]);
            self.counted_text(&boolean.name);
        }
        self.levels_and_categories();
    }

    fn levels_and_categories(&mut self) {
        let db = self.db;
        let entries = db.sensitivities.iter().map(|it| 1 + it.aliases.len()).sum();
        self.table(db.sensitivities.len(), entries);
        for (at, level) in db.sensitivities.iter().enumerate() {
            for (is_alias, name) in names(&level.name, &level.aliases) {
                self.words([name.len() as u32, is_alias]);
                self.text(name);
                self.count(at + 1);
                self.bitmap(&level.categories);
            }
        }
        let entries = db.categories.iter().map(|it| 1 + it.aliases.len()).sum();
        self.table(db.categories.len(), entries);
        for (at, category) in db.categories.iter().enumerate() {
            for (is_alias, name) in names(&category.name, &category.aliases) {
                self.words([name.len() as u32, at as u32 + 1, is_alias]);
                self.text(name);
            }
        }
    }

    fn class(&mut self, at: usize, class: &Class) {
        let permissions = class.permissions.len() as u32;
        self.words([class.name.len() as u32, 0, at as u32 + 1]);
        self.words([permissions, permissions, class.constraints.len() as u32]);
        self.text(&class.name);
        for (bit, name) in class.permissions.iter().enumerate() {
            self.words([name.len() as u32, bit as u32 + 1]);
            self.text(name);
        }
        class.constraints.iter().for_each(|it| self.constraint(it));
        self.count(class.validations.len());
        class.validations.iter().for_each(|it| self.constraint(it));
        let from = |from| match from {
            From::Unsaid => 0,
            From::Source => 1,
            From::Target => 2,
        };
        let range = match class.default_range {
            DefaultRange::Unsaid => 0,
            DefaultRange::SourceLow => 1,
            DefaultRange::SourceHigh => 2,
            DefaultRange::SourceLowHigh => 3,
            DefaultRange::TargetLow => 4,
            DefaultRange::TargetHigh => 5,
            DefaultRange::TargetLowHigh => 6,
            DefaultRange::GreatestLowest => 7,
        };
        if self.db.version >= version::NEW_OBJECT_DEFAULTS {
            self.words([from(class.default_user), from(class.default_role), range]);
        }
        if self.db.version >= version::DEFAULT_TYPE {
            self.u32(from(class.default_type));
        }
    }

    fn constraint(&mut self, constraint: &Constraint) {
        self.words([constraint.permissions, constraint.expression.len() as u32]);
        for term in &constraint.expression {
            match term {
                Term::Not => self.words([1, 0, 0]),
                Term::And => self.words([2, 0, 0]),
                Term::Or => self.words([3, 0, 0]),
                Term::Compare(attribute, how) => {
                    let attribute = match attribute {
                        Attribute::User => 0x1,
                        Attribute::Role => 0x2,
                        Attribute::Type => 0x4,
                        Attribute::Low1Low2 => 0x20,
                        Attribute::Low1High2 => 0x40,
                        Attribute::High1Low2 => 0x80,
                        Attribute::High1High2 => 0x100,
                        Attribute::Low1High1 => 0x200,
                        Attribute::Low2High2 => 0x400,
                    };
                    self.words([4, attribute, operator(*how)]);
                }
                Term::Among(part, how, names, written) => {
                    let of = match part.of {
                        Side::Source => 0,
                        Side::Target => 8,
                        Side::Third => 16,
                    };
                    let what = match part.what {
                        Symbol::User => 1,
                        Symbol::Role => 2,
                        Symbol::Type => 4,
                    };
                    self.words([5, of | what, operator(*how)]);
                    self.bitmap(names);
                    if self.db.version >= version::CONSTRAINT_NAMES {
                        self.bitmap(written);
                        self.bitmap(&Bitmap::new());
                        self.u32(0);
                    }
                }
            }
        }
    }

    fn range(&mut self, range: &Range) {
        let (low, high) = (&range.low, &range.high);
        match low == high {
            true => self.words([1, low.sensitivity]),
            false => self.words([2, low.sensitivity, high.sensitivity]),
        }
        self.bitmap(&low.categories);
        if low != high {
            self.bitmap(&high.categories);
        }
    }

    fn level(&mut self, level: &Level) {
        self.u32(level.sensitivity);
        self.bitmap(&level.categories);
    }

    fn rules(&mut self) {
        let db = self.db;
        self.count(db.rules.len());
        db.rules.iter().for_each(|rule| self.rule(rule));
        self.count(db.conditionals.len());
        for conditional in &db.conditionals {
            self.words([0, conditional.expression.len() as u32]);
            for term in &conditional.expression {
                self.words(match term {
                    BooleanTerm::Is(number) => [1, *number],
                    BooleanTerm::Not => [2, 0],
                    BooleanTerm::Or => [3, 0],
                    BooleanTerm::And => [4, 0],
                    BooleanTerm::Xor => [5, 0],
                    BooleanTerm::Equal => [6, 0],
                    BooleanTerm::Differs => [7, 0],
                });
            }
            for rules in [&conditional.when_true, &conditional.when_false] {
                self.count(rules.len());
                rules.iter().for_each(|rule| self.rule(rule));
            }
        }
    }

    fn rule(&mut self, rule: &Rule) {
        let (says, datum) = match &rule.says {
            Says::Allow(permissions) => (0x1, *permissions),
            Says::AuditAllow(permissions) => (0x2, *permissions),
            Says::AuditDeny(permissions) => (0x4, *permissions),
            Says::Transition(kind) => (0x10, *kind),
            Says::Member(kind) => (0x20, *kind),
            Says::Change(kind) => (0x40, *kind),
            Says::Extended(extended) => match extended.kind {
                ExtendedKind::Allow => (0x100, 0),
                ExtendedKind::AuditAllow => (0x200, 0),
                ExtendedKind::DontAudit => (0x400, 0),
            },
        };
        self.u16(rule.source);
        self.u16(rule.target);
        self.u16(rule.class);
        self.u16(says);
        match &rule.says {
            Says::Extended(extended) => {
                self.bytes.extend([extended.specified, extended.driver]);
                self.words(extended.permissions);
            }
            _ => self.u32(datum),
        }
    }

    fn transitions(&mut self) {
        let db = self.db;
        self.count(db.role_transitions.len());
        for it in &db.role_transitions {
            self.words([it.role, it.kind, it.becomes]);
            if db.version >= version::ROLETRANS {
                self.u32(it.class);
            }
        }
        self.count(db.role_allows.len());
        for (from, to) in &db.role_allows {
            self.words([*from, *to]);
        }
        if db.version >= version::COMP_FTRANS {
            self.compressed_name_transitions();
        } else if db.version >= version::FILENAME_TRANS {
            self.count(
                db.name_transitions
                    .iter()
                    .map(|it| it.sources.count_ones(..))
                    .sum(),
            );
            for it in &db.name_transitions {
                for source in it.sources.ones() {
                    self.counted_text(&it.name);
                    self.words([source as u32 + 1, it.target, it.class, it.becomes]);
                }
            }
        }
    }

    /// Those of one target, class and name stand in a row.
    fn compressed_name_transitions(&mut self) {
        let all = &self.db.name_transitions;
        let lists = all.chunk_by(|one, other| {
            (one.target, one.class, &one.name) == (other.target, other.class, &other.name)
        });
        self.count(lists.clone().count());
        for list in lists {
            self.counted_text(&list[0].name);
            self.words([list[0].target, list[0].class, list.len() as u32]);
            for it in list {
                self.bitmap(&it.sources);
                self.u32(it.becomes);
            }
        }
    }

    fn labels(&mut self) {
        let db = self.db;
        self.count(db.initial_sids.len());
        for (sid, context) in &db.initial_sids {
            self.u32(*sid);
            self.context(context);
        }
        self.count(0);
        self.count(db.ports.len());
        for port in &db.ports {
            self.words([port.protocol.into(), port.low.into(), port.high.into()]);
            self.context(&port.context);
        }
        self.count(db.interfaces.len());
        for (name, own, messages) in &db.interfaces {
            self.counted_text(name);
            self.context(own);
            self.context(messages);
        }
        self.count(db.nodes.len());
        for (address, mask, context) in &db.nodes {
            self.bytes.extend(address.iter().chain(mask));
            self.context(context);
        }
        self.count(db.fs_uses.len());
        for it in &db.fs_uses {
            self.u32(match it.behavior {
                Behavior::Xattr => 1,
                Behavior::Transition => 2,
                Behavior::Task => 3,
            });
            self.counted_text(&it.filesystem);
            self.context(&it.context);
        }
        self.count(db.nodes6.len());
        for (address, mask, context) in &db.nodes6 {
            self.bytes.extend(address.iter().chain(mask));
            self.context(context);
        }
        if db.version >= version::INFINIBAND {
            self.words([0, 0]);
        }
        self.count(db.genfs.len());
        for genfs in &db.genfs {
            self.counted_text(&genfs.filesystem);
            self.count(genfs.paths.len());
            for path in &genfs.paths {
                self.counted_text(&path.path);
                self.u32(path.class.unwrap_or(0));
                self.context(&path.context);
            }
        }
    }

    fn context(&mut self, context: &Context) {
        self.words([context.user, context.role, context.kind]);
        self.range(&context.range);
    }

    fn range_transitions(&mut self) {
        self.count(self.db.range_transitions.len());
        for it in &self.db.range_transitions {
            self.words([it.source, it.target, it.class]);
            self.range(&it.range);
        }
    }
}

fn names<'n>(own: &'n str, aliases: &'n [String]) -> impl Iterator<Item = (u32, &'n str)> {
    let aliases = aliases.iter().map(|alias| (1, alias.as_str()));
    std::iter::once((0, own)).chain(aliases)
}

fn operator(how: Operator) -> u32 {
    match how {
        Operator::Equal => 1,
        Operator::Differs => 2,
        Operator::Dominates => 3,
        Operator::DominatedBy => 4,
        Operator::Incomparable => 5,
    }
}
