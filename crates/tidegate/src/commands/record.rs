//! `record`: what programs do, for `replay`. Needs no monitor in the kernel.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use jiff::{Span, Timestamp};
use rustix::process::geteuid;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tidegate_monitor::{Monitor, Recorder, Scope, boottime};
use tidegate_recording::{Act, Filesystem, Head, InForce, Inode, Line, VERSION, Writer, hex};
use tidegated::Policies;

use super::print_json;
use crate::cli;
use crate::exit::{Code, Failure, Outcome};
use crate::output::{say, tell, waiting};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);

/// How often what was recorded is given to the file.
const FLUSH: Duration = Duration::from_secs(2);

/// What came of it.
#[derive(Debug, Serialize)]
struct Done {
    file: String,
    lines: u64,
    accesses: u64,
    lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
}

pub fn run(args: &cli::Record, json: bool) -> Outcome {
    if !geteuid().is_root() {
        return Err(Failure::new(
            Code::NotPermitted,
            "recording what all do takes root, at the top level",
        ));
    }
    let until = args.span.as_deref().map(span).transpose()?;
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600);
    let file = file.open(&args.output).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            Code::Usage,
            format!(
                "{} is there already: name another file",
                args.output.display()
            ),
        ),
        _ => Failure::io(format!("write {}", args.output.display()), e),
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::io("wait for signals", e))?;
    }
    let scope = Scope {
        follow: !args.command.is_empty(),
        all: args.all,
    };
    let monitor = match Monitor::is_loaded()? {
        true => Some(Monitor::open()?),
        false => None,
    };
    // whatever fails before it has begun leaves nothing behind
    let recorded = Recorder::run(scope, |recorder| {
        record(args, recorder, monitor.as_ref(), file, until, &stop)
    });
    let done = match recorded.map_err(Failure::from).and_then(|done| done) {
        Ok(done) => done,
        Err(failure) => {
            let empty = std::fs::metadata(&args.output).is_ok_and(|m| m.len() == 0);
            if empty {
                let _ = std::fs::remove_file(&args.output);
            }
            return Err(failure);
        }
    };
    if json {
        return print_json(&done);
    }
    if done.lost > 0 {
        tell!(
            "warning: {} lines were lost; what they told is not in the recording",
            done.lost
        );
    }
    say!(
        "{}: {} lines of {} accesses",
        done.file,
        done.lines,
        done.accesses
    );
    Ok(())
}

/// How long a time in words is.
fn span(text: &str) -> Outcome<Duration> {
    let wrong = || {
        Failure::new(
            Code::Usage,
            format!("`{text}` is not a time, for example 90s, 10m or 1h"),
        )
    };
    let span: Span = text.parse().map_err(|_| wrong())?;
    let zone = jiff::tz::TimeZone::UTC;
    let now = Timestamp::now().to_zoned(zone);
    let then = now.checked_add(span).map_err(|_| wrong())?;
    now.duration_until(&then).try_into().map_err(|_| wrong())
}

/// The command, as a child whose descendants alone are recorded.
fn begin(command: &[std::ffi::OsString]) -> Outcome<Option<Child>> {
    let Some((program, rest)) = command.split_first() else {
        return Ok(None);
    };
    let child = Command::new(program).args(rest).spawn();
    child
        .map(Some)
        .map_err(|e| Failure::io(format!("run {}", program.to_string_lossy()), e))
}

fn head(
    args: &cli::Record,
    recorder: &Recorder<'_, '_>,
    monitor: Option<&Monitor>,
) -> Outcome<Head> {
    let words = args
        .command
        .iter()
        .map(|w| w.to_string_lossy().into_owned());
    let policy = match monitor {
        None => None,
        Some(monitor) => {
            let status = monitor.status()?;
            let policy = Policies::new().get(status.seqno);
            Some(InForce {
                name: policy.as_ref().map_or_else(String::new, |p| p.name.clone()),
                permissive: status.permissive,
                bundle: policy.map_or_else(String::new, |p| hex(&p.to_bundle())),
            })
        }
    };
    Ok(Head {
        tidegate_recording: VERSION,
        time: format!("{:.6}", Timestamp::now()),
        boottime: boottime(),
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        command: words.collect(),
        policy,
        filesystems: filesystems()?,
        unseen: recorder.unseen().to_vec(),
    })
}

/// What is mounted, whole, in the initial namespace. Of what is mounted several times the first place counts.
fn filesystems() -> Outcome<Vec<Filesystem>> {
    let path = "/proc/1/mountinfo";
    let text = std::fs::read(path).map_err(|e| Failure::io(format!("read {path}"), e))?;
    let text = String::from_utf8_lossy(&text);
    let mut found: Vec<Filesystem> = Vec::new();
    for line in text.lines() {
        let (mount, of) = line.split_once(" - ").unwrap_or((line, ""));
        let fields: Vec<&str> = mount.split(' ').collect();
        let [_, _, dev, root, at, ..] = fields[..] else {
            continue;
        };
        let Some((major, minor)) = dev.split_once(':') else {
            continue;
        };
        let (Ok(major), Ok(minor)) = (major.parse::<u32>(), minor.parse::<u32>()) else {
            continue;
        };
        let dev = major << 20 | minor;
        // a namespace's or a container's part of it is the same filesystem
        if root == "/" && found.iter().all(|known| known.dev != dev) {
            found.push(Filesystem {
                dev,
                kind: of.split(' ').next().unwrap_or_default().to_owned(),
                at: at.to_owned(),
            });
        }
    }
    Ok(found)
}

/// The beginning, then what happens, until it is to end.
fn record(
    args: &cli::Record,
    recorder: &Recorder<'_, '_>,
    monitor: Option<&Monitor>,
    file: std::fs::File,
    span: Option<Duration>,
    stop: &AtomicBool,
) -> Outcome<Done> {
    let failed = |e: io::Error| Failure::io(format!("write {}", args.output.display()), e);
    let head = head(args, recorder, monitor)?;
    let mut writer = Writer::new(file, &args.output, &head).map_err(failed)?;
    let mut lines = waiting("how everybody begins", || {
        beginning(recorder, monitor, &mut writer, failed)
    })?;
    let mut child = begin(&args.command)?;
    let mut status: Option<ExitStatus> = None;
    let (begun, mut flushed) = (Instant::now(), Instant::now());
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {pos} lines recorded: {elapsed:.dim}");
    bar.set_style(style.expect("the template is well formed"));
    loop {
        let ends = status.is_some()
            || stop.load(Ordering::Relaxed)
            || span.is_some_and(|span| begun.elapsed() >= span);
        // what was done before the end is told after it
        let mut result = Ok(());
        let told = recorder.wait(if ends { Duration::ZERO } else { LOOK }, |line| {
            if result.is_ok() {
                result = writer.line(line);
            }
        })?;
        result.map_err(failed)?;
        lines += told as u64;
        bar.set_position(lines);
        if ends {
            break;
        }
        if flushed.elapsed() >= FLUSH {
            writer.flush().map_err(failed)?;
            flushed = Instant::now();
        }
        if let (Some(child), None) = (&mut child, &status) {
            status = child
                .try_wait()
                .map_err(|e| Failure::io("wait for the command", e))?;
        }
    }
    bar.finish_and_clear();
    let loss = recorder.loss();
    let lost = loss.lines + loss.followed;
    let end = Line {
        time: boottime(),
        seen: loss.seen,
        lost,
        ..Line::new(Act::End)
    };
    writer.line(&end).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(Done {
        file: args.output.display().to_string(),
        lines,
        accesses: loss.seen,
        lost,
        status: status.and_then(|s| s.code()),
    })
}

/// Levels that objects were given, processes and what they hold; how many lines.
fn beginning(
    recorder: &Recorder<'_, '_>,
    monitor: Option<&Monitor>,
    writer: &mut Writer,
    failed: impl Fn(io::Error) -> Failure,
) -> Outcome<u64> {
    let mut levels: HashMap<u32, String> = HashMap::new();
    let mut contexts: HashMap<u32, String> = HashMap::new();
    let mut lines = 0;
    let policy = match monitor {
        Some(monitor) => Policies::new().get(monitor.status()?.seqno),
        None => None,
    };
    if let (Some(monitor), Some(policy)) = (monitor, policy) {
        let name = |level: u8| {
            policy
                .levels
                .get(usize::from(level))
                .cloned()
                .unwrap_or_default()
        };
        for given in monitor.given()? {
            let line = Line {
                inode: Inode(given.dev, given.ino, given.generation),
                level: name(given.level).into(),
                ..Line::new(Act::Given)
            };
            writer.line(&line).map_err(&failed)?;
            lines += 1;
        }
        for labelled in monitor.labelled()? {
            let line = Line {
                inode: Inode(labelled.dev, labelled.ino, labelled.generation),
                context: labelled.context.into(),
                ..Line::new(Act::Given)
            };
            writer.line(&line).map_err(&failed)?;
            lines += 1;
        }
        let policies = Policies::new();
        for process in monitor.processes()? {
            levels.insert(process.pid, name(process.subject.level));
            let context = process.sid.and_then(|sid| policies.context(sid));
            contexts.extend(context.map(|context| (process.pid, context)));
        }
    }
    let mut result = Ok(());
    recorder.beginning(|line| {
        lines += 1;
        let level = levels.get(&line.pid).filter(|_| line.act == Act::Process);
        if result.is_err() {
            return;
        }
        let context = contexts.get(&line.pid).map_or("", String::as_str);
        result = match level {
            Some(level) => writer.line(&Line {
                level: level.as_str().into(),
                context: context.into(),
                ..line.clone()
            }),
            None => writer.line(line),
        };
    })?;
    result.map_err(&failed)?;
    let begun = Line {
        time: boottime(),
        ..Line::new(Act::Begun)
    };
    writer.line(&begun).map_err(&failed)?;
    writer.flush().map_err(&failed)?;
    Ok(lines + 1)
}
