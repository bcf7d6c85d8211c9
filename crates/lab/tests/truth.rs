//! Whether the lab's figures are true: what is known beforehand is measured, and the report
//! has to say it. Boots machines, and is ignored by default as boot.rs is.

use std::env;
use std::fs;
use std::path::Path;
use std::time::Instant;

use tempfile::TempDir;
use tidegate_lab::artefact::{Image, Kernel, Lab};
use tidegate_lab::define::{System, Workload};
use tidegate_lab::report::section::{Cell, Item, Section};
use tidegate_lab::report::stats::Standing;
use tidegate_lab::report::{self, long};
use tidegate_lab::results::{Clock, Run};
use tidegate_lab::run::{Plan, run};

/// Calls of known number: one, and two.
const CALLS: &str = r#"
title = "Calls"
about = "Calls of known number."
order = 1
seconds = 4
programs = ["paths"]
run = 'paths | grep -E "^(stat|open.close), 1 "'
"#;

/// A system file's text: the least there is, and `rest`.
fn system(title: &str, order: u32, rest: &str) -> String {
    format!(
        "title = \"{title}\"\nabout = \"A test's.\"\nlsm = \"capability\"\norder = {order}\n{rest}\n"
    )
}

/// A plan of files that are put into `dir`, given by name and text; without a workload,
/// of `paths`.
fn plan(dir: &Path, systems: &[(&str, String)], workloads: &[(&str, &str)], boots: u32) -> Plan {
    let put = |name: &str, text: &str| {
        let file = dir.join(format!("{name}.toml"));
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let systems: Vec<String> = systems.iter().map(|(n, text)| put(n, text)).collect();
    let workloads: Vec<String> = workloads.iter().map(|(n, text)| put(n, text)).collect();
    Plan {
        kernel: Kernel::V6_12,
        image: Image::Measured,
        clock: Clock::Instructions,
        systems: System::pick(&systems.join(",")).unwrap(),
        workloads: if workloads.is_empty() {
            Workload::pick("paths").unwrap()
        } else {
            Workload::pick(&workloads.join(",")).unwrap()
        },
        boots,
        tidegate: "/nonexistent".into(),
        lab: "/nonexistent".into(),
        commit: None,
        payload: None,
        jobs: 1,
        processors: 1,
    }
}

fn measure(plan: &Plan, file: Option<&Path>) -> Run {
    run(&Lab::open().unwrap(), plan, file).unwrap()
}

fn column(section: &Section, name: &str) -> usize {
    let found = section.systems.iter().position(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no system {name}"))
}

fn cell<'a>(section: &Section, item: &'a Item, system: &str) -> &'a Cell {
    &item.cells[column(section, system)]
}

#[test]
#[ignore = "boots machines"]
fn a_slowdown_of_known_size_is_found() {
    let dir = TempDir::new().unwrap();
    let slow = |n: u32| {
        let rest = format!("programs = [\"slow\"]\nenter = 'exec slow {n} \"$@\"'");
        system(&format!("slow {n}"), n, &rest)
    };
    let systems = [("slow-1", slow(1)), ("slow-101", slow(101))];
    let run = measure(&plan(dir.path(), &systems, &[("calls", CALLS)], 3), None);
    let section = Section::new(&run, "slow-1").unwrap();
    for (id, more) in [
        ("calls/stat, 1 components", 100.0),
        ("calls/open+close, 1 components", 200.0),
    ] {
        let item = section
            .item(id)
            .unwrap_or_else(|| panic!("no {id}: {run:?}"));
        let base = cell(&section, item, "slow-1").mean().unwrap();
        let found = cell(&section, item, "slow-101").penalty.clone().unwrap();
        let (interval, noise) = (found.interval.unwrap(), item.noise.unwrap());
        let expected = more / base * 100.0;
        println!("{id}: {base:.1}; expected {expected:.3} %, found {found:?}, noise {noise:.3} %");
        assert_eq!(found.pairs, 3);
        assert_eq!(found.standing, Standing::Significant, "{id}");
        assert!(interval.low > 0.0, "{id}: the interval has 0 in it");
        // a hundredth: the timer's ticks come by time, so a longer call has more of them
        let slack = noise + expected / 100.0;
        assert!(
            interval.low - slack <= expected && expected <= interval.high + slack,
            "{id}: {expected} % is not in {interval:?} ± {slack}"
        );
        // an interval so wide that everything lies in it shows nothing
        assert!(interval.high - interval.low + 2.0 * slack < expected);
    }
}

#[test]
#[ignore = "boots machines"]
fn what_is_the_same_does_not_differ() {
    let dir = TempDir::new().unwrap();
    // The report knows `again` for a twin and counts it into the noise. It cannot know that
    // `stranger` is one: its entry is the same in other words.
    let systems = [
        ("one", system("one", 1, "")),
        ("again", system("again", 2, "")),
        (
            "stranger",
            system("stranger", 3, "enter = '''exec \"$@\" # a comment'''"),
        ),
    ];
    let mut plan = plan(dir.path(), &systems, &[], 3);
    plan.workloads = Workload::pick("micro,paths").unwrap();
    let mut run = measure(&plan, None);
    let section = Section::new(&run, "one").unwrap();
    assert!(section.systems[column(&section, "again")].twin);
    assert!(!section.systems[column(&section, "stranger")].twin);
    for item in &section.items {
        let again = cell(&section, item, "again");
        println!("{}: again {:?}", item.id, again.penalty);
        assert!(again.penalty.as_ref().unwrap().percent.abs() < 0.01);
    }

    // the noise as it is known without them
    run.systems.remove("again");
    run.boots.retain(|b| b.system != "again");
    let section = Section::new(&run, "one").unwrap();
    assert_eq!(section.items.len(), 32);
    let mut wrong = Vec::new();
    for item in &section.items {
        let noise = item.noise.unwrap();
        assert!(noise < 3.0, "{}: a noise floor of {noise} %", item.id);
        let penalty = cell(&section, item, "stranger").penalty.as_ref().unwrap();
        println!("{}: {:+.4} %, noise {noise:.4} %", item.id, penalty.percent);
        // the floor is an estimate of three boots: one of 32 items goes beyond it now and then,
        // and its interval has 0 in it
        if penalty.standing != Standing::Noise || penalty.percent.abs() > 2.0 * noise {
            wrong.push(format!("{}: {penalty:?}, noise {noise}", item.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A workload whose figures are as wanted, unless the system wants it to fail.
const GOOD: &str = r#"
title = "Good"
about = "It works, but for one system."
order = 1
seconds = 1
run = '''
printf 'item\t4711\toperation\n'
test ! -e /run/fails || { echo "it shall fail" >&2; exit 1; }
'''
"#;

/// Prints what is no figure, the last of it without an end of its line.
const GARBAGE: &str = r#"
title = "Garbage"
about = "It prints what is none."
order = 2
seconds = 1
run = '''
printf 'thing\t4712\toperation\n'
printf 'thing 4713 operation\ntrailing\t4714\toperation\nno end'
'''
"#;

/// Comes after the garbage: what it printed may not be taken for this one's, nor the other
/// way about.
const AFTER: &str = r#"
title = "After"
about = "It comes after the garbage."
order = 3
seconds = 1
run = "printf 'after\\t4715\\toperation'"
"#;

#[test]
#[ignore = "boots machines"]
fn a_broken_probe_gives_its_reason_and_no_number() {
    let dir = TempDir::new().unwrap();
    let broken = [
        ("toothless", "deny = 'true'", "it denies nothing"),
        (
            "clumsy",
            "deny = '''\ntest ! -e /run/set\n'''\nsetup = 'touch /run/set'",
            "fails for another reason",
        ),
        (
            "stranger",
            "context = 'echo somebody'\nis = 'nobody'",
            "the subject is not what it should be",
        ),
        (
            "absent",
            "setup = '''\necho \"no such module here\" >&2\nexit 77\n'''",
            "no such module here",
        ),
        ("unset", "setup = 'exit 3'", "its setup failed"),
        ("mute-absent", "setup = 'exit 77'", "has no such system"),
        (
            "elsewhere",
            "append = 'lsm=capability,bpf'",
            "it lacks a module",
        ),
    ];
    let mut systems = vec![("plain", system("plain", 1, ""))];
    for (n, (name, rest, _)) in (10..).zip(&broken) {
        systems.push((name, system(name, n, rest)));
    }
    systems.push((
        "fragile",
        system("fragile", 50, "setup = 'touch /run/fails'"),
    ));
    let workloads = [("good", GOOD), ("garbage", GARBAGE), ("after", AFTER)];
    let file = dir.path().join("run.json");
    let run = measure(&plan(dir.path(), &systems, &workloads, 1), Some(&file));
    let section = Section::new(&run, "plain").unwrap();

    let good = section.item("good/item").unwrap();
    assert_eq!(
        cell(&section, good, "plain").mean(),
        Some(4711.0),
        "{run:?}"
    );
    for (name, _, why) in &broken {
        assert_eq!(section.systems[column(&section, name)].boots, 0, "{name}");
        for item in &section.items {
            nothing(cell(&section, item, name), why);
        }
    }
    nothing(
        cell(&section, good, "fragile"),
        "exit status 1: it shall fail",
    );
    let after = section.item("after/after").unwrap();
    assert_eq!(cell(&section, after, "fragile").mean(), Some(4715.0));
    let garbage: Vec<&Item> = section
        .items
        .iter()
        .filter(|i| i.workload == "garbage")
        .collect();
    assert!(!garbage.is_empty(), "it is missing from the report");
    for item in garbage {
        nothing(cell(&section, item, "plain"), "not a figure: thing 4713");
        nothing(cell(&section, item, "fragile"), "not a figure: thing 4713");
    }
    written(&file, &broken);
}

/// A cell with a reason, and with no number.
fn nothing(cell: &Cell, why: &str) {
    assert!(
        cell.figures.is_empty() && cell.penalty.is_none(),
        "{cell:?}"
    );
    let reason = cell.reason.as_deref().unwrap_or_default();
    assert!(reason.contains(why), "{reason:?} lacks {why:?}");
}

/// What is written down says the same.
fn written(run: &Path, broken: &[(&str, &str, &str)]) {
    let (page, table) = (run.with_extension("md"), run.with_extension("csv"));
    report::run(&report::Args {
        files: vec![run.to_owned()],
        like: None,
        html: None,
        markdown: Some(page.clone()),
        csv: Some(table.clone()),
        baseline: "plain".into(),
        json: false,
        width: 100,
        summary: None,
    })
    .unwrap();
    let page = fs::read_to_string(page).unwrap();
    for number in ["4712", "4713\t", "4714", "4,712", "4,714"] {
        assert!(!page.contains(number), "{number} is garbage's");
    }
    let rows: Vec<long::Row> = csv::Reader::from_path(table)
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect();
    for (name, _, why) in broken {
        assert!(page.contains(why), "the page lacks {why:?}:\n{page}");
        let rows: Vec<&long::Row> = rows.iter().filter(|r| r.system == *name).collect();
        assert_eq!(rows.len(), 3, "{name}");
        for row in rows {
            assert_eq!(
                (row.n, row.mean, row.sd, row.penalty_percent, row.low),
                (0, None, None, None, None)
            );
            assert!(row.reason.as_deref().unwrap_or_default().contains(why));
        }
    }
    assert!(page.contains("it shall fail") && page.contains("not a figure"));
}

#[test]
#[ignore = "boots machines"]
fn what_is_known_is_not_booted_again() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("run.json");
    let systems = [
        ("one", system("one", 1, "")),
        ("again", system("again", 2, "")),
    ];
    let plan_of = |text| plan(dir.path(), &systems, &[("good", text)], 2);
    let first = measure(&plan_of(GOOD), Some(&file));
    assert_eq!(first.boots.len(), 4);
    assert!(first.boots.iter().all(|b| b.failed.is_empty()));

    let start = Instant::now();
    let second = measure(&plan_of(GOOD), Some(&file));
    assert!(start.elapsed().as_secs_f64() < first.boots[0].seconds);
    // the seconds, too, and whose each boot is, though twins are made alike
    assert_eq!(first, second);
    assert_eq!(Run::read(&file).unwrap(), second);

    let changed = GOOD.replace("4711", "4716");
    let third = measure(&plan_of(&changed), Some(&file));
    for (old, new) in first.boots.iter().zip(&third.boots) {
        assert_ne!((&old.recipe, old.seconds), (&new.recipe, new.seconds));
        assert_eq!(new.results["good"].get("item"), Some(4716.0));
    }

    // what another plan would drop is not written over
    let mut fewer = plan_of(&changed);
    fewer.boots = 1;
    let mut others = plan_of(&changed);
    others.workloads[0].name = "other".into();
    for plan in [fewer, others] {
        let lab = Lab::open().unwrap();
        let refused = run(&lab, &plan, Some(&file)).unwrap_err().to_string();
        assert!(refused.contains("name another file"), "{refused}");
    }
    assert_eq!(Run::read(&file).unwrap(), third);
}

/// The monitors that are processes refuse what nobody may ask for, and a request that they pass on takes six messages where
/// it takes two without them.
#[test]
#[ignore = "boots machines"]
fn requests_go_by_the_monitors() {
    let dir = TempDir::new().unwrap();
    let mut plan = plan(dir.path(), &[("one", system("one", 1, ""))], &[], 1);
    plan.systems.extend(System::pick("monitors").unwrap());
    plan.workloads = Workload::pick("lava").unwrap();
    plan.lab = env::var_os("TIDEGATE_LAB_PROGRAM")
        .expect("TIDEGATE_LAB_PROGRAM names the static program: `cargo xtask test lab` sets it")
        .into();
    let run = measure(&plan, None);
    let section = Section::new(&run, "one").unwrap();
    let monitors = run.boots.iter().find(|b| b.system == "monitors").unwrap();
    assert_eq!(monitors.failed, "");
    let denied = |p: &String| p.contains("a request for a secret: Permission denied");
    assert!(monitors.proof.iter().any(denied), "{:?}", monitors.proof);
    assert_eq!(section.items.len(), 6);
    for item in &section.items {
        let of = |system| cell(&section, item, system).mean().unwrap();
        let times = of("monitors") / of("one");
        println!("{}: {times:.2} times", item.id);
        assert!((2.5..8.0).contains(&times), "{}: {times}", item.id);
    }
}
