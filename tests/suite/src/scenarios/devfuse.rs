//! The smallest FUSE server there can be: a directory with one file, whose
//! reads it can keep waiting, and which takes what is written. Spoken over /dev/fuse by hand.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::scenarios::check::{Outcome, ensure, soon};
use crate::scenarios::sys;

/// What its file says.
pub const CONTENT: &[u8] = b"from fuse";

/// The file's name below the mount point.
pub const FILE: &str = "file";

const ENOENT: i32 = -2;
const ENOSYS: i32 = -38;

/// A mounted FUSE filesystem, served by a thread of this process.
#[derive(Debug)]
pub struct Fuse {
    at: String,
    /// While it is set, reads wait.
    pub held: Arc<AtomicBool>,
    /// One does.
    asked: Arc<AtomicBool>,
    /// Somebody has written.
    written: Arc<AtomicBool>,
}

impl Fuse {
    /// Mounts one.
    pub fn mount(at: &str) -> Outcome<Fuse> {
        Fuse::mount_without(at, None)
    }

    /// Mounts one that never answers a kind of request, by the kernel's number of it.
    pub fn mount_without(at: &str, unanswered: Option<u32>) -> Outcome<Fuse> {
        let device: File = sys::both("/dev/fuse")?.into();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(
            Some("scenario"),
            at,
            Some("fuse"),
            flags,
            Some(options.as_str()),
        )?;
        let held = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicBool::new(false));
        let (holds, is_asked) = (Arc::clone(&held), Arc::clone(&asked));
        let is_written = Arc::clone(&written);
        std::thread::spawn(move || serve(device, &holds, &is_asked, &is_written, unanswered));
        Ok(Fuse {
            at: at.to_owned(),
            held,
            asked,
            written,
        })
    }

    /// Whether somebody waits for an answer.
    pub fn has_been_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether somebody has written to its file.
    pub fn has_been_written(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    /// Waits until a read waits.
    pub fn is_asked(&self) -> Outcome {
        let is = soon(|| Ok(self.has_been_asked()))?;
        ensure(is, "nobody reads")
    }

    /// The path of its file.
    pub fn file(&self) -> String {
        format!("{}/{FILE}", self.at)
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        self.held.store(false, Ordering::SeqCst);
        let _ = umount2(self.at.as_str(), MntFlags::MNT_DETACH);
    }
}

/// struct fuse_attr of an inode: 1 is the directory, 2 the file.
fn attributes(inode: u64) -> Vec<u8> {
    let (mode, size) = if inode == 1 {
        (0o040_755u32, 0)
    } else {
        (0o100_644, CONTENT.len() as u64)
    };
    let mut out = Vec::new();
    for word in [inode, size, 1, 0, 0, 0] {
        out.extend(word.to_ne_bytes());
    }
    for word in [0u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
        out.extend(word.to_ne_bytes());
    }
    out
}

fn zeros(n: usize) -> Vec<u8> {
    vec![0; n]
}

/// Answers until the filesystem is unmounted.
fn serve(
    mut device: File,
    held: &Arc<AtomicBool>,
    asked: &AtomicBool,
    written: &AtomicBool,
    unanswered: Option<u32>,
) {
    let mut request = vec![0u8; 1 << 17];
    while let Ok(n) = device.read(&mut request) {
        if n < 40 {
            return;
        }
        let word =
            |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap_or_default());
        if unanswered == Some(word(4)) {
            asked.store(true, Ordering::SeqCst);
            continue;
        }
        let node = u64::from(word(16));
        let answer: Result<Vec<u8>, i32> = match word(4) {
            1 => match request[40..n].strip_suffix(b"\0") {
                Some(name) if name == FILE.as_bytes() => {
                    let mut entry = 2u64.to_ne_bytes().to_vec();
                    entry.extend(zeros(32));
                    entry.extend(attributes(2));
                    Ok(entry)
                }
                _ => Err(ENOENT),
            },
            2 | 42 => continue, // FORGET has no answer
            3 => Ok([zeros(16), attributes(node)].concat()),
            14 | 27 => Ok(zeros(16)), // OPEN, OPENDIR
            15 => {
                if held.load(Ordering::SeqCst) {
                    asked.store(true, Ordering::SeqCst);
                    let (held, unique) = (Arc::clone(held), request[8..16].to_vec());
                    if let Ok(mut device) = device.try_clone() {
                        std::thread::spawn(move || {
                            while held.load(Ordering::SeqCst) {
                                std::thread::sleep(Duration::from_millis(5));
                            }
                            let _ = device.write_all(&reply(0, &unique, CONTENT));
                        });
                    }
                    continue;
                }
                let from = (word(48) as usize).min(CONTENT.len());
                Ok(CONTENT[from..].to_vec())
            }
            16 => {
                // WRITE: so many bytes were taken
                written.store(true, Ordering::SeqCst);
                Ok([word(56), 0].map(u32::to_ne_bytes).concat())
            }
            18 | 25 | 29 => Ok(Vec::new()), // RELEASE, FLUSH, RELEASEDIR
            26 => {
                // INIT: version 7.31, the rest as little as possible
                let mut init = [7u32.to_ne_bytes(), 31u32.to_ne_bytes()].concat();
                init.extend(zeros(12));
                init.extend(4096u32.to_ne_bytes());
                init.extend(zeros(40));
                Ok(init)
            }
            _ => Err(ENOSYS),
        };
        let unique = request[8..16].to_vec();
        let message = match answer {
            Ok(data) => reply(0, &unique, &data),
            Err(errno) => reply(errno, &unique, &[]),
        };
        let _ = device.write_all(&message);
    }
}

fn reply(errno: i32, unique: &[u8], data: &[u8]) -> Vec<u8> {
    let mut out = ((16 + data.len()) as u32).to_ne_bytes().to_vec();
    out.extend(errno.to_ne_bytes());
    out.extend(unique);
    out.extend(data);
    out
}
