//! Boots a machine, runs one command in it as root, and says how that ended.

mod accel;
mod console;
mod initramfs;
mod outcome;
mod process;
mod protocol;
mod qemu;
mod rundir;
mod sink;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

pub use accel::{Accelerator, Choice, choose};
pub use outcome::Outcome;
pub use process::End;
pub use sink::{Capture, Passthrough, Sink};

use crate::artefact::{Content, Image, Kernel, Lab, make_ext4};
use protocol::Frame;
use rundir::RunDir;

/// Free space on the payload's disk.
const PAYLOAD_SPARE: u64 = 64 << 20;

/// Where a machine that systemd runs has the modules' disk: LAB_DIR of guest/guest.h.
const SYSTEMD_MODULES: &str = "/usr/lib/tidegate-lab-guest/modules";

/// A machine to be booted. Every boot starts from the same bytes: whatever the
/// guest writes is gone afterwards.
#[derive(Debug, Clone)]
pub struct Machine {
    kernel: Kernel,
    image: Image,
    scratch: bool,
    icount: bool,
    kaslr: bool,
    smp: u32,
    memory_mib: u32,
    lsm: Option<String>,
    append: String,
    rtc: String,
    payload: Option<PathBuf>,
    timeout: Duration,
}

impl Machine {
    /// Two processors, 2 GiB, Debian's own list of security modules, no payload,
    /// ten minutes.
    #[must_use]
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            image: Image::Root,
            scratch: false,
            icount: false,
            kaslr: false,
            smp: 2,
            memory_mib: 2048,
            lsm: None,
            append: String::new(),
            rtc: qemu::RTC.into(),
            payload: None,
            timeout: Duration::from_secs(600),
        }
    }

    /// What it boots from, in place of the tests' own image.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.image = image;
        self
    }

    /// Whether /srv/lab is an empty disk of its own.
    #[must_use]
    pub fn scratch(mut self, on: bool) -> Self {
        self.scratch = on;
        self
    }

    /// Counts instructions: one processor, TCG, and guest time is the number of
    /// executed instructions.
    #[must_use]
    pub fn icount(mut self, on: bool) -> Self {
        self.icount = on;
        self
    }

    /// Boots through the kernel's own decompressor, which is what places it at a
    /// random address; a second slower.
    #[must_use]
    pub fn kaslr(mut self, on: bool) -> Self {
        self.kaslr = on;
        self
    }

    /// The number of processors; always one when instructions are counted.
    #[must_use]
    pub fn smp(mut self, processors: u32) -> Self {
        self.smp = processors;
        self
    }

    /// Memory in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Replaces Debian's own list of security modules (`lsm=` of
    /// kernel-parameters.txt).
    #[must_use]
    pub fn lsm(mut self, list: impl Into<String>) -> Self {
        self.lsm = Some(list.into());
        self
    }

    /// More words for the kernel's command line.
    #[must_use]
    pub fn append(mut self, words: impl Into<String>) -> Self {
        self.append = words.into();
        self
    }

    /// What the guest's clock starts from where instructions are counted, as
    /// YYYY-MM-DDTHH:MM:SS.
    #[must_use]
    pub fn rtc(mut self, base: impl Into<String>) -> Self {
        self.rtc = base.into();
        self
    }

    /// A directory that appears in the guest as /payload, owned by root; the
    /// guest writes to a copy.
    #[must_use]
    pub fn payload(mut self, dir: impl Into<PathBuf>) -> Self {
        self.payload = Some(dir.into());
        self
    }

    /// How long the whole run may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Boots, runs `command` (in /payload, /payload first in PATH) and waits. Where the
    /// image has systemd, the command is a service of it and runs at every boot until it
    /// ends: a command that restarts the machine finds there what it has written.
    ///
    /// # Errors
    /// When the machine could not be put together or its report channel broke.
    /// A guest that fails, hangs or crashes is an [`Outcome`].
    pub fn run<S: AsRef<str>>(
        &self,
        lab: &Lab,
        command: &[S],
        sink: &mut impl Sink,
    ) -> Result<Outcome> {
        let words: Vec<&str> = command.iter().map(AsRef::as_ref).collect();
        ensure!(!words.is_empty(), "no command to run in the guest");
        lab.setup(std::slice::from_ref(&self.kernel), self.image)?;
        let files = lab.kernel(&self.kernel)?;
        let tools = lab.tools()?;
        let accelerator = if self.icount {
            Accelerator::Tcg
        } else {
            choose(lab)?.accelerator
        };

        let dir = RunDir::new(lab.cache().root(), &self.kernel.to_string())?;
        let mut images = vec![lab.image(self.image)?, files.modules()];
        let systemd = self.image.has_systemd();
        let modules = if systemd {
            SYSTEMD_MODULES
        } else {
            "/usr/lib/modules"
        };
        let mut mounts = vec![("root", "/", "rw"), ("modules", modules, "ro")];
        if self.scratch {
            images.push(lab.scratch()?);
            mounts.push(("scratch", "/srv/lab", "rw"));
        }
        if let Some(payload) = &self.payload {
            make_ext4(
                &tools,
                "payload",
                Content::Directory(payload),
                PAYLOAD_SPARE,
                &dir.payload(),
            )?;
            images.push(dir.payload());
            mounts.push(("payload", "/payload", "rw"));
        }
        let archive = initramfs::Initramfs {
            init: &lab.guest_init()?,
            modules: &files.early_modules()?,
            disks: &mounts,
            command: &words,
            systemd,
        };
        fs::write(dir.initramfs(), archive.build()?)?;
        let disks = images
            .into_iter()
            .map(|path| fs::metadata(&path).map(|meta| (path, meta.len())))
            .collect::<io::Result<Vec<_>>>()?;

        // a panic that restarted the machine would be forgotten
        let append = if systemd {
            format!("panic=0 systemd.show_status=error {}", self.append)
        } else {
            self.append.clone()
        };
        let emulated = accelerator == Accelerator::Tcg && !self.icount;
        let tsc_khz = emulated.then(qemu::tsc_khz).flatten();
        let boot = qemu::Boot {
            accelerator,
            icount: self.icount,
            smp: if self.icount { 1 } else { self.smp },
            memory_mib: self.memory_mib,
            kernel: &if self.kaslr {
                files.vmlinuz()
            } else {
                files.vmlinux()
            },
            initramfs: &dir.initramfs(),
            disks: &disks,
            console: &dir.console(),
            cmdline: &qemu::cmdline(self.icount, tsc_khz, self.lsm.as_deref(), &append),
            rtc: &self.rtc,
            reboots: systemd,
        };
        let mut qemu = tools.qemu();
        qemu.args(boot.arguments());

        let start = Instant::now();
        let mut booted = None;
        let end = process::run(qemu, &dir.errors(), self.timeout, |frame| {
            match frame {
                Frame::Stdout(bytes) => sink.stdout(&bytes)?,
                Frame::Stderr(bytes) => sink.stderr(&bytes)?,
                _ => {
                    booted = Some(start.elapsed());
                    dir.discard_inputs();
                }
            }
            Ok(())
        })?;
        Outcome::new(end, booted, start.elapsed(), &dir)
    }
}
