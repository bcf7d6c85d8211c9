//! What the commands that list a SELinux policy take.

use std::ffi::OsString;

use clap::Args;

use crate::te::Queried;

/// Which rules of a SELinux policy.
#[derive(Debug, Args)]
pub struct Sesearch {
    /// The policy
    #[command(flatten)]
    pub policy: Queried,
    /// allow and allowxperm rules
    #[arg(short = 'A', help_heading = "Rules")]
    pub access: bool,
    /// allow rules
    #[arg(long, help_heading = "Rules")]
    pub allow: bool,
    /// allowxperm rules
    #[arg(long, help_heading = "Rules")]
    pub allowxperm: bool,
    /// auditallow rules
    #[arg(long, help_heading = "Rules")]
    pub auditallow: bool,
    /// auditallowxperm rules
    #[arg(long, help_heading = "Rules")]
    pub auditallowxperm: bool,
    /// dontaudit rules
    #[arg(long, help_heading = "Rules")]
    pub dontaudit: bool,
    /// dontauditxperm rules
    #[arg(long, help_heading = "Rules")]
    pub dontauditxperm: bool,
    /// type_transition rules
    #[arg(
        short = 'T',
        long = "type_transition",
        visible_alias = "type_trans",
        help_heading = "Rules"
    )]
    pub type_transition: bool,
    /// type_change rules
    #[arg(long = "type_change", help_heading = "Rules")]
    pub type_change: bool,
    /// type_member rules
    #[arg(long = "type_member", help_heading = "Rules")]
    pub type_member: bool,
    /// allow rules of roles
    #[arg(long = "role_allow", help_heading = "Rules")]
    pub role_allow: bool,
    /// role_transition rules
    #[arg(
        long = "role_transition",
        visible_alias = "role_trans",
        help_heading = "Rules"
    )]
    pub role_transition: bool,
    /// range_transition rules
    #[arg(
        long = "range_transition",
        visible_alias = "range_trans",
        help_heading = "Rules"
    )]
    pub range_transition: bool,
    /// Of this source: a type, an attribute, which stands for its types, or a role
    #[arg(short, long, value_name = "NAME")]
    pub source: Option<String>,
    /// Of this target
    #[arg(short, long, value_name = "NAME")]
    pub target: Option<String>,
    /// Of one of these classes
    #[arg(short, long, value_name = "CLASS,…")]
    pub class: Option<String>,
    /// With one of these permissions
    #[arg(short, long, value_name = "PERMISSION,…")]
    pub perms: Option<String>,
    /// By which something becomes this: a type, a role or a range
    #[arg(short = 'D', long, value_name = "NAME")]
    pub default: Option<String>,
    /// Under one of these booleans
    #[arg(short, long = "bool", value_name = "BOOLEAN,…")]
    pub boolean: Option<String>,
    /// -ds: with the source itself, and not with an attribute of it
    #[arg(long)]
    pub ds: bool,
    /// -dt: the same of the target
    #[arg(long)]
    pub dt: bool,
    /// -eb: under just these booleans
    #[arg(long)]
    pub eb: bool,
    /// -ep: with just these permissions
    #[arg(long)]
    pub ep: bool,
    /// -Sp: with all of these permissions
    #[arg(long = "Sp")]
    pub sp: bool,
    /// -rs: the source is a regular expression
    #[arg(long)]
    pub rs: bool,
    /// -rt: the target is one
    #[arg(long)]
    pub rt: bool,
    /// -rc: the class is one
    #[arg(long)]
    pub rc: bool,
    /// -rd: the default is one
    #[arg(long)]
    pub rd: bool,
    /// -rb: the boolean is one
    #[arg(long)]
    pub rb: bool,
}

impl Sesearch {
    /// What setools have in one dash and two letters.
    const SHORT: [&str; 10] = [
        "-ds", "-dt", "-eb", "-ep", "-Sp", "-rs", "-rt", "-rc", "-rd", "-rb",
    ];

    /// The command line with these in two dashes, where it is this command's.
    pub fn in_long(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
        let (mut is_it, mut is_first) = (false, true);
        args.enumerate().map(move |(at, arg)| {
            let is_option = arg.as_encoded_bytes().starts_with(b"-");
            if at > 0 && is_first && !is_option {
                is_it = arg == "sesearch";
                is_first = false;
            }
            match is_it && Self::SHORT.iter().any(|short| arg == *short) {
                true => format!("-{}", arg.to_string_lossy()).into(),
                false => arg,
            }
        })
    }

    /// Which rules on types.
    pub fn kinds(&self) -> Vec<&'static str> {
        let all = [
            (self.access || self.allow, "allow"),
            (self.access || self.allowxperm, "allowxperm"),
            (self.auditallow, "auditallow"),
            (self.auditallowxperm, "auditallowxperm"),
            (self.dontaudit, "dontaudit"),
            (self.dontauditxperm, "dontauditxperm"),
            (self.type_transition, "type_transition"),
            (self.type_change, "type_change"),
            (self.type_member, "type_member"),
        ];
        all.into_iter()
            .filter_map(|(wanted, kind)| wanted.then_some(kind))
            .collect()
    }
}

/// What of a SELinux policy.
#[derive(Debug, Args)]
pub struct Seinfo {
    /// The policy
    #[command(flatten)]
    pub policy: Queried,
    /// Whole statements, and what attributes, roles and users stand for
    #[arg(short = 'x', long)]
    pub expand: bool,
    /// Without counts and indentation
    #[arg(long)]
    pub flat: bool,
    /// All of the kinds below
    #[arg(long)]
    pub all: bool,
    /// Types
    #[arg(short = 't', long = "type", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub kind: Option<String>,
    /// Attributes of types
    #[arg(short = 'a', long = "attribute", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub attribute: Option<String>,
    /// Booleans
    #[arg(short = 'b', long = "bool", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub bool: Option<String>,
    /// Classes of objects
    #[arg(short = 'c', long = "class", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub class: Option<String>,
    /// Roles
    #[arg(short = 'r', long = "role", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub role: Option<String>,
    /// Users
    #[arg(short = 'u', long = "user", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub user: Option<String>,
    /// Categories
    #[arg(long = "category", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub category: Option<String>,
    /// Sensitivities
    #[arg(long = "sensitivity", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub sensitivity: Option<String>,
    /// Constraints
    #[arg(long = "constrain", value_name = "CLASS", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub constrain: Option<String>,
    /// Constraints on changes of contexts
    #[arg(long = "validatetrans", value_name = "CLASS", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub validatetrans: Option<String>,
    /// Where parts of new contexts come from
    #[arg(long = "default", value_name = "CLASS", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub default: Option<String>,
    /// Which type bounds which
    #[arg(long = "typebounds", value_name = "TYPE", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub typebounds: Option<String>,
    /// Permissive types
    #[arg(long = "permissive", value_name = "TYPE", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub permissive: Option<String>,
    /// Policy capabilities
    #[arg(long = "polcap", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub polcap: Option<String>,
    /// Initial SIDs
    #[arg(long = "initialsid", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub initialsid: Option<String>,
    /// How filesystems are labelled
    #[arg(long = "fs_use", value_name = "FILESYSTEM", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub fs_use: Option<String>,
    /// Contexts of paths in filesystems without labels
    #[arg(long = "genfscon", value_name = "FILESYSTEM", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub genfscon: Option<String>,
    /// Contexts of ports
    #[arg(long = "portcon", value_name = "PORT[-PORT]", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub portcon: Option<String>,
    /// Contexts of network interfaces
    #[arg(long = "netifcon", value_name = "NAME", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub netifcon: Option<String>,
    /// Contexts of addresses
    #[arg(long = "nodecon", value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "", help_heading = "Kinds")]
    pub nodecon: Option<String>,
}
