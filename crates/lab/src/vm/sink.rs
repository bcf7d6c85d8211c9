//! Where a guest command's output goes, as it comes.

use std::io::{self, Write};

/// Takes the two streams, piece by piece.
pub trait Sink {
    /// A piece of standard output.
    ///
    /// # Errors
    /// Whatever the destination refuses; the run ends with it.
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// A piece of standard error.
    ///
    /// # Errors
    /// Whatever the destination refuses; the run ends with it.
    fn stderr(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Our own standard output and error, at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passthrough;

impl Sink for Passthrough {
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    fn stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::stderr().lock().write_all(bytes)
    }
}

/// Keeps both streams.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    /// Standard output so far.
    pub out: Vec<u8>,
    /// Standard error so far.
    pub err: Vec<u8>,
}

impl Capture {
    /// Standard output as text.
    #[must_use]
    pub fn out_text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn err_text(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }
}

impl Sink for Capture {
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn stderr(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.err.extend_from_slice(bytes);
        Ok(())
    }
}
