//! Recordings as files: JSON lines, compressed where the name ends in `.zst`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::head::{Head, VERSION};
use crate::line::Line;

/// Bytes of a line, at most: the head's holds a bundle.
const MAX_LINE: u64 = 512 << 20;

/// What is wrong with a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be opened, read or decompressed.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The errno, or what the decompressor says.
        source: io::Error,
    },
    /// A line is not a recording's.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads a recording, a line at a time.
pub struct Reader {
    path: PathBuf,
    input: Box<dyn BufRead>,
    /// Of what was read last, from 1.
    line: u64,
    text: Vec<u8>,
    head: Head,
}

impl Reader {
    /// Opens a recording and reads its head.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Line`] if it is no recording, or one of a later version.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let failed = |source| Error::Io {
            path: path.into(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let input: Box<dyn BufRead> = if is_compressed(path) {
            Box::new(BufReader::new(zstd::Decoder::new(file).map_err(failed)?))
        } else {
            Box::new(BufReader::with_capacity(1 << 18, file))
        };
        Reader::new(path, input)
    }

    /// The same of any input; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(path: &Path, input: Box<dyn BufRead>) -> Result<Reader, Error> {
        let mut reader = Reader {
            path: path.into(),
            input,
            line: 0,
            text: Vec::new(),
            head: Head::default(),
        };
        let first = reader.next_text()?;
        let head: Result<Head, _> = serde_json::from_slice(&reader.text);
        reader.head = match head {
            Ok(head) if first => head,
            _ => return Err(reader.wrong("not a recording: its first line is no head")),
        };
        let version = reader.head.tidegate_recording;
        if version == 0 || version > VERSION {
            return Err(reader.wrong(format!("version {version}; this program reads {VERSION}")));
        }
        Ok(reader)
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The next line; `None`: there is none. What cannot be read does not keep the
    /// following lines from being read.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Line`] for a line that is broken or cut off.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Error> {
        if !self.next_text()? {
            return Ok(None);
        }
        if self.text.last() != Some(&b'\n') {
            return Err(self.wrong("the recording is cut off here: its last line is not whole"));
        }
        match serde_json::from_slice(&self.text) {
            Ok(line) => Ok(Some(line)),
            Err(e) => Err(Error::Line {
                path: self.path.clone(),
                line: self.line,
                what: format!("not a line of a recording: {e}"),
            }),
        }
    }

    fn next_text(&mut self) -> Result<bool, Error> {
        self.text.clear();
        self.line += 1;
        let read = (&mut self.input)
            .take(MAX_LINE)
            .read_until(b'\n', &mut self.text);
        match read {
            Ok(n) => Ok(n > 0),
            // what ended in the middle of a compressed block
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.wrong("the recording is cut off here"))
            }
            Err(source) => Err(Error::Io {
                path: self.path.clone(),
                source,
            }),
        }
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Line {
            path: self.path.clone(),
            line: self.line,
            what: what.into(),
        }
    }
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "zst")
}

enum Output {
    Plain(BufWriter<File>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

/// Writes a recording.
pub struct Writer {
    output: Output,
    text: Vec<u8>,
}

impl Writer {
    /// Begins one in a file; its own alone, mode 0600.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn new(file: File, path: &Path, head: &Head) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(1 << 18, file);
        let output = if is_compressed(path) {
            Output::Zstd(Box::new(zstd::Encoder::new(file, 3)?))
        } else {
            Output::Plain(file)
        };
        let mut writer = Writer {
            output,
            text: Vec::new(),
        };
        serde_json::to_writer(&mut writer.text, head)?;
        writer.end_line()?;
        Ok(writer)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn line(&mut self, line: &Line<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.text, line)?;
        self.end_line()
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.text.push(b'\n');
        match &mut self.output {
            Output::Plain(file) => file.write_all(&self.text)?,
            Output::Zstd(file) => file.write_all(&self.text)?,
        }
        self.text.clear();
        Ok(())
    }

    /// Has what was written so far in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::Plain(file) => file.flush(),
            Output::Zstd(file) => file.flush(),
        }
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        match self.output {
            Output::Plain(mut file) => file.flush(),
            Output::Zstd(file) => file.finish()?.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Act;

    fn read(bytes: &[u8]) -> Result<Reader, Error> {
        let input = Box::new(io::Cursor::new(bytes.to_vec()));
        Reader::new(Path::new("r.jsonl"), input)
    }

    const HEAD: &str = "{\"tidegate_recording\":1,\"time\":\"\",\"boottime\":0,\"kernel\":\"\"}\n";

    #[test]
    fn what_is_no_recording_is_said_to_be_none() {
        for text in ["", "\n", "{}", "[1]\n", "PK\x03"] {
            let error = read(text.as_bytes()).err().unwrap().to_string();
            assert!(error.starts_with("r.jsonl:1: not a recording"), "{error}");
        }
        let later = HEAD.replace(":1,", ":2,");
        let error = read(later.as_bytes()).err().unwrap().to_string();
        assert!(error.contains("version 2"), "{error}");
    }

    #[test]
    fn a_broken_line_is_named_and_the_next_one_read() {
        let text =
            format!("{HEAD}{{\"act\":\"exit\",\"pid\":3}}\nxx\n{{\"act\":\"begun\"}}\n{{\"ac");
        let mut reader = read(text.as_bytes()).unwrap();
        assert_eq!(reader.next_line().unwrap().unwrap().pid, 3);
        let error = reader.next_line().unwrap_err().to_string();
        assert!(error.starts_with("r.jsonl:3: not a line"), "{error}");
        assert_eq!(reader.next_line().unwrap().unwrap().act, Act::Begun);
        let error = reader.next_line().unwrap_err().to_string();
        assert!(
            error.starts_with("r.jsonl:5: the recording is cut off"),
            "{error}"
        );
        assert!(reader.next_line().unwrap().is_none());
    }

    #[test]
    fn both_forms_come_back_and_a_cut_one_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "a.jsonl.zst"] {
            let path = dir.path().join(name);
            let head = Head {
                tidegate_recording: VERSION,
                ..Head::default()
            };
            let mut writer = Writer::new(File::create(&path).unwrap(), &path, &head).unwrap();
            for pid in 0..1000 {
                let line = Line {
                    pid,
                    ..Line::new(Act::Exit)
                };
                writer.line(&line).unwrap();
            }
            writer.finish().unwrap();
            let mut reader = Reader::open(&path).unwrap();
            assert_eq!(reader.head(), &head);
            for pid in 0..1000 {
                assert_eq!(reader.next_line().unwrap().unwrap().pid, pid);
            }
            assert!(reader.next_line().unwrap().is_none());

            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
            let mut told = None;
            if let Ok(mut reader) = Reader::open(&path) {
                while told.is_none() {
                    match reader.next_line() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(e) => told = Some(e.to_string()),
                    }
                }
            } else {
                told = Some("cut off".into());
            }
            assert!(told.is_some_and(|t| t.contains("cut off")), "{name}");
        }
    }
}
