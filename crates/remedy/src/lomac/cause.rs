//! Fixes where the fall was: the subject would not have come down to where it was
//! refused. Each trusts something.

use std::sync::Arc;

use tidegate_bundle::{Attrs, Policy};
use tidegate_monitor::Op;

use super::draft::{Draft, Trust};
use super::object::shown;
use super::refusal::{Fall, Refusal};
use super::statement::{Statement, kept};
use super::trusted::is_interpreter;

/// The drafts: for each fall below the level that is needed a fix, and all of them in one.
pub fn drafts(refusal: &Refusal, policy: &Arc<Policy>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    if let Some(needed) = refusal.needs(policy) {
        let mut falls = refusal.falls.clone();
        if refusal.is_hindered_fall() {
            falls = vec![refusal.attempted()];
        }
        falls.retain(|fall| fall.to < needed);
        let options: Vec<_> = falls.iter().map(|f| of_fall(f, needed, policy)).collect();
        let most = options.iter().map(Vec::len).max().unwrap_or(0);
        for nth in 0..most {
            // a fall that has fewer fixes gives its last
            let each = options.iter().map(|o| o.get(nth).or(o.last()));
            drafts.extend(together(each));
        }
    }
    drafts.extend(permissive(refusal, policy));
    drafts
}

/// All in one; `None` if one is missing, or they contradict each other.
fn together<'d>(mut each: impl Iterator<Item = Option<&'d Draft>>) -> Option<Draft> {
    let first = each.next()??.clone();
    each.try_fold(first, |all, next| all.and(next?))
}

/// What would have kept a subject from a fall below a level, the narrowest first.
fn of_fall(fall: &Fall, needed: u8, policy: &Policy) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let name = |level: u8| policy.levels.get(usize::from(level)).cloned();
    let Some(level) = name(needed) else {
        return drafts;
    };
    if fall.is_by_network() {
        drafts.extend(fall.address().map(|a| network(&level, a)));
    } else if let Some(path) = &fall.object.path {
        drafts.extend(file(fall, path, needed, &level, policy));
    }
    let top = name(policy.top()).unwrap_or_default();
    if let Some(exe) = trustable(fall.exe.as_deref(), policy) {
        let rule = policy.lookup(exe.as_bytes());
        let attrs = kept(policy, rule, policy.top());
        let program = shown(exe);
        let with = |attr| {
            vec![Statement::path(
                &top,
                exe,
                (attrs - Attrs::NONETDEMOTE) | attr,
            )]
        };
        if fall.is_by_network() {
            let lets = format!("{program} keeps its level whatever the network says");
            let gives = format!(
                "a machine that takes {program} over through the network has the level that {program} was started at"
            );
            let draft = Draft::new(with(Attrs::NONETDEMOTE), 2, lets, gives);
            drafts.push(draft.trusting(Trust::ProgramOnNetwork));
        }
        let lets = format!("{program} keeps its level whatever it reads");
        let gives = format!(
            "data that {program} reads and that takes it over acts at the level that {program} was started at"
        );
        drafts.push(Draft::new(with(Attrs::NODEMOTE), 2, lets, gives).trusting(Trust::Program));
    }
    drafts
}

fn network(level: &str, address: std::net::IpAddr) -> Draft {
    let shown = address.to_canonical();
    Draft::new(
        vec![Statement::network(level, address)],
        1,
        format!("a process that hears {shown} stays at {level}"),
        format!(
            "data from {shown} is believed as {level}, whichever program answers there; and lower processes no longer send to it"
        ),
    )
    .trusting(Trust::Network)
}

/// The file that was read is trusted: by a rule, or as it is now.
fn file(fall: &Fall, path: &str, needed: u8, level: &str, policy: &Policy) -> Vec<Draft> {
    let rule = policy.lookup(path.as_bytes());
    let built_in = policy.rules.get(rule.source as usize);
    if built_in.is_some_and(|source| source.line == 0) {
        return Vec::new(); // a process that reads a level's file wants to fall
    }
    let shown = shown(path);
    let verb = if fall.op == Op::Exec {
        "executes"
    } else {
        "reads"
    };
    let lets = format!("a process that {verb} {shown} stays at {level}");
    let promote = Draft::promote(
        path,
        needed,
        lets.clone(),
        format!("the present content of {shown} is believed as {level}: only right if you know it"),
    )
    .trusting(Trust::Object);
    if fall.object.given {
        return vec![promote];
    }
    let attrs = kept(policy, rule, needed);
    let rule = Draft::new(
        vec![Statement::path(level, path, attrs)],
        1,
        lets,
        format!(
            "the content of {shown} is believed as {level}, and lower processes no longer change it: only right if you know where it comes from"
        ),
    )
    .trusting(Trust::Object);
    vec![rule, promote]
}

/// Everything that the program is refused is let through, and recorded.
fn permissive(refusal: &Refusal, policy: &Policy) -> Option<Draft> {
    let exe = trustable(refusal.exe.as_deref(), policy)?;
    let attrs = kept(policy, policy.lookup(exe.as_bytes()), policy.top());
    let program = shown(exe);
    let statement = Statement::path(policy.levels.last()?, exe, attrs | Attrs::PERMISSIVE);
    let draft = Draft::new(
        vec![statement],
        3,
        format!("{program} is refused nothing, and each act is recorded"),
        format!("nothing that {program} does below the top is refused any more: for a trial only"),
    );
    Some(draft.trusting(Trust::Anything))
}

/// A program that a statement may trust: its file is at the top, where nobody below
/// changed it, and it does not do what others have written.
fn trustable<'e>(exe: Option<&'e str>, policy: &Policy) -> Option<&'e str> {
    let exe = exe.filter(|exe| exe.starts_with('/') && !exe.contains('\0'))?;
    let at_top = policy.lookup(exe.as_bytes()).level == policy.top();
    (at_top && !is_interpreter(exe)).then_some(exe)
}
