//! The programs that the tests run in virtual machines, and some that they run beside them: one binary.
//!
//! It is the program whose name its file has, or else its first word: a machine's payload has copies of it under the
//! programs' names. Programs put further copies where they need them, and those are known by their places or by what
//! they are told to do.

mod attack;
#[cfg(test)]
mod bypasses;
mod caps_random;
mod profile_ops;
mod replay;
mod scenarios;
mod sys;
mod te_contexts;
mod te_decisions;
mod te_live;
mod te_ops;
mod trials;
mod wait;

use std::process::ExitCode;

/// One of the programs.
struct Program {
    /// What it is called by: the name of the file, or the first word.
    name: &'static str,
    /// In one line.
    about: &'static str,
    /// Whether what was executed by this path, with these words, is a copy that this program has made of itself.
    is_copy: fn(&str, &[&str]) -> bool,
    /// Plays it by the words that follow its name.
    main: fn(&[&str]) -> ExitCode,
}

const PROGRAMS: [Program; 9] = [
    Program {
        name: "scenarios",
        about: "what Tidegate must allow and refuse",
        is_copy: |_, words| scenarios::is_copy(words),
        main: scenarios::main,
    },
    Program {
        name: "te-ops",
        about: "operations in the domains of a SELinux policy",
        is_copy: |path, _| te_ops::is_copy(path),
        main: te_ops::main,
    },
    Program {
        name: "te-live",
        about: "what a process holds when booleans of a SELinux policy are set",
        is_copy: |path, _| te_live::is_copy(path),
        main: te_live::main,
    },
    Program {
        name: "profile-ops",
        about: "operations under AppArmor's profiles",
        is_copy: |path, _| profile_ops::is_copy(path),
        main: profile_ops::main,
    },
    Program {
        name: "caps-random",
        about: "random sequences under capability files, against their model",
        is_copy: |path, _| caps_random::is_copy(path),
        main: caps_random::main,
    },
    Program {
        name: "replay",
        about: "random operations, against the model of lomac",
        is_copy: |path, _| replay::is_copy(path),
        main: replay::main,
    },
    Program {
        name: "attack",
        about: "every system call at the lowest level, on higher objects",
        is_copy: |path, _| attack::is_copy(path),
        main: attack::main,
    },
    Program {
        name: "te-decisions",
        about: "decisions by SELinux policies, against libsepol",
        is_copy: |_, _| false,
        main: te_decisions::main,
    },
    Program {
        name: "te-contexts",
        about: "file contexts, against libselinux",
        is_copy: |_, _| false,
        main: te_contexts::main,
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (path, words) = words.split_first().unwrap_or((&"", &[]));
    if let Some((program, words)) = asked(path, words) {
        return (program.main)(words);
    }
    match words {
        ["--list-programs" | "--help" | "-h"] => {
            println!("usage: tidegate-tests PROGRAM ARGUMENT…, or by a file of that name\n");
            for Program { name, about, .. } in &PROGRAMS {
                println!("{name:<14} {about}");
            }
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("tidegate-tests: no such program (see --list-programs)");
            ExitCode::from(2)
        }
    }
}

/// Which program is executed by this path and with these words, and the words that are for it.
fn asked<'w>(path: &str, words: &'w [&'w str]) -> Option<(&'static Program, &'w [&'w str])> {
    let named = |name: &str| PROGRAMS.iter().find(|program| program.name == name);
    let file = path.rsplit('/').next().unwrap_or_default();
    if let Some(program) = named(file) {
        return Some((program, words));
    }
    let copied = PROGRAMS
        .iter()
        .find(|program| (program.is_copy)(path, words));
    if let Some(program) = copied {
        return Some((program, words));
    }
    let (first, words) = words.split_first()?;
    named(first).map(|program| (program, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the program, and how many words are for it.
    fn known(path: &str, words: &[&str]) -> Option<(&'static str, usize)> {
        asked(path, words).map(|(program, words)| (program.name, words.len()))
    }

    #[test]
    fn each_is_known_by_its_file_and_by_the_first_word() {
        for Program { name, .. } in &PROGRAMS {
            assert_eq!(known(&format!("/payload/{name}"), &["x"]), Some((*name, 1)));
            assert_eq!(known(name, &[]), Some((*name, 0)));
            assert_eq!(
                known("target/tidegate-tests", &[name, "x"]),
                Some((*name, 1))
            );
        }
        assert_eq!(known("tidegate-tests", &[]), None);
        assert_eq!(known("tidegate-tests", &["--list-programs"]), None);
    }

    #[test]
    fn copies_are_known_by_their_places_and_by_what_they_are_told() {
        for (path, words, name) in [
            ("/scn/bin/trusted", &["--helper", "level"][..], "scenarios"),
            (
                "/scn/low/exec-low-program",
                &["--helper", "level"],
                "scenarios",
            ),
            ("low", &["--helper", "level"], "scenarios"),
            ("/run/scn/x", &["--one", "exec-low"], "scenarios"),
            (
                "/srv/ops/plain/program",
                &["script", "/srv/ops/obj/script"],
                "te-ops",
            ),
            ("/payload/other-live", &["inherited", "0"], "te-live"),
            ("/srv/ops/bin/ops", &["confined"], "profile-ops"),
            ("/srv/ops/bin/px", &["act", "read-a"], "profile-ops"),
            ("/srv/random/bin/same", &["actor"], "caps-random"),
            ("/srv/replay-bin/trusted", &["3:1"], "replay"),
            (
                "/srv/replay-bin/worker",
                &["/srv/replay-bin/script", "3:1"],
                "replay",
            ),
        ] {
            assert_eq!(known(path, words), Some((name, words.len())), "{path}");
        }
    }
}
