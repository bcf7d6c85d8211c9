//! What fixes a refusal where no map does.

use tidegate_bundle::Policy;
use tidegate_monitor::{Op, Reason};

use super::name::split;
use super::refusal::Refusal;
use super::trusted::is_interpreter;
use crate::apparmor;

/// How to have the top level.
const AT_THE_TOP: &str = "run it at the top level: from a root login, by `run0`, or as a service";

/// What helps, in words.
pub fn advice(refusal: &Refusal, policy: &Policy) -> String {
    let mut words = by_reason(refusal, policy).to_owned();
    if let Some(level) = chosen(refusal) {
        words = format!(
            "it was put at {level} by `tidegate run` or the like: run it at a higher level"
        );
    }
    if let Some(exe) = refusal.exe.as_deref().filter(|exe| is_interpreter(exe)) {
        words.push_str(&format!(
            "; {exe} itself is never to be trusted, as it runs code that others have written"
        ));
    }
    words
}

/// The level that the subject was put at on purpose.
fn chosen(refusal: &Refusal) -> Option<&str> {
    let path = refusal.falls.first()?.object.path.as_deref()?;
    let (dir, level) = split(path)?;
    (dir == "/run/tidegate/level").then_some(level)
}

fn by_reason(refusal: &Refusal, policy: &Policy) -> &'static str {
    match refusal.reason {
        Reason::TableFull => {
            "start with a larger `--given-entries`, or remove files that lower subjects, or those of a SELinux policy, have left"
        }
        Reason::Mapping => {
            "close its shared and writable mappings before it reads this, or read it in a process of its own"
        }
        Reason::Async => {
            "do this in a process without io_uring, AIO and the like; `sysctl kernel.io_uring_disabled=1` takes rings from Node (tidegate-troubleshooting(7))"
        }
        Reason::Busy if matches!(refusal.op, Op::Rename | Op::Unlink | Op::Link) => {
            "somebody has it open: close it, and try again"
        }
        Reason::Busy => {
            "try again: another thread was inside a call that could not be waited for; read this in a process of its own if it lasts"
        }
        Reason::NoLabel if matches!(refusal.op, Op::Signal) => {
            "it would choose who is signalled (F_SETOWN), and a process group, or a number of a PID namespace, is not known to be a process that it may signal: have it choose itself"
        }
        Reason::NoLabel => {
            "it has no label: its filesystem is mounted in another namespace only, or its tree is too deep (tidegate-troubleshooting(7))"
        }
        Reason::Channel => {
            "it would read data that a lower process writes: have it opened by the process that is to read it"
        }
        Reason::Tree => {
            "copy instead: the files below the directory would get other rules; mv(1) does so by itself"
        }
        Reason::Names => {
            "copy instead: a file that has several names, or a level of its own, does not fall; mv(1) does so by itself"
        }
        Reason::TopOnly => AT_THE_TOP,
        Reason::Noopen => "have it opened by a program that has not fallen",
        Reason::Launder => "`tidegate promote` the file first, if you know what it holds",
        Reason::Profile | Reason::Disconnected | Reason::NoProfile | Reason::Source => {
            apparmor::advice(refusal.reason).unwrap_or(
                "a profile's rules decide about it: `tidegate learn` with `--profile` proposes such",
            )
        }
        Reason::Te => {
            "a SELinux policy decides about it: an `allow` rule for these types, or another context, fixes it"
        }
        Reason::Caps => "a capability file decides about it: a line of the subject's fixes it",
        Reason::Trust => {
            "install the library where the top level alone writes; to trace a trusted program (`nodemote`, `nonetdemote`), start it under the tracer, where it is not trusted"
        }
        Reason::Rule | Reason::NoCreator => by_operation(refusal, policy),
    }
}

fn by_operation(refusal: &Refusal, policy: &Policy) -> &'static str {
    if refusal.class == "system" {
        return AT_THE_TOP;
    }
    match refusal.op {
        Op::Signal | Op::Ptrace | Op::Sched | Op::Tty | Op::Key => {
            "a map does not speak of processes: do it from one that has not fallen, or start the other at its level (`tidegate run`)"
        }
        Op::Ipc | Op::Pipe | Op::Send if refusal.path().is_none() => {
            "it has the level of the process that made it: have it made at the lower level, or used by a process that has not fallen"
        }
        _ => match refusal.path() {
            None => "the record does not tell what it was about",
            Some(path) if path.starts_with("/proc/") || path.starts_with("/sys/") => {
                "the kernel's own files have no rule: write them from the top level, or from a process's own"
            }
            Some(path) if is_reserved(path, policy) => {
                "it is Tidegate's own: nothing below the top changes it"
            }
            Some(_) if refusal.falls.is_empty() => AT_THE_TOP,
            Some(_) => "do it from a process that has not fallen",
        },
    }
}

fn is_reserved(path: &str, policy: &Policy) -> bool {
    let rule = policy.lookup(path.as_bytes());
    let source = policy.rules.get(rule.source as usize);
    source.is_some_and(|source| source.line == 0)
}
