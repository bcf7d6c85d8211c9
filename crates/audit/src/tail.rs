//! The audit log as it grows: whole lines, and the new file where it was rotated.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::record::Record;

/// A place in the log.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    reader: BufReader<File>,
}

impl Tail {
    /// From the file's beginning.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Tail> {
        Ok(Tail {
            path: path.into(),
            reader: BufReader::new(File::open(path)?),
        })
    }

    /// From the first line that begins in the last so many bytes.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn open_near_end(path: &Path, bytes: u64) -> io::Result<Tail> {
        let mut tail = Tail::open(path)?;
        let len = tail.reader.get_ref().metadata()?.len();
        if let Some(skip) = len.checked_sub(bytes).filter(|&skip| skip > 0) {
            // one byte earlier, so that a line that begins just there is not lost
            tail.reader.seek(SeekFrom::Start(skip - 1))?;
            tail.reader.skip_until(b'\n')?;
        }
        Ok(tail)
    }

    /// Hands over each whole line, to the end of the file; one that is still being written
    /// waits.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn lines(&mut self, each: &mut impl FnMut(&str)) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') {
                return self.reader.seek_relative(-(line.len() as i64));
            }
            each(&String::from_utf8_lossy(&line));
        }
    }

    /// Hands over each record and its line; a line that is no record is passed over.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&mut self, each: &mut impl FnMut(Record, String)) -> io::Result<()> {
        self.lines(&mut |line| {
            if let Ok(record) = serde_json::from_str::<Record>(line) {
                each(record, line.trim_end().into());
            }
        })
    }

    /// As [`Tail::read`], and goes on with the new file where this one was rotated.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn follow(&mut self, each: &mut impl FnMut(Record, String)) -> io::Result<()> {
        self.read(each)?;
        let now = self.reader.get_ref().metadata()?;
        let named = fs::metadata(&self.path);
        if named.is_ok_and(|named| (named.dev(), named.ino()) != (now.dev(), now.ino())) {
            // what was written to the old one in the meantime
            self.read(each)?;
            self.reader = BufReader::new(File::open(&self.path)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(id: u64) -> String {
        let record = Record {
            id,
            ..Record::own("lost", id)
        };
        serde_json::to_string(&record).unwrap() + "\n"
    }

    fn ids(tail: &mut Tail) -> Vec<u64> {
        let mut ids = Vec::new();
        tail.follow(&mut |r, _| ids.push(r.id)).unwrap();
        ids
    }

    #[test]
    fn a_half_line_waits_and_a_rotation_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::create(&path).unwrap();
        file.write_all((line(1) + &line(2)[..9]).as_bytes())
            .unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(ids(&mut tail), [1]);
        file.write_all(&line(2).as_bytes()[9..]).unwrap();
        fs::rename(&path, dir.path().join("log.1")).unwrap();
        fs::write(&path, line(3)).unwrap();
        assert_eq!(ids(&mut tail), [2]);
        assert_eq!(ids(&mut tail), [3]);
    }

    #[test]
    fn near_the_end_begins_with_a_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (1..=100).map(line).collect();
        fs::write(&path, &text).unwrap();
        let last = line(100).len() as u64;
        for (bytes, first) in [(last, 100), (last - 1, 101), (last + 1, 100), (1 << 20, 1)] {
            let mut tail = Tail::open_near_end(&path, bytes).unwrap();
            let expected: Vec<u64> = (first..=100).collect();
            assert_eq!(ids(&mut tail), expected, "{bytes} bytes");
        }
    }
}
