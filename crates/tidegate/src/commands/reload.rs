//! `reload`: puts another policy in force, in one step.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::done;
use crate::cli::Reload;
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::protocol::{Answer, Ask};

pub fn run(args: &Reload, json: bool) -> Outcome {
    let policy = args.source.load()?;
    let failed = |e| Failure::io("hand the bundle over", e);
    let fd = memfd_create("bundle", MemfdFlags::CLOEXEC)
        .map_err(|e| Failure::io("hand the bundle over", e))?;
    let mut file = File::from(fd);
    file.write_all(&policy.to_bundle())
        .and_then(|()| file.rewind())
        .map_err(failed)?;
    match client::ask(
        &Ask::Reload {
            permissive: args.permissive,
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
