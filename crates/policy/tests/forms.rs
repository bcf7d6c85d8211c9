//! Each form of a statement in maps and in capability files: it changes what is answered, or it is told with its line.

use std::net::IpAddr;

use miette::Diagnostic;
use tidegate_bundle::caps::{Capabilities, Class, Object, SocketType, permission};
use tidegate_bundle::{Attrs, Mode, Policy};
use tidegate_policy::{caps, map};

/// What is told of a text: the line and the code of each finding.
type Told = Vec<(usize, String)>;

/// Something that is asked of a map.
type OfMap = fn(&Policy) -> bool;

fn map(base: &str, line: &str) -> (Policy, Told) {
    let text = format!("levels top > mid > low\ntop /\n{base}\n{line}\n");
    let compiled = map::compile_str("test", &text);
    let compiled = compiled.unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
    let told = compiled.warnings.iter().map(|finding| {
        let line = finding.position().map_or(0, |(line, _)| line);
        (
            line,
            finding
                .code()
                .map_or_else(String::new, |code| code.to_string()),
        )
    });
    (compiled.policy, told.collect())
}

fn level(policy: &Policy, path: &str) -> u8 {
    policy.lookup(path.as_bytes()).level
}

fn has(policy: &Policy, path: &str, attrs: Attrs) -> bool {
    policy.lookup(path.as_bytes()).attrs.contains(attrs)
}

fn network(policy: &Policy, addr: &str) -> Option<u8> {
    let addr: IpAddr = addr.parse().unwrap();
    policy.network(addr).map(|network| network.level)
}

#[test]
fn a_statement_of_a_map_changes_what_is_answered() {
    let forms: &[(&str, &str, OfMap)] = &[
        ("", "mode permissive", |p| p.mode == Mode::Permissive),
        ("", "mid /x", |p| {
            level(p, "/x") == 1 && level(p, "/x/y") == 1
        }),
        ("", "mid /x child-of", |p| {
            level(p, "/x/y") == 1 && level(p, "/x") == 2
        }),
        ("", "low /x/*/y", |p| level(p, "/x/a/y") == 0),
        ("", "low ~/x", |p| {
            level(p, "/root/x") == 0 && level(p, "/home/ann/x") == 0
        }),
        ("", "low @{HOME}/x", |p| level(p, "/home/ann/x") == 0),
        ("", "low \"/x y\"", |p| level(p, "/x y") == 0),
        ("", "low \"/x\\x2a\"", |p| {
            level(p, "/x*") == 0 && level(p, "/xy") == 2
        }),
        ("", "neutral /x", |p| has(p, "/x", Attrs::NEUTRAL)),
        ("", "mid /x creator", |p| has(p, "/x/y", Attrs::CREATOR)),
        ("", "mid /x lowwrite", |p| has(p, "/x", Attrs::LOWWRITE)),
        ("", "mid /x lownoopen", |p| has(p, "/x/y", Attrs::LOWNOOPEN)),
        ("", "top /x nodemote", |p| has(p, "/x", Attrs::NODEMOTE)),
        ("", "top /x nonetdemote", |p| {
            has(p, "/x", Attrs::NONETDEMOTE)
        }),
        ("", "top /x permissive", |p| has(p, "/x", Attrs::PERMISSIVE)),
        ("", "mid network 192.0.2.0/24", |p| {
            network(p, "192.0.2.9") == Some(1)
        }),
        ("", "mid network 192.0.2.1", |p| {
            network(p, "192.0.2.1") == Some(1)
        }),
        ("", "mid network loopback", |p| {
            network(p, "127.0.0.1") == Some(1)
        }),
        ("", "mid network 2001:db8::/32", |p| {
            network(p, "2001:db8::1") == Some(1)
        }),
        // a rule that is narrower than another, and one that covers it already
        ("low /x", "mid /x/y", |p| level(p, "/x/y") == 1),
        ("low /x/*", "mid /x/y", |p| level(p, "/x/y") == 1),
        ("low ~/x", "mid /root/x", |p| level(p, "/root/x") == 1),
        ("low network 10.0.0.0/8", "mid network 10.1.0.0/16", |p| {
            network(p, "10.1.0.1") == Some(1)
        }),
        ("low /x", "mid /x child-of", |p| level(p, "/x/y") == 1),
    ];
    for &(base, line, probe) in forms {
        let (with, told) = map(base, line);
        assert!(probe(&with) && !probe(&map(base, "").0), "{line}");
        assert_eq!(told, [], "{line}");
    }
}

#[test]
fn a_statement_of_a_map_that_changes_nothing_is_told() {
    for (base, line, code) in [
        ("", "mid /x nodemote", "plm::ineffective"),
        ("", "mid /x nonetdemote", "plm::ineffective"),
        ("", "mid /x permissive", "plm::ineffective"),
        ("", "top /x nodemote nonetdemote", "plm::ineffective"),
        ("", "low /x creator", "plm::ineffective"),
        ("", "low /x lowwrite", "plm::ineffective"),
        ("", "low /x lownoopen", "plm::ineffective"),
        ("mid /root/x\nmid /home/*/x", "low ~/x", "plm::shadowed"),
        ("", "low /bin/sh", "plm::alias"),
    ] {
        let lines = base.split('\n').count();
        let told = map(base, line).1;
        assert_eq!(told, [(3 + lines, code.to_owned())], "{line}");
    }
}

/// Something that is asked of a capability file.
type OfCaps = fn(&Capabilities) -> bool;

/// A capability file with these lines in its first subject, beside another subject and a service.
fn caps(lines: &str, service: &str) -> (Capabilities, Told) {
    let text = format!(
        "subject a {{\n{lines}\n}}\nsubject b {{\nfile /b read\n}}\n\
         service s on /run/s{service} {{\npermission read write\noperation 1 ping free\n}}\n"
    );
    let compiled = caps::compile_str("test.caps", &text);
    let compiled = compiled.unwrap_or_else(|errors| panic!("{lines}: {errors:?}"));
    let told = compiled.warnings.iter().map(|finding| {
        let line = finding.position().map_or(0, |(line, _)| line);
        (
            line,
            finding
                .code()
                .map_or_else(String::new, |code| code.to_string()),
        )
    });
    (compiled.capabilities, told.collect())
}

/// Whether the first subject has all these rights.
fn may(caps: &Capabilities, object: &Object, rights: u32) -> bool {
    caps.lookup(0, object).rights & rights == rights
}

fn path(class: Class, path: &str) -> Object {
    Object::Path(class, path.into())
}

fn inet(class: Class, addr: &str, port: u16) -> Object {
    Object::Inet(class, addr.parse().unwrap(), port)
}

#[test]
fn a_line_of_a_capability_file_changes_what_is_answered() {
    use Class::{Dir, File, Library, Program, Tcp, Udp};
    use permission::*;
    let forms: &[(&str, OfCaps)] = &[
        ("program /x execute", |c| {
            may(c, &path(Program, "/x"), EXECUTE)
        }),
        ("program /x execute as b", |c| {
            c.capabilities.iter().any(|line| line.becomes == Some(1))
        }),
        ("library /x load", |c| may(c, &path(Library, "/x"), LOAD)),
        ("library /x load as b", |c| {
            c.capabilities.iter().any(|line| line.becomes == Some(1))
        }),
        ("connect tcp any", |c| {
            may(c, &inet(Tcp, "192.0.2.1", 9), CONNECT | READ | WRITE)
        }),
        ("connect tcp loopback", |c| {
            may(c, &inet(Tcp, "::1", 9), CONNECT)
        }),
        ("connect tcp 192.0.2.0/24 port 443", |c| {
            let at = |port| may(c, &inet(Tcp, "192.0.2.1", port), CONNECT);
            at(443) && !at(444)
        }),
        ("connect udp any port 53", |c| {
            may(c, &inet(Udp, "192.0.2.1", 53), CONNECT)
        }),
        ("bind tcp any port 80-90", |c| {
            let at = |port| may(c, &inet(Tcp, "0.0.0.0", port), BIND);
            at(80) && at(90) && !at(91)
        }),
        ("bind udp 2001:db8::/32", |c| {
            may(c, &inet(Udp, "2001:db8::1", 9), BIND)
        }),
        ("connect unix /run/x", |c| {
            may(c, &Object::Unix(b"/run/x".into()), CONNECT)
        }),
        ("connect unix \"@x*\"", |c| {
            may(c, &Object::Unix(b"@xy".into()), CONNECT)
        }),
        ("bind unix /run/x", |c| {
            may(c, &Object::Unix(b"/run/x".into()), BIND)
        }),
        ("connect unix /run/s\nservice s x* read", |c| {
            may(c, &Object::Of(0, b"xy".into()), 1) && !may(c, &Object::Of(0, b"xy".into()), 2)
        }),
        ("control file read", |c| {
            c.subjects[0].controlled(File) & READ != 0
        }),
        ("control tcp write", |c| {
            c.subjects[0].controlled(Tcp) & WRITE != 0
        }),
        ("file /x read expires 10m", |c| {
            c.capabilities.iter().any(|line| line.expires == Some(600))
        }),
        ("file /x read\nexpires 10m", |c| {
            c.capabilities.iter().any(|line| line.expires == Some(600))
        }),
        ("file /x read uses 3\ncontrol file read", |c| {
            c.capabilities.iter().any(|line| line.uses == Some(3))
        }),
        ("file /x* read", |c| may(c, &path(File, "/xy"), READ)),
        ("file /x/** read", |c| may(c, &path(File, "/x/y/z"), READ)),
        ("file /x? read", |c| may(c, &path(File, "/xy"), READ)),
        ("file /x[a-c] read", |c| may(c, &path(File, "/xb"), READ)),
        ("file /x[^a-c] read", |c| may(c, &path(File, "/xd"), READ)),
        ("file /x{y,z} read", |c| may(c, &path(File, "/xz"), READ)),
        ("file \"/x y\" read", |c| may(c, &path(File, "/x y"), READ)),
        ("dir /x read", |c| may(c, &path(Dir, "/x"), READ)),
    ];
    for &(lines, probe) in forms {
        let (with, told) = caps(lines, "");
        assert!(probe(&with) && !probe(&caps("", "").0), "{lines}");
        assert_eq!(told, [], "{lines}");
    }
    // each permission by its word
    for (word, class) in [("file", File), ("dir", Dir)] {
        for &(permission, right) in class.permissions() {
            let (with, told) = caps(&format!("{word} /x {permission}"), "");
            assert_eq!(
                with.lookup(0, &path(class, "/x")).rights,
                right,
                "{permission}"
            );
            assert_eq!(told, [], "{word} {permission}");
        }
    }
}

#[test]
fn a_services_block_changes_what_is_answered() {
    let of = |service: &str| caps("", service).0;
    assert_eq!(of("").services[0].socket_type, None);
    let stream = of(" type stream");
    assert_eq!(stream.services[0].socket_type, Some(SocketType::Stream));
    assert_eq!(stream.services[0].permissions, ["read", "write"]);
    assert!(stream.services[0].operation(1).is_some());
    assert!(stream.services[0].operation(2).is_none());
    assert_eq!(stream.service_at(b"/run/s"), Some(0));
}

#[test]
fn a_line_of_a_capability_file_that_gives_nothing_is_told() {
    for (lines, code) in [
        ("service s x read", "caps::unconnected"),
        ("file /lib/x read", "caps::alias"),
        ("program /bin/sh execute", "caps::alias"),
    ] {
        assert_eq!(caps(lines, "").1, [(2, code.to_owned())], "{lines}");
    }
}
