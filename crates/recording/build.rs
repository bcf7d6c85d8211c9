//! Compiles the kernel's decisions for this machine: the same source that the monitor
//! decides by.

use std::env;
use std::path::Path;

fn main() {
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let kernel = Path::new(&here).join("../../kernel");
    for header in ["abi/policy.h", "abi/record.h", "lomac/rules.h"] {
        println!("cargo:rerun-if-changed={}", kernel.join(header).display());
    }
    println!("cargo:rerun-if-changed=src/rules.c");
    cc::Build::new()
        .file("src/rules.c")
        .include(kernel)
        .warnings_into_errors(true)
        .compile("tidegate_rules");
}
