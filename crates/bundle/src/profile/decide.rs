//! What a policy's profiles say: `kernel/profile/rules.h`, `kernel/profile/exec.h` and `name.h`
//! once more, for callers outside of the kernel.

use super::{Access, Exec, Linked, Mode, Perms, ProfileSet, Table, Target, Walk};

/// States that a walk has been in lately, among which a circle is looked for: `TG_LOOKED_BACK`.
const LOOKED_BACK: usize = 32;

/// Classes of rules but that on files: `AA_CLASS_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RuleClass {
    /// Mounts; behind it the place, and after a NUL each the source, the type and the flags.
    Mount = 7,
    /// Tracing; behind it the other's profile.
    Ptrace = 9,
    /// Signals; behind it the signal's number and the other's profile.
    Signal = 10,
    /// Networks; behind it the family and the type, 16 bits each, the high byte first. Behind those of a
    /// unix socket [`ProfileSet::unix`].
    Network = 14,
    /// User namespaces.
    Namespace = 21,
}

/// The family of unix sockets.
pub(super) const AF_UNIX: u8 = 1;

/// What is asked of the rules about a unix socket that has no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixAsked<'a> {
    /// To make it.
    Made,
    /// What is done with the socket itself: bind, accept, see and set its attributes, shut it down.
    Own(UnixAddress<'a>),
    /// To wait for connections, so many of them.
    Listen(UnixAddress<'a>, u16),
    /// To see or set this option.
    Option(UnixAddress<'a>, u16),
    /// To connect to another socket, to be connected to, to send and receive: its address, and the
    /// profile that it belongs to.
    Peer(UnixAddress<'a>, UnixAddress<'a>, &'a str),
}

/// The address of a unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixAddress<'a> {
    /// None.
    Anonymous,
    /// One that the kernel is to choose.
    Automatic,
    /// An abstract name, without the 0 that it begins with.
    Abstract(&'a [u8]),
}

impl UnixAddress<'_> {
    /// As the rules read it.
    fn text(self) -> Vec<u8> {
        let mut text = match self {
            UnixAddress::Anonymous => vec![1],
            UnixAddress::Automatic => vec![],
            UnixAddress::Abstract(name) => [b"\0", name].concat(),
        };
        text.push(0);
        text
    }
}

/// What becomes of a confined process that executes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It stays as it is.
    Same,
    /// It comes to this profile: an index into [`ProfileSet::profiles`].
    To(usize),
    /// Nothing confines it any more.
    Free,
    /// No rule lets it be executed, or a `deny` does not.
    Refused,
    /// It leads to a profile that is not there.
    Missing,
}

impl ProfileSet {
    /// The profile of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.profiles.iter().position(|p| p.name == name)
    }

    /// The profile that is for a program, among those without a parent or the children of one:
    /// `find_attach()` of `security/apparmor/domain.c`.
    pub fn attached(&self, program: &[u8], parent: Option<usize>) -> Option<usize> {
        let parent = parent.map(|at| at as u32);
        let (mut found, mut longest, mut conflict) = (None, 0, false);
        for (at, profile) in self.profiles.iter().enumerate() {
            if profile.parent != parent {
                continue;
            }
            let Some(attach) = profile.attachment else {
                if last_part(&profile.name).as_bytes() == program {
                    return Some(at);
                }
                continue;
            };
            let table = self.table(attach.walk);
            let state = table.walk(attach.walk.start, program);
            if !table.perms(state)[0].allow.contains(Access::EXEC) {
                continue;
            }
            let count = table.matched(attach.walk.start, program);
            if count > longest || (found.is_none() && count == longest) {
                found = Some(at);
                longest = count.max(attach.length);
                conflict = false;
            } else if count == longest {
                conflict = true;
            }
        }
        found.filter(|_| !conflict)
    }

    /// What the rules on files say of a path, which for a directory ends in `/`, to the owner or
    /// to others.
    pub fn file(&self, profile: &Linked, path: &[u8], owner: bool) -> Perms {
        let Some(walk) = profile.file else {
            return Perms::default();
        };
        let table = self.table(walk);
        table.perms(table.walk(walk.start, path))[usize::from(!owner)]
    }

    /// What the rules of another class say; `None`: the profile does not know of the class, and
    /// nothing is refused by it.
    pub fn rules(&self, profile: &Linked, class: RuleClass, asked: &[u8]) -> Option<Perms> {
        let walk = profile.policy?;
        let table = self.table(walk);
        let begin = table.step(walk.start, class as u8);
        (begin != 0).then(|| table.perms(table.walk(begin, asked))[0])
    }

    /// What the rules on unix sockets say of one of this type: `unix_state()` of `kernel/profile/unix.h`.
    pub fn unix(&self, profile: &Linked, kind: u16, asked: UnixAsked<'_>) -> Option<Perms> {
        let [high, low] = kind.to_be_bytes();
        // no protocol
        let mut text = vec![0, AF_UNIX, high, low, 0, 0];
        // behind its address no rule says anything of its own label
        let own = |address: UnixAddress<'_>| [address.text(), vec![0]].concat();
        let number = |command: u8, number: u16| {
            let [high, low] = number.to_be_bytes();
            [command, high, low]
        };
        match asked {
            UnixAsked::Made => {}
            UnixAsked::Own(address) => text.extend(own(address)),
            UnixAsked::Listen(address, queue) => {
                text.extend(own(address));
                text.extend(number(2, queue));
            }
            UnixAsked::Option(address, option) => {
                text.extend(own(address));
                text.extend(number(4, option));
            }
            UnixAsked::Peer(address, peer, label) => {
                text.extend(own(address));
                text.push(1);
                text.extend(peer.text());
                text.extend(label.as_bytes());
            }
        }
        self.rules(profile, RuleClass::Network, &text)
    }

    /// Where the execution of a program leads, by the rules of the task that executes it.
    pub fn execution(&self, at: usize, program: &[u8], owner: bool) -> Execution {
        let profile = &self.profiles[at];
        let perms = self.file(profile, program, owner);
        if !(perms.allow - perms.deny).contains(Access::EXEC) {
            return Execution::Refused;
        }
        let Exec(exec) = perms.exec;
        let to = match exec & Exec::TYPE {
            Exec::TABLE => match profile.targets.get((exec & Exec::INDEX) as usize) {
                Some(Target::Profile(to)) => Some(*to as usize),
                _ => None,
            },
            Exec::NAME => {
                let child = (exec & Exec::CHILD != 0).then_some(at);
                self.attached(program, child)
            }
            _ => None,
        };
        match to {
            Some(to) => Execution::To(to),
            None if exec & Exec::INHERIT != 0 => Execution::Same,
            None if exec & Exec::UNCONFINED != 0 => Execution::Free,
            None => Execution::Missing,
        }
    }

    fn table(&self, walk: Walk) -> &Table {
        &self.automata[walk.automaton as usize]
    }
}

impl Linked {
    /// Whether the profile refuses anything: one in the mode `unconfined` is a name.
    pub fn confines(&self) -> bool {
        self.mode != Mode::Unconfined
    }
}

impl Table {
    /// The state that bytes lead to.
    fn walk(&self, state: u16, bytes: &[u8]) -> u16 {
        let step = |state, &byte: &u8| self.step(state, byte);
        bytes.iter().fold(state, step)
    }

    /// What a state allows to the owner and to others.
    fn perms(&self, state: u16) -> &[Perms; 2] {
        &self.perms[usize::from(self.accepts[usize::from(state)])]
    }

    /// How much of a text it matches before it goes in circles: `leftmatch_fb()` of
    /// `security/apparmor/match.c`.
    fn matched(&self, start: u16, text: &[u8]) -> u32 {
        let mut history = Vec::new();
        let mut state = start;
        for (count, &byte) in text.iter().enumerate() {
            history.push(state);
            let before = state;
            state = self.step(state, byte);
            let mut lately = history.iter().rev().take(count.min(LOOKED_BACK));
            if before >= state
                && let Some(back) = lately.position(|&known| known == state)
            {
                return (count - back) as u32;
            }
        }
        text.len() as u32
    }
}

/// What a profile without an attachment is for: the part of its name behind its parent's.
fn last_part(name: &str) -> &str {
    match super::parent_of(name) {
        Some(parent) => &name[parent.len() + 2..],
        None => name,
    }
}
