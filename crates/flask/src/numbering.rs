//! The monitor's numbers of types, roles, users and ranges.
//!
//! A SID is made of them, and outlives the policy that it was made under: of processes, of files that were created, of
//! sockets. So a name keeps its number from policy to policy, for as long as the monitor is in the kernel.

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
        let range = parts.next().map_or(0, |range| self.ranges.take_one(range));
        let user = self.users.take_one(user);
        let role = self.roles.take_one(role);
        Sid::of(user, role, self.types.take_one(kind), range)
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

/// Names in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(Vec<String>);

impl Default for Names {
    fn default() -> Self {
        Names(vec![String::new()])
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
        let name = self.0.get(number as usize)?;
        (number > 0).then_some(name.as_str())
    }

    /// The number of a name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let at = self.0.iter().skip(1).position(|known| known == name)?;
        Some(at as u32 + 1)
    }

    /// The names with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let all = self.0.iter().enumerate().skip(1);
        all.map(|(number, name)| (number as u32, name.as_str()))
    }

    fn take_one(&mut self, name: &str) -> u32 {
        self.number(name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() as u32 - 1
        })
    }

    /// The numbers of these names, new ones behind those that are known.
    pub fn take<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Vec<u32> {
        let mut known: std::collections::HashMap<String, u32> = self
            .iter()
            .map(|(number, name)| (name.to_owned(), number))
            .collect();
        names
            .map(|name| match known.get(name) {
                Some(&number) => number,
                None => {
                    let number = self.0.len() as u32;
                    self.0.push(name.to_owned());
                    known.insert(name.to_owned(), number);
                    number
                }
            })
            .collect()
    }
}
