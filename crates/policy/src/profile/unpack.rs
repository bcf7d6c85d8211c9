//! Profiles out of the stream that `apparmor_parser` writes: `unpack_profile()` of the kernel's
//! `security/apparmor/policy_unpack.c`, element by element.

use tidegate_bundle::profile::{
    Access, Capabilities, Exec, Mode, PathFlags, Perms, RLIMITS, Rlimit,
};

use super::stream::{Code, Stream};
use super::{Attachment, Dfa, Profile, Rules, UnpackError, perms};

/// The oldest and the newest format that is read: what the kernel reads.
const VERSIONS: std::ops::RangeInclusive<u32> = 5..=9;
/// What of the version's number is the kernel's; the rest tells the parser and its modes.
const VERSION: u32 = 0x3ff;
/// In it: every profile is in complain mode.
const FORCE_COMPLAIN: u32 = 1 << 11;
/// The only form of a table of permissions there has been.
const TABLE_VERSION: u32 = 1;

/// Reads the profiles of a stream, which may be anything.
///
/// # Errors
///
/// The first thing wrong with it.
pub fn unpack(stream: &[u8]) -> Result<Vec<Profile>, UnpackError> {
    let mut stream = Stream::new(stream);
    let mut profiles = Vec::new();
    let mut version = None;
    while !stream.is_at_end() {
        if let Some(found) = stream.u32_named("version")? {
            if !VERSIONS.contains(&(found & VERSION)) {
                return Err(UnpackError::Version {
                    found: found & VERSION,
                    known: *VERSIONS.end(),
                });
            }
            version = Some(found);
        }
        let version = version.ok_or(stream.error("the version"))?;
        let namespace = stream.string_named("namespace")?;
        let profile = Unpacker {
            stream: &mut stream,
            version,
        }
        .profile()?;
        if let Some(namespace) = namespace {
            return Err(UnpackError::Namespace {
                profile: profile.name,
                namespace: String::from_utf8_lossy(namespace).into_owned(),
            });
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

struct Unpacker<'u, 's> {
    stream: &'u mut Stream<'s>,
    version: u32,
}

/// Whose states' permissions an older parser wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Attachment,
    Policy,
    File,
}

/// Whether what a state allows to others is the entry after what it allows to the owner. Newer
/// parsers say it of each state, in the second accept table; older ones write no such table
/// beside one of permissions, and have two entries for each state of the rules on files.
fn has_other(kind: Kind, dfa: &Dfa, state: usize) -> bool {
    const OWNER: u32 = 1;
    match dfa.accept2.get(state) {
        Some(flags) => flags & OWNER != 0,
        None => kind == Kind::File,
    }
}

impl Unpacker<'_, '_> {
    fn profile(&mut self) -> Result<Profile, UnpackError> {
        self.stream
            .need(Code::Struct, Some("profile"), "a profile")?;
        let name = self.stream.string("its name")?;
        let name = self.text(name, "its name")?;
        if let Some((namespace, _)) = name.strip_prefix(':').and_then(|n| n.split_once(':')) {
            return Err(UnpackError::Namespace {
                profile: name.clone(),
                namespace: namespace.to_owned(),
            });
        }
        let rename = self.text_named("rename")?;
        let attach = self.text_named("attach")?;
        let pattern = self.rules(Kind::Attachment, &name)?;
        let length = match pattern {
            Some(_) => self.stream.u32("the length of its attachment")?,
            None => 0,
        };
        let disconnected = self.text_named("disconnected")?;
        let (is_hat, mode, audit) = self.flags()?;
        let path_flags = self.stream.u32_named("path_flags")?;
        let capabilities = self.capabilities()?;
        let xattrs = self.xattrs()?;
        let rlimits = self.rlimits()?;
        let secmark = self.secmark()?;
        let policy = self.policy(&name)?;
        let file = self.rules(Kind::File, &name)?;
        self.data()?;
        self.stream
            .need(Code::StructEnd, None, "the profile's end")?;
        Ok(Profile {
            name,
            rename,
            attachment: Attachment {
                text: attach,
                pattern,
                length,
                xattrs,
            },
            disconnected,
            is_hat,
            mode,
            audit,
            path_flags: path_flags.map_or(PathFlags::MEDIATE_DELETED, PathFlags::from_bits_retain),
            capabilities,
            rlimits,
            secmark,
            policy,
            file,
        })
    }

    fn flags(&mut self) -> Result<(bool, Mode, bool), UnpackError> {
        const HAT: u32 = 1;
        let stream = &mut *self.stream;
        stream.need(Code::Struct, Some("flags"), "its flags")?;
        let flags = stream.u32("its flags")?;
        let mode = match stream.u32("its mode")? {
            _ if self.version & FORCE_COMPLAIN != 0 => Mode::Complain,
            0 => Mode::Enforce,
            1 => Mode::Complain,
            2 => Mode::Kill,
            3 => Mode::Unconfined,
            4 => Mode::User,
            _ => return Err(stream.error("its mode")),
        };
        let audit = stream.u32("its audit flag")? != 0;
        stream.need(Code::StructEnd, None, "the end of its flags")?;
        Ok((flags & HAT != 0, mode, audit))
    }

    fn capabilities(&mut self) -> Result<Capabilities, UnpackError> {
        let what = "its capabilities";
        let stream = &mut *self.stream;
        let mut words = [0u64; 4];
        for word in &mut words {
            *word = stream.u32(what)?.into();
        }
        if stream.head(Code::Struct, Some("caps64")) {
            for word in &mut words {
                *word |= u64::from(stream.u32(what)?) << 32;
            }
            stream.need(Code::StructEnd, None, what)?;
        }
        let mut extended = 0;
        if stream.head(Code::Struct, Some("capsx")) {
            extended = stream.u32(what)?.into();
            extended |= u64::from(stream.u32(what)?) << 32;
            stream.need(Code::StructEnd, None, what)?;
        }
        let [allow, audit, quiet, _] = words;
        Ok(Capabilities {
            allow,
            audit,
            quiet,
            extended,
        })
    }

    fn xattrs(&mut self) -> Result<Vec<String>, UnpackError> {
        let what = "the attributes that it attaches by";
        if !self.stream.head(Code::Struct, Some("xattrs")) {
            return Ok(Vec::new());
        }
        let mut xattrs = Vec::new();
        for _ in 0..self.stream.array(what)? {
            let name = self.stream.string(what)?;
            xattrs.push(self.text(name, what)?);
        }
        self.stream.end_of_array(what)?;
        Ok(xattrs)
    }

    fn rlimits(&mut self) -> Result<Vec<Rlimit>, UnpackError> {
        let what = "its resource limits";
        if !self.stream.head(Code::Struct, Some("rlimits")) {
            return Ok(Vec::new());
        }
        let mask = self.stream.u32(what)?;
        let count = self.stream.array(what)?;
        if count > RLIMITS {
            return Err(self.stream.error(what));
        }
        let mut rlimits = Vec::new();
        for resource in 0..count {
            let max = self.stream.u64(what)?;
            if mask & 1 << resource != 0 {
                let resource = resource as u8;
                rlimits.push(Rlimit { resource, max });
            }
        }
        self.stream.end_of_array(what)?;
        Ok(rlimits)
    }

    /// How many rules on packets' marks there are.
    fn secmark(&mut self) -> Result<u16, UnpackError> {
        let what = "its rules on packets";
        if !self.stream.head(Code::Struct, Some("secmark")) {
            return Ok(0);
        }
        let count = self.stream.array(what)?;
        for _ in 0..count {
            self.stream.u8(what)?;
            self.stream.u8(what)?;
            self.stream.string(what)?;
        }
        self.stream.end_of_array(what)?;
        Ok(count)
    }

    fn policy(&mut self, profile: &str) -> Result<Option<Rules>, UnpackError> {
        if !self.stream.head(Code::Struct, Some("policydb")) {
            return Ok(None);
        }
        let rules = self.rules(Kind::Policy, profile)?;
        self.stream
            .need(Code::StructEnd, None, "the end of its rules")?;
        rules
            .ok_or(self.stream.error("the automaton of its rules"))
            .map(Some)
    }

    /// What programs in user space keep with a profile: nothing that is enforced here.
    fn data(&mut self) -> Result<(), UnpackError> {
        let what = "its data";
        if !self.stream.head(Code::Struct, Some("data")) {
            return Ok(());
        }
        while self.stream.string_if_any(what)?.is_some() {
            self.stream.blob(None, what)?;
        }
        self.stream.need(Code::StructEnd, None, what)
    }

    /// A table of permissions, if any, an automaton, if any, and what belongs to it.
    fn rules(&mut self, kind: Kind, profile: &str) -> Result<Option<Rules>, UnpackError> {
        let table = self.permissions()?;
        let Some(blob) = self.stream.blob(Some("aadfa"), "an automaton")? else {
            // older compilers write names that only rules they drop would need; unpack_pdb() reads and forgets them
            self.transitions()?;
            return Ok(None);
        };
        let dfa = Dfa::unpack(blob)?;
        let start = self.stream.u32_named("start")?;
        let file_start = self.stream.u32_named("dfa_start")?;
        let names = self.transitions()?;
        let wrong = |what| UnpackError::Permissions {
            profile: profile.to_owned(),
            what,
        };
        for start in [start, file_start].into_iter().flatten() {
            if start as usize >= dfa.states() {
                return Err(wrong("its automaton starts outside of itself"));
            }
        }
        let accepts = match &table {
            Some(table) => {
                let accepts: Option<_> = (0..dfa.states())
                    .map(|state| {
                        let at = dfa.accept[state] as usize;
                        let other = at + usize::from(has_other(kind, &dfa, state));
                        Some([*table.get(at)?, *table.get(other)?])
                    })
                    .collect();
                accepts.ok_or(wrong("a state has permissions that are not there"))?
            }
            None => self
                .embedded(kind, &dfa)
                .ok_or(wrong("its states have no permissions"))?,
        };
        let rules = Rules {
            start: start.unwrap_or(super::dfa::START),
            file_start: file_start.unwrap_or(super::dfa::START),
            accepts,
            names,
            dfa,
        };
        rules.check().map_err(wrong)?;
        Ok(Some(rules))
    }

    /// The permissions that an older parser put into the states.
    fn embedded(&self, kind: Kind, dfa: &Dfa) -> Option<Vec<[Perms; 2]>> {
        if dfa.accept2.is_empty() {
            return None;
        }
        let states = dfa.accept.iter().zip(&dfa.accept2);
        let version = self.version & VERSION;
        Some(
            states
                .map(|(&accept, &accept2)| match kind {
                    Kind::Attachment => [perms::attachment(accept); 2],
                    Kind::Policy => [perms::policy(accept, accept2, version); 2],
                    Kind::File => perms::file(accept, accept2),
                })
                .collect(),
        )
    }

    fn permissions(&mut self) -> Result<Option<Vec<Perms>>, UnpackError> {
        let what = "a table of permissions";
        if !self.stream.head(Code::Struct, Some("perms")) {
            return Ok(None);
        }
        if self.stream.u32_named("version")? != Some(TABLE_VERSION) {
            return Err(self.stream.error(what));
        }
        let mut table = Vec::new();
        for _ in 0..self.stream.array(what)? {
            let mut word = || self.stream.u32(what);
            let _reserved = word()?;
            let [allow, deny, _subtree, _cond] = [word()?, word()?, word()?, word()?];
            let [_kill, _complain, _prompt] = [word()?, word()?, word()?];
            let [audit, quiet, _hide, xindex] = [word()?, word()?, word()?, word()?];
            let [_tag, _label] = [word()?, word()?];
            table.push(Perms {
                allow: Access::from_bits_retain(allow),
                deny: Access::from_bits_retain(deny),
                audit: Access::from_bits_retain(audit),
                quiet: Access::from_bits_retain(quiet),
                exec: Exec(xindex),
            });
        }
        self.stream.end_of_array(what)?;
        Ok(Some(table))
    }

    /// The names that executions lead to.
    fn transitions(&mut self) -> Result<Vec<String>, UnpackError> {
        let what = "a table of transitions";
        if !self.stream.head(Code::Struct, Some("xtable")) {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for _ in 0..self.stream.array(what)? {
            let name = self.stream.string(what)?;
            let name = str::from_utf8(name).map_err(|_| self.stream.error(what))?;
            if name.starts_with(char::is_whitespace) {
                return Err(self.stream.error(what));
            }
            // `:namespace:name` has a NUL for its second colon; some parsers write empty names,
            // as an index once counted from behind what had no name
            names.push(name.replace('\0', ":"));
        }
        self.stream.end_of_array(what)?;
        Ok(names)
    }

    fn text_named(&mut self, name: &'static str) -> Result<Option<String>, UnpackError> {
        let found = self.stream.string_named(name)?;
        found.map(|text| self.text(text, name)).transpose()
    }

    fn text(&self, bytes: &[u8], what: &'static str) -> Result<String, UnpackError> {
        let text = str::from_utf8(bytes).map_err(|_| self.stream.error(what))?;
        if text.is_empty() {
            return Err(self.stream.error(what));
        }
        Ok(text.to_owned())
    }
}
