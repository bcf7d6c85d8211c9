//! The system-wide start of the `te` model: every process is given the context that the executions since the machine
//! started would have given it, as SELinux would have from the beginning.
//!
//! The first process comes from the initial SID `kernel` by its program, each other one from its
//! parent by its own program; one that runs its parent's program is what its parent is. A process
//! whose parent has ended, so that it is the first one's child now, comes from the process that
//! began its session, where that still runs. The kernel's own threads are the initial SID `kernel`.
//! One that has exchanged what `/proc/PID/exe` says (PR_SET_MM) is `unlabeled`.
//!
//! No process escapes: from the moment on that all are governed, one that has not been given a
//! context is `unlabeled` (kernel/te/subject.h), until [`follow`] finds it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_bundle::Policy;
use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::Context;
use tidegate_bundle::te::decide::Decider;
use tidegate_flask::Sid;
use tidegate_monitor::{INIT, Monitor, Thread};
use tidegate_protocol::Code;

use crate::error::{DaemonError, Outcome};
use crate::policy_history::Policies;

/// Looks at everybody, of which each finds only what began meanwhile.
const PASSES: usize = 32;

/// What came of it.
#[derive(Debug, Default)]
pub struct Governed {
    /// Processes that have a context now, the kernel's threads left out.
    pub processes: usize,
    /// Domains that these are in.
    pub domains: usize,
    /// What is not as it should be.
    pub warnings: Vec<String>,
    /// What the first process has to do, and may not, in words.
    pub first_lacks: Option<String>,
}

/// The rules by which a policy can govern everybody.
///
/// # Errors
/// [`Code::Usage`] without a SELinux policy.
pub fn can_govern(policy: &Policy) -> Outcome<&Te> {
    let message = "--te-system needs a SELinux policy: --te names one";
    let te = policy.te.as_ref();
    te.ok_or_else(|| DaemonError::new(Code::Usage, message))
}

/// Brings everybody under the policy in force, which has a `te` model. `put` puts a policy in force that has more ranges.
///
/// # Errors
/// [`Code::Usage`] without a SELinux policy; what the kernel says.
pub fn govern(
    monitor: &Monitor,
    policies: &Policies,
    policy: &Policy,
    put: impl FnOnce(&Policy) -> Outcome,
) -> Outcome<Governed> {
    let te = can_govern(policy)?;
    let enters = Lineage::of(te.decider())?;
    let unlabeled = te.db.context_text(&enters.unlabeled);
    monitor.exempt_myself()?;
    // ranges that no context has had so far get their numbers
    let lineage = |threads: &[Thread]| enters.contexts(threads, |sid| policies.context(sid));
    let mut lacking = BTreeSet::new();
    for context in lineage(&monitor.threads()?)
        .into_values()
        .chain([unlabeled.clone()])
    {
        let range = context.splitn(4, ':').nth(3);
        if policies.sid(&context).is_none() {
            lacking.extend(range.map(str::to_owned));
        }
    }
    if !lacking.is_empty() {
        let mut te = te.clone();
        te.ranges.extend(lacking);
        put(&Policy {
            te: Some(te),
            ..policy.clone()
        })?;
    }
    // those that can be seen first, or all were nobody for as long as this takes
    adopt(monitor, policies, &enters)?;
    monitor.govern_everyone(Some(sid(policies, &unlabeled)?))?;
    let mut left = usize::MAX;
    for _ in 0..PASSES {
        left = adopt(monitor, policies, &enters)?;
        if left == 0 {
            break;
        }
    }
    monitor.adopt_sockets()?;
    let mut governed = Governed::default();
    if left > 0 {
        governed.warnings.push(format!(
            "{left} threads were too new to have a context: they are `{unlabeled}` until they are found"
        ));
    }
    let all = monitor.processes()?;
    let contexts: Vec<String> = all
        .iter()
        .filter_map(|process| policies.context(process.sid?))
        .collect();
    let domain = |context: &String| context.split(':').nth(2).map(str::to_owned);
    governed.processes = contexts.len();
    governed.domains = contexts
        .iter()
        .filter_map(domain)
        .collect::<BTreeSet<_>>()
        .len();
    governed.first_lacks = enters.first_lacks(&monitor.threads()?, policies);
    Ok(governed)
}

/// Gives a context to those that were met without since the last time.
pub fn follow(monitor: &Monitor, policies: &Policies) -> Outcome {
    let policy = policies.in_force(monitor)?;
    if let Some(te) = &policy.te {
        adopt(monitor, policies, &Lineage::of(te.decider())?)?;
    }
    Ok(())
}

/// One look at everybody; how many had no context.
fn adopt(monitor: &Monitor, policies: &Policies, enters: &Lineage<'_>) -> Outcome<usize> {
    let threads = monitor.threads()?;
    let contexts = enters.contexts(&threads, |sid| policies.context(sid));
    let mut sids: HashMap<&str, Sid> = HashMap::new();
    let mut without = Vec::new();
    for thread in threads.iter().filter(|thread| thread.sid.is_none()) {
        let context = contexts[&thread.pid].as_str();
        let sid = match sids.get(context) {
            Some(&sid) => sid,
            None => sid(policies, context)?,
        };
        sids.insert(context, sid);
        without.push((*thread, sid));
    }
    monitor.adopt_into(&without)?;
    Ok(without.len())
}

fn sid(policies: &Policies, context: &str) -> Outcome<Sid> {
    let lacks = || DaemonError::new(Code::Internal, format!("`{context}` has no number"));
    policies.sid(context).ok_or_else(lacks)
}

/// What is told of one process.
#[derive(Debug, Clone)]
struct Known {
    context: Context,
    program: Option<u64>,
}

/// Which process comes from which, and what it is by that.
struct Lineage<'p> {
    decider: Decider<'p>,
    process: u32,
    kernel: Context,
    unlabeled: Context,
}

impl<'p> Lineage<'p> {
    fn of(decider: Decider<'p>) -> Outcome<Lineage<'p>> {
        let db = decider.db();
        let initial = |name: &str| {
            let found = db.initial_sid(name).cloned();
            let message = format!("the policy has no initial SID `{name}`");
            found.ok_or_else(|| DaemonError::new(Code::Usage, message))
        };
        let no_class = || DaemonError::new(Code::Usage, "the policy has no class `process`");
        Ok(Lineage {
            process: db.process_class().ok_or_else(no_class)?,
            kernel: initial("kernel")?,
            unlabeled: initial("unlabeled")?,
            decider,
        })
    }

    /// The contexts of all processes, by their numbers.
    fn contexts(
        &self,
        threads: &[Thread],
        text: impl Fn(Sid) -> Option<String>,
    ) -> BTreeMap<u32, String> {
        let mut leaders: BTreeMap<u32, &Thread> = BTreeMap::new();
        for thread in threads {
            let first = leaders.entry(thread.pid).or_insert(thread);
            if thread.tid == thread.pid {
                *first = thread;
            }
        }
        let mut known: BTreeMap<u32, Known> = BTreeMap::new();
        for &pid in leaders.keys() {
            self.look(pid, &leaders, &text, &mut known);
        }
        let db = self.decider.db();
        let texts = known.into_iter();
        texts
            .map(|(pid, known)| (pid, db.context_text(&known.context)))
            .collect()
    }

    /// Finds a process's context, and before that those that it comes from.
    fn look(
        &self,
        pid: u32,
        leaders: &BTreeMap<u32, &Thread>,
        text: &impl Fn(Sid) -> Option<String>,
        known: &mut BTreeMap<u32, Known>,
    ) {
        let mut way = vec![pid];
        while let Some(&at) = way.last() {
            let thread = leaders[&at];
            let from = from(thread).filter(|from| leaders.contains_key(from));
            match from.filter(|from| !known.contains_key(from) && !way.contains(from)) {
                Some(from) if !known.contains_key(&at) => way.push(from),
                _ => {
                    let parent = from.and_then(|from| known.get(&from));
                    let of = self.one(thread, parent, text);
                    known.entry(at).or_insert(of);
                    way.pop();
                }
            }
        }
    }

    fn one(
        &self,
        thread: &Thread,
        parent: Option<&Known>,
        text: &impl Fn(Sid) -> Option<String>,
    ) -> Known {
        let context = |sid: Sid| {
            let context = text(sid).and_then(|text| self.decider.db().context(&text).ok());
            context.unwrap_or_else(|| self.unlabeled.clone())
        };
        let program = thread.program.map(|(program, _)| program);
        let from = parent.map_or(&self.kernel, |parent| &parent.context);
        let of = match (thread.sid, thread.program) {
            (Some(sid), _) => context(sid),
            _ if thread.kernel => self.kernel.clone(),
            // it says what it is itself
            (None, Some(_)) if !thread.executed => self.unlabeled.clone(),
            // not executed since its birth
            (None, Some(_)) if parent.is_some_and(|parent| parent.program == program) => {
                from.clone()
            }
            (None, Some((_, label))) => {
                let label = label.map_or_else(|| self.unlabeled.clone(), context);
                let becomes = self.decider.transition(from, &label, self.process, None);
                becomes.unwrap_or_else(|_| self.unlabeled.clone())
            }
            // it is ending
            (None, None) => from.clone(),
        };
        Known {
            context: of,
            program,
        }
    }

    /// What the first process could not do any more that it has to, if the policy refuses that.
    fn first_lacks(&self, threads: &[Thread], policies: &Policies) -> Option<String> {
        let db = self.decider.db();
        let first = threads.iter().find(|thread| thread.pid == INIT)?;
        let context = |sid: Sid| db.context(&policies.context(sid)?).ok();
        let of = context(first.sid?)?;
        let program = first.program.and_then(|(_, label)| context(label?));
        let program = program.unwrap_or_else(|| self.unlabeled.clone());
        let asked: [(&Context, &str, &[&str]); 4] = [
            (&of, "process", &["fork", "sigchld", "setsched"]),
            (
                &of,
                "capability",
                &["kill", "setuid", "setgid", "sys_admin", "sys_boot"],
            ),
            (&of, "unix_stream_socket", &["create", "listen", "accept"]),
            (&program, "file", &["read", "execute", "map"]),
        ];
        let mut lacks = Vec::new();
        for (target, class, names) in asked {
            let Some(number) = db.class(class) else {
                continue;
            };
            let access = self.decider.access(&of, target, number);
            if access.permissive {
                return None;
            }
            let missing: Vec<&str> = names
                .iter()
                .copied()
                .filter(|name| {
                    let bit = db.permission(number, name);
                    bit.is_some_and(|bit| access.allowed & bit == 0)
                })
                .collect();
            if !missing.is_empty() {
                let target = db.type_text(target.kind);
                lacks.push(format!("{{ {} }} {target}:{class}", missing.join(" ")));
            }
        }
        (!lacks.is_empty()).then(|| {
            format!(
                "the first process is {}, which may not {}: the machine will not run so; --permissive records what \
                 would be refused",
                db.context_text(&of),
                lacks.join(", ")
            )
        })
    }
}

/// The process that a process comes from.
fn from(thread: &Thread) -> Option<u32> {
    let orphan = thread.ppid == INIT && thread.session != thread.pid && thread.session > INIT;
    let from = if orphan { thread.session } else { thread.ppid };
    (from != 0 && from != thread.pid).then_some(from)
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::te::example::example;

    use super::*;

    const BOSS: &str = "ann:clerk:boss_t:s0";
    const FILE: &str = "ann:object_r:file_t:s0";

    /// The kernel's own are `boss_t`, what has no label is `file_t`.
    fn te() -> Te {
        let mut db = example(34);
        // with these, what `boss_t` becomes may not be
        db.role_transitions.clear();
        db.range_transitions.clear();
        let of = |text: &str| db.context(text).unwrap();
        db.initial_sids = vec![(1, of(BOSS)), (3, of(FILE))];
        Te {
            policy: Vec::new(),
            db,
            booleans: Vec::new(),
            files: None,
            ranges: Vec::new(),
            sight: false,
        }
    }

    fn thread(pid: u32, ppid: u32, session: u32, program: u64) -> Thread {
        Thread {
            pid,
            tid: pid,
            ppid,
            session,
            start: pid.into(),
            kernel: false,
            sid: None,
            program: Some((program, Some(Sid(9)))),
            executed: true,
        }
    }

    fn contexts(te: &Te, threads: &[Thread]) -> BTreeMap<u32, String> {
        let lineage = Lineage::of(te.decider()).unwrap();
        lineage.contexts(threads, |sid| match sid {
            Sid(9) => Some(FILE.into()),
            Sid(8) => Some(BOSS.into()),
            _ => None,
        })
    }

    /// What `boss_t` becomes by executing `file_t`.
    fn executed(te: &Te) -> String {
        let of = |text| te.db.context(text).unwrap();
        let process = te.db.process_class().unwrap();
        let becomes = te.decider().transition(&of(BOSS), &of(FILE), process, None);
        te.db.context_text(&becomes.unwrap())
    }

    #[test]
    fn each_comes_from_its_parent_by_its_own_program() {
        let te = te();
        let kernel = Thread {
            kernel: true,
            program: None,
            ..thread(2, 0, 0, 0)
        };
        // the order in which the kernel tells of them says nothing
        let all = [
            thread(7, 1, 7, 10),
            kernel,
            thread(1, 0, 1, 10),
            thread(3, 7, 7, 10),
        ];
        let found = contexts(&te, &all);
        assert_eq!(found[&2], BOSS);
        assert_eq!(found[&1], executed(&te));
        assert_ne!(found[&1], BOSS);
        assert_eq!(found[&7], found[&1], "not executed since its birth");
        assert_eq!(found[&3], found[&1]);
    }

    #[test]
    fn who_has_a_context_keeps_it_and_an_orphan_is_its_sessions() {
        let te = te();
        let has = |sid, thread| Thread {
            sid: Some(Sid(sid)),
            ..thread
        };
        let all = [
            thread(1, 0, 1, 10),
            has(8, thread(4, 1, 4, 11)),
            thread(5, 1, 4, 11),
            has(1, thread(6, 1, 6, 12)),
        ];
        let found = contexts(&te, &all);
        assert_eq!(found[&4], BOSS);
        assert_eq!(found[&5], BOSS, "its parent has ended");
        assert_eq!(found[&6], FILE, "a context that went with its policy");
    }

    #[test]
    fn who_says_that_it_is_another_program_has_no_label() {
        let te = te();
        let says = |thread| Thread {
            executed: false,
            ..thread
        };
        // the first one's program, or one that leads to another domain
        let all = [
            thread(1, 0, 1, 10),
            says(thread(4, 1, 4, 10)),
            says(thread(5, 1, 5, 11)),
            Thread {
                sid: Some(Sid(8)),
                ..says(thread(6, 1, 6, 11))
            },
        ];
        let found = contexts(&te, &all);
        assert_eq!((found[&4].as_str(), found[&5].as_str()), (FILE, FILE));
        assert_eq!(found[&6], BOSS, "what it has been given it keeps");
    }

    #[test]
    fn threads_that_come_from_each_other_end() {
        let te = te();
        let found = contexts(&te, &[thread(5, 6, 5, 1), thread(6, 5, 5, 2)]);
        assert_eq!(found.len(), 2);
    }
}
