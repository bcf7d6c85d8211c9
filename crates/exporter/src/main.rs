//! `tidegate-exporter`: what Tidegate counts, for Prometheus and OpenTelemetry.
//!
//! No part of what is trusted: it asks the daemon over its socket, as anybody may, so
//! that the daemon opens no port and reads no HTTP. It takes no privilege, and goes on
//! at the lowest level, where the network soon has it.

/// A line on standard error, if anybody can be told: a process that has fallen may not write there
/// any more.
macro_rules! tell {
    ($($arg:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "tidegate-exporter: {}", format_args!($($arg)*));
    }};
}

mod family;
mod otlp;
mod server;
mod snapshot;
mod text;
mod textfile;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};

/// Tidegate's metrics for Prometheus and OpenTelemetry: asks the daemon, and serves what
/// it answers at /metrics.
///
/// It needs no privilege. Where the daemon does not answer, tidegate_up is 0.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate-exporter",
    version,
    args_conflicts_with_subcommands = true
)]
struct Cli {
    /// Serve here, over HTTP
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9478")]
    listen: SocketAddr,
    /// Write the metrics to this file once, for node_exporter's textfile collector, and
    /// end; its name must end in .prom for that
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "otlp"])]
    textfile: Option<PathBuf>,
    /// Push the metrics there, by OTLP over HTTP without TLS, instead of serving them:
    /// http://127.0.0.1:4318/v1/metrics
    #[arg(long, value_name = "URL", conflicts_with = "listen")]
    otlp: Option<String>,
    /// Seconds between two pushes
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "otlp",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

/// What packaging asks.
#[derive(Debug, Subcommand)]
enum Command {
    /// Print a completion script
    #[command(hide = true)]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual page
    #[command(hide = true)]
    Man {
        /// To which directory
        dir: PathBuf,
    },
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match (cli.command, cli.textfile, cli.otlp) {
        (Some(Command::Completions { shell }), ..) => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "tidegate-exporter", &mut io::stdout());
            Ok(())
        }
        (Some(Command::Man { dir }), ..) => {
            let failed = || format!("cannot write the manual to {}", dir.display());
            std::fs::create_dir_all(&dir).with_context(failed)?;
            clap_mangen::generate_to(Cli::command(), &dir).with_context(failed)
        }
        (None, Some(path), _) => textfile::write(&path),
        (None, None, Some(url)) => otlp::push(&url, Duration::from_secs(cli.interval)),
        (None, None, None) => server::run(cli.listen),
    }
}
