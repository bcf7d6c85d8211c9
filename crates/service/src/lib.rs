//! Requests to services over Unix sockets, in the form that Tidegate's service monitor authorises: `docs/reference/service-monitor.md`.
//! What is in a request for the monitor is its operation and its operands; the payload is the service's own.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_service::{Client, Operand};
//!
//! let mut notes = Client::connect("/run/notes.sock")?;
//! let name = Operand::Name(b"pub:plans".to_vec());
//! let opened = notes.call(1, vec![name, Operand::Number(0)], Vec::new())?;
//! # Ok(()) }
//! ```
//!
//! The service's end:
//!
//! ```no_run
//! # fn serve(accepted: std::os::unix::net::UnixStream) -> Result<(), tidegate_service::Error> {
//! use tidegate_service::{Connection, Reply};
//!
//! let mut connection = Connection::of(accepted)?;
//! while let Some(request) = connection.receive()? {
//!     connection.reply(&Reply::to(&request))?;
//! }
//! # Ok(()) }
//! ```
//!
//! Both work without a monitor, too: then everything arrives.
#![forbid(unsafe_code)]

mod client;
mod connection;
mod error;
mod socket;
mod wire;

pub use client::Client;
pub use connection::Connection;
pub use error::{Error, Malformed};
pub use wire::{Change, MAX_NAME, MAX_OPERANDS, Operand, Reply, Request};
