//! The recorder: programs of its own (`kernel/recorder.bpf.c`), in the kernel while
//! somebody records.

mod line;

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, RingBufferBuilder};
use tidegate_recording::Line;

use crate::error::{Error, Result, Trying, io_of};
use crate::load;
use crate::object;
use crate::probe::KernelTypes;
use crate::recorder_skel::{RecorderSkel, RecorderSkelBuilder};
use crate::swap::initial_mount_namespace;
use crate::sys::{self, Over};

/// What is recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope {
    /// Only this process's descendants, born from now on.
    pub follow: bool,
    /// Every access, though an equal one was recorded a moment ago.
    pub all: bool,
}

/// What is not in the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Accesses, those among them that were told already and are not told again.
    pub seen: u64,
    /// Lines that found no room.
    pub lines: u64,
    /// Processes that should have been followed and found no room.
    pub followed: u64,
}

/// The recorder while it is attached.
pub struct Recorder<'a, 'o> {
    skel: &'a RecorderSkel<'o>,
    ring: libbpf_rs::RingBuffer<'static>,
    told: Rc<RefCell<Vec<u8>>>,
    unseen: Vec<String>,
}

/// The kernel function that a program stands on; `None`: on no security_* function.
fn function(section: &str) -> Option<&str> {
    section.strip_prefix("fexit/")
}

impl Recorder<'_, '_> {
    /// Loads and attaches the recorder, hands it over and takes it out again.
    ///
    /// # Errors
    /// [`Error::Load`] or [`Error::Hook`] if this kernel does not take it,
    /// [`Error::NotPermitted`] if that is refused to this process.
    pub fn run<T>(scope: Scope, body: impl FnOnce(&Recorder<'_, '_>) -> T) -> Result<T> {
        let failed = |e: libbpf_rs::Error| match e.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::NotPermitted("record".into()),
            _ => Error::Load {
                log: String::new(),
                source: io_of(e),
            },
        };
        let mut room = MaybeUninit::uninit();
        let mut open = RecorderSkelBuilder::default()
            .open(&mut room)
            .map_err(failed)?;
        let kernel = KernelTypes::read().trying(object::kernel_types)?;
        let mut unseen = Vec::new();
        for mut program in open.open_object_mut().progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            let Some(name) = function(&section) else {
                continue;
            };
            if !kernel.has_function(name) {
                program.set_autoload(false);
                unseen.push(name.trim_start_matches("security_").to_string());
            }
        }
        if let Some(globals) = open.maps.bss_data.as_mut() {
            globals.policy.mnt_ns = initial_mount_namespace()?;
            globals.policy.recorder = std::process::id();
            globals.policy.follow = scope.follow.into();
            globals.policy.all = scope.all.into();
        }
        let skel = open.load().map_err(failed)?;
        let error = || {
            skel.maps
                .bss_data
                .as_ref()
                .map_or(0, |bss| bss.symbols.error)
        };
        sys::run(&skel.progs.ps_symbols.as_fd(), &mut 0u64)
            .and_then(|()| sys::check(error() as i32))
            .trying(load::symbols)?;
        let told = Rc::new(RefCell::new(Vec::new()));
        let ring = {
            let told = Rc::clone(&told);
            let what = || "read what the kernel records".to_string();
            let mut builder = RingBufferBuilder::new();
            builder
                .add(&skel.maps.lines, move |bytes| {
                    told.borrow_mut().extend_from_slice(bytes);
                    0
                })
                .trying(what)?;
            builder.build().trying(what)?
        };
        let _links = attach(&skel)?;
        Ok(body(&Recorder {
            skel: &skel,
            ring,
            told,
            unseen,
        }))
    }

    /// Operations that this kernel has no function to record by.
    pub fn unseen(&self) -> &[String] {
        &self.unseen
    }

    /// How everybody begins: processes, then what they hold.
    ///
    /// # Errors
    /// [`Error::Io`] if the kernel's iterators cannot be run.
    pub fn beginning(&self, mut each: impl FnMut(&Line<'_>)) -> Result<()> {
        let programs = &self.skel.progs;
        // a file is mapped in several pieces
        let mut told = HashSet::new();
        let mut each = |line: &Line<'_>| {
            let again = line.class == "mmap" && !told.insert((line.pid, line.inode, line.flags));
            if !again {
                each(line);
            }
        };
        let what = || "list the kernel's tasks".to_string();
        for program in [
            &programs.begin_task,
            &programs.begin_file,
            &programs.begin_vma,
        ] {
            let mut bytes = Vec::new();
            let file = sys::iterate(program.as_fd(), Over::All).trying(what)?;
            File::from(file).read_to_end(&mut bytes).trying(what)?;
            line::each(&bytes, &mut each);
        }
        Ok(())
    }

    /// Waits for accesses, and hands over all there are; how many lines.
    ///
    /// # Errors
    /// [`Error::Io`] if the wait fails; a signal is not an error.
    pub fn wait(&self, timeout: Duration, mut each: impl FnMut(&Line<'_>)) -> Result<usize> {
        match self.ring.poll(timeout) {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            done => done.trying(|| "wait for what the kernel records".into())?,
        }
        let bytes = self.told.take();
        Ok(line::each(&bytes, &mut each))
    }

    /// What is not in the recording, so far.
    pub fn loss(&self) -> Loss {
        let globals = self.skel.maps.bss_data.as_deref();
        globals.map_or_else(Loss::default, |g| Loss {
            seen: g.seen,
            lines: g.lines_lost,
            followed: g.follow_lost,
        })
    }
}

/// Attaches all programs but the iterators.
fn attach(skel: &RecorderSkel<'_>) -> Result<Vec<Link>> {
    let programs = skel.object().progs_mut();
    let is_run =
        |section: &OsStr| section == "syscall" || section.as_encoded_bytes().starts_with(b"iter/");
    let attached = programs.filter(|p| p.autoload() && !is_run(p.section()));
    attached
        .map(|program| {
            program.attach().map_err(|e| Error::Hook {
                program: program.name().to_string_lossy().into_owned(),
                source: io_of(e),
            })
        })
        .collect()
}
