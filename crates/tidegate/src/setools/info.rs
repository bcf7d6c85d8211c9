//! What a SELinux policy has, by kind: what seinfo(1) of setools lists, in its syntax and order.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use tidegate_bundle::te::INITIAL_SIDS;
use tidegate_bundle::te::db::{
    Behavior, Class, Context, DefaultRange, From, GenfsPath, Number, PolicyDb, Port,
};
use tidegate_bundle::te::text::braced;

use super::args::Seinfo;
use super::{level_text, range_text};
use crate::exit::{Code, Failure, Outcome};

/// Policy capabilities by their bits (`POLICYDB_CAP_*`).
const CAPABILITIES: [&str; 13] = [
    "network_peer_controls",
    "open_perms",
    "extended_socket_class",
    "always_check_network",
    "cgroup_seclabel",
    "nnp_nosuid_transition",
    "genfs_seclabel_symlinks",
    "ioctl_skip_cloexec",
    "userspace_initial_context",
    "netlink_xperm",
    "netif_wildcard",
    "genfs_seclabel_wildcard",
    "functionfs_seclabel",
];

/// All of a kind.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Of which.
    pub kind: &'static str,
    /// Their names or statements.
    pub items: Vec<String>,
}

/// An item's name and its statement.
type Item = (String, String);

/// A kind, what of it is asked for, and all of it.
type List<'a> = (&'static str, &'a Option<String>, fn(&PolicyDb) -> Vec<Item>);

/// Lists what is asked for.
///
/// # Errors
/// If nothing is, or a port is none.
pub fn list(db: &PolicyDb, args: &Seinfo) -> Outcome<Vec<Listed>> {
    let ports = args.portcon.as_deref().map(ports).transpose()?;
    let lists: [List<'_>; 20] = [
        ("Booleans", &args.bool, booleans),
        ("Categories", &args.category, categories),
        ("Classes", &args.class, classes),
        ("Constraints", &args.constrain, |db| constraints(db, false)),
        ("Default rules", &args.default, defaults),
        ("Fs_use", &args.fs_use, fs_uses),
        ("Genfscon", &args.genfscon, genfs),
        ("Initial SIDs", &args.initialsid, initial_sids),
        ("Netifcon", &args.netifcon, interfaces),
        ("Nodecon", &args.nodecon, nodes),
        ("Permissive Types", &args.permissive, permissive),
        ("Polcap", &args.polcap, capabilities),
        ("Portcon", &args.portcon, |db| port_contexts(db, None)),
        ("Roles", &args.role, roles),
        ("Sensitivities", &args.sensitivity, sensitivities),
        ("Typebounds", &args.typebounds, bounds),
        ("Types", &args.kind, types),
        ("Type Attributes", &args.attribute, attributes),
        ("Users", &args.user, users),
        ("Validatetrans", &args.validatetrans, |db| {
            constraints(db, true)
        }),
    ];
    let mut all = Vec::new();
    for (kind, wanted, items) in lists {
        let wanted = match wanted {
            Some(name) => name.as_str(),
            None if args.all => "",
            None => continue,
        };
        let mut items = match (kind, ports) {
            ("Portcon", Some(Some(ports))) => port_contexts(db, Some(ports)),
            _ => items(db),
        };
        if !wanted.is_empty() && kind != "Portcon" {
            let wanted = match kind {
                "Types" => db.type_named(wanted).map_or(wanted, |it| db.type_text(it)),
                _ => wanted,
            };
            items.retain(|(name, _)| name == wanted);
        }
        // of these there is nothing but statements
        let whole = args.expand || is_statement(kind);
        let mut items: Vec<String> = items
            .into_iter()
            .map(|(name, statement)| if whole { statement } else { name })
            .collect();
        items.sort();
        all.push(Listed { kind, items });
    }
    match all.is_empty() {
        true => Err(Failure::new(
            Code::Usage,
            "say what to list: -t, -a, -b, …; `tidegate check --te` tells how many of each there are",
        )),
        false => Ok(all),
    }
}

fn is_statement(kind: &str) -> bool {
    let kinds = [
        "Constraints",
        "Validatetrans",
        "Default rules",
        "Fs_use",
        "Genfscon",
        "Netifcon",
        "Nodecon",
        "Portcon",
        "Typebounds",
    ];
    kinds.contains(&kind)
}

fn booleans(db: &PolicyDb) -> Vec<Item> {
    let all = db.booleans.iter();
    all.map(|it| (it.name.clone(), format!("bool {} {};", it.name, it.value)))
        .collect()
}

fn with_aliases(word: &str, name: &str, aliases: &[String]) -> Item {
    (
        name.to_owned(),
        format!("{word} {name}{};", aliased(aliases)),
    )
}

fn aliased(aliases: &[String]) -> String {
    let names: Vec<&str> = aliases.iter().map(String::as_str).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" alias {}", braced(&names)),
    }
}

fn categories(db: &PolicyDb) -> Vec<Item> {
    let all = db.categories.iter();
    all.map(|it| with_aliases("category", &it.name, &it.aliases))
        .collect()
}

fn sensitivities(db: &PolicyDb) -> Vec<Item> {
    let all = db.sensitivities.iter();
    all.map(|it| with_aliases("sensitivity", &it.name, &it.aliases))
        .collect()
}

/// With the permissions that a class inherits among its own: a policy is read without their common.
fn classes(db: &PolicyDb) -> Vec<Item> {
    let all = db.classes.iter().enumerate();
    all.map(|(at, class)| {
        let names = db.permission_names(at as Number + 1, u32::MAX);
        let lines: String = names.iter().map(|name| format!("\t{name}\n")).collect();
        (
            class.name.clone(),
            format!("class {}\n{{\n{lines}}}", class.name),
        )
    })
    .collect()
}

fn constraints(db: &PolicyDb, validations: bool) -> Vec<Item> {
    let all = db.classes.iter().enumerate().flat_map(|(at, class)| {
        let of = match validations {
            true => &class.validations,
            false => &class.constraints,
        };
        let class_name = class.name.clone();
        of.iter()
            .map(move |it| (class_name.clone(), db.constraint_text(at as Number + 1, it)))
    });
    all.collect()
}

fn defaults(db: &PolicyDb) -> Vec<Item> {
    let mut all = Vec::new();
    for class in &db.classes {
        let parts = [
            ("user", class.default_user),
            ("role", class.default_role),
            ("type", class.default_type),
        ];
        for (part, from) in parts {
            let from = match from {
                From::Unsaid => continue,
                From::Source => "source",
                From::Target => "target",
            };
            all.push(statement(
                class,
                &format!("default_{part} {} {from};", class.name),
            ));
        }
        let range = match class.default_range {
            DefaultRange::Unsaid => continue,
            DefaultRange::SourceLow => "source low",
            DefaultRange::SourceHigh => "source high",
            DefaultRange::SourceLowHigh => "source low_high",
            DefaultRange::TargetLow => "target low",
            DefaultRange::TargetHigh => "target high",
            DefaultRange::TargetLowHigh => "target low_high",
            DefaultRange::GreatestLowest => "glblub",
        };
        all.push(statement(
            class,
            &format!("default_range {} {range};", class.name),
        ));
    }
    all
}

fn statement(class: &Class, text: &str) -> Item {
    (class.name.clone(), text.to_owned())
}

fn fs_uses(db: &PolicyDb) -> Vec<Item> {
    let all = db.fs_uses.iter();
    all.map(|it| {
        let how = match it.behavior {
            Behavior::Xattr => "xattr",
            Behavior::Transition => "trans",
            Behavior::Task => "task",
        };
        let context = context_text(db, &it.context);
        let name = &it.filesystem;
        (name.clone(), format!("fs_use_{how} {name} {context};"))
    })
    .collect()
}

fn genfs(db: &PolicyDb) -> Vec<Item> {
    let all = db.genfs.iter().flat_map(|genfs| {
        let name = &genfs.filesystem;
        genfs.paths.iter().map(move |it| {
            let context = context_text(db, &it.context);
            let kind = file_kind(db, it);
            (
                name.clone(),
                format!("genfscon {name} {} {kind} {context}", it.path),
            )
        })
    });
    all.collect()
}

fn file_kind(db: &PolicyDb, path: &GenfsPath) -> &'static str {
    let Some(class) = path.class else {
        return "";
    };
    match db.classes[class as usize - 1].name.as_str() {
        "blk_file" => "-b",
        "chr_file" => "-c",
        "dir" => "-d",
        "fifo_file" => "-p",
        "lnk_file" => "-l",
        "sock_file" => "-s",
        _ => "--",
    }
}

fn initial_sids(db: &PolicyDb) -> Vec<Item> {
    let all = db.initial_sids.iter();
    all.map(|(sid, context)| {
        let known = INITIAL_SIDS.get(*sid as usize - 1);
        let name = known.map_or_else(|| sid.to_string(), |name| (*name).to_owned());
        let text = format!("sid {name} {}", context_text(db, context));
        (name, text)
    })
    .collect()
}

fn interfaces(db: &PolicyDb) -> Vec<Item> {
    let all = db.interfaces.iter();
    all.map(|(name, own, messages)| {
        let [own, messages] = [own, messages].map(|it| context_text(db, it));
        (name.clone(), format!("netifcon {name} {own} {messages}"))
    })
    .collect()
}

fn nodes(db: &PolicyDb) -> Vec<Item> {
    let old = db.nodes.iter().map(|(address, mask, context)| {
        let [address, mask] = [*address, *mask].map(Ipv4Addr::from);
        (address.to_string(), mask.to_string(), context)
    });
    let new = db.nodes6.iter().map(|(address, mask, context)| {
        let [address, mask] = [*address, *mask].map(Ipv6Addr::from);
        (address.to_string(), mask.to_string(), context)
    });
    old.chain(new)
        .map(|(address, mask, context)| {
            let context = context_text(db, context);
            let text = format!("nodecon {address} {mask} {context}");
            (address, text)
        })
        .collect()
}

fn permissive(db: &PolicyDb) -> Vec<Item> {
    let mut all = types(db);
    let is_permissive = |name: &str| {
        let number = db.type_named(name);
        number.is_some_and(|it| db.permissive.contains(it as usize - 1))
    };
    all.retain(|(name, _)| is_permissive(name));
    all
}

fn capabilities(db: &PolicyDb) -> Vec<Item> {
    let all = db.capabilities.ones().map(|bit| {
        let known = CAPABILITIES.get(bit);
        known.map_or_else(|| bit.to_string(), |name| (*name).to_owned())
    });
    all.map(|name| (name.clone(), format!("policycap {name};")))
        .collect()
}

/// All, or those whose ports these are among.
fn port_contexts(db: &PolicyDb, among: Option<(u16, u16)>) -> Vec<Item> {
    let has = |port: &&Port| among.is_none_or(|(low, high)| port.low <= low && high <= port.high);
    let all = db.ports.iter().filter(has);
    all.map(|port| {
        let protocol = match port.protocol {
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            33 => "dccp".to_owned(),
            132 => "sctp".to_owned(),
            other => other.to_string(),
        };
        let ports = match port.low == port.high {
            true => port.low.to_string(),
            false => format!("{}-{}", port.low, port.high),
        };
        let context = context_text(db, &port.context);
        (
            ports.clone(),
            format!("portcon {protocol} {ports} {context}"),
        )
    })
    .collect()
}

/// `80`, or `6000-6020`; all, where nothing is said.
fn ports(text: &str) -> Outcome<Option<(u16, u16)>> {
    if text.is_empty() {
        return Ok(None);
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok(Some((low, high))),
        _ => Err(Failure::new(
            Code::Usage,
            format!("`{text}` is not a port or a range of ports, for example 6000-6020"),
        )),
    }
}

fn roles(db: &PolicyDb) -> Vec<Item> {
    let all = db.roles.iter();
    all.map(|role| {
        let mut types: Vec<&str> = role.types.ones().map(|at| &*db.types[at].name).collect();
        types.sort_unstable();
        let name = &role.name;
        (
            name.clone(),
            format!("role {name} types {};", braced(&types)),
        )
    })
    .collect()
}

fn bounds(db: &PolicyDb) -> Vec<Item> {
    let all = db.types.iter().filter_map(|it| Some((it, it.bounds?)));
    all.map(|(it, upper)| {
        let text = format!("typebounds {} {};", db.type_text(upper), it.name);
        (it.name.clone(), text)
    })
    .collect()
}

fn types(db: &PolicyDb) -> Vec<Item> {
    let all = db.types.iter().enumerate();
    let all = all.filter(|(_, it)| !it.attribute && !it.name.is_empty());
    all.map(|(at, it)| {
        let aliases = db
            .type_aliases
            .iter()
            .filter(|(_, of)| *of as usize == at + 1);
        let aliases: Vec<String> = aliases.map(|(alias, _)| alias.clone()).collect();
        let attributes = db.memberships[at].ones().filter(|&of| of != at);
        let attributes = attributes.map(|of| format!(", {}", db.types[of].name));
        let attributes: String = attributes.collect();
        let name = &it.name;
        (
            name.clone(),
            format!("type {name}{}{attributes};", aliased(&aliases)),
        )
    })
    .collect()
}

fn attributes(db: &PolicyDb) -> Vec<Item> {
    let all = db.types.iter().enumerate().filter(|(_, it)| it.attribute);
    all.map(|(at, it)| {
        let mut members: Vec<&str> = db
            .members(at as Number + 1)
            .map(|of| &*db.types[of].name)
            .collect();
        members.sort_unstable();
        if members.is_empty() {
            members.push("<empty attribute>");
        }
        let lines: String = members.iter().map(|name| format!("\n\t{name}")).collect();
        (it.name.clone(), format!("attribute {};{lines}", it.name))
    })
    .collect()
}

fn users(db: &PolicyDb) -> Vec<Item> {
    let all = db.users.iter();
    all.map(|user| {
        let mut roles: Vec<&str> = user.roles.ones().map(|at| &*db.roles[at].name).collect();
        roles.sort_unstable();
        let name = &user.name;
        let mut text = format!("user {name} roles {}", braced(&roles));
        if db.mls {
            let level = level_text(db, &user.level);
            text += &format!(" level {level} range {}", range_text(db, &user.range));
        }
        (name.clone(), text + ";")
    })
    .collect()
}

/// A context as setools write it: with their space around a range's dash.
fn context_text(db: &PolicyDb, context: &Context) -> String {
    let text = db.context_text(context);
    match db.mls {
        true => {
            let range = db.range_text(&context.range);
            let before = text.strip_suffix(range.as_str()).unwrap_or(&text);
            format!("{before}{}", range_text(db, &context.range))
        }
        false => text,
    }
}
