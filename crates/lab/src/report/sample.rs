//! A made-up run for tests, in which everything happens that a report has to tell.

use std::collections::BTreeMap;

use super::{mapping, section};
use crate::define::{System, Workload};
use crate::results::{Boot, Clock, Decisions, FORMAT, Figure, Outcome, Run};

/// Disturbances of each system.
const BOOTS: u32 = 3;

/// name, title, how much slower in percent where it is at its worst.
const SYSTEMS: [(&str, &str, f64); 10] = [
    ("none", "none", 0.0),
    ("dac-only", "capability", 0.1),
    ("apparmor", "AppArmor, confined", 160.0),
    ("apparmor-unconfined", "AppArmor, unconfined", 28.0),
    ("selinux", "SELinux", 104.0),
    ("smack", "Smack", 35.0),
    ("landlock", "Landlock", 44.0),
    ("lomac", "Tidegate lomac", 12.0),
    ("biba", "Tidegate biba", 15.0),
    ("lost", "TOMOYO", 0.0),
];

/// The items and their cost without any system.
fn items() -> Vec<(String, String, f64)> {
    let mut items = Vec::new();
    let mut add = |workload: &str, name: &str, cost: f64| {
        items.push((workload.to_owned(), name.to_owned(), cost));
    };
    for (name, cost) in [
        ("read 1 B", 538.0),
        ("write 1 B", 477.0),
        ("stat", 3854.0),
        ("fstat", 876.0),
        ("open+close", 5491.0),
        ("open+close, 8 directories down", 6663.0),
        ("creat+unlink", 59_238.0),
        ("pipe write+read", 2005.0),
        ("<kill> & \"0\"", 1031.0),
        ("socket+close", 7324.0),
        ("fork+exit+wait", 174_962.0),
        ("vfork+exec", 853_321.0),
    ] {
        add("micro", name, cost);
    }
    for n in [1, 2, 4, 8, 16] {
        let name = format!("open+close, {n} components");
        add("paths", &name, 5000.0 + 150.0 * f64::from(n));
    }
    for n in [10, 1000, 100_000] {
        add("rules", &format!("first open, {n} rules"), 9000.0);
        add("rules", &format!("open again, {n} rules"), 5400.0);
    }
    for n in [1, 2, 4, 8] {
        let name = format!("open+close, {n} CPUs");
        add("contention", &name, 900.0 + 40.0 * f64::from(n));
    }
    for id in mapping::IDS {
        let (workload, name) = id.split_once('/').unwrap();
        if !workload.starts_with("lava") {
            let cost = if workload.starts_with("build") {
                5.9e9
            } else {
                20_000.0
            };
            add(workload, name, cost);
        }
    }
    items
}

/// The run.
pub fn run() -> Run {
    let mut random = fastrand::Rng::with_seed(7);
    let items = items();
    let template = System::pick("none").unwrap().remove(0);
    let mut systems = BTreeMap::new();
    let mut workloads = BTreeMap::new();
    for (workload, ..) in &items {
        let made = workloads.len();
        workloads
            .entry(workload.clone())
            .or_insert_with(|| Workload {
                name: workload.clone(),
                title: workload.clone(),
                order: u32::try_from(made).unwrap(),
                ..Workload::command("true")
            });
    }
    let mut boots = Vec::new();
    for (order, (name, title, worst)) in (0..).zip(SYSTEMS) {
        let system = System {
            name: name.into(),
            title: title.into(),
            about: format!("{title}, made up."),
            lsm: format!("capability,{name}"),
            mediates_all: name == "selinux",
            order,
            ..template.clone()
        };
        systems.insert(name.to_owned(), system);
        for disturbance in 0..BOOTS {
            let mut results: BTreeMap<String, Outcome> = BTreeMap::new();
            for (at, (workload, item, cost)) in (0_u32..).zip(&items) {
                let weight = f64::from((at * 7 + order * 3) % 11) / 10.0;
                let long = item.split(' ').find_map(|w| w.parse::<f64>().ok());
                let grows = long.map_or(0.0, |n| n.ln() / 50.0);
                let noise = 1.0 + (random.f64() - 0.5) / 200.0;
                let touched = !section::is_untouched(&format!("{workload}/{item}"));
                let slower = 1.0 + worst / 100.0 * (weight.powi(3) + grows) * f64::from(touched);
                results
                    .entry(workload.clone())
                    .or_default()
                    .figures
                    .push(Figure {
                        item: item.clone(),
                        value: cost * slower * noise,
                        per: "operation".into(),
                    });
            }
            if name == "selinux" {
                results.insert(
                    "build-flask".into(),
                    Outcome {
                        failed: "gcc: exit status 1".into(),
                        ..Outcome::default()
                    },
                );
            }
            if name == "lomac" {
                let build = results.get_mut("build-flask").unwrap();
                build.decisions = vec![Decisions {
                    manager: "files".into(),
                    queries: 1000,
                    hint: 700,
                    cache: 290,
                    server: 10,
                }];
            }
            let failed = match name {
                "lost" => "no such module here",
                _ => "",
            };
            boots.push(Boot {
                system: name.into(),
                disturbance,
                recipe: format!("{name}{disturbance}"),
                seconds: 100.0,
                proof: vec![format!("it is {name}")],
                failed: failed.into(),
                absent: false,
                results: if failed.is_empty() {
                    results
                } else {
                    BTreeMap::new()
                },
            });
        }
    }
    Run {
        format: FORMAT,
        clock: Clock::Instructions,
        kernel: "6.12.57+deb13-cloud-amd64".into(),
        made_with: BTreeMap::from([("QEMU".into(), "10.0.6".into())]),
        systems,
        workloads,
        boots,
    }
}

/// The report of the run.
pub fn document() -> super::document::Document {
    super::document::Document::new(&[section()], &super::published::Source::ALL).unwrap()
}

/// The run, compared.
pub fn section() -> super::section::Section {
    super::section::Section::new(&run(), "none").unwrap()
}
