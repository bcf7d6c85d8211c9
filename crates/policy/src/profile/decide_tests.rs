//! What profiles that `apparmor_parser` has compiled say.

use tidegate_bundle::profile::{Access, Execution, ProfileSet, RuleClass, UnixAddress, UnixAsked};

use super::{FEATURES, Parser, link};

const PROFILES: &str = "
profile tool /usr/bin/tool {
  /etc/tool/** r,
  owner /home/*/tool.log rw,
  /usr/bin/cat ix,
  /usr/bin/other Px,
  /usr/bin/lost Px,
  /usr/bin/maybe Pix,
  /usr/bin/free Ux,
  /usr/bin/part Cx -> part,
  network inet stream,
  signal (send) set=(term) peer=other,
  mount -> /mnt/,
  unix (create, getattr) type=stream,
  unix bind type=stream addr=@tool,
  unix (connect, send, receive) type=stream peer=(label=other addr=@other),
  unix bind type=dgram addr=auto,
  profile part { /etc/part r, }
}
profile other /usr/bin/{other,another} { }
profile any /usr/** { }
profile wide /srv/{a,b}* { }
profile same /srv/{b,c}* { }
/opt/x { }
";

fn set() -> ProfileSet {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profiles");
    std::fs::write(&file, PROFILES).unwrap();
    let parser = Parser {
        program: "apparmor_parser".into(),
        base: dir.path().into(),
        features: FEATURES.into(),
    };
    link(&parser.parse(&file).unwrap(), &[]).unwrap()
}

#[test]
fn a_program_has_the_profile_that_is_most_its_own() {
    let set = set();
    let attached = |path: &str| {
        let found = set.attached(path.as_bytes(), None)?;
        Some(set.profiles[found].name.as_str())
    };
    assert_eq!(attached("/usr/bin/tool"), Some("tool"));
    assert_eq!(attached("/usr/bin/another"), Some("other"));
    assert_eq!(attached("/usr/bin/nobodys"), Some("any"));
    assert_eq!(attached("/opt/x"), Some("/opt/x"));
    assert_eq!(attached("/srv/a1"), Some("wide"));
    assert_eq!(attached("/srv/b1"), None);
    assert_eq!(attached("/bin/sh"), None);
}

#[test]
fn files_are_asked_by_their_path_and_owner() {
    let set = set();
    let tool = &set.profiles[set.find("tool").unwrap()];
    let allow = |path: &str, owner| set.file(tool, path.as_bytes(), owner).allow;
    assert!(allow("/etc/tool/a", false).contains(Access::READ));
    assert!(!allow("/etc/tool/a", false).contains(Access::WRITE));
    assert!(!allow("/etc/other", false).contains(Access::READ));
    let log = "/home/ann/tool.log";
    assert!(allow(log, true).contains(Access::WRITE | Access::CREATE));
    assert!(!allow(log, false).contains(Access::READ));
}

#[test]
fn other_classes_are_asked_by_what_they_read() {
    let set = set();
    let tool = &set.profiles[set.find("tool").unwrap()];
    let lets = |class, asked: &[u8], access| {
        let found = set.rules(tool, class, asked).unwrap();
        found.allow.contains(access)
    };
    assert!(lets(RuleClass::Network, &[0, 2, 0, 1], Access::CREATE));
    assert!(!lets(RuleClass::Network, &[0, 2, 0, 2], Access::CREATE));
    assert!(lets(RuleClass::Signal, b"\x0fother", Access::WRITE));
    assert!(!lets(RuleClass::Signal, b"\x0fany", Access::WRITE));
    assert!(!lets(RuleClass::Ptrace, b"any", Access::READ));
    let mount = |place: &str| format!("{place}\0/src\0tmpfs\0\x01");
    assert!(lets(
        RuleClass::Mount,
        mount("/mnt/").as_bytes(),
        Access::WRITE
    ));
    assert!(!lets(
        RuleClass::Mount,
        mount("/srv/").as_bytes(),
        Access::WRITE
    ));
}

#[test]
fn an_execution_leads_where_its_rule_says() {
    let set = set();
    let tool = set.find("tool").unwrap();
    let leads = |path: &str| set.execution(tool, path.as_bytes(), true);
    let to = |name| Execution::To(set.find(name).unwrap());
    assert_eq!(leads("/usr/bin/cat"), Execution::Same);
    assert_eq!(leads("/usr/bin/other"), to("other"));
    assert_eq!(leads("/usr/bin/part"), to("tool//part"));
    assert_eq!(leads("/usr/bin/free"), Execution::Free);
    assert_eq!(leads("/usr/bin/sh"), Execution::Refused);
    // the profile `any` is for every program of /usr
    assert_eq!(leads("/usr/bin/lost"), to("any"));
    assert_eq!(leads("/usr/bin/maybe"), to("any"));
}

#[test]
fn unix_sockets_are_asked_by_their_addresses_and_ends() {
    use UnixAddress::{Abstract, Anonymous, Automatic};
    const STREAM: u16 = 1;
    const DGRAM: u16 = 2;
    let set = set();
    let tool = &set.profiles[set.find("tool").unwrap()];
    let allow = |kind, asked| set.unix(tool, kind, asked).unwrap().allow;
    let bind = |kind, address| allow(kind, UnixAsked::Own(address)).contains(Access::BIND);
    assert!(allow(STREAM, UnixAsked::Made).contains(Access::CREATE));
    assert!(!allow(DGRAM, UnixAsked::Made).contains(Access::CREATE));
    assert!(bind(STREAM, Abstract(b"tool")));
    assert!(!bind(STREAM, Abstract(b"tool2")));
    assert!(!bind(STREAM, Abstract(b"tool\0")));
    assert!(!bind(STREAM, Automatic));
    assert!(bind(DGRAM, Automatic));
    let getattr = allow(STREAM, UnixAsked::Own(Anonymous));
    assert!(getattr.contains(Access::GETATTR) && !getattr.contains(Access::DELETE));
    assert!(!allow(STREAM, UnixAsked::Listen(Abstract(b"tool"), 5)).contains(Access::LISTEN));
    assert!(!allow(STREAM, UnixAsked::Option(Anonymous, 1)).contains(Access::GETOPT));
    let connect = |own, peer, label| {
        let all = Access::OPEN | Access::WRITE | Access::READ;
        allow(STREAM, UnixAsked::Peer(own, peer, label)).contains(all)
    };
    assert!(connect(Anonymous, Abstract(b"other"), "other"));
    assert!(connect(Abstract(b"tool"), Abstract(b"other"), "other"));
    assert!(!connect(Anonymous, Abstract(b"other"), "any"));
    assert!(!connect(Anonymous, Abstract(b"another"), "other"));
    assert!(!connect(Anonymous, Anonymous, "other"));
    // what is decided about networks at large is not told by it
    assert!(!set.tells_messages());
}
