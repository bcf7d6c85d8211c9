//! `log`: reads the audit log, the rotated files first.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use jiff::{Span, Timestamp};
use tidegate_audit::{Record, Tail};

use crate::cli::Log;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;

/// Between two looks for new lines.
const BEAT: Duration = Duration::from_millis(250);

pub fn run(args: &Log, json: bool) -> Outcome {
    let since = args
        .since
        .as_deref()
        .map(|s| since(s, Timestamp::now()))
        .transpose()?;
    let failed = |e| Failure::io(format!("read {}", args.file.display()), e);
    let mut tail = Tail::open(&args.file).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Code::No,
            format!("there is no audit log {}", args.file.display()),
        ),
        _ => failed(e),
    })?;
    let mut records = Vec::new();
    let mut keep = |r: Record, line| {
        if fits(&r, args, since) {
            records.push((r, line));
        }
    };
    for path in rotated(&args.file) {
        Tail::open(&path)
            .and_then(|mut old| old.read(&mut keep))
            .map_err(failed)?;
    }
    tail.read(&mut keep).map_err(failed)?;
    let skip = args.last.map_or(0, |n| records.len().saturating_sub(n));
    for (record, line) in &records[skip..] {
        show(record, line, json);
    }
    if !args.follow {
        return Ok(());
    }
    let mut show = |r: Record, line: String| {
        if fits(&r, args, since) {
            show(&r, &line, json);
        }
    };
    loop {
        thread::sleep(BEAT);
        tail.follow(&mut show).map_err(failed)?;
    }
}

/// `audit.jsonl.9 … .1`, the oldest first.
pub fn rotated(path: &Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|n| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    });
    let mut found: Vec<PathBuf> = numbered.take_while(|p| p.exists()).collect();
    found.reverse();
    found
}

fn fits(r: &Record, args: &Log, since: Option<Timestamp>) -> bool {
    let subject = r.subject.as_ref();
    let path = r.object.as_ref().and_then(|o| o.path.as_deref());
    since.is_none_or(|t| r.time.parse::<Timestamp>().is_ok_and(|at| at >= t))
        && args
            .pid
            .is_none_or(|pid| subject.is_some_and(|s| s.pid == pid))
        && args
            .level
            .as_ref()
            .is_none_or(|l| subject.is_some_and(|s| s.level == *l))
        && args
            .profile
            .as_ref()
            .is_none_or(|p| subject.is_some_and(|s| s.profile.as_ref() == Some(p)))
        && args
            .comm
            .as_ref()
            .is_none_or(|c| subject.is_some_and(|s| s.comm == *c))
        && args
            .path
            .as_ref()
            .is_none_or(|p| path.is_some_and(|path| path.starts_with(p)))
        && args.kind.as_ref().is_none_or(|k| r.kind == *k)
        && (!args.denied || r.is_denial() || r.is_managers_denial())
}

/// A time, or how long ago.
pub fn since(text: &str, now: Timestamp) -> Outcome<Timestamp> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let wrong = || {
        let message = format!("`{text}` is neither a time like 2026-01-31T12:00Z nor one like 10m");
        Failure::new(Code::Usage, message)
    };
    let span: Span = text.parse().map_err(|_| wrong())?;
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    zoned
        .checked_sub(span)
        .map(|z| z.timestamp())
        .map_err(|_| wrong())
}

fn show(record: &Record, line: &str, json: bool) {
    if json {
        say!("{line}");
        return;
    }
    let style = match record.kind.as_str() {
        "denied" | "user-denied" => AnsiColor::Red.on_default(),
        "would" | "user-would" | "table-full" | "lost" | "dropped" => {
            AnsiColor::Yellow.on_default()
        }
        "demoted" => AnsiColor::Cyan.on_default(),
        _ => Style::new(),
    };
    let id = match &record.manager {
        Some(manager) => format!("@u{}", manager.number),
        None if record.id == 0 => String::new(),
        None => format!("@{}", record.id),
    };
    let day = record.time.get(..10).unwrap_or_default();
    say!("{day} {} {id:<8} {style}{record}{style:#}", record.clock());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_times_and_spans() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let text = |s| since(s, now).map(|t| t.to_string());
        assert_eq!(text("10m").unwrap(), "2026-01-31T11:50:00Z");
        assert_eq!(text("2d").unwrap(), "2026-01-29T12:00:00Z");
        assert_eq!(text("2026-01-01T00:00Z").unwrap(), "2026-01-01T00:00:00Z");
        assert_eq!(text("yesterday").unwrap_err().code, Code::Usage);
    }
}
