//! `check`: whether a policy compiles, and what it says of paths.

use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use tidegate_policy::{Attrs, Policy};

use super::print_json;
use crate::cli::Check;
use crate::exit::{Code, Failure, Outcome};
use crate::output::say;

/// A policy in short.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    policy: &'a str,
    mode: tidegate_policy::Mode,
    levels: &'a [String],
    rules: usize,
    nodes: usize,
    networks: usize,
    profiles: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<Found>,
}

/// What it says of a path.
#[derive(Debug, Serialize)]
struct Found {
    path: String,
    level: String,
    attributes: Vec<String>,
    rule: String,
    text: String,
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
                "`{}` is no canonical path: begin it with /",
                relative.display()
            ),
        ));
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
        }
    });
    let paths: Vec<Found> = paths.collect();
    if json {
        return print_json(&summary(&policy, paths));
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
    for f in paths {
        let attributes = f.attributes.join(" ");
        say!(
            "{}\t{}\t{attributes}\t{}: {}",
            f.path,
            f.level,
            f.rule,
            f.text
        );
    }
    Ok(())
}

fn summary(policy: &Policy, paths: Vec<Found>) -> Summary<'_> {
    Summary {
        policy: &policy.name,
        mode: policy.mode,
        levels: &policy.levels,
        rules: policy.rules.len(),
        nodes: policy.nodes.len(),
        networks: policy.networks.len(),
        profiles: policy.profiles.profiles.len(),
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
