//! What `--help` and the manual say of the lab's commands beside their options.

use tidegate_manual::{Manual, Page, Task};

/// All of it.
pub const MANUAL: Manual = Manual {
    tasks: &[
        Task {
            name: "Measure",
            commands: &["run", "bench", "report", "list"],
        },
        Task {
            name: "Run a machine",
            commands: &["setup", "vm", "doctor"],
        },
        Task {
            name: "Programs that tests use",
            commands: &["cbmc", "apparmor-parser"],
        },
    ],
    pages: PAGES,
    files: &[(
        "target/lab",
        "the machines' kernels and images; TIDEGATE_LAB_CACHE names another directory",
    )],
    codes: &[
        ("0", "done; `vm` ends with the status of its command"),
        (
            "1",
            "a workload or a system failed, other than for not being there",
        ),
        ("123", "of `vm`: the kernel printed BUG, Oops or WARNING"),
        ("124", "of `vm`: the time was over"),
        (
            "125",
            "a machine could not be built or run, or nothing could be measured",
        ),
    ],
};

const CACHE: &[&str] = &["target/lab"];

const PAGES: &[Page] = &[
    Page {
        command: "",
        examples: &[
            (
                "tidegate-lab run",
                "compare the core systems in virtual machines",
            ),
            (
                "tidegate-lab vm -- uname -r",
                "run a command in a machine with a stock kernel",
            ),
        ],
        files: CACHE,
        see: &["tidegate(1)"],
    },
    Page {
        command: "setup",
        examples: &[(
            "tidegate-lab setup --kernel 6.12",
            "build what a machine with this kernel needs",
        )],
        files: CACHE,
        see: &["tidegate-lab-vm(1)"],
    },
    Page {
        command: "vm",
        examples: &[(
            "tidegate-lab vm --kernel 7.2 --payload target/x -- /payload/program",
            "run a program of this directory in a machine",
        )],
        files: CACHE,
        see: &["tidegate-lab-setup(1)"],
    },
    Page {
        command: "run",
        examples: &[
            (
                "tidegate-lab run --systems all --items all --json cost.json",
                "measure everything, and keep what still holds",
            ),
            (
                "tidegate-lab run --like lomac",
                "measure what the paper on LOMAC did",
            ),
        ],
        files: CACHE,
        see: &[
            "tidegate-lab-report(1)",
            "tidegate-lab-list(1)",
            "tidegate-lab-bench(1)",
        ],
    },
    Page {
        command: "bench",
        examples: &[(
            "tidegate-lab bench --policy workstation",
            "compare this machine with and without enforcement",
        )],
        files: &[],
        see: &["tidegate-lab-run(1)", "tidegate-lab-report(1)"],
    },
    Page {
        command: "list",
        examples: &[("tidegate-lab list", "print the names that `run` takes")],
        files: &[],
        see: &["tidegate-lab-run(1)"],
    },
    Page {
        command: "report",
        examples: &[(
            "tidegate-lab report cost.json --html cost.html",
            "write a page with plots",
        )],
        files: &[],
        see: &["tidegate-lab-run(1)"],
    },
    Page {
        command: "cbmc",
        examples: &[("tidegate-lab cbmc --version", "run the model checker")],
        files: CACHE,
        see: &["tidegate-lab(1)"],
    },
    Page {
        command: "apparmor-parser",
        examples: &[(
            "tidegate-lab apparmor-parser --profiles",
            "say where the profiles lie that Debian ships",
        )],
        files: CACHE,
        see: &["tidegate-lab(1)"],
    },
    Page {
        command: "doctor",
        examples: &[(
            "tidegate-lab doctor",
            "say whether machines run by KVM here",
        )],
        files: CACHE,
        see: &["tidegate-lab-setup(1)"],
    },
];

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_is_in_the_manual_with_examples_that_hold() {
        let faults = MANUAL.faults(&Cli::command(), &["tidegate(1)"]);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
