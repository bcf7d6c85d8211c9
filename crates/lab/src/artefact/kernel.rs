//! Stock Debian kernels: the newest build of a series, from the first suite
//! that has one, with its modules as a disk of their own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use super::cache::{Cache, remove_tree};
use super::debian::{Bootstrap, run, unpack};
use super::{Content, Tools, bzimage, ext4};
use crate::progress::Progress;

/// Modules that must be in before the root can be mounted, in this order; each
/// one's dependencies go before it. crc32c-intel comes first because ext4 takes
/// the checksum it finds at mount time; 7.2 has it built in.
const EARLY: [&str; 3] = ["crc32c-intel", "nd_pmem", "nfit"];

/// Changed when [`arrange`] comes to leave other files.
const LAYOUT: &str = "2";

/// A kernel series of Debian's cloud flavour, such as 6.12.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kernel {
    series: Cow<'static, str>,
}

impl Kernel {
    /// Linux 6.12, trixie's own.
    pub const V6_12: Self = Self {
        series: Cow::Borrowed("6.12"),
    };
    /// Linux 7.2.
    pub const V7_2: Self = Self {
        series: Cow::Borrowed("7.2"),
    };
    /// The kernels that Tidegate is tested on.
    pub const SUPPORTED: [Self; 2] = [Self::V6_12, Self::V7_2];

    /// Where to look, the likeliest and cheapest first.
    fn suites(&self) -> &'static [&'static str] {
        if *self == Self::V6_12 {
            &["trixie"]
        } else {
            &["trixie-backports", "forky", "sid"]
        }
    }
}

impl FromStr for Kernel {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Vec<&str> = text.split('.').collect();
        ensure!(
            numbers.len() == 2
                && numbers
                    .iter()
                    .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())),
            "a kernel series is two numbers, such as 6.12, not {text:?}"
        );
        Ok(Self {
            series: text.to_owned().into(),
        })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.series)
    }
}

/// A kernel in the cache.
#[derive(Debug, Clone)]
pub struct KernelFiles {
    dir: PathBuf,
    /// The release, as `uname -r` says it.
    pub release: String,
}

impl KernelFiles {
    /// The kernel as Debian ships it.
    #[must_use]
    pub fn vmlinuz(&self) -> PathBuf {
        self.dir.join("vmlinuz")
    }

    /// The same kernel as its own decompressor leaves it.
    #[must_use]
    pub fn vmlinux(&self) -> PathBuf {
        self.dir.join("vmlinux")
    }

    /// An ext4 image to be mounted on /usr/lib/modules.
    #[must_use]
    pub fn modules(&self) -> PathBuf {
        self.dir.join("modules.ext4")
    }

    /// Modules for the initramfs, in loading order.
    ///
    /// # Errors
    /// When the cache was damaged.
    pub fn early_modules(&self) -> Result<Vec<PathBuf>> {
        let list = fs::read_to_string(self.dir.join("early/order"))?;
        Ok(list
            .lines()
            .map(|name| self.dir.join("early").join(name))
            .collect())
    }
}

pub(super) fn ensure(
    cache: &Cache,
    progress: &Progress,
    kernel: &Kernel,
    tools: impl FnOnce() -> Result<Tools>,
) -> Result<KernelFiles> {
    let script = fetch_script(kernel);
    let images = ext4::recipe();
    let mut recipe = vec![LAYOUT, &script, &images];
    recipe.extend(kernel.suites());
    recipe.extend(EARLY);
    let dir = cache.ensure(&format!("kernel-{kernel}"), &recipe, |dir| {
        let step = progress.step(&format!("Linux {kernel} from Debian"));
        let tree = dir.join("tree");
        fetch(kernel, &script, &tree)?;
        arrange(&tools()?, &tree, dir)?;
        remove_tree(&tree)?;
        step.done();
        Ok(())
    })?;
    let release = fs::read_to_string(dir.join("release"))?;
    Ok(KernelFiles { dir, release })
}

/// Shell for mmdebstrap's customize hook: downloads the newest image of the
/// series into /debs, with the parts that newer Debian splits off. Installing
/// would pull in an initramfs generator that nothing here uses.
fn fetch_script(kernel: &Kernel) -> String {
    let pattern = kernel.series.replace('.', r"\.");
    format!(
        r#"set -eu
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
mkdir "$1/debs"
cd "$1/debs"
image=$(apt-cache pkgnames linux-image-{kernel} | grep -E '^linux-image-{pattern}(\.[0-9]+)?(\+[^-]*)?-cloud-amd64$' | sort -V | tail -n 1)
[ -n "$image" ] || exit 0
v=${{image#linux-image-}}
apt-get download $(apt-cache pkgnames linux- | grep -xF -e "$image" -e "linux-binary-$v" -e "linux-modules-$v" -e "linux-base-$v")
"#
    )
}

fn fetch(kernel: &Kernel, script: &str, tree: &Path) -> Result<()> {
    fs::create_dir(tree)?;
    let tar = tree.join("debs.tar");
    for suite in kernel.suites() {
        let lists = Bootstrap {
            suite,
            variant: "custom",
            customize: Some(script),
            ..Default::default()
        };
        lists.to_tar(&tar)?;
        unpack(&tar, tree, Some("./debs"))?;
        fs::remove_file(&tar)?;
        let mut found = false;
        for deb in fs::read_dir(tree.join("debs"))? {
            run(Command::new("dpkg-deb")
                .arg("-x")
                .arg(deb?.path())
                .arg(tree))?;
            found = true;
        }
        if found {
            return Ok(());
        }
    }
    bail!(
        "Debian has no cloud kernel {kernel} in {} any more",
        kernel.suites().join(", ")
    )
}

/// Turns an unpacked kernel package into what [`KernelFiles`] promises.
fn arrange(tools: &Tools, tree: &Path, dir: &Path) -> Result<()> {
    let modules = tree.join("usr/lib/modules");
    let release = fs::read_dir(&modules)?
        .next()
        .context("a kernel without modules")??
        .file_name();
    let release = release.to_str().context("release not in UTF-8")?;
    let own = modules.join(release);

    let packaged = [
        own.join("vmlinuz"),
        tree.join(format!("boot/vmlinuz-{release}")),
    ];
    let packaged = packaged
        .iter()
        .find(|path| path.exists())
        .context("a kernel without vmlinuz")?;
    let vmlinuz = dir.join("vmlinuz");
    fs::rename(packaged, &vmlinuz)?;
    bzimage::unpack(tools, &vmlinuz, &dir.join("vmlinux"))?;

    run(tools
        .command("usr/bin/kmod", "depmod")
        .arg("-b")
        .arg(tree.join("usr"))
        .arg(release))?;
    let early = dir.join("early");
    fs::create_dir(&early)?;
    let mut order = String::new();
    for module in loading_order(&fs::read_to_string(own.join("modules.dep"))?, &EARLY) {
        let name = module.rsplit('/').next().unwrap_or(&module);
        fs::copy(own.join(&module), early.join(name))?;
        order.push_str(name);
        order.push('\n');
    }
    fs::write(early.join("order"), order)?;
    ext4::make(
        tools,
        "modules",
        Content::Directory(&modules),
        0,
        &dir.join("modules.ext4"),
    )?;
    fs::write(dir.join("release"), release)?;
    Ok(())
}

/// The paths of `wanted` and all they need, from the text of modules.dep.
/// What is not there is built in.
fn loading_order(modules_dep: &str, wanted: &[&str]) -> Vec<String> {
    let needs: HashMap<&str, (&str, &str)> = modules_dep
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| {
            let file = path.rsplit('/').next().unwrap_or(path);
            (file.split('.').next().unwrap_or(file), (path, needs))
        })
        .collect();
    let mut order: Vec<String> = Vec::new();
    for (path, needs) in wanted.iter().filter_map(|name| needs.get(name)) {
        // modules.dep lists a module's needs nearest first.
        for module in needs.split_whitespace().rev().chain([*path]) {
            if !order.iter().any(|m| m == module) {
                order.push(module.to_owned());
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_two_numbers() {
        assert_eq!("6.12".parse::<Kernel>().unwrap(), Kernel::V6_12);
        for wrong in ["6", "6.12.1", "6.x", "6.12;reboot", ""] {
            assert!(wrong.parse::<Kernel>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn dependencies_load_first_and_once() {
        let dep = "kernel/a/nd_pmem.ko.xz: kernel/a/nd_btt.ko.xz kernel/a/libnvdimm.ko.xz\n\
                   kernel/b/nfit.ko.xz: kernel/a/libnvdimm.ko.xz\n\
                   kernel/a/libnvdimm.ko.xz:\n";
        assert_eq!(
            loading_order(dep, &EARLY),
            [
                "kernel/a/libnvdimm.ko.xz",
                "kernel/a/nd_btt.ko.xz",
                "kernel/a/nd_pmem.ko.xz",
                "kernel/b/nfit.ko.xz"
            ]
        );
    }

    #[test]
    fn the_pattern_matches_the_series_only() {
        let script = fetch_script(&Kernel::V7_2);
        assert!(script.contains(r"^linux-image-7\.2(\.[0-9]+)?(\+[^-]*)?-cloud-amd64$"));
    }
}
