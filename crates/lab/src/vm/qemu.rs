//! QEMU's command line, as a pure function of what the machine shall be.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::accel::Accelerator;

/// The first second that a counting guest sees, unless it is told another.
pub(super) const RTC: &str = "2026-01-01T00:00:00";

/// One boot.
pub(super) struct Boot<'a> {
    pub accelerator: Accelerator,
    /// Count instructions: guest time is then the number of executed
    /// instructions, the same at every run.
    pub icount: bool,
    pub smp: u32,
    pub memory_mib: u32,
    /// vmlinuz, or vmlinux for a quicker start without KASLR.
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    /// Disk images with their sizes in bytes, as NVDIMMs in this order.
    pub disks: &'a [(PathBuf, u64)],
    pub console: &'a Path,
    /// The whole kernel command line.
    pub cmdline: &'a str,
    /// What the guest's clock starts from where instructions are counted.
    pub rtc: &'a str,
    /// Whether the guest may restart; else that ends the machine. What it has written is
    /// still there then.
    pub reboots: bool,
}

impl Boot<'_> {
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|w| (*w).to_owned()));

        add(&[
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-net",
            "none",
        ]);
        if !self.reboots {
            add(&["-no-reboot"]);
        }
        add(&["-machine", "pc,nvdimm=on"]);
        match self.accelerator {
            Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
            // Nehalem: the oldest model that both kernels run well on. Without
            // ERMS string copies count one instruction an iteration and not one.
            Accelerator::Tcg if self.icount => {
                add(&[
                    "-accel",
                    "tcg",
                    "-icount",
                    "shift=0,sleep=off",
                    "-cpu",
                    "Nehalem",
                ]);
                add(&["-rtc", &format!("base={},clock=vm", self.rtc)]);
            }
            Accelerator::Tcg => add(&["-accel", "tcg,thread=multi", "-cpu", "Nehalem"]),
        }
        add(&["-smp", &self.smp.to_string()]);

        // Every NVDIMM takes a slot and address space above the memory.
        let above: u64 = self
            .disks
            .iter()
            .map(|(_, size)| size.next_multiple_of(1 << 30))
            .sum();
        let most = u64::from(self.memory_mib) + (above >> 20) + 1024;
        let memory = format!(
            "{}M,slots={},maxmem={most}M",
            self.memory_mib,
            self.disks.len().max(1)
        );
        add(&["-m", &memory]);
        for (i, (image, size)) in self.disks.iter().enumerate() {
            // share=off: the guest writes to a private mapping, the file stays as it is.
            let backend = format!(
                "memory-backend-file,id=disk{i},share=off,mem-path={},size={size}",
                escape(image)
            );
            add(&[
                "-object",
                &backend,
                "-device",
                &format!("nvdimm,id=nv{i},memdev=disk{i}"),
            ]);
        }

        let console = format!("file,id=console,path={}", escape(self.console));
        add(&["-chardev", &console, "-serial", "chardev:console"]);
        add(&[
            "-chardev",
            "file,id=report,path=/dev/stdout",
            "-serial",
            "chardev:report",
        ]);

        add(&["-kernel", &self.kernel.to_string_lossy()]);
        add(&["-initrd", &self.initramfs.to_string_lossy()]);
        add(&["-append", self.cmdline]);
        args
    }
}

/// The kernel's command line.
///
/// `lsm` replaces Debian's own list of security modules, which has `bpf` in it. Under TCG
/// the guest's time-stamp counter is this machine's, `tsc_khz`: a guest that measures it
/// while the machine is busy takes it for another, and its clock runs fast or slow.
pub(super) fn cmdline(
    icount: bool,
    tsc_khz: Option<u64>,
    lsm: Option<&str>,
    append: &str,
) -> String {
    // loglevel=5 shows warnings; mitigations slow TCG and are not what is tested.
    let mut line = String::from(
        "console=ttyS0 panic=-1 oops=panic loglevel=5 mitigations=off tsc=reliable no_timer_check cryptomgr.notests=1",
    );
    if icount {
        line.push_str(" norandmaps randomize_kstack_offset=off audit=0");
    } else {
        // what an emulated processor spends on nobody's behalf: clearing memory twice, accounting for pressure
        line.push_str(" init_on_alloc=0 psi=0");
    }
    if let Some(rate) = tsc_khz {
        line.push_str(&format!(" tsc_early_khz={rate}"));
    }
    if let Some(list) = lsm {
        line.push_str(" lsm=");
        line.push_str(list);
    }
    if !append.is_empty() {
        line.push(' ');
        line.push_str(append);
    }
    line
}

/// The rate of this machine's time-stamp counter in kHz; none where there is no such.
pub(super) fn tsc_khz() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        let (start, first) = tsc();
        std::thread::sleep(Duration::from_millis(50));
        let (end, last) = tsc();
        let micros = u64::try_from((end - start).as_micros()).ok()?;
        Some((last - first) * 1000 / micros)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The counter, and when it was read.
#[cfg(target_arch = "x86_64")]
fn tsc() -> (Instant, u64) {
    loop {
        let start = Instant::now();
        // SAFETY: an instruction of every x86-64 processor.
        let count = unsafe { std::arch::x86_64::_rdtsc() };
        // else somebody else ran in between
        if start.elapsed() < Duration::from_micros(20) {
            return (start, count);
        }
    }
}

/// In QEMU's option syntax a comma is doubled.
fn escape(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(accelerator: Accelerator, icount: bool) -> String {
        Boot {
            accelerator,
            icount,
            smp: 2,
            memory_mib: 1024,
            kernel: Path::new("/k"),
            initramfs: Path::new("/i"),
            disks: &[
                (PathBuf::from("/a,b"), 1 << 30),
                (PathBuf::from("/m"), 16 << 20),
            ],
            console: Path::new("/c"),
            cmdline: "quiet",
            rtc: RTC,
            reboots: false,
        }
        .arguments()
        .join(" ")
    }

    #[test]
    fn disks_are_private_and_in_order() {
        let line = boot(Accelerator::Tcg, false);
        assert!(line.contains("share=off,mem-path=/a,,b,size=1073741824"));
        assert!(line.find("disk0").unwrap() < line.find("disk1").unwrap());
        assert!(line.contains("-m 1024M,slots=2,maxmem=4096M"));
    }

    #[test]
    fn counting_instructions_needs_a_fixed_clock() {
        let line = boot(Accelerator::Tcg, true);
        assert!(line.contains("-icount shift=0,sleep=off"));
        assert!(line.contains("clock=vm"));
        assert!(!boot(Accelerator::Kvm, false).contains("icount"));
    }

    #[test]
    fn stock_boot_names_no_security_module() {
        assert!(cmdline(false, Some(2_600_000), None, "").contains(" tsc_early_khz=2600000"));
        assert!(!cmdline(false, None, None, "").contains("lsm="));
        assert!(
            cmdline(true, None, Some("capability,bpf"), "x=1").ends_with("lsm=capability,bpf x=1")
        );
    }
}
