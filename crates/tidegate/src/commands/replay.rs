//! `replay`: what a policy would have refused of what was recorded.

use std::process::ExitCode;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::Serialize;
use tidegate_audit::{because, verb};
use tidegate_bundle::{Mode, Policy, profile};
use tidegate_monitor::{Op, Reason};
use tidegate_recording::{Comparison, Domains, Error, Fall, Group, Head, Reader, Report};
use tidegate_remedy::selinux;

use super::print_json;
use crate::cli::Replay;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{say, tell, waiting};
use crate::source::Source;

/// Kinds shown without `--all`.
const SHOWN: usize = 40;

/// Broken lines that are told one by one.
const TOLD: u64 = 10;

/// What `--json` says.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    recording: &'a Head,
    policy: &'a str,
    against: &'a str,
    /// Lines that could not be read.
    broken: u64,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn run(args: &Replay, json: bool) -> Outcome<ExitCode> {
    let mut reader = Reader::open(&args.file).map_err(failure)?;
    let proposed = args.source.load()?;
    let recorded = match reader.head().policy.as_ref().and_then(|p| p.bundle()) {
        Some(bundle) => Some(Policy::from_bundle(&bundle).map_err(|e| {
            let file = args.file.display();
            Failure::new(
                Code::Policy,
                format!("{file}:1: the policy in its head: {e}"),
            )
        })?),
        None => None,
    };
    let base = match args.against.as_deref() {
        Some("nothing") => None,
        Some(word) => Some(Source::of_word(word).load()?),
        None => recorded.clone(),
    };
    let own = |policy: &Policy| recorded.as_ref() == Some(policy);
    let comparison = Comparison::new(
        (&proposed, own(&proposed)),
        base.as_ref().map(|base| (base, own(base))),
    );
    let head = reader.head().clone();
    let proposed_domains = domains(&proposed, &head, args.te_context.as_deref(), true)?;
    let base_domains = match &base {
        Some(base) => domains(base, &head, args.te_context.as_deref(), false)?,
        None => None,
    };
    let comparison = comparison.with_domains(proposed_domains, base_domains);
    let (mut report, broken) = waiting("replaying", || play(&mut reader, comparison))?;
    fix(&mut report.refused, &proposed);
    if let Some(base) = &base {
        fix(&mut report.allowed, base);
    }
    let mut head = reader.head().clone();
    let against = base.as_ref().map_or("nothing", |b| &b.name);
    if json {
        if let Some(policy) = &mut head.policy {
            policy.bundle.clear();
        }
        print_json(&Answer {
            recording: &head,
            policy: &proposed.name,
            against,
            broken,
            report: &report,
        })?;
    } else {
        let limit = if args.all { usize::MAX } else { SHOWN };
        show(&report, &Clock::of(&head), limit);
        notes(&report, &head, &proposed, broken);
    }
    Ok(match report.refused.is_empty() {
        true => ExitCode::SUCCESS,
        false => Code::No.into(),
    })
}

/// A policy's SELinux policy's view; `named`: the context has to be one of its own.
fn domains<'p>(
    policy: &'p Policy,
    head: &Head,
    context: Option<&str>,
    named: bool,
) -> Outcome<Option<Domains<'p>>> {
    let Some(te) = &policy.te else {
        if named && context.is_some() {
            let message = "--te-context needs a SELinux policy: --te names one";
            return Err(Failure::new(Code::Usage, message));
        }
        return Ok(None);
    };
    let context = match context.map(|text| te.db.context(text)) {
        Some(Err(e)) if named => return Err(Failure::new(Code::Usage, e)),
        Some(Err(_)) | None => None,
        Some(Ok(context)) => Some(context),
    };
    let followed = !head.command.is_empty();
    Ok(Some(Domains::new(te, &head.filesystems, followed, context)))
}

/// Adds what would fix the refusals of a SELinux policy.
fn fix(groups: &mut [Group], policy: &Policy) {
    let Some(te) = &policy.te else { return };
    let decider = te.decider();
    for denied in groups.iter_mut().filter_map(|group| group.te.as_mut()) {
        denied.fix = selinux::fixes(te, &decider, denied);
    }
}

fn failure(e: Error) -> Failure {
    match e {
        Error::Io { path, source } => Failure::io(format!("read {}", path.display()), source),
        other => Failure::new(Code::Usage, other),
    }
}

/// Every line that can be read; what came of it, and how many could not.
fn play(reader: &mut Reader, mut comparison: Comparison<'_>) -> Outcome<(Report, u64)> {
    let mut broken = 0;
    loop {
        match reader.next_line() {
            Ok(Some(line)) => comparison.feed(&line),
            Ok(None) => break,
            Err(e @ Error::Line { .. }) => {
                broken += 1;
                if broken <= TOLD {
                    tell!("warning: {e}");
                }
            }
            Err(e) => return Err(failure(e)),
        }
    }
    Ok((comparison.finish(), broken))
}

/// Times of the recorded machine, where the reader is.
struct Clock {
    begun: Timestamp,
    boottime: u64,
}

impl Clock {
    fn of(head: &Head) -> Clock {
        Clock {
            begun: head.time.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            boottime: head.boottime,
        }
    }

    fn text(&self, time: u64) -> String {
        let since = i128::from(time) - i128::from(self.boottime);
        let since = SignedDuration::from_nanos_i128(since);
        let then = self.begun.checked_add(since).unwrap_or(self.begun);
        then.to_zoned(TimeZone::system())
            .strftime("%H:%M:%S")
            .to_string()
    }
}

/// An operation in words.
fn doing(op: &str) -> &str {
    let known = Op::ALL.into_iter().find(|o| o.word() == op);
    known.map_or(op, |o| verb(o))
}

fn show(report: &Report, clock: &Clock, limit: usize) {
    section("newly refused", &report.refused, limit, |g| {
        refusal(g, clock)
    });
    section("newly allowed", &report.allowed, limit, |g| {
        refusal(g, clock)
    });
    section("newly falling", &report.falls, limit, |f| fall(f, clock));
}

fn section<T>(title: &str, kinds: &[T], limit: usize, text: impl Fn(&T) -> String) {
    if kinds.is_empty() {
        say!("{title}: nothing");
        return;
    }
    say!("{title}:");
    for kind in kinds.iter().take(limit) {
        say!("  {}", text(kind));
    }
    if kinds.len() > limit {
        say!("  and {} kinds more; --all shows them", kinds.len() - limit);
    }
}

/// A kind of refusal, and how its subject came to its level.
fn refusal(g: &Group, clock: &Clock) -> String {
    if let Some(denied) = &g.te {
        let target = kind_of(&denied.object_context);
        let mut text = format!(
            "{}× {} {} may not {{ {} }} {target}:{}: {} {}",
            g.count,
            g.program,
            kind_of(&denied.context),
            denied.permissions.join(" "),
            denied.class,
            doing(&g.op),
            g.object
        );
        text.truncate(text.trim_end().len());
        for fix in &denied.fix {
            text += &format!("\n      {fix}");
        }
        return text;
    }
    let who = match g.profile.is_empty() {
        true => g.level.clone(),
        false => format!("({})", g.profile),
    };
    let mut text = format!(
        "{}× {} {who} may not {} {}",
        g.count,
        g.program,
        doing(&g.op),
        g.object
    );
    text.truncate(text.trim_end().len());
    let parts: Vec<&str> = [g.object_level.as_str(), g.place.as_str()]
        .into_iter()
        .filter(|p| !p.is_empty())
        .collect();
    if !parts.is_empty() {
        text += &format!(" ({})", parts.join(", "));
    }
    let reason = Reason::ALL.into_iter().find(|r| r.word() == g.reason);
    if let Some(reason) = reason {
        text += &format!(": {}", because(reason));
    }
    for link in &g.why {
        text += &format!(
            " ← demoted to {} {} by {} {} in {}({})",
            link.level,
            clock.text(link.time),
            doing(&link.op),
            link.object,
            link.program,
            link.pid
        );
    }
    text
}

/// A context's type.
fn kind_of(context: &str) -> &str {
    context.split(':').nth(2).unwrap_or(context)
}

fn fall(f: &Fall, clock: &Clock) -> String {
    let when = match f.beginning {
        true => "from the start".into(),
        false => format!("first {}", clock.text(f.time)),
    };
    format!(
        "{}× {} from {} to {} by {} {}, {when}",
        f.count,
        f.program,
        f.from,
        f.level,
        doing(&f.op),
        f.object
    )
}

/// What the reader is to know of what this cannot know.
fn notes(report: &Report, head: &Head, proposed: &Policy, broken: u64) {
    say!("{} accesses in {} lines", report.accesses, report.lines);
    let note = |so: bool, text: String| {
        if so {
            say!("note: {text}");
        }
    };
    note(broken > 0, format!("{broken} lines could not be read"));
    note(
        report.lost > 0,
        format!("{} lines were lost while it was recorded", report.lost),
    );
    note(
        !report.ended,
        "the recording has no last line: what was lost is not known".into(),
    );
    note(
        !report.begun,
        "the recording does not tell how everybody began: all begin at the top level".into(),
    );
    note(
        report.channels,
        "pipes and Unix sockets are followed by what each program had when it was executed, and \
         connections until both ends are gone"
            .into(),
    );
    note(
        report.mappings,
        "a shared mapping counts until its program ends: unmapping is not recorded".into(),
    );
    note(
        report.unnamed,
        "memory without a name (memfd, System V) was used, and is not followed".into(),
    );
    let profiles = &proposed.profiles.profiles;
    note(
        report.unsure > 0,
        format!(
            "{} accesses are let through if the process's user owns the file, which is not recorded",
            report.unsure
        ),
    );
    note(
        !profiles.is_empty(),
        "of profiles, executions, opens of files, names and connections are decided: capabilities, \
         directories that are read, some devices, mappings, attributes, signals, tracing and mounts \
         are not"
            .into(),
    );
    note(
        proposed.te.is_some() && !report.domains,
        "nobody was in a domain: --te-context says in which the command was, or all that ran"
            .into(),
    );
    note(
        report.unlabelled > 0,
        format!(
            "{} accesses are let through, as the label of their object is not told by the recording",
            report.unlabelled
        ),
    );
    note(
        report.domains,
        "of the SELinux policy, executions, births, opens and mappings of files, names, attributes that are changed, \
         messages on sockets, connections, signals and tracing are decided: capabilities, searches, reads of \
         directories and attributes, ioctls, sockets' making and binding, IPC, keys, mounts and other systems' \
         objects are not"
            .into(),
    );
    let is_trial = |p: &&profile::Linked| p.mode == profile::Mode::Complain;
    let complain = profiles.iter().filter(is_trial).count();
    note(
        complain > 0,
        format!(
            "profiles in complain mode, which would record these and refuse nothing: {complain}"
        ),
    );
    note(
        report.beyond > 0,
        format!(
            "{} more are of kinds that there was no room for",
            report.beyond
        ),
    );
    note(
        !head.unseen.is_empty(),
        format!("not recorded on that kernel: {}", head.unseen.join(", ")),
    );
    note(
        proposed.mode == Mode::Permissive,
        "the policy is permissive: it would record these, and refuse nothing".into(),
    );
}
