//! The census: what each supported kernel offers, and what has been decided about each row of that.
//!
//! `kernels/` has a list for each kernel, as `tidegate census` writes it there; `decisions/` has a table for each kind of
//! row, which is kept by hand. `docs/dev/census.md` says how to read them. A row that nobody has decided on fails this crate's
//! tests, and `tidegate doctor` names it on a kernel that is newer than the lists.

mod decision;
mod offer;
mod row;

pub use decision::{Decision, Table, Verdict};
pub use offer::{Malformed, Offer};
pub use row::{Kind, Row};

/// The lists of the supported kernels, by their series.
pub const KERNELS: [(&str, &str); 2] = [
    ("6.12", include_str!("../kernels/6.12.txt")),
    ("7.2", include_str!("../kernels/7.2.txt")),
];
