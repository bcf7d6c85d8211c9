//! `promote`: gives a file a level, upwards too (LOMAC's lup). The daemon does it
//! for root at the top level, revokes descriptors of lower processes, and records it
//! (`promote()` of its handlers.rs, `Monitor::give`).

use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, open};

use super::have_done;
use crate::cli::Promote;
use crate::exit::{Failure, Outcome};
use crate::protocol::Ask;

pub fn run(args: &Promote, json: bool) -> Outcome {
    let shown = args.path.display();
    // a symbolic link is promoted itself: what it points to could be exchanged
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(&args.path, flags, Mode::empty())
        .map_err(|e| Failure::io(format!("look at {shown}"), e))?;
    let path = std::path::absolute(&args.path).unwrap_or_else(|_| args.path.clone());
    let path = path.to_string_lossy().into_owned();
    let ask = Ask::Promote {
        level: args.level.clone(),
        path,
    };
    have_done(&ask, Some(file.as_fd()), json)
}
