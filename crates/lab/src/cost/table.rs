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
is good for: the host's load and speed do not matter. The same programs, kernel, image and
QEMU give the same figures, or nearly (see below); another compiler or C library may not,
since the programs are linked with the host's.

- The kernel's instructions and those in user space are counted alike. *vfork+exec* is mostly
  the work of ld.so and libc in user space, and *kill(0)* holds a getpid(): the percentages
  of the kernel's part alone are larger.
- *without*: the kernel with `lsm=capability`. *bpf listed*: with `lsm=capability,bpf` and
  nothing attached; Debian's own list has `bpf` in it and is longer than both. What *at system*
  has over it, Tidegate itself adds. *With* Tidegate: it enforces the preset
  `workstation`, refuses a write from below before anything is counted, and its guard is idle.
  [limitations.md](limitations.md) says what the guard costs while it is attached.
- *at system*: root, at the top level, in a directory of the system's. *at user*: alice, at
  the level `user`, in a directory of hers. Percentages compare with the same subject and
  directory without Tidegate. The two levels work in different directories, whose layout on
  the disk counts too (see both *without*): do not compare one level with the other.
- Every operation is done a fixed number of times, the first half of them uncounted, and
  every call is checked. The figure is the middle one of 11 batches, so that what the kernel
  does now and then (a journal's commit, writing back) is not laid to one operation. What
  Tidegate does now and then (the daemon's waking, eviction) is left out with it.
- Per-CPU memory is made alike in all machines before anything is counted: 200 control groups and
  2,000 mounts use up the pages that the kernel sets apart for it at boot, and the gaps. A fork
  and an exec allocate there: in a machine that runs nothing else a fork is 0.35 % cheaper,
  until somebody, Tidegate for one, has taken those pages.
- *noise*: how far a figure moves in a boot that is disturbed on purpose, in three ways at
  once: a longer command line, another first second of the clock, the kernel at another
  address. There is one such boot without Tidegate and one with it; the largest move of the
  four figures (two boots, two levels) stands here. It is of one figure: a difference of two
  below twice that is nothing. Directories and disk are not disturbed.
- *at most*: a budget for the increase over *without*, in percent. The worse of the two
  levels counts, before rounding; `make cost` fails if one is exceeded.
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
                format!("{:+.2} %", o.system.percent()),
                format!("{:+.2} %", o.user.percent()),
                o.budget
                    .map_or_else(String::new, |most| format!("{most:.2} %")),
                verdict(o.held()).to_owned(),
            ]);
        }
        table.trim_fmt() + "\n"
    }

    /// The whole report as a page.
    #[must_use]
    pub fn document(&self) -> String {
        let mut page = format!(
            "# What `lomac` costs\n\nInstructions on Debian's {}, without Tidegate and with it.\n{}\n{METHOD}",
            self.kernel,
            self.program()
        );
        if let Some((differing, of)) = self.differing {
            let _ = writeln!(
                page,
                "- The undisturbed boots without and with Tidegate were repeated once: {differing} of {of} figures\n  \
                 came out otherwise. *bpf listed* is a single boot, neither repeated nor disturbed."
            );
        }
        let _ = write!(page, "\n## Operations\n{}\n", self.operations());
        if let Some(memory) = &self.memory {
            let _ = write!(
                page,
                "\n## Kernel memory\nSlab and per-CPU memory, by /proc/meminfo: {:.0} bytes for a file that has been \
                 opened (of 22,000),\n{:.0} bytes for a process below the top level (of 1,000). How far these move was not measured.\n\
                 What the tables take from the start is not in them: see [limitations.md](limitations.md).\n",
                memory.inode, memory.process
            );
        }
        if !self.first_sight.is_empty() {
            let _ = write!(
                page,
                "\n## Look-ups in a map\nopen+close of 330 files of four components that nobody has opened before \
                 (the map is\nlooked up), and the same once again (it is not), at the top level. None of their paths meets a `*`,\n\
                 and none is matched by a rule's last component.\n\n{}\n",
                self.sights()
            );
        }
        page
    }

    /// Which program was measured.
    fn program(&self) -> String {
        let program = &self.program;
        let commit = program.commit.as_ref().map_or_else(
            || "from sources of no one commit".to_owned(),
            |commit| format!("built from commit {commit}"),
        );
        format!(
            "The program measured: {}, {commit},\nSHA-256 `{}`.\n",
            program.version, program.sha256
        )
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
                format!("{:+.2} %", o.system.percent()),
                format!("{:.0}", o.user.without),
                format!("{:.0}", o.user.with),
                format!("{:+.2} %", o.user.percent()),
                o.noise.map_or_else(String::new, |n| format!("{n:.2} %")),
                o.budget
                    .map_or_else(String::new, |most| format!("{most:.2} %")),
                verdict(o.held()).to_owned(),
            ]);
        }
        table.trim_fmt()
    }

    fn sights(&self) -> String {
        let mut table = table(
            ASCII_MARKDOWN,
            &[
                "rules",
                "first, without",
                "with",
                "",
                "second, without",
                "with",
                "",
            ],
        );
        for s in &self.first_sight {
            table.add_row([
                s.rules.to_string(),
                format!("{:.0}", s.first.without),
                format!("{:.0}", s.first.with),
                format!("{:+.2} %", s.first.percent()),
                format!("{:.0}", s.second.without),
                format!("{:.0}", s.second.with),
                format!("{:+.2} %", s.second.percent()),
            ]);
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
    use crate::cost::{Change, Operation, Program};

    fn report() -> Report {
        let change = |with| Change {
            without: 4000.0,
            with,
        };
        Report {
            program: Program {
                version: "tidegate 0.1.0".into(),
                sha256: "5e1f".into(),
                commit: Some("c0ffee".into()),
            },
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
        let mut report = report();
        report.operations[0].item = "open+close, 8 directories down".into();
        report.operations[0].user.with = 4500.0;
        let table = report.table();
        assert!(table.contains("+12.50 %") && table.contains("EXCEEDED"));
        assert!(table.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn the_document_has_every_figure() {
        let page = report().document();
        for figure in [
            "4000",
            "4040",
            "+1.00 %",
            "4100",
            "0.25 %",
            "0 of 10 figures",
            "tidegate 0.1.0, built from commit c0ffee",
            "`5e1f`",
        ] {
            assert!(page.contains(figure), "{figure} is not in:\n{page}");
        }
    }
}
