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
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tidegate_manual::{Manual, Page};

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

/// What the help and the manual say beside the options.
const MANUAL: Manual = Manual {
    tasks: &[],
    pages: &[Page {
        command: "",
        examples: &[
            ("tidegate-exporter", "serve http://127.0.0.1:9478/metrics"),
            (
                "tidegate-exporter --textfile /var/lib/prometheus/node-exporter/tidegate.prom",
                "write the metrics once, for node_exporter",
            ),
            (
                "tidegate-exporter --otlp http://127.0.0.1:4318/v1/metrics --interval 30",
                "push them every 30 seconds",
            ),
        ],
        files: &["/run/tidegate/tidegate.sock"],
        see: &["tidegate-status(1)", "tidegate-stats(1)"],
    }],
    files: &[("/run/tidegate/tidegate.sock", "the daemon's socket")],
    codes: &[
        ("0", "done"),
        ("1", "it cannot listen, write, or push at all"),
        ("2", "the command line is wrong"),
    ],
};

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
    let matches = MANUAL.help(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    match (cli.command, cli.textfile, cli.otlp) {
        (Some(Command::Completions { shell }), ..) => {
            let mut command = Cli::command();
            clap_complete::generate(shell, &mut command, "tidegate-exporter", &mut io::stdout());
            Ok(())
        }
        (Some(Command::Man { dir }), ..) => {
            let failed = || format!("cannot write the manual to {}", dir.display());
            MANUAL.write(Cli::command(), &dir).with_context(failed)
        }
        (None, Some(path), _) => textfile::write(&path),
        (None, None, Some(url)) => otlp::push(&url, Duration::from_secs(cli.interval)),
        (None, None, None) => server::run(cli.listen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_examples_that_hold() {
        let others = ["tidegate-status(1)", "tidegate-stats(1)"];
        let faults = MANUAL.faults(&Cli::command(), &others);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
