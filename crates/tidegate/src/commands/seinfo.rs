//! `seinfo`: what a SELinux policy has.

use super::print_json;
use crate::exit::Outcome;
use crate::output::say;
use crate::setools::{Seinfo, list};

pub fn run(args: &Seinfo, json: bool) -> Outcome {
    let te = args.policy.load()?;
    let lists = list(&te.db, args)?;
    if json {
        return print_json(&lists);
    }
    for listed in &lists {
        let indent = match args.flat {
            true => "",
            false => {
                say!("\n{}: {}", listed.kind, listed.items.len());
                "   "
            }
        };
        for item in &listed.items {
            say!("{indent}{item}");
        }
    }
    Ok(())
}
