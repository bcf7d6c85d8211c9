//! `check`: whether a policy compiles, and what it says of paths.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tidegate_audit::printable;
use tidegate_bundle::profile::LeftOut;
use tidegate_bundle::te::contexts::{FileContexts, Kind};
use tidegate_bundle::{Attrs, Mode, Policy, te};
use tidegate_flask::{Image, Numbering};

use super::{check_caps, print_json};
use crate::cli::Check;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;
use crate::profiles::whole;

/// A policy in short.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    policy: &'a str,
    mode: Mode,
    levels: &'a [String],
    rules: usize,
    nodes: usize,
    networks: usize,
    profiles: usize,
    /// What could not be used of the profiles.
    #[serde(skip_serializing_if = "<[LeftOut]>::is_empty")]
    left_out: &'a [LeftOut],
    #[serde(skip_serializing_if = "Option::is_none")]
    te: Option<Selinux>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<Found>,
}

/// The SELinux policy beside it.
#[derive(Debug, Serialize)]
struct Selinux {
    #[serde(flatten)]
    policy: te::Summary,
    file_contexts: Vec<String>,
    tables: Tables,
}

/// What it takes in the kernel, laid out with its booleans as they are set.
#[derive(Debug, Serialize)]
struct Tables {
    bytes: usize,
    /// Of these, file contexts.
    file_contexts_bytes: usize,
    /// What it took of a processor until it was read and compiled, with its file contexts and the map,
    read_milliseconds: u64,
    /// and to lay it out.
    laid_out_milliseconds: u64,
    /// Of sources that rules tell apart, of targets, and what rules say of both.
    rows: usize,
    columns: usize,
    cells: usize,
}

/// What this process has taken of processors so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Tables {
    fn of(te: &te::Te) -> Outcome<Tables> {
        let read = processor_time();
        let image = Image::of(
            &te.db,
            &te.values(),
            te.files.as_ref(),
            Numbering::default(),
            0,
        );
        let size = image
            .map_err(|e| Failure::new(Code::Policy, e.to_string()))?
            .size;
        Ok(Tables {
            bytes: size.bytes,
            file_contexts_bytes: size.files,
            read_milliseconds: read.as_millis() as u64,
            laid_out_milliseconds: (processor_time() - read).as_millis() as u64,
            rows: size.rows,
            columns: size.columns,
            cells: size.cells,
        })
    }
}

/// What it says of a path.
#[derive(Debug, Serialize)]
struct Found {
    path: String,
    level: String,
    attributes: Vec<String>,
    rule: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Labelled>,
}

/// What file contexts say of it.
#[derive(Debug, Serialize)]
struct Labelled {
    /// The context; none, where they say that it is not to be labelled, or nothing.
    context: Option<String>,
    /// `FILE:LINE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

pub fn run(args: &Check, json: bool) -> Outcome {
    let mut source = args.source.clone();
    if args.file.is_some() {
        source.policy.clone_from(&args.file);
    }
    if let Some(relative) = args.path.iter().find(|p| !p.is_absolute()) {
        return Err(Failure::new(
            Code::Usage,
            format!(
                "`{}` is not a canonical path: begin it with /",
                relative.display()
            ),
        ));
    }
    if let Some(file) = &args.caps {
        return check_caps::run(file, &args.path, json);
    }
    let policy = source.load()?;
    let paths = args.path.iter().map(|path| {
        let rule = policy.lookup(path.as_os_str().as_bytes());
        let source = &policy.rules[rule.source as usize];
        Found {
            path: path.to_string_lossy().into_owned(),
            level: policy.levels[usize::from(rule.level)].clone(),
            attributes: attributes(rule.attrs),
            rule: source.to_string(),
            text: source.text.clone(),
            context: policy
                .te
                .as_ref()
                .and_then(|te| labelled(te.files.as_ref()?, path)),
        }
    });
    let paths: Vec<Found> = paths.collect();
    let te = match &policy.te {
        Some(te) => Some(Selinux {
            policy: te.summary(),
            file_contexts: te.files.as_ref().map_or_else(Vec::new, |f| f.files.clone()),
            tables: Tables::of(te)?,
        }),
        None => None,
    };
    if json {
        print_json(&summary(&policy, te, paths))?;
        return whole(&policy.profiles);
    }
    let levels: Vec<_> = policy.levels.iter().rev().map(String::as_str).collect();
    say!(
        "{}: {} rules, {} networks; {}",
        policy.name,
        policy.rules.len(),
        policy.networks.len(),
        levels.join(" > ")
    );
    match policy.profiles.profiles.len() {
        0 => {}
        1 => say!("1 profile"),
        count => say!("{count} profiles"),
    }
    if let Some(te) = &te {
        say_te(te);
    }
    for f in paths {
        let attributes = f.attributes.join(" ");
        say!(
            "{}\t{}\t{attributes}\t{}: {}",
            f.path,
            f.level,
            f.rule,
            f.text
        );
        if let Some(of) = &f.context {
            let context = of.context.as_deref().unwrap_or("<<none>>");
            let rule = of.rule.as_deref().unwrap_or("no file context");
            say!(
                "{}\t{}\t{}",
                printable(&f.path),
                printable(context),
                printable(rule)
            );
        }
    }
    whole(&policy.profiles)
}

/// What file contexts say of a path, as matchpathcon(8) asks them: of what is there as what it is, of what is not as a
/// regular file.
fn labelled(files: &FileContexts, path: &Path) -> Option<Labelled> {
    let found = std::fs::symlink_metadata(path);
    let kind = found.ok().and_then(|it| Kind::of_mode(it.mode()));
    let found = files.lookup(path.as_os_str().as_bytes(), kind.unwrap_or(Kind::Regular));
    let rule = found.line.map(|line| {
        let file = files.files.get(usize::from(line.file));
        format!("{}:{}", file.map_or("?", String::as_str), line.number)
    });
    Some(Labelled {
        context: found.context.map(str::to_owned),
        rule,
    })
}

fn say_te(te: &Selinux) {
    let it = &te.policy;
    let ranges = match it.mls {
        true => format!(
            ", {} sensitivities, {} categories",
            it.sensitivities, it.categories
        ),
        false => ", no ranges".to_owned(),
    };
    say!(
        "SELinux policy, version {}: {} types ({} permissive), {} attributes, {} roles, {} users, {} classes{ranges}",
        it.version,
        it.types,
        it.permissive,
        it.attributes,
        it.roles,
        it.users,
        it.classes
    );
    say!(
        "  {} rules on access, {} on types, {} on single ioctls, {} of these by booleans; {} constraints; \
         {} transitions of roles and ranges",
        it.access_rules,
        it.type_rules,
        it.extended_rules,
        it.conditional_rules,
        it.constraints,
        it.role_and_range_transitions
    );
    say!(
        "  {} booleans, {} set; what it does not know: {}",
        it.booleans,
        it.booleans_set,
        it.unknown
    );
    say!(
        "  {} contexts of filesystems, ports, interfaces and addresses",
        it.contexts
    );
    let tables = &te.tables;
    say!(
        "  in the kernel: {} KiB, of which {} KiB file contexts; {} rows, {} columns, {} cells",
        tables.bytes.div_ceil(1024),
        tables.file_contexts_bytes.div_ceil(1024),
        tables.rows,
        tables.columns,
        tables.cells
    );
    say!(
        "  of a processor: {} ms to read and compile it, {} ms to lay it out",
        tables.read_milliseconds,
        tables.laid_out_milliseconds
    );
    for file in &te.file_contexts {
        say!("  file contexts: {}", printable(file));
    }
    match &it.passed_over[..] {
        [] => {}
        statements => say!("  read past: {}", statements.join(", ")),
    }
}

fn summary(policy: &Policy, te: Option<Selinux>, paths: Vec<Found>) -> Summary<'_> {
    Summary {
        policy: &policy.name,
        mode: policy.mode,
        levels: &policy.levels,
        rules: policy.rules.len(),
        nodes: policy.nodes.len(),
        networks: policy.networks.len(),
        profiles: policy.profiles.profiles.len(),
        left_out: &policy.profiles.left_out,
        te,
        paths,
    }
}

/// Attributes by their words in the map language.
pub fn attributes(attrs: Attrs) -> Vec<String> {
    attrs
        .difference(Attrs::EXPLICIT)
        .iter_names()
        .map(|(n, _)| n.to_ascii_lowercase())
        .collect()
}
