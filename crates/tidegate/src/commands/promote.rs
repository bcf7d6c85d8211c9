//! `promote`: gives a file a level, upwards too (LOMAC's lup). The daemon does it
//! for root at the top level, revokes who has it open below, and records it.

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, open};

use super::done;
use crate::cli::Promote;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

pub fn run(args: &Promote, json: bool) -> Outcome {
    let shown = args.path.display();
    // a symbolic link is promoted itself: what it points to could be exchanged
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(&args.path, flags, Mode::empty())
        .map_err(|e| Failure::io(format!("look at {shown}"), e))?;
    let path = std::path::absolute(&args.path).unwrap_or_else(|_| args.path.clone());
    let path = path.to_string_lossy().into_owned();
    match client::ask(
        &Ask::Promote {
            level: args.level.clone(),
            path,
        },
        Some(file.as_fd()),
    )? {
        Answer::Done { message } => done(&message, json),
        _ => Err(Failure::new(
            Code::Internal,
            "the daemon gave another answer",
        )),
    }
}
