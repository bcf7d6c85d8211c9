//! `why`: a refusal or a process's level, and the chain that led to it.

use std::path::Path;

use rustix::process::geteuid;
use tidegate_monitor::Monitor;

use super::print_json;
use crate::cli;
use crate::client;
use crate::daemon::Policies;
use crate::exit::{Code, Failure, Outcome};
use crate::mend::{Mend, Mending};
use crate::output::say;
use crate::places;
use crate::protocol::{Answer, Ask, Why, WhyOf};

pub fn run(args: &cli::Why, json: bool) -> Outcome {
    let of = parse(&args.of, |pid| Path::new(&format!("/proc/{pid}")).exists())?;
    let why = match client::ask(&Ask::Why { of }, None) {
        Ok(Answer::Why(why)) => why,
        Ok(_) => {
            return Err(Failure::new(
                Code::Internal,
                "the daemon gave another answer",
            ));
        }
        Err(failure) if failure.code == Code::No && args.of.parse::<u64>().is_ok() => {
            let message = format!("there is no process {0}, and no record @{0}", args.of);
            return Err(Failure::new(Code::No, message));
        }
        Err(failure) if failure.code == Code::NotRunning && geteuid().is_root() => {
            crate::why::explain(&Monitor::open()?, &Policies::new(), of, None)?
        }
        Err(failure) => return Err(failure),
    };
    if json {
        return print_json(&why);
    }
    say!("{}", text(&why));
    for line in why.mending.iter().flat_map(|m| mending(m, args.mends)) {
        say!("{line}");
    }
    Ok(())
}

/// The narrowest mend in a line, or all of them.
fn mending(mending: &Mending, all: bool) -> Vec<String> {
    let mends = mending.mends.len();
    if let Some(advice) = &mending.advice {
        return vec![format!("mend: none in a map: {advice}")];
    }
    if all {
        return mending.mends.iter().flat_map(whole).collect();
    }
    let more = match mends {
        1 => "`tidegate why --mends` tells what it would take".into(),
        n => format!("`tidegate why --mends` lists {n} ways"),
    };
    match (&mending.suspicion, mending.mends.first()) {
        (Some(why), Some(_)) => vec![format!(
            "mend: none proposed, as this looks like an attack ({why}): {more}"
        )],
        (None, Some(mend)) => vec![format!("mend: {}", how(mend))],
        (_, None) => Vec::new(),
    }
}

/// What is to be done.
fn how(mend: &Mend) -> String {
    let statements = mend.statements.join("; ");
    let map = format!(
        "{statements}   (in {}; then `tidegate reload`)",
        places::POLICY
    );
    match &mend.command {
        Some(command) if mend.statements.is_empty() => command.clone(),
        Some(command) => format!("{map}; and {command}"),
        None => map,
    }
}

/// A mend with what it lets through and gives away.
fn whole(mend: &Mend) -> Vec<String> {
    let mut lines = vec![
        format!("mend: {}", how(mend)),
        format!("    lets through: {}", mend.lets),
        format!("    gives away:   {}", mend.gives),
    ];
    let also = |word: &'static str| move |what: &String| format!("    {word} {what}");
    lines.extend(mend.silences.iter().map(also("overrides:   ")));
    lines.extend(mend.opens.iter().map(also("opens:       ")));
    lines
}

/// `last`, `@ID`, or a number: a process if there is one, else a record.
fn parse(of: &str, is_process: impl Fn(u32) -> bool) -> Outcome<WhyOf> {
    let wrong = || {
        let message =
            format!("`{of}` is neither `last`, a process id, nor @ and a record's number");
        Failure::new(Code::Usage, message)
    };
    if of == "last" {
        return Ok(WhyOf::Last);
    }
    if let Some(id) = of.strip_prefix('@') {
        return id.parse().map(WhyOf::Record).map_err(|_| wrong());
    }
    let number: u64 = of.parse().map_err(|_| wrong())?;
    match u32::try_from(number) {
        Ok(pid) if is_process(pid) => Ok(WhyOf::Process(pid)),
        _ => Ok(WhyOf::Record(number)),
    }
}

/// The chain in one line.
fn text(why: &Why) -> String {
    let mut parts = Vec::new();
    if let Some(you) = &why.process {
        let end = if why.chain.is_empty() && !why.cut {
            ": nothing has lowered it"
        } else {
            ""
        };
        parts.push(format!("process {} is at {}{end}", you.pid, you.level));
    }
    parts.extend(why.chain.iter().map(ToString::to_string));
    if why.cut {
        parts.push("older records are gone".into());
    }
    parts.join(" ← ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    #[test]
    fn numbers_are_processes_before_they_are_records() {
        let only = |n| move |pid| pid == n;
        assert_eq!(parse("last", only(1)).unwrap(), WhyOf::Last);
        assert_eq!(parse("412", only(412)).unwrap(), WhyOf::Process(412));
        assert_eq!(parse("412", only(1)).unwrap(), WhyOf::Record(412));
        assert_eq!(parse("@412", only(412)).unwrap(), WhyOf::Record(412));
        assert_eq!(parse("x", only(1)).unwrap_err().code, Code::Usage);
    }

    #[test]
    fn a_chain_is_one_line() {
        let chain = vec![Record::own("lost", 3), Record::own("lost", 4)];
        let why = Why {
            process: None,
            chain,
            cut: true,
            mending: None,
        };
        assert_eq!(
            text(&why),
            "3 records were lost ← 4 records were lost ← older records are gone"
        );
    }
}
