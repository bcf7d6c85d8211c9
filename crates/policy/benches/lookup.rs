//! What a look-up costs in user space against the number of rules, and what
//! compiling and loading a map of that size cost.
//!
//! `cargo bench -p tidegate-policy` takes some seconds.

use std::fmt::Write;
use std::hint::black_box;

use divan::Bencher;
use tidegate_bundle::Policy;
use tidegate_policy::map;

const SIZES: [usize; 3] = [10, 1_000, 100_000];

fn main() {
    divan::main();
}

/// A map of `rules` paths, four components deep and with 20 to 100 siblings at
/// each level; a wildcard stands beside every tenth.
fn map(rules: usize) -> String {
    let mut map = "levels system > user > untrusted\nsystem /\n".to_owned();
    for rule in 0..rules - 1 {
        let (a, b, c) = (rule % 20, rule / 20 % 50, rule / 1_000);
        let dir = if rule % 10 == 9 {
            "*".to_owned()
        } else {
            format!("package-{b}")
        };
        writeln!(map, "user /srv/area-{a}/{dir}/file-{b}-{c} lowwrite").expect("memory");
    }
    map
}

fn policy(rules: usize) -> Policy {
    map::compile_str("bench", &map(rules))
        .expect("it compiles")
        .policy
}

/// A path that a rule names.
#[divan::bench(args = SIZES)]
fn named(bencher: Bencher, rules: usize) {
    let policy = policy(rules);
    bencher.bench(|| policy.lookup(black_box(b"/srv/area-3/package-0/file-0-0")));
}

/// A path that goes on far below the last rule that covers it.
#[divan::bench(args = SIZES)]
fn below(bencher: Bencher, rules: usize) {
    let policy = policy(rules);
    let path = b"/srv/area-3/package-0/file-0-0/a/long/way/below/all/that/is/named";
    bencher.bench(|| policy.lookup(black_box(path)));
}

/// A path that leaves the map at its first component: most of a system's.
#[divan::bench(args = SIZES)]
fn elsewhere(bencher: Bencher, rules: usize) {
    let policy = policy(rules);
    bencher.bench(|| policy.lookup(black_box(b"/usr/lib/x86_64-linux-gnu/libc.so.6")));
}

/// Text to policy.
#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn compile(bencher: Bencher, rules: usize) {
    let map = map(rules);
    bencher.bench(|| map::compile_str("bench", black_box(&map)));
}

/// Bundle to policy, all checks included.
#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn load(bencher: Bencher, rules: usize) {
    let bundle = policy(rules).to_bundle();
    bencher.bench(|| Policy::from_bundle(black_box(&bundle)));
}
