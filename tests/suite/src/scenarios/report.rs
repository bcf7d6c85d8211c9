//! Why a process of a scenario failed: a file each, at the process's own level,
//! so that nobody falls by it. A trusted program reads them.

use std::fs;
use std::io::Write;

use crate::scenarios::place;

fn begin(scenario: &str) -> String {
    format!("{scenario}.")
}

/// Leaves a report of this process.
pub fn write(text: &str) {
    if text.is_empty() {
        return;
    }
    let name = begin(place::scenario());
    let path = format!("{}/{name}{}", place::REPORTS, std::process::id());
    let text = match crate::scenarios::level::by_writing() {
        Ok(level) => format!("at {}: {text}", level.name()),
        Err(_) => text.to_owned(),
    };
    let _ = fs::write(path, text);
}

/// Prints the reports of a scenario: what the trusted copy of this program does.
pub fn print(scenario: &str) -> std::io::Result<()> {
    let mut reports: Vec<_> = fs::read_dir(place::REPORTS)?
        .flatten()
        .filter(|e| {
            e.file_name()
                .to_string_lossy()
                .starts_with(&begin(scenario))
        })
        .collect();
    reports.sort_by_key(|e| e.metadata().and_then(|m| m.modified()).ok());
    let mut texts = Vec::new();
    for report in reports {
        texts.push(fs::read_to_string(report.path())?);
        let _ = fs::remove_file(report.path());
    }
    std::io::stdout().write_all(texts.join("; ").as_bytes())
}
