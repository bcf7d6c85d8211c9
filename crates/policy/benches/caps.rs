//! What authorising a bind costs in user space: by one walk, and by asking one capability after another as Lava did, for lists and
//! names of different lengths.
//!
//! `cargo bench -p tidegate-policy --bench caps`; the sizes of the automata are written first.

use std::fmt::Write;
use std::hint::black_box;

use divan::Bencher;
use tidegate_bundle::caps::{Capabilities, Class, Object};
use tidegate_policy::caps::{self, decide};

fn main() {
    for count in COUNTS {
        let (_, automaton) = &caps(count).subjects[0].automata[0];
        println!(
            "{count} capabilities: {} states, {} classes, {} answers, {} bytes",
            automaton.accepts.len(),
            automaton.width,
            automaton.answers.len(),
            automaton.bytes()
        );
    }
    divan::main();
}

const COUNTS: [usize; 4] = [1, 10, 100, 1_000];

/// A subject with so many capabilities, of which the last is for the files that are asked about.
fn caps(count: usize) -> Capabilities {
    let mut text = "subject tool {\n".to_owned();
    for at in 1..count {
        writeln!(text, "file /srv/data/{at}/** read write").expect("it is text");
    }
    text += "file /srv/own/** read\n}\n";
    let compiled = caps::compile_str("bench.caps", &text).expect("it compiles");
    compiled.capabilities
}

/// A file with a path of so many bytes.
fn file(length: usize) -> Object {
    let mut path = b"/srv/own/".to_vec();
    path.resize(length, b'x');
    Object::Path(Class::File, path)
}

#[divan::bench(args = COUNTS)]
fn a_walk_by_capabilities(bencher: Bencher, count: usize) {
    let (caps, file) = (caps(count), file(32));
    assert_ne!(caps.lookup(0, &file).rights, 0);
    bencher.bench(|| caps.lookup(0, black_box(&file)).rights);
}

#[divan::bench(args = [16, 64, 256])]
fn a_walk_by_length(bencher: Bencher, length: usize) {
    let (caps, file) = (caps(100), file(length));
    bencher.bench(|| caps.lookup(0, black_box(&file)).rights);
}

#[divan::bench(args = COUNTS)]
fn one_after_another(bencher: Bencher, count: usize) {
    let (caps, file) = (caps(count), file(32));
    bencher.bench(|| decide::allowed(&caps, 0, black_box(&file)).rights);
}

#[divan::bench(args = COUNTS)]
fn compiling(bencher: Bencher, count: usize) {
    bencher.bench(|| caps(black_box(count)));
}
