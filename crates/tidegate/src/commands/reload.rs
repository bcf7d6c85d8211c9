//! `reload`: puts another policy in force, in one step.

use std::os::fd::AsFd;

use super::have_done;
use crate::cli::Reload;
use crate::exit::{Failure, Outcome};
use crate::profiles::whole;
use crate::protocol::Ask;

pub fn run(args: &Reload, json: bool) -> Outcome {
    let policy = args.source.load()?;
    let bundle = tidegate_protocol::seal("bundle", &policy.to_bundle())
        .map_err(|e| Failure::io("hand the bundle over", e))?;
    have_done(
        &Ask::Reload {
            permissive: args.permissive,
        },
        Some(bundle.as_fd()),
        json,
    )?;
    whole(&policy.profiles)
}
