//! An access vector cache for object managers in user space: servers that have objects of their own (documents, tables,
//! messages) and ask the SELinux policy that Tidegate enforces which subject may do what to them.
//!
//! ```no_run
//! # fn serve(connection: std::os::unix::net::UnixStream) -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_avc::{Avc, Class};
//!
//! let avc = Avc::open()?;
//! let document = avc.class("document", &["create", "read", "write"])?;
//! let read = document.permission("read").ok_or("declared above")?;
//!
//! let client = avc.sid(&avc.peer(&connection)?.context)?;
//! let object = avc.sid("system_u:object_r:plans_t:s0")?;
//! avc.has_perm(client, object, &document, read, &"plans.txt")?;
//! # Ok(()) }
//! ```
//!
//! **Revocation.** Each decision that is kept holds for one number of the status page, which
//! another policy changes before `tidegate reload` returns. [`Avc::has_perm`] looks at the number
//! each time, so after that no decision of the policy before is used. What was begun before goes
//! on: a server of a stream asks at each part of it, or waits for a change ([`Avc::wait`]) and asks
//! again then.
//!
//! **Limits.** A question that is not in the cache is a connection to the daemon. Without the daemon what is cached goes
//! on to count, as the policy cannot change; what is not is refused.

mod audit;
mod avc;
mod cache;
mod class;
mod error;
mod server;
mod sids;

pub use avc::{Avc, Decision, Status};
pub use class::Class;
pub use error::{AvcError, Denied};
pub use server::{Daemon, Peer, SecurityServer};
pub use sids::Sid;
pub use tidegate_protocol::{Access, Question, Reply, Told, Verdict};
