//! Parts: what can be asked for by name.

use anyhow::{Context, Result};

use crate::suite::Suite;
use crate::table::SUITES;

/// The kernels that parts are played on.
pub const KERNELS: [&str; 2] = ["6.12", "7.2"];

/// A suite on a kernel, or one that needs none.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The suite.
    pub suite: &'static Suite,
    /// The kernel's series.
    pub kernel: Option<&'static str>,
}

impl Part {
    /// The part of a name.
    ///
    /// # Errors
    /// That there is no such part.
    pub fn named(name: &str) -> Result<Part> {
        let (suite, kernel) = KERNELS
            .into_iter()
            .find_map(|k| Some((name.strip_suffix(k)?.strip_suffix('-')?, Some(k))))
            .unwrap_or((name, None));
        SUITES
            .iter()
            .map(|suite| Part { suite, kernel })
            .find(|part| part.suite.name == suite && part.suite.on_kernels() == kernel.is_some())
            .with_context(|| format!("there is no part {name}: `cargo xtask list` has them"))
    }

    /// All parts, on all kernels.
    pub fn all() -> impl Iterator<Item = Part> {
        SUITES.iter().flat_map(|suite| {
            let kernels = KERNELS.into_iter().map(Some).filter(|_| suite.on_kernels());
            let without = std::iter::once(None).filter(|_| !suite.on_kernels());
            kernels
                .chain(without)
                .map(move |kernel| Part { suite, kernel })
        })
    }

    /// Its name.
    pub fn name(self) -> String {
        match self.kernel {
            Some(kernel) => format!("{}-{kernel}", self.suite.name),
            None => self.suite.name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;
    use crate::suite::How;
    use crate::table::{MORE, QUICK, TEST};

    #[test]
    fn every_part_of_a_set_is_there() {
        for name in [QUICK, TEST, MORE].concat() {
            assert_eq!(Part::named(name).unwrap().name(), name);
        }
        assert!(Part::named("caps").is_err());
        assert!(Part::named("core-6.12").is_err());
        assert!(Part::named("nothing").is_err());
    }

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for part in Part::all() {
            assert!(seen.insert(part.name()), "{} twice", part.name());
        }
    }

    #[test]
    fn every_file_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for suite in SUITES {
            let files: Vec<&str> = match &suite.how {
                How::Here(words, _) => vec![words[0]],
                How::Machine(guest) => [
                    guest.files,
                    &[guest.play],
                    guest.prepare.as_slice(),
                    guest.judge.as_slice(),
                ]
                .concat(),
                _ => Vec::new(),
            };
            for file in files {
                assert!(
                    root.join(file).exists(),
                    "{}: there is no {file}",
                    suite.name
                );
            }
        }
    }
}
