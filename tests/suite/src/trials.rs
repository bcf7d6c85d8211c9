//! Trials: cases that are listed, chosen and told of as those of `cargo test` are.

use std::iter;

use libtest_mimic::{Arguments, ColorSetting};

/// What a program's words ask for. All trials are played by the main thread, one after the other; what is told of them
/// may go to a console, and to a file from there.
pub fn arguments(program: &str, words: &[&str]) -> Arguments {
    let mut asked = Arguments::from_iter(iter::once(&program).chain(words));
    asked.test_threads = Some(1);
    asked.color.get_or_insert(ColorSetting::Never);
    asked
}
