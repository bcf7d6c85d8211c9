//! Capability files that no compiler makes.

use super::*;
use crate::caps::{
    Allowed, Capabilities, Capability, Class, Names, Need, Needs, Object, Objects, Operation,
    Pattern, Rights, Service,
};
use crate::limits::{MAX_CAPABILITIES, MAX_CAPS_BYTES, MAX_CAPS_GROWTH, MAX_CAPS_REST, MAX_LINE};

const TEXT: &str = r#"
subject a {
    file /a/* read
    file /a/** read write expires 1m
    program /bin/x execute as b
    connect tcp 10.0.0.0/8 port 80
    connect unix /run/s
    service s x:* read
    control file read
}
subject b {
    dir / read
}
service s on /run/s {
    permission read write
    operation 1 open bind operand 1 by operand 2 { 0 read 1 write }
    operation 2 get active operand 1 read operand 2 write
    operation 3 ping free
}
"#;

fn good() -> Capabilities {
    made::capabilities(TEXT)
}

fn changed(change: impl FnOnce(&mut Capabilities)) -> &'static str {
    let mut caps = good();
    change(&mut caps);
    match Capabilities::from_bundle(&caps.to_bundle()) {
        Err(BundleError::Capabilities(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn capability_files_are_kept() {
    let caps = good();
    let read = Capabilities::from_bundle(&caps.to_bundle()).unwrap();
    assert_eq!(read, caps);
    let file = Object::Path(Class::File, b"/a/b".to_vec());
    assert_eq!(read.lookup(0, &file).by, [0, 1]);
}

#[test]
fn a_bundle_is_of_one_sort() {
    let caps = good().to_bundle();
    let of_caps = BundleError::UnknownSection("capability".into());
    assert_eq!(Policy::from_bundle(&caps), Err(of_caps));
    let map = made::policy("levels a > b\na /\n");
    let of_map = BundleError::UnknownSection("lomac".into());
    assert_eq!(Capabilities::from_bundle(&map.to_bundle()), Err(of_map));
    let none = seal(&section::write_all(&[]));
    assert_eq!(
        Capabilities::from_bundle(&none),
        Err(BundleError::MissingSection("capability"))
    );
    let body = open(&caps).unwrap();
    let content = section::read_all(body).unwrap()[0].1.to_vec();
    let twice = seal(&section::write_all(&[
        ("capability", content.clone()),
        ("capability", content),
    ]));
    assert_eq!(
        Capabilities::from_bundle(&twice),
        Err(BundleError::SectionTwice("capability".into()))
    );
}

#[test]
fn what_is_cut_off_or_changed_is_refused() {
    let bundle = good().to_bundle();
    for end in (0..bundle.len()).step_by(7) {
        assert!(Capabilities::from_bundle(&bundle[..end]).is_err(), "{end}");
    }
    let content = section::read_all(open(&bundle).unwrap()).unwrap()[0]
        .1
        .to_vec();
    for end in (0..content.len()).step_by(5) {
        let cut = seal(&section::write_all(&[(
            "capability",
            content[..end].to_vec(),
        )]));
        assert!(Capabilities::from_bundle(&cut).is_err(), "{end}");
    }
    let mut changed = bundle.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(
        Capabilities::from_bundle(&changed),
        Err(BundleError::Checksum)
    );
}

#[test]
fn counts_beyond_the_limits_are_refused_before_anything_is_read() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for (before, what, max) in [(&[][..], "services", 256), (&[0], "subjects", 1_024)] {
        let content = [before, &huge].concat();
        let bundle = seal(&section::write_all(&[("capability", content)]));
        let count = usize::MAX;
        let limit = BundleError::Limit { what, count, max };
        assert_eq!(Capabilities::from_bundle(&bundle), Err(limit));
    }
}

#[test]
fn names_and_services() {
    assert_eq!(changed(|c| c.subjects.clear()), "no subject");
    assert_eq!(
        changed(|c| c.subjects[0].name = "A".into()),
        "a name that is none"
    );
    assert_eq!(changed(|c| c.subjects[0].name = "b".into()), "a name twice");
    assert_eq!(
        changed(|c| c.services[0].permissions[1] = "read".into()),
        "a name twice"
    );
    assert_eq!(
        changed(|c| c.services[0].operations.reverse()),
        "operations out of order"
    );
    let needs = |needs: fn(&mut Vec<crate::caps::Need>)| {
        changed(move |c| match &mut c.services[0].operations[1].needs {
            Needs::Active(all) => needs(all),
            _ => unreachable!("operation 2 is active"),
        })
    };
    assert_eq!(
        needs(|all| all.clear()),
        "an operation that needs nothing and is not free"
    );
    assert_eq!(
        needs(|all| all[1].operand = 1),
        "an operand that cannot be, or twice"
    );
    assert_eq!(
        needs(|all| all[1].operand = 9),
        "an operand that cannot be, or twice"
    );
    let rights = "permissions that an operation cannot need";
    assert_eq!(needs(|all| all[0].rights = Rights::Fixed(4)), rights);
    assert_eq!(needs(|all| all[0].rights = Rights::Fixed(0)), rights);
    for (operand, vector) in [
        (0, vec![(0, 1)]),
        (1, vec![]),
        (1, vec![(1, 1), (1, 2)]),
        (1, vec![(1, 8)]),
    ] {
        let by = Rights::By { operand, vector };
        let what = changed(move |c| match &mut c.services[0].operations[0].needs {
            Needs::Bind(all) => all[0].rights = by,
            _ => unreachable!("operation 1 binds"),
        });
        assert_eq!(what, rights);
    }
    assert_eq!(
        changed(|c| *c.sockets.answers.last_mut().unwrap() = 2),
        "a socket of a service that is not there"
    );
    assert_eq!(
        changed(|c| c.sockets.answers[0] = 1),
        "an answer in state 0"
    );
}

/// What cannot be read of a bundle with such a service.
fn unread(change: impl FnOnce(&mut Service)) -> BundleError {
    let mut caps = good();
    change(&mut caps.services[0]);
    Capabilities::from_bundle(&caps.to_bundle()).unwrap_err()
}

#[test]
fn lists_of_services_end_where_the_compilers_do() {
    let services = BundleError::Malformed {
        section: "capability",
        what: "services",
    };
    assert_eq!(
        unread(|s| s.permissions = (0..33).map(|at| format!("p{at}")).collect()),
        services
    );
    let need = |operand| Need {
        operand,
        rights: Rights::Fixed(1),
    };
    assert_eq!(
        unread(|s| s.operations[1].needs = Needs::Active((1..=9).map(need).collect())),
        services
    );
    let by = |values| Rights::By {
        operand: 1,
        vector: (0..values).map(|value| (value, 1)).collect(),
    };
    assert_eq!(
        unread(|s| match &mut s.operations[0].needs {
            Needs::Bind(all) => all[0].rights = by(65),
            _ => unreachable!("operation 1 binds"),
        }),
        services
    );
    let operation = |number| Operation {
        number,
        name: format!("o{number}"),
        needs: Needs::Free,
    };
    assert_eq!(
        unread(|s| s.operations = (0..257).map(operation).collect()),
        services
    );
}

#[test]
fn texts_and_patterns_are_counted_as_they_are_read() {
    let mut caps = good();
    let mut long = caps.capabilities[0].clone();
    let path = format!("/{}", "a".repeat(MAX_LINE - 1));
    long.objects = Objects::Named(Pattern::parse(&path, Names::Paths).unwrap());
    long.source.file.clone_from(&path);
    long.source.text = path;
    let each = 3 * MAX_LINE + size_of::<Capability>();
    caps.capabilities = vec![long; MAX_CAPS_REST / each + 100];
    match Capabilities::from_bundle(&caps.to_bundle()) {
        Err(BundleError::Limit { what, count, max }) => {
            assert_eq!((what, max), ("bytes of texts and services", MAX_CAPS_REST));
            // the first that has no room is the last that is read
            assert!(count - max <= each);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_are_counted_as_they_are_read() {
    let mut caps = good();
    let automaton = &mut caps.subjects[0].automata[0].1;
    let long = Allowed {
        rights: 1,
        by: vec![0; MAX_CAPABILITIES],
    };
    automaton.answers.extend(vec![long; 300]);
    match Capabilities::from_bundle(&caps.to_bundle()) {
        Err(BundleError::Limit { what, count, max }) => {
            assert_eq!((what, max), ("bytes of automata", MAX_CAPS_BYTES));
            assert!(count - max <= 4 * MAX_CAPABILITIES + size_of::<Allowed>());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_bundle_becomes_is_a_multiple_of_its_bytes() {
    let growth = |bytes: usize, value: &[u8]| bytes <= MAX_CAPS_GROWTH * value.len();
    // a list has room for as many again at most, and the allocator adds 32 bytes to a text
    let nothing = postcard::to_allocvec(&Allowed::default()).unwrap();
    assert!(growth(2 * size_of::<Allowed>(), &nothing));
    let free = Operation {
        number: 1,
        name: "o".into(),
        needs: Needs::Free,
    };
    let written = postcard::to_allocvec(&free).unwrap();
    assert!(growth(size_of::<Operation>() + 32, &written));
    let name = postcard::to_allocvec("p").unwrap();
    assert!(growth(size_of::<String>() + 32, &name));
    let mut least = good().capabilities[0].clone();
    least.source.file.clear();
    least.source.text.clear();
    let written = postcard::to_allocvec(&least).unwrap();
    assert!(growth(2 * size_of::<Capability>() + 32, &written));
}

#[test]
fn capabilities() {
    let capability = |at: usize, change: fn(&mut crate::caps::Capability)| {
        changed(move |c| change(&mut c.capabilities[at]))
    };
    assert_eq!(
        capability(0, |c| c.source.text = "x".repeat(4_097)),
        "an overlong text or file name"
    );
    assert_eq!(
        changed(|c| c.capabilities.swap(0, 6)),
        "capabilities that do not stand by subject"
    );
    assert_eq!(
        capability(6, |c| c.subject = 2),
        "a capability of a subject that is not there"
    );
    assert_eq!(
        capability(2, |c| c.becomes = Some(2)),
        "a capability of a subject that is not there"
    );
    assert_eq!(
        capability(0, |c| c.becomes = Some(1)),
        "content that is none"
    );
    assert_eq!(
        capability(5, |c| c.class = Class::Service(1)),
        "a capability for a service that is not there"
    );
    assert_eq!(
        capability(5, |c| c.rights = 4),
        "a capability with permissions that its class has not"
    );
    assert_eq!(
        capability(0, |c| c.rights = 0),
        "a capability with permissions that its class has not"
    );
    assert_eq!(
        capability(0, |c| c.uses = Some(0)),
        "a limit that cannot be"
    );
    assert_eq!(
        capability(2, |c| c.uses = Some(1)),
        "a limit that cannot be"
    );
    assert_eq!(
        capability(0, |c| c.expires = Some(u32::MAX)),
        "a limit that cannot be"
    );
    assert_eq!(
        capability(3, |c| c.class = Class::Unix),
        "objects that its class has not"
    );
    assert_eq!(
        capability(5, |c| c.class = Class::Unix),
        "a pattern that no such object can have"
    );
    assert_eq!(
        capability(3, |c| match &mut c.objects {
            Objects::Network { networks, .. } => networks[0].1 = 4,
            Objects::Named(_) => unreachable!("it is of a network"),
        }),
        "a network that is none"
    );
}

#[test]
fn subjects_and_answers() {
    let automata = "automata of other classes than its capabilities";
    assert_eq!(changed(|c| drop(c.subjects[0].automata.pop())), automata);
    assert_eq!(
        changed(|c| c.subjects[0].automata.swap(0, 1)),
        "automata out of order"
    );
    let control = "controlled operations that cannot be, or out of order";
    assert_eq!(
        changed(|c| c.subjects[0].control.push((Class::Program, 1))),
        control
    );
    assert_eq!(
        changed(|c| c.subjects[0].control.push((Class::File, 1))),
        control
    );
    let answers = |change: fn(&mut Vec<Allowed>)| {
        changed(move |c| change(&mut c.subjects[0].automata[0].1.answers))
    };
    let both = |all: &mut Vec<Allowed>| {
        all.iter()
            .position(|said| said.by == [0, 1])
            .expect("two are for /a/b")
    };
    assert_eq!(both(&mut good().subjects[0].automata[0].1.answers), 1);
    assert_eq!(
        answers(|all| all[1].by.reverse()),
        "an answer whose capabilities are out of order"
    );
    assert_eq!(
        answers(|all| all[1].by = vec![0, 0]),
        "an answer whose capabilities are out of order"
    );
    assert_eq!(
        answers(|all| all[1].by = vec![7]),
        "an answer of a capability that is not there"
    );
    assert_eq!(
        answers(|all| all[1].by = vec![6]),
        "an answer of another's capability"
    );
    assert_eq!(
        answers(|all| all[1].rights = 8),
        "an answer with other rights than its capabilities"
    );
    assert_eq!(
        answers(|all| all[0] = all[1].clone()),
        "an answer in state 0"
    );
    assert_eq!(
        changed(|c| c.subjects[0].automata[0].1.start = u16::MAX),
        "a state that is not there"
    );
}
