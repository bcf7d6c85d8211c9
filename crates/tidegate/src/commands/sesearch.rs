//! `sesearch`: rules of a SELinux policy.

use tidegate_audit::printable;

use super::print_json;
use crate::exit::Outcome;
use crate::output::say;
use crate::setools::{Search, Sesearch};

pub fn run(args: &Sesearch, json: bool) -> Outcome {
    let te = args.policy.load()?;
    let found = Search::new(&te.db, te.values(), args)?.all()?;
    if json {
        return print_json(&found);
    }
    for rule in &found {
        say!("{}", printable(&rule.rule));
    }
    Ok(())
}
