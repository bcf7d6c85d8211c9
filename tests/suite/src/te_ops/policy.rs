//! The policy: one domain that may do everything, and for each permission that an operation asks for one that
//! lacks it and nothing else; each with a twin, which executions lead to. What is of the machinery that plays
//! (its program, its pipes) everybody may use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;

/// All of the kernel's classes, in its order.
pub fn classes() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut classes = Vec::new();
    for line in include_str!("classes")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let mut words = line.split(' ');
        let name = words.next().expect("a word");
        let mut permissions = Vec::new();
        for word in words {
            match sets.get(word) {
                Some(set) => permissions.extend(set),
                None => permissions.push(word),
            }
        }
        if name.starts_with('+') {
            sets.insert(name, permissions);
        } else {
            classes.push((name, permissions));
        }
    }
    classes
}

/// The kernel's own SIDs, in its order, and the type that each has here.
const SIDS: &[(&str, &str)] = &[
    ("kernel", "kernel_t"),
    ("security", "security_t"),
    ("unlabeled", "unlabeled_t"),
    ("fs", "fs_t"),
    ("file", "machine_t"),
    ("file_labels", "machine_t"),
    ("init", "kernel_t"),
    ("any_socket", "machine_t"),
    ("port", "port_t"),
    ("netif", "netif_t"),
    ("netmsg", "netmsg_t"),
    ("node", "node_t"),
    ("igmp_packet", "machine_t"),
    ("icmp_socket", "machine_t"),
    ("tcp_socket", "machine_t"),
    ("sysctl_modprobe", "machine_t"),
    ("sysctl", "machine_t"),
    ("sysctl_fs", "machine_t"),
    ("sysctl_kernel", "machine_t"),
    ("sysctl_net", "machine_t"),
    ("sysctl_net_unix", "machine_t"),
    ("sysctl_vm", "machine_t"),
    ("sysctl_dev", "machine_t"),
    ("kmod", "machine_t"),
    ("policy", "machine_t"),
    ("scmp_packet", "machine_t"),
    ("devnull", "machine_t"),
];

/// What is of the machinery.
const MACHINE: &[&str] = &["machine_t"];

/// What operations are done to.
const TYPES: &[&str] = &[
    "kernel_t",
    "twin_t",
    "security_t",
    "unlabeled_t",
    "fs_t",
    "port_t",
    "netif_t",
    "netmsg_t",
    "node_t",
    "tmpfs_t",
    "proc_t",
    "sysctl_t",
    "sysfs_t",
    "device_t",
    "devpts_t",
    "mqueue_t",
    "obj_t",
    "other_t",
    "named_t",
    "fifo_t",
    "name_t",
    "shm_t",
    "plain_t",
    "exec_t",
    "range_t",
    "mounted_t",
    "roles_t",
    "owned_t",
    "boolean_t",
    "bound_port_t",
    "served_port_t",
    "noassoc_t",
    "none_file_t",
];

/// A directory of /srv/ops, and the label of what is in it.
pub const PLACES: &[(&str, &str)] = &[
    ("obj", "u:object_r:obj_t:s0"),
    ("plain", "u:object_r:plain_t:s0"),
    ("exec", "u:object_r:exec_t:s0"),
    ("nosuid", "u:object_r:exec_t:s0"),
    ("range", "u:object_r:range_t:s0"),
    ("mounted", "u:object_r:mounted_t:s0"),
    ("category", "u:object_r:obj_t:s0:c1"),
    ("higher", "u:object_r:obj_t:s1"),
    ("roles", "u:object_r:roles_t:s0"),
    ("owned", "u:object_r:owned_t:s0"),
    ("boolean", "u:object_r:boolean_t:s0"),
    ("twin", "u:object_r:twin_t:s0"),
];

/// The range of those that are to be refused nothing for it.
const RANGE: &str = "s0-s1:c0.c3";

/// The domain of the process that makes the objects.
pub const MAKER: &str = "u:r:maker_t:s0-s1:c0.c3";
/// The domain that everything is asked of.
pub const ASKED: &str = "u:r:d_none:s0-s1:c0.c3";

/// What one that is refused nothing else lacks.
#[derive(Debug, Clone, Default)]
struct Lacks {
    classes: BTreeSet<String>,
    permissions: BTreeSet<(String, String)>,
}

/// The pairs of class and permission in lists of what operations ask.
fn asked(lists: &[&str]) -> io::Result<BTreeSet<(String, String)>> {
    let mut asked = BTreeSet::new();
    for list in lists {
        for line in fs::read_to_string(list)?.lines() {
            let Some(what) = line.strip_prefix('\t') else {
                continue;
            };
            let (class, rest) = what.split_once(':').unwrap_or_default();
            let permission = rest.split(' ').next().unwrap_or_default();
            asked.insert((class.to_owned(), permission.to_owned()));
        }
    }
    Ok(asked)
}

/// Writes the policy's source, and beside it `contexts`: each domain that is played in, by a name.
pub fn write(dir: &str, lists: &[&str]) -> io::Result<()> {
    let asked = asked(lists)?;
    let mut domains: BTreeMap<String, Lacks> = BTreeMap::new();
    domains.insert("all".into(), Lacks::default());
    domains.insert("xperm".into(), Lacks::default());
    domains.insert("bool_off".into(), Lacks::default());
    let mut caps = Lacks::default();
    for class in ["capability", "capability2", "cap_userns", "cap2_userns"] {
        caps.classes.insert(class.into());
    }
    domains.insert("no_capabilities".into(), caps);
    for (class, permission) in &asked {
        let lacks = domains.entry(format!("no_{class}")).or_default();
        lacks.classes.insert(class.clone());
        let lacks = domains
            .entry(format!("no_{class}_{permission}"))
            .or_default();
        lacks
            .permissions
            .insert((class.clone(), permission.clone()));
    }
    let text = text(&domains).expect("a string takes everything");
    fs::write(format!("{dir}/ops.cil"), text)?;
    let mut contexts = Vec::new();
    let mut played = |name: &str, context: &str, lacks: &str| {
        let turn = contexts.len();
        contexts.push(format!("{name} {context} {lacks} {turn}\n"));
    };
    for (name, lacks) in &domains {
        let context = format!("u:r:d_{name}:{RANGE}");
        let one = lacks.permissions.iter().next();
        let lacks = match (one, lacks.classes.len()) {
            (Some((class, permission)), _) => format!("{class}:{permission}"),
            (None, 1) => format!("{}:", lacks.classes.iter().next().expect("one")),
            _ => "-".into(),
        };
        played(name, &context, &lacks);
    }
    played("permissive", ASKED, "-");
    for (name, context) in [
        ("low", "u:r:d_all:s0"),
        ("low_categories", "u:r:d_all:s0-s0:c0.c3"),
        ("high", "u:r:d_all:s1:c0.c3"),
        ("guest", "u:guest_r:d_all:s0-s1:c0.c3"),
        ("other_user", "v:r:d_all:s0-s1:c0.c3"),
    ] {
        played(name, context, "-");
    }
    fs::write(format!("{dir}/contexts"), contexts.concat())
}

/// A context as CIL has it.
fn cil(context: &str) -> String {
    let mut parts = context.splitn(4, ':');
    let mut next = || parts.next().unwrap_or_default();
    let (user, role, kind, level) = (next(), next(), next(), next());
    let level = match level.split_once(':') {
        Some((sensitivity, category)) => format!("({sensitivity} ({category}))"),
        None => format!("({level})"),
    };
    format!("({user} {role} {kind} ({level} {level}))")
}

fn text(domains: &BTreeMap<String, Lacks>) -> Result<String, std::fmt::Error> {
    let classes = classes();
    let mut out = String::new();
    let to = &mut out;
    writeln!(to, "(mls true)\n(handleunknown allow)")?;
    for capability in [
        "network_peer_controls",
        "open_perms",
        "extended_socket_class",
        "cgroup_seclabel",
        "nnp_nosuid_transition",
        "genfs_seclabel_symlinks",
        "ioctl_skip_cloexec",
    ] {
        writeln!(to, "(policycap {capability})")?;
    }
    for (class, permissions) in &classes {
        writeln!(to, "(class {class} ({}))", permissions.join(" "))?;
    }
    let names: Vec<&str> = classes.iter().map(|(class, _)| *class).collect();
    writeln!(to, "(classorder ({}))", names.join(" "))?;
    let sids: Vec<&str> = SIDS.iter().map(|(sid, _)| *sid).collect();
    writeln!(to, "(sidorder ({}))", sids.join(" "))?;
    writeln!(
        to,
        "(sensitivity s0)(sensitivity s1)(sensitivityorder (s0 s1))"
    )?;
    writeln!(
        to,
        "(category c0)(category c1)(category c2)(category c3)(categoryorder (c0 c1 c2 c3))"
    )?;
    writeln!(to, "(categoryset every (range c0 c3))")?;
    writeln!(
        to,
        "(sensitivitycategory s0 every)(sensitivitycategory s1 every)"
    )?;
    writeln!(
        to,
        "(role object_r)(role r)(role guest_r)(roleallow r guest_r)(roleallow guest_r r)"
    )?;
    for user in ["u", "v"] {
        writeln!(
            to,
            "(user {user})(userrole {user} object_r)(userrole {user} r)(userrole {user} guest_r)"
        )?;
        writeln!(
            to,
            "(userlevel {user} (s0))(userrange {user} ((s0) (s1 every)))"
        )?;
    }
    for (sid, kind) in SIDS {
        let role = if *kind == "kernel_t" { "r" } else { "object_r" };
        let level = if MACHINE.contains(kind) || *kind == "kernel_t" {
            "((s0) (s1 every))"
        } else {
            "((s0) (s0))"
        };
        writeln!(
            to,
            "(sid {sid})(sidcontext {sid} (u {role} {kind} {level}))"
        )?;
    }

    writeln!(
        to,
        "(typeattribute machine)(typeattribute target)(typeattribute domain)(typeattribute files)"
    )?;
    writeln!(to, "(typeattribute twin)(typeattribute conditional)")?;
    let all: Vec<String> = domains
        .keys()
        .flat_map(|name| [format!("d_{name}"), format!("e_{name}")])
        .collect();
    let mut types: Vec<&str> = MACHINE.iter().chain(TYPES).copied().collect();
    types.extend(["maker_t", "asked_t", "d_none", "e_none"]);
    types.extend(all.iter().map(String::as_str));
    for kind in &types {
        writeln!(to, "(type {kind})(roletype object_r {kind})")?;
    }
    writeln!(to, "(typeattributeset machine ({}))", MACHINE.join(" "))?;
    writeln!(
        to,
        "(typeattributeset target (not (or machine (or boolean_t twin_t))))"
    )?;
    writeln!(
        to,
        "(typeattributeset domain (maker_t asked_t kernel_t d_none e_none {}))",
        all.join(" ")
    )?;
    writeln!(
        to,
        "(typeattributeset files (not (or noassoc_t none_file_t)))"
    )?;
    writeln!(
        to,
        "(typeattributeset conditional (and domain (not (or d_bool_off e_bool_off))))"
    )?;
    writeln!(to, "(roletype r domain)(roletype guest_r domain)")?;
    for kind in ["d_none", "e_none", "none_file_t"] {
        writeln!(to, "(typepermissive {kind})")?;
    }

    // what is allowed
    for (class, permissions) in &classes {
        writeln!(to, "(typeattribute has_{class})")?;
        let lack = |lacks: &Lacks| {
            lacks.classes.contains(*class) || lacks.permissions.iter().any(|(of, _)| of == class)
        };
        let mut has = vec!["maker_t".to_owned(), "asked_t".into(), "kernel_t".into()];
        for (name, lacks) in domains {
            if !lack(lacks) {
                has.extend([format!("d_{name}"), format!("e_{name}")]);
                continue;
            }
            let rest: Vec<&str> = permissions
                .iter()
                .filter(|permission| {
                    !lacks.classes.contains(*class)
                        && !lacks
                            .permissions
                            .contains(&((*class).to_owned(), (**permission).to_owned()))
                })
                .copied()
                .collect();
            if !rest.is_empty() {
                for kind in ["d", "e"] {
                    writeln!(
                        to,
                        "(allow {kind}_{name} target ({class} ({})))",
                        rest.join(" ")
                    )?;
                }
            }
        }
        writeln!(to, "(typeattributeset has_{class} ({}))", has.join(" "))?;
        writeln!(to, "(allow has_{class} target ({class} (all)))")?;
        writeln!(to, "(allow domain machine ({class} (all)))")?;
    }
    writeln!(
        to,
        "(allow domain kernel_t (fd (use)))(allow domain kernel_t (fifo_file (read write getattr)))"
    )?;
    writeln!(to, "(allow domain kernel_t (process (sigchld)))")?;
    writeln!(
        to,
        "(allow files target (filesystem (associate)))(allow files machine (filesystem (associate)))"
    )?;
    writeln!(
        to,
        "(allow domain boolean_t (dir (all)))(allow kernel_t boolean_t (file (all)))"
    )?;
    let twins: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|kind| kind.starts_with("e_"))
        .collect();
    writeln!(
        to,
        "(typeattributeset twin (kernel_t e_none {}))",
        twins.join(" ")
    )?;
    writeln!(
        to,
        "(allow domain twin_t (dir (all)))(allow twin twin_t (file (all)))"
    )?;
    writeln!(to, "(boolean ops_on true)(boolean ops_off false)")?;
    writeln!(
        to,
        "(booleanif ops_on (true (allow conditional boolean_t (file (all)))))"
    )?;
    writeln!(
        to,
        "(booleanif ops_off (true (allow d_bool_off boolean_t (file (all)))) (false (allow d_bool_off boolean_t (file (read open getattr)))))"
    )?;
    // FIONREAD and FS_IOC_GETFLAGS of files
    writeln!(to, "(allowx d_xperm target (ioctl file (0x541b)))")?;
    writeln!(
        to,
        "(allowx d_xperm target (ioctl chr_file ((range 0x5400 0x54ff))))"
    )?;

    // what allow rules do not say
    writeln!(
        to,
        "(mlsconstrain (file (read execute)) (or (dom h1 l2) (eq t1 kernel_t)))"
    )?;
    writeln!(
        to,
        "(mlsconstrain (file (write append)) (or (and (domby l1 l2) (dom h1 l2)) (eq t1 kernel_t)))"
    )?;
    writeln!(
        to,
        "(constrain (file (read)) (or (neq t2 roles_t) (neq r1 guest_r)))"
    )?;
    writeln!(
        to,
        "(constrain (file (write)) (or (neq t2 owned_t) (eq u1 u2)))"
    )?;
    writeln!(
        to,
        "(constrain (process (signal)) (or (eq u1 u2) (eq r1 r2)))"
    )?;

    // what becomes of what is made and executed
    let mut pairs: Vec<String> = domains.keys().cloned().collect();
    pairs.push("none".into());
    for name in &pairs {
        for kind in ["exec_t", "range_t"] {
            writeln!(to, "(typetransition d_{name} {kind} process e_{name})")?;
        }
        writeln!(
            to,
            "(rangetransition d_{name} range_t process ((s0) (s0 (c1))))"
        )?;
        let own = match name.as_str() {
            "none" => Some("none_file_t"),
            "no_filesystem_associate" | "no_filesystem" => Some("noassoc_t"),
            _ => None,
        };
        match own {
            Some(own) => {
                for class in [
                    "file",
                    "dir",
                    "lnk_file",
                    "chr_file",
                    "blk_file",
                    "fifo_file",
                    "sock_file",
                ] {
                    writeln!(to, "(typetransition d_{name} obj_t {class} {own})")?;
                }
            }
            None => {
                writeln!(to, "(typetransition d_{name} obj_t file \"named\" named_t)")?;
                writeln!(to, "(typetransition d_{name} obj_t fifo_file fifo_t)")?;
                writeln!(to, "(typetransition d_{name} obj_t sock_file name_t)")?;
            }
        }
        writeln!(to, "(typetransition d_{name} tmpfs_t file shm_t)")?;
    }

    // what has which label
    writeln!(to, "(fsuse xattr ext4 (u object_r fs_t ((s0) (s0))))")?;
    for (kind, has) in [
        ("tmpfs", "tmpfs_t"),
        ("devtmpfs", "device_t"),
        ("devpts", "devpts_t"),
        ("mqueue", "mqueue_t"),
        ("hugetlbfs", "tmpfs_t"),
    ] {
        writeln!(to, "(fsuse trans {kind} (u object_r {has} ((s0) (s0))))")?;
    }
    for kind in ["pipefs", "sockfs"] {
        writeln!(to, "(fsuse task {kind} (u object_r fs_t ((s0) (s0))))")?;
    }
    for (kind, path, has) in [
        ("proc", "/", "proc_t"),
        ("proc", "/sys", "sysctl_t"),
        ("sysfs", "/", "sysfs_t"),
        ("selinuxfs", "/", "security_t"),
        ("rootfs", "/", "machine_t"),
        ("bpf", "/", "fs_t"),
        ("cgroup2", "/", "fs_t"),
        ("tracefs", "/", "fs_t"),
        ("securityfs", "/", "fs_t"),
    ] {
        writeln!(
            to,
            "(genfscon {kind} \"{path}\" (u object_r {has} ((s0) (s0))))"
        )?;
    }
    for protocol in ["tcp", "udp"] {
        writeln!(
            to,
            "(portcon {protocol} 4001 (u object_r bound_port_t ((s0) (s0))))"
        )?;
        writeln!(
            to,
            "(portcon {protocol} 4002 (u object_r served_port_t ((s0) (s0))))"
        )?;
    }
    writeln!(
        to,
        "(filecon \"/.*\" any (u object_r machine_t ((s0) (s0))))"
    )?;
    writeln!(
        to,
        "(filecon \"/srv/ops\" dir (u object_r tmpfs_t ((s0) (s0))))"
    )?;
    // as the kernel labels them by their filesystems, where SELinux's side has nobody label anything
    for (place, kind) in [
        ("/dev", "device_t"),
        ("/dev/shm", "tmpfs_t"),
        ("/dev/mqueue", "mqueue_t"),
        ("/dev/pts", "devpts_t"),
    ] {
        writeln!(
            to,
            "(filecon \"{place}(/.*)?\" any (u object_r {kind} ((s0) (s0))))"
        )?;
    }
    for (place, context) in PLACES {
        writeln!(
            to,
            "(filecon \"/srv/ops/{place}(/.*)?\" any {})",
            cil(context)
        )?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_permissions_of_its_own_and_no_more_than_a_word_has_bits() {
        let classes = classes();
        assert!(classes.len() > 90);
        for (class, permissions) in classes {
            let unique: BTreeSet<&str> = permissions.iter().copied().collect();
            assert_eq!(unique.len(), permissions.len(), "{class}");
            assert!((1..=32).contains(&permissions.len()), "{class}");
            assert!(
                !permissions
                    .iter()
                    .any(|permission| permission.starts_with('+')),
                "{class}"
            );
        }
    }

    #[test]
    fn contexts_are_written_as_cil_has_them() {
        assert_eq!(
            cil("u:object_r:obj_t:s0:c1"),
            "(u object_r obj_t ((s0 (c1)) (s0 (c1))))"
        );
        assert_eq!(cil("u:object_r:obj_t:s1"), "(u object_r obj_t ((s1) (s1)))");
    }
}
