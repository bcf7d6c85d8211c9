//! `ls`: files and their levels (LOMAC's lls). Looking does not open, so it does
//! not lower who looks.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde::Serialize;
use tidegate_monitor::{Monitor, Object, Origin};
use tidegate_policy::Policy;

use super::check::attributes;
use super::print_json;
use crate::cli::Ls;
use crate::daemon::Policies;
use crate::exit::{Failure, Outcome};
use crate::output::{printable, say};
use crate::record::level_name;

/// Files looked at by one call: each has a descriptor meanwhile.
const BATCH: usize = 256;

/// A file.
#[derive(Debug, Serialize)]
struct Line {
    path: String,
    level: String,
    /// `rule`, `given`, `kind` or `unknown`.
    from: &'static str,
    attributes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

pub fn run(args: &Ls, json: bool) -> Outcome {
    let monitor = Monitor::open()?;
    let policy = Policies::new().get(monitor.status()?.seqno);
    for path in &args.paths {
        let list = path.is_dir() && !args.directory;
        let files = if list {
            children(path)?
        } else {
            vec![path.clone()]
        };
        for batch in files.chunks(BATCH) {
            show(&monitor, policy.as_deref(), batch, json)?;
        }
    }
    Ok(())
}

fn children(dir: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |e| Failure::io(format!("list {}", dir.display()), e);
    let entries = fs::read_dir(dir).map_err(failed)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|e| e.map(|e| e.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn show(monitor: &Monitor, policy: Option<&Policy>, paths: &[PathBuf], json: bool) -> Outcome {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut files = Vec::new();
    for path in paths {
        let fd = open(path, flags, Mode::empty())
            .map_err(|e| Failure::io(format!("look at {}", path.display()), e))?;
        files.push(fd);
    }
    let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    for (path, object) in paths.iter().zip(monitor.objects(&fds)?) {
        let line = line(policy, path, object);
        if json {
            print_json(&line)?;
        } else {
            let rule = line.rule.as_deref().unwrap_or("-");
            let attributes = line.attributes.join(",");
            say!(
                "{:<10} {:<7} {:<20} {:<16} {}",
                line.level,
                line.from,
                rule,
                attributes,
                printable(&line.path)
            );
        }
    }
    Ok(())
}

fn line(policy: Option<&Policy>, path: &Path, object: Option<Object>) -> Line {
    let path = path.to_string_lossy().into_owned();
    let Some(object) = object else {
        return Line {
            path,
            level: "?".into(),
            from: "unknown",
            attributes: vec![],
            rule: None,
        };
    };
    let from = match object.label.origin {
        Origin::Rule => "rule",
        Origin::Given => "given",
        Origin::Kind => "kind",
        Origin::Unknown | Origin::Later => "unknown",
    };
    let rule = object
        .source
        .and_then(|s| policy?.rules.get(s as usize))
        .map(ToString::to_string);
    let level = level_name(policy, object.label.level);
    Line {
        path,
        level,
        from,
        attributes: attributes(object.label.attrs),
        rule,
    }
}
