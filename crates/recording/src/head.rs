//! The first line of a recording.

use serde::{Deserialize, Serialize};

/// The version of the form that this crate writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the form.
    pub tidegate_recording: u32,
    /// When recording began, RFC 3339, UTC.
    pub time: String,
    /// The same, nanoseconds of `CLOCK_BOOTTIME`.
    pub boottime: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The command whose descendants alone were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What was in force, if anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<InForce>,
    /// What was mounted where in the initial namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<Filesystem>,
    /// Operations that this kernel has no function to record by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// A mounted filesystem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Its device (major << 20 | minor).
    pub dev: u32,
    /// Its type.
    pub kind: String,
    /// Where it, and no directory of it, is mounted.
    pub at: String,
}

/// The policy in force while a recording was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// Its name.
    pub name: String,
    /// Whether refusals were only recorded.
    pub permissive: bool,
    /// Its bundle's bytes in hexadecimal; none: it could not be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bundle: String,
}

impl InForce {
    /// The bundle's bytes; `None` if there are none, or they are not hexadecimal.
    pub fn bundle(&self) -> Option<Vec<u8>> {
        unhex(self.bundle.as_bytes()).filter(|b| !b.is_empty())
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The bytes behind hexadecimal digits; `None`: they are none.
pub(crate) fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    });
    pairs.collect()
}
