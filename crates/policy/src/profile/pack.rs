//! Writes streams as `apparmor_parser` does, for the tests and the fuzz targets of the reader.

use super::dfa::START;
use super::stream::Code;

/// A stream, written so far. Each method appends an element.
#[derive(Debug, Clone, Default)]
pub struct Pack(pub Vec<u8>);

impl Pack {
    fn head(&mut self, code: Code, name: &str) -> &mut Self {
        if !name.is_empty() {
            self.0.push(Code::Name as u8);
            self.counted(name);
        }
        self.0.push(code as u8);
        self
    }

    fn counted(&mut self, text: &str) -> &mut Self {
        let size = u16::try_from(text.len() + 1).expect("a short text");
        self.bytes(&size.to_le_bytes())
            .bytes(text.as_bytes())
            .bytes(&[0])
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u32(&mut self, name: &str, value: u32) -> &mut Self {
        self.head(Code::U32, name).bytes(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.head(Code::U64, "").bytes(&value.to_le_bytes())
    }

    pub(super) fn string(&mut self, name: &str, text: &str) -> &mut Self {
        self.head(Code::String, name).counted(text)
    }

    pub(super) fn open(&mut self, name: &str) -> &mut Self {
        self.head(Code::Struct, name)
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.head(Code::StructEnd, "")
    }

    pub(super) fn array(&mut self, count: usize) -> &mut Self {
        let count = u16::try_from(count).expect("a short array");
        self.head(Code::Array, "").bytes(&count.to_le_bytes())
    }

    pub(super) fn close_array(&mut self) -> &mut Self {
        self.head(Code::ArrayEnd, "").close()
    }

    pub(super) fn blob(&mut self, name: &str, content: &[u8]) -> &mut Self {
        let size = u32::try_from(content.len()).expect("a short blob");
        self.head(Code::Blob, name)
            .bytes(&size.to_le_bytes())
            .bytes(content)
    }

    /// A table of permissions: what is allowed, what is denied, and where an execution leads.
    pub(super) fn perms(&mut self, table: &[(u32, u32, u32)]) -> &mut Self {
        self.open("perms").u32("version", 1).array(table.len());
        for &(allow, deny, exec) in table {
            for word in [0, allow, deny, 0, 0, 0, 0, 0, 0, 0, 0, exec, 0, 0] {
                self.u32("", word);
            }
        }
        self.close_array()
    }

    /// The automaton that accepts these texts, each by its number.
    pub(super) fn dfa(&mut self, texts: &[(&str, u32)]) -> &mut Self {
        self.blob("aadfa", &Tables::of(texts).bytes())
    }

    /// The parts of a profile from its flags to its capabilities.
    pub(super) fn middle(&mut self, mode: u32) -> &mut Self {
        self.open("flags");
        self.u32("", 0).u32("", mode).u32("", 0).close();
        self.u32("path_flags", 0);
        for word in [0b11, 0b01, 0b100, 0] {
            self.u32("", word);
        }
        self.open("caps64");
        for word in [1, 0, 0, 0] {
            self.u32("", word);
        }
        self.close()
    }
}

/// A transition for each state and byte.
pub(super) struct Tables {
    pub next: Vec<[u32; 256]>,
    pub accept: Vec<u32>,
    pub accept2: Option<Vec<u32>>,
}

impl Tables {
    pub fn of(texts: &[(&str, u32)]) -> Self {
        let mut this = Tables {
            next: vec![[0; 256]; 2],
            accept: vec![0; 2],
            accept2: None,
        };
        for (text, accept) in texts {
            let mut state = START as usize;
            for byte in text.bytes() {
                let mut next = this.next[state][usize::from(byte)] as usize;
                if next == 0 {
                    next = this.next.len();
                    this.next.push([0; 256]);
                    this.accept.push(0);
                    this.next[state][usize::from(byte)] = next as u32;
                }
                state = next;
            }
            this.accept[state] = *accept;
        }
        this
    }

    /// A state's transitions lie behind the state's before it, and none is left to a default.
    pub fn bytes(&self) -> Vec<u8> {
        let states = self.next.len() as u32;
        let entries = (0..states).flat_map(|state| [state; 256]);
        let mut tables = vec![
            (1, self.accept.clone()),
            (2, (0..states).map(|state| state * 256).collect()),
            (4, vec![0; states as usize]),
            (8, self.next.concat()),
            (3, entries.collect()),
        ];
        tables.extend(self.accept2.clone().map(|accept2| (7, accept2)));
        let mut out = Vec::new();
        out.extend(0x1b5e_783d_u32.to_be_bytes());
        out.extend(16_u32.to_be_bytes());
        out.extend([0; 8]);
        for (id, table) in tables {
            out.extend(u16::to_be_bytes(id));
            out.extend(4_u16.to_be_bytes());
            out.extend([0; 4]);
            out.extend((table.len() as u32).to_be_bytes());
            out.extend(table.iter().flat_map(|entry| entry.to_be_bytes()));
            out.resize(out.len().next_multiple_of(8), 0);
        }
        out
    }
}

/// A profile with one of each thing that a profile may have.
pub fn example() -> Pack {
    let mut pack = Pack::default();
    pack.u32("version", 9)
        .open("profile")
        .string("", "example")
        .string("attach", "/bin/e");
    pack.perms(&[(0, 0, 0), (1, 0, 0)])
        .dfa(&[("/bin/e", 1)])
        .u32("", 6);
    pack.string("disconnected", "/gone").middle(0);
    pack.open("xattrs").array(1).string("", "user.example");
    pack.close_array();
    pack.open("rlimits").u32("", 0b10).array(2);
    pack.u64(0).u64(4096).close_array();
    pack.open("policydb")
        .perms(&[(0, 0, 0), (2, 4, 0)])
        .dfa(&[("\u{a}x", 1)])
        .u32("start", 1)
        .close();
    pack.perms(&[(0, 0, 0), (0, 0, 0), (0x47, 8, 0x0800_0001), (4, 0, 0)])
        .dfa(&[("/etc/a", 2)])
        .u32("dfa_start", 1);
    pack.open("xtable")
        .array(2)
        .string("", "")
        .string("", "other");
    pack.close_array();
    pack.open("data").string("", "key");
    pack.blob("", b"value").close().close();
    pack
}
