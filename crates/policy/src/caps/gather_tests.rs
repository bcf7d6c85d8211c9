//! What files say, by the automata and by the slow matcher, and what is wrong with those that say nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use miette::Diagnostic;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_bundle::caps::permission::*;
use tidegate_bundle::caps::{Class, Names, Needs, Object, Pattern, SocketType};
use tidegate_bundle::network::masked;

use super::*;

fn compiled(text: &str) -> Capabilities {
    match compile_str("test.caps", text) {
        Ok(compiled) => compiled.capabilities,
        Err(errors) => panic!("{:?}", codes(&errors.findings)),
    }
}

fn codes(findings: &[CapsFinding]) -> Vec<(String, Option<usize>)> {
    let of_one = |finding: &CapsFinding| {
        let code = finding
            .code()
            .expect("every problem has a code")
            .to_string();
        (code, finding.position().map(|(line, _)| line))
    };
    findings.iter().map(of_one).collect()
}

/// The codes and lines of what is wrong with a text.
fn wrong(text: &str) -> Vec<(String, Option<usize>)> {
    let errors = compile_str("test.caps", text).unwrap_err();
    for finding in &errors.findings {
        let help = finding.help();
        assert!(
            help.is_some_and(|help| !help.to_string().is_empty()),
            "{finding} has no fix"
        );
    }
    codes(&errors.findings)
}

/// What is wrong with one line in a subject that follows a service and stands before another subject.
fn in_subject(line: &str) -> String {
    let head =
        "service s on /run/s {\npermission read write\noperation 1 open bind operand 1 read\n}\n";
    let found = wrong(&format!(
        "{head}subject a {{\n{line}\n}}\nsubject b {{\n}}\n"
    ));
    let [(code, Some(6))] = &found[..] else {
        panic!("{line}: {found:?}");
    };
    code.clone()
}

fn in_service(line: &str) -> String {
    let found = wrong(&format!(
        "subject a {{\n}}\nservice s on /run/s {{\npermission read write\n{line}\n}}\n"
    ));
    let [(code, Some(5))] = &found[..] else {
        panic!("{line}: {found:?}");
    };
    code.clone()
}

const EXAMPLE: &str = r#"
# a plugin host and its tools
subject host {
    program /usr/bin/tool execute as tool
    library /usr/lib/** load
    connect unix /run/notes
    connect unix "@bus*"
    service notes notes:* read write expires 10m uses 100
    connect tcp loopback port 8000-8999
    bind udp any port 53
    control file read write
    file "/srv/my files/**" read write uses 3
    file /etc/{passwd,group} read
    dir /srv read
    expires 1h
}

subject tool {
    file /srv/** read       # and no more
}

service notes on /run/notes {
    permission read write
    operation 1 open   bind   operand 1 by operand 3 { 0 read  1 write  2 read write }
    operation 2 read   active operand 1 read
    operation 3 copy   active operand 1 read operand 2 write
    operation 4 ping   free
}
"#;

#[test]
fn an_example() {
    let caps = compiled(EXAMPLE);
    let (host, tool) = (caps.subject("host").unwrap(), caps.subject("tool").unwrap());
    let rights = |subject, object: &Object| caps.lookup(subject, object).rights;
    let file = |path: &str| Object::Path(Class::File, path.into());
    assert_eq!(rights(host, &file("/srv/my files/a/b")), READ | WRITE);
    assert_eq!(rights(host, &file("/etc/group")), READ);
    assert_eq!(rights(host, &file("/etc/shadow")), 0);
    assert_eq!(rights(tool, &file("/srv/my files/a/b")), READ);
    assert_eq!(
        rights(host, &Object::Path(Class::Dir, b"/srv".to_vec())),
        READ
    );
    let program = caps.lookup(
        host,
        &Object::Path(Class::Program, b"/usr/bin/tool".to_vec()),
    );
    let capability = &caps.capabilities[program.by[0] as usize];
    assert_eq!(capability.becomes, Some(tool));
    assert_eq!(capability.source.line, 4);
    assert_eq!(
        capability.source.text,
        "program /usr/bin/tool execute as tool"
    );
    let tcp = |addr: IpAddr, port| Object::Inet(Class::Tcp, addr, port);
    let v4 = IpAddr::V4(Ipv4Addr::new(127, 1, 2, 3));
    assert_eq!(rights(host, &tcp(v4, 8000)), CONNECT | READ | WRITE);
    assert_eq!(rights(host, &tcp(v4, 9000)), 0);
    assert_eq!(
        rights(host, &tcp(Ipv6Addr::LOCALHOST.into(), 8999)),
        CONNECT | READ | WRITE
    );
    assert_eq!(rights(host, &tcp(Ipv6Addr::UNSPECIFIED.into(), 8999)), 0);
    assert_eq!(
        rights(host, &Object::Inet(Class::Udp, v4, 53)),
        BIND | READ | WRITE
    );
    assert_eq!(
        rights(host, &Object::Unix(b"@bus-1".to_vec())),
        CONNECT | READ | WRITE
    );
    assert_eq!(rights(host, &Object::Unix(b"@but".to_vec())), 0);
    let note = caps.lookup(host, &Object::Of(0, b"notes:1".to_vec()));
    assert_eq!(
        caps.words(Class::Service(0), note.rights),
        ["read", "write"]
    );
    let of_note = &caps.capabilities[note.by[0] as usize];
    assert_eq!((of_note.expires, of_note.uses), (Some(600), Some(100)));
    assert_eq!(caps.capabilities[program.by[0] as usize].expires, None);
    let passwd = caps.lookup(host, &file("/etc/passwd"));
    assert_eq!(
        caps.capabilities[passwd.by[0] as usize].expires,
        Some(3_600)
    );
    assert_eq!(caps.service_at(b"/run/notes"), Some(0));
    assert_eq!(caps.service_at(b"/run/notes2"), None);
    let host = &caps.subjects[host as usize];
    assert_eq!(host.controlled(Class::File), READ | WRITE | LOCK | IOCTL);
    assert_eq!(host.controlled(Class::Dir), 0);
    let open = caps.services[0].operation(1).unwrap();
    let Needs::Bind(needs) = &open.needs else {
        panic!("{open:?}");
    };
    assert_eq!(needs[0].rights.of(|_| Some(2)), Some(3));
    assert_eq!(needs[0].rights.of(|_| Some(3)), None);
}

#[test]
fn what_lasts_gives_first() {
    let caps = compiled(
        "subject a {\n file /a read expires 1m\n file /** read\n file /a read write uses 1\n control file read write\n}\n",
    );
    let said = caps.lookup(0, &Object::Path(Class::File, b"/a".to_vec()));
    assert_eq!(said.by, [1, 0, 2]);
    assert_eq!(said.rights, READ | WRITE);
}

#[test]
fn lines_that_are_wrong_in_a_subject() {
    for (line, code) in [
        ("fiel /a read", "caps::unknown"),
        ("file a read", "caps::path_relative"),
        ("file ~/a read", "caps::path_home"),
        ("file @{HOME}/a read", "caps::path_variable"),
        ("file /a/ read", "caps::path_empty"),
        ("file /a/../b read", "caps::path_dot"),
        ("file \"\" read", "caps::name_empty"),
        ("file /a\\x00 read", "caps::path_zero"),
        ("file /a\\q read", "caps::path_escape"),
        ("file /[a read", "caps::glob_unclosed"),
        ("file /a} read", "caps::glob_stray"),
        ("file /[b-a] read", "caps::glob_class"),
        ("file /{a} read", "caps::glob_alternatives"),
        ("file /a", "caps::expected"),
        ("file", "caps::expected"),
        ("file /a raed", "caps::unknown"),
        ("file /a rmdir", "caps::unknown"),
        ("file /a read read", "caps::twice"),
        ("file /a expires 1m", "caps::expected"),
        ("file /a read as b", "caps::trailing"),
        ("file /a unlink expires 1m", "caps::unbound"),
        ("file /a read expires 1", "caps::number"),
        ("file /a read expires 0s", "caps::number"),
        ("file /a read expires 367d", "caps::number"),
        ("file /a read expires 1m expires 2m", "caps::twice"),
        ("file /a read uses 0", "caps::number"),
        ("file /a read uses +1", "caps::number"),
        ("file /a read uses 1", "caps::uncounted"),
        ("program /a execute as c", "caps::unknown"),
        ("program /a execute expires 1m", "caps::unbound"),
        ("library /a load as", "caps::expected"),
        ("library /a execute", "caps::unknown"),
        ("connect tpc any", "caps::unknown"),
        ("connect tcp eth0", "caps::network"),
        ("connect tcp 10.1.2.3/8", "caps::network"),
        ("connect tcp any port 65536", "caps::number"),
        ("connect tcp any port 2-1", "caps::number"),
        ("connect tcp any 80", "caps::trailing"),
        ("connect unix run/x", "caps::path_relative"),
        ("connect unix @", "caps::name_empty"),
        ("service t x read", "caps::unknown"),
        ("service s x raed", "caps::unknown"),
        ("control file unlink", "caps::controlled"),
        ("control file lock", "caps::controlled"),
        ("control program execute", "caps::unknown"),
        ("control", "caps::expected"),
        ("expires never", "caps::number"),
        ("subject c {", "caps::nested"),
        ("include x.caps", "caps::nested"),
        ("file /a > read", "caps::expected"),
        ("file \"/a read", "caps::unclosed"),
        ("\u{a0}", "caps::character"),
        ("permission read", "caps::unknown"),
    ] {
        assert_eq!(in_subject(line), code, "{line}");
    }
    assert_eq!(
        in_subject(&format!("file /{} read", "a".repeat(4_096))),
        "caps::line_size"
    );
    let deep = format!("file /{}a{} read", "{a,".repeat(17), "}".repeat(17));
    assert_eq!(in_subject(&deep), "caps::glob_nesting");
}

#[test]
fn lines_that_are_wrong_in_a_service() {
    for (line, code) in [
        ("permission read", "caps::twice"),
        ("permission Read", "caps::name"),
        ("permission as", "caps::name"),
        ("permission", "caps::expected"),
        ("operation x open free", "caps::number"),
        ("operation 1 open", "caps::expected"),
        ("operation 1 open fere", "caps::unknown"),
        ("operation 1 open free read", "caps::trailing"),
        ("operation 1 open bind", "caps::expected"),
        ("operation 1 open bind read", "caps::expected"),
        ("operation 1 open bind operand 0 read", "caps::number"),
        ("operation 1 open bind operand 9 read", "caps::number"),
        ("operation 1 open bind operand 1", "caps::expected"),
        ("operation 1 open bind operand 1 raed", "caps::unknown"),
        (
            "operation 1 open bind operand 1 read operand 1 write",
            "caps::twice",
        ),
        (
            "operation 1 open bind operand 1 by operand 2",
            "caps::expected",
        ),
        (
            "operation 1 open bind operand 1 by operand 2 { }",
            "caps::number",
        ),
        (
            "operation 1 open bind operand 1 by operand 2 { 1 read",
            "caps::expected",
        ),
        (
            "operation 1 open bind operand 1 by operand 2 { 1 read 1 write }",
            "caps::twice",
        ),
        (
            "operation 1 open bind operand 1 by operand 2 { -1 read }",
            "caps::number",
        ),
        ("file /a read", "caps::unknown"),
    ] {
        assert_eq!(in_service(line), code, "{line}");
    }
    let many = (0..31).map(|at| format!(" p{at}")).collect::<String>();
    assert_eq!(in_service(&format!("permission{many}")), "caps::limit");
    let many = (0..65).map(|at| format!(" {at} read")).collect::<String>();
    let line = format!("operation 1 open bind operand 1 by operand 2 {{{many} }}");
    assert_eq!(in_service(&line), "caps::limit");
}

#[test]
fn files_that_are_wrong() {
    let code = |code: &str, line| (code.to_owned(), Some(line));
    assert_eq!(wrong(""), [code("caps::no_subject", 1)]);
    assert_eq!(wrong("subject a {\n"), [code("caps::open_block", 1)]);
    assert_eq!(wrong("}\n"), [code("caps::no_block", 1)]);
    assert_eq!(wrong("file /a read\n"), [code("caps::outside", 1)]);
    assert_eq!(wrong("subject A {\n}\n"), [code("caps::name", 1)]);
    assert_eq!(wrong("subject a\n}\n"), [code("caps::expected", 1)]);
    assert_eq!(
        wrong("subject a { file /a read\n}\n"),
        [code("caps::trailing", 1)]
    );
    assert_eq!(
        wrong("subject a {\n}\nsubject a {\nfile /a read\n}\n"),
        [code("caps::twice", 3)]
    );
    assert_eq!(
        wrong("subject a {\nexpires 1m\nexpires 1m\n}\n"),
        [code("caps::twice", 3)]
    );
    assert_eq!(wrong("include a.caps\n"), [code("caps::include_file", 1)]);
    assert_eq!(
        wrong("service s in /a {\n}\nsubject a {\n}\n"),
        [code("caps::expected", 1)]
    );
    let service = |body: &str| {
        wrong(&format!(
            "subject a {{\n}}\nservice s on /a {{\n{body}\n}}\n"
        ))
    };
    assert_eq!(
        service("operation 1 a active operand 1 read"),
        [code("caps::no_permissions", 4)]
    );
    assert_eq!(
        service("operation 1 a free\noperation 1 b free"),
        [code("caps::twice", 5)]
    );
    assert_eq!(
        service("operation 1 a free\noperation 2 a free"),
        [code("caps::twice", 5)]
    );
    let two = "subject a {\n}\nservice s on /run/* {\n}\nservice t on /run/t {\n}\n";
    assert_eq!(wrong(two), [code("caps::service_overlap", 5)]);
    // `**` in the middle multiplies: which of the letters were passed has to be remembered
    let letters = ('a'..='t')
        .map(|c| format!("file /**/{c}*/** read\n"))
        .collect::<String>();
    assert_eq!(
        wrong(&format!("subject a {{\n{letters}}}\n")),
        [code("caps::states", 21)]
    );
    // all errors at once, in order
    let all = wrong("subject a {\nfile x read\nfile /a raed\nprogram /a execute as z\n}\n");
    assert_eq!(
        all.iter()
            .map(|(_, line)| line.unwrap())
            .collect::<Vec<_>>(),
        [2, 3, 4]
    );
}

#[test]
fn a_services_socket_may_have_a_type() {
    let of = |rest: &str| {
        let text = format!("subject a {{\n}}\nservice s on /run/s{rest} {{\npermission p\n}}\n");
        compile_str("test.caps", &text)
    };
    let socket_type = |rest: &str| of(rest).unwrap().capabilities.services[0].socket_type;
    assert_eq!(socket_type(""), None);
    assert_eq!(socket_type(" type stream"), Some(SocketType::Stream));
    assert_eq!(socket_type(" type seqpacket"), Some(SocketType::Seqpacket));
    for (rest, code) in [
        (" type dgram", "caps::unknown"),
        (" type", "caps::unknown"),
        (" stream", "caps::expected"),
        (" type stream type stream", "caps::expected"),
    ] {
        let found = codes(&of(rest).unwrap_err().findings);
        assert_eq!(found[0], (code.to_owned(), Some(3)), "{rest}");
    }
}

#[test]
fn what_cannot_mean_what_it_seems_to_is_warned_of() {
    let warnings = |body: &str| {
        let text = format!("subject a {{\n{body}\n}}\nservice s on /run/s {{\npermission p\n}}\n");
        let compiled = compile_str("test.caps", &text).unwrap();
        codes(&compiled.warnings)
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("service s x p\nservice s y p"),
        ["caps::unconnected"]
    );
    assert!(warnings("service s x p\nconnect unix /run/*").is_empty());
    assert_eq!(
        warnings("service s x p\nbind unix /run/s"),
        ["caps::unconnected"]
    );
    assert_eq!(warnings("program /bin/sh execute"), ["caps::alias"]);
    assert_eq!(warnings("library /lib/** load"), ["caps::alias"]);
    assert!(warnings("file /lib* read\nfile /usr/lib/** read\nfile /{bin,x} read").is_empty());
}

#[test]
fn includes_are_read_once_and_not_in_circles() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "a.caps",
        "include b.caps\ninclude c.caps\nsubject a {\nprogram /x execute as b\n}\n",
    );
    write("b.caps", "include c.caps\nsubject b {\nfile /b read\n}\n");
    write("c.caps", "subject c {\n}\n");
    let caps = compile_file(&dir.path().join("a.caps"))
        .unwrap()
        .capabilities;
    let names: Vec<_> = caps
        .subjects
        .iter()
        .map(|subject| subject.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(caps.capabilities[1].source.file.ends_with("b.caps"));
    write("c.caps", "include a.caps\n");
    let errors = compile_file(&dir.path().join("a.caps")).unwrap_err();
    assert_eq!(codes(&errors.findings)[0].0, "caps::include_cycle");
    write("c.caps", "include d.caps\n");
    let errors = compile_file(&dir.path().join("a.caps")).unwrap_err();
    assert_eq!(
        codes(&errors.findings)[0],
        ("caps::unreadable".into(), Some(1))
    );
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "/", "/", "a", "b", "*", "**", "?", "[ab]", "[^a]", "[a-c]", "{a,b/c}", "{,a}", "/*",
        "/**", "\\x41",
    ]);
    let pieces = prop::collection::vec(piece, 0..7);
    pieces.prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn network() -> impl Strategy<Value = (IpAddr, u8)> {
    let v4 =
        (any::<[u8; 4]>(), 0..=32u8).prop_map(|(octets, prefix)| (IpAddr::from(octets), prefix));
    let v6 =
        (any::<[u8; 16]>(), 0..=95u8).prop_map(|(octets, prefix)| (IpAddr::from(octets), prefix));
    prop_oneof![v4, v6].prop_map(|(addr, prefix)| (masked(addr, prefix), prefix))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// One walk says what every capability says that is asked.
    #[test]
    fn automata_say_what_capabilities_say(
        lines in prop::collection::vec((pattern(), 1..8usize), 1..8),
        names in prop::collection::vec("(/[abcA]{1,2}){1,4}", 40),
    ) {
        let mut text = "subject a {\n".to_owned();
        for (pattern, bits) in lines {
            if Pattern::parse(&pattern, Names::Paths).is_err() {
                continue;
            }
            let words = ["read", "write", "append"].into_iter().enumerate();
            let words: Vec<_> = words.filter(|(at, _)| bits & 1 << at != 0).map(|(_, word)| word).collect();
            text += &format!("file {pattern} {}\n", words.join(" "));
        }
        let caps = compiled(&(text + "}\n"));
        for name in names.iter().map(String::as_str).chain(["/", "", "/a/", "//a"]) {
            let object = Object::Path(Class::File, name.into());
            prop_assert_eq!(caps.lookup(0, &object), &decide::allowed(&caps, 0, &object), "{}", name);
        }
    }

    /// The same for networks and ports, asked at and around their ends.
    #[test]
    fn automata_say_what_networks_say(
        lines in prop::collection::vec((network(), any::<u16>(), 0..700u16, any::<bool>()), 1..8),
    ) {
        let mut text = "subject a {\n".to_owned();
        let mut asked = Vec::new();
        for ((addr, prefix), first, length, connects) in &lines {
            let last = first.saturating_add(*length);
            let word = if *connects { "connect" } else { "bind" };
            text += &format!("{word} tcp {addr}/{prefix} port {first}-{last}\n");
            let ports = [first.wrapping_sub(1), *first, first + (last - first) / 2, last, last.wrapping_add(1)];
            for port in ports {
                asked.push((*addr, port));
                asked.push((beside(*addr, *prefix, true), port));
                asked.push((beside(*addr, *prefix, false), port));
            }
        }
        let caps = compiled(&(text + "}\n"));
        for (addr, port) in asked {
            let object = Object::Inet(Class::Tcp, addr, port);
            prop_assert_eq!(caps.lookup(0, &object), &decide::allowed(&caps, 0, &object), "{} {}", addr, port);
        }
    }
}

/// The last address of a network, or the one behind it.
fn beside(addr: IpAddr, prefix: u8, inside: bool) -> IpAddr {
    match addr {
        IpAddr::V4(v4) => {
            let last = v4.to_bits() | u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv4Addr::from_bits(if inside { last } else { last.wrapping_add(1) }).into()
        }
        IpAddr::V6(v6) => {
            let last = v6.to_bits() | u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            Ipv6Addr::from_bits(if inside { last } else { last.wrapping_add(1) }).into()
        }
    }
}
