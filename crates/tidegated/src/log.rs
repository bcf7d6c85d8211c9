//! The audit log: JSON lines in a file that is rotated by its size, and a copy to
//! the journal where it runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tidegate_audit::{Record, printable};

use crate::error::{DaemonError, Outcome};
use crate::journal::Journal;
use crate::messages::complain;

/// Bytes that no line has.
const LONGEST: u64 = 64 << 10;

/// Where records go.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    /// `None` where it could not be opened so far.
    file: Option<File>,
    len: u64,
    size: u64,
    keep: u32,
    journal: Journal,
}

impl Log {
    /// Opens the log. Where that cannot be, as on a full disk, it is tried again with each record: there is a daemon all the same.
    pub fn open(path: &Path, size: u64, keep: u32) -> Outcome<Log> {
        let journal = Journal::new().map_err(|e| DaemonError::io("make a socket", e))?;
        let mut log = Log {
            path: path.into(),
            file: None,
            len: 0,
            size,
            keep,
            journal,
        };
        if let Err(e) = log.begin() {
            let path = path.display();
            complain(&format!("the audit log {path} cannot be opened: {e}"));
        }
        Ok(log)
    }

    /// Opens its file, making the directory (0700) if there is none.
    fn begin(&mut self) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            use std::os::unix::fs::DirBuilderExt;
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)?;
        }
        let (file, len) = append(&self.path)?;
        (self.file, self.len) = (Some(file), len);
        Ok(())
    }

    /// Writes a record, whole or not at all.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        // it is the same JSON, and nothing in it has an effect on a terminal
        let mut line = printable(&serde_json::to_string(record)?).into_bytes();
        line.push(b'\n');
        if self.file.is_none() {
            self.begin()?;
        }
        if self.len > 0 && self.len + line.len() as u64 > self.size {
            self.rotate()?;
        }
        let mut file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if let Err(e) = file.write_all(&line) {
            // a disk that is full takes a part of a line
            file.set_len(self.len)?;
            return Err(e);
        }
        self.len += line.len() as u64;
        self.journal.send(record);
        Ok(())
    }

    /// `audit.jsonl` becomes `audit.jsonl.1`, that `.2`, the oldest goes. What follows is made
    /// first: where there is no room for it nothing moves.
    fn rotate(&mut self) -> io::Result<()> {
        let beside = |end: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push(format!(".{end}"));
            PathBuf::from(path)
        };
        let numbered = |n: u32| beside(&n.to_string());
        let (file, len) = append(&beside("new"))?;
        for n in (1..self.keep).rev() {
            match fs::rename(numbered(n), numbered(n + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        if self.keep > 0 {
            fs::rename(&self.path, numbered(1))?;
        }
        fs::rename(beside("new"), &self.path)?;
        (self.file, self.len) = (Some(file), len);
        Ok(())
    }
}

/// Opens a log and tells its length; half a line, which a daemon left that was killed or a machine
/// that went down, is taken off.
fn append(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(LONGEST);
    let mut end = vec![0; (len - from) as usize];
    file.read_exact_at(&mut end, from)?;
    let whole = end.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let whole = from + whole as u64;
    if whole < len {
        file.set_len(whole)?;
    }
    Ok((file, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_rotated_by_size_and_keeps_so_many() {
        let dir = std::env::temp_dir().join(format!("tidegate-log-{}", std::process::id()));
        let path = dir.join("audit.jsonl");
        let mut log = Log::open(&path, 300, 2).unwrap();
        for n in 0..20 {
            log.write(&Record {
                id: n,
                ..Record::own("lost", n)
            })
            .unwrap();
        }
        let mut names: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
        for name in names {
            assert!(fs::metadata(dir.join(name)).unwrap().len() <= 300);
        }
        let last = fs::read_to_string(&path).unwrap();
        let last: Record = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        assert_eq!(last.id, 19);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_opened_later() {
        let dir = std::env::temp_dir().join(format!("tidegate-late-{}", std::process::id()));
        let path = dir.join("audit.jsonl");
        // stands in the way as a full disk does
        fs::create_dir_all(&path).unwrap();
        let mut log = Log::open(&path, 1 << 20, 2).unwrap();
        assert!(log.write(&Record::own("lost", 1)).is_err());
        fs::remove_dir(&path).unwrap();
        log.write(&Record::own("lost", 2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn half_a_line_is_taken_off() {
        let dir = std::env::temp_dir().join(format!("tidegate-half-{}", std::process::id()));
        let path = dir.join("audit.jsonl");
        let mut log = Log::open(&path, 1 << 20, 2).unwrap();
        log.write(&Record::own("lost", 1)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"id\":0,\"ti")).unwrap();
        let mut log = Log::open(&path, 1 << 20, 2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        log.write(&Record::own("lost", 2)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
        fs::write(&path, "nothing whole").unwrap();
        Log::open(&path, 1 << 20, 2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn where_the_next_log_cannot_be_made_none_moves() {
        let dir = std::env::temp_dir().join(format!("tidegate-full-{}", std::process::id()));
        let path = dir.join("audit.jsonl");
        let mut log = Log::open(&path, 300, 2).unwrap();
        // stands in the way as a full disk does
        fs::create_dir(dir.join("audit.jsonl.new")).unwrap();
        let results: Vec<_> = (1..20)
            .map(|n| log.write(&Record::own("lost", n)))
            .collect();
        let written = results.iter().take_while(|r| r.is_ok()).count();
        assert!(written > 0 && results[written..].iter().all(Result::is_err));
        assert!(!dir.join("audit.jsonl.1").exists());
        fs::remove_dir(dir.join("audit.jsonl.new")).unwrap();
        log.write(&Record::own("lost", 20)).unwrap();
        let before = fs::read_to_string(dir.join("audit.jsonl.1")).unwrap();
        assert_eq!(before.lines().count(), written);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
