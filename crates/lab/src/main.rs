//! `tidegate-lab`: machines with stock Debian kernels.

mod commands;
mod manual;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use tidegate_lab::artefact::{Image, Kernel, Lab};
use tidegate_lab::monitor;
use tidegate_lab::report;
use tidegate_lab::report::published::Source;
use tidegate_lab::results::Run;
use tidegate_lab::vm::{End, Machine, Outcome, Passthrough, choose};

use crate::manual::MANUAL;

/// The kernel complained, whatever the command returned.
const KERNEL_COMPLAINED: u8 = 123;
/// As timeout(1).
const TIMED_OUT: u8 = 124;
/// The machine could not be built or run.
const LAB_FAILED: u8 = 125;

#[derive(Parser)]
#[command(about = "Stock Debian kernels in QEMU", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build what machines need: QEMU, kernels, the root image
    Setup {
        /// Remove what is there and build it anew, from today's packages
        #[arg(long)]
        rebuild: bool,
        /// Of the kernels only this one
        #[arg(long, value_name = "SERIES")]
        kernel: Option<Kernel>,
    },
    /// Boot a machine, and run a command in it as root
    Vm(Vm),
    /// Measure what mandatory access control costs
    ///
    /// Systems, each booted on one kernel, by workloads.
    Run(commands::run::Options),
    /// Measure what enforcement costs on this machine, in time
    Bench(commands::bench::Options),
    /// List the systems and the workloads
    List,
    /// Say what runs gave: tables, a page with plots, Markdown, CSV
    Report(report::Args),
    /// Run cbmc, the model checker, with these arguments
    Cbmc {
        /// The arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run AppArmor's parser of Debian trixie with these arguments
    ApparmorParser {
        /// Say where its sources lie instead
        #[arg(long, exclusive = true)]
        source: bool,
        /// Say where a tree of the profiles lies that trixie ships, instead
        #[arg(long, exclusive = true)]
        profiles: bool,
        /// The arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Say which accelerator machines use here, and why
    Doctor,
    /// Authorise requests to a service and pass them on, as a process, which was Lava's way
    #[command(hide = true)]
    Monitor(monitor::Options),
    /// Print a script that completes the command line
    #[command(hide = true)]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual's pages to a directory
    #[command(hide = true)]
    Man {
        /// The directory
        dir: PathBuf,
    },
}

#[derive(Args)]
struct Vm {
    /// Kernel series, such as 6.12 or 7.2
    #[arg(long, default_value = "6.12")]
    kernel: Kernel,
    /// What to boot from: root; measured, with every measured system's tools and policy;
    /// apparmor, with AppArmor's own regression tests; or whole, a Debian which systemd runs:
    /// the command is a service of it, at every boot
    #[arg(long, default_value = "root", value_name = "IMAGE")]
    image: Image,
    /// Count instructions: one processor, and guest time is executed instructions
    #[arg(long)]
    icount: bool,
    /// Place the kernel at a random address, as a real boot does; a second slower
    #[arg(long)]
    kaslr: bool,
    /// Processors
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "icount")]
    smp: u32,
    /// Memory
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    mem: u32,
    /// Directory to show in the guest as /payload
    #[arg(long, value_name = "DIR")]
    payload: Option<PathBuf>,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECS", default_value_t = 600)]
    timeout: u64,
    /// Security modules, in place of Debian's own list (which has bpf in it)
    #[arg(long, value_name = "LIST")]
    lsm: Option<String>,
    /// More words for the kernel's command line
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    append: String,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    argv: Vec<String>,
}

fn main() -> ExitCode {
    let matches = MANUAL.help(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let result = match cli.command {
        Command::Setup { rebuild, kernel } => setup(rebuild, kernel),
        Command::Vm(options) => vm(options),
        Command::Run(options) => {
            let like = options.like;
            options.run().and_then(|run| shown(&run, like))
        }
        Command::Bench(options) => options.run().and_then(|run| shown(&run, None)),
        Command::List => commands::list::list().map(|()| ExitCode::SUCCESS),
        Command::Report(options) => report::run(&options).map(|()| ExitCode::SUCCESS),
        Command::Cbmc { args } => cbmc(&args),
        Command::ApparmorParser {
            source,
            profiles,
            args,
        } => apparmor_parser(source, profiles, &args),
        Command::Doctor => doctor(),
        Command::Monitor(options) => monitor::run(&options).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            let command = &mut Cli::command();
            clap_complete::generate(shell, command, "tidegate-lab", &mut io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { dir } => pages(&dir),
    };
    result.unwrap_or_else(|error| {
        eprintln!("tidegate-lab: {error:#}");
        ExitCode::from(LAB_FAILED)
    })
}

/// Prints what a run gave; a run in which anything failed says so by its status.
fn shown(run: &Run, like: Option<Source>) -> Result<ExitCode> {
    report::show(run, like)?;
    Ok(ExitCode::from(u8::from(!run.whole())))
}

fn pages(dir: &Path) -> Result<ExitCode> {
    MANUAL
        .write(Cli::command(), dir)
        .with_context(|| format!("cannot write the manual to {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn setup(rebuild: bool, kernel: Option<Kernel>) -> Result<ExitCode> {
    let lab = Lab::open()?;
    if rebuild {
        lab.cache().clear()?;
    }
    match kernel {
        Some(one) => lab.setup(&[one], Image::Root)?,
        None => lab.setup(&Kernel::SUPPORTED, Image::Root)?,
    }
    doctor()
}

fn doctor() -> Result<ExitCode> {
    let lab = Lab::open()?;
    let choice = choose(&lab)?;
    println!("accelerator: {} ({})", choice.accelerator, choice.reason);
    println!("cache: {}", lab.cache().root().display());
    Ok(ExitCode::SUCCESS)
}

/// Becomes cbmc.
fn cbmc(args: &[String]) -> Result<ExitCode> {
    Err(Lab::open()?.prover()?.cbmc().args(args).exec().into())
}

/// Becomes AppArmor's parser.
fn apparmor_parser(source: bool, profiles: bool, args: &[String]) -> Result<ExitCode> {
    let lab = Lab::open()?;
    if profiles {
        println!("{}", lab.profiles()?.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    let tree = lab.parser()?;
    if source {
        println!("{}", tree.apparmor_source().display());
        return Ok(ExitCode::SUCCESS);
    }
    Err(tree.apparmor_parser().args(args).exec().into())
}

fn vm(options: Vm) -> Result<ExitCode> {
    let mut machine = Machine::new(options.kernel)
        .image(options.image)
        .icount(options.icount)
        .kaslr(options.kaslr)
        .smp(options.smp)
        .memory_mib(options.mem)
        .append(options.append)
        .timeout(Duration::from_secs(options.timeout));
    if let Some(dir) = options.payload {
        machine = machine.payload(dir);
    }
    if let Some(list) = options.lsm {
        machine = machine.lsm(list);
    }
    let outcome = machine.run(&Lab::open()?, &options.argv, &mut Passthrough)?;
    let code = exit_code(&outcome);
    if outcome.status() != Some(i32::from(code)) {
        eprintln!("tidegate-lab: {}", outcome.explain());
    }
    Ok(ExitCode::from(code))
}

fn exit_code(outcome: &Outcome) -> u8 {
    match outcome.end {
        _ if !outcome.complaints.is_empty() => KERNEL_COMPLAINED,
        End::Reported { status, .. } => u8::try_from(status).unwrap_or(LAB_FAILED),
        End::TimedOut => TIMED_OUT,
        End::Failed(_) | End::Died => LAB_FAILED,
    }
}
