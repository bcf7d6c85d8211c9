//! Images of capability files, asked by the kernel's own code.

use std::collections::BTreeSet;

use tidegate_bundle::caps::{Capabilities, Object};
use tidegate_lava::{Image, Place, Server, Taken};
use tidegate_policy::caps::decide::{self, Layer, Withdrawn};

/// Where images are laid out.
const BASE: u32 = 1 << 30;

/// Questions about an object: everything that its class has, what is given of that, and each permission alone.
fn questions(object: &Object, given: u32) -> Vec<u32> {
    // a service's permissions are its own
    let all = match object {
        Object::Of(..) => 0b111,
        other => other.class().all(),
    };
    let single = (0..u32::BITS).map(|bit| all & 1 << bit);
    let single = single.filter(|&bit| bit != 0);
    [all, all & given].into_iter().chain(single).collect()
}

/// Lays out what any bundle was read as, and asks about objects: what the bundle's automata say is said, and nothing else. What
/// these say need not be what its capabilities say, as its writer may have lied.
///
/// # Panics
///
/// If the image says something else.
pub fn asked_of_any(caps: &Capabilities, objects: &[Object], socket: &[u8]) {
    let image = Image::of(caps, BASE);
    let server = Server::of(&image, &[]);
    for object in objects {
        for subject in 0..caps.subjects.len() as u32 {
            let said = caps.lookup(subject, object);
            for wanted in questions(object, said.rights) {
                let asked = server.asked(&[subject], object, 0, wanted, 0);
                assert_eq!(asked.given, wanted & said.rights, "{object:?}");
                assert_eq!((asked.extra, asked.lost, asked.taken), (0, 0, 0));
            }
            let brought = server.brings(subject, object, 0);
            let becomes = said
                .by
                .iter()
                .filter_map(|&at| caps.capabilities[at as usize].becomes);
            let expected: Vec<u32> = becomes.map(|to| image.places.subject(to)).collect();
            assert_eq!(brought, expected, "{object:?}");
            for place in brought {
                assert!(matches!(image.places.at(place), Some(Place::Subject(_))));
            }
        }
    }
    assert_eq!(server.service_at(socket), caps.service_at(socket));
}

/// Lays out what was compiled, and asks about objects, where a capability was taken back, too: the image says what the reference
/// decisions say.
///
/// # Panics
///
/// If it says something else.
pub fn asked(caps: &Capabilities, objects: &[Object], socket: &[u8]) {
    asked_of_any(caps, objects, socket);
    let image = Image::of(caps, BASE);
    let files = std::slice::from_ref(caps);
    let last = (caps.capabilities.len() as u32).checked_sub(1);
    for taken in [None, last] {
        let list: Vec<Taken> = taken
            .iter()
            .map(|&at| Taken {
                capability: image.places.capability(at),
                by: 1,
            })
            .collect();
        let withdrawn = Withdrawn {
            capabilities: taken.iter().map(|&at| (0, at)).collect(),
            ..Withdrawn::default()
        };
        let server = Server::of(&image, &list);
        for object in objects {
            for subject in 0..caps.subjects.len() as u32 {
                alike(files, server, (subject, &withdrawn), object);
            }
        }
    }
}

/// One subject, and both first ones together.
fn alike(
    files: &[Capabilities],
    server: Server<'_>,
    (subject, withdrawn): (u32, &Withdrawn),
    object: &Object,
) {
    let class = object.class();
    let beside = class.access() & !class.controllable();
    for subjects in [BTreeSet::from([subject]), BTreeSet::from([0, subject])] {
        let layer = |&subject: &u32| Layer { files: 0, subject };
        let layers: BTreeSet<Layer> = subjects.iter().map(layer).collect();
        let subjects: Vec<u32> = subjects.into_iter().collect();
        let given = decide::common(files, &layers, withdrawn, object, u32::MAX);
        for wanted in questions(object, given) {
            let got = server.asked(&subjects, object, 1, wanted, beside);
            let given = decide::common(files, &layers, withdrawn, object, wanted);
            assert_eq!(got.given, given, "{object:?}");
            let Ok(given) = decide::ask(files, &layers, withdrawn, object, wanted) else {
                continue;
            };
            assert_eq!(
                (got.expires, got.uses),
                (given.expires.unwrap_or(0), given.uses.unwrap_or(0)),
                "{object:?}"
            );
            let (extra, _) = decide::beside(files, &layers, withdrawn, object, &given);
            assert_eq!(got.extra, extra, "{object:?}");
        }
    }
}
