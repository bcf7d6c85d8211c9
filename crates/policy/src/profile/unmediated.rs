//! What is mediated of what a profile may say.

use std::collections::HashSet;
use std::path::Path;

use tidegate_bundle::profile::Unmediated;

use super::unusable::short;
use super::{Parsed, Statement, loss};

/// What is mediated, for the parser, in the form of the kernel's `apparmor/features` in one file: rules of a
/// class that is not named here (`dbus`, `mqueue`, `io_uring`) are left out of what it writes. Rules of `unix` stand
/// in the class of networks, as Ubuntu's kernels have read them since 2014; Linux reads the same in a class of its own
/// since 6.17 (`network_v9`), which no parser of Debian writes.
pub const FEATURES: &str = "\
capability {0xffffff
}
caps {mask {chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap \
linux_immutable net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module \
sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin sys_boot sys_nice sys_resource sys_time \
sys_tty_config mknod lease audit_write audit_control setfcap mac_override mac_admin syslog \
wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
}
}
domain {attach_conditions {xattr {yes
}
}
change_hat {yes
}
change_hatv {yes
}
change_onexec {yes
}
change_profile {yes
}
computed_longest_left {yes
}
fix_binfmt_elf_mmap {yes
}
post_nnp_subset {yes
}
stack {yes
}
version {1.2
}
}
file {mask {create read write exec append mmap_exec link lock
}
}
mount {mask {mount umount pivot_root
}
move_mount {detached
}
}
namespaces {mask {userns_create
}
}
network {af_mask {unspec unix inet ax25 ipx appletalk netrom bridge atmpvc x25 inet6 rose netbeui \
security key netlink packet ash econet atmsvc rds sna irda pppox wanpipe llc ib mpls can tipc \
bluetooth iucv rxrpc isdn phonet ieee802154 caif alg nfc vsock kcm qipcrtr smc xdp mctp
}
af_unix {yes
}
}
network_v8 {af_mask {unspec unix inet ax25 ipx appletalk netrom bridge atmpvc x25 inet6 rose \
netbeui security key netlink packet ash econet atmsvc rds sna irda pppox wanpipe llc ib mpls can \
tipc bluetooth iucv rxrpc isdn phonet ieee802154 caif alg nfc vsock kcm qipcrtr smc xdp mctp
}
}
policy {outofband {0x000001
}
permstable32 {allow deny subtree cond kill complain prompt audit quiet hide xindex tag label
}
permstable32_version {0x000002
}
set_load {yes
}
versions {v5 {yes
}
v6 {yes
}
v7 {yes
}
v8 {yes
}
v9 {yes
}
}
}
ptrace {mask {read trace
}
}
signal {mask {hup int quit ill trap abrt bus fpe kill usr1 segv usr2 pipe alrm term stkflt chld cont \
stop stp ttin ttou urg xcpu xfsz vtalrm prof winch io pwr sys emt lost
}
}
";

/// The rules that nothing mediates, or not as they are written: by their text, and what the parser says it left out.
pub(super) fn rules(parsed: &[Parsed], statements: &[Statement]) -> Vec<Unmediated> {
    let mut found = Vec::new();
    for statement in statements {
        let losses = loss::of(statement).into_iter();
        found.extend(losses.map(|loss| at(statement, &loss.class)));
    }
    for parsed in parsed {
        // the parser says it once for each rule
        let said: HashSet<_> = parsed.warnings.iter().collect();
        for (profile, what) in said.into_iter().filter_map(|line| warning(line)) {
            found.extend(warned_of(parsed, statements, profile, what));
        }
    }
    found
}

/// What a warning says is not enforced, or not as it is written, and of which profile.
fn warning(line: &str) -> Option<(Option<&str>, &str)> {
    let (place, what) = line.strip_prefix("Warning from ")?.split_once("): ")?;
    let profile = place.strip_prefix("profile ");
    let profile = profile.and_then(|place| Some(place.rsplit_once(" (")?.0));
    // for kernels that know of families and types alone; for others it writes the rule as it is, too
    let is_coarse = what.contains("can't be downgraded to generic network rule");
    let is_lost = what.contains("not enforced") || what.contains("downgrading");
    (is_lost && !is_coarse).then_some((profile, what))
}

/// The rules that a warning is of: it tells their class.
fn warned_of(
    parsed: &Parsed,
    statements: &[Statement],
    profile: Option<&str>,
    what: &str,
) -> Vec<Unmediated> {
    // a child goes by its own name there; where no name is given, it may be any
    let is_meant = |name: &str| {
        profile.is_none_or(|profile| {
            let rest = name.strip_suffix(profile);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("//"))
        })
    };
    let names = parsed.profiles.iter().map(|profile| profile.name.as_str());
    let mut found = Vec::new();
    for name in names.filter(|name| is_meant(name)) {
        let of_class = |class: &str| -> Vec<&Statement> {
            let is_of = |s: &&Statement| s.profile == name && s.class == class;
            statements.iter().filter(is_of).collect()
        };
        let is_class = |word: &&str| !of_class(word).is_empty();
        let class = what.split_whitespace().find(is_class);
        // `all` has rules of every class
        let rules = of_class(class.unwrap_or("all"));
        let class = class.or(what.split_whitespace().next()).unwrap_or_default();
        match rules.is_empty() {
            true => found.push(whole(name, class, &parsed.file)),
            false => found.extend(rules.into_iter().map(|rule| at(rule, class))),
        }
    }
    found
}

/// What a name is that executions lead to, if they cannot lead there: several profiles, or one
/// in a namespace.
pub(super) fn class_of(name: &str) -> Option<&'static str> {
    match name {
        _ if name.starts_with(':') => Some("namespace"),
        _ if name.starts_with('&') || name.contains("//&") => Some("stack"),
        _ => None,
    }
}

/// The rules of a profile that lead to a name of a class.
pub(super) fn leading_to(
    statements: &[Statement],
    profile: &str,
    name: &str,
    class: &str,
) -> Vec<Unmediated> {
    let leads = |text: &str| {
        let to = text.rsplit_once("->").map(|(_, to)| to.trim());
        // the parser puts its parent before a child, and may write a namespace without what is in it
        to.map(|to| to.trim_matches('"'))
            .filter(|to| class_of(to) == Some(class))
            .is_some_and(|to| name.ends_with(to) || to.starts_with(name))
    };
    statements
        .iter()
        .filter(|statement| statement.profile == profile && leads(&statement.text))
        .map(|statement| at(statement, class))
        .collect()
}

/// Something of a profile as a whole.
pub(super) fn whole(profile: &str, class: &str, file: &Path) -> Unmediated {
    Unmediated {
        profile: short(profile),
        class: short(class),
        file: short(&file.to_string_lossy()),
        line: 0,
    }
}

fn at(statement: &Statement, class: &str) -> Unmediated {
    Unmediated {
        line: statement.line,
        ..whole(&statement.profile, class, &statement.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_are_well_formed() {
        let mut depth = 0_i32;
        for line in FEATURES.lines() {
            assert!(!line.starts_with(char::is_whitespace), "{line}");
            depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            assert!(depth >= 0, "{line}");
        }
        assert_eq!(depth, 0);
        for section in [
            "file",
            "caps",
            "mount",
            "namespaces",
            "network_v8",
            "signal",
            "ptrace",
        ] {
            assert!(FEATURES.contains(&format!("\n{section} {{")), "{section}");
        }
        for section in ["dbus", "ipc", "io_uring", "rlimit"] {
            assert!(!FEATURES.contains(&format!("\n{section} {{")), "{section}");
        }
    }

    #[test]
    fn warnings_that_are_of_rules() {
        let of = |what: &str| format!("Warning from profile /usr/bin/a (b) (/etc/x): {what}");
        let line = of("dbus rules not enforced");
        let found = (Some("/usr/bin/a (b)"), "dbus rules not enforced");
        assert_eq!(warning(&line), Some(found));
        let line = "Warning from /etc/x (/etc/x line 7): downgrading something";
        assert_eq!(warning(line), Some((None, "downgrading something")));
        assert_eq!(warning(&of("the cache is read-only")), None);
        let coarse =
            "deny unix socket rule not enforced, can't be downgraded to generic network rule";
        assert_eq!(warning(&of(coarse)), None);
        assert_eq!(warning("Cache read/write disabled"), None);
    }
}
