//! What Tidegate must allow and refuse, played on a running kernel.
//!
//! Runs as root in a machine of its own, beside the `tidegate` program: starts
//! it with a policy for the purpose, plays every scenario in processes of its
//! own, and says what came of each. `docs/lomac.md` is what it judges by.
#![warn(
    missing_docs,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks
)]

mod check;
mod daemon;
mod devfuse;
mod helper;
mod ipcs;
mod level;
mod net;
mod place;
mod report;
mod run;
mod scenario;
mod scenarios;
mod setup;
mod subject;
mod sys;
mod unixsock;
mod uring;

use std::process::ExitCode;

/// What the command line asks for.
#[derive(Debug, Default)]
struct Asked {
    json: bool,
    list: bool,
    /// How often each is played: for those that fail now and then.
    times: usize,
    names: Vec<String>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    match args.peek().map(String::as_str) {
        Some("--one") => return run::play_one(&args.nth(1).unwrap_or_default()),
        Some("--helper") => return helper::main(args.skip(1).collect()),
        _ => {}
    }
    let mut asked = Asked {
        times: 1,
        ..Asked::default()
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => asked.json = true,
            "--list" => asked.list = true,
            "--times" => match args.next().and_then(|n| n.parse().ok()) {
                Some(times) => asked.times = times,
                None => {
                    eprintln!("scenarios: --times takes a number");
                    return ExitCode::from(2);
                }
            },
            "--help" | "-h" => {
                println!("usage: scenarios [--list] [--json] [--times N] [NAME…]");
                return ExitCode::SUCCESS;
            }
            other if other.starts_with('-') => {
                eprintln!("scenarios: unknown option {other}");
                return ExitCode::from(2);
            }
            name => asked.names.push(name.to_owned()),
        }
    }
    let chosen = match scenario::choose(&asked.names) {
        Ok(chosen) => chosen,
        Err(name) => {
            eprintln!("scenarios: there is no scenario {name} (see --list)");
            return ExitCode::from(2);
        }
    };
    if asked.list {
        for s in &chosen {
            println!("{:<32} {:<8} {}", s.name, s.kind.word(), s.about);
        }
        return ExitCode::SUCCESS;
    }
    run::play(&chosen.repeat(asked.times), asked.json)
}
