//! Compiles the kernel's decisions for this machine, the same source that the monitor decides by.

use std::env;
use std::path::Path;

fn main() {
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let kernel = Path::new(&here).join("../../kernel");
    for file in [
        "abi/automaton.h",
        "abi/caps_image.h",
        "lib/automaton.h",
        "caps/rules.h",
    ] {
        println!("cargo:rerun-if-changed={}", kernel.join(file).display());
    }
    println!("cargo:rerun-if-changed=src/decide.c");
    cc::Build::new()
        .file("src/decide.c")
        .include(kernel)
        .warnings_into_errors(true)
        .compile("tidegate_caps");
}
