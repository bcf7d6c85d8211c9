//! `why`: a refusal or a process's level, and the chain that led to it.

use std::path::Path;

use rustix::process::geteuid;
use tidegate_audit::{Record, printable};
use tidegate_monitor::Monitor;
use tidegate_remedy::apparmor::{Amendment, explain_by};
use tidegate_remedy::lomac::Fix;
use tidegate_remedy::{Remedy, propose as propose_by, selinux};
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
            tidegated::explain(&Monitor::open()?, &Policies::new(), of, None)?.into()
        }
        Err(failure) => return Err(failure),
    };
    let mut why: Why = why;
    why.remedy = propose(&why.chain)?;
    if !args.profiles.profile.is_empty()
        && let Some(record) = why.chain.first()
    {
        let bench = args.profiles.bench()?;
        let of_profile = explain_by(record, &bench).map(Remedy::of_profile);
        why.remedy = of_profile.or(why.remedy);
    }
    if json {
        return print_json(&why);
    }
    say!("{}", text(&why));
    for line in why.remedy.iter().flat_map(|m| remedy(m, args.fixes)) {
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

/// The narrowest fix in a line, or all of them.
fn remedy(remedy: &Remedy, all: bool) -> Vec<String> {
    if let Some(amendment) = &remedy.amendment {
        return amended(amendment);
    }
    if let Some(refusal) = &remedy.te {
        return selinux::lines(refusal);
    }
    if let Some(caps) = &remedy.caps {
        let (line, subject) = (printable(&caps.line), printable(&caps.subject));
        return vec![format!(
            "fix: {line}   (in subject {subject}, {}; for sessions that begin then)",
            printable(&caps.file)
        )];
    }
    if let Some(advice) = &remedy.advice {
        return vec![format!("fix: no statement: {advice}")];
    }
    if all {
        return remedy.fixes.iter().flat_map(whole).collect();
    }
    match (&remedy.suspicion, remedy.fixes.first()) {
        (Some(why), Some(_)) => vec![format!(
            "fix: none proposed, as this looks like an attack ({why}): \
             `tidegate why --fixes` lists what would"
        )],
        (None, Some(fix)) => vec![format!("fix: {}", how(fix))],
        (_, None) => Vec::new(),
    }
}

/// What a profile refused by, and the rule that it lacks.
fn amended(of: &Amendment) -> Vec<String> {
    let profile = printable(&of.profile);
    let mut lines = vec![
        format!(
            "profile: {profile} ({}): {}",
            of.class,
            printable(&of.because)
        ),
        format!("    how: {}", printable(&of.how)),
    ];
    let Some(rule) = &of.rule else {
        lines.push("fix: no rule: what a `deny` refuses, no other rule allows".into());
        return lines;
    };
    let place = match &of.file {
        Some(file) => format!("in {}, tried", printable(file)),
        None => format!("in profile {profile}; `tidegate learn --profile` puts it there"),
    };
    lines.push(format!("fix: {}   ({place})", printable(rule)));
    lines.extend(of.notes.iter().map(|note| format!("    note: {note}")));
    lines
}

/// What is to be done.
fn how(fix: &Fix) -> String {
    let map = if Path::new(paths::POLICY).exists() {
        format!("in {}; then `tidegate reload`", paths::POLICY)
    } else {
        "in a map that includes the preset, as `tidegate learn` writes one".into()
    };
    let statements = fix.statements.join("; ");
    match &fix.command {
        Some(command) if fix.statements.is_empty() => command.clone(),
        Some(command) => format!("{statements}   ({map}); and {command}"),
        None => format!("{statements}   ({map})"),
    }
}

/// A fix with what it lets through and gives away.
fn whole(fix: &Fix) -> Vec<String> {
    let mut lines = vec![
        format!("fix: {}", how(fix)),
        format!("    lets through: {}", fix.lets),
        format!("    gives away:   {}", fix.gives),
    ];
    let also = |word: &'static str| move |what: &String| format!("    {word} {what}");
    lines.extend(fix.silences.iter().map(also("overrides:   ")));
    lines.extend(fix.opens.iter().map(also("opens:       ")));
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
    use tidegate_remedy::lomac::Trust;

    #[test]
    fn one_fix_is_shown_unless_it_looks_like_an_attack() {
        let fix = |text: &str| Fix {
            statements: vec![text.into()],
            command: None,
            trust: Trust::Nothing,
            lets: "that".into(),
            gives: "this".into(),
            silences: Vec::new(),
            opens: vec!["x.plm:1: user /x lownoopen".into()],
        };
        let mut of = Remedy {
            fixes: vec![fix("user /a creator"), fix("user /b creator")],
            ..Remedy::default()
        };
        let lines = remedy(&of, false);
        assert!(lines.len() == 1 && lines[0].starts_with("fix: user /a creator   (in "));
        of.suspicion = Some("it is a secret".into());
        assert!(remedy(&of, false)[0].contains("attack (it is a secret)"));
        let all = remedy(&of, true);
        assert_eq!(all.len(), 8);
        assert_eq!(all[7], "    opens:        x.plm:1: user /x lownoopen");
        let none = Remedy {
            advice: Some("run it at the top".into()),
            ..Remedy::default()
        };
        assert_eq!(
            remedy(&none, true),
            ["fix: no statement: run it at the top"]
        );
    }

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
