//! Bundles that no compiler makes, sealed with a right checksum.

use super::section::{write_all, write_lomac};
use super::*;
use crate::limits::{MAX_DEPTH, MAX_LINE, MAX_OPTIONS};
use crate::{Attrs, Edge, Network, Node, Rule, RuleSource};

fn policy() -> Policy {
    let map = "levels top > mid > low\ntop /\nmid /a/b\nlow /a/*/c\nlow /z\n\
               low network 10.0.0.0/8\nmid network 10.1.0.0/16\n";
    made::policy(map)
}

/// What the loader says of a policy changed by `change`.
fn changed(change: impl FnOnce(&mut Policy)) -> BundleError {
    let mut policy = policy();
    change(&mut policy);
    Policy::from_bundle(&policy.to_bundle()).expect_err("it is not a policy")
}

fn node_of(policy: &Policy, name: &[u8]) -> usize {
    let edge = policy.edges.iter().find(|edge| edge.name == name);
    edge.expect("it is there").child as usize
}

#[test]
fn files() {
    let bundle = policy().to_bundle();
    let of = |bytes: &[u8]| Policy::from_bundle(bytes).expect_err("it is not a bundle");
    assert_eq!(of(b"levels top > low\ntop /\n"), BundleError::Foreign);
    assert_eq!(of(b"\x7fELF"), BundleError::Foreign);
    assert_eq!(of(b""), BundleError::Truncated { have: 0, need: 52 });
    assert_eq!(
        of(&bundle[..30]),
        BundleError::Truncated { have: 30, need: 52 }
    );
    let whole = bundle.len() as u64;
    assert_eq!(
        of(&bundle[..60]),
        BundleError::Truncated {
            have: 60,
            need: whole
        }
    );
    assert_eq!(
        of(&[&bundle[..], b"xyz"].concat()),
        BundleError::Trailing(3)
    );
    let mut newer = bundle.clone();
    newer[8] = 2;
    assert_eq!(of(&newer), BundleError::Version { found: 2, known: 1 });
    let mut damaged = bundle.clone();
    damaged[100] ^= 1;
    assert_eq!(of(&damaged), BundleError::Checksum);
    let mut damaged = bundle;
    damaged[30] ^= 1;
    assert_eq!(of(&damaged), BundleError::Checksum);
    assert_eq!(
        of(&vec![0; MAX_BUNDLE + 1]),
        BundleError::TooLarge(MAX_BUNDLE + 1)
    );
}

#[test]
fn sections() {
    let of = |sections: &[(&str, Vec<u8>)]| {
        Policy::from_bundle(&seal(&write_all(sections))).expect_err("it is not a bundle")
    };
    let lomac = || write_lomac(&policy());
    assert_eq!(of(&[]), BundleError::MissingSection("lomac"));
    assert_eq!(
        of(&[("lomac", lomac()), ("capability", vec![1])]),
        BundleError::UnknownSection("capability".into())
    );
    assert_eq!(
        of(&[("lomac", lomac()), ("lomac", lomac())]),
        BundleError::SectionTwice("lomac".into())
    );
    let seven = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, Vec::new()));
    assert_eq!(
        of(&seven),
        BundleError::Limit {
            what: "sections",
            count: 7,
            max: 6
        }
    );
    let mut long = lomac();
    long.push(0);
    assert_eq!(
        of(&[("lomac", long)]),
        BundleError::SectionTrailing {
            section: "lomac",
            bytes: 1
        }
    );
    let malformed = |what| BundleError::Malformed {
        section: "lomac",
        what,
    };
    assert_eq!(of(&[("lomac", vec![])]), malformed("name"));
    // A mode that is neither, after an empty name.
    assert_eq!(of(&[("lomac", vec![0, 7])]), malformed("mode"));
    let mut short = lomac();
    short.pop();
    assert_eq!(of(&[("lomac", short)]), malformed("rules"));
    assert_eq!(
        Policy::from_bundle(&seal(&[0, 9])),
        Err(BundleError::SectionTrailing {
            section: "(all)",
            bytes: 1
        })
    );
}

#[test]
fn counts_beyond_the_limits_are_refused_before_anything_is_read() {
    // Name, mode, then a count of levels, nodes, …: each as large as it can be.
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let count = usize::MAX;
    for (before, what, max) in [
        (&[1, b'x', 0][..], "levels", 16),
        (&[1, b'x', 0, 0], "nodes", 1_000_000),
        (&[1, b'x', 0, 0, 0], "edges", 1_000_000),
        (&[1, b'x', 0, 0, 0, 0], "networks", 65_536),
        (&[1, b'x', 0, 0, 0, 0, 0], "rules", 1_000_000),
    ] {
        let body = write_all(&[("lomac", [before, &huge].concat())]);
        let error = Policy::from_bundle(&seal(&body)).expect_err("too many");
        assert_eq!(error, BundleError::Limit { what, count, max });
    }
    // Within the limit, but not there.
    let body = write_all(&[("lomac", vec![1, b'x', 0, 0, 0xc0, 0x84, 0x3d])]);
    let error = Policy::from_bundle(&seal(&body)).expect_err("nothing there");
    assert_eq!(
        error,
        BundleError::Malformed {
            section: "lomac",
            what: "nodes"
        }
    );
}

#[test]
fn names() {
    assert_eq!(
        changed(|p| p.name.clear()),
        BundleError::PolicyName(String::new())
    );
    assert_eq!(
        changed(|p| p.name = "a\x1b[m".into()),
        BundleError::PolicyName("a\x1b[m".into())
    );
    assert_eq!(changed(|p| p.levels.truncate(1)), BundleError::FewLevels(1));
    assert_eq!(
        changed(|p| p.levels[0] = "../x".into()),
        BundleError::LevelName("../x".into())
    );
    assert_eq!(
        changed(|p| p.levels[2] = "mid".into()),
        BundleError::LevelName("mid".into())
    );
    assert_eq!(
        changed(|p| p.rules[0].text = "x".repeat(MAX_LINE + 1)),
        BundleError::RuleText(0)
    );
    assert_eq!(
        changed(|p| p.rules[1].file = "x".repeat(MAX_LINE + 1)),
        BundleError::RuleText(1)
    );
}

#[test]
fn indices() {
    assert_eq!(changed(|p| p.nodes.clear()), BundleError::NoRoot);
    assert_eq!(
        changed(|p| p.nodes[1].below.level = 3),
        BundleError::LevelRange {
            what: "node",
            index: 1,
            level: 3
        }
    );
    assert_eq!(
        changed(|p| p.nodes[0].own.source = 99),
        BundleError::SourceRange {
            what: "node",
            index: 0,
            rule: 99
        }
    );
    assert_eq!(
        changed(|p| p.networks[1].level = 3),
        BundleError::LevelRange {
            what: "network",
            index: 1,
            level: 3
        }
    );
    assert_eq!(
        changed(|p| p.networks[0].source = 99),
        BundleError::SourceRange {
            what: "network",
            index: 0,
            rule: 99
        }
    );
    assert_eq!(
        changed(|p| p.nodes[2].own.attrs = Attrs::from_bits_retain(0x1001)),
        BundleError::Attributes {
            node: 2,
            bits: 0x1001
        }
    );
    assert_eq!(
        changed(|p| p.nodes[2].below.attrs = Attrs::EXPLICIT),
        BundleError::Attributes { node: 2, bits: 128 }
    );
    assert_eq!(
        changed(|p| p.edges[0].parent = 99),
        BundleError::EdgeRange { edge: 0, node: 99 }
    );
    assert_eq!(
        changed(|p| p.edges[0].child = 99),
        BundleError::EdgeRange { edge: 0, node: 99 }
    );
    let a = node_of(&policy(), b"a");
    assert_eq!(
        changed(|p| p.nodes[a].star = Some(99)),
        BundleError::StarRange { node: a, star: 99 }
    );
}

#[test]
fn edges() {
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'n'; 256]] {
        assert_eq!(
            changed(|p| p.edges[0].name = name.to_vec()),
            BundleError::EdgeName(0)
        );
    }
    assert_eq!(
        changed(|p| p.edges[1].name = p.edges[0].name.clone()),
        BundleError::EdgeTwice(1)
    );
    assert_eq!(changed(|p| p.edges.swap(0, 1)), BundleError::EdgeOrder(1));
    assert_eq!(
        changed(|p| p.nodes[0].edges += 1),
        BundleError::EdgeCount {
            node: 0,
            told: 7,
            found: 6
        }
    );
}

#[test]
fn trees() {
    let root = changed(|p| {
        let last = p.edges.len() - 1;
        p.edges[last].child = 0;
    });
    assert_eq!(root, BundleError::NodeShared(0));
    let a = node_of(&policy(), b"a");
    assert_eq!(
        changed(|p| p.edges[1].child = p.edges[0].child),
        BundleError::NodeShared(a)
    );
    assert_eq!(
        changed(|p| p.nodes[a].star = Some(a as u32)),
        BundleError::NodeShared(a)
    );
    let node = |p: &Policy| Node {
        star: None,
        edges: 0,
        ..p.nodes[0]
    };
    let lost = changed(|p| p.nodes.push(node(p)));
    let count = policy().nodes.len();
    assert_eq!(lost, BundleError::NodeLost(count));
    // Two new nodes that lead to each other.
    let cycle = changed(|p| {
        let first = p.nodes.len() as u32;
        p.nodes.push(Node {
            star: Some(first + 1),
            ..node(p)
        });
        p.nodes.push(Node {
            star: Some(first),
            ..node(p)
        });
    });
    assert_eq!(cycle, BundleError::Cycle(count));
    let ring = changed(|p| {
        let first = p.nodes.len() as u32;
        for index in 0..1000 {
            p.nodes.push(Node {
                star: Some(first + (index + 1) % 1000),
                ..node(p)
            });
        }
    });
    assert_eq!(ring, BundleError::Cycle(count));
    // A chain deeper than a walk goes, in both orders of numbers.
    let chain = |p: &mut Policy, length: u32| {
        let first = p.nodes.len() as u32;
        p.nodes[0].star = Some(first);
        for index in 1..=length {
            let star = (index < length).then_some(first + index);
            p.nodes.push(Node { star, ..node(p) });
        }
    };
    let depth = MAX_DEPTH + 1;
    assert!(matches!(
        changed(|p| chain(p, depth as u32)),
        BundleError::Depth { depth: found, .. } if found == depth
    ));
    let backward = changed(|p| {
        let first = p.nodes.len() as u32;
        for index in 0..100u32 {
            let star = index.checked_sub(1).map(|before| first + before);
            p.nodes.push(Node { star, ..node(p) });
        }
        p.nodes[0].star = Some(first + 99);
    });
    assert!(matches!(backward, BundleError::Depth { .. }));
    let mut fits = policy();
    chain(&mut fits, MAX_DEPTH as u32);
    assert_eq!(Policy::from_bundle(&fits.to_bundle()), Ok(fits));
}

#[test]
fn networks() {
    assert_eq!(
        changed(|p| p.networks[0].prefix = 33),
        BundleError::Network(0)
    );
    assert_eq!(
        changed(|p| p.networks[1].prefix = 8),
        BundleError::Network(1)
    );
    assert_eq!(
        changed(|p| p.networks.swap(0, 1)),
        BundleError::NetworkOrder(1)
    );
    let twice = |p: &mut Policy| {
        p.networks[1] = Network {
            level: 1,
            ..p.networks[0]
        }
    };
    assert_eq!(changed(twice), BundleError::NetworkOrder(1));
}

#[test]
fn the_built_in_rules_must_be_there() {
    let policy = policy();
    let tidegate = node_of(&policy, b"tidegate");
    let of = |path: &str| BundleError::Unprotected(path.into());
    assert_eq!(
        changed(|p| p.nodes[tidegate].own.level = 0),
        of("/etc/tidegate")
    );
    assert_eq!(
        changed(|p| p.nodes[tidegate].below.level = 0),
        of("/etc/tidegate")
    );
    let open = |p: &mut Policy| p.nodes[tidegate].own.attrs |= Attrs::CREATOR;
    assert_eq!(changed(open), of("/etc/tidegate"));
    let low = node_of(&policy, b"low");
    assert_eq!(changed(|p| p.nodes[low].own.level = 1), of("/run/tidegate"));
    let star = |p: &mut Policy| {
        let low = Rule {
            level: 0,
            ..p.nodes[0].below
        };
        p.nodes[tidegate].star = Some(p.nodes.len() as u32);
        p.nodes.push(Node {
            own: low,
            below: low,
            star: None,
            edges: 0,
        });
    };
    assert_eq!(changed(star), of("/etc/tidegate"));
    let bpf = node_of(&policy, b"bpf");
    let edge = |p: &mut Policy| {
        p.nodes[bpf].edges = 1;
        p.edges.push(Edge {
            parent: bpf as u32,
            name: b"x".to_vec(),
            child: p.nodes.len() as u32,
        });
        p.edges
            .sort_by(|a, b| (a.parent, &a.name).cmp(&(b.parent, &b.name)));
        p.nodes.push(Node {
            star: None,
            edges: 0,
            ..p.nodes[0]
        });
    };
    assert_eq!(changed(edge), of("/sys/fs/bpf"));
}

#[test]
fn what_it_tells_is_kept() {
    let policy = policy();
    let source = RuleSource {
        file: "test".into(),
        line: 4,
        text: "low /a/*/c".into(),
    };
    let read = Policy::from_bundle(&policy.to_bundle()).expect("it is a bundle");
    assert!(read.rules.contains(&source));
    assert_eq!(read, policy);
}

#[test]
fn the_options_that_named_it_are_kept() {
    let mut policy = policy();
    policy.options = vec!["--policy=/etc/x.plm".into(), "--permissive".into()];
    assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy.clone()));
    policy.options = vec!["--strict".into(); MAX_OPTIONS + 1];
    assert_eq!(
        Policy::from_bundle(&policy.to_bundle()),
        Err(BundleError::Limit {
            what: "options",
            count: MAX_OPTIONS + 1,
            max: MAX_OPTIONS
        })
    );
}
