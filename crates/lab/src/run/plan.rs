//! Which boots a run consists of, in which order, and how each is disturbed.

use std::path::PathBuf;

use crate::artefact::{Image, Kernel};
use crate::define::{System, Workload};
use crate::results::Clock;

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// On which kernel.
    pub kernel: Kernel,
    /// From which image: all systems but Tidegate's want [`Image::Measured`].
    pub image: Image,
    /// By which clock: instructions, or a machine's under KVM.
    pub clock: Clock,
    /// The systems, in their order; the first is what the others are compared with.
    pub systems: Vec<System>,
    /// The workloads, in their order.
    pub workloads: Vec<Workload>,
    /// Boots of each system; it, or a workload, may want fewer.
    pub boots: u32,
    /// The static `tidegate` that is measured.
    pub tidegate: PathBuf,
    /// The lab's own program, static too, for systems that need it.
    pub lab: PathBuf,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
    /// A directory that the guest sees as /payload/own.
    pub payload: Option<PathBuf>,
    /// Machines at a time.
    pub jobs: usize,
    /// Processors of a machine; one where instructions are counted.
    pub processors: u32,
}

/// One boot to be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted<'a> {
    pub system: &'a System,
    pub disturbance: u32,
    pub workloads: Vec<&'a Workload>,
}

/// What a boot takes besides its workloads, in seconds: a first guess.
const BOOT_SECONDS: u32 = 10;
/// What `lsm=` and further words are padded to: longer than any system's.
const LONGEST: usize = 128;
/// Characters added to the command line by each disturbance.
const PADDING: usize = 16;
/// Seconds by which each moves the clock.
const LATER: u32 = 90;

impl Plan {
    /// The boots, one disturbance after the other: what is compared stands close.
    pub(super) fn wanted(&self) -> Vec<Wanted<'_>> {
        let mut list = Vec::new();
        for disturbance in 0..self.boots {
            for system in self.systems.iter().filter(|s| disturbance < s.boots) {
                let mut workloads: Vec<&Workload> = self
                    .workloads
                    .iter()
                    .filter(|w| self.measures(w, disturbance) && system.is_measured_by(&w.name))
                    .collect();
                if !workloads.is_empty() {
                    let first = disturbance as usize % workloads.len();
                    workloads.rotate_left(first);
                    list.push(Wanted {
                        system,
                        disturbance,
                        workloads,
                    });
                }
            }
        }
        list
    }

    fn measures(&self, workload: &Workload, disturbance: u32) -> bool {
        let sees = self.clock != Clock::Instructions || workload.only_time.is_empty();
        sees && disturbance < workload.boots
    }

    /// Makes the command lines of all systems equally long; disturbed ones longer.
    pub(super) fn append(&self, wanted: &Wanted<'_>) -> String {
        let length = wanted.system.lsm.len() + wanted.system.append.len();
        let missing = LONGEST.saturating_sub(length) + PADDING * wanted.disturbance as usize;
        let padding = format!("lab.padding={}", "x".repeat(missing));
        format!("{} {padding}", wanted.system.append)
    }
}

impl Wanted<'_> {
    /// The first second that the guest sees, as QEMU's `-rtc base=` takes it.
    pub(super) fn rtc(&self) -> String {
        let seconds = LATER * self.disturbance;
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("2026-01-01T{hours:02}:{minutes:02}:{seconds:02}")
    }

    /// A first guess of what it takes.
    pub(super) fn seconds(&self) -> u32 {
        let work: u32 = self.workloads.iter().map(|w| w.seconds).sum();
        BOOT_SECONDS + self.system.seconds + work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            kernel: Kernel::V6_12,
            image: Image::Measured,
            clock: Clock::Instructions,
            systems: System::all().unwrap(),
            workloads: Workload::all().unwrap(),
            boots: 3,
            tidegate: PathBuf::new(),
            lab: PathBuf::new(),
            commit: None,
            payload: None,
            jobs: 1,
            processors: 1,
        }
    }

    #[test]
    fn command_lines_are_equally_long() {
        let plan = plan();
        let mut lengths = Vec::new();
        for wanted in plan.wanted().iter().filter(|w| w.disturbance == 0) {
            lengths.push(wanted.system.lsm.len() + plan.append(wanted).len());
        }
        assert!(lengths.iter().all(|l| *l == lengths[0]), "{lengths:?}");
    }

    #[test]
    fn a_disturbance_changes_length_clock_and_order() {
        let plan = plan();
        let wanted = plan.wanted();
        let of = |n| {
            let found = wanted.iter().find(|w| w.disturbance == n);
            found.unwrap()
        };
        assert!(plan.append(of(1)).len() > plan.append(of(0)).len());
        assert_eq!(of(0).rtc(), "2026-01-01T00:00:00");
        assert_eq!(of(1).rtc(), "2026-01-01T00:01:30");
    }

    #[test]
    fn what_wants_fewer_boots_has_fewer() {
        let mut plan = plan();
        plan.systems[0].boots = 2;
        plan.workloads[0].boots = 1;
        let (system, workload) = (&plan.systems[0].name, &plan.workloads[0].name);
        let wanted = plan.wanted();
        let boots = wanted.iter().filter(|w| w.system.name == *system);
        assert_eq!(boots.count(), 2);
        let has = |w: &&Wanted<'_>| w.workloads.iter().any(|w| w.name == *workload);
        let of_it = plan.systems.iter().filter(|s| s.only.is_empty());
        assert_eq!(wanted.iter().filter(has).count(), of_it.count());
    }

    #[test]
    fn a_system_for_some_workloads_is_not_measured_by_others() {
        let plan = plan();
        let wanted = plan.wanted();
        let of = |name| -> Vec<&str> {
            let boots = wanted.iter().filter(|w| w.system.name == name);
            let workloads = boots.flat_map(|w| &w.workloads);
            workloads.map(|w| w.name.as_str()).collect()
        };
        assert!(!of("monitors").is_empty() && of("monitors").iter().all(|w| *w == "lava"));
        assert!(of("none").contains(&"micro"));
    }

    #[test]
    fn what_instructions_do_not_see_is_not_run() {
        let mut plan = plan();
        plan.workloads[0].only_time = "several processors".into();
        let name = plan.workloads[0].name.clone();
        let has = |plan: &Plan| {
            let wanted = plan.wanted();
            wanted
                .iter()
                .any(|w| w.workloads.iter().any(|w| w.name == name))
        };
        assert!(!has(&plan));
        plan.clock = Clock::Vm;
        assert!(has(&plan));
    }
}
