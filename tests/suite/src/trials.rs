//! Trials: cases that are listed, chosen and told of as those of `cargo test` are.

use std::iter;

use libtest_mimic::{Arguments, ColorSetting, Conclusion, Trial};

/// What a program's words ask for.
pub struct Asked {
    /// Options, and the name if there is one alone.
    arguments: Arguments,
    /// Names, or with `--exact` not parts of them, if there are several; `cargo test` takes one.
    names: Vec<String>,
}

/// What a program's words ask for. All trials are played by the main thread, one after the other; what is told of them
/// may go to a console, and to a file from there.
pub fn arguments(program: &str, words: &[&str]) -> Asked {
    let (options, names): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('-'));
    let (words, names) = match names[..] {
        [_, _, ..] => (&options[..], &names[..]),
        _ => (words, &[][..]),
    };
    let mut arguments = Arguments::from_iter(iter::once(&program).chain(words));
    arguments.test_threads = Some(1);
    arguments.color.get_or_insert(ColorSetting::Never);
    Asked {
        arguments,
        names: names.iter().map(|&name| name.to_owned()).collect(),
    }
}

impl Asked {
    /// Is only a list asked for?
    pub fn lists(&self) -> bool {
        self.arguments.list
    }

    /// Plays those of the trials that are asked for.
    pub fn run(&self, mut trials: Vec<Trial>) -> Conclusion {
        let asks_for = |name: &str| {
            self.names.iter().any(|asked| match self.arguments.exact {
                true => name == asked,
                false => name.contains(asked),
            })
        };
        trials.retain(|trial| self.names.is_empty() || asks_for(trial.name()));
        libtest_mimic::run(&self.arguments, trials)
    }
}
