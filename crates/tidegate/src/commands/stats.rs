//! `stats`: how each object manager's queries were resolved, in the shape of
//! Flask's Table 6.

use serde::Serialize;
use tidegate_monitor::{ClassStats, Monitor};

use super::print_json;
use crate::exit::Outcome;
use crate::output::say;

/// A line of the table.
#[derive(Debug, Serialize)]
struct Line {
    object_manager: String,
    queries: u64,
    hint: u64,
    cache: u64,
    server: u64,
    denied: u64,
}

impl From<ClassStats> for Line {
    fn from(s: ClassStats) -> Line {
        Line {
            object_manager: s.class.word().into(),
            queries: s.queries,
            // what neither the cache nor the server was asked for, the object knew
            hint: s.queries.saturating_sub(s.cache + s.server).max(s.hint),
            cache: s.cache,
            server: s.server,
            denied: s.denied,
        }
    }
}

pub fn run(json: bool) -> Outcome {
    let mut lines: Vec<Line> = Monitor::open()?
        .stats()?
        .into_iter()
        .map(Line::from)
        .collect();
    if json {
        return print_json(&lines);
    }
    let total = |f: fn(&Line) -> u64| lines.iter().map(f).sum();
    lines.push(Line {
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
