//! `run`: a command at a level, confined by a profile, in a context, or with the capabilities of a
//! file. It falls by reading the level's file, asks the daemon whether it did, and only then
//! becomes the command; the daemon also says by which profile the next execution is to be confined,
//! and what limits that has: the kernel's part cannot set them. A capability file is compiled here,
//! as the user that runs it may read it; what the daemon gets is its bundle.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::Report;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_restrict::{Layer, RestrictError};
use tidegated::{fall, paths};

use crate::cli::Run;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

pub fn run(args: &Run) -> Outcome {
    // before anything is done: it may be wrong
    let subject = args.caps.caps_subject.as_deref();
    let layer = |file: &PathBuf| Layer::of_file(file, subject).map_err(not_limited);
    let layer = args.caps.caps.as_ref().map(layer).transpose()?;
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
    if let Some(layer) = layer {
        layer.restrict_next().map_err(not_limited)?;
    }
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    Err(Failure::io(
        format!("run {}", args.command[0].to_string_lossy()),
        error,
    ))
}

/// An error of the capability file, or of limiting this process by it.
fn not_limited(e: RestrictError) -> Failure {
    let code = match &e {
        RestrictError::File(errors) => return Failure::policy(Report::new(errors.clone())),
        RestrictError::Read { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Code::NotPermitted
        }
        RestrictError::Read { .. } | RestrictError::Subject { .. } => Code::Usage,
        RestrictError::NotRunning => Code::NotRunning,
        RestrictError::NotPermitted(_) | RestrictError::Connect(_) => Code::NotPermitted,
        RestrictError::Limits(_) => Code::No,
        _ => Code::Internal,
    };
    Failure::new(code, e)
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
    let dir = Path::new(paths::LEVELS);
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
