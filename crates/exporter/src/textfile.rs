//! A file for node_exporter's textfile collector.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::Builder;

use crate::snapshot::Snapshot;
use crate::text::{Form, expose};

/// Writes the metrics down once; a reader of the file has the old one or the new one.
pub fn write(path: &Path) -> Result<()> {
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let text = expose(Snapshot::take(), Form::Classic);
    let written = || -> std::io::Result<()> {
        // the collector takes no file that does not end in .prom
        let mut file = Builder::new()
            .prefix(".tidegate-")
            .suffix(".new")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|e| e.error)
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tidegate.prom");
        std::fs::write(&path, "old").unwrap();
        write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\ntidegate_up "), "{text}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0);
        assert!(write(&dir.path().join("none/x.prom")).is_err());
    }
}
