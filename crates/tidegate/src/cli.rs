//! The command line.

use clap::{Args, Parser, Subcommand};

use crate::source::Source;

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

/// What `tidegate` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put a policy in force, or take over from a daemon that died
    Start(Start),
    /// Take the monitor out of the kernel
    Stop,
    /// Say what is in force
    Status,
    /// The daemon itself, as `start` runs it
    #[command(hide = true)]
    Daemon(Daemon),
    /// Falls to a level with a pipe in hand: see daemon/boot.rs
    #[command(hide = true)]
    Settle {
        /// The level
        level: String,
    },
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

/// How the daemon runs.
#[derive(Debug, Clone, Args)]
pub struct Daemon {
    /// Record what the policy forbids, but let it through
    #[arg(long)]
    pub permissive: bool,
    /// Objects whose level no path rule gives back: room in the kernel's table
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub given_entries: u32,
    /// Bytes after which the audit log is rotated
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(4096..))]
    pub log_size: u64,
    /// Rotated audit logs to keep
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub log_keep: u32,
    /// Denials of one subject, object and operation to record a second; the rest is counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub log_rate: u32,
}

impl Daemon {
    /// The same, as arguments.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = vec![
            format!("--given-entries={}", self.given_entries),
            format!("--log-size={}", self.log_size),
            format!("--log-keep={}", self.log_keep),
            format!("--log-rate={}", self.log_rate),
        ];
        if self.permissive {
            args.push("--permissive".into());
        }
        args
    }
}
