//! The suites: what is played, with what, and where. A part is a suite on a kernel, `caps-6.12`.

use anyhow::{Context, Result};

/// The kernels that parts are played on.
pub const KERNELS: [&str; 2] = ["6.12", "7.2"];

/// A suite.
#[derive(Debug)]
pub struct Suite {
    /// Its name; that of a part has the kernel's behind it where it is played on one.
    pub name: &'static str,
    /// What it needs before it is played.
    pub needs: &'static [Step],
    /// How it is played.
    pub how: How,
    /// How many minutes it may take. It takes a fraction of that: this ends what hangs.
    pub minutes: u64,
}

/// How a suite is played.
#[derive(Debug)]
pub enum How {
    /// The formatters and linters, and what else reads the sources.
    Lint,
    /// `cargo test`, of all crates.
    Unit,
    /// The lab's own tests, which boot machines: those that these arguments choose.
    Boots(&'static [&'static str]),
    /// A program of this tree here, with these arguments. Where it boots machines, it is told the lab's program, a payload
    /// with [`TIDEGATE`] and these programs, and the kernel.
    Here(&'static [&'static str], Option<&'static [Program]>),
    /// In a machine, which other suites may share.
    Machine(Guest),
}

/// What is played in a machine.
#[derive(Debug)]
pub struct Guest {
    /// The machine.
    pub place: Place,
    /// Programs in the payload, beside [`TIDEGATE`].
    pub programs: &'static [Program],
    /// Files of this tree in the payload, or the files of a directory.
    pub files: &'static [&'static str],
    /// A script here that adds to the payload: it is told the payload's directory and the kernel.
    pub prepare: Option<&'static str>,
    /// The script that is played there.
    pub play: &'static str,
    /// A script here that judges what was said there: it is told the payload's directory and the log, and says the counts.
    pub judge: Option<&'static str>,
}

/// A program in a payload: the name there, and the binary that it is a copy of.
pub type Program = (&'static str, &'static str);

/// What every payload has.
pub const TIDEGATE: Program = ("tidegate", "tidegate");

/// A machine: suites of one place and kernel share one, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Debian's own list of security modules, the scenarios' three levels.
    Levels,
    /// Without the modules that others are compared with; one map, whose levels all of its suites have.
    Flat,
    /// One of its own, with Debian's own list of security modules.
    Own,
    /// One of its own, with a whole Debian.
    Whole,
}

impl Place {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Levels => "levels",
            Self::Flat => "flat",
            Self::Own => "own",
            Self::Whole => "whole",
        }
    }

    /// Whether several suites may be in one.
    pub fn shared(self) -> bool {
        matches!(self, Self::Levels | Self::Flat)
    }

    /// Arguments of `tidegate-lab vm`.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Levels | Self::Own => &[],
            // records of SELinux's or AppArmor's would take the console minutes
            Self::Flat => &["--lsm", "lockdown,yama,bpf"],
            Self::Whole => &["--image", "whole"],
        }
    }
}

/// What has to be there before parts are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The lab's program, which makes and boots machines.
    Lab,
    /// All programs.
    Programs,
    /// The unit tests' programs.
    Tests,
    /// QEMU, the kernels and the image of machines.
    Machines,
    /// The tree with the model checker.
    Prover,
    /// The tree with SELinux's own tools and policy.
    Selinux,
}

impl Step {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lab => "build-lab",
            Self::Programs => "build-programs",
            Self::Tests => "build-tests",
            Self::Machines => "machines",
            Self::Prover => "tree-prover",
            Self::Selinux => "tree-selinux",
        }
    }

    /// What has to be there before it.
    pub fn needs(self) -> &'static [Step] {
        match self {
            Self::Lab | Self::Selinux => &[],
            Self::Programs | Self::Machines | Self::Prover => &[Self::Lab],
            Self::Tests => &[Self::Programs],
        }
    }
}

/// A program of tests: the multi-call program, under this name.
const fn tests(name: &'static str) -> Program {
    (name, "tidegate-tests")
}

const MACHINE: &[Step] = &[Step::Programs, Step::Machines];

const fn machine(name: &'static str, minutes: u64, guest: Guest) -> Suite {
    Suite {
        name,
        needs: MACHINE,
        how: How::Machine(guest),
        minutes,
    }
}

/// A guest with nothing but a script.
const fn guest(place: Place, play: &'static str) -> Guest {
    Guest {
        place,
        programs: &[],
        files: &[],
        prepare: None,
        play,
        judge: None,
    }
}

/// A suite whose program runs here, and is told these words alone.
const fn here(
    name: &'static str,
    minutes: u64,
    needs: &'static [Step],
    words: &'static [&'static str],
) -> Suite {
    Suite {
        name,
        needs,
        how: How::Here(words, None),
        minutes,
    }
}

/// A suite whose script boots machines by itself: it is told the lab's program, its payload and the kernel.
const fn boots(
    name: &'static str,
    minutes: u64,
    programs: &'static [Program],
    words: &'static [&'static str],
) -> Suite {
    Suite {
        name,
        needs: MACHINE,
        how: How::Here(words, Some(programs)),
        minutes,
    }
}

const EXPECT: &str = "tests/expect.sh";
const ASK: &str = "tests/ask.sh";
const FLAT: &str = "tests/te/flat.plm";

/// What `caps-service` and `caps-service-all` have.
const CAPS_SERVICE: &[&str] = &[
    EXPECT,
    ASK,
    FLAT,
    "tests/caps-service/check.sh",
    "tests/caps-service/client.py",
    "tests/caps-service/helper.py",
    "tests/caps-service/play.py",
    "tests/caps-service/wire.py",
    "examples/notes/notes.caps",
];

/// All suites. Those that share a machine are played in this order; machines and parts begin in the order of [`TEST`] and
/// [`MORE`], of which what takes longest is first.
pub const SUITES: &[Suite] = &[
    Suite {
        name: "lint",
        needs: &[Step::Programs, Step::Tests],
        how: How::Lint,
        minutes: 30,
    },
    Suite {
        name: "unit",
        needs: &[Step::Tests],
        how: How::Unit,
        minutes: 60,
    },
    machine(
        "scenarios",
        40,
        Guest {
            programs: &[tests("scenarios")],
            ..guest(Place::Levels, "tests/scenarios/check.sh")
        },
    ),
    // in the machines with the flat map those come first that are about a machine without a daemon, and those last that have a
    // policy for programs
    machine(
        "caps",
        20,
        Guest {
            files: &[
                EXPECT,
                ASK,
                FLAT,
                "tests/caps/ops.py",
                "tests/caps/attacks.sh",
                "tests/caps/attacks.pl",
                "tests/caps/sessions.pl",
            ],
            ..guest(Place::Flat, "tests/caps/check.sh")
        },
    ),
    machine(
        "caps-service",
        20,
        Guest {
            files: CAPS_SERVICE,
            prepare: Some("tests/caps-service/prepare.sh"),
            ..guest(Place::Flat, "tests/caps-service/check.sh")
        },
    ),
    machine(
        "caps-service-all",
        40,
        Guest {
            files: CAPS_SERVICE,
            prepare: Some("tests/caps-service/prepare.sh"),
            ..guest(Place::Flat, "tests/caps-service/check-all.sh")
        },
    ),
    machine(
        "narrow",
        20,
        Guest {
            files: &[EXPECT, FLAT],
            prepare: Some("tests/narrow/prepare.sh"),
            ..guest(Place::Flat, "tests/narrow/check.sh")
        },
    ),
    machine(
        "caps-random",
        40,
        Guest {
            programs: &[tests("caps-random")],
            files: &[EXPECT, FLAT],
            ..guest(Place::Flat, "tests/caps-random/check.sh")
        },
    ),
    machine(
        "agent-host",
        20,
        Guest {
            programs: &[("agent-host", "agent-host"), ("agent-tool", "agent-tool")],
            files: &[
                EXPECT,
                FLAT,
                "examples/agent-host/tools.caps",
                "examples/agent-host/tools.toml",
            ],
            ..guest(Place::Flat, "examples/agent-host/play.sh")
        },
    ),
    machine(
        "replay",
        20,
        Guest {
            programs: &[tests("replay")],
            files: &[EXPECT, "crates/model/policy/replay.plm"],
            ..guest(Place::Flat, "tests/replay/check.sh")
        },
    ),
    machine(
        "scenarios-rules",
        20,
        Guest {
            programs: &[tests("scenarios")],
            ..guest(Place::Own, "tests/scenarios/check-rules.sh")
        },
    ),
    machine(
        "scenarios-slow",
        40,
        Guest {
            programs: &[tests("scenarios")],
            ..guest(Place::Own, "tests/scenarios/check-slow.sh")
        },
    ),
    machine(
        "replay-all",
        40,
        Guest {
            programs: &[tests("replay")],
            files: &[EXPECT, "crates/model/policy/replay.plm"],
            ..guest(Place::Flat, "tests/replay/check-all.sh")
        },
    ),
    machine(
        "profile",
        30,
        Guest {
            programs: &[tests("profile-ops")],
            files: &[EXPECT],
            prepare: Some("tests/profile/prepare.sh"),
            judge: Some("tests/profile/judge.sh"),
            ..guest(Place::Flat, "tests/profile/check.sh")
        },
    ),
    machine(
        "te-live",
        20,
        Guest {
            programs: &[tests("te-live"), ("other-live", "tidegate-tests")],
            files: &[EXPECT, FLAT],
            prepare: Some("tests/te-live/prepare.sh"),
            ..guest(Place::Flat, "tests/te-live/check.sh")
        },
    ),
    machine(
        "te-enforced",
        20,
        Guest {
            programs: &[tests("te-ops")],
            files: &[EXPECT, FLAT],
            prepare: Some("tests/te/prepare.sh"),
            judge: Some("tests/te/judge.sh"),
            ..guest(Place::Flat, "tests/te/check.sh")
        },
    ),
    machine(
        "caps-models",
        20,
        Guest {
            files: &[EXPECT],
            prepare: Some("tests/caps-models/prepare.sh"),
            ..guest(Place::Flat, "tests/caps-models/check.sh")
        },
    ),
    here(
        "te-decisions",
        60,
        &[Step::Programs, Step::Selinux],
        &["tests/te-decisions/oracle.sh"],
    ),
    here(
        "te-query",
        60,
        &[Step::Programs, Step::Selinux],
        &["tests/te-query/compare.sh"],
    ),
    here(
        "te-contexts",
        30,
        &[Step::Programs, Step::Selinux],
        &["tests/te-contexts/run.sh", "40"],
    ),
    here("story", 30, MACHINE, &["scripts/run.sh", "--no-cost"]),
    here(
        "core",
        30,
        &[Step::Lab, Step::Prover],
        &["tests/core/run.sh", "all"],
    ),
    Suite {
        name: "lab",
        needs: &[Step::Lab],
        how: How::Boots(&["--skip", "what_is_", "--skip", "a_broken_probe"]),
        minutes: 60,
    },
    Suite {
        name: "lab-more",
        needs: &[Step::Lab],
        how: How::Boots(&["what_is_", "a_broken_probe"]),
        minutes: 90,
    },
    machine(
        "profile-all",
        60,
        Guest {
            programs: &[tests("profile-ops")],
            files: &[EXPECT],
            prepare: Some("tests/profile/prepare-all.sh"),
            judge: Some("tests/profile/judge.sh"),
            ..guest(Place::Own, "tests/profile/check.sh")
        },
    ),
    boots(
        "shipped",
        120,
        &[tests("profile-ops")],
        &["tests/profile/shipped.sh"],
    ),
    boots("apparmor-cases", 120, &[], &["tests/apparmor/cases.sh"]),
    boots(
        "apparmor",
        120,
        &[tests("profile-ops")],
        &["tests/apparmor/regression.sh"],
    ),
    boots("te", 180, &[tests("te-ops")], &["tests/te/compare.sh"]),
    boots(
        "te-debian",
        180,
        &[tests("te-ops")],
        &["tests/te/debian.sh"],
    ),
    boots("te-system", 60, &[], &["tests/te-system/run.sh"]),
    boots("te-system-debian", 120, &[], &["tests/te-system/debian.sh"]),
    boots("record-te", 60, &[], &["tests/record-te/run.sh"]),
    boots(
        "object-manager",
        60,
        &[("docstore", "docstore")],
        &["tests/object-manager/run.sh"],
    ),
    machine(
        "commands",
        60,
        Guest {
            programs: &[("tidegate-exporter", "tidegate-exporter")],
            files: &[EXPECT],
            ..guest(Place::Own, "tests/command-line/check.sh")
        },
    ),
    machine(
        "bench",
        60,
        Guest {
            programs: &[("tidegate-lab", "tidegate-lab")],
            files: &[EXPECT],
            prepare: Some("tests/lab/prepare.sh"),
            ..guest(Place::Own, "tests/lab/bench.sh")
        },
    ),
    machine(
        "record",
        60,
        Guest {
            files: &[EXPECT, "tests/record/compare.py", "tests/record/work.sh"],
            ..guest(Place::Own, "tests/record/check.sh")
        },
    ),
    machine(
        "learn",
        60,
        Guest {
            files: &[EXPECT],
            ..guest(Place::Own, "tests/learn/check.sh")
        },
    ),
    machine(
        "learn-profile",
        60,
        Guest {
            files: &[EXPECT, "tests/learn/compare.py"],
            prepare: Some("tests/learn/prepare-profile.sh"),
            ..guest(Place::Own, "tests/learn/profile.sh")
        },
    ),
    machine(
        "learn-te",
        60,
        Guest {
            programs: &[tests("te-ops")],
            files: &[EXPECT, FLAT],
            prepare: Some("tests/learn/prepare-te.sh"),
            ..guest(Place::Own, "tests/learn/te.sh")
        },
    ),
    day("day-package", "tests/day/package.sh"),
    day("day-server", "tests/day/server.sh"),
    day("day-workstation", "tests/day/workstation.sh"),
    day("day-power", "tests/day/power.sh"),
    day("day-breakins", "tests/day/breakins.sh"),
    long("long-reload", "tests/long/reload.sh"),
    long("long-kill", "tests/long/kill.sh"),
    long("long-flood", "tests/long/flood.sh"),
    long("long-overrun", "tests/long/overrun.sh"),
    long("long-full", "tests/long/full.sh"),
    long("long-memory", "tests/long/memory.sh"),
    long("long-clock", "tests/long/clock.sh"),
    long("long-soak", "tests/long/soak.sh"),
];

/// A day on a whole Debian with the package installed.
const fn day(name: &'static str, play: &'static str) -> Suite {
    machine(
        name,
        60,
        Guest {
            files: &[
                "tests/day/lib.sh",
                "tests/day/reach.sh",
                "tests/day/registries.sh",
                "tests/day/repository.sh",
                "docs/break-ins.md",
            ],
            prepare: Some("tests/day/prepare.sh"),
            ..guest(Place::Whole, play)
        },
    )
}

/// A long run under load and faults; the environment says how long (docs/testing-long.md).
const fn long(name: &'static str, play: &'static str) -> Suite {
    machine(
        name,
        150,
        Guest {
            files: &["tests/long"],
            ..guest(Place::Own, play)
        },
    )
}

/// What `make check` plays.
pub const QUICK: &[&str] = &["scenarios-rules-6.12", "lint", "unit"];

/// What `make test` plays: what shows that each model holds.
pub const TEST: &[&str] = &[
    "lint",
    "unit",
    "scenarios-6.12",
    "scenarios-7.2",
    "caps-6.12",
    "caps-service-7.2",
    "narrow-6.12",
    "agent-host-7.2",
    "replay-6.12",
    "profile-7.2",
    "te-live-6.12",
    "te-enforced-7.2",
    "caps-models-6.12",
    "te-decisions",
    "te-query",
    "core",
];

/// What `make test-more` plays: what is slow, and rarely tells anything new.
pub const MORE: &[&str] = &[
    "profile-all-7.2",
    "scenarios-slow-6.12",
    "scenarios-slow-7.2",
    "caps-random-6.12",
    "replay-all-6.12",
    "story",
    "lab",
    "apparmor-7.2",
    "commands-7.2",
    "lab-more",
    "shipped-6.12",
    "caps-service-all-6.12",
    "caps-7.2",
    "bench-7.2",
    "object-manager-7.2",
    "learn-te-7.2",
    "learn-profile-7.2",
    "record-7.2",
    "apparmor-cases",
    "record-te-7.2",
    "te-contexts",
    "replay-7.2",
    "learn-7.2",
];

/// A suite on a kernel, or one that needs none.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The suite.
    pub suite: &'static Suite,
    /// The kernel's series.
    pub kernel: Option<&'static str>,
}

impl Part {
    /// The part of a name.
    ///
    /// # Errors
    /// That there is no such part.
    pub fn named(name: &str) -> Result<Part> {
        let (suite, kernel) = KERNELS
            .into_iter()
            .find_map(|k| Some((name.strip_suffix(k)?.strip_suffix('-')?, Some(k))))
            .unwrap_or((name, None));
        SUITES
            .iter()
            .map(|suite| Part { suite, kernel })
            .find(|part| part.suite.name == suite && part.suite.on_kernels() == kernel.is_some())
            .with_context(|| format!("there is no part {name}: `cargo xtask list` has them"))
    }

    /// All parts, on all kernels.
    pub fn all() -> impl Iterator<Item = Part> {
        SUITES.iter().flat_map(|suite| {
            let kernels = KERNELS.into_iter().map(Some).filter(|_| suite.on_kernels());
            let without = std::iter::once(None).filter(|_| !suite.on_kernels());
            kernels
                .chain(without)
                .map(move |kernel| Part { suite, kernel })
        })
    }

    /// Its name.
    pub fn name(self) -> String {
        match self.kernel {
            Some(kernel) => format!("{}-{kernel}", self.suite.name),
            None => self.suite.name.into(),
        }
    }
}

impl Suite {
    /// Whether its parts have a kernel's name.
    fn on_kernels(&self) -> bool {
        match self.how {
            How::Machine(ref guest) => guest.place != Place::Whole,
            How::Here(_, programs) => programs.is_some() && self.name != "apparmor-cases",
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_part_of_a_set_is_there() {
        for name in [QUICK, TEST, MORE].concat() {
            assert_eq!(Part::named(name).unwrap().name(), name);
        }
        assert!(Part::named("caps").is_err());
        assert!(Part::named("core-6.12").is_err());
        assert!(Part::named("nothing").is_err());
    }

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for part in Part::all() {
            assert!(seen.insert(part.name()), "{} twice", part.name());
        }
    }

    #[test]
    fn every_file_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for suite in SUITES {
            let files: Vec<&str> = match &suite.how {
                How::Here(words, _) => vec![words[0]],
                How::Machine(guest) => [
                    guest.files,
                    &[guest.play],
                    guest.prepare.as_slice(),
                    guest.judge.as_slice(),
                ]
                .concat(),
                _ => Vec::new(),
            };
            for file in files {
                assert!(
                    root.join(file).exists(),
                    "{}: there is no {file}",
                    suite.name
                );
            }
        }
    }
}
