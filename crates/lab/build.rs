//! Builds anew when a definition is added: `include_dir!` sees changes only.

fn main() {
    for dir in ["systems", "workloads", "published"] {
        println!("cargo::rerun-if-changed={dir}");
    }
}
