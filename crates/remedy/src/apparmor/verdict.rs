//! What a policy's profiles say to what was refused.

use tidegate_audit::permission_names;
use tidegate_bundle::profile::{
    Access, Execution, Linked, Perms, ProfileSet, RuleClass, UnixAddress, UnixAsked,
};

use super::need::{Need, Object, Shape};

/// What the policy says of what was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has no such profile.
    NoProfile,
    /// It allows that.
    Allowed,
    /// A `deny` refuses it, as far as the compiled profile still tells.
    Denied,
    /// No rule allows it.
    Refused,
}

/// A name that no rule has: what it lets through by that, it lets through by any.
const NOBODY: &str = "\u{1}";

/// What a policy says of all that is needed.
pub fn verdict(set: &ProfileSet, need: &Need) -> Verdict {
    let Some(at) = set.find(&need.profile) else {
        return Verdict::NoProfile;
    };
    if unmet(set, need).is_empty() {
        return Verdict::Allowed;
    }
    let said = said(set, at, need);
    match said
        .iter()
        .any(|(perms, access)| perms.deny.intersects(*access))
    {
        true => Verdict::Denied,
        false => Verdict::Refused,
    }
}

/// What of all that is needed a policy does not allow.
pub fn unmet(set: &ProfileSet, need: &Need) -> Access {
    let Some(at) = set.find(&need.profile) else {
        return need.access;
    };
    let said = said(set, at, need).into_iter();
    said.map(|(perms, access)| access - (perms.allow - perms.deny))
        .collect()
}

/// Whether a profile of one rule allows anything of what is needed: whether that rule is about it.
pub fn is_for(set: &ProfileSet, profile: &str, need: &Need) -> bool {
    let Some(at) = set.find(profile) else {
        return false;
    };
    let said = said(set, at, need);
    said.iter()
        .any(|(perms, access)| perms.allow.intersects(*access))
}

/// What is said to each question that the need is made of, and what has to be allowed there.
fn said(set: &ProfileSet, at: usize, need: &Need) -> Vec<(Perms, Access)> {
    let profile = &set.profiles[at];
    let access = need.access;
    match &need.object {
        Object::File(path) => of_path(set, at, path, need),
        Object::Link(name, target) => {
            let pair = target.iter().map(|target| format!("{name}\0{target}"));
            let paths = std::iter::once(name.clone()).chain(pair);
            let said = paths.map(|path| set.file(profile, path.as_bytes(), need.owned));
            said.map(|perms| (perms, access)).collect()
        }
        Object::Capability(name) => {
            let bit = permission_names::capability_number(name).map_or(0, |n| 1 << n);
            let allowed = profile.capabilities.allow & bit != 0;
            vec![(allowing(allowed), Access::EXEC)]
        }
        Object::Network(name, kind) if name == "unix" => {
            of_unix(set, profile, kind.as_deref(), access)
        }
        Object::Network(name, kind) => {
            const ANY: Access = Access::CREATE
                .union(Access::OPEN)
                .union(Access::ACCEPT)
                .union(Access::BIND)
                .union(Access::LISTEN);
            let family = permission_names::family_number(name)
                .unwrap_or(u16::MAX)
                .to_be_bytes();
            let types = types(kind.as_deref()).into_iter().map(|kind| {
                let kind = kind.to_be_bytes();
                [family[0], family[1], kind[0], kind[1]]
            });
            let said = types.filter_map(|asked| set.rules(profile, RuleClass::Network, &asked));
            said.map(|perms| (perms, ANY)).collect()
        }
        Object::Signal(peer, signal) => {
            let peer = peer.as_deref().unwrap_or(NOBODY).as_bytes();
            let known = signal.as_deref().and_then(permission_names::signal_number);
            let signals = match known.and_then(|signal| u8::try_from(signal).ok()) {
                Some(signal) => signal..=signal,
                None => 1..=31,
            };
            let signals = signals.map(|signal| [&[signal], peer].concat());
            let said = signals.filter_map(|asked| set.rules(profile, RuleClass::Signal, &asked));
            said.map(|perms| (perms, access)).collect()
        }
        Object::Ptrace(peer) => {
            let peer = peer.as_deref().unwrap_or(NOBODY).as_bytes();
            let said = set.rules(profile, RuleClass::Ptrace, peer);
            said.map(|perms| (perms, access)).into_iter().collect()
        }
        Object::Mount(place) => {
            let every: Vec<u8> = (1..=32).collect();
            let rest = [&b"\0\x01\0\x01\0"[..], &every].concat();
            of_place(set, profile, place, need.shape, &rest, Access::WRITE)
        }
        Object::Umount(place) => of_place(set, profile, place, need.shape, b"", Access::READ),
        Object::Pivot(place) => of_place(set, profile, place, need.shape, b"\0\x01", Access::EXEC),
        Object::ChangeProfile(name) => vec![(set.file(profile, name.as_bytes(), true), access)],
        Object::Userns => {
            let said = set.rules(profile, RuleClass::Namespace, b"");
            said.map(|perms| (perms, Access::APPEND))
                .into_iter()
                .collect()
        }
    }
}

/// The numbers of a type of sockets: if it is not known, of SOCK_STREAM to SOCK_SEQPACKET.
fn types(kind: Option<&str>) -> Vec<u16> {
    let known = kind.and_then(permission_names::socket_type_number);
    known.map_or_else(|| (1..=5).collect(), |kind| vec![kind])
}

/// Of what a record of a unix socket does not have, that it is none that a rule names.
fn of_unix(
    set: &ProfileSet,
    profile: &Linked,
    kind: Option<&str>,
    access: Access,
) -> Vec<(Perms, Access)> {
    const OWN: Access = Access::BIND
        .union(Access::ACCEPT)
        .union(Access::GETATTR)
        .union(Access::DELETE);
    const PEER: Access = Access::OPEN.union(Access::WRITE).union(Access::READ);
    let odd = UnixAddress::Abstract(NOBODY.as_bytes());
    let options = Access::SETOPT | Access::GETOPT;
    let asked = match access == Access::CREATE {
        true => vec![(UnixAsked::Made, Access::CREATE)],
        false => vec![
            (UnixAsked::Made, Access::CREATE),
            (UnixAsked::Own(odd), OWN),
            (UnixAsked::Listen(odd, 0), Access::LISTEN),
            (UnixAsked::Option(odd, 0), options),
            (UnixAsked::Peer(odd, odd, NOBODY), PEER),
        ],
    };
    let each = types(kind).into_iter().flat_map(|kind| {
        let said = asked
            .iter()
            .map(move |&(asked, access)| (kind, asked, access));
        said.collect::<Vec<_>>()
    });
    let said =
        each.filter_map(|(kind, asked, access)| Some((set.unix(profile, kind, asked)?, access)));
    said.collect()
}

fn of_path(set: &ProfileSet, at: usize, path: &str, need: &Need) -> Vec<(Perms, Access)> {
    let profile = &set.profiles[at];
    let mut access = need.access;
    let mut said = Vec::new();
    if access.contains(Access::EXEC) {
        let perms = set.file(profile, path.as_bytes(), need.owned);
        let leads = set.execution(at, path.as_bytes(), need.owned);
        let lost = leads == Execution::Missing;
        let allow = if lost { Access::empty() } else { perms.allow };
        said.push((Perms { allow, ..perms }, Access::EXEC));
        access -= Access::EXEC;
    }
    if !access.is_empty() {
        for path in shapes(path, need.shape) {
            said.push((set.file(profile, path.as_bytes(), need.owned), access));
        }
    }
    said
}

fn of_place(
    set: &ProfileSet,
    profile: &Linked,
    place: &str,
    shape: Shape,
    rest: &[u8],
    access: Access,
) -> Vec<(Perms, Access)> {
    let asked = shapes(place, shape).into_iter();
    let asked = asked.map(|place| [place.as_bytes(), rest].concat());
    let said = asked.filter_map(|asked| set.rules(profile, RuleClass::Mount, &asked));
    said.map(|perms| (perms, access)).collect()
}

/// The path as a profile may have seen it.
fn shapes(path: &str, shape: Shape) -> Vec<String> {
    let dir = || format!("{}/", path.trim_end_matches('/'));
    match shape {
        Shape::Dir => vec![dir()],
        Shape::File => vec![path.to_owned()],
        Shape::Any if path == "/" => vec![dir()],
        Shape::Any => vec![path.to_owned(), dir()],
    }
}

fn allowing(allowed: bool) -> Perms {
    let mut perms = Perms::default();
    perms.allow.set(Access::EXEC, allowed);
    perms
}
