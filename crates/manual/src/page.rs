//! One page of the manual.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::Manual;

/// Writes the page of a command, whose name is the empty string if it is the program itself.
pub fn write(
    manual: &Manual,
    command: Command,
    name: &str,
    version: &str,
    dir: &Path,
) -> io::Result<()> {
    // roff drops empty words, so the version takes the date's place.
    let man = Man::new(command.clone()).date(version).source("");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if name.is_empty() && !manual.tasks.is_empty() {
        commands(manual, &command).to_writer(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    sections(manual, name).to_writer(&mut text)?;
    fs::write(dir.join(man.get_filename()), text)
}

/// The commands of a program, by task.
fn commands(manual: &Manual, command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for task in manual.tasks {
        roff.control("SS", [task.name]);
        for name in task.commands {
            let sub = command.find_subcommand(name);
            let about = sub.and_then(|sub| sub.get_about()).unwrap_or_default();
            let page = format!("{}-{name}", command.get_name());
            roff.control("TP", []);
            roff.text([bold(page), roman("(1)")]);
            roff.text([roman(about.to_string())]);
        }
    }
    roff
}

/// What stands behind the options.
fn sections(manual: &Manual, name: &str) -> Roff {
    let mut roff = Roff::new();
    let Some(page) = manual.page(name) else {
        return roff;
    };
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in manual.codes {
        item(&mut roff, bold(*code), meaning);
    }
    if !page.files.is_empty() {
        roff.control("SH", ["FILES"]);
    }
    for (path, what) in manual
        .files
        .iter()
        .filter(|(path, _)| page.files.contains(path))
    {
        item(&mut roff, italic(*path), what);
    }
    if !page.examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (line, about) in page.examples {
        item(&mut roff, bold(*line), about);
    }
    roff.control("SH", ["SEE ALSO"]);
    let mut others = Vec::new();
    for other in page.see {
        let (other, section) = other.split_once('(').unwrap_or((other, ""));
        others.extend(match others.is_empty() {
            true => None,
            false => Some(roman(", ")),
        });
        others.extend([bold(other), roman(format!("({section}"))]);
    }
    roff.text(others);
    roff
}

/// A word, and what it means.
fn item(roff: &mut Roff, word: Inline, meaning: &str) {
    roff.control("TP", []);
    roff.text([word]);
    roff.text([roman(meaning)]);
}
