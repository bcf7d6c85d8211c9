//! What the help and the manual of a program say beyond its options: tasks, examples, files, exit codes. It is written down
//! once, in a [`Manual`]. [`Manual::help`] puts it into `--help`, [`Manual::write`] into the manual's pages, and
//! [`Manual::faults`] is for the test that nothing in it is missing or wrong.

#![forbid(unsafe_code)]

mod faults;
mod page;

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::styling::Style;

/// What is said of one program.
#[derive(Debug, Clone, Copy)]
pub struct Manual {
    /// The commands by task, for the program's help; none if it has no commands.
    pub tasks: &'static [Task],
    /// A page for the program, whose command is the empty string, and for each of its commands.
    pub pages: &'static [Page],
    /// The files that pages name.
    pub files: &'static [(&'static str, &'static str)],
    /// The exit codes and their meaning.
    pub codes: &'static [(&'static str, &'static str)],
}

/// Commands for one task.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// The heading.
    pub name: &'static str,
    /// The commands, in the order in which they are listed.
    pub commands: &'static [&'static str],
}

/// What is said of one command.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The command; the empty string is the program itself.
    pub command: &'static str,
    /// What to type, and what that does.
    pub examples: &'static [(&'static str, &'static str)],
    /// Paths of [`Manual::files`] that it reads or writes.
    pub files: &'static [&'static str],
    /// Other pages, such as `tidegate-log(1)`.
    pub see: &'static [&'static str],
}

impl Manual {
    /// Returns the command line with examples in the help of each command, and with its commands by task.
    pub fn help(&self, mut command: Command) -> Command {
        command = self.exemplified(command, "");
        let names: Vec<String> = command
            .get_subcommands()
            .map(|sub| sub.get_name().to_owned())
            .collect();
        for name in names {
            command = command.mut_subcommand(&name, |sub| self.exemplified(sub, &name));
        }
        match self.tasks.is_empty() {
            true => command,
            false => {
                let template = self.template(&command);
                command.help_template(template)
            }
        }
    }

    /// Writes the manual's pages, one for the program and one for each command that is not hidden.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, command: Command, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        let version = format!("Tidegate {}", command.get_version().unwrap_or_default());
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            page::write(self, sub.clone(), sub.get_name(), &version, dir)?;
        }
        page::write(self, command, "", &version, dir)
    }

    /// Returns what is wrong: a command without a page or without a task, a page of no command, an example that the command
    /// line does not take, a file or another page that is not described.
    pub fn faults(&self, command: &Command, others: &[&str]) -> Vec<String> {
        faults::of(self, command, others)
    }

    /// Returns what is said of a command.
    fn page(&self, command: &str) -> Option<&Page> {
        self.pages.iter().find(|page| page.command == command)
    }

    /// Returns the command with its examples below its help.
    fn exemplified(&self, command: Command, name: &str) -> Command {
        let Some(page) = self.page(name).filter(|page| !page.examples.is_empty()) else {
            return command;
        };
        let header = *command.get_styles().get_header();
        let literal = *command.get_styles().get_literal();
        let mut text = format!("{header}Examples:{header:#}");
        for (line, about) in page.examples {
            let _ = write!(text, "\n  {literal}{line}{literal:#}\n      {about}");
        }
        command.after_help(text)
    }

    /// Returns the form of the program's help: its commands stand by task.
    fn template(&self, command: &Command) -> String {
        let header = *command.get_styles().get_header();
        let list = self.list(command, header, *command.get_styles().get_literal());
        format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n\
             {header}Options:{header:#}\n{{options}}{{after-help}}"
        )
    }

    /// Returns the list of commands, each with the first line of what it is about.
    fn list(&self, command: &Command, header: Style, literal: Style) -> String {
        let names = self.tasks.iter().flat_map(|task| task.commands);
        let width = names.map(|name| name.len()).max().unwrap_or_default() + 1;
        let mut text = String::new();
        for task in self.tasks {
            let _ = writeln!(text, "\n{header}{}:{header:#}", task.name);
            for name in task.commands {
                let about = about(command, name);
                let _ = writeln!(text, "  {literal}{name:<width$}{literal:#} {about}");
            }
        }
        text
    }
}

/// Returns the first line of what a command of the program is about.
fn about(program: &Command, command: &str) -> String {
    let sub = program.find_subcommand(command);
    let about = sub.and_then(|sub| sub.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}
