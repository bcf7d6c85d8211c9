//! The name that programs link to. The library itself is called by Cargo's rules, and installed under this name.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtidegate-restrict.so.0");
}
