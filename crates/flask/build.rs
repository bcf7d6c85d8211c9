//! Compiles the kernel's decisions for this machine, the same source that the monitor decides by, and writes the
//! names of classes, permissions and the image's parts for Rust.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

include!("classmap.rs");

fn main() {
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let kernel = Path::new(&here).join("../../kernel");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    for file in [
        "abi/automaton.h",
        "te/classmap",
        "abi/te_image.h",
        "lib/automaton.h",
        "te/rules.h",
        "te/labelling.h",
    ] {
        println!("cargo:rerun-if-changed={}", kernel.join(file).display());
    }
    for file in ["classmap.rs", "src/decide.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let read = |file: &str| fs::read_to_string(kernel.join(file)).expect("the kernel's sources");
    let classes = classmap(&read("te/classmap"));
    fs::write(out.join("te_classes.h"), header(&classes)).expect("the output directory");
    let rust = names(&classes) + &parts(&read("abi/te_image.h"));
    fs::write(out.join("names.rs"), rust).expect("the output directory");
    cc::Build::new()
        .file("src/decide.c")
        .include(kernel)
        .include(&out)
        .warnings_into_errors(true)
        .compile("tidegate_te");
}

/// The classes for Rust.
fn names(classes: &[Class]) -> String {
    let mut out = String::from(
        "/// Classes that Linux asks about, from number 1, and their permissions from bit 0.\n\
         pub const CLASSES: &[(&str, &[&str])] = &[\n",
    );
    for class in classes {
        let _ = writeln!(out, "({:?}, &{:?}),", class.name, class.permissions);
    }
    out + "];\n"
}

/// Where each part of `struct te_image` is, in words.
fn parts(header: &str) -> String {
    let fields = header
        .split_once("struct te_image {")
        .and_then(|(_, rest)| rest.split_once("\n};"))
        .expect("image.h has struct te_image")
        .0;
    let names: Vec<&str> = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("u32 ")?.split(';').next())
        .collect();
    let mut out = String::from(
        "/// Words of `struct te_image`, by their places.\n#[allow(missing_docs)]\npub(crate) mod part {\n",
    );
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(out, "pub const {}: usize = {index};", name.to_uppercase());
    }
    let _ = writeln!(out, "pub const COUNT: usize = {};\n}}", names.len());
    out
}
