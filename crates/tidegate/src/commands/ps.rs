//! `ps`: processes and their levels (LOMAC's lps).

use serde::Serialize;
use tidegate_audit::{level_name, printable};
use tidegate_monitor::Monitor;
use tidegated::Policies;

use super::check::attributes;
use super::print_json;
use crate::cli::Ps;
use crate::exit::{Failure, Outcome};
use crate::output::say;

/// A process.
#[derive(Debug, Serialize)]
struct Line {
    pid: u32,
    ppid: u32,
    uid: u32,
    level: String,
    number: u8,
    governed: bool,
    attributes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    /// The session of capability files that it is in, by its number,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    /// and the subjects that limit it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subjects: Vec<String>,
    comm: String,
}

pub fn run(args: &Ps, json: bool) -> Outcome {
    let monitor = Monitor::open()?;
    let policies = Policies::of(&monitor)?;
    let policy = policies.get(monitor.status()?.seqno);
    if let (Some(policy), Some(level)) = (&policy, &args.level)
        && policy.level(level).is_none()
    {
        return Err(Failure::no_level(level, &policy.levels));
    }
    let processes = monitor.processes()?;
    let (sessions, domains) = (monitor.sessions()?, monitor.domains()?);
    let lines = processes.into_iter().map(|p| {
        let domain = domains.iter().find(|d| Some(d.number) == p.domain);
        let session = sessions
            .iter()
            .find(|s| domain.is_some_and(|d| d.session == s.place));
        let layers = domain.into_iter().flat_map(|domain| &domain.layers);
        Line {
            session: session.map(|session| session.number),
            subjects: layers
                .map(|&layer| policies.caps.subject_name(layer))
                .collect(),
            pid: p.pid,
            ppid: p.ppid,
            uid: p.uid,
            level: level_name(policy.as_deref(), p.subject.level),
            number: p.subject.level,
            governed: p.governed,
            attributes: attributes(p.subject.attrs),
            cause: (p.subject.cause != 0).then_some(p.subject.cause),
            context: p.sid.and_then(|sid| policies.context(sid)),
            comm: p.comm,
        }
    });
    let lines = lines
        .filter(|l| args.level.as_ref().is_none_or(|level| l.level == *level))
        .filter(|l| l.governed || !args.governed)
        .filter(|l| l.context.is_some() || !args.context)
        .filter(|l| l.session.is_some() || !args.caps);
    if !json && args.caps {
        say!("{:>7} {:>7} {:<16} SUBJECTS", "PID", "SESSION", "PROGRAM");
    } else if !json && args.context {
        say!("{:>7} {:<16} CONTEXT", "PID", "PROGRAM");
    } else if !json {
        say!(
            "{:>7} {:>7} {:>6} {:<12} {:<16} ATTRIBUTES",
            "PID",
            "PPID",
            "UID",
            "LEVEL",
            "PROGRAM"
        );
    }
    for l in lines {
        if json {
            print_json(&l)?;
        } else if let (true, Some(context)) = (args.context, &l.context) {
            say!("{:>7} {:<16} {context}", l.pid, printable(&l.comm));
        } else if let (true, Some(session)) = (args.caps, l.session) {
            let subjects = printable(&l.subjects.join(", "));
            say!(
                "{:>7} {session:>7} {:<16} {subjects}",
                l.pid,
                printable(&l.comm)
            );
        } else {
            let attributes = l.attributes.join(" ");
            say!(
                "{:>7} {:>7} {:>6} {:<12} {:<16} {attributes}",
                l.pid,
                l.ppid,
                l.uid,
                l.level,
                printable(&l.comm)
            );
        }
    }
    Ok(())
}
