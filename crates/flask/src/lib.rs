//! Flask's security server: a SELinux policy as the tables that Tidegate's kernel side decides by.
//!
//! [`Image`] lays a policy out as `kernel/abi/te_image.h` has it, with its rules expanded to a row for each source. The
//! kernel reads that in an arena; [`Server`] asks it with the kernel's own code (`kernel/te/rules.h`), compiled for user
//! space, so that what is proved of it here is proved of what enforces.

include!(concat!(env!("OUT_DIR"), "/names.rs"));

mod classes;
mod decide;
mod genfs;
mod image;
mod numbering;
mod rows;
mod sid;
#[cfg(test)]
mod tests;

pub use classes::{Class, ClassError, Classes};
pub use decide::{Decision, Labelling, Says, Server, Single};
pub use genfs::FILE_KINDS;
pub use image::{Image, ImageError, Size};
pub use numbering::{Names, Numbering};
pub use rows::{Booleans, is_true};
pub use sid::Sid;

/// The place of a class in [`UNMEDIATED`] where permissions are meant whichever class has them.
pub const ANY_CLASS: &str = "*";

/// What of Linux's classes nothing asks about: whole classes, or permissions of them. Told at load.
pub const UNMEDIATED: &[(&str, &[&str])] = &[
    // access(2) is decided as what it asks about; sockets are asked about what comes by `read`
    (ANY_CLASS, &["audit_access", "recvfrom"]),
    (
        "security",
        &[
            "load_policy",
            "compute_user",
            "setenforce",
            "setbool",
            "setsecparam",
            "setcheckreqprot",
            "read_policy",
            "validate_trans",
        ],
    ),
    ("process", &["rlimitinh", "siginh", "getattr"]),
    ("filesystem", &["relabelfrom", "relabelto"]),
    ("node", &[]),
    ("netif", &[]),
    ("association", &[]),
    ("packet", &[]),
    ("peer", &[]),
    ("tun_socket", &[]),
    ("sctp_socket", &["association"]),
    ("ipc", &[]),
    ("kernel_service", &[]),
    ("binder", &[]),
    ("infiniband_pkey", &[]),
    ("infiniband_endport", &[]),
];
