//! What reads the sources: formatters, linters, licences, and the oldest compiler that will do.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A check: its name, and the command that has to succeed.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// The command.
    pub command: Command,
}

/// All checks that are commands. What is not installed is said, and is a check that fails: setup installs it.
pub fn checks(target: &Path) -> Vec<Check> {
    let check = |name, command| Check { name, command };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut format = Command::new(cargo);
    format.args(["fmt", "--all", "--check"]);
    let mut deny = Command::new("scripts/deny.sh");
    deny.env("CARGO_TARGET_DIR", target);
    vec![
        check("format of Rust", format),
        check(
            "format of C",
            shell(
                "git ls-files -z '*.c' '*.h' ':!*vmlinux*' | xargs -0 clang-format-19 --dry-run --Werror",
            ),
        ),
        // whether each header compiles alone, too (`alone`), takes libbpf's headers, which a build has made
        check(
            "layout of the kernel's side",
            shell("scripts/kernel-check.py layers owned table"),
        ),
        // mmdebstrap's hooks are sourced, by sh
        check(
            "scripts of images",
            shell("shellcheck --shell=sh crates/lab/guest/*.sh"),
        ),
        check(
            "scripts",
            shell(
                "git ls-files -z '*.sh' .ci/run ':!crates/lab/guest/*.sh' | xargs -0 shellcheck --external-sources",
            ),
        ),
        check("documentation", shell("scripts/docs.py")),
        check("licences, sources and advisories", deny),
    ]
}

/// The manual has a page for every program, once they are built, and for each format.
pub fn manual(programs: &Path, target: &Path) -> Check {
    let script = r#"for name in tidegate tidegate-exporter tidegate-lab; do "$0/$name" man "$1" || exit 1; done
        [ -s "$1/tidegate-why.1" ] && [ -s "$1/tidegate-exporter.1" ] && [ -s "$1/tidegate-lab-run.1" ] &&
        python3 scripts/man.py 0 "$1" && [ -s "$1/tidegate.plm.5" ] && [ -s "$1/tidegate.caps.5" ]"#;
    let mut command = shell(script);
    command.arg(programs).arg(target.join("lint-man"));
    Check {
        name: "manual",
        command,
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", script]);
    command
}

/// No package needs a newer Rust than the workspace says that it does. That the workspace's own code does not is what
/// clippy's `incompatible_msrv` says.
///
/// # Errors
/// The packages that do.
pub fn oldest_rust() -> Result<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", crate::cargo::TRIPLE])
        .output()?;
    let metadata: Value = serde_json::from_slice(&out.stdout).context("cargo metadata")?;
    newer(&metadata)
}

/// Those of the packages that need a newer Rust than any of the workspace's says.
fn newer(metadata: &Value) -> Result<String> {
    let list = |pointer: &str| metadata[pointer].as_array().cloned().unwrap_or_default();
    let members = list("workspace_members");
    let needs = |package: &Value| package["rust_version"].as_str().and_then(version);
    let (own, others): (Vec<_>, Vec<_>) = list("packages")
        .into_iter()
        .partition(|package| members.contains(&package["id"]));
    let ours = own
        .iter()
        .filter_map(needs)
        .min()
        .context("the workspace has a rust-version")?;
    let newer: Vec<String> = others
        .iter()
        .filter(|package| needs(package).is_some_and(|version| version > ours))
        .map(|package| {
            format!(
                "{} {} needs Rust {}",
                package["name"], package["version"], package["rust_version"]
            )
        })
        .collect();
    if !newer.is_empty() {
        bail!("{}", newer.join("\n"));
    }
    Ok(format!(
        "{} packages build with Rust {}.{}",
        others.len(),
        ours.0,
        ours.1
    ))
}

/// The first two numbers of `1.88` or `1.88.0`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next().unwrap_or(Ok(0)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(needs: &str) -> Value {
        serde_json::json!({
            "workspace_members": ["own"],
            "packages": [
                {"id": "own", "name": "own", "version": "0.1.0", "rust_version": "1.88"},
                {"id": "other", "name": "other", "version": "2.0.0", "rust_version": needs},
            ],
        })
    }

    #[test]
    fn a_package_that_needs_a_newer_rust_is_named() {
        assert!(newer(&metadata("1.88.0")).is_ok());
        assert!(newer(&metadata("1.9")).is_ok());
        let error = newer(&metadata("1.89")).unwrap_err().to_string();
        assert!(error.contains("other"), "{error}");
    }
}
