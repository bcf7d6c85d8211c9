//! What is missing in what is said of a program, or wrong.

use std::collections::BTreeSet;

use clap::Command;
use clap::builder::styling::Style;

use crate::{Manual, Page};

/// A line of the help, in a terminal that is as wide as terminals were.
const WIDTH: usize = 80;

/// Returns all faults; `others` are the pages that other programs and documents have.
pub fn of(manual: &Manual, command: &Command, others: &[&str]) -> Vec<String> {
    let program = command.get_name();
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let names: BTreeSet<&str> = shown.map(Command::get_name).collect();
    let tasks = manual.tasks.iter().flat_map(|task| task.commands);
    let in_tasks: BTreeSet<&str> = tasks.copied().collect();
    let mut faults = Vec::new();
    let unequal = names.symmetric_difference(&in_tasks);
    faults.extend(unequal.map(|name| format!("`{name}` is not a command, or in no task")));
    for name in names.iter().copied().chain([""]) {
        if manual.page(name).is_none() {
            faults.push(format!("`{program} {name}` has no page"));
        }
    }
    let of_commands = names.iter().map(|name| format!("{program}-{name}(1)"));
    let mut pages: BTreeSet<String> = of_commands.chain([format!("{program}(1)")]).collect();
    pages.extend(others.iter().map(|&other| other.to_owned()));
    for page in manual.pages {
        faults.extend(of_page(manual, command, page, &pages));
    }
    faults.extend(too_wide(manual, command));
    faults
}

/// The faults of one page.
fn of_page(
    manual: &Manual,
    command: &Command,
    page: &Page,
    pages: &BTreeSet<String>,
) -> Vec<String> {
    let (program, name) = (command.get_name(), page.command);
    let mut faults = Vec::new();
    if !name.is_empty() && command.find_subcommand(name).is_none() {
        faults.push(format!("`{name}` has a page and is not a command"));
    }
    if page.examples.is_empty() || page.see.is_empty() {
        faults.push(format!(
            "the page of `{program} {name}` lacks examples or other pages"
        ));
    }
    for (line, _) in page.examples {
        let words = line.split_whitespace();
        match command.clone().try_get_matches_from(words) {
            Err(e) if e.use_stderr() => faults.push(format!("`{line}` is not taken: {e}")),
            _ => {}
        }
        if !line.starts_with(format!("{program} {name}").trim_end()) {
            faults.push(format!(
                "`{line}` is an example of another command than `{name}`"
            ));
        }
    }
    for file in page.files {
        if !manual.files.iter().any(|(path, _)| path == file) {
            faults.push(format!(
                "the page of `{name}` names {file}, which is not described"
            ));
        }
    }
    let unknown = page.see.iter().filter(|&&other| !pages.contains(other));
    faults.extend(
        unknown.map(|other| format!("the page of `{name}` names {other}, which is not there")),
    );
    faults
}

/// Lines of the help that do not fit: those of the list of commands, and examples, which nothing wraps.
fn too_wide(manual: &Manual, command: &Command) -> Vec<String> {
    let helped = manual.help(command.clone());
    let examples = helped.get_subcommands().chain([&helped]);
    let mut shown: Vec<String> = examples
        .filter_map(|sub| sub.get_after_help())
        .map(ToString::to_string)
        .collect();
    shown.push(manual.list(command, Style::new(), Style::new()));
    let lines = shown.iter().flat_map(|text| text.lines());
    lines
        .filter(|line| line.chars().count() > WIDTH)
        .map(|line| format!("the help's line is longer than {WIDTH}: {line}"))
        .collect()
}
