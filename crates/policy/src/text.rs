//! A policy's text as it is read from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file's text.
pub(crate) struct Text {
    /// What diagnostics and records call it.
    pub name: String,
    pub text: String,
    /// Its canonical path: what tells two files apart.
    pub path: PathBuf,
}

/// Why there is no text.
pub(crate) enum Unread {
    /// It has more bytes than there is room for.
    Size,
    /// In the system's words, or ours.
    Why { path: String, why: String },
}

/// Reads a file of at most `room` bytes of UTF-8.
pub(crate) fn read(path: &Path, room: usize) -> Result<Text, Unread> {
    let name = path.display().to_string();
    let unread = |why: String| Unread::Why {
        path: name.clone(),
        why,
    };
    let of_io = |error: io::Error| unread(error.to_string());
    let canonical = path.canonicalize().map_err(of_io)?;
    // Before it is opened: opening a FIFO would wait for a writer.
    if !path.metadata().map_err(of_io)?.is_file() {
        return Err(unread("not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(room as u64 + 1).read_to_end(&mut bytes))
        .map_err(of_io)?;
    if bytes.len() > room {
        return Err(Unread::Size);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to();
        unread(format!(
            "not UTF-8 from byte {byte}; write such a name as \\xHH, in quotes"
        ))
    })?;
    Ok(Text {
        name,
        text,
        path: canonical,
    })
}
