//! The commands, a file each.

mod booleans;
mod census;
mod check;
mod check_caps;
mod compile;
mod doctor;
mod floor;
mod lab;
mod learn;
mod log;
mod ls;
mod manual;
mod promote;
mod ps;
mod record;
mod reload;
mod replay;
mod revoke;
mod run;
mod seinfo;
mod sesearch;
mod sessions;
mod start;
mod stats;
mod status;
mod stop;
mod top;
mod why;

use std::os::fd::BorrowedFd;
use std::process::ExitCode;

use serde::Serialize;
use tidegate_audit::printable;

use crate::cli::{Cli, Command};
use crate::client;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{say, tell};
use crate::protocol::{Answer, Ask};

/// Runs the command that was asked for.
pub fn run(cli: Cli) -> Outcome<ExitCode> {
    let json = cli.json;
    match cli.command {
        Command::Doctor => return doctor::run(json),
        Command::Census(args) => census::run(&args, json),
        Command::Check(args) => check::run(&args, json),
        Command::Compile(args) => compile::run(&args, json),
        Command::Start(args) => start::run(&args, json),
        Command::Stop => stop::run(json),
        Command::Reload(args) => reload::run(&args, json),
        Command::Getsebool(args) => booleans::get(&args, json),
        Command::Setsebool(args) => booleans::set(&args, json),
        Command::Status => status::run(json),
        Command::Stats => stats::run(json),
        Command::Run(args) => run::run(&args),
        Command::Revoke(args) => revoke::run(&args, json),
        Command::Sessions => sessions::run(json),
        Command::Ps(args) => ps::run(&args, json),
        Command::Ls(args) => ls::run(&args, json),
        Command::Promote(args) => promote::run(&args, json),
        Command::Log(args) => log::run(&args, json),
        Command::Learn(args) => learn::run(&args, json),
        Command::Top(args) => top::run(&args, json),
        Command::Why(args) => why::run(&args, json),
        Command::Sesearch(args) => sesearch::run(&args, json),
        Command::Seinfo(args) => seinfo::run(&args, json),
        Command::Record(args) => record::run(&args, json),
        Command::Replay(args) => return replay::run(&args, json),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::pages(&dir),
        Command::Bench(args) => lab::run(Some("bench"), &args.args),
        Command::Lab(args) => lab::run(None, &args.args),
        Command::Floor => floor::run(),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Prints a line of JSON.
fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string(value)
        .map_err(|e| Failure::new(Code::Internal, format!("cannot print JSON: {e}")))?;
    say!("{text}");
    Ok(())
}

/// What `--json` says of a command that has nothing to say but that it is done.
#[derive(Debug, Serialize)]
struct Done<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// Tells that something is done.
fn done(message: &str, json: bool) -> Outcome {
    done_but(message, &[], json)
}

/// The same, and what is not as it should be.
fn done_but(message: &str, warnings: &[String], json: bool) -> Outcome {
    if json {
        return print_json(&Done { message, warnings });
    }
    for warning in warnings {
        tell!("warning: {}", printable(warning));
    }
    say!("{message}");
    Ok(())
}

/// Asks the daemon for something that is only done.
fn have_done(ask: &Ask, with: Option<BorrowedFd<'_>>, json: bool) -> Outcome {
    answered(client::ask(ask, with)?, json)
}

/// Tells what the daemon has done.
fn answered(answer: Answer, json: bool) -> Outcome {
    match answer {
        Answer::Done { message, warnings } => done_but(&message, &warnings, json),
        _ => Err(Failure::new(
            Code::Internal,
            "the daemon gave another answer",
        )),
    }
}
