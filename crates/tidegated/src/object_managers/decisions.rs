//! The security server for object managers in user space: decides by the policy in force, in one thread, which has the
//! policy's rules at hand for as long as it is in force. That one thread serves all: a decision takes tens of
//! microseconds, and each asker waits for its own answer only so long.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_bundle::te::Te;
use tidegate_bundle::te::db::Context;
use tidegate_bundle::te::decide::Decider;
use tidegate_protocol::{Access, Code, Question, Reply};

use crate::enforcement::Enforcement;
use crate::error::{DaemonError, Outcome};
use crate::status_page::{Page, denies_unknown};
use crate::threads::{Threads, spawn};
use crate::watchdog::Who;

/// Questions that may wait.
const ROOM: usize = 64;

/// How long one may wait: the rules of a large policy are sorted anew after each reload.
const PATIENCE: Duration = Duration::from_secs(4);

/// How often the thread looks whether it is to end.
const BEAT: Duration = Duration::from_millis(500);

/// A permission that the asking process has to have, of the class `security` on the initial SID of
/// that name, if it is governed.
#[derive(Debug, Clone)]
pub struct Right {
    /// The context of the process that asks.
    pub context: String,
    /// The permission.
    pub permission: &'static str,
}

/// What is decided, and the right that it takes.
#[derive(Debug)]
struct Request {
    right: Option<Right>,
    question: Question,
    answer: SyncSender<Outcome<Reply>>,
}

/// The way to the thread.
#[derive(Debug)]
pub struct Security {
    requests: SyncSender<Request>,
    waiting: Mutex<Option<Receiver<Request>>>,
}

impl Security {
    /// Before the thread runs.
    pub fn new() -> Security {
        let (requests, waiting) = sync_channel(ROOM);
        Security {
            requests,
            waiting: Mutex::new(Some(waiting)),
        }
    }

    /// Has a question decided.
    pub fn decide(&self, question: Question, right: Option<Right>) -> Outcome<Reply> {
        let (answer, decided) = sync_channel(1);
        let request = Request {
            right,
            question,
            answer,
        };
        let busy = || {
            let message = "too many ask at once: ask again";
            DaemonError::new(Code::Internal, message)
        };
        self.requests.try_send(request).map_err(|e| match e {
            TrySendError::Full(_) => busy(),
            TrySendError::Disconnected(_) => DaemonError::new(Code::NotRunning, "the daemon ends"),
        })?;
        decided
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| Err(busy()))
    }
}

/// Starts the thread.
pub fn start(
    security: &Security,
    enforcement: &Arc<Enforcement>,
    threads: &Arc<Threads>,
) -> Outcome {
    let waiting = security.waiting.lock();
    let waiting = waiting.unwrap_or_else(|e| e.into_inner()).take();
    let waiting = waiting.ok_or_else(|| DaemonError::new(Code::Internal, "it has been started"))?;
    let page = Page::open()?;
    let (enforcement, all) = (Arc::clone(enforcement), Arc::clone(threads));
    let decides = move || {
        let mut next = None;
        while !all.ends() {
            all.beat(Who::Security);
            next = serve(&enforcement, &all, &page, &waiting, next);
        }
    };
    spawn("security", threads, decides).map(drop)
}

/// Answers by one policy, until there is another or nobody asks; what was asked then and is to be answered by the next.
fn serve(
    enforcement: &Enforcement,
    threads: &Threads,
    page: &Page,
    waiting: &Receiver<Request>,
    first: Option<Request>,
) -> Option<Request> {
    let request = first.or_else(|| waiting.recv_timeout(BEAT).ok())?;
    // a policy that is put in force while its rules are sorted has another number
    let number = enforcement.monitor.next_policy();
    let policy = match enforcement.policies.in_force(&enforcement.monitor) {
        Ok(policy) => policy,
        Err(failure) => {
            let _ = request.answer.send(Err(failure));
            return None;
        }
    };
    let Some(te) = &policy.te else {
        let message = "the policy in force has no SELinux policy: start or reload with --te";
        let _ = request
            .answer
            .send(Err(DaemonError::new(Code::No, message)));
        return None;
    };
    let server = Server {
        te,
        decider: te.decider(),
        deny_unknown: denies_unknown(&policy),
        seqno: enforcement
            .monitor
            .status()
            .map_or(0, |status| status.seqno),
    };
    let mut next = Some(request);
    while !threads.ends() {
        threads.beat(Who::Security);
        let Some(request) = next.take().or_else(|| waiting.recv_timeout(BEAT).ok()) else {
            continue;
        };
        // read first: a policy is in force before the page tells of it
        let sequence = page.sequence();
        if enforcement.monitor.next_policy() != number {
            return Some(request);
        }
        let answer = server.answer(&request.question, request.right.as_ref(), sequence);
        let _ = request.answer.send(answer);
    }
    None
}

/// A policy in force.
struct Server<'p> {
    te: &'p Te,
    decider: Decider<'p>,
    deny_unknown: bool,
    seqno: u32,
}

impl Server<'_> {
    fn answer(&self, question: &Question, right: Option<&Right>, sequence: u32) -> Outcome<Reply> {
        if let Some(right) = right {
            self.permit(right)?;
        }
        let context = |made: Result<Context, Context>| match made {
            Ok(context) => Ok(Reply::Context {
                context: self.te.db.context_text(&context),
                governed: true,
            }),
            Err(context) => Err(DaemonError::new(
                Code::Usage,
                format!(
                    "it would be `{}`, which the policy does not have",
                    self.te.db.context_text(&context)
                ),
            )),
        };
        match question {
            Question::Access {
                source,
                target,
                class,
            } => {
                let (source, target) = (self.context(source)?, self.context(target)?);
                Ok(Reply::Access(
                    self.access(&source, &target, class, sequence),
                ))
            }
            Question::Create {
                source,
                target,
                class,
                name,
            } => {
                let (source, target) = (self.context(source)?, self.context(target)?);
                let class = self.class(class)?;
                context(
                    self.decider
                        .transition(&source, &target, class, name.as_deref()),
                )
            }
            Question::Member {
                source,
                target,
                class,
            } => {
                let (source, target) = (self.context(source)?, self.context(target)?);
                context(self.decider.member(&source, &target, self.class(class)?))
            }
            Question::Relabel {
                source,
                target,
                class,
            } => {
                let (source, target) = (self.context(source)?, self.context(target)?);
                context(self.decider.change(&source, &target, self.class(class)?))
            }
            Question::Context { context: text } => context(Ok(self.context(text)?)),
            Question::Initial { name } => context(Ok(self.initial(name)?.clone())),
            Question::Class { class } => {
                let class = self.class(class)? as usize - 1;
                Ok(Reply::Class {
                    permissions: self.te.db.classes[class].permissions.clone(),
                })
            }
            Question::Peer | Question::Process | Question::Own | Question::Record(_) => Err(
                DaemonError::new(Code::Internal, "the policy has no say in this"),
            ),
        }
    }

    /// What a source may do. Of a class that the policy does not know it says no permissions.
    fn access(&self, source: &Context, target: &Context, class: &str, sequence: u32) -> Access {
        let unknown = Access {
            auditdeny: u32::MAX,
            deny_unknown: self.deny_unknown,
            seqno: self.seqno,
            sequence,
            ..Access::default()
        };
        let permissive = self.te.db.permissive.contains(source.kind as usize - 1);
        let Some(number) = self.te.db.class(class) else {
            return Access {
                permissive,
                ..unknown
            };
        };
        let access = self.decider.access(source, target, number);
        let recorded = |mask: u32| if access.never_audited { 0 } else { mask };
        Access {
            allowed: access.allowed,
            auditallow: recorded(access.auditallow),
            auditdeny: recorded(access.auditdeny),
            permissive,
            permissions: self.te.db.classes[number as usize - 1].permissions.clone(),
            ..unknown
        }
    }

    /// Refuses a process that may not ask.
    fn permit(&self, right: &Right) -> Outcome {
        // a context that went with its policy is what has no label
        let unlabeled = || self.initial("unlabeled").cloned();
        let source = self.context(&right.context).or_else(|_| unlabeled())?;
        let target = self.initial("security")?;
        let access = self.access(&source, target, "security", 0);
        let known = access
            .permissions
            .iter()
            .position(|p| p == right.permission);
        let allowed = match known {
            Some(bit) => access.allowed & 1 << bit != 0,
            None => !access.deny_unknown,
        };
        match allowed || access.permissive {
            true => Ok(()),
            false => Err(DaemonError::new(
                Code::NotPermitted,
                format!(
                    "{} may not {{ {} }} {}:security, which this question takes",
                    right.context,
                    right.permission,
                    self.te.db.context_text(target)
                ),
            )),
        }
    }

    fn context(&self, text: &str) -> Outcome<Context> {
        let context = self.te.db.context(text);
        context.map_err(|e| DaemonError::new(Code::Usage, e))
    }

    fn class(&self, name: &str) -> Outcome<u32> {
        let unknown = || DaemonError::new(Code::Usage, format!("the policy has no class `{name}`"));
        self.te.db.class(name).ok_or_else(unknown)
    }

    fn initial(&self, name: &str) -> Outcome<&Context> {
        self.te.db.initial_sid(name).ok_or_else(|| {
            DaemonError::new(
                Code::Usage,
                format!("the policy has no initial SID `{name}`"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_bundle::te::example::example;

    use super::*;

    fn te() -> Te {
        Te {
            policy: Vec::new(),
            db: example(34),
            booleans: Vec::new(),
            files: None,
            ranges: Vec::new(),
            sight: false,
        }
    }

    fn server(te: &Te) -> Server<'_> {
        Server {
            te,
            decider: te.decider(),
            deny_unknown: true,
            seqno: 7,
        }
    }

    const BOSS: &str = "ann:clerk:boss_t:s0";

    #[test]
    fn a_decision_is_the_references_with_its_names() {
        let te = te();
        let server = server(&te);
        let question = |class: &str| Question::Access {
            source: BOSS.into(),
            target: "ann:object_r:doc_t:s0".into(),
            class: class.into(),
        };
        let Ok(Reply::Access(access)) = server.answer(&question("file"), None, 4) else {
            panic!("there is a decision");
        };
        let target = te.db.context("ann:object_r:file_t:s0").unwrap();
        let source = te.db.context(BOSS).unwrap();
        let expected = te.decider().access(&source, &target, 2);
        assert_eq!(access.allowed, expected.allowed);
        assert_eq!(access.permissions, te.db.classes[1].permissions);
        assert_eq!((access.seqno, access.sequence), (7, 4));
        let Ok(Reply::Access(access)) = server.answer(&question("document"), None, 4) else {
            panic!("of what is not known there is a decision, too");
        };
        assert!(access.permissions.is_empty() && access.deny_unknown && access.allowed == 0);
    }

    #[test]
    fn contexts_are_written_in_one_way_and_others_refused() {
        let te = te();
        let server = server(&te);
        let ask = |text: &str| {
            let question = Question::Context {
                context: text.into(),
            };
            server.answer(&question, None, 0)
        };
        let Ok(Reply::Context { context, .. }) = ask("ann:object_r:doc_t:s0") else {
            panic!("an alias is known");
        };
        assert_eq!(context, "ann:object_r:file_t:s0");
        assert_eq!(ask("ann:clerk:file_t:s0").unwrap_err().code(), Code::Usage);
        assert_eq!(ask("x").unwrap_err().code(), Code::Usage);
    }

    #[test]
    fn who_asks_has_to_be_allowed_where_the_policy_knows_of_it() {
        let mut te = te();
        // what a policy does not know is refused, or not
        let initial = te.db.initial_sids[0].1.clone();
        te.db.initial_sids.push((2, initial));
        let right = Right {
            context: BOSS.into(),
            permission: "compute_av",
        };
        let mut server = server(&te);
        let refused = server.permit(&right).unwrap_err();
        assert_eq!(refused.code(), Code::NotPermitted);
        assert!(refused.to_string().contains("{ compute_av }"));
        server.deny_unknown = false;
        server.permit(&right).unwrap();
    }
}
