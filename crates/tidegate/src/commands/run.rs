//! `run`: a command at a level, confined by a profile, in a context, or with the capabilities of a file. It falls by reading the level's
//! file, asks the daemon whether it did, and only then becomes the command; the daemon also
//! says by which profile the next execution is to be confined, and what limits that has: the kernel's part cannot set them. A
//! capability file is compiled here, as who runs it may read it; what the daemon gets is its bundle.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use miette::Report;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_policy::caps::Capabilities;

use super::fall;
use crate::cli::Run;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::places;
use crate::protocol::{Answer, Ask};

pub fn run(args: &Run) -> Outcome {
    // before anything is done: it may be wrong
    let caps = args.caps.caps.as_deref().map(bundle).transpose()?;
    if let Some(level) = &args.level {
        fall_to(level)?;
    }
    if let Some(profile) = &args.profile {
        let profile = profile.clone();
        let Answer::Confined { limits } = client::ask(&Ask::Confine { profile }, None)? else {
            return Err(Failure::new(
                Code::Internal,
                "the daemon gave another answer",
            ));
        };
        for (resource, max) in limits {
            limit(resource, max).map_err(|e| Failure::io("set a resource limit", e))?;
        }
    }
    if let Some(context) = &args.context {
        let context = context.clone();
        client::ask(&Ask::Enter { context }, None)?;
    }
    if let Some(caps) = caps {
        if !rustix::process::geteuid().is_root() {
            rustix::thread::set_no_new_privs(true)
                .map_err(|e| Failure::io("do without new privileges", e))?;
        }
        let subject = args.caps.caps_subject.clone();
        let question = Ask::Capabilities {
            subject,
            now: false,
        };
        client::ask(&question, Some(caps.as_fd()))?;
    }
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    Err(Failure::io(
        format!("run {}", args.command[0].to_string_lossy()),
        error,
    ))
}

/// A capability file's bundle, in memory that goes to the daemon.
fn bundle(file: &Path) -> Outcome<File> {
    fs::metadata(file).map_err(|e| Failure::io(format!("read {}", file.display()), e))?;
    let compiled = Capabilities::compile_file(file);
    let compiled = compiled.map_err(|errors| Failure::policy(Report::new(errors)))?;
    let failed = |e: std::io::Error| Failure::io("keep the bundle", e);
    let memory =
        memfd_create("tidegate-caps", MemfdFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
    let mut memory = File::from(memory);
    memory
        .write_all(&compiled.capabilities.to_bundle())
        .and_then(|()| memory.rewind())
        .map_err(failed)?;
    Ok(memory)
}

/// By the numbers that AppArmor and x86 have for them.
const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// Lowers a hard limit of this process, and the other one with it: `__aa_transition_rlimits()` of the kernel.
fn limit(resource: u8, max: u64) -> rustix::io::Result<()> {
    let resource = *RESOURCES
        .get(usize::from(resource))
        .ok_or(rustix::io::Errno::INVAL)?;
    // no limit is `None`
    let lower =
        |one: Option<u64>| Some(one.unwrap_or(u64::MAX).min(max)).filter(|&n| n != u64::MAX);
    let now = getrlimit(resource);
    let maximum = lower(now.maximum);
    let current = lower(now.current);
    setrlimit(resource, Rlimit { current, maximum })
}

fn fall_to(level: &str) -> Outcome {
    let dir = Path::new(places::LEVELS);
    if !dir.exists() {
        return Err(tidegate_monitor::Error::NotRunning.into());
    }
    let path = dir.join(level);
    // a name, not a path out of the directory
    if !path.is_file() || path.parent() != Some(dir) {
        let Answer::Status(status) = client::ask(&Ask::Status, None)? else {
            return Err(Failure::new(
                Code::Internal,
                "the daemon gave another answer",
            ));
        };
        return Err(Failure::no_level(level, &status.levels));
    }
    fall(&path).map_err(|e| Failure::io(format!("fall to {level}"), e))?;
    let Answer::You(you) = client::ask(&Ask::Whoami, None)? else {
        return Err(Failure::new(
            Code::Internal,
            "the daemon gave another answer",
        ));
    };
    if you.level != level {
        return Err(Failure::new(
            Code::NotPermitted,
            format!("this process is at {} and cannot be at {level}", you.level),
        ));
    }
    Ok(())
}
