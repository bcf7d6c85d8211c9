//! What compiling file contexts costs, and what a look-up costs in user space.
//!
//! `FILE_CONTEXTS=/etc/selinux/default/contexts/files/file_contexts cargo bench -p tidegate-policy --bench contexts`; without
//! the variable, lines like a policy's are made. The sizes of the automata are written first.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::OnceLock;

use divan::Bencher;
use tidegate_bundle::te::contexts::{FileContexts, Kind};
use tidegate_policy::te::contexts::{self, Text, Texts};

fn main() {
    let contexts = contexts();
    for automaton in &contexts.automata {
        println!(
            "{} states, {} classes, {} answers, {} bytes",
            automaton.accepts.len(),
            automaton.width,
            automaton.answers.len(),
            automaton.bytes()
        );
    }
    divan::main();
}

fn compiled() -> FileContexts {
    match std::env::var_os("FILE_CONTEXTS") {
        Some(path) => contexts::compile_files(Path::new(&path)),
        None => contexts::compile(&made()),
    }
    .expect("they compile")
}

fn contexts() -> &'static FileContexts {
    static CONTEXTS: OnceLock<FileContexts> = OnceLock::new();
    CONTEXTS.get_or_init(compiled)
}

/// A thousand lines for services, below a few general ones.
fn made() -> Texts {
    let mut text =
        "/.* u:r:default_t\n/usr/(.*/)?bin(/.*)? u:r:bin_t\n/usr/(.*/)?lib(/.*)? u:r:lib_t\n"
            .to_owned();
    for service in 0..250 {
        for line in [
            "/etc/service-N(/.*)? u:r:sN_etc_t",
            "/usr/sbin/service-N -- u:r:sN_exec_t",
            "/var/lib/service-N(/.*)? u:r:sN_lib_t",
            "/var/log/service-N.* -- u:r:sN_log_t",
        ] {
            writeln!(text, "{}", line.replace('N', &service.to_string())).expect("memory");
        }
    }
    Texts {
        policy: Text {
            name: "made".into(),
            text,
        },
        ..Texts::default()
    }
}

/// Texts to automata.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn compile() -> FileContexts {
    compiled()
}

/// A path of ordinary length.
#[divan::bench]
fn lookup(bencher: Bencher) {
    let contexts = contexts();
    let path = b"/usr/lib/x86_64-linux-gnu/libc.so.6";
    bencher.bench(|| contexts.lookup(black_box(path), Kind::Regular));
}

/// A bundle's bytes to automata, all checks included.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn load(bencher: Bencher) {
    let bytes = contexts().to_bytes();
    bencher.bench(|| FileContexts::from_bytes(black_box(&bytes)));
}
