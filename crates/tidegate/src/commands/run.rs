//! `run`: a command at a level, or confined by a profile. It falls by reading the level's
//! file, asks the daemon whether it did, and only then becomes the command; the daemon also
//! says by which profile the next execution is to be confined.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::fall;
use crate::cli::Run;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::places;
use crate::protocol::{Answer, Ask};

pub fn run(args: &Run) -> Outcome {
    if let Some(level) = &args.level {
        fall_to(level)?;
    }
    if let Some(profile) = &args.profile {
        let profile = profile.clone();
        client::ask(&Ask::Confine { profile }, None)?;
    }
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    Err(Failure::io(
        format!("run {}", args.command[0].to_string_lossy()),
        error,
    ))
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
