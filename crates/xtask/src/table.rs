//! The table of all suites, and the sets of parts that `make` plays.

use crate::suite::{Guest, How, Place, Program, Step, Suite};

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

/// A suite whose program runs here. The program gets these arguments.
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

/// A suite whose script boots machines. The script gets the lab's program, its payload and the kernel as arguments.
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
    machine(
        "census",
        10,
        Guest {
            files: &[
                EXPECT,
                "crates/census/kernels/6.12.txt",
                "crates/census/kernels/7.2.txt",
            ],
            ..guest(Place::Levels, "tests/census/check.sh")
        },
    ),
    // its own machine: an attack that comes off is no other suite's
    machine(
        "attack",
        30,
        Guest {
            programs: &[tests("attack")],
            files: &[EXPECT, "tests/attack/attack.plm"],
            ..guest(Place::Own, "tests/attack/check.sh")
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
                "tests/caps/session.pl",
                "tests/caps/sessions.pl",
                "tests/caps/sockets.pl",
            ],
            ..guest(Place::Flat, "tests/caps/check.sh")
        },
    ),
    machine(
        "caps-service",
        30,
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
            ..guest(Place::Flat, "tests/caps-service/check.sh")
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
            ..guest(Place::Flat, "tests/replay/check.sh")
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
    Suite {
        needs: &[Step::Programs, Step::Machines, Step::Selinux],
        ..machine(
            "pages",
            120,
            Guest {
                programs: &[("tidegate-exporter", "tidegate-exporter")],
                files: &[
                    EXPECT,
                    "README.md",
                    "docs/start",
                    "docs/how-to",
                    "tests/pages",
                    "packaging/etc",
                    "packaging/systemd",
                ],
                prepare: Some("tests/pages/prepare.sh"),
                ..guest(Place::Debian, "tests/pages/check.sh")
            },
        )
    },
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
                "docs/explain/break-ins.md",
            ],
            prepare: Some("tests/day/prepare.sh"),
            ..guest(Place::Whole, play)
        },
    )
}

/// A long run under load and faults; the environment says how long (docs/dev/testing-long.md).
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
    "caps-service-7.2",
    "agent-host-7.2",
    "profile-7.2",
    "te-enforced-7.2",
    "scenarios-6.12",
    "scenarios-7.2",
    "census-6.12",
    "census-7.2",
    "attack-6.12",
    "attack-7.2",
    "caps-6.12",
    "narrow-6.12",
    "replay-6.12",
    "te-live-6.12",
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
    "pages-6.12",
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
