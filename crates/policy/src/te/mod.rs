//! Compilers of the `te` model's policy: SELinux's own of CIL ([`cil`]), and that of file contexts ([`contexts`]). A binary policy
//! needs none: `tidegate_bundle::te` reads it.

pub mod cil;
pub mod contexts;
