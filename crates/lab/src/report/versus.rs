//! Tidegate against every other system: on how many items it is cheaper, on which dearer.

use super::overview::marked;
use super::section::{self, Item, Section};
use super::sheet::{Sheet, Text};
use super::stats::{self, Penalty, Standing};

/// Names of Tidegate's systems begin so.
const OURS: &str = "tidegate";
/// What enforces nothing, and is there to show what the mechanism costs.
const MECHANISM: [&str; 2] = ["bpf", "floor"];

/// The places of Tidegate's systems, and of those that they are compared with.
fn sides(section: &Section) -> (Vec<usize>, Vec<usize>) {
    let measured = section.others().filter(|at| section.systems[*at].boots > 0);
    let (ours, others): (Vec<_>, Vec<_>) =
        measured.partition(|at| section.systems[*at].name.starts_with(OURS));
    let rivals = others.into_iter().filter(|at| {
        let system = &section.systems[*at];
        !system.twin && !MECHANISM.contains(&system.name.as_str())
    });
    (ours, rivals.collect())
}

/// The tables; none where there is nothing to compare.
#[must_use]
pub fn sheets(section: &Section) -> Vec<Sheet> {
    let (ours, rivals) = sides(section);
    if ours.is_empty() || rivals.is_empty() {
        return Vec::new();
    }
    let titles = rivals.iter().map(|at| section.systems[*at].title.as_str());
    let head: Vec<&str> = std::iter::once("").chain(titles).collect();
    let mut count = Sheet::new(
        "Tidegate against the others",
        "On how many items it is cheaper / not told apart / dearer. Told apart are two systems \
         if the interval of their difference, boot by boot, excludes 0, and the difference is \
         larger than the item's noise. Of a server the connections count, not latency and bytes \
         besides; paths, policies' sizes and what no system has a hook for are left out. A \
         confined or governed subject is checked on more than an unconfined or unaffected one: \
         read like against like first.",
        &head,
    )
    .fixed(1);
    for us in &ours {
        let mut row = vec![Text::from(section.systems[*us].title.as_str())];
        for them in &rivals {
            let mut tally = [0, 0, 0];
            let counted = section.items.iter().filter(|item| counts(item));
            let known = counted.filter_map(|item| difference(section, item, *us, *them));
            known.for_each(|difference| tally[side(&difference)] += 1);
            row.push(tally.map(|n| n.to_string()).join(" / ").into());
        }
        count.row(row);
    }
    let alike: Vec<usize> = rivals
        .into_iter()
        .filter(|at| section.systems[*at].mediates_all)
        .collect();
    let dearer = dearer(section, &ours, &alike);
    let mut sheets = vec![count];
    sheets.extend((!dearer.rows.is_empty()).then_some(dearer));
    sheets
}

/// The items on which one of `ours` is dearer than one of `rivals`.
fn dearer(section: &Section, ours: &[usize], rivals: &[usize]) -> Sheet {
    let titles = rivals.iter().map(|at| section.systems[*at].title.as_str());
    let head: Vec<&str> = ["item", "subject", "Tidegate", "empty programs"]
        .into_iter()
        .chain(titles)
        .collect();
    let mut sheet = Sheet::new(
        "Where Tidegate is dearer",
        "Percent more than without a MAC, where Tidegate is dearer than a system that checks the \
         subject on as much; what the others leave unchecked, the tables of the workloads show. \
         A star marks the systems that are cheaper. Below what empty programs on Tidegate's \
         hooks cost, nothing that uses them can come.",
        &head,
    )
    .words(&[1])
    .fixed(2);
    let floor = section.systems.iter().position(|s| s.name == "floor");
    for us in ours {
        let cheaper = |item: &Item, them: usize| {
            difference(section, item, *us, them).is_some_and(|d| side(&d) == 2)
        };
        let counted = section.items.iter().filter(|item| counts(item));
        for item in counted.filter(|item| rivals.iter().any(|them| cheaper(item, *them))) {
            let more = |at: usize| {
                let penalty = item.cells[at].penalty.as_ref();
                penalty.map_or_else(Text::default, |p| marked(p.percent, p.standing))
            };
            let mut row = vec![
                item.id.as_str().into(),
                section.systems[*us].title.as_str().into(),
                more(*us),
                floor.map_or_else(Text::default, more),
            ];
            row.extend(rivals.iter().map(|them| {
                let mut cell = more(*them);
                if cheaper(item, *them) {
                    cell.text.push('*');
                }
                cell
            }));
            sheet.row(row);
        }
    }
    sheet
}

/// Whether an item counts for itself. A server's latency and its bytes are its connections
/// once more, a path's length and a policy's are other plots' matter, and what no system
/// has a say in tells nothing.
fn counts(item: &Item) -> bool {
    let again = ["latency, ", "KB, "];
    !["paths", "rules"].contains(&item.workload.as_str())
        && !again.iter().any(|a| item.name.starts_with(a))
        && !section::is_untouched(&item.id)
}

/// How much dearer one is than the other on an item, boot by boot.
fn difference(section: &Section, item: &Item, us: usize, them: usize) -> Option<Penalty> {
    let pairs = item.cells[us].pairs(&item.cells[them]);
    stats::penalty(section.clock, &pairs, item.noise)
}

/// 0: cheaper, 1: not told apart, 2: dearer.
fn side(difference: &Penalty) -> usize {
    match difference.standing {
        Standing::Significant if difference.percent < 0.0 => 0,
        Standing::Significant => 2,
        Standing::Noise | Standing::Untested => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::Run;

    /// Two systems beside the sample's: a cheap and a dear one of ours.
    fn run() -> Run {
        let mut run = sample::run();
        for (name, times) in [("tidegate-cheap", 0.5), ("tidegate-dear", 2.0)] {
            let mut system = run.systems["selinux"].clone();
            system.name = name.into();
            system.title = name.into();
            run.systems.insert(name.into(), system);
            let theirs: Vec<_> = run.boots.iter().filter(|b| b.system == "selinux").collect();
            let mut ours: Vec<_> = theirs.into_iter().cloned().collect();
            for boot in &mut ours {
                boot.system = name.into();
                for (workload, result) in &mut boot.results {
                    for figure in &mut result.figures {
                        if !section::is_untouched(&format!("{workload}/{}", figure.item)) {
                            figure.value *= times;
                        }
                    }
                }
            }
            run.boots.extend(ours);
        }
        run.systems.retain(|name, _| {
            ["none", "selinux", "tidegate-cheap", "tidegate-dear"].contains(&name.as_str())
        });
        run.boots.retain(|b| run.systems.contains_key(&b.system));
        run
    }

    #[test]
    fn half_is_cheaper_and_twice_is_dearer() {
        let section = Section::new(&run(), "none").unwrap();
        let sheets = sheets(&section);
        let counts = |row: usize| sheets[0].rows[row].cells[1].text.clone();
        assert!(counts(0).ends_with(" / 0 / 0"), "{}", counts(0));
        assert!(counts(1).starts_with("0 / 0 / "), "{}", counts(1));
        let dear = &sheets[1].rows;
        assert!(!dear.is_empty() && dear.iter().all(|r| r.cells[1].text == "tidegate-dear"));
        assert_eq!(sheets[1].title, "Where Tidegate is dearer");
    }

    #[test]
    fn one_boot_tells_nothing_apart() {
        let mut run = run();
        run.boots.retain(|b| b.disturbance == 0);
        let section = Section::new(&run, "none").unwrap();
        let sheets = sheets(&section);
        assert_eq!(sheets.len(), 1);
        assert!(sheets[0].rows[1].cells[1].text.starts_with("0 / "));
        assert!(sheets[0].rows[1].cells[1].text.ends_with(" / 0"));
    }
}
