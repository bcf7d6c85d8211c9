//! KVM or TCG: what works here, found out by booting.
//!
//! /dev/kvm being there says little: under some hypervisors a stock kernel
//! crawls or QEMU aborts. So a kernel is booted, against the clock, once, and
//! the answer is remembered for this machine.

use std::env;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::process::{self, End};
use super::protocol::Frame;
use super::rundir::RunDir;
use super::{initramfs::Initramfs, qemu};
use crate::artefact::{Kernel, Lab};

/// With KVM a kernel reaches its init in under two seconds, with TCG in three.
const DEADLINE: Duration = Duration::from_secs(8);

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor itself, through /dev/kvm.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        })
    }
}

/// An accelerator, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What to use.
    pub accelerator: Accelerator,
    /// In words.
    pub reason: String,
}

/// The accelerator for this machine: `TIDEGATE_LAB_ACCEL`, else the remembered
/// answer, else a probe.
///
/// # Errors
/// When the variable is neither `kvm` nor `tcg`, or the probe cannot be set up.
pub fn choose(lab: &Lab) -> Result<Choice> {
    if let Some(name) = env::var_os("TIDEGATE_LAB_ACCEL") {
        let accelerator = match name.to_str() {
            Some("kvm") => Accelerator::Kvm,
            Some("tcg") => Accelerator::Tcg,
            _ => bail!("TIDEGATE_LAB_ACCEL must be kvm or tcg"),
        };
        return Ok(Choice {
            accelerator,
            reason: "TIDEGATE_LAB_ACCEL says so".into(),
        });
    }
    let _lock = lab.cache().lock("accelerator")?;
    let memory = lab.cache().root().join("accelerator");
    let key = machine_key(lab)?;
    if let Some(choice) = fs::read_to_string(&memory)
        .ok()
        .and_then(|text| recall(&text, &key))
    {
        return Ok(choice);
    }
    let choice = probe(lab)?;
    fs::write(&memory, remember(&key, &choice))?;
    Ok(choice)
}

/// What the answer depends on: host kernel, processor, QEMU, access to KVM.
fn machine_key(lab: &Lab) -> Result<String> {
    let host = rustix::system::uname();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .unwrap_or_default();
    Ok(format!(
        "{} | {} | {} | {}",
        host.release().to_string_lossy(),
        model.rsplit(": ").next().unwrap_or_default(),
        lab.tools()?.path().display(),
        kvm_access().map_or_else(|why| why, |()| "kvm".into()),
    ))
}

fn kvm_access() -> Result<(), String> {
    let device = Path::new("/dev/kvm");
    match fs::OpenOptions::new().read(true).write(true).open(device) {
        Ok(_) => Ok(()),
        Err(e) => Err(format!("/dev/kvm: {e}")),
    }
}

fn remember(key: &str, choice: &Choice) -> String {
    format!("{key}\n{}\n{}\n", choice.accelerator, choice.reason)
}

fn recall(text: &str, key: &str) -> Option<Choice> {
    let mut lines = text.lines();
    if lines.next()? != key {
        return None;
    }
    let accelerator = match lines.next()? {
        "kvm" => Accelerator::Kvm,
        "tcg" => Accelerator::Tcg,
        _ => return None,
    };
    Some(Choice {
        accelerator,
        reason: lines.next()?.to_owned(),
    })
}

fn probe(lab: &Lab) -> Result<Choice> {
    let tcg = |reason: String| Choice {
        accelerator: Accelerator::Tcg,
        reason,
    };
    if let Err(why) = kvm_access() {
        return Ok(tcg(why));
    }
    let start = Instant::now();
    let (ready, errors) = boot_with_kvm(lab)?;
    Ok(match ready {
        Some(elapsed) => Choice {
            accelerator: Accelerator::Kvm,
            reason: format!(
                "a stock kernel booted with KVM in {:.1} s",
                elapsed.as_secs_f64()
            ),
        },
        None if start.elapsed() >= DEADLINE => tcg(format!(
            "/dev/kvm is there, but a stock kernel had not booted after {} s",
            DEADLINE.as_secs()
        )),
        None => tcg(format!(
            "/dev/kvm is there, but QEMU failed with it: {errors}"
        )),
    })
}

/// Boots to init and off again; the time it took, or QEMU's last words.
fn boot_with_kvm(lab: &Lab) -> Result<(Option<Duration>, String)> {
    let files = lab.kernel(&Kernel::V6_12)?;
    let dir = RunDir::new(lab.cache().root(), "probe")?;
    let init = lab.guest_init()?;
    let archive = Initramfs {
        init: &init,
        modules: &[],
        disks: &[],
        command: &[],
        systemd: false,
    }
    .build()?;
    fs::write(dir.initramfs(), archive)?;
    let boot = qemu::Boot {
        accelerator: Accelerator::Kvm,
        icount: false,
        smp: 2,
        memory_mib: 512,
        kernel: &files.vmlinux(),
        initramfs: &dir.initramfs(),
        disks: &[],
        console: &dir.console(),
        cmdline: &qemu::cmdline(false, None, None, ""),
        rtc: qemu::RTC,
        reboots: false,
    };
    let mut command = lab.tools()?.qemu();
    command.args(boot.arguments());
    let start = Instant::now();
    let mut ready = None;
    let end = process::run(command, &dir.errors(), DEADLINE, |frame| {
        if let Frame::Ready(_) = frame {
            ready = Some(start.elapsed());
        }
        Ok(())
    })?;
    let errors = fs::read_to_string(dir.errors()).unwrap_or_default();
    let first = errors.lines().next().unwrap_or("no message").to_owned();
    Ok((ready.filter(|_| end != End::TimedOut), first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_for_one_machine() {
        let choice = Choice {
            accelerator: Accelerator::Tcg,
            reason: "it crawls".into(),
        };
        let text = remember("here", &choice);
        assert_eq!(recall(&text, "here"), Some(choice));
        assert_eq!(recall(&text, "elsewhere"), None);
    }
}
