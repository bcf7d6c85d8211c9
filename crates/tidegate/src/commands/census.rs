//! `census`: what this kernel offers, and what of it nobody has decided on.

use serde::Serialize;
use tidegate_census::{Row, Table};
use tidegate_monitor::offer;

use super::print_json;
use crate::cli::Census;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;

/// What `--json` says.
#[derive(Debug, Serialize)]
struct Told {
    release: String,
    rows: Vec<String>,
}

pub fn run(args: &Census, json: bool) -> Outcome {
    let mut offer = offer::whole().map_err(|e| Failure::io("read what this kernel offers", e))?;
    if args.undecided {
        let table = Table::read().map_err(|e| Failure::new(Code::Internal, e))?;
        offer.rows = table.undecided(&offer).into_iter().cloned().collect();
    }
    if json {
        return print_json(&Told {
            rows: offer.rows.iter().map(Row::to_string).collect(),
            release: offer.release,
        });
    }
    say!("{}", offer.to_string().trim_end());
    Ok(())
}
