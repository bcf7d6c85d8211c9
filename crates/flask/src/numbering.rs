//! The monitor's numbers of types, roles, users and ranges.
//!
//! A SID is made of them, and outlives the policy that it was made under: of processes, of files that were created, of
//! sockets. So a name keeps its number from policy to policy, for as long as the monitor is in the kernel.

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::sid::Sid;

/// Names by their numbers; number 0 is nobody's, but for ranges, where it is the range of a policy without MLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbering {
    /// Types.
    pub types: Names,
    /// Roles.
    pub roles: Names,
    /// Users.
    pub users: Names,
    /// Ranges, as a context's text has them.
    pub ranges: Names,
}

impl Numbering {
    /// The text of a context; `None`: it has a number that no name has.
    pub fn context(&self, sid: Sid) -> Option<String> {
        let user = self.users.get(sid.user())?;
        let role = self.roles.get(sid.role())?;
        let kind = self.types.get(sid.kind())?;
        Some(match (sid.range(), self.ranges.get(sid.range())) {
            (0, _) => format!("{user}:{role}:{kind}"),
            (_, range) => format!("{user}:{role}:{kind}:{}", range?),
        })
    }

    /// The SID of a context; `None`: one of its parts has no number.
    pub fn sid(&self, context: &str) -> Option<Sid> {
        let mut parts = context.splitn(4, ':');
        let user = self.users.number(parts.next()?)?;
        let role = self.roles.number(parts.next()?)?;
        let kind = self.types.number(parts.next()?)?;
        let range = match parts.next() {
            Some(range) => self.ranges.number(range)?,
            None => 0,
        };
        Some(Sid::of(user, role, kind, range))
    }

    /// The SID of a context, whose parts get numbers if they have none: whether a policy knows them is its own matter.
    /// What is no context has [`Sid::NAMELESS`].
    pub fn take(&mut self, context: &str) -> Sid {
        let mut parts = context.splitn(4, ':');
        let (Some(user), Some(role), Some(kind)) = (parts.next(), parts.next(), parts.next())
        else {
            return Sid::NAMELESS;
        };
        let range = parts.next();
        if [user, role, kind].contains(&"") || range == Some("") {
            return Sid::NAMELESS;
        }
        let range = range.map_or(0, |range| self.ranges.take(range));
        let (user, role) = (self.users.take(user), self.roles.take(role));
        Sid::of(user, role, self.types.take(kind), range)
    }

    /// As it is written down, and read again.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("names are serialisable into memory")
    }

    /// As an image has them; `None`: these are none.
    pub fn read(bytes: &[u8]) -> Option<Numbering> {
        postcard::from_bytes(bytes).ok()
    }
}

/// Names in the order in which they came, each once; the first has no letters, and is nobody's.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Names(IndexSet<String>);

impl Default for Names {
    fn default() -> Self {
        Names(IndexSet::from([String::new()]))
    }
}

/// Sets are equal whatever their order; names have the same numbers only in the same one.
impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().eq(&other.0)
    }
}

impl Eq for Names {}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        names.0.into_iter().collect()
    }
}

impl TryFrom<Vec<String>> for Names {
    type Error = &'static str;

    fn try_from(names: Vec<String>) -> Result<Self, Self::Error> {
        let count = names.len();
        let names = IndexSet::from_iter(names);
        if names.get_index_of("") != Some(0) {
            return Err("number 0 has a name");
        }
        if names.len() != count {
            return Err("a name has two numbers");
        }
        Ok(Names(names))
    }
}

impl Names {
    /// How many numbers are taken, 0 among them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= 1
    }

    /// The name of a number.
    pub fn get(&self, number: u32) -> Option<&str> {
        let name = self.0.get_index(number as usize)?;
        (number > 0).then_some(name.as_str())
    }

    /// The number of a name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let number = self.0.get_index_of(name)?;
        (number > 0).then_some(number as u32)
    }

    /// The names with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let all = self.0.iter().enumerate().skip(1);
        all.map(|(number, name)| (number as u32, name.as_str()))
    }

    /// The number of a name, a new one behind the others if it has none.
    pub fn take(&mut self, name: &str) -> u32 {
        let number = match self.0.get_index_of(name) {
            Some(known) => known,
            None => self.0.insert_full(name.to_owned()).0,
        };
        number as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers() {
        let mut names = Names::default();
        assert_eq!(
            (names.take("a"), names.take("b"), names.take("a")),
            (1, 2, 1)
        );
        assert_eq!((names.get(2), names.number("b")), (Some("b"), Some(2)));
        assert_eq!((names.get(0), names.number("")), (None, None));
        let bytes = postcard::to_allocvec(&names).unwrap();
        assert_eq!(postcard::from_bytes::<Names>(&bytes).unwrap(), names);
    }

    #[test]
    fn names_in_another_order_are_others() {
        let (mut one, mut two) = (Names::default(), Names::default());
        for name in ["a", "b"] {
            one.take(name);
        }
        for name in ["b", "a"] {
            two.take(name);
        }
        assert_ne!(one, two);
    }

    #[test]
    fn what_would_give_other_numbers_is_not_read() {
        for names in [&["", "a", "a"][..], &["a"], &["a", ""], &[]] {
            let bytes = postcard::to_allocvec(names).unwrap();
            assert!(postcard::from_bytes::<Names>(&bytes).is_err(), "{names:?}");
        }
    }

    #[test]
    fn a_context_with_an_empty_part_is_none() {
        let mut numbering = Numbering::default();
        for text in ["a:b", "a::c", ":b:c:s0", "a:b:c:"] {
            assert_eq!(numbering.take(text), Sid::NAMELESS, "{text}");
        }
        assert_ne!(numbering.take("a:b:c"), Sid::NAMELESS);
    }
}
