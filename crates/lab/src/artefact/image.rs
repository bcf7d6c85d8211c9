//! The root filesystems: Debian trixie with what tests and the story need; with the systems
//! that are measured and the programs that they are measured by; with AppArmor's own regression
//! tests; and a whole Debian with systemd, to live in.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail};

use super::cache::Cache;
use super::debian::Bootstrap;
use super::{Content, Tools, ext4, labels};
use crate::progress::Progress;

const ROOT: &[&str] = &[
    "acl",
    "attr",
    "bpftool",
    "e2fsprogs",
    "file",
    "fuse3",
    "gcc",
    "git",
    "iproute2",
    "keyutils",
    "kmod",
    "less",
    "libc6-dev",
    "libfuse3-dev",
    "liburing-dev",
    "make",
    "nano",
    "ncat",
    "netbase",
    "passwd",
    "pkgconf",
    "procps",
    "python3-minimal",
    "strace",
    "sudo",
    "util-linux",
];

const MEASURED: &[&str] = &[
    "acl",
    "apache2",
    "apparmor",
    "apparmor-profiles",
    "attr",
    "bc",
    "bison",
    "bpftool",
    "checkpolicy",
    "e2fsprogs",
    "flex",
    "gcc",
    "kmod",
    "libc6-dev",
    "libelf-dev",
    "linux-source-6.12",
    "make",
    "netbase",
    "nginx-light",
    "passwd",
    "policycoreutils",
    "procps",
    "python3-minimal",
    "selinux-policy-default",
    "selinux-utils",
    "semodule-utils",
    "stress-ng",
    "util-linux",
    "wrk",
    "xz-utils",
];

/// What AppArmor's regression tests are made by, and what they call.
const APPARMOR: &[&str] = &[
    "adduser",
    "apparmor",
    "attr",
    "bpftool",
    "dbus-daemon",
    "dosfstools",
    "e2fsprogs",
    "fuse-overlayfs",
    "gcc",
    "iproute2",
    "kmod",
    "libapparmor-dev",
    "libc6-dev",
    "libdbus-1-dev",
    "liburing-dev",
    "make",
    "mount",
    "netbase",
    "passwd",
    "perl",
    "pkgconf",
    "procps",
    "python3-minimal",
    "strace",
    "sudo",
    "util-linux",
];

/// A server and a workstation in one.
const WHOLE: &[&str] = &[
    // the system
    "adduser",
    "apt-utils",
    "bash-completion",
    "bsdutils",
    "ca-certificates",
    "cron",
    "dbus",
    "dbus-user-session",
    "initramfs-tools",
    "iproute2",
    "kexec-tools",
    "kmod",
    "libnss-myhostname",
    "libpam-systemd",
    "linux-image-cloud-amd64",
    "locales",
    "logrotate",
    "man-db",
    "netbase",
    "openssh-client",
    "openssh-server",
    "polkitd",
    "procps",
    "rsyslog",
    "sudo",
    "systemd-sysv",
    "systemd-timesyncd",
    "udev",
    "unattended-upgrades",
    "zstd",
    // a server
    "curl",
    "nginx-light",
    "php-fpm",
    "postgresql",
    "rsync",
    // a workstation
    "build-essential",
    "busybox-static",
    "cargo",
    "crun",
    "fuse-overlayfs",
    "git",
    "gnupg",
    "less",
    "lynx",
    "nano",
    "nodejs",
    "npm",
    "podman",
    "python3-pip",
    "python3-venv",
    "systemd-container",
    "tmux",
    "uidmap",
    "vim-tiny",
    "zsh",
];

/// Which root filesystem a machine boots from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Image {
    /// For tests and the story.
    #[default]
    Root,
    /// For measuring: every system's tools and policy, with SELinux's labels written.
    Measured,
    /// For AppArmor's own regression tests, which lie built in `/usr/src/apparmor`.
    AppArmor,
    /// A whole Debian, which its own systemd runs.
    Whole,
}

impl FromStr for Image {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "root" => Ok(Self::Root),
            "measured" => Ok(Self::Measured),
            "apparmor" => Ok(Self::AppArmor),
            "whole" => Ok(Self::Whole),
            _ => bail!("an image is root, measured, apparmor or whole, not {text:?}"),
        }
    }
}

impl Image {
    /// Whether its own init runs the machine.
    pub(crate) fn has_systemd(self) -> bool {
        self == Self::Whole
    }

    /// The artefact's kind.
    fn kind(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Measured => "measured",
            Self::AppArmor => "apparmor",
            Self::Whole => "whole",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Root => "root image, Debian trixie",
            Self::Measured => "image of the measured systems, Debian trixie",
            Self::AppArmor => "image of AppArmor's regression tests, Debian trixie",
            Self::Whole => "image of a whole Debian trixie",
        }
    }

    fn tree(self) -> Bootstrap<'static> {
        Bootstrap {
            suite: "trixie",
            variant: "minbase",
            include: match self {
                Self::Root => ROOT,
                Self::Measured => MEASURED,
                Self::AppArmor => APPARMOR,
                Self::Whole => WHOLE,
            },
            exclude: &[
                "/usr/share/doc/*",
                "/usr/share/man/*",
                "/usr/share/info/*",
                "/usr/share/locale/*",
            ],
            customize: Some(match self {
                Self::Root => include_str!("../../guest/customize.sh"),
                Self::Measured => concat!(
                    "cat > \"$1/lab.cil\" <<'CIL'\n",
                    include_str!("../../guest/lab.cil"),
                    "CIL\n",
                    include_str!("../../guest/measured.sh"),
                ),
                Self::AppArmor => concat!(
                    include_str!("../../guest/customize.sh"),
                    include_str!("../../guest/apparmor-source.sh"),
                    include_str!("../../guest/apparmor.sh"),
                ),
                Self::Whole => include_str!("../../guest/whole.sh"),
            }),
        }
    }

    /// Free space for what a run writes; it costs nothing until used.
    fn spare(self) -> u64 {
        match self {
            Self::Root | Self::AppArmor => 512 << 20,
            Self::Measured => 1 << 30,
            Self::Whole => 3 << 30,
        }
    }

    /// Returns the path of the image, built if it is not there.
    pub(super) fn ensure(
        self,
        cache: &Cache,
        progress: &Progress,
        tools: impl FnOnce() -> Result<Tools>,
    ) -> Result<PathBuf> {
        let tree = self.tree();
        let spare = self.spare();
        let mut recipe = vec![tree.recipe(), ext4::recipe(), spare.to_string()];
        if self == Self::Measured {
            recipe.push(labels::RECIPE.into());
        }
        let recipe: Vec<&str> = recipe.iter().map(String::as_str).collect();
        let dir = cache.ensure(self.kind(), &recipe, |dir| {
            let step = progress.step(self.about());
            let tar = dir.join("root.tar");
            let image = dir.join("root.ext4");
            let tools = tools()?;
            tree.to_tar(&tar)?;
            ext4::make(&tools, "root", Content::Tar(&tar), spare, &image)?;
            if self == Self::Measured {
                labels::write(&tools, &tar, &image)?;
            }
            std::fs::remove_file(tar)?;
            step.done();
            Ok(())
        })?;
        Ok(dir.join("root.ext4"))
    }
}

/// Room to work in; it costs nothing until used.
const SCRATCH: u64 = 1 << 30;

/// An empty filesystem: what a system's own set-up writes elsewhere does not change where
/// its files and directories are put.
pub(super) fn scratch(cache: &Cache, tools: &Tools) -> Result<PathBuf> {
    let recipe = [ext4::recipe(), SCRATCH.to_string()];
    let dir = cache.ensure("scratch", &[&recipe[0], &recipe[1]], |dir| {
        let empty = dir.join("empty");
        std::fs::create_dir(&empty)?;
        ext4::make(
            tools,
            "scratch",
            Content::Directory(&empty),
            SCRATCH,
            &dir.join("scratch.ext4"),
        )
    })?;
    Ok(dir.join("scratch.ext4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_its_kind() {
        for image in [Image::Root, Image::Measured, Image::AppArmor, Image::Whole] {
            assert_eq!(image.kind().parse::<Image>().unwrap(), image);
        }
        assert!("roots".parse::<Image>().is_err());
    }
}
