//! The command line.

mod caps;
mod manual;
mod pages;
mod selinux;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tidegated::{DEFAULTS, Options, paths};

use crate::profiles::Profiles;
use crate::setools::{Seinfo, Sesearch};
use crate::source::Source;
use crate::te::SelinuxPolicy;

pub use self::caps::{Revoke, RunCaps};
pub use self::manual::MANUAL;
pub use self::selinux::{Getsebool, Setsebool};

/// Mandatory access control through BPF LSM: what has touched untrusted data
/// cannot change what you trust.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
pub struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads a command line. Its help has the commands by task, and examples.
    ///
    /// # Errors
    /// If it is wrong, or asks for help.
    pub fn read(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let mut command = MANUAL.help(Cli::command());
        let matches = command.try_get_matches_from_mut(args)?;
        Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
    }
}

/// What `tidegate` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say whether this machine can enforce, and what is missing
    ///
    /// A line that begins with `no` is something missing, and the line below it has the fix. A `?` is something that could not be
    /// found out. Run it as root: only root may try whether a program is attached.
    Doctor,
    /// List what this kernel offers, and the decision on each
    ///
    /// System calls, hooks, ioctls, filesystems and the rest of the census: each row names the decision.
    Census(Census),
    /// Check a policy without putting it in force
    ///
    /// Reports all errors at once, each with its place and a fix, and warns of lines that have no effect. Takes no privilege.
    Check(Check),
    /// Make a bundle of a policy, which is loaded without a compiler
    ///
    /// Takes no privilege. The profiles and the SELinux policy that are named go into the bundle as well.
    Compile(Compile),
    /// Put a policy in force, or take over from a daemon that died
    ///
    /// Takes root at the top level. Without the name of a policy it takes /etc/tidegate/policy.plm. The daemon stays in the
    /// background: it writes the audit log and answers questions. Enforcement goes on without it.
    Start(Start),
    /// Take the monitor out of the kernel
    ///
    /// Takes root at the top level. sudo keeps the level of your shell, so use a root login or `run0`. The levels that files
    /// were given stay on disk, and count again at the next start.
    Stop,
    /// Put another policy in force, in one step
    ///
    /// Without options it reads again what named the policy in force: the map, the profiles, the SELinux policy, and
    /// --permissive. `status` prints these options. A map, profiles or a SELinux policy named here replace all of them.
    /// --permissive alone is added to them until the next reload. If a file has an error then, the policy in force is kept,
    /// and only records.
    Reload(Reload),
    /// Say how booleans of the SELinux policy in force are set
    Getsebool(Getsebool),
    /// Set booleans of the SELinux policy in force
    ///
    /// Before this returns, accesses that the policy no longer allows are revoked: descriptors, connections, and mappings,
    /// whose holders are killed. The values hold until a policy is put in force again, by a reload or by a start.
    Setsebool(Setsebool),
    /// Say what is in force
    Status,
    /// Say how the questions of object managers were answered
    Stats,
    /// Run a command with less trust
    ///
    /// At a level, confined by a profile, in a security context, or with the capabilities of a file. Several of these may be
    /// given at once. Every user may do that. Nothing that the command does takes a restriction away again.
    Run(Run),
    /// Take capabilities back from the sessions that run
    ///
    /// When this returns, every use of them has ended: descriptors are refused, and a process that has mapped an object that
    /// it may no longer use is killed. These sessions never get them back. Sessions that begin later go by their files.
    Revoke(Revoke),
    /// List the sessions that capability files limit
    ///
    /// Users see their own, root sees all.
    Sessions,
    /// List processes and their levels
    ///
    /// Takes root.
    Ps(Ps),
    /// List files and their levels
    ///
    /// Takes root. A line has the level, where it comes from (a rule, or given to the file), the line of the map, and the path.
    Ls(Ls),
    /// Give a file a level: the trusted way up
    ///
    /// Takes root at the top level. Descriptors by which lower processes have the file open for writing are revoked, and the
    /// audit log gets a record. It is refused while a lower process has the file mapped for writing.
    Promote(Promote),
    /// Read the audit log
    ///
    /// Takes root, as it names the files of all users. `why` explains a record.
    Log(Log),
    /// Watch subjects, demotions and refusals as they come
    ///
    /// Takes root.
    Top(Top),
    /// Explain a refusal, or a process's level
    ///
    /// The line has the process, its level, the operation, the object, and the line of the policy that gives the object its
    /// level. What lowered the process stands behind each arrow, the newest first. A fix is the narrowest statement under which
    /// this would have been allowed; it was checked. Users see refusals of their own processes, root sees all.
    Why(Why),
    /// Propose statements that would allow what was refused
    ///
    /// Reads the audit log and prints a map that includes the policy. It adds the fewest and
    /// narrowest statements under which the refusals, also those that were only recorded, do not
    /// happen. Each statement says which refusals it is for and what it gives away. Each was
    /// checked: a statement that fixes nothing is not proposed. Statements for refusals that look
    /// like an attack are printed as comments.
    Learn(Learn),
    /// Search a SELinux policy's rules, as setools' sesearch does
    ///
    /// Takes sesearch's options, -ds and its like too, and prints rules in its syntax and order.
    Sesearch(Sesearch),
    /// List what a SELinux policy has, as setools' seinfo does
    ///
    /// Without a name each option lists all of its kind.
    Seinfo(Seinfo),
    /// Record what programs do, to try policies on it
    Record(Record),
    /// Say what a policy would have refused of what was recorded
    Replay(Replay),
    /// Measure what enforcement costs on this machine, in time
    #[command(disable_help_flag = true)]
    Bench(Lab),
    /// Measure what mandatory access control costs, in virtual machines
    #[command(disable_help_flag = true)]
    Lab(Lab),
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// To which directory
        dir: PathBuf,
    },
    /// Attaches empty programs to the monitor's hooks until it is killed: what the lab
    /// compares with
    #[command(hide = true)]
    Floor,
}

/// What the lab's own program, `tidegate-lab`, takes.
#[derive(Debug, Args)]
pub struct Lab {
    /// Options and arguments, as `tidegate lab --help` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARG"
    )]
    pub args: Vec<OsString>,
}

/// What of the census to list.
#[derive(Debug, Args)]
pub struct Census {
    /// Show only rows without a decision
    #[arg(long)]
    pub undecided: bool,
}

/// What to check.
#[derive(Debug, Args)]
pub struct Check {
    /// The policy to check
    #[command(flatten)]
    pub source: Source,
    /// A map file, like --policy
    #[arg(value_name = "FILE.plm", conflicts_with_all = ["preset", "policy", "bundle"])]
    pub file: Option<PathBuf>,
    /// A capability file, instead of a policy: say what is wrong with it, or what each subject may do. `run --caps` runs a command with it
    #[arg(long, value_name = "FILE.caps", conflicts_with_all = ["file", "preset", "policy", "bundle", "profile", "te"])]
    pub caps: Option<PathBuf>,
    /// Say also which level and context the policy gives to this path, or what subjects of the capability file may do there and
    /// by which line; may be given several times
    #[arg(long, value_name = "PATH")]
    pub path: Vec<PathBuf>,
}

/// What to compile.
#[derive(Debug, Args)]
pub struct Compile {
    /// The map
    #[arg(value_name = "FILE.plm", required_unless_present = "preset")]
    pub file: Option<PathBuf>,
    /// A policy that comes with Tidegate, instead of a file
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub preset: Option<String>,
    /// The profiles that go into it, too
    #[command(flatten)]
    pub profiles: Profiles,
    /// The SELinux policy that goes into it, too
    #[command(flatten)]
    pub te: SelinuxPolicy,
    /// The bundle to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// What to put in force.
#[derive(Debug, Args)]
pub struct Reload {
    /// The policy to put in force
    #[command(flatten)]
    pub source: Source,
    /// Record what the policy forbids, but let it through
    #[arg(long)]
    pub permissive: bool,
}

/// Options alone, as a policy keeps those that named it.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Kept {
    /// Those of a reload
    #[command(flatten)]
    reload: Reload,
}

impl Reload {
    /// Reads the options that a policy keeps, by [`Source::options`].
    ///
    /// # Errors
    /// If this version has no such options.
    pub fn of_options(options: &[String]) -> Result<Reload, clap::Error> {
        Kept::try_parse_from(options).map(|kept| kept.reload)
    }
}

/// What to run.
#[derive(Debug, Args)]
pub struct Run {
    /// The level to fall to
    #[arg(long, value_name = "NAME", required_unless_present_any = ["profile", "context", "caps"])]
    pub level: Option<String>,
    /// The profile that confines it
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// The security context that it runs in, under the policy's SELinux rules
    #[arg(long, value_name = "USER:ROLE:TYPE[:RANGE]")]
    pub context: Option<String>,
    /// The capability file that limits it
    #[command(flatten)]
    pub caps: RunCaps,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Which processes.
#[derive(Debug, Args)]
pub struct Ps {
    /// Show only processes at this level
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
    /// Show only processes that have a label
    #[arg(long)]
    pub governed: bool,
    /// Show the processes that the policy's SELinux rules govern, and their contexts
    #[arg(short = 'Z', long)]
    pub context: bool,
    /// Show the processes that capability files limit, by their sessions and subjects
    #[arg(long, conflicts_with = "context")]
    pub caps: bool,
}

/// Which files.
#[derive(Debug, Args)]
pub struct Ls {
    /// Files and directories
    #[arg(default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Show directories themselves, not what is in them
    #[arg(short, long)]
    pub directory: bool,
    /// Show also the contexts that the policy's SELinux rules give them
    #[arg(short = 'Z', long)]
    pub context: bool,
}

/// What to promote.
#[derive(Debug, Args)]
pub struct Promote {
    /// The file
    pub path: PathBuf,
    /// The level to give; without it, the top one
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
}

/// The kinds of records, as in docs/reference/audit-log.md.
const KINDS: [&str; 12] = [
    "denied",
    "would",
    "audited",
    "demoted",
    "started",
    "promoted",
    "table-full",
    "dropped",
    "lost",
    "user-denied",
    "user-would",
    "user-audited",
];

/// Which records.
#[derive(Debug, Args)]
pub struct Log {
    /// Wait for more records, and show them as they are written
    #[arg(short, long)]
    pub follow: bool,
    /// Show only records since a time (2026-01-31T12:00Z), or of the last 10m, 2h, 1d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Show only records of this process
    #[arg(long)]
    pub pid: Option<u32>,
    /// Show only records of processes at this level
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
    /// Show only records of this profile's rules
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Show only records of programs with this name
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Show only records of paths that begin with this
    #[arg(long, value_name = "PREFIX")]
    pub path: Option<String>,
    /// Show only records of this kind
    #[arg(long, value_parser = KINDS)]
    pub kind: Option<String>,
    /// Show only refusals, also those that a permissive policy only recorded
    #[arg(long)]
    pub denied: bool,
    /// Show only the last N records
    #[arg(short = 'n', long, value_name = "N")]
    pub last: Option<usize>,
    /// Read this log instead of the machine's own
    #[arg(long, value_name = "FILE", default_value = paths::LOG)]
    pub file: PathBuf,
}

/// How to watch.
#[derive(Debug, Args)]
pub struct Top {
    /// Print once what happens within a second, as when standard output is not a terminal
    #[arg(long)]
    pub once: bool,
}

/// What to explain.
#[derive(Debug, Args)]
pub struct Why {
    /// `last` for the newest refusal, @N for record N of the log, or a process id for that process's level
    #[arg(value_name = "@ID|PID|last", default_value = "last")]
    pub of: String,
    /// List everything that would fix the refusal, the narrowest first
    #[arg(long)]
    pub fixes: bool,
    /// For a profile's refusal: the profiles' files. The place of the rule that refuses is named, and the rule that
    /// would allow it is tried
    #[command(flatten)]
    pub profiles: Profiles,
}

/// What to learn from.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("written").args(["output", "patch", "te_rules"]).multiple(true))]
pub struct Learn {
    /// The policy to start from
    #[command(flatten)]
    pub source: Source,
    /// Take only refusals since a time (2026-01-31T12:00Z), or of the last 10m, 2h, 1d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Take only refusals of programs with this name
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Take only refusals of processes at this level
    #[arg(long, value_name = "NAME")]
    pub level: Option<String>,
    /// Take only refusals of paths that begin with this
    #[arg(long, value_name = "PREFIX")]
    pub path: Option<String>,
    /// Read this log instead of the machine's own
    #[arg(long, value_name = "FILE", default_value = paths::LOG)]
    pub file: PathBuf,
    /// Propose fixes also for refusals that look like an attack: a process that had read from the network reached for
    /// secrets, dotfiles, other processes or the system
    #[arg(long)]
    pub include_untrusted: bool,
    /// Write the map to a file, which is not there yet
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write what the profiles lack to a file that is not there yet, as a patch for `patch -d / -p1`
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub patch: Option<PathBuf>,
    /// Write what the SELinux policy lacks to a file that is not there yet
    #[arg(long, value_name = "FILE", requires = "te")]
    pub te_rules: Option<PathBuf>,
    /// How rules of the SELinux policy are written
    #[arg(
        long,
        value_name = "SYNTAX",
        value_enum,
        default_value = "cil",
        requires = "te"
    )]
    pub te_syntax: Syntax,
    /// Replace the files if they are there
    #[arg(long, requires = "written")]
    pub force: bool,
}

/// How rules of a SELinux policy are written.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Syntax {
    /// CIL, which `--te` and semodule(8) take
    Cil,
    /// A module's source, as checkmodule(8) takes it
    Te,
}

impl From<Syntax> for tidegate_remedy::selinux::Syntax {
    fn from(syntax: Syntax) -> Self {
        match syntax {
            Syntax::Cil => Self::Cil,
            Syntax::Te => Self::Te,
        }
    }
}

/// What to record.
#[derive(Debug, Args)]
pub struct Record {
    /// The recording to write; compressed if it ends in `.zst`
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after so long (90s, 10m, 1h)
    #[arg(long = "for", value_name = "TIME")]
    pub span: Option<String>,
    /// Record every access, though an equal one was recorded less than a second ago
    #[arg(long)]
    pub all: bool,
    /// A command: only its processes are recorded, until it ends
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What to replay.
#[derive(Debug, Args)]
pub struct Replay {
    /// The recording
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The proposed policy
    #[command(flatten)]
    pub source: Source,
    /// The policy to compare with: a preset, a map (`.plm`), a bundle, or `nothing`. Without
    /// it, the policy that was in force during the recording
    #[arg(long, value_name = "BASE")]
    pub against: Option<String>,
    /// The context that the recorded command begins in, by its first execution, as with `run --context`. Without a command,
    /// the context of every process that ran when the recording began. A context in the recording itself comes first
    #[arg(long, value_name = "CONTEXT")]
    pub te_context: Option<String>,
    /// Show every kind of refusal, not the most frequent ones only
    #[arg(short, long)]
    pub all: bool,
}

/// How to start.
#[derive(Debug, Args)]
pub struct Start {
    /// The policy to put in force
    #[command(flatten)]
    pub source: Source,
    /// How the daemon runs
    #[command(flatten)]
    pub how: Daemon,
    /// Stay in the foreground, for a service manager
    #[arg(long)]
    pub foreground: bool,
}

/// The heading of the daemon's options on the log and on tables.
const TABLES: &str = "Log and tables";

/// How the daemon runs.
#[derive(Debug, Clone, Args)]
pub struct Daemon {
    /// Record what the policy forbids, but let it through
    #[arg(long)]
    pub permissive: bool,
    /// Bring all running processes under the SELinux policy, in the contexts that they would have had from the machine's
    /// start; best with --permissive at first
    #[arg(long)]
    pub te_system: bool,
    /// Size of the kernel's tables of labels and of given levels, in entries
    #[arg(long, help_heading = TABLES, value_name = "N", default_value_t = DEFAULTS.given_entries, value_parser = clap::value_parser!(u32).range(512..=1 << 24))]
    pub given_entries: u32,
    /// Size in bytes at which the audit log is rotated
    #[arg(long, help_heading = TABLES, value_name = "BYTES", default_value_t = DEFAULTS.log_size, value_parser = clap::value_parser!(u64).range(4096..))]
    pub log_size: u64,
    /// Rotated audit logs to keep
    #[arg(long, help_heading = TABLES, value_name = "N", default_value_t = DEFAULTS.log_keep)]
    pub log_keep: u32,
    /// Refusals of one subject, object and operation that are recorded in a second; the rest is counted
    #[arg(long, help_heading = TABLES, value_name = "N", default_value_t = DEFAULTS.log_rate)]
    pub log_rate: u32,
    /// Milliseconds for which nobody must have needed the guard of revoked descriptors before it is detached, and of the beat
    /// that looks for that, if it is shorter than a second: tests wait for it
    #[arg(long, value_name = "MS", default_value_t = DEFAULTS.guard_quiet, value_parser = clap::value_parser!(u32).range(1..), hide = true)]
    pub guard_quiet: u32,
}

impl Daemon {
    /// Returns the same as the daemon has it.
    pub fn options(&self) -> Options {
        Options {
            permissive: self.permissive,
            te_system: self.te_system,
            given_entries: self.given_entries,
            log_size: self.log_size,
            log_keep: self.log_keep,
            log_rate: self.log_rate,
            guard_quiet: self.guard_quiet,
        }
    }
}
