//! `compile`: a map becomes a bundle.

use std::fs;

use super::done;
use crate::cli::Compile;
use crate::exit::{Failure, Outcome};
use crate::profiles::whole;
use crate::source::Source;

pub fn run(args: &Compile, json: bool) -> Outcome {
    let source = Source {
        policy: args.file.clone(),
        preset: args.preset.clone(),
        profiles: args.profiles.clone(),
        te: args.te.clone(),
        ..Source::default()
    };
    let policy = source.load()?;
    let bundle = policy.to_bundle();
    let mut new = args.output.clone().into_os_string();
    new.push(".new");
    fs::write(&new, &bundle)
        .and_then(|()| fs::rename(&new, &args.output))
        .map_err(|e| Failure::io(format!("write {}", args.output.display()), e))?;
    done(
        &format!("{}: {} bytes", args.output.display(), bundle.len()),
        json,
    )?;
    whole(&policy.profiles)
}
