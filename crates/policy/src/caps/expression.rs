//! Objects of capabilities as regular expressions over bytes, of which automata are made.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Dot, Hir, Repetition};
use tidegate_bundle::caps::{Objects, Part, Pattern, address_key};
use tidegate_bundle::network::Cidr;

/// Returns the keys of a capability's objects.
pub(super) fn of_objects(objects: &Objects) -> Hir {
    match objects {
        Objects::Named(pattern) => of_pattern(pattern),
        Objects::Network { networks, ports } => {
            let networks = networks.iter().map(|&network| of_network(network));
            Hir::concat(vec![Hir::alternation(networks.collect()), of_ports(*ports)])
        }
    }
}

/// Returns the names that a pattern matches.
pub(super) fn of_pattern(pattern: &Pattern) -> Hir {
    of_parts(&pattern.parts())
}

fn of_parts(parts: &[Part]) -> Hir {
    Hir::concat(parts.iter().map(of_part).collect())
}

fn of_part(part: &Part) -> Hir {
    let not_slash = || class([(0, b'/' - 1), (b'/' + 1, 255)]);
    match part {
        Part::Byte(byte) => Hir::literal([*byte]),
        Part::Any => not_slash(),
        Part::Class { not, ranges } => {
            let ranges = ranges
                .iter()
                .map(|&(low, high)| ClassBytesRange::new(low, high));
            let mut class = ClassBytes::new(ranges);
            if *not {
                class.negate();
            }
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'/', b'/')]));
            Hir::class(Class::Bytes(class))
        }
        Part::Many { slashes, some } => {
            let rest = match slashes {
                true => Hir::dot(Dot::AnyByte),
                false => not_slash(),
            };
            let rest = repeated(rest, 0, None);
            match some {
                true => Hir::concat(vec![not_slash(), rest]),
                false => rest,
            }
        }
        Part::Either(alternatives) => {
            Hir::alternation(alternatives.iter().map(|parts| of_parts(parts)).collect())
        }
    }
}

/// Returns the keys of a network's addresses.
fn of_network((addr, prefix): Cidr) -> Hir {
    let key = address_key(addr);
    let (whole, bits) = (1 + usize::from(prefix / 8), prefix % 8);
    let mut parts = vec![Hir::literal(&key[..whole])];
    let mut rest = key.len() - whole;
    if bits > 0 {
        let low = key[whole];
        parts.push(class([(low, low | 0xff >> bits)]));
        rest -= 1;
    }
    if rest > 0 {
        let rest = rest as u32;
        parts.push(repeated(Hir::dot(Dot::AnyByte), rest, Some(rest)));
    }
    Hir::concat(parts)
}

/// Returns the keys of a range of ports: of those with its first upper byte, of those between, of those with its last.
fn of_ports((first, last): (u16, u16)) -> Hir {
    let [a, b] = first.to_be_bytes();
    let [c, d] = last.to_be_bytes();
    let run = |upper: (u8, u8), lower: (u8, u8)| Hir::concat(vec![class([upper]), class([lower])]);
    if a == c {
        return run((a, a), (b, d));
    }
    let mut runs = vec![run((a, a), (b, 255)), run((c, c), (0, d))];
    if c - a > 1 {
        runs.push(run((a + 1, c - 1), (0, 255)));
    }
    Hir::alternation(runs)
}

/// Returns one byte of these ranges.
fn class<const N: usize>(ranges: [(u8, u8); N]) -> Hir {
    let ranges = ranges.map(|(low, high)| ClassBytesRange::new(low, high));
    Hir::class(Class::Bytes(ClassBytes::new(ranges)))
}

/// Returns so many of something.
fn repeated(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition {
        min,
        max,
        greedy: true,
        sub: Box::new(sub),
    })
}
