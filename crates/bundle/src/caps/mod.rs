//! Compiled capability files: the policy of the `capability` model.
//!
//! A subject holds *authorization capabilities*: patterns of objects, and what may be done with those. A *bind operation* names
//! an object, and is authorised by them once; what it leaves bound is an *active capability*, by which *access operations* are
//! checked. All capabilities of a subject and a class are one automaton, so that authorisation takes as many steps as the name
//! has bytes, however many capabilities there are.

mod class;
mod name_table;
mod object;
mod pattern;

use serde::{Deserialize, Serialize};

pub use self::class::{Class, Word, permission};
pub use self::name_table::{NameTable, ServiceNames};
pub use self::object::{Object, Objects, address_key};
pub use self::pattern::{Names, Part, Pattern, PatternProblem, literal};
use crate::automaton::Automaton;
use crate::bounded::list;
use crate::limits::{
    MAX_CAPABILITIES, MAX_OPERANDS, MAX_OPERATIONS, MAX_SERVICE_PERMISSIONS, MAX_VECTOR,
};
use crate::policy::RuleSource;

/// Compiled capability files: one, and what it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The subjects. A process that starts with the file, and names none, is the first.
    pub subjects: Vec<Subject>,
    /// The services that are described.
    pub services: Vec<Service>,
    /// All subjects' capabilities, by subject, and in the order in which they are written.
    pub capabilities: Vec<Capability>,
    /// Which service is at a Unix socket: its number counted from 1, or 0 for none.
    pub sockets: Automaton<u16>,
}

/// A holder of capabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The name.
    pub name: String,
    /// Access operations that are checked at each use, by class; a class stands once, if any are.
    pub control: Vec<(Class, u32)>,
    /// What all its capabilities say together, by class; without an automaton they say nothing.
    pub automata: Vec<(Class, Automaton<Allowed>)>,
    /// Where it was written.
    pub source: RuleSource,
}

/// What capabilities say of an object: the union of all that are for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Allowed {
    /// What may be done.
    pub rights: u32,
    /// The capabilities, as indices into [`Capabilities::capabilities`]: those that last first, and then as they are written.
    /// The first that gives a permission is the one that gives it.
    #[serde(deserialize_with = "list::<MAX_CAPABILITIES, _, _>")]
    pub by: Vec<u32>,
}

/// An authorization capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Its holder: an index into [`Capabilities::subjects`].
    pub subject: u32,
    /// The class of its objects.
    pub class: Class,
    /// Its objects.
    pub objects: Objects,
    /// What may be done with them.
    pub rights: u32,
    /// For programs and libraries: the subject that the new content is given, an index into [`Capabilities::subjects`].
    pub becomes: Option<u32>,
    /// Seconds after which what is bound by it ends.
    pub expires: Option<u32>,
    /// Checked uses after which what is bound by it ends.
    pub uses: Option<u32>,
    /// Where it was written.
    pub source: RuleSource,
}

impl Capability {
    /// Whether what is bound by it lasts until it is revoked.
    pub fn lasts(&self) -> bool {
        self.expires.is_none() && self.uses.is_none()
    }
}

/// A service, by the operation authorizations of its requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The name.
    pub name: String,
    /// Its socket.
    pub socket: Pattern,
    /// Of which type that is; `None`: of either.
    pub socket_type: Option<SocketType>,
    /// The names of its permissions; the bit of each is its index.
    #[serde(deserialize_with = "list::<MAX_SERVICE_PERMISSIONS, _, _>")]
    pub permissions: Vec<String>,
    /// Its operations, by rising number.
    #[serde(deserialize_with = "list::<MAX_OPERATIONS, _, _>")]
    pub operations: Vec<Operation>,
    /// Where it was written.
    pub source: RuleSource,
}

/// The type of a service's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SocketType {
    /// `SOCK_STREAM`.
    Stream,
    /// `SOCK_SEQPACKET`.
    Seqpacket,
}

impl SocketType {
    /// Each by the word that capability files have for it, which is AppArmor's.
    pub const WORDS: [(&str, SocketType); 2] = [
        ("stream", SocketType::Stream),
        ("seqpacket", SocketType::Seqpacket),
    ];
}

/// An operation of a service, and what it needs (Lava's operation authorization).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its number in a request.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// What it needs.
    pub needs: Needs,
}

/// What an operation needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Needs {
    /// Nothing.
    Free,
    /// A bind operation: operands name objects, which authorization capabilities are asked about.
    Bind(#[serde(deserialize_with = "list::<MAX_OPERANDS, _, _>")] Vec<Need>),
    /// An active operation: operands are descriptors, whose active capabilities are asked.
    Active(#[serde(deserialize_with = "list::<MAX_OPERANDS, _, _>")] Vec<Need>),
}

/// An operand, and which permissions it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The operand that is authorised, from 1.
    pub operand: u8,
    /// For what.
    pub rights: Rights,
}

/// Which permissions an operation takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rights {
    /// These.
    Fixed(u32),
    /// Those that the operation vector has for the value of an operand. For a value that it does not have there are none to
    /// ask for, and the operation is refused.
    By {
        /// The operand, from 1.
        operand: u8,
        /// Permissions by rising value.
        #[serde(deserialize_with = "list::<MAX_VECTOR, _, _>")]
        vector: Vec<(u64, u32)>,
    },
}

impl Capabilities {
    /// The number of the subject of this name.
    pub fn subject(&self, name: &str) -> Option<u32> {
        let at = self
            .subjects
            .iter()
            .position(|subject| subject.name == name)?;
        Some(at as u32)
    }

    /// What a subject may do with an object, by one walk over its name.
    ///
    /// # Panics
    ///
    /// If there is no such subject.
    pub fn lookup(&self, subject: u32, object: &Object) -> &Allowed {
        const NOTHING: &Allowed = &Allowed {
            rights: 0,
            by: Vec::new(),
        };
        let automata = &self.subjects[subject as usize].automata;
        let of_class = automata.iter().find(|(class, _)| *class == object.class());
        of_class.map_or(NOTHING, |(_, automaton)| automaton.walk(&object.key()))
    }

    /// The number of the service at a Unix socket.
    pub fn service_at(&self, socket: &[u8]) -> Option<u16> {
        self.sockets.walk(socket).checked_sub(1)
    }

    /// The words of permissions of a class.
    pub fn words(&self, class: Class, rights: u32) -> Vec<&str> {
        let all: Vec<(&str, u32)> = match class {
            Class::Service(service) => {
                let names = &self.services[usize::from(service)].permissions;
                let bits = (0..).map(|bit: u32| 1 << bit);
                names.iter().map(String::as_str).zip(bits).collect()
            }
            class => class.permissions().to_vec(),
        };
        let said = all.into_iter().filter(|(_, bit)| rights & bit != 0);
        said.map(|(word, _)| word).collect()
    }

    /// The bytes that all automata take.
    pub fn bytes(&self) -> usize {
        let automata = self.subjects.iter().flat_map(|subject| &subject.automata);
        let of_one = |(_, automaton): &(Class, Automaton<Allowed>)| {
            let own = automaton.answers.iter().map(Allowed::own_bytes);
            automaton.bytes() + own.sum::<usize>()
        };
        automata.map(of_one).sum::<usize>() + self.sockets.bytes()
    }
}

impl Allowed {
    /// The bytes that it takes besides its place in an automaton.
    pub(crate) fn own_bytes(&self) -> usize {
        size_of_val(&self.by[..])
    }
}

impl Subject {
    /// What of a class it has checked at each use.
    pub fn controlled(&self, class: Class) -> u32 {
        let own = self.control.iter().find(|(known, _)| *known == class);
        own.map_or(0, |(_, permissions)| *permissions) | class.access() & !class.controllable()
    }
}

impl Service {
    /// The operation of this number.
    pub fn operation(&self, number: u32) -> Option<&Operation> {
        let at = self
            .operations
            .binary_search_by_key(&number, |operation| operation.number);
        at.ok().map(|at| &self.operations[at])
    }
}

impl Rights {
    /// The permissions, given the operands' values; none where the vector has none for the value.
    pub fn of(&self, value: impl Fn(u8) -> Option<u64>) -> Option<u32> {
        match self {
            Rights::Fixed(rights) => Some(*rights),
            Rights::By { operand, vector } => {
                let value = value(*operand)?;
                let at = vector.binary_search_by_key(&value, |&(known, _)| known);
                at.ok().map(|at| vector[at].1)
            }
        }
    }
}
