//! Bundle files: policies as they were compiled.

use std::fs;
use std::path::Path;

use miette::Report;
use tidegate_bundle::Policy;

use crate::exit::{Failure, Outcome};

/// Reads a bundle file.
pub fn read_bundle(path: &Path) -> Outcome<Policy> {
    let bytes = fs::read(path).map_err(|e| Failure::io(format!("read {}", path.display()), e))?;
    Policy::from_bundle(&bytes)
        .map_err(|e| Failure::policy(Report::new(e).wrap_err(format!("{}", path.display()))))
}
