//! The report for people: a table for a terminal, and the document.

use std::fmt::Write;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table};

use super::Report;

const METHOD: &str = "\
Written by `make cost`, which counts anew; the figures are in
[cost-lomac.json](cost-lomac.json), and from them this page is written again by
`cargo run -p tidegate-lab -- cost --from docs/cost-lomac.json --document docs/cost-lomac.md`.

## How it is counted
The same static programs (`crates/lab/items`) run on the same stock Debian kernel, in
QEMU with one emulated processor whose clock is the number of executed instructions
(`-icount shift=0`). These are **instructions, not time**: caches, branches, the TLB
and locks cost nothing here, and nothing is known of several processors. What counting
is good for: it is the same on every machine and at every run.

- *without*: the kernel with `lsm=capability`. *bpf listed*: with `lsm=capability,bpf` and
  nothing attached; Debian's own list has `bpf` in it. *With* Tidegate: it enforces the preset
  `workstation`, refuses a write from below before anything is counted, and its guard is idle.
- *at system*: root, at the top level, in a directory of the system's. *at user*: alice, at
  the level `user`, in a directory of hers. Percentages compare with the same subject and
  directory without Tidegate.
- Every operation is done a fixed number of times, the first half of them uncounted, and
  every call is checked. The figure is the middle one of 11 batches, so that what the kernel
  does now and then (a journal's commit, writing back) is not laid to one operation.
- *noise*: how far the figures move at most in boots that are disturbed on purpose: a longer
  command line, another first second of the clock, the kernel at another address. A
  difference below that is nothing.
";

impl Report {
    /// The operations, for a terminal of 80 columns.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = table(
            NOTHING,
            &[
                "operation",
                "without",
                "at system",
                "at user",
                "at most",
                "",
            ],
        );
        for o in &self.operations {
            table.add_row([
                o.item.clone(),
                format!("{:.0}", o.system.without),
                format!("{:+.1} %", o.system.percent()),
                format!("{:+.1} %", o.user.percent()),
                o.budget
                    .map_or_else(String::new, |most| format!("{most:.1} %")),
                verdict(o.held()).to_owned(),
            ]);
        }
        table.trim_fmt() + "\n"
    }

    /// The whole report as a page.
    #[must_use]
    pub fn document(&self) -> String {
        let mut page = format!(
            "# What `lomac` costs\n\nInstructions on Debian's {}, without Tidegate and with it.\n{METHOD}",
            self.kernel
        );
        if let Some((differing, of)) = self.differing {
            let _ = writeln!(
                page,
                "- Each undisturbed boot was repeated: {differing} of {of} figures came out otherwise."
            );
        }
        let _ = write!(page, "\n## Operations\n{}\n", self.operations());
        if let Some(memory) = &self.memory {
            let _ = write!(
                page,
                "\n## Kernel memory\nSlab and per-CPU memory, by /proc/meminfo: {:.0} bytes for a file that has been \
                 opened (of 22,000),\n{:.0} bytes for a process below the top level (of 1,000).\n",
                memory.inode, memory.process
            );
        }
        if !self.first_sight.is_empty() {
            let _ = write!(
                page,
                "\n## Look-ups in a map\nopen+close of 330 files of four components that nobody has opened before \
                 (the map is\nlooked up), and the same once again (it is not), at the top level.\n\n{}\n",
                self.sights()
            );
        }
        page
    }

    fn operations(&self) -> String {
        let mut table = table(
            ASCII_MARKDOWN,
            &[
                "operation",
                "without",
                "bpf listed",
                "at system",
                "",
                "without",
                "at user",
                "",
                "noise",
                "at most",
                "",
            ],
        );
        for o in &self.operations {
            table.add_row([
                o.item.clone(),
                format!("{:.0}", o.system.without),
                o.listed.map_or_else(String::new, |n| format!("{n:.0}")),
                format!("{:.0}", o.system.with),
                format!("{:+.1} %", o.system.percent()),
                format!("{:.0}", o.user.without),
                format!("{:.0}", o.user.with),
                format!("{:+.1} %", o.user.percent()),
                o.noise.map_or_else(String::new, |n| format!("{n:.2} %")),
                o.budget
                    .map_or_else(String::new, |most| format!("{most:.1} %")),
                verdict(o.held()).to_owned(),
            ]);
        }
        table.trim_fmt()
    }

    fn sights(&self) -> String {
        let mut table = table(
            ASCII_MARKDOWN,
            &["rules", "first, without", "with", "second, without", "with"],
        );
        for s in &self.first_sight {
            table.add_row(
                [
                    s.rules as f64,
                    s.first.without,
                    s.first.with,
                    s.second.without,
                    s.second.with,
                ]
                .map(|n| format!("{n:.0}")),
            );
        }
        table.trim_fmt()
    }
}

/// A table whose first column is words and whose other ones are figures.
fn table(preset: &str, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(preset).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn verdict(held: Option<bool>) -> &'static str {
    match held {
        Some(true) => "held",
        Some(false) => "EXCEEDED",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Change, Operation};

    fn report() -> Report {
        let change = |with| Change {
            without: 4000.0,
            with,
        };
        Report {
            kernel: "6.12.1".into(),
            differing: Some((0, 10)),
            operations: vec![Operation {
                item: "stat".into(),
                system: change(4040.0),
                user: change(4100.0),
                listed: Some(4000.0),
                noise: Some(0.25),
                budget: Some(1.5),
            }],
            memory: None,
            first_sight: Vec::new(),
        }
    }

    #[test]
    fn the_table_fits_a_terminal_and_marks_what_misses() {
        let table = report().table();
        assert!(table.contains("+2.5 %") && table.contains("EXCEEDED"));
        assert!(table.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_document_has_every_figure() {
        let page = report().document();
        for figure in [
            "4000",
            "4040",
            "+1.0 %",
            "4100",
            "0.25 %",
            "0 of 10 figures",
        ] {
            assert!(page.contains(figure), "{figure} is not in:\n{page}");
        }
    }
}
