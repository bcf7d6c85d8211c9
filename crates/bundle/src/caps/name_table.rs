//! The names in capability files. Once the image of a file is in the kernel, the daemon keeps nothing else of the file: records and
//! lists need only names. A table of them is a small part of the file, and is read once. Its room is counted beforehand.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Capabilities, Service};
use crate::policy::RuleSource;

/// Bytes that a text takes besides its own: its place and length, and what the allocator adds.
const TEXT: usize = size_of::<String>() + 32;

/// The names of capability files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameTable {
    /// The files that anything is written in, each once.
    files: Vec<String>,
    subjects: Vec<(String, Written)>,
    capabilities: Vec<Written>,
    services: Vec<ServiceNames>,
}

/// Where something is written, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    /// An index into the files.
    file: u32,
    line: u32,
    text: String,
}

/// The names of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceNames {
    /// Its own.
    pub name: String,
    /// Those of its permissions; the bit of each is its index.
    pub permissions: Vec<String>,
    /// Its operations, by rising number.
    operations: Vec<(u32, String)>,
}

impl ServiceNames {
    fn of(service: &Service) -> ServiceNames {
        let operations = service.operations.iter();
        ServiceNames {
            name: service.name.clone(),
            permissions: service.permissions.clone(),
            operations: operations.map(|it| (it.number, it.name.clone())).collect(),
        }
    }

    /// The name of the operation of this number.
    pub fn operation(&self, number: u32) -> Option<&str> {
        let at = self.operations.binary_search_by_key(&number, |it| it.0);
        at.ok().map(|at| &*self.operations[at].1)
    }
}

impl NameTable {
    /// Those of these files.
    pub fn of(caps: &Capabilities) -> NameTable {
        let (mut files, mut known) = (Vec::new(), HashMap::new());
        let mut written = |source: &RuleSource| Written {
            file: *known.entry(source.file.clone()).or_insert_with(|| {
                files.push(source.file.clone());
                files.len() as u32 - 1
            }),
            line: source.line,
            text: source.text.clone(),
        };
        let subjects = caps.subjects.iter();
        let subjects = subjects.map(|it| (it.name.clone(), written(&it.source)));
        let subjects = subjects.collect();
        let capabilities = caps.capabilities.iter().map(|it| written(&it.source));
        NameTable {
            subjects,
            capabilities: capabilities.collect(),
            services: caps.services.iter().map(ServiceNames::of).collect(),
            files,
        }
    }

    /// The names of the subjects, by number, and where these are written.
    pub fn subjects(&self) -> impl ExactSizeIterator<Item = (&str, RuleSource)> {
        let subjects = self.subjects.iter();
        subjects.map(|(name, written)| (&**name, self.source(written)))
    }

    /// The name of a subject, and where it is written.
    pub fn subject(&self, number: u32) -> Option<(&str, RuleSource)> {
        let (name, written) = self.subjects.get(number as usize)?;
        Some((name, self.source(written)))
    }

    /// Where the capabilities are written, by number.
    pub fn capabilities(&self) -> impl ExactSizeIterator<Item = RuleSource> {
        self.capabilities.iter().map(|it| self.source(it))
    }

    /// Where a capability is written.
    pub fn capability(&self, number: u32) -> Option<RuleSource> {
        let written = self.capabilities.get(number as usize)?;
        Some(self.source(written))
    }

    /// The names of the services, by number.
    pub fn services(&self) -> &[ServiceNames] {
        &self.services
    }

    fn source(&self, written: &Written) -> RuleSource {
        let file = self.files.get(written.file as usize);
        RuleSource {
            file: file.cloned().unwrap_or_default(),
            line: written.line,
            text: written.text.clone(),
        }
    }

    /// The bytes that they take in memory, at most. As a file they take fewer.
    pub fn bytes(&self) -> usize {
        let text = |text: &String| TEXT + text.len();
        let written = |it: &Written| size_of::<Written>() + text(&it.text);
        let service = |it: &ServiceNames| {
            let permissions = it.permissions.iter().map(text);
            let operations = it.operations.iter();
            let operations = operations.map(|(_, name)| size_of::<u64>() + text(name));
            let lists = permissions.sum::<usize>() + operations.sum::<usize>();
            size_of::<ServiceNames>() + text(&it.name) + lists
        };
        let subjects = self.subjects.iter();
        let subjects = subjects.map(|(name, source)| text(name) + written(source));
        self.files.iter().map(text).sum::<usize>()
            + subjects.sum::<usize>()
            + self.capabilities.iter().map(written).sum::<usize>()
            + self.services.iter().map(service).sum::<usize>()
    }

    /// Them as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("names are serialisable into memory")
    }

    /// Reads a file that [`to_bytes`](Self::to_bytes) made.
    pub fn from_bytes(bytes: &[u8]) -> Option<NameTable> {
        postcard::from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_policy::caps::compile_str;

    use super::*;

    fn compiled(text: &str) -> Capabilities {
        // what the compiler makes has the types of this crate as others see it
        let compiled = compile_str("t.caps", text).expect("it compiles");
        Capabilities::from_bundle(&compiled.capabilities.to_bundle()).expect("it is a bundle")
    }

    #[test]
    fn all_that_is_told_is_kept_and_each_files_name_once() {
        let caps = compiled(
            "subject a {\n file /a read\n file /b write\n}\nservice s on /run/s {\n permission get put\n \
             operation 2 ping free\n operation 7 get bind operand 1 get\n}\nsubject b {\n}\n",
        );
        let names = NameTable::from_bytes(&NameTable::of(&caps).to_bytes()).unwrap();
        let subjects: Vec<_> = names.subjects().collect();
        assert_eq!(subjects.len(), 2);
        for (subject, (name, source)) in caps.subjects.iter().zip(subjects) {
            assert_eq!((name, &source), (&*subject.name, &subject.source));
        }
        let written = caps.capabilities.iter().map(|it| it.source.clone());
        assert!(names.capabilities().eq(written));
        assert_eq!(names.capability(1).unwrap().to_string(), "t.caps:3");
        assert!(names.capability(2).is_none() && names.subject(2).is_none());
        let service = &names.services()[0];
        assert_eq!((&*service.name, service.permissions.len()), ("s", 2));
        assert_eq!(service.operation(7), Some("get"));
        assert_eq!(service.operation(3), None);
        assert_eq!(names.files, ["t.caps"]);
    }

    #[test]
    fn what_they_take_is_no_less_than_what_is_written() {
        let mut caps = compiled("subject a {\n file /a read\n}\n");
        let before = NameTable::of(&caps).bytes();
        let mut more = caps.capabilities[0].clone();
        more.source.text = "x".repeat(4_096);
        more.source.file = "y".repeat(4_096);
        caps.capabilities.extend(vec![more; 100]);
        let names = NameTable::of(&caps);
        // the texts, and the one name
        assert!(names.bytes() - before > 101 * 4_096);
        assert!(names.bytes() - before < 110 * 4_096);
        assert!(names.to_bytes().len() < names.bytes());
        assert_eq!(NameTable::from_bytes(&names.to_bytes()[1..]), None);
    }
}
