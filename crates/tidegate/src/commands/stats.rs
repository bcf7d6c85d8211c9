//! `stats`: how each object manager's queries were resolved, in the shape of
//! Flask's Table 6.

use tidegate_monitor::Monitor;
use tidegated::managers;

use super::print_json;
use crate::exit::Outcome;
use crate::output::say;
use crate::protocol::Manager;

pub fn run(json: bool) -> Outcome {
    let mut lines = managers(&Monitor::open()?)?;
    if json {
        return print_json(&lines);
    }
    let total = |f: fn(&Manager) -> u64| lines.iter().map(f).sum();
    lines.push(Manager {
        object_manager: "total".into(),
        queries: total(|l| l.queries),
        hint: total(|l| l.hint),
        cache: total(|l| l.cache),
        server: total(|l| l.server),
        denied: total(|l| l.denied),
    });
    say!(
        "{:<14} {:>7} {:>14} {:>14} {:>14} {:>6}",
        "object manager",
        "queries",
        "by hint",
        "by cache",
        "by server",
        "denied"
    );
    for l in lines {
        let part = |n: u64| format!("{n} {:5.1} %", percent(n, l.queries));
        say!(
            "{:<14} {:>7} {:>14} {:>14} {:>14} {:>6}",
            l.object_manager,
            l.queries,
            part(l.hint),
            part(l.cache),
            part(l.server),
            l.denied
        );
    }
    Ok(())
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}
