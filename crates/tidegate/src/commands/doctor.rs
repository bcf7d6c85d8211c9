//! `doctor`: whether this machine can enforce, line by line, and how to fix it.

use std::process::ExitCode;

use anstyle::AnsiColor;

use super::print_json;
use crate::doctor::{Check, examine};
use crate::exit::{Code, Outcome};
use crate::output::say;

/// What `--json` says.
#[derive(Debug, serde::Serialize)]
struct Diagnosis {
    can_enforce: bool,
    checks: Vec<Check>,
}

pub fn run(json: bool) -> Outcome<ExitCode> {
    let checks = examine();
    // what cannot be told from its files is told by the attempt
    let can_enforce = checks.iter().all(|c| c.ok != Some(false));
    let code = if can_enforce {
        ExitCode::SUCCESS
    } else {
        Code::CannotEnforce.into()
    };
    if json {
        print_json(&Diagnosis {
            can_enforce,
            checks,
        })?;
        return Ok(code);
    }
    for check in &checks {
        let (word, colour) = match check.ok {
            Some(true) => ("ok", AnsiColor::Green),
            Some(false) => ("no", AnsiColor::Red),
            None => ("?", AnsiColor::Yellow),
        };
        let style = colour.on_default();
        say!(
            "{style}{word:<3}{style:#} {:<16} {}",
            check.what,
            check.found
        );
        if let Some(fix) = &check.fix {
            say!("    {:<16} → {fix}", "");
        }
    }
    if can_enforce {
        say!(
            "this machine can enforce: `tidegate start --preset workstation --permissive` only records at first (`server` on a server)"
        );
    } else {
        say!(
            "this machine cannot enforce as it is; `make run` in the source tree shows Tidegate in a virtual machine"
        );
    }
    Ok(code)
}
