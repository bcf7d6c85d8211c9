//! What a boot printed: guest.sh's records.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};

use crate::results::{Decisions, Figure, Outcome};

/// What always stands in the kernel's list, whatever `lsm=` says.
const ALWAYS: [&str; 4] = ["lockdown", "capability", "ima", "evm"];

/// A boot, as far as it told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Transcript {
    pub proof: Vec<String>,
    /// Why the system gave nothing.
    pub failed: String,
    /// It is not in this kernel or image.
    pub absent: bool,
    pub results: BTreeMap<String, Outcome>,
}

/// Reads guest.sh's records; `lsm` is what the system was booted with.
pub(super) fn read(text: &str, lsm: &str) -> Transcript {
    let mut found = Transcript::default();
    let mut workload = None;
    let mut before: Vec<Decisions> = Vec::new();
    let mut counted = false;
    let mut ended = false;
    let mut lacks = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once('\t').unwrap_or((line, ""));
        let outcome = workload
            .as_ref()
            .and_then(|name: &String| found.results.get_mut(name));
        match (word, outcome) {
            ("lsm", _) if !same(rest, lsm) => {
                lacks = format!("the kernel has {rest}, not {lsm}: it lacks a module");
            }
            ("lsm", _) => found.proof.push(format!("lsm: {rest}")),
            ("proof", _) => found.proof.push(rest.replace('\t', "")),
            ("absent" | "broken", _) => {
                found.absent = word == "absent";
                found.failed = rest.trim().to_owned();
                ended = true;
            }
            ("workload", _) => {
                found.results.insert(rest.to_owned(), Outcome::default());
                workload = Some(rest.to_owned());
                before.clear();
            }
            ("error", None) => found.failed = format!("{}: {}", found.failed, rest.trim()),
            ("before", Some(outcome)) => match decisions(rest) {
                // of the next size of policy
                Some(one) if counted => {
                    counted = false;
                    before = vec![one];
                }
                Some(one) => before.push(one),
                None => fail(outcome, &format!("not a count of decisions: {rest}")),
            },
            ("after", Some(outcome)) => match decisions(rest) {
                Some(one) => {
                    counted = true;
                    sum_up(&mut outcome.decisions, since(&before, one));
                }
                None => fail(outcome, &format!("not a count of decisions: {rest}")),
            },
            ("figure", Some(outcome)) => add(outcome, rest),
            ("failed" | "error", Some(outcome)) => fail(outcome, rest),
            ("end", _) => ended = true,
            _ => found.failed = format!("it printed {line:?}"),
        }
    }
    // only the system's own setup can tell that this is as it has to be
    if !lacks.is_empty() && !found.absent {
        return Transcript {
            failed: lacks,
            ..Transcript::default()
        };
    }
    if !ended && found.failed.is_empty() {
        found.failed = "it did not come to its end".into();
    }
    for outcome in found.results.values_mut() {
        if outcome.failed.is_empty() && outcome.figures.is_empty() {
            fail(outcome, "it printed no figure");
        }
    }
    found
}

/// Adds a figure; what comes after the first that is none says nothing new.
fn add(outcome: &mut Outcome, line: &str) {
    if !outcome.failed.is_empty() {
        return;
    }
    match figure(line) {
        Some(one) if outcome.get(&one.item).is_some() => {
            fail(outcome, &format!("it printed {} twice", one.item));
        }
        Some(one) => outcome.figures.push(one),
        None => fail(outcome, &format!("not a figure: {line}")),
    }
}

/// A failed workload has no figures.
fn fail(outcome: &mut Outcome, why: &str) {
    if !outcome.failed.is_empty() {
        outcome.failed.push_str(": ");
    }
    outcome.failed.push_str(why.trim());
    outcome.figures.clear();
}

fn same(has: &str, wanted: &str) -> bool {
    let sorted = |list: &str| {
        let mut names: Vec<String> = list
            .split(',')
            .filter(|name| !ALWAYS.contains(name))
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    sorted(has) == sorted(wanted)
}

/// Reads what a workload printed.
pub(crate) fn figures(text: &str) -> Result<Vec<Figure>> {
    let lines = text.lines().filter(|line| !line.is_empty());
    let read = |line: &str| figure(line).with_context(|| format!("not a figure: {line}"));
    let figures = lines.map(read).collect::<Result<Vec<_>>>()?;
    ensure!(!figures.is_empty(), "it printed no figure");
    let mut seen = BTreeSet::new();
    let twice = figures.iter().find(|f| !seen.insert(&f.item));
    ensure!(
        twice.is_none(),
        "it printed {} twice",
        twice.map_or("", |f| &f.item)
    );
    Ok(figures)
}

fn figure(words: &str) -> Option<Figure> {
    let mut words = words.split('\t');
    let (item, value, per) = (words.next()?, words.next()?, words.next()?);
    let value: f64 = value.parse().ok()?;
    (words.next().is_none() && !item.is_empty() && value.is_finite() && value > 0.0).then(|| {
        Figure {
            item: item.to_owned(),
            value,
            per: per.to_owned(),
        }
    })
}

fn decisions(words: &str) -> Option<Decisions> {
    let mut words = words.split('\t');
    let manager = words.next()?.to_owned();
    let mut count = || words.next()?.trim().parse().ok();
    Some(Decisions {
        manager,
        queries: count()?,
        hint: count()?,
        cache: count()?,
        server: count()?,
    })
}

/// Adds to the line of the same object manager, if there is one.
fn sum_up(sum: &mut Vec<Decisions>, more: Option<Decisions>) {
    let Some(more) = more else { return };
    match sum.iter_mut().find(|d| d.manager == more.manager) {
        Some(d) => {
            d.queries += more.queries;
            d.hint += more.hint;
            d.cache += more.cache;
            d.server += more.server;
        }
        None => sum.push(more),
    }
}

/// What was added; none where nothing was asked.
fn since(before: &[Decisions], after: Decisions) -> Option<Decisions> {
    let zero = Decisions {
        manager: String::new(),
        queries: 0,
        hint: 0,
        cache: 0,
        server: 0,
    };
    let old = before.iter().find(|d| d.manager == after.manager);
    let old = old.unwrap_or(&zero);
    let more = Decisions {
        queries: after.queries.saturating_sub(old.queries),
        hint: after.hint.saturating_sub(old.hint),
        cache: after.cache.saturating_sub(old.cache),
        server: after.server.saturating_sub(old.server),
        manager: after.manager,
    };
    (more.queries > 0).then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "lsm\tlockdown,capability,bpf,ima\nproof\tcontext: \tuser\n\
        workload\tmicro\nbefore\tfile\t10\t5\t0\t5\nafter\tfile\t30\t24\t0\t6\n\
        after\ttask\t0\t0\t0\t0\nfigure\tread 1 B\t538.0\toperation\n\
        workload\tshell8\nfailed\texit status 1\nerror\tsort: Permission denied \nend\n";

    #[test]
    fn a_boot_is_read() {
        let found = read(GOOD, "capability,bpf");
        assert_eq!(found.failed, "");
        assert_eq!(found.proof[1], "context: user");
        let micro = &found.results["micro"];
        assert_eq!(micro.get("read 1 B"), Some(538.0));
        assert_eq!(micro.decisions.len(), 1);
        assert_eq!(
            (micro.decisions[0].queries, micro.decisions[0].hint),
            (20, 19)
        );
        let shell = &found.results["shell8"];
        assert_eq!(shell.failed, "exit status 1: sort: Permission denied");
    }

    #[test]
    fn sizes_of_policy_add_up() {
        let text = "lsm\tbpf\nworkload\trules\nbefore\tfile\t10\t5\t0\t5\n\
            after\tfile\t30\t24\t0\t6\nfigure\ta\t1\tfile\nbefore\tfile\t50\t40\t0\t10\n\
            after\tfile\t55\t44\t0\t11\nfigure\tb\t1\tfile\nend\n";
        let rules = &read(text, "bpf").results["rules"];
        assert_eq!(rules.decisions.len(), 1);
        assert_eq!(rules.decisions[0].queries, 25);
    }

    #[test]
    fn a_kernel_with_other_modules_gives_nothing() {
        let found = read(GOOD, "capability,selinux");
        assert!(found.failed.contains("it lacks a module") && found.results.is_empty());
        assert!(!found.absent, "the list may be mistyped");
        let told = "lsm\tcapability\nabsent\tDebian builds none\n";
        let found = read(told, "capability,smack");
        assert!(found.absent && found.failed == "Debian builds none");
        assert!(!same("capability,bpf,apparmor", "capability,bpf"));
    }

    #[test]
    fn a_failed_workload_has_no_figures() {
        for wrong in [
            "figure\tread\tfast\toperation",
            "figure\tread\t-1\toperation",
            "figure\tread\tNaN\toperation",
            "figure\tread\t1",
            "figure\tstat\t2\toperation",
            "figure\tgarbage\nfigure\tread\t1\toperation",
            "failed\texit status 3",
        ] {
            let text =
                format!("lsm\tbpf\nworkload\tmicro\nfigure\tstat\t1\toperation\n{wrong}\nend\n");
            let micro = &read(&text, "bpf").results["micro"];
            assert!(
                !micro.failed.is_empty() && micro.figures.is_empty(),
                "{wrong}"
            );
        }
        let silent = read("lsm\tbpf\nworkload\tmicro\nend\n", "bpf");
        assert!(!silent.results["micro"].failed.is_empty());
    }

    #[test]
    fn a_broken_probe_is_told() {
        let text = "lsm\tbpf\nbroken\tit denies nothing\nerror\tx: y \n";
        assert_eq!(read(text, "bpf").failed, "it denies nothing: x: y");
        assert!(read("lsm\tbpf\n", "bpf").failed.contains("end"));
        assert!(
            read("lsm\tbpf\nKilled\nend\n", "bpf")
                .failed
                .contains("Killed")
        );
    }
}
