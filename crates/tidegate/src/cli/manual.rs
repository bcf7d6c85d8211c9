//! What `--help` and the manual say of each command beside its options.

use tidegate_manual::{Manual, Task};
use tidegated::paths;

use super::pages::PAGES;

/// All of it.
pub const MANUAL: Manual = Manual {
    tasks: TASKS,
    pages: PAGES,
    files: FILES,
    codes: CODES,
};

/// As docs/reference/commands.md has them.
const TASKS: &[Task] = &[
    Task {
        name: "Look at this machine",
        commands: &[
            "doctor", "status", "ps", "ls", "sessions", "stats", "top", "census",
        ],
    },
    Task {
        name: "Put a policy in force",
        commands: &[
            "check",
            "compile",
            "start",
            "reload",
            "stop",
            "getsebool",
            "setsebool",
        ],
    },
    Task {
        name: "Run and change something",
        commands: &["run", "promote", "revoke"],
    },
    Task {
        name: "After a refusal",
        commands: &["why", "log", "learn", "sesearch", "seinfo"],
    },
    Task {
        name: "Try on recorded work",
        commands: &["record", "replay"],
    },
    Task {
        name: "Measure, and set up",
        commands: &["bench", "lab", "completions", "man"],
    },
];

/// As docs/reference/commands.md has them.
const FILES: &[(&str, &str)] = &[
    (paths::POLICY, "the machine's policy"),
    (
        "/etc/default/tidegate",
        "options of `tidegate start` for the unit",
    ),
    (paths::LOG, "the audit log"),
    (paths::GIVEN, "levels and contexts that files were given"),
    (paths::LAST, "the policy that was last in force"),
    (
        paths::PROGRAM,
        "the program that put the monitor into the kernel; its daemon is `tidegated` beside it",
    ),
    (
        paths::BUNDLES,
        "the policy in force, which everybody may read: `why` proposes by it",
    ),
    ("/run/tidegate/tidegate.sock", "the daemon's socket"),
    (
        "/run/tidegate/admin.sock",
        "the socket by which root at the top asks the daemon",
    ),
    (
        "/run/tidegate/level/NAME",
        "reading it is how `run --level` falls",
    ),
    ("/sys/fs/bpf/tidegate", "the pinned monitor"),
];

/// As docs/reference/exit-codes.md has them.
const CODES: &[(&str, &str)] = &[
    ("0", "done, or the answer is yes"),
    ("1", "the answer is no"),
    ("2", "the command line is wrong"),
    ("3", "the policy is wrong"),
    ("4", "this machine cannot enforce"),
    ("5", "Tidegate, or its daemon, is not running"),
    ("6", "it is running already"),
    ("7", "not permitted"),
    ("8", "anything else"),
    (
        "9",
        "the monitor in the kernel is another version's, and the program that put it there is gone",
    ),
    (
        "10",
        "done, but without profiles that cannot be used, each of which is named",
    ),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use regex_lite::Regex;

    use super::*;
    use crate::cli::Cli;

    /// Pages of the manual that are other programs', or documents.
    fn others() -> Vec<String> {
        let lab = [
            "tidegate-exporter(1)",
            "tidegate-lab-bench(1)",
            "tidegate-lab-run(1)",
        ];
        let documents = text("scripts/man.py");
        let row = Regex::new(r#", (\d), "([a-z.-]+)"\)"#).unwrap();
        let names = row
            .captures_iter(&documents)
            .map(|row| format!("{}({})", &row[2], &row[1]));
        names.chain(lab.map(str::to_owned)).collect()
    }

    #[test]
    fn every_command_is_in_the_manual_with_examples_that_hold() {
        let others = others();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let faults = MANUAL.faults(&Cli::command(), &others);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// The text of a file of the tree.
    fn text(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(name);
        std::fs::read_to_string(path).unwrap()
    }

    /// The text of a page, without links.
    fn document(name: &str) -> String {
        let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
        link.replace_all(&text(name), "$1").into_owned()
    }

    #[test]
    fn the_reference_says_the_same() {
        let (commands, codes) = (
            document("docs/reference/commands.md"),
            document("docs/reference/exit-codes.md"),
        );
        for (path, what) in FILES {
            let row = format!("| `{path}` | {what} |");
            assert!(commands.contains(&row), "{row}");
        }
        for (code, meaning) in CODES {
            let row = format!("| {code} | {meaning} |");
            assert!(codes.contains(&row), "{row}");
        }
        let mut rest = &*commands;
        for task in TASKS {
            let heading = format!("\n## {}\n", task.name);
            rest = rest
                .split_once(&heading)
                .unwrap_or_else(|| panic!("{heading}"))
                .1;
            let section = rest.split("\n## ").next().unwrap();
            for command in task.commands {
                assert!(
                    section.contains(&format!("`{command}")),
                    "{}: {command}",
                    task.name
                );
            }
        }
    }
}
