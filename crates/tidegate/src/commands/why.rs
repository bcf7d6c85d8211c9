//! `why`: a refusal or a process's level, and the chain that led to it.

use std::path::Path;

use rustix::process::geteuid;
use tidegate_audit::Record;
use tidegate_monitor::Monitor;
use tidegate_remedy::apparmor::explain_by;
use tidegate_remedy::{Remedy, Shown, propose as propose_by};
use tidegated::{Policies, paths};

use super::print_json;
use super::status::in_force;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::protocol::{Answer, Ask, Why, WhyOf};
use crate::{cli, client};

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
            let monitor = Monitor::open()?;
            tidegated::explain(&monitor, &Policies::of(&monitor)?, of, None)?.into()
        }
        Err(failure) => return Err(failure),
    };
    let mut why: Why = why;
    why.remedy = propose(&why.chain)?;
    if !args.profiles.profile.is_empty()
        && let Some(record) = why.chain.first()
    {
        let bench = args.profiles.bench()?;
        let of_profile = explain_by(record, &bench).map(Remedy::from);
        why.remedy = of_profile.or(why.remedy);
    }
    if json {
        return print_json(&why);
    }
    say!("{}", text(&why));
    let map = map();
    let shown = Shown {
        all: args.fixes,
        map: &map,
    };
    for line in why.remedy.iter().flat_map(|it| it.lines(&shown)) {
        say!("{line}");
    }
    Ok(())
}

/// What would let through the refusal that a chain begins with, by the policy in force now, which may be another than the one
/// that refused. The policy is read and tried here: the daemon compiles nothing for those who ask.
fn propose(chain: &[Record]) -> Outcome<Option<Remedy>> {
    let refused = |record: &&Record| record.is_denial() || record.is_managers_denial();
    if chain.first().filter(refused).is_none() {
        return Ok(None);
    }
    let policy = Policies::new().get(in_force()?.seqno);
    Ok(policy.and_then(|policy| propose_by(chain, &policy)))
}

/// Where the statements of a map belong.
fn map() -> String {
    if Path::new(paths::POLICY).exists() {
        format!("in {}; then `tidegate reload`", paths::POLICY)
    } else {
        "in a map that includes the preset, as `tidegate learn` writes one".into()
    }
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
    if let Some(number) = of.strip_prefix("@u") {
        return number.parse().map(WhyOf::Manager).map_err(|_| wrong());
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
    parts(why).join(" ← ")
}

/// The chain, newest first, and what there is to say of its ends.
pub fn parts(why: &Why) -> Vec<String> {
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
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_processes_before_they_are_records() {
        let only = |n| move |pid| pid == n;
        assert_eq!(parse("last", only(1)).unwrap(), WhyOf::Last);
        assert_eq!(parse("412", only(412)).unwrap(), WhyOf::Process(412));
        assert_eq!(parse("412", only(1)).unwrap(), WhyOf::Record(412));
        assert_eq!(parse("@412", only(412)).unwrap(), WhyOf::Record(412));
        assert_eq!(parse("@u4", only(4)).unwrap(), WhyOf::Manager(4));
        assert_eq!(parse("x", only(1)).unwrap_err().code, Code::Usage);
    }

    #[test]
    fn a_chain_is_one_line() {
        let chain = vec![Record::own("lost", 3), Record::own("lost", 4)];
        let why = Why {
            process: None,
            chain,
            cut: true,
            remedy: None,
        };
        assert_eq!(
            text(&why),
            "3 records were lost ← 4 records were lost ← older records are gone"
        );
    }
}
