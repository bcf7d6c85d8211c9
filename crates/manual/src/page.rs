//! One page of the manual.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::{Manual, about};

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
    synopsis(&command).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    if name.is_empty() && !manual.tasks.is_empty() {
        commands(manual, &command).to_writer(&mut text)?;
    }
    man.render_options_section(&mut text)?;
    sections(manual, name).to_writer(&mut text)?;
    fs::write(dir.join(man.get_filename()), text)
}

/// How the command is typed: options with their values, then what stands without a name.
fn synopsis(command: &Command) -> Roff {
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let mut words = vec![bold(command.get_bin_name().unwrap_or(command.get_name()))];
    let (options, rest): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(shown)
        .partition(|arg| !arg.is_positional());
    for arg in options.into_iter().chain(rest) {
        words.push(roman(if arg.is_required_set() { " " } else { " [" }));
        words.extend(typed(arg));
        if !arg.is_required_set() {
            words.push(roman("]"));
        }
    }
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        words.extend([roman(" "), italic("COMMAND"), roman(" …")]);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(words);
    roff
}

/// How an argument is typed.
fn typed(arg: &Arg) -> Vec<Inline> {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names
        .iter()
        .map(|name| name.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let mut words = Vec::new();
    if let Some(long) = arg.get_long() {
        words.push(bold(format!("--{long}")));
    } else if let Some(short) = arg.get_short() {
        words.push(bold(format!("-{short}")));
    } else if arg.is_last_set() {
        words.push(roman("-- "));
    }
    if arg.get_action().takes_values() {
        let is_optional = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        let before = if arg.is_positional() { "" } else { " " };
        words.push(match is_optional && !arg.is_positional() {
            true => roman(format!(" [{value}]")),
            false => roman(before),
        });
        words.extend((!is_optional || arg.is_positional()).then(|| italic(value)));
    }
    let is_many = arg
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1);
    if is_many || matches!(arg.get_action(), ArgAction::Append) {
        words.push(roman("…"));
    }
    words
}

/// The commands of a program, by task.
fn commands(manual: &Manual, command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for task in manual.tasks {
        roff.control("SS", [task.name]);
        for name in task.commands {
            let page = format!("{}-{name}", command.get_name());
            roff.control("TP", []);
            roff.text([bold(page), roman("(1)")]);
            roff.text([roman(about(command, name))]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Page;

    #[test]
    fn a_page_has_all_sections_and_says_how_to_type_the_command() {
        const MANUAL: Manual = Manual {
            tasks: &[],
            pages: &[Page {
                command: "",
                examples: &[("fetch -n 2 -- a", "fetch a twice")],
                files: &["/etc/fetch"],
                see: &["other(5)", "fetch(1)"],
            }],
            files: &[("/etc/fetch", "where from"), ("/etc/unused", "nothing")],
            codes: &[("0", "done")],
        };
        let command = Command::new("fetch")
            .about("Fetches")
            .arg(Arg::new("n").short('n').value_name("N"))
            .arg(Arg::new("dry").long("dry").action(ArgAction::SetTrue))
            .arg(
                Arg::new("name")
                    .value_name("NAME")
                    .last(true)
                    .required(true)
                    .num_args(1..),
            );
        assert_eq!(MANUAL.faults(&command, &["other(5)"]), Vec::<String>::new());
        let dir = std::env::temp_dir().join(format!("tidegate-manual-{}", std::process::id()));
        MANUAL.write(command, &dir).unwrap();
        let text = fs::read_to_string(dir.join("fetch.1")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let sections: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        let expected = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "\"EXIT STATUS\"",
            "FILES",
            "EXAMPLES",
            "\"SEE ALSO\"",
        ];
        assert_eq!(sections, expected);
        let typed =
            "\\fBfetch\\fR [\\fB\\-n\\fR \\fIN\\fR] [\\fB\\-\\-dry\\fR] \\-\\- \\fINAME\\fR…";
        assert!(text.contains(typed), "{text}");
        assert!(!text.contains("unused"), "{text}");
    }

    #[test]
    fn what_is_missing_or_wrong_is_found() {
        const MANUAL: Manual = Manual {
            tasks: &[],
            pages: &[Page {
                command: "",
                examples: &[("fetch --no-such-option", "fail")],
                files: &["/etc/fetch"],
                see: &["other(5)"],
            }],
            files: &[],
            codes: &[],
        };
        let command = Command::new("fetch").subcommand(Command::new("all"));
        let faults = MANUAL.faults(&command, &[]).join("\n");
        for one in [
            "`all` is not",
            "`fetch all` has no page",
            "not taken",
            "/etc/fetch",
            "other(5)",
        ] {
            assert!(faults.contains(one), "{one}: {faults}");
        }
    }
}
