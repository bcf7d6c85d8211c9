//! Images of random capability files, asked by the kernel's code, which says what the reference says.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;
use tidegate_bundle::caps::{Capabilities, Class, NameTable, Object};
use tidegate_policy::caps;
use tidegate_policy::caps::decide::{self, Layer, Withdrawn};

use crate::decide::tidegate_caps_sizes;
use crate::image::{CAPABILITY, SUBJECT};
use crate::{Image, Place, Places, Server, Taken, class_number, class_of, object_id};

const BASE: u32 = 1 << 30;

const SUBJECTS: [&str; 3] = ["one", "two", "three"];

const SERVICES: &str = "service notes on /run/notes {
    permission read write keep
    operation 1 open bind operand 1 by operand 2 { 0 read  1 write  7 read write }
    operation 3 put active operand 1 write operand 2 read
    operation 4 ping free
}
service store on \"@store*\" {
    permission get
    operation 9 get bind operand 1 get
}
";

const NAMES: [&str; 8] = [
    "/a",
    "/a/b",
    "/a/b/c",
    "/b",
    "/b/c",
    "/c/d.txt",
    "/a/x",
    "/run/notes",
];

fn compiled(text: &str) -> Capabilities {
    let compiled = caps::compile_str("random.caps", text);
    compiled
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
        .capabilities
}

/// A line of a subject.
fn line() -> impl Strategy<Value = String> {
    let pattern = || {
        let patterns = [
            "/a/**",
            "/a/*",
            "/**",
            "/a",
            "/b/*",
            "/{a,c}/**",
            "/a/[a-f]",
            "/run/*",
            "/?",
        ];
        select(patterns.to_vec())
    };
    let some = |words: &'static [&'static str]| {
        prop::sample::subsequence(words, 1..=words.len()).prop_map(|words| words.join(" "))
    };
    let limit = || select(vec!["", "", " expires 10s", " expires 3s"]);
    let becomes = || select(vec!["", " as one", " as two", " as three"]);
    let network = || {
        select(vec![
            "any",
            "loopback",
            "10.0.0.0/8",
            "10.1.2.3",
            "2001:db8::/32",
        ])
    };
    let port = || select(vec!["", " port 443", " port 80-8080"]);
    prop_oneof![
        3 => (pattern(), some(&["read", "write", "append", "create", "unlink", "setattr", "lock", "ioctl"]))
            .prop_map(|(p, w)| format!("file {p} {w}")),
        3 => (pattern(), some(&["write", "append", "create", "setattr", "lock", "ioctl"]), limit())
            .prop_map(|(p, w, l)| format!("file {p} read {w}{l}")),
        1 => pattern().prop_map(|p| format!("file {p} read write uses 3")),
        2 => (pattern(), some(&["read", "create", "rmdir", "setattr"])).prop_map(|(p, w)| format!("dir {p} {w}")),
        2 => (pattern(), becomes()).prop_map(|(p, b)| format!("program {p} execute{b}")),
        2 => (pattern(), becomes()).prop_map(|(p, b)| format!("library {p} load{b}")),
        2 => (select(vec!["connect", "bind"]), select(vec!["tcp", "udp"]), network(), port(), limit())
            .prop_map(|(o, c, n, p, l)| format!("{o} {c} {n}{p}{l}")),
        1 => (pattern(), limit()).prop_map(|(p, l)| format!("connect unix {p}{l}")),
        1 => (select(vec!["*", "pub:**", "a?"]), some(&["read", "write", "keep"]), limit())
            .prop_map(|(p, w, l)| format!("service notes {p} {w}{l}")),
        1 => Just("service store ** get".to_owned()),
    ]
}

/// Three subjects of random lines.
fn files() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(line(), 0..10);
    prop::collection::vec(lines, 3).prop_map(|subjects| {
        let blocks = subjects.iter().zip(SUBJECTS).map(|(lines, name)| {
            let control = "control file read write\n    control tcp write";
            format!(
                "subject {name} {{\n    {control}\n    {}\n}}\n",
                lines.join("\n    ")
            )
        });
        blocks.collect::<String>() + SERVICES
    })
}

fn object() -> impl Strategy<Value = Object> {
    let name = || select(NAMES.to_vec()).prop_map(|name| name.as_bytes().to_vec());
    let addr = select(vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
        IpAddr::V4(Ipv4Addr::new(11, 1, 2, 3)),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ]);
    let of_paths = vec![Class::File, Class::Dir, Class::Program, Class::Library];
    let of_service = vec![(0, "pub:a"), (0, "ab"), (0, "b"), (1, "x"), (1, "")];
    prop_oneof![
        6 => (select(of_paths), name()).prop_map(|(class, name)| Object::Path(class, name)),
        2 => (select(vec![Class::Tcp, Class::Udp]), addr, select(vec![1, 80, 443, 9000]))
            .prop_map(|(class, addr, port)| Object::Inet(class, addr, port)),
        1 => name().prop_map(Object::Unix),
        2 => select(of_service).prop_map(|(service, name)| Object::Of(service, name.as_bytes().to_vec())),
    ]
}

fn layers(subjects: &[u32]) -> BTreeSet<Layer> {
    let layer = |&subject| Layer { files: 0, subject };
    subjects.iter().map(layer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What all layers give, beside it too, for how long, and whether a later revocation took a part of it.
    #[test]
    fn layers_give_what_the_reference_says(
        text in files(),
        questions in prop::collection::vec((object(), 0u32..1 << 15, prop::collection::btree_set(0u32..3, 1..3)), 1..24),
        taken in prop::collection::btree_map(0u32..24, 1u32..5, 0..8),
        epoch in 0u32..5,
    ) {
        let caps = compiled(&text);
        let image = Image::of(&caps, BASE);
        prop_assert_eq!(Image::length(&caps), image.bytes.len());
        prop_assert_eq!(Places::named(&NameTable::of(&caps), BASE), image.places);
        let list: Vec<Taken> = taken.iter()
            .map(|(&at, &by)| Taken { capability: image.places.capability(at), by })
            .collect();
        let server = Server::of(&image, &list);
        let before = taken.iter().filter(|(_, by)| **by <= epoch);
        let withdrawn = Withdrawn {
            capabilities: before.map(|(&at, _)| (0, at)).collect(),
            ..Withdrawn::default()
        };
        let later = |by: &BTreeSet<(usize, u32)>| by.iter().any(|(_, at)| taken.get(at).is_some_and(|&by| by > epoch));
        let files = [caps];
        for (object, wanted, subjects) in questions {
            // what can be asked of its class, and now and then what cannot
            let class = object.class();
            let wanted = match wanted % 8 {
                0 => wanted,
                _ => wanted & class.all().max(7),
            };
            let beside = class.access() & !class.controllable();
            let subjects: Vec<u32> = subjects.into_iter().collect();
            let got = server.asked(&subjects, &object, epoch, wanted, beside);
            prop_assert_eq!(got.given, decide::common(&files, &layers(&subjects), &withdrawn, &object, wanted));
            if subjects.len() == 1 {
                // what is missing is what was never given, or what was taken
                let once = decide::common(&files, &layers(&subjects), &Withdrawn::default(), &object, wanted);
                prop_assert_eq!((once & !got.given & !got.taken, got.taken & !once), (0, 0));
            }
            if let Ok(given) = decide::ask(&files, &layers(&subjects), &withdrawn, &object, wanted) {
                prop_assert_eq!((got.expires, got.uses), (given.expires.unwrap_or(0), given.uses.unwrap_or(0)));
                let (rights, by) = decide::beside(&files, &layers(&subjects), &withdrawn, &object, &given);
                prop_assert_eq!(got.extra, rights);
                let lost = later(&given.by) || later(&by);
                // of what only some layers have beside, the kernel's counts what the others have not
                prop_assert!(got.lost != 0 || !lost);
                prop_assert!(got.lost == 0 || lost || subjects.len() > 1);
            }
            for &subject in &subjects {
                let mut brought = server.brings(subject, &object, epoch);
                brought.sort_unstable();
                brought.dedup();
                let expected = decide::brought(&files, &layers(&[subject]), &withdrawn, &object);
                let expected: Vec<u32> = expected.iter().map(|layer| image.places.subject(layer.subject)).collect();
                prop_assert_eq!(brought, expected);
            }
        }
    }
}

#[test]
fn what_an_image_is_made_of_has_the_sizes_that_c_says() {
    let mut sizes = [0; 8];
    // SAFETY: there is room for eight.
    unsafe { tidegate_caps_sizes(&raw mut sizes) };
    let words = [8, SUBJECT, CAPABILITY, 4, 6, 6, 6, 4];
    assert_eq!(sizes, words.map(|words| 4 * words as u32));
}

#[test]
fn a_place_says_what_it_is_of() {
    let caps =
        compiled("subject a {\n file /a read\n file /b read\n}\nsubject b {\n file /c read\n}\n");
    let image = Image::of(&caps, BASE);
    assert_eq!(image.places, Places::of(&caps, BASE));
    for number in 0..2 {
        let place = image.places.subject(number);
        assert_eq!(image.places.at(place), Some(Place::Subject(number)));
    }
    for number in 0..3 {
        let place = image.places.capability(number);
        assert_eq!(image.places.at(place), Some(Place::Capability(number)));
        assert_eq!(image.places.at(place + 4), None);
    }
    for none in [0, BASE, image.places.capability(3), u32::MAX] {
        assert_eq!(image.places.at(none), None);
    }
}

#[test]
fn services_are_found_by_their_sockets() {
    let caps = compiled(&format!("subject a {{\n file /a read\n}}\n{SERVICES}"));
    let image = Image::of(&caps, BASE);
    let server = Server::of(&image, &[]);
    for socket in ["/run/notes", "@store1", "@other", "/run"] {
        let socket = socket.as_bytes();
        assert_eq!(server.service_at(socket), caps.service_at(socket));
    }
    let none = compiled("subject a {\n file /a read\n}\n");
    let image = Image::of(&none, BASE);
    assert_eq!(Server::of(&image, &[]).service_at(b"/run/notes"), None);
}

#[test]
fn each_class_has_a_number_and_each_object_one_of_its_own() {
    for (number, (_, class)) in (0..).zip(Class::WORDS) {
        assert_eq!(class_number(class), Some(number));
        assert_eq!(class_of(number), Some(class));
    }
    assert_eq!(class_number(Class::Service(0)), None);
    assert_eq!(class_of(7), Some(Class::Service(0)));
    assert_eq!(class_of(7 + 255), Some(Class::Service(255)));
    assert_eq!(class_of(u32::MAX), None);
    let file = |class, name: &str| object_id(&Object::Path(class, name.into()), BASE);
    assert_eq!(file(Class::File, "/"), 0xcbf2_9ce4_8422_2325);
    assert_eq!(file(Class::File, "/a"), file(Class::Dir, "/a"));
    assert_eq!(
        file(Class::File, "/a"),
        object_id(&Object::Unix(b"/a".to_vec()), BASE)
    );
    assert_ne!(
        file(Class::File, "/a"),
        object_id(&Object::Unix(b"@a".to_vec()), BASE)
    );
    for (one, other) in [("/a", "/b"), ("/ab", "/a/b"), ("/abcdefgh", "/abcdefghi")] {
        assert_ne!(file(Class::File, one), file(Class::File, other));
    }
    let note = |service, name: &str, image| object_id(&Object::Of(service, name.into()), image);
    assert_eq!(note(0, "a", BASE), note(0, "a", BASE));
    for other in [
        note(1, "a", BASE),
        note(0, "b", BASE),
        note(0, "a", BASE + 1),
    ] {
        assert_ne!(note(0, "a", BASE), other);
    }
}
