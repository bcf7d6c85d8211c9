//! What objects are labelled by: filesystems, file contexts, and the network's ports and addresses.

use std::collections::HashMap;

use tidegate_bundle::te::contexts::{Automaton, FileContexts};
use tidegate_bundle::te::db::Context;

use super::ImageError;
use super::labels::text_hash;
use super::writer::Writer;
use crate::genfs::genfs;
use crate::part;

impl Writer<'_> {
    pub(super) fn filesystems(&mut self) -> Result<(), ImageError> {
        let mut table: HashMap<&str, (u64, u32, u32)> = HashMap::new();
        for of in &self.db.genfs {
            let mut paths = Vec::new();
            for path in &of.paths {
                let class = path.class.map(|c| self.classes.number(c));
                let sid = self.sid(&path.context);
                self.lines.push(sid);
                let line = u16::try_from(self.lines.len() - 1);
                let line = line.map_err(|_| ImageError::TooMany("lines of file contexts"))?;
                paths.push((path.path.as_str(), class, line));
            }
            let automaton = genfs(&paths, self.classes);
            let of_root = automaton.walk(b"/")[1].line;
            let sid = self.lines[usize::from(of_root)];
            let place = self.automaton(&automaton);
            table.insert(&of.filesystem, (sid, 4, place));
        }
        for of in &self.db.fs_uses {
            let place = table.get(of.filesystem.as_str()).map_or(0, |t| t.2);
            table.insert(
                &of.filesystem,
                (self.sid(&of.context), of.behavior as u32 + 1, place),
            );
        }
        let mut names: Vec<_> = table
            .into_iter()
            .filter(|(name, _)| name.len() < 24)
            .collect();
        names.sort_unstable();
        let entries: Vec<(u32, [u64; 5])> = names
            .into_iter()
            .map(|(name, (sid, behavior, paths))| {
                let mut text = [0; 24];
                text[..name.len()].copy_from_slice(name.as_bytes());
                let word =
                    |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().expect("8 bytes"));
                let entry = [
                    word(0),
                    word(8),
                    word(16),
                    sid,
                    u64::from(behavior) | u64::from(paths) << 32,
                ];
                (text_hash(name.as_bytes()), entry)
            })
            .collect();
        let (place, mask) = self.out.hashed(&entries);
        self.head[part::FILESYSTEMS] = place;
        self.head[part::FILESYSTEMS_MASK] = mask;
        Ok(())
    }

    /// Writes an automaton.
    pub(super) fn automaton(&mut self, a: &Automaton) -> u32 {
        let answers = self.out.list(a.answers.iter().map(|answers| {
            let mut words = [0u32; 8];
            for (word, said) in words.iter_mut().zip(answers) {
                *word = u32::from_le_bytes([
                    said.line as u8,
                    (said.line >> 8) as u8,
                    said.rank,
                    said.none,
                ]);
            }
            words
        }));
        self.out.automaton(a, answers)
    }

    pub(super) fn files(&mut self, files: &FileContexts, contexts: &[Option<Context>]) {
        for line in &files.lines {
            let context = line.context.map(|at| &contexts[usize::from(at)]);
            self.lines.push(match context {
                Some(context) => context.as_ref().map_or(0, |context| self.sid(context)),
                None => u64::MAX,
            });
        }
        let automata: Vec<u32> = files.automata.iter().map(|a| self.automaton(a)).collect();
        self.head[part::FILES_COUNT] = automata.len() as u32;
        self.head[part::FILES] = self.out.list(automata);
    }

    pub(super) fn network(&mut self) {
        let mut contexts: Vec<u64> = vec![0];
        let mut tables = [0u32; 4];
        for (at, protocol) in [6u8, 17, 33, 132].into_iter().enumerate() {
            let mut ports = vec![0u16; 65536];
            // the first that fits counts
            for port in self
                .db
                .ports
                .iter()
                .rev()
                .filter(|p| p.protocol == protocol)
            {
                let sid = self.sid(&port.context);
                let index = contexts.iter().position(|&c| c == sid).unwrap_or_else(|| {
                    contexts.push(sid);
                    contexts.len() - 1
                });
                for number in port.low..=port.high {
                    ports[usize::from(number)] = index as u16;
                }
            }
            if ports.iter().any(|&index| index != 0) {
                tables[at] = self.out.list(ports);
            }
        }
        self.head[part::PORTS] = self.out.list(tables);
        self.head[part::PORT_SIDS] = self.out.list(contexts);

        let narrow = |address: &[u8; 4]| {
            let mut wide = [0; 16];
            wide[..4].copy_from_slice(address);
            wide
        };
        let four = self
            .db
            .nodes
            .iter()
            .map(|(a, m, c)| (narrow(a), narrow(m), self.sid(c), 4));
        let six = self
            .db
            .nodes6
            .iter()
            .map(|(a, m, c)| (*a, *m, self.sid(c), 6));
        let nodes: Vec<[u64; 6]> = four
            .chain(six)
            .map(|(address, mask, sid, family)| {
                let word = |bytes: &[u8; 16], at: usize| {
                    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
                };
                [
                    word(&address, 0),
                    word(&address, 8),
                    word(&mask, 0),
                    word(&mask, 8),
                    sid,
                    family,
                ]
            })
            .collect();
        self.head[part::NODES_COUNT] = nodes.len() as u32;
        self.head[part::NODES] = self.out.list(nodes);
    }
}
