//! `ls`: files and their levels (LOMAC's lls). Looking does not open, so it does not lower the
//! caller.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde::Serialize;
use tidegate_audit::{level_name, printable};
use tidegate_bundle::Policy;
use tidegate_monitor::{Monitor, Object, Origin};
use tidegated::Policies;

use super::check::attributes;
use super::print_json;
use crate::cli::Ls;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
}

pub fn run(args: &Ls, json: bool) -> Outcome {
    let monitor = Monitor::open()?;
    let policies = Policies::new();
    let policy = policies.get(monitor.status()?.seqno);
    if args.context && policy.as_ref().is_none_or(|policy| policy.te.is_none()) {
        return Err(Failure::new(
            Code::Usage,
            "the policy in force has no SELinux policy",
        ));
    }
    let look = Look {
        monitor: &monitor,
        policies: &policies,
        policy: policy.as_deref(),
        context: args.context,
    };
    for path in &args.paths {
        let list = path.is_dir() && !args.directory;
        let files = if list {
            children(path)?
        } else {
            vec![path.clone()]
        };
        for batch in files.chunks(BATCH) {
            look.show(batch, json)?;
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

/// What is looked at, and by what.
struct Look<'a> {
    monitor: &'a Monitor,
    policies: &'a Policies,
    policy: Option<&'a Policy>,
    context: bool,
}

impl Look<'_> {
    fn show(&self, paths: &[PathBuf], json: bool) -> Outcome {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut files = Vec::new();
        for path in paths {
            let fd = open(path, flags, Mode::empty())
                .map_err(|e| Failure::io(format!("look at {}", path.display()), e))?;
            files.push(fd);
        }
        let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let sids = match self.context {
            true => self.monitor.sids(&fds)?,
            false => vec![None; fds.len()],
        };
        let objects = self.monitor.objects(&fds)?;
        for ((path, object), sid) in paths.iter().zip(objects).zip(sids) {
            let mut line = line(self.policy, path, object);
            line.context = sid.and_then(|sid| self.policies.context(sid));
            if json {
                print_json(&line)?;
                continue;
            }
            let rule = line.rule.as_deref().unwrap_or("-");
            let attributes = line.attributes.join(",");
            let context = match (self.context, &line.context) {
                (false, _) => String::new(),
                (true, context) => format!("{:<40} ", context.as_deref().unwrap_or("?")),
            };
            say!(
                "{:<10} {:<7} {:<20} {:<16} {context}{}",
                line.level,
                line.from,
                rule,
                attributes,
                printable(&line.path)
            );
        }
        Ok(())
    }
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
            context: None,
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
        context: None,
    }
}
