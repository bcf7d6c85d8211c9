//! Profiles that cannot be used, as a policy tells of them.

use std::path::Path;

use tidegate_bundle::limits::MAX_LINE;
use tidegate_bundle::profile::LeftOut;

/// Returns profiles of one file that are not in the policy. Texts that are too long for a bundle are cut.
pub(super) fn unusable(
    profiles: impl Iterator<Item = String>,
    file: &Path,
    line: u32,
    why: &str,
) -> LeftOut {
    LeftOut {
        profiles: profiles.map(|name| short(&name)).collect(),
        file: short(&file.to_string_lossy()),
        line,
        why: short(why),
        disabled: false,
    }
}

/// Returns as much of a text as a bundle takes; a character has at most four bytes.
pub(super) fn short(text: &str) -> String {
    text.chars().take(MAX_LINE / 4).collect()
}
