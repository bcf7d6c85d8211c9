//! The lab: stock Debian kernels in QEMU, built from Debian's packages alone.
//!
//! [`artefact`] makes what a machine is put together from (QEMU, kernels, the
//! root image, the guest's init), each once and kept in a cache; [`vm`] boots
//! a machine, runs one command in it and says how that ended; [`cost`] compares
//! what operations cost without Tidegate and with it; [`report`] says what a run of the
//! lab's systems and workloads gave.
//!
//! ```no_run
//! use tidegate_lab::artefact::{Kernel, Lab};
//! use tidegate_lab::vm::{Capture, Machine};
//!
//! let lab = Lab::open()?;
//! let mut output = Capture::default();
//! let outcome = Machine::new(Kernel::V6_12).run(&lab, &["uname", "-r"], &mut output)?;
//! assert!(outcome.success(), "{}", outcome.explain());
//! # anyhow::Ok(())
//! ```

pub mod artefact;
pub mod bench;
pub mod define;
pub mod monitor;
pub mod progress;
pub mod report;
pub mod results;
pub mod run;
pub mod vm;
