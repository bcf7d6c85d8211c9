//! `reload`: puts another policy in force, in one step.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::have_done;
use crate::cli::Reload;
use crate::exit::{Failure, Outcome};
use crate::profiles::whole;
use crate::protocol::Ask;

pub fn run(args: &Reload, json: bool) -> Outcome {
    let policy = args.source.load()?;
    let failed = |e| Failure::io("hand the bundle over", e);
    let fd = memfd_create("bundle", MemfdFlags::CLOEXEC)
        .map_err(|e| Failure::io("hand the bundle over", e))?;
    let mut file = File::from(fd);
    file.write_all(&policy.to_bundle())
        .and_then(|()| file.rewind())
        .map_err(failed)?;
    have_done(
        &Ask::Reload {
            permissive: args.permissive,
        },
        Some(file.as_fd()),
        json,
    )?;
    whole(&policy.profiles)
}
