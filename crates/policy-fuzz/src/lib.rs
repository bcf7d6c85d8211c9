//! What the fuzz targets (`targets.rs`) do with an input: each function
//! panics if a policy compiler, the bundle loader or the reader of compiled profiles, of SELinux's
//! binary policies, of recordings, or of requests to services breaks a promise, or the kernel's decisions by
//! an image of capability files do.
#![forbid(unsafe_code)]

pub mod caps;
pub mod contexts;
pub mod image;
pub mod profile;
pub mod recording;
pub mod service;
#[cfg(test)]
mod targets;
pub mod te;

use tidegate_bundle::Policy;
use tidegate_policy::map;

/// Words of the language and what is almost one, for a fuzzer without a
/// grammar: a byte of input stands for a word, so most inputs get past the
/// lexer and many past the parser.
const WORDS: [&str; 64] = [
    "levels",
    "top",
    ">",
    "low",
    "mid",
    "\n",
    "\n",
    "\n",
    "mode",
    "enforcing",
    "permissive",
    "include",
    "classic",
    "server",
    "base",
    "neutral",
    "network",
    "loopback",
    "10.0.0.0/8",
    "10.1.2.3/8",
    "::/0",
    "::ffff:10.0.0.0/104",
    "child-of",
    "creator",
    "lowwrite",
    "lownoopen",
    "nodemote",
    "nonetdemote",
    "/",
    "/a",
    "/a/b",
    "/a/*",
    "/*/b",
    "/*/*/*",
    "~",
    "~/x",
    "~ann",
    "@{HOME}/x",
    "@{X}",
    "/run/tidegate",
    "/run/*",
    "/sys/fs/bpf/x",
    "/bin/sh",
    "\"/a b\"",
    "\"/\\xff\"",
    "\"/\\x\"",
    "\"/\\*\"",
    "\"",
    "#",
    "# é",
    "\u{a0}",
    "é",
    "/é/コ",
    "*",
    "..",
    "/..",
    "/a//b",
    "\r\n",
    "\t",
    "levles",
    "lowrite",
    "1",
    "\\",
    "\0",
];

/// A map of which the header is right and each input byte is a word.
pub fn words(bytes: &[u8]) -> String {
    let mut map = "levels top > mid > low\ntop /\n".to_owned();
    for byte in bytes {
        map += WORDS[usize::from(byte % 64)];
        if *byte < 192 {
            map += " ";
        }
    }
    map
}

/// Compiles any text.
///
/// # Panics
///
/// If a finding cannot be shown, or a policy does not come back from its bundle.
pub fn compile(map: &str) {
    let findings = match map::compile_str("fuzz", map) {
        Ok(compiled) => {
            assert!(compiled.warnings.iter().all(|warning| !warning.is_error()));
            let policy = compiled.policy;
            policy.lookup(b"/a/b/c");
            assert_eq!(Policy::from_bundle(&policy.to_bundle()), Ok(policy));
            compiled.warnings
        }
        Err(errors) => {
            assert!(errors.findings.iter().any(|finding| finding.is_error()));
            errors.findings
        }
    };
    for finding in findings {
        // A span in the map is on character boundaries, so that it can be shown.
        if let (Some("fuzz"), Some(span)) = (finding.file(), finding.span()) {
            assert!(map.get(span).is_some());
            assert!(finding.position().is_some());
        }
        assert!(!finding.to_string().is_empty());
    }
}

/// Loads any bytes.
///
/// # Panics
///
/// If the loader accepts a policy that cannot be used.
pub fn load(bundle: &[u8]) {
    if let Ok(policy) = Policy::from_bundle(bundle) {
        policy.lookup(b"/a/x/b");
        policy.lookup(b"/home/ann/x/y");
        assert_eq!(policy.lookup(b"/run/tidegate").level, policy.top());
        profile::walk_all(&policy.profiles, bundle);
    }
}

const HEADER: usize = 52;

/// A good bundle.
///
/// # Panics
///
/// If the map does not compile.
pub fn good_bundle() -> Vec<u8> {
    let map = "levels top > mid > low\ntop /\nmid /a/*/b lowwrite\nlow ~/x\nlow network ::/0\n";
    map::compile_str("fuzz", map)
        .expect("it compiles")
        .policy
        .to_bundle()
}

/// A good bundle with profiles.
///
/// # Panics
///
/// If the map does not compile, or the profiles do not go together.
pub fn good_bundle_with_profiles() -> Vec<u8> {
    let mut policy = map::compile_str("fuzz", "levels top > low\ntop /\n")
        .expect("it compiles")
        .policy;
    policy.profiles = profile::good_set();
    policy.to_bundle()
}

/// `bundle` with changes laid over its body, sealed anew so that the checksum
/// does not stop the fuzzer. Each pair of input bytes is a way to go on from the
/// last change, and the byte to put there.
pub fn changed(bundle: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bundle = bundle.to_vec();
    let mut at = HEADER;
    for pair in changes.chunks_exact(2) {
        at += usize::from(pair[0]);
        match bundle.get_mut(at) {
            Some(byte) => *byte = pair[1],
            None => bundle.push(pair[1]),
        }
    }
    sealed(bundle)
}

/// The same for the profiles of a bundle, which are long: see
/// [`changed_profiles`](profile::changed_profiles).
pub fn changed_far(bundle: &[u8], changes: &[u8]) -> Vec<u8> {
    let (header, body) = bundle.split_at(HEADER);
    sealed([header, &profile::changed_profiles(body, changes)].concat())
}

/// A bundle with the right length and checksum.
fn sealed(mut bundle: Vec<u8>) -> Vec<u8> {
    let length = (bundle.len() - HEADER) as u64;
    bundle[12..20].copy_from_slice(&length.to_le_bytes());
    let mut sum = blake3::Hasher::new();
    sum.update(&bundle[..20]).update(&bundle[HEADER..]);
    bundle[20..HEADER].copy_from_slice(sum.finalize().as_bytes());
    bundle
}
