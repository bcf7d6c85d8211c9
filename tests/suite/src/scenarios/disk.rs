//! A disk of a scenario's own: an ext4 in a file, by a loop device.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::scenarios::check::{Outcome, ensure};
use crate::scenarios::place::{self, DISK, SYSTEM};
use crate::scenarios::sys;

/// Room for a journal.
const SIZE: u64 = 32 << 20;

const SET: u64 = 0x4c00;
const CLEAR: u64 = 0x4c01;
const FREE: u64 = 0x4c82;

/// It is mounted at [`DISK`] until this is dropped.
#[derive(Debug)]
pub struct Disk {
    device: OwnedFd,
}

impl Disk {
    /// Makes one, by these further arguments of mkfs.ext4.
    pub fn mount(arguments: &[&str]) -> Outcome<Disk> {
        let image = place::path(SYSTEM, "disk");
        File::create(&image)?.set_len(SIZE)?;
        let made = Command::new("/usr/sbin/mkfs.ext4")
            .args(["-q", "-F"])
            .args(arguments)
            .arg(&image)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        ensure(made.success(), "mkfs.ext4 failed")?;
        let _ = Command::new("modprobe").arg("loop").status();
        let number = sys::ioctl(&sys::both("/dev/loop-control")?, FREE, 0)?;
        let name = format!("/dev/loop{number}");
        let device = sys::both(&name)?;
        let backing = sys::both(&image)?;
        sys::ioctl(&device, SET, backing.as_raw_fd() as usize)?;
        let disk = Disk { device };
        let from = Some(name.as_str());
        mount(from, DISK, Some("ext4"), MsFlags::empty(), None::<&str>)?;
        Ok(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = umount2(DISK, MntFlags::MNT_DETACH);
        let _ = sys::ioctl(&self.device, CLEAR, 0);
    }
}
