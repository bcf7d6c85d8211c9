//! Loads Tidegate's reference monitor into the kernel, keeps it there by its
//! pins, feeds it policies and reads what it records.
//!
//! The only crate that talks to BPF. Shared types come from the object's BTF,
//! names and numbers from `kernel/abi/`; nothing is written down twice.

mod abi {
    #![allow(dead_code)]
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unused_imports
)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/tidegate.types.rs"));
}
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, unused_imports)]
mod recorder_skel {
    include!(concat!(env!("OUT_DIR"), "/recorder.skel.rs"));
}
mod adopt;
mod attach;
mod caps;
mod code;
mod encode;
mod error;
mod event;
mod floor;
mod given;
mod globals;
mod guard;
mod image;
mod label;
mod labelled;
mod load;
mod mappings;
mod memory;
mod object;
pub mod offer;
mod parts;
mod pins;
pub mod probe;
mod quiescent;
mod recorder;
mod rest;
mod status;
mod subject;
mod swap;
mod sys;
mod system;
mod tasks;
mod te_revoke;
mod turn;

pub use abi::{CapsWhy, Class, Kind, Op, Reason, Refusals};
pub use adopt::Adopted;
pub use caps::{
    Begun, Capabilities, Domain, HeldImage, Layer, Room, Session, Spot, When, Withdraw, Withdrawn,
};
pub use error::{Error, Result};
pub use event::{Asked, CapsAsked, Event, Events, Request, boottime};
pub use floor::Floor;
pub use given::{Given, boot_id};
pub use guard::{Guard, Raising};
pub use image::profile_id;
pub use label::{Label, Object, Origin};
pub use labelled::Labelled;
pub use load::{Monitor, Options};
pub use memory::lock_memory;
pub use pins::PIN_DIR;
pub use recorder::{Loss, Recorder, Scope};
pub use status::{ClassStats, Status};
pub use subject::Subject;
pub use swap::InForce;
pub use system::{INIT, Thread};
pub use tasks::Process;
pub use te_revoke::{Killed, Revoked, Why};

/// Records the kernel keeps: an older one has been written over.
pub const HISTORY: u64 = abi::TG_HISTORY as u64;
