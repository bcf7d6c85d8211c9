//! Each form of a rule in apparmor.d(5): it changes a decision, or it is told with its line, and what is told allows
//! nothing.
//!
//! What the parser of this machine does not read is left to `loss.rs`, whose tables have the same forms by their text, and to
//! AppArmor's own cases (docs/dev/testing-apparmor.md), which another parser reads.

use std::process::Command;

use tidegate_bundle::profile::{
    Access, Exec, Execution, Linked, Mode, PathFlags, ProfileSet, RuleClass, UnixAddress, UnixAsked,
};

use super::{FEATURES, Parser, link, source};

/// Something that is asked of the profiles.
type Probe = fn(&ProfileSet) -> bool;

/// A rule, and what is to come of it.
struct Row {
    /// The first version of the parser that reads it.
    since: u32,
    preamble: &'static str,
    /// The rules beside it.
    base: &'static str,
    rule: &'static str,
    /// What is answered otherwise with it than without. Where nothing is, all that is enforced has to be the same.
    probe: Option<Probe>,
    /// What is told of its line.
    told: &'static [&'static str],
}

impl Row {
    fn since(self, since: u32) -> Row {
        Row { since, ..self }
    }

    fn beside(self, base: &'static str) -> Row {
        Row { base, ..self }
    }

    fn after(self, preamble: &'static str) -> Row {
        Row { preamble, ..self }
    }

    fn told(self, told: &'static [&'static str]) -> Row {
        Row { told, ..self }
    }
}

/// A rule that decides something.
fn decides(rule: &'static str, probe: Probe) -> Row {
    Row {
        since: 3,
        preamble: "",
        base: "",
        rule,
        probe: Some(probe),
        told: &[],
    }
}

/// A rule that is told, and decides nothing.
fn tells(rule: &'static str, told: &'static [&'static str]) -> Row {
    Row {
        since: 3,
        preamble: "",
        base: "",
        rule,
        probe: None,
        told,
    }
}

/// The version of this machine's parser.
fn version() -> u32 {
    let said = Command::new("apparmor_parser").arg("--version").output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let (_, rest) = said.split_once("version ").unwrap();
    rest.split('.').next().unwrap().parse().unwrap()
}

/// The profile `a` with this head and these rules, and the profile `b` beside it, compiled; and the line that the last rule
/// stands in.
fn compiled(preamble: &str, head: &str, base: &str, rule: &str) -> (ProfileSet, u32) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles");
    let before = format!("{preamble}profile a /bin/a {head}{{\n{base}\n");
    let text = format!("{before}{rule}\n}}\nprofile b /bin/b {{ }}\n");
    std::fs::write(&file, text).unwrap();
    let parser = Parser {
        program: "apparmor_parser".into(),
        base: dir.path().into(),
        features: FEATURES.into(),
    };
    let parsed = match parser.parse(&file) {
        Ok(parsed) => parsed,
        Err(e) => panic!("{head} {rule}: {e}"),
    };
    let source = source(&file, dir.path()).unwrap();
    let statements = [source.heads, source.statements].concat();
    let set = link(&parsed, &statements).unwrap();
    (set, before.lines().count() as u32 + 1)
}

/// What is told of a line.
fn told(set: &ProfileSet, line: u32) -> Vec<&str> {
    let of_line = set.unmediated.iter().filter(|rule| rule.line == line);
    of_line.map(|rule| rule.class.as_str()).collect()
}

fn check(rows: Vec<Row>) {
    let version = version();
    for row in rows.iter().filter(|row| row.since <= version) {
        let rule = row.rule;
        let (with, line) = compiled(row.preamble, "", row.base, rule);
        let (without, _) = compiled(row.preamble, "", row.base, "");
        assert_eq!(told(&with, line), row.told, "{rule}");
        match row.probe {
            Some(probe) => assert_ne!(probe(&with), probe(&without), "{rule}"),
            None => {
                assert!(!row.told.is_empty(), "{rule}: neither decides nor tells");
                assert_eq!(with.profiles, without.profiles, "{rule}");
                assert_eq!(with.automata, without.automata, "{rule}");
            }
        }
    }
}

fn own(set: &ProfileSet) -> &Linked {
    &set.profiles[set.find("a").unwrap()]
}

/// Whether all of this may be done with a file of its own.
fn file(set: &ProfileSet, path: &str, access: Access) -> bool {
    let perms = set.file(own(set), path.as_bytes(), true);
    (perms.allow - perms.deny).contains(access)
}

fn execution(set: &ProfileSet, path: &str) -> Execution {
    set.execution(set.find("a").unwrap(), path.as_bytes(), true)
}

/// Whether all of this is allowed of another class.
fn rules(set: &ProfileSet, class: RuleClass, asked: &[u8], access: Access) -> bool {
    let said = set.rules(own(set), class, asked);
    said.is_none_or(|perms| (perms.allow - perms.deny).contains(access))
}

/// Whether anything is. Some parsers' states have the permission to lock, whatever they are of.
fn anything(set: &ProfileSet, class: RuleClass, asked: &[u8]) -> bool {
    let said = set.rules(own(set), class, asked);
    said.is_none_or(|perms| !(perms.allow - perms.deny - Access::LOCK).is_empty())
}

fn unix(set: &ProfileSet, kind: u16, asked: UnixAsked<'_>, access: Access) -> bool {
    let said = set.unix(own(set), kind, asked);
    said.is_none_or(|perms| (perms.allow - perms.deny).contains(access))
}

const READ: Access = Access::READ;
const WRITE: Access = Access::WRITE;
const STREAM: u16 = 1;
const DGRAM: u16 = 2;
const INET_STREAM: &[u8] = &[0, 2, 0, 1];
const INET_DGRAM: &[u8] = &[0, 2, 0, 2];

#[test]
fn rules_on_files() {
    check(vec![
        decides("/x r,", |s| file(s, "/x", READ)),
        decides("r /x,", |s| file(s, "/x", READ)),
        decides("file /x r,", |s| file(s, "/x", READ)),
        decides("file r /x,", |s| file(s, "/x", READ)),
        decides("file,", |s| file(s, "/x/y", READ | WRITE)),
        decides("allow /x r,", |s| file(s, "/x", READ)),
        decides("/x w,", |s| file(s, "/x", WRITE)),
        decides("/x a,", |s| file(s, "/x", Access::APPEND)),
        // without any rule on files the older format has this allowed
        decides("/x k,", |s| file(s, "/x", Access::LOCK)).beside("/x r,"),
        decides("/x m,", |s| file(s, "/x", Access::MMAP_EXEC)),
        decides("/x l,", |s| {
            file(s, "/x\0/y", Access::LINK | Access::LINK_SUBSET)
        }),
        decides("l /x -> /y,", |s| file(s, "/x\0/y", Access::LINK)),
        decides("link /x -> /y,", |s| file(s, "/x\0/y", Access::LINK)),
        decides("link subset /x -> /y,", |s| {
            file(s, "/x\0/y", Access::LINK_SUBSET)
        })
        .beside("/x r,"),
        decides("\"/x y\" r,", |s| file(s, "/x y", READ)),
        decides("/x* r,", |s| file(s, "/xy", READ) && !file(s, "/x/y", READ)),
        decides("/x** r,", |s| file(s, "/x/y", READ)),
        decides("/x? r,", |s| file(s, "/xy", READ)),
        decides("/x[a-c] r,", |s| file(s, "/xb", READ)),
        decides("/x[^a-c] r,", |s| {
            file(s, "/xd", READ) && !file(s, "/xa", READ)
        }),
        decides("/x{y,z} r,", |s| file(s, "/xz", READ)),
        decides("owner /x r,", |s| {
            let other = s.file(own(s), b"/x", false);
            file(s, "/x", READ) && !other.allow.contains(READ)
        }),
        decides("deny /x r,", |s| file(s, "/x", READ)).beside("/x r,"),
        decides("audit deny /x r,", |s| file(s, "/x", READ)).beside("/x r,"),
        decides("owner { /x r, }", |s| file(s, "/x", READ)),
        // what is recorded is a decision, too
        decides("audit /x r,", |s| {
            s.file(own(s), b"/x", true).audit.contains(READ)
        }),
        decides("priority=1 /x r,", |s| file(s, "/x", READ))
            .beside("deny /x r,")
            .since(5),
        tells("prompt /x r,", &["prompt: it allows nothing"]).since(4),
    ]);
}

#[test]
fn what_stands_around_rules() {
    check(vec![
        decides("@{X} r,", |s| file(s, "/y", READ)).after("@{X} = /x /y\n"),
        decides("@{X} r,", |s| file(s, "/y", READ)).after("@{X} = /x\n@{X} += /y\n"),
        decides("/z r,", |s| file(s, "/x", READ)).after("alias /z -> /x,\n"),
        decides("if $B { /x r, }", |s| file(s, "/x", READ)).after("$B = true\n"),
        decides("if not $B { /y r, } else { /x r, }", |s| {
            file(s, "/x", READ)
        })
        .after("$B = true\n"),
        decides("^hat { }", |s| s.find("a//hat").is_some()),
        decides("profile child { }", |s| s.find("a//child").is_some()),
    ]);
}

#[test]
fn executions() {
    check(vec![
        decides("/x ix,", |s| execution(s, "/x") == Execution::Same),
        decides("/x ux,", |s| execution(s, "/x") == Execution::Free),
        decides("/x Ux,", |s| execution(s, "/x") == Execution::Free),
        decides("/x ux,", |s| {
            s.file(own(s), b"/x", true).exec.0 & Exec::UNSAFE != 0
        }),
        decides("/bin/b px,", |s| {
            matches!(execution(s, "/bin/b"), Execution::To(_))
        }),
        decides("/x px,", |s| execution(s, "/x") == Execution::Missing),
        decides("/x pix,", |s| execution(s, "/x") == Execution::Same),
        decides("/x pux,", |s| execution(s, "/x") == Execution::Free),
        decides("/x px -> b,", |s| {
            matches!(execution(s, "/x"), Execution::To(_))
        }),
        decides("/x Px -> b,", |s| {
            matches!(execution(s, "/x"), Execution::To(_))
        }),
        decides("/x cx -> c,", |s| {
            matches!(execution(s, "/x"), Execution::To(_))
        })
        .beside("profile c { }"),
        decides("/x cix,", |s| execution(s, "/x") == Execution::Same),
        decides("/x cux,", |s| execution(s, "/x") == Execution::Free),
        decides("deny /x x,", |s| execution(s, "/x") == Execution::Refused).beside("/x ix,"),
        // they are refused
        decides("/x px -> &b,", |s| execution(s, "/x") == Execution::Missing).told(&["stack"]),
        decides("/x pix -> &b,", |s| {
            execution(s, "/x") == Execution::Missing
        })
        .told(&["stack"]),
        decides("/x px -> :ns:b,", |s| {
            execution(s, "/x") == Execution::Missing
        })
        .told(&["namespace"]),
    ]);
}

#[test]
fn changes_of_the_profile() {
    check(vec![
        decides("change_profile -> b,", |s| {
            file(s, "b", Access::CHANGE_PROFILE)
        }),
        decides("change_profile,", |s| file(s, "b", Access::CHANGE_PROFILE)),
        decides("change_profile /x -> b,", |s| {
            file(s, "/x\0b", Access::ONEXEC)
        }),
        decides("change_profile safe /x -> b,", |s| {
            file(s, "/x\0b", Access::ONEXEC)
        }),
        decides("change_profile unsafe /x -> b,", |s| {
            file(s, "/x\0b", Access::ONEXEC)
        }),
        decides("audit change_profile -> b,", |s| {
            file(s, "b", Access::CHANGE_PROFILE)
        })
        .told(&["audit of change_profile"]),
        // no text that a task writes is this name
        decides("change_profile -> &b,", |s| {
            file(s, "&b", Access::CHANGE_PROFILE)
        })
        .told(&["stack"]),
    ]);
}

#[test]
fn capabilities_and_limits() {
    fn chown(set: &ProfileSet) -> bool {
        own(set).capabilities.allow & 1 != 0
    }
    check(vec![
        decides("capability chown,", chown),
        decides("capability chown kill,", chown),
        decides("capability,", chown),
        decides("deny capability chown,", chown).beside("capability,"),
        decides("audit capability chown,", |s| {
            own(s).capabilities.audit & 1 != 0
        }),
        // it is set by `run --profile` alone, and else only not raised
        decides("set rlimit nproc <= 10,", |s| !own(s).rlimits.is_empty()).told(&["set"]),
        decides("userns,", |s| {
            rules(s, RuleClass::Namespace, b"", Access::APPEND)
        })
        .since(4),
        decides("userns create,", |s| {
            rules(s, RuleClass::Namespace, b"", Access::APPEND)
        })
        .since(4),
    ]);
}

#[test]
fn networks() {
    fn stream(set: &ProfileSet) -> bool {
        rules(set, RuleClass::Network, INET_STREAM, Access::CREATE)
    }
    fn dgram(set: &ProfileSet) -> bool {
        rules(set, RuleClass::Network, INET_DGRAM, Access::CREATE)
    }
    const ADDRESS: &[&str] = &["network address: it allows nothing"];
    check(vec![
        decides("network,", stream),
        decides("network inet,", stream),
        decides("network inet stream,", stream),
        decides("network inet stream,", |s| stream(s) && !dgram(s)),
        decides("network stream,", stream),
        decides("network inet tcp,", stream),
        decides("network tcp,", stream),
        decides("network inet udp,", dgram),
        decides("deny network inet dgram,", dgram).beside("network inet,"),
        decides("network (create) inet stream,", |s| {
            stream(s) && !rules(s, RuleClass::Network, INET_STREAM, WRITE)
        })
        .since(4),
        tells(
            "network inet icmp,",
            &["network protocol: it allows nothing"],
        ),
        tells(
            "network inet icmp,",
            &["network protocol: it allows nothing"],
        )
        .beside("network inet stream,"),
        tells("network inet stream port=5432,", ADDRESS).since(4),
        tells("network inet dgram port=1024-2048,", ADDRESS).since(4),
        tells("network inet ip=127.0.0.1 port=80,", ADDRESS).since(4),
        tells("network inet6 ip=::1,", ADDRESS).since(4),
        tells("network inet peer=(ip=127.0.0.1 port=80),", ADDRESS).since(4),
        tells("network port=22,", ADDRESS).since(4),
        tells("audit { network port=22, }", ADDRESS).since(4),
        decides("deny network inet stream port=25,", stream)
            .beside("network inet,")
            .since(4)
            .told(&["network address: it refuses whatever that is"]),
    ]);
}

#[test]
fn unix_sockets() {
    use UnixAddress::{Abstract, Anonymous, Automatic};
    const PEER: UnixAsked<'static> = UnixAsked::Peer(Anonymous, Abstract(b"y"), "b");
    fn made(set: &ProfileSet) -> bool {
        unix(set, STREAM, UnixAsked::Made, Access::CREATE)
    }
    check(vec![
        decides("unix,", made),
        decides("unix (create) type=stream,", made),
        decides("unix (create) type=dgram,", |s| {
            unix(s, DGRAM, UnixAsked::Made, Access::CREATE) && !made(s)
        }),
        decides("deny unix (create),", made).beside("unix,"),
        decides("unix bind addr=@x,", |s| {
            unix(s, STREAM, UnixAsked::Own(Abstract(b"x")), Access::BIND)
        }),
        decides("unix bind addr=auto,", |s| {
            unix(s, STREAM, UnixAsked::Own(Automatic), Access::BIND)
        }),
        decides("unix (getattr) addr=none,", |s| {
            unix(s, STREAM, UnixAsked::Own(Anonymous), Access::GETATTR)
        }),
        decides("unix (listen) addr=@x,", |s| {
            unix(
                s,
                STREAM,
                UnixAsked::Listen(Abstract(b"x"), 5),
                Access::LISTEN,
            )
        }),
        decides("unix (setopt),", |s| {
            unix(s, STREAM, UnixAsked::Option(Anonymous, 1), Access::SETOPT)
        }),
        decides(
            "unix (connect, send, receive) peer=(label=b addr=@y),",
            |s| unix(s, STREAM, PEER, Access::OPEN | WRITE | READ),
        ),
        decides("deny unix (send) peer=(label=b),", |s| {
            unix(s, STREAM, PEER, WRITE)
        })
        .beside("unix,"),
    ]);
}

#[test]
fn signals_and_tracing() {
    use RuleClass::{Ptrace, Signal};
    const TERM: &[u8] = b"\x0fb";
    check(vec![
        decides("signal,", |s| rules(s, Signal, TERM, READ | WRITE)),
        decides("signal (send),", |s| rules(s, Signal, TERM, WRITE)),
        decides("signal (receive) peer=b,", |s| rules(s, Signal, TERM, READ)),
        decides("signal (send) set=(term) peer=b,", |s| {
            rules(s, Signal, TERM, WRITE) && !rules(s, Signal, b"\x09b", WRITE)
        }),
        decides("signal set=(exists),", |s| {
            rules(s, Signal, &[35, b'b'], WRITE)
        }),
        decides("signal set=(rtmin+0),", |s| {
            rules(s, Signal, &[128, b'b'], WRITE)
        }),
        decides("deny signal (send) set=(term),", |s| {
            rules(s, Signal, TERM, WRITE)
        })
        .beside("signal,"),
        decides("ptrace,", |s| rules(s, Ptrace, b"b", READ)),
        decides("ptrace (read) peer=b,", |s| rules(s, Ptrace, b"b", READ)),
        decides("ptrace (trace) peer=b,", |s| anything(s, Ptrace, b"b")),
        decides("ptrace (readby) peer=b,", |s| anything(s, Ptrace, b"b")),
        decides("ptrace (tracedby) peer=b,", |s| anything(s, Ptrace, b"b")),
        decides("deny ptrace (read) peer=b,", |s| {
            rules(s, Ptrace, b"b", READ)
        })
        .beside("ptrace,"),
    ]);
}

#[test]
fn mounts() {
    use RuleClass::Mount;
    fn tmpfs(set: &ProfileSet) -> bool {
        rules(set, Mount, b"/mnt/\0/src\0tmpfs\0\x01", WRITE)
    }
    fn umount(set: &ProfileSet) -> bool {
        rules(set, Mount, b"/mnt/", READ)
    }
    fn pivot(set: &ProfileSet) -> bool {
        rules(set, Mount, b"/mnt/\0/mnt/old/", Access::EXEC)
    }
    const CONDITION: &[&str] = &["umount condition: it allows nothing"];
    const PROFILE: &[&str] = &["pivot_root -> profile: it allows nothing"];
    check(vec![
        decides("mount,", tmpfs),
        decides("mount -> /mnt/,", tmpfs),
        decides("mount /src -> /mnt/,", tmpfs),
        decides("mount fstype=tmpfs -> /mnt/,", tmpfs),
        decides("mount options=ro -> /mnt/,", tmpfs),
        decides("mount options in (ro,noexec) -> /mnt/,", tmpfs),
        decides("deny mount fstype=tmpfs -> /mnt/,", tmpfs).beside("mount,"),
        decides("mount options=(rbind) /src/ -> /mnt/,", |s| {
            rules(s, Mount, b"/mnt/\0/src/\0\0\x0d\x0f", WRITE)
        }),
        decides("mount options=move /src/ -> /mnt/,", |s| {
            rules(s, Mount, b"/mnt/\0/src/\0\0\x0e", WRITE)
        }),
        decides("mount options=make-private -> /mnt/,", |s| {
            rules(s, Mount, b"/mnt/\0\0\0\x13", WRITE)
        }),
        decides("remount /mnt/,", |s| {
            rules(s, Mount, b"/mnt/\0\0\0\x06", WRITE)
        }),
        decides("umount,", umount),
        decides("umount /mnt/,", umount),
        decides("unmount /mnt/,", umount),
        tells("umount fstype=tmpfs /mnt/,", CONDITION),
        tells("umount options=(ro) /mnt/,", CONDITION),
        tells("umount options=(ro) /mnt/,", CONDITION).beside("mount,"),
        decides("deny umount options=(ro) /mnt/,", umount)
            .beside("umount,")
            .told(&["umount condition: it refuses whatever that is"]),
        decides("pivot_root,", pivot),
        decides("pivot_root /mnt/,", pivot),
        decides("pivot_root oldroot=/mnt/old/ /mnt/,", pivot),
        tells("pivot_root /mnt/ -> b,", PROFILE),
        tells("pivot_root oldroot=/mnt/old/ /mnt/ -> b,", PROFILE),
    ]);
}

#[test]
fn classes_that_nothing_mediates() {
    check(vec![
        tells("dbus,", &["dbus"]),
        tells(
            "dbus (send) bus=system path=/x interface=y member=z peer=(name=n),",
            &["dbus"],
        ),
        tells("dbus bind bus=session name=n,", &["dbus"]),
        tells("dbus eavesdrop,", &["dbus"]),
        tells("deny dbus,", &["dbus"]),
        tells("mqueue,", &["mqueue"]).since(4),
        tells("mqueue (create, read) type=posix /x,", &["mqueue"]).since(4),
        tells("io_uring sqpoll,", &["io_uring"]).since(4),
        tells("io_uring override_creds label=b,", &["io_uring"]).since(4),
        decides("all,", |s| file(s, "/x", READ))
            .told(&["dbus", "io_uring", "mqueue"])
            .since(4),
    ]);
}

#[test]
fn heads() {
    let version = version();
    let plain = compiled("", "", "", "").0;
    for (since, head, is_other, expected) in [
        (3, "flags=(complain) ", true, &[][..]),
        (3, "flags=(audit) ", true, &[]),
        (3, "flags=(kill) ", true, &[]),
        (3, "flags=(attach_disconnected) ", true, &[]),
        (3, "flags=(chroot_relative) ", true, &[]),
        (
            3,
            "flags=(delegate_deleted) ",
            true,
            &["flag delegate_deleted"],
        ),
        (3, "flags=(chroot_attach) ", true, &["flag chroot_attach"]),
        (3, "xattrs=(user.x=y) ", true, &["xattrs"]),
        (4, "flags=(unconfined) ", true, &[]),
        (4, "flags=(attach_disconnected.path=/gone) ", true, &[]),
        (4, "flags=(interruptible) ", false, &["flag interruptible"]),
        (4, "flags=(kill.signal=hup) ", false, &["flag kill.signal"]),
        (4, "flags=(error=EACCES) ", false, &["flag error"]),
        (4, "flags=(prompt) ", true, &["flag prompt"]),
    ] {
        if since > version {
            continue;
        }
        let (set, _) = compiled("", head, "", "");
        assert_eq!(told(&set, 1), expected, "{head}");
        let is_same = (&set.profiles, &set.automata) == (&plain.profiles, &plain.automata);
        assert_eq!(is_same, !is_other, "{head}");
    }
    let complain = compiled("", "flags=(complain) ", "", "").0;
    assert_eq!(own(&complain).mode, Mode::Complain);
    let attached = compiled("", "flags=(attach_disconnected) ", "", "").0;
    assert!(own(&attached).path_flags.contains(PathFlags::CONNECT_PATH));
}
