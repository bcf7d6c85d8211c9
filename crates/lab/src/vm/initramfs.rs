//! The initramfs: a cpio archive in the kernel's "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// As many words as guest/init.c takes.
const MAX_WORDS: usize = 512;

/// What the guest's init finds at boot.
pub(super) struct Initramfs<'a> {
    /// The static init.
    pub init: &'a Path,
    /// Modules to load, in order.
    pub modules: &'a [PathBuf],
    /// Disks to mount, the root first: label, directory in the guest, ro or rw.
    pub disks: &'a [(&'a str, &'a str, &'a str)],
    /// The command and its arguments; none: power off at once.
    pub command: &'a [&'a str],
    /// Whether the root's own init runs the machine.
    pub systemd: bool,
}

impl Initramfs<'_> {
    /// The archive's bytes; the same input gives the same bytes.
    pub(super) fn build(&self) -> Result<Vec<u8>> {
        ensure!(
            self.command.len() <= MAX_WORDS,
            "more than {MAX_WORDS} words of command"
        );
        ensure!(
            !self.command.iter().any(|word| word.contains('\0')),
            "a NUL in the command"
        );
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.directory("lab");
        let init = fs::read(self.init).with_context(|| self.init.display().to_string())?;
        archive.file("init", 0o755, &init);

        let mut list = String::new();
        for module in self.modules {
            let name = module
                .file_name()
                .and_then(|n| n.to_str())
                .context("a module's name")?;
            let path = format!("lab/{name}");
            archive.file(&path, 0o644, &fs::read(module)?);
            list.push_str(&format!("/{path}\n"));
        }
        archive.file("lab/modules", 0o644, list.as_bytes());
        let disks: String = self
            .disks
            .iter()
            .map(|(label, dir, mode)| format!("{label} {dir} {mode}\n"))
            .collect();
        archive.file("lab/disks", 0o644, disks.as_bytes());
        if !self.command.is_empty() {
            let words: String = self.command.iter().flat_map(|word| [word, "\0"]).collect();
            archive.file("lab/command", 0o644, words.as_bytes());
        }
        if self.systemd {
            archive.file("lab/systemd", 0o644, &[]);
        }
        Ok(archive.finish())
    }
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

impl Archive {
    fn directory(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    fn file(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.entry(name, 0o100_000 | mode, data);
    }

    fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.inode += 1;
        let name_size = name.len() as u32 + 1;
        // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor
        // rdevminor namesize check
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_described() {
        let mut archive = Archive::default();
        archive.file("a", 0o644, b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000081a4");
        assert_eq!(&bytes[54..62], b"00000005");
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..117], b"hello");
        assert_eq!(&bytes[120..126], b"070701");
    }

    #[test]
    fn a_command_may_hold_no_nul() {
        let init = Path::new("/proc/self/cmdline");
        let archive = |command| {
            Initramfs {
                init,
                modules: &[],
                disks: &[],
                command,
                systemd: false,
            }
            .build()
        };
        assert!(archive(&["a\0b"]).is_err());
        assert!(archive(&["echo", "a b"]).is_ok());
    }
}
