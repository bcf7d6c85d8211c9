//! Compiles the reference monitor and the recorder, and generates their Rust view: the
//! skeletons from the objects' BTF, names and numbers from `kernel/abi/`.

mod abi;
mod classmap {
    include!("../../flask/classmap.rs");
}

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

/// Older compilers build objects that the verifier refuses.
const CLANG: u32 = 19;

fn main() {
    let kernel =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../kernel");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed={}", kernel.display());
    println!("cargo:rerun-if-env-changed=TIDEGATE_CLANG");

    let mut flags: Vec<&OsStr> = [
        "-mcpu=v3",
        "-D__TARGET_ARCH_x86",
        "-I/usr/include/x86_64-linux-gnu", // asm/types.h
        "-Wall",
        "-Werror",
        "-I",
    ]
    .iter()
    .map(OsStr::new)
    .collect();
    flags.push(kernel.as_os_str());
    // the names of classes and permissions
    let map = std::fs::read_to_string(kernel.join("te/classmap")).expect("kernel/te/classmap");
    let header = classmap::header(&classmap::classmap(&map));
    std::fs::write(out.join("te_classes.h"), header).expect("the output directory is writable");
    flags.extend([OsStr::new("-I"), out.as_os_str()]);
    let clang = clang();
    for name in ["tidegate", "recorder"] {
        let source = format!("{name}.bpf.c");
        let built = SkeletonBuilder::new()
            .source(kernel.join(&source))
            .clang(&clang)
            .clang_args(flags.clone())
            .obj(out.join(format!("{name}.bpf.o")))
            .build_and_generate(out.join(format!("{name}.skel.rs")));
        if let Err(e) = built {
            eprintln!("{e:#}");
            println!("cargo:error=kernel/{source} does not compile: {e:#}");
            std::process::exit(1);
        }
    }

    // the monitor's object is opened as it is: of the skeleton, whose functions have a part for each program and take a compiler
    // minutes, only the types are taken
    let skeleton =
        std::fs::read_to_string(out.join("tidegate.skel.rs")).expect("it was just built");
    let types = types(&skeleton).expect("a skeleton has a module `types`");
    std::fs::write(out.join("tidegate.types.rs"), types).expect("the output directory is writable");

    let object = std::fs::read(out.join("tidegate.bpf.o")).expect("it was just built");
    let abi = format!(
        "{}\n/// Which build the monitor is of.\npub(crate) const BUILD: &str = \"{}\";\n",
        abi::generate(&kernel),
        &blake3::hash(&object).to_hex()[..16],
    );
    std::fs::write(out.join("abi.rs"), abi).expect("the output directory is writable");
}

/// A skeleton's module `types`.
fn types(skeleton: &str) -> Option<&str> {
    let (_, rest) = skeleton.split_once("\n    pub mod types {\n")?;
    let end = rest.find("\n    }\n")?;
    let begin = skeleton.len() - rest.len() - "    pub mod types {\n".len();
    Some(&skeleton[begin..begin + "    pub mod types {\n".len() + end + "\n    }\n".len()])
}

/// The compiler: `$TIDEGATE_CLANG`, `clang-19`, or a `clang` that is new enough.
fn clang() -> PathBuf {
    if let Some(given) = env::var_os("TIDEGATE_CLANG") {
        return given.into();
    }
    ["clang-19", "clang"]
        .into_iter()
        .find(|name| version(name).is_some_and(|v| v >= CLANG))
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            println!(
                "cargo:error=no clang {CLANG} or later: install the package clang-{CLANG}, \
                 or name one in TIDEGATE_CLANG"
            );
            std::process::exit(1);
        })
}

/// The major version of a compiler, if it runs.
fn version(clang: &str) -> Option<u32> {
    let out = Command::new(clang).arg("-dumpversion").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    text.split('.').next()?.trim().parse().ok()
}
