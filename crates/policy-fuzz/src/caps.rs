//! Capability files, as text and as bundles.

use tidegate_bundle::automaton::Automaton;
use tidegate_bundle::caps::{Allowed, Capabilities, Class, Object};
use tidegate_policy::caps::{self, decide};

use crate::image;

/// Words of the language and what is almost one.
const WORDS: [&str; 64] = [
    "subject",
    "a",
    "b",
    "{",
    "}",
    "\n",
    "\n",
    "\n",
    "\n",
    "service",
    "s",
    "on",
    "/run/s",
    "permission",
    "read",
    "write",
    "append",
    "create",
    "unlink",
    "rename",
    "setattr",
    "execute",
    "load",
    "rmdir",
    "operation",
    "1",
    "2",
    "open",
    "bind",
    "active",
    "free",
    "operand",
    "by",
    "0",
    "file",
    "dir",
    "program",
    "library",
    "connect",
    "tcp",
    "udp",
    "unix",
    "any",
    "loopback",
    "10.0.0.0/8",
    "::/0",
    "port",
    "80-90",
    "control",
    "expires",
    "10m",
    "uses",
    "as",
    "/**",
    "/a/*",
    "/{a,b}/[a-c]?",
    "@a*",
    "\"/a b\"",
    "x:**",
    "include",
    "x.caps",
    "#",
    "raed",
    "\u{a0}",
];

/// A file in which each input byte is a word, behind a head that is right.
pub fn words(bytes: &[u8]) -> String {
    let mut text =
        "service s on /run/s {\npermission read write\n}\nsubject a {\nfile /a/** read\n"
            .to_owned();
    for byte in bytes {
        text += WORDS[usize::from(byte % 64)];
        if *byte < 192 {
            text += " ";
        }
    }
    text
}

/// Statements of a subject, each right beside any others.
const LINES: [&str; 16] = [
    "file /a/** read",
    "file /a/b read write expires 10m",
    "file /{a,x}/[a-c]? append lock",
    "file /a*/**/b write uses 3",
    "file /** setattr",
    "dir /a read create",
    "program /a/* execute as b",
    "program /** execute",
    "library /a load as a",
    "connect tcp any port 80-90",
    "connect tcp 10.0.0.0/8",
    "bind udp loopback port 85",
    "connect unix /run/*",
    "bind unix @a*",
    "service s x:* read write expires 2h",
    "service s ** write uses 1",
];

/// A file that is right: each input byte is a statement of the first subject's or the second's.
pub fn lines(bytes: &[u8]) -> String {
    let mut text = "service s on /run/s {\npermission read write\n}\n".to_owned();
    for (subject, name) in ["a", "b"].into_iter().enumerate() {
        text += &format!("subject {name} {{\ncontrol file read write append\n");
        let own = bytes
            .iter()
            .take(64)
            .filter(|byte| usize::from(*byte % 2) == subject);
        for byte in own {
            text += LINES[usize::from(byte / 16)];
            text += "\n";
        }
        text += "}\n";
    }
    text
}

/// Compiles any text: whether it is right.
///
/// # Panics
///
/// If a finding cannot be shown, what was compiled does not come back from a bundle, or automata, or the kernel by an image of them,
/// say something else than capabilities that are asked one by one.
pub fn compile(text: &str) -> bool {
    let (is_right, findings) = match caps::compile_str("fuzz", text) {
        Ok(compiled) => {
            assert!(compiled.warnings.iter().all(|warning| !warning.is_error()));
            let caps = compiled.capabilities;
            let objects = objects(&caps, text.as_bytes());
            for object in &objects {
                for subject in 0..caps.subjects.len() as u32 {
                    let said = caps.lookup(subject, object);
                    assert_eq!(*said, decide::allowed(&caps, subject, object));
                }
            }
            image::asked(&caps, &objects, text.as_bytes());
            assert_eq!(Capabilities::from_bundle(&caps.to_bundle()), Ok(caps));
            (true, compiled.warnings)
        }
        Err(errors) => {
            assert!(errors.findings.iter().any(|finding| finding.is_error()));
            (false, errors.findings)
        }
    };
    for finding in findings {
        if let Some(span) = finding.span() {
            assert!(text.get(span).is_some());
            assert!(finding.position().is_some());
        }
        assert!(!finding.to_string().is_empty());
    }
    is_right
}

/// Objects of every class that there is, some of them by names of the input.
fn objects(caps: &Capabilities, bytes: &[u8]) -> Vec<Object> {
    let mut all = Vec::new();
    let names = [
        &b"/a/b"[..],
        b"/a",
        b"/",
        b"",
        b"/run/s",
        b"@a",
        b"/a/../b/",
        b"x:y",
        bytes,
    ];
    for name in names {
        let name = name.to_vec();
        for class in [Class::File, Class::Dir, Class::Program, Class::Library] {
            all.push(Object::Path(class, name.clone()));
        }
        all.push(Object::Unix(name.clone()));
        for service in 0..caps.services.len() as u16 {
            all.push(Object::Of(service, name.clone()));
        }
    }
    let port = u16::from(bytes.first().copied().unwrap_or(85));
    for addr in [[127, 0, 0, 1], [10, 1, 2, 3]] {
        all.push(Object::Inet(Class::Tcp, addr.into(), port));
    }
    all.push(Object::Inet(Class::Udp, [0_u16; 8].into(), port));
    all
}

/// Reads any bytes as a bundle.
///
/// # Panics
///
/// If what was accepted cannot be walked, says what no capability says, or something else once it is laid out for the kernel.
pub fn read(bundle: &[u8]) {
    if let Ok(caps) = Capabilities::from_bundle(bundle) {
        for subject in &caps.subjects {
            for (_, automaton) in &subject.automata {
                walk(automaton, bundle);
            }
        }
        let objects = objects(&caps, bundle);
        for object in &objects {
            for subject in 0..caps.subjects.len() as u32 {
                let said: &Allowed = caps.lookup(subject, object);
                let rights = said
                    .by
                    .iter()
                    .map(|&at| caps.capabilities[at as usize].rights);
                assert_eq!(said.rights, rights.fold(0, |all, rights| all | rights));
            }
        }
        image::asked_of_any(&caps, &objects, bundle);
    }
}

/// Walks an automaton as the kernel will.
fn walk(automaton: &Automaton<Allowed>, bytes: &[u8]) {
    let width = usize::from(automaton.width);
    let mut state = usize::from(automaton.start);
    for &byte in b"/usr/a\0".iter().chain(bytes) {
        let class = usize::from(automaton.classes[usize::from(byte)]);
        let next = usize::from(automaton.next[state * width + class]);
        assert!(state != 0 || next == 0);
        state = next;
        let said = &automaton.answers[usize::from(automaton.accepts[state])];
        assert!(state != 0 || *said == Allowed::default());
    }
}

/// A good bundle.
///
/// # Panics
///
/// If the file does not compile.
pub fn good() -> Vec<u8> {
    let text = "subject a {\nfile /a/** read expires 1m\nfile /a/b read write\nprogram /x execute as b\n\
        connect tcp 10.0.0.0/8 port 80-90\nconnect unix /run/s\nservice s x:* read\ncontrol file read\n}\n\
        subject b {\n}\nservice s on /run/s {\npermission read write\n\
        operation 1 open bind operand 1 by operand 2 { 0 read 1 write }\noperation 2 get active operand 1 read\n}\n";
    let compiled = caps::compile_str("fuzz", text).expect("it compiles");
    compiled.capabilities.to_bundle()
}
