//! What a suite is: what is played, with what, and where. A part is a suite on a kernel, `caps-6.12`.

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
pub const TIDEGATE: [Program; 2] = [("tidegate", "tidegate"), ("tidegated", "tidegated")];

/// A machine: suites of one place and kernel share one, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Debian's own list of security modules, the scenarios' three levels.
    Levels,
    /// Without the modules that others are compared with; one map, whose levels all of its suites have.
    Flat,
    /// One of its own, with Debian's own list of security modules.
    Own,
    /// One of its own, with a whole Debian, which installs kernels itself.
    Whole,
    /// One of its own, with the same Debian under the part's kernel.
    Debian,
}

impl Place {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Levels => "levels",
            Self::Flat => "flat",
            Self::Own => "own",
            Self::Whole => "whole",
            Self::Debian => "debian",
        }
    }

    /// Whether several suites may be in one.
    pub fn shared(self) -> bool {
        matches!(self, Self::Levels | Self::Flat)
    }

    /// Arguments of `tidegate-lab vm`.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            // calls of x32, which Debian's kernels have and do not take by default
            Self::Levels => &["--append", "syscall.x32=y"],
            Self::Own => &[],
            // records of SELinux's or AppArmor's would take the console minutes
            Self::Flat => &["--lsm", "lockdown,yama,bpf"],
            Self::Whole | Self::Debian => &["--image", "whole"],
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

impl Suite {
    /// Whether its parts have a kernel's name.
    pub fn on_kernels(&self) -> bool {
        match self.how {
            How::Machine(ref guest) => guest.place != Place::Whole,
            How::Here(_, programs) => programs.is_some() && self.name != "apparmor-cases",
            _ => false,
        }
    }
}
