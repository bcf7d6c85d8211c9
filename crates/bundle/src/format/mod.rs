//! The bundle: one checksummed file with all that the monitor loads.
//!
//! ```text
//! offset  bytes  what
//!      0      8  magic, "TIDEGATE"
//!      8      4  format version, little-endian
//!     12      8  length of the body, little-endian
//!     20     32  BLAKE3 of bytes 0 to 20 and the body
//!     52    ...  body: a postcard sequence of (name, content) sections
//! ```
//!
//! Each policy model has a section of its own name. A section that this version
//! does not know is an error, as ignoring it would enforce less than the policy
//! says; so the `capability` model's stands in bundles of its own. A bundle is read as hostile: its length, counts and indices are
//! checked before anything is built on them.

mod automaton;
mod capability;
mod error;
mod profile;
mod section;
mod te;
mod te_contexts;
mod validate;
mod validate_profiles;

pub use self::error::BundleError;
use self::section::Reader;
use crate::limits::MAX_BUNDLE;
use crate::policy::Policy;

const MAGIC: [u8; 8] = *b"TIDEGATE";
/// Raised with every change that an older loader would misread.
const VERSION: u32 = 1;
const CHECKED: usize = 20;
/// Bytes of the header.
pub const HEADER: usize = CHECKED + blake3::OUT_LEN;
/// The section of the `lomac` model.
const LOMAC: &str = "lomac";
/// The section of the `profile` model, in a bundle that has profiles.
const PROFILE: &str = "profile";
/// The section of what of the profiles could not be used, in a bundle that lacks some.
const LEFT_OUT: &str = "left-out";
/// The section of which of those are disabled and not faulty, in a bundle that lacks such ones.
const DISABLED: &str = "disabled";
/// The section of the `te` model, in a bundle that has a SELinux policy.
const TE: &str = "te";
/// The section of the options that named the policy, in a bundle that was put in force by some.
const OPTIONS: &str = "options";
/// The section of the `capability` model, in a bundle of its own.
const CAPABILITY: &str = "capability";
/// Sections in a bundle, at most: `capability` is alone in its own.
const MAX_SECTIONS: usize = 6;

impl Policy {
    /// The bundle that holds this policy.
    pub fn to_bundle(&self) -> Vec<u8> {
        let mut sections = vec![(LOMAC, section::write_lomac(self))];
        if !self.profiles.profiles.is_empty() {
            sections.push((PROFILE, profile::write(&self.profiles)));
        }
        if !self.profiles.left_out.is_empty() {
            sections.push((LEFT_OUT, profile::write_left_out(&self.profiles)));
        }
        if profile::disabled(&self.profiles).next().is_some() {
            sections.push((DISABLED, profile::write_disabled(&self.profiles)));
        }
        if let Some(te) = &self.te {
            sections.push((TE, te::write(te)));
        }
        if !self.options.is_empty() {
            sections.push((OPTIONS, section::write_options(self)));
        }
        seal(&section::write_all(&sections))
    }

    /// Reads a bundle, which may be anything.
    ///
    /// # Errors
    ///
    /// The first thing wrong with it.
    pub fn from_bundle(bytes: &[u8]) -> Result<Policy, BundleError> {
        let (mut lomac, mut profile, mut te, mut options) = (None, None, None, None);
        let (mut left_out, mut disabled) = (None, None);
        for (name, content) in section::read_all(open(bytes)?)? {
            let found = match name {
                LOMAC => &mut lomac,
                PROFILE => &mut profile,
                LEFT_OUT => &mut left_out,
                DISABLED => &mut disabled,
                TE => &mut te,
                OPTIONS => &mut options,
                _ => return Err(BundleError::UnknownSection(name.to_owned())),
            };
            if found.replace(content).is_some() {
                return Err(BundleError::SectionTwice(name.to_owned()));
            }
        }
        let content = lomac.ok_or(BundleError::MissingSection(LOMAC))?;
        let mut policy = Reader::new(content, LOMAC).lomac()?;
        validate::policy(&policy)?;
        if let Some(content) = profile {
            policy.profiles = Reader::new(content, PROFILE).profiles()?;
            validate_profiles::profiles(&policy.profiles)?;
        }
        if let Some(content) = left_out {
            policy.profiles.left_out = Reader::new(content, LEFT_OUT).left_out()?;
        }
        if let Some(content) = disabled {
            Reader::new(content, DISABLED).disabled(&mut policy.profiles.left_out)?;
        }
        policy.te = te
            .map(|content| Reader::new(content, TE).te())
            .transpose()?;
        if let Some(content) = options {
            policy.options = Reader::new(content, OPTIONS).options()?;
        }
        Ok(policy)
    }
}

/// Puts the header before a body.
fn seal(body: &[u8]) -> Vec<u8> {
    let mut bundle = Vec::with_capacity(HEADER + body.len());
    bundle.extend_from_slice(&MAGIC);
    bundle.extend_from_slice(&VERSION.to_le_bytes());
    bundle.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let checksum = checksum(&bundle, body);
    bundle.extend_from_slice(checksum.as_bytes());
    bundle.extend_from_slice(body);
    bundle
}

/// Checks the first bytes of what may be a bundle of so many bytes in all, of which it may have at most so many: before
/// there is room for the rest. They are all, or [`HEADER`] of them.
///
/// # Errors
///
/// The first thing wrong with them.
pub fn check_header(first: &[u8], len: usize, most: usize) -> Result<(), BundleError> {
    if len > most {
        return Err(BundleError::TooLarge(len));
    }
    if !first.starts_with(&MAGIC[..first.len().min(MAGIC.len())]) {
        return Err(BundleError::Foreign);
    }
    let truncated = |need| BundleError::Truncated {
        have: len as u64,
        need,
    };
    let header = first.get(..HEADER).ok_or(truncated(HEADER as u64))?;
    let version = u32::from_le_bytes(array(&header[8..12]));
    if version != VERSION {
        return Err(BundleError::Version {
            found: version,
            known: VERSION,
        });
    }
    let length = u64::from_le_bytes(array(&header[12..20]));
    let body = len.saturating_sub(HEADER) as u64;
    match body.cmp(&length) {
        std::cmp::Ordering::Less => Err(truncated(length.saturating_add(HEADER as u64))),
        std::cmp::Ordering::Greater => Err(BundleError::Trailing(body - length)),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Checks the header and gives the body.
fn open(bytes: &[u8]) -> Result<&[u8], BundleError> {
    check_header(bytes, bytes.len(), MAX_BUNDLE)?;
    let (header, body) = bytes.split_at(HEADER);
    let (checked, sum) = header.split_at(CHECKED);
    if checksum(checked, body) != array::<{ blake3::OUT_LEN }>(sum) {
        return Err(BundleError::Checksum);
    }
    Ok(body)
}

fn checksum(checked: &[u8], body: &[u8]) -> blake3::Hash {
    blake3::Hasher::new()
        .update(checked)
        .update(body)
        .finalize()
}

/// `slice` as an array of its length.
fn array<const N: usize>(slice: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(slice);
    array
}

#[cfg(test)]
mod capability_tests;
#[cfg(test)]
mod made;
#[cfg(test)]
mod profile_tests;
#[cfg(test)]
mod te_contexts_tests;
#[cfg(test)]
mod te_tests;
#[cfg(test)]
mod tests;
