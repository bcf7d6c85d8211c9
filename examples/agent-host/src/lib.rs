//! What the host and its tools have in common: the requests of the `notes` service.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use tidegate_service::{Change, Client, Error, Operand, Reply};

/// The operations, by their numbers in `tools.caps`.
pub mod operation {
    #![allow(missing_docs)]
    pub const OPEN: u32 = 1;
    pub const GET: u32 = 2;
    pub const PUT: u32 = 3;
    pub const LIST: u32 = 4;
}

/// How a note is opened: the values of the operation vector in `tools.caps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Mode {
    /// To get what it says.
    Read = 0,
    /// To put something else.
    Write = 1,
}

/// The service's statuses.
pub mod status {
    #![allow(missing_docs)]
    pub const DONE: u32 = 0;
    pub const NO_SUCH_NOTE: u32 = 1;
    pub const NO_REQUEST: u32 = 2;
}

/// A connection to the notes.
#[derive(Debug)]
pub struct Notes(Client);

/// A note that was opened: a number that the service chose, good on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note(pub u64);

impl Notes {
    /// Connects to the service at a socket.
    ///
    /// # Errors
    /// If there is none, or it may not be connected to.
    pub fn connect(socket: &str) -> Result<Notes, Error> {
        Client::connect(socket).map(Notes)
    }

    /// Opens a note; one that is to be written is made.
    ///
    /// # Errors
    /// If that is not authorised, or there is no such note.
    pub fn open(&mut self, name: &str, mode: Mode) -> Result<Note> {
        let operands = vec![Operand::Name(name.into()), Operand::Number(mode as u64)];
        match self.call(operation::OPEN, operands, "")?.change {
            Some(Change::Bound(number)) => Ok(Note(number)),
            _ => bail!("the service gave no descriptor"),
        }
    }

    /// What a note says.
    ///
    /// # Errors
    /// If that is not authorised.
    pub fn get(&mut self, note: Note) -> Result<String> {
        let reply = self.call(operation::GET, vec![Operand::Descriptor(note.0)], "")?;
        String::from_utf8(reply.payload).context("a note that is no text")
    }

    /// Has a note say something else.
    ///
    /// # Errors
    /// If that is not authorised.
    pub fn put(&mut self, note: Note, text: &str) -> Result<()> {
        self.call(operation::PUT, vec![Operand::Descriptor(note.0)], text)?;
        Ok(())
    }

    /// The names of notes that begin so.
    ///
    /// # Errors
    /// If that is not authorised.
    pub fn list(&mut self, beginning: &str) -> Result<Vec<String>> {
        let operands = vec![Operand::Name(beginning.into())];
        let reply = self.call(operation::LIST, operands, "")?;
        let names = String::from_utf8(reply.payload).context("names that are no text")?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    fn call(&mut self, operation: u32, operands: Vec<Operand>, text: &str) -> Result<Reply> {
        let reply = self.0.call(operation, operands, text.into())?;
        match reply.status {
            status::DONE => Ok(reply),
            status::NO_SUCH_NOTE => bail!("there is no such note"),
            other => bail!("the service does not take it: {other}"),
        }
    }
}
