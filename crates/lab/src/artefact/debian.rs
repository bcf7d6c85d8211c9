//! Debian trees by mmdebstrap. The mirror is mmdebstrap's own default, so that
//! a suite's name is all that has to be said.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// One run of mmdebstrap.
#[derive(Debug, Default)]
pub(super) struct Bootstrap<'a> {
    /// The suite's name, such as `trixie`.
    pub suite: &'a str,
    /// mmdebstrap's variant: `minbase` installs, `extract` only unpacks,
    /// `custom` fetches nothing but the package lists.
    pub variant: &'a str,
    /// Packages to include.
    pub include: &'a [&'a str],
    /// Files that dpkg leaves out.
    pub exclude: &'a [&'a str],
    /// Shell run at the end; `$1` is the tree.
    pub customize: Option<&'a str>,
}

impl Bootstrap<'_> {
    /// Everything that decides what comes out, for the recipe's hash.
    pub(super) fn recipe(&self) -> String {
        self.arguments().join("\0")
    }

    fn arguments(&self) -> Vec<String> {
        let mut args = vec![
            format!("--variant={}", self.variant),
            "--format=tar".into(),
            "--architectures=amd64".into(),
            "--aptopt=APT::Install-Recommends \"false\"".into(),
            // A mirror that lags, or a clock that runs ahead, must not stop the
            // lab; signatures are checked all the same.
            "--aptopt=Acquire::Check-Valid-Until \"false\"".into(),
        ];
        args.extend(
            self.exclude
                .iter()
                .map(|glob| format!("--dpkgopt=path-exclude={glob}")),
        );
        if !self.include.is_empty() {
            args.push(format!("--include={}", self.include.join(",")));
        }
        // where packages are only unpacked mmdebstrap comes to no other hook
        let hook = match self.variant {
            "extract" => "extract",
            _ => "customize",
        };
        args.extend(
            self.customize
                .map(|script| format!("--{hook}-hook={script}")),
        );
        args.push(self.suite.into());
        args
    }

    /// Writes the tree as a tar file: the one format that keeps owners and
    /// modes whether or not we are root.
    pub(super) fn to_tar(&self, tar: &Path) -> Result<()> {
        let log = tar.with_extension("log");
        let status = Command::new("mmdebstrap")
            .args(self.arguments())
            .arg(tar)
            // Fixed, so that the same packages give the same bytes.
            .env("SOURCE_DATE_EPOCH", "1767225600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .status()
            .context("mmdebstrap (is it installed? scripts/setup.sh installs it)")?;
        if !status.success() {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = &lines[lines.len().saturating_sub(12)..];
            bail!("mmdebstrap of {} failed:\n{}", self.suite, tail.join("\n"));
        }
        fs::remove_file(log)?;
        Ok(())
    }
}

/// Unpacks `tar` (or only `member` of it) into `dir`, owned by whoever we are.
pub(super) fn unpack(tar: &Path, dir: &Path, member: Option<&str>) -> Result<()> {
    fs::create_dir_all(dir)?;
    run(Command::new("tar")
        .arg("-xf")
        .arg(tar)
        .arg("-C")
        .arg(dir)
        // Device nodes need root, and nothing here needs device nodes.
        .args(["--no-same-owner", "--exclude=./dev"])
        .args(member))
}

/// Runs a command to its end and reports its standard error if it fails.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        bail!(
            "{} failed ({}): {}",
            command.get_program().to_string_lossy(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mirror_is_named() {
        let trixie = Bootstrap {
            suite: "trixie",
            variant: "minbase",
            ..Default::default()
        };
        assert_eq!(trixie.arguments().last().unwrap(), "trixie");
        assert!(!trixie.recipe().contains("://"));
    }

    #[test]
    fn a_script_runs_in_every_variant() {
        let of = |variant| {
            let bootstrap = Bootstrap {
                suite: "trixie",
                variant,
                customize: Some("true"),
                ..Default::default()
            };
            bootstrap.recipe()
        };
        assert!(of("extract").contains("--extract-hook=true"));
        assert!(of("custom").contains("--customize-hook=true"));
    }
}
