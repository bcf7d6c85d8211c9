//! A SELinux policy in memory: what a binary policy has, with its own numbers.
//!
//! The source of each rule is the kernel's security/selinux/ss (policydb.h, avtab.h, constraint.h, mls_types.h,
//! context.h). A policy numbers its symbols from 1; here each list has the symbol of number N at N-1, and a
//! [`Bitmap`] has the bit N-1 for it. A reader has checked that every number in a `PolicyDb` names something.

use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;

/// A set of symbols or of categories, by their numbers less 1 (an `ebitmap`).
pub type Bitmap = FixedBitSet;

/// A symbol's number, from 1. Which kind of symbol is told by where it stands.
pub type Number = u32;

/// A whole policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyDb {
    /// The version that it was written in (`POLICYDB_VERSION_*`).
    pub version: u32,
    /// Whether contexts have ranges.
    pub mls: bool,
    /// What becomes of classes and permissions that it does not know.
    pub unknown: Unknown,
    /// Policy capabilities that are on, by their bits (`POLICYDB_CAP_*`).
    pub capabilities: Bitmap,
    /// Permissive types.
    pub permissive: Bitmap,
    /// Types of which nothing is recorded (`neveraudit`).
    pub never_audited: Bitmap,
    /// Classes of objects.
    pub classes: Vec<Class>,
    /// Types, and attributes among them. A number that nothing has is a type with an empty name.
    pub types: Vec<Type>,
    /// Other names of types (`typealias`), as contexts may have them.
    pub type_aliases: Vec<(String, Number)>,
    /// For each type, the types and attributes by which rules name it: itself, and its attributes (`type_attr_map`).
    pub memberships: Vec<Bitmap>,
    /// Roles.
    pub roles: Vec<Role>,
    /// Users.
    pub users: Vec<User>,
    /// Booleans.
    pub booleans: Vec<Boolean>,
    /// Sensitivities, by their numbers: by rank.
    pub sensitivities: Vec<Sensitivity>,
    /// Categories.
    pub categories: Vec<Category>,
    /// Rules that always hold (`te_avtab`).
    pub rules: Vec<Rule>,
    /// Rules that booleans decide on.
    pub conditionals: Vec<Conditional>,
    /// Roles' transitions.
    pub role_transitions: Vec<RoleTransition>,
    /// Pairs of a role and the one that it may change to.
    pub role_allows: Vec<(Number, Number)>,
    /// Transitions by the name of what is made.
    pub name_transitions: Vec<NameTransition>,
    /// Ranges' transitions.
    pub range_transitions: Vec<RangeTransition>,
    /// Contexts of initial SIDs, by the kernel's numbers (`SECINITSID_*`).
    pub initial_sids: Vec<(u32, Context)>,
    /// How filesystems' files are labelled.
    pub fs_uses: Vec<FsUse>,
    /// Contexts by path, of filesystems that have no labels of their own.
    pub genfs: Vec<Genfs>,
    /// Contexts of ports.
    pub ports: Vec<Port>,
    /// Contexts of network interfaces: the name, the interface's and its messages'.
    pub interfaces: Vec<(String, Context, Context)>,
    /// Contexts of IPv4 addresses: address and mask.
    pub nodes: Vec<([u8; 4], [u8; 4], Context)>,
    /// Contexts of IPv6 addresses: address and mask.
    pub nodes6: Vec<([u8; 16], [u8; 16], Context)>,
    /// Kinds of statements in it that this version reads past, such as `ibpkeycon`; told at load.
    pub passed_over: Vec<&'static str>,
}

/// What becomes of what a policy does not know (`handle_unknown`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Refused.
    #[default]
    Deny,
    /// A policy that does not know all that the kernel has is not loaded.
    Reject,
    /// Allowed.
    Allow,
}

/// A class of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its permissions, those that it inherits among them, by their bits (bit 0 first); 32 at most.
    pub permissions: Vec<String>,
    /// What else has to hold of its permissions.
    pub constraints: Vec<Constraint>,
    /// What has to hold when an object's context is changed.
    pub validations: Vec<Constraint>,
    /// Where a new object has its user from.
    pub default_user: From,
    /// Its role.
    pub default_role: From,
    /// Its type.
    pub default_type: From,
    /// Its range.
    pub default_range: DefaultRange,
}

/// Where a part of a new context comes from (`default_user` and its like).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum From {
    /// As the class has it by itself.
    #[default]
    Unsaid,
    /// From the subject that makes it.
    Source,
    /// From where it is made.
    Target,
}

/// The same of a range (`default_range`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DefaultRange {
    #[default]
    Unsaid,
    SourceLow,
    SourceHigh,
    SourceLowHigh,
    TargetLow,
    TargetHigh,
    TargetLowHigh,
    GreatestLowest,
}

/// A constraint: an expression that has to be true for these permissions (bits); 0 in a class's `validations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// Permissions, a bit each.
    pub permissions: u32,
    /// The expression, operands first. It leaves one value, and never more than `CEXPR_MAXDEPTH` (5).
    pub expression: Vec<Term>,
}

/// A term of a constraint's expression (`constraint_expr_t`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// Negation of the last value.
    Not,
    /// Both of the last two.
    And,
    /// One of the last two.
    Or,
    /// Compares two attributes of the contexts (`CEXPR_ATTR`).
    Compare(Attribute, Operator),
    /// Is this part of a context among these (`CEXPR_NAMES`)? Only `Equal` and `Differs`.
    /// With the types and attributes as they were written, which only tools show: empty, where the policy does not tell.
    Among(Part, Operator, Bitmap, Bitmap),
}

/// What [`Term::Compare`] compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Attribute {
    User,
    Role,
    Type,
    /// Levels: the source's low one with the target's low one, and so on.
    Low1Low2,
    Low1High2,
    High1Low2,
    High1High2,
    Low1High1,
    Low2High2,
}

/// How ([`CEXPR_EQ`] and its like).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Equal,
    Differs,
    Dominates,
    DominatedBy,
    Incomparable,
}

/// The part of a context that [`Term::Among`] looks at: whose, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which context.
    pub of: Side,
    /// A user's, role's or type's name.
    pub what: Symbol,
}

/// One of the contexts of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first (`u1`, `r1`, `t1`).
    Source,
    /// The second.
    Target,
    /// The third, of the subject that changes a context (`CEXPR_XTARGET`); in `validations` only.
    Third,
}

/// A kind of symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Symbol {
    User,
    Role,
    Type,
}

/// A type or an attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// Whether it is an attribute.
    pub attribute: bool,
    /// The type that bounds it.
    pub bounds: Option<Number>,
}

/// A role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// Roles that it dominates, itself among them.
    pub dominates: Bitmap,
    /// Types that it may have.
    pub types: Bitmap,
    /// The role that bounds it.
    pub bounds: Option<Number>,
}

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Roles that it may have.
    pub roles: Bitmap,
    /// Ranges that it may have lie in this one.
    pub range: Range,
    /// Its default level.
    pub level: Level,
    /// The user that bounds it.
    pub bounds: Option<Number>,
}

/// A boolean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Boolean {
    /// Its name.
    pub name: String,
    /// Its value unless it is set.
    pub value: bool,
}

/// A sensitivity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sensitivity {
    /// Its name.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Categories that a level of it may have.
    pub categories: Bitmap,
}

/// A category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// Other names of it.
    pub aliases: Vec<String>,
}

/// A level: a sensitivity and categories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Level {
    /// The sensitivity's number; 0 where there is no MLS.
    pub sensitivity: Number,
    /// Categories, as long as there are any: no bits behind the last one that is set.
    pub categories: Bitmap,
}

/// A range: the level that it begins at and the one that it ends at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Range {
    pub low: Level,
    pub high: Level,
}

/// A security context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Context {
    pub user: Number,
    pub role: Number,
    pub kind: Number,
    pub range: Range,
}

/// Which rule it is, and what it says (`AVTAB_*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// Permissions that are allowed.
    Allow(u32),
    /// Permissions whose use is recorded.
    AuditAllow(u32),
    /// Permissions whose refusal is recorded: all but those of `dontaudit` (`AVTAB_AUDITDENY`).
    AuditDeny(u32),
    /// The type of what is made (`type_transition`).
    Transition(Number),
    /// The type of a member of a polyinstantiated object (`type_member`).
    Member(Number),
    /// The type that something is relabelled to (`type_change`).
    Change(Number),
    /// Extended permissions.
    Extended(Extended),
}

/// A rule of `allowxperm`, `auditallowxperm` or `dontauditxperm`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extended {
    /// Which of the three.
    pub kind: ExtendedKind,
    /// Of what: `AVTAB_XPERMS_IOCTLFUNCTION` (1), `AVTAB_XPERMS_IOCTLDRIVER` (2), `AVTAB_XPERMS_NLMSG` (3).
    pub specified: u8,
    /// The driver, of functions: the upper byte of an ioctl's number.
    pub driver: u8,
    /// 256 bits.
    pub permissions: [u32; 8],
}

/// Which of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExtendedKind {
    Allow,
    AuditAllow,
    DontAudit,
}

/// A rule of the policy's table. Source and target are types or attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rule {
    pub source: Number,
    pub target: Number,
    pub class: Number,
    pub says: Says,
}

/// Rules that hold while an expression over booleans is true, and others while it is false.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Conditional {
    pub expression: Vec<BooleanTerm>,
    pub when_true: Vec<Rule>,
    pub when_false: Vec<Rule>,
}

impl Conditional {
    /// The booleans that its expression names, each once, in the order of their numbers.
    pub fn booleans(&self) -> Vec<Number> {
        let named = self.expression.iter().filter_map(|term| match term {
            BooleanTerm::Is(number) => Some(*number),
            _ => None,
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A term of such an expression, operands first (`COND_*`); never deeper than `COND_EXPR_MAXDEPTH` (10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BooleanTerm {
    Is(Number),
    Not,
    Or,
    And,
    Xor,
    Equal,
    Differs,
}

/// `role_transition`: a subject that has this role and makes something of that class by a target of
/// this type comes to another role.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RoleTransition {
    pub role: Number,
    pub kind: Number,
    pub class: Number,
    pub becomes: Number,
}

/// `type_transition` with a name: for a subject that is of one of these types and makes something
/// of this class and name in a directory of that type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NameTransition {
    pub sources: Bitmap,
    pub target: Number,
    pub class: Number,
    pub name: String,
    pub becomes: Number,
}

/// `range_transition`. Source and target are types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RangeTransition {
    pub source: Number,
    pub target: Number,
    pub class: Number,
    pub range: Range,
}

/// `fs_use_*`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FsUse {
    pub filesystem: String,
    pub behavior: Behavior,
    pub context: Context,
}

/// How a filesystem's files are labelled (`SECURITY_FS_USE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// By their attributes (1).
    Xattr,
    /// By the subject that makes them and the filesystem's context (2).
    Transition,
    /// By the subject that makes them (3).
    Task,
}

/// `genfscon`s of a filesystem, in the policy's order, which is that in which the kernel looks for one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Genfs {
    pub filesystem: String,
    pub paths: Vec<GenfsPath>,
}

/// The context of what begins with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct GenfsPath {
    pub path: String,
    /// Of objects of this class only.
    pub class: Option<Number>,
    pub context: Context,
}

/// `portcon`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Port {
    /// `IPPROTO_*`.
    pub protocol: u8,
    pub low: u16,
    pub high: u16,
    pub context: Context,
}
