//! The policies that were in force lately: a record names its rule by the policy's
//! sequence number and an index.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tidegate_audit::{Placed, PolicyNames};
use tidegate_bundle::Policy;
use tidegate_flask::{Numbering, Sid};
use tidegate_lava::Place;
use tidegate_monitor::{Guard, Monitor, Refusals};
use tidegate_protocol::Code;

use crate::capability_files::CapsFiles;
use crate::error::{DaemonError, Outcome};
use crate::instance::{directory, write_whole};
use crate::locks::{CHANGE, CONTEXTS, Held, Ordered, POLICIES};
use crate::messages::complain;
use crate::paths;
use crate::status_page::Page;

/// Bundles that are kept: of older ones' records the rule is not known.
const KEPT: u32 = 256;

/// Ranges that contexts may be asked for with, those of policies among them.
const RANGES: usize = 1 << 14;

/// Policies held in memory; others are read again when a record asks.
const HELD: usize = 8;

/// The bundles in `/run/tidegate/policy`, the newest [`KEPT`].
#[derive(Debug, Default)]
pub struct Policies {
    /// Held while one is put in force: the next would fill the same tables.
    putting: Ordered<CHANGE, ()>,
    read: Ordered<POLICIES, BTreeMap<u32, Arc<Policy>>>,
    /// The names of contexts that have been asked for so far.
    numbering: Ordered<CONTEXTS, Numbering>,
    /// The capability files that sessions have.
    pub caps: CapsFiles,
}

/// A policy that has come into force.
#[derive(Debug)]
#[must_use]
pub struct InForce {
    /// Its number.
    pub seqno: u32,
    /// What could not be done after that: it is in force all the same.
    pub warnings: Vec<String>,
}

impl InForce {
    /// Tells the administrator of its warnings, where there is no answer that could.
    pub fn complain(&self) {
        for warning in &self.warnings {
            complain(warning);
        }
    }
}

/// What becomes of refusals, by the command line.
pub fn refusals(permissive: bool) -> Refusals {
    if permissive {
        Refusals::Recorded
    } else {
        Refusals::Enforced
    }
}

/// Makes room for one more, but not at the cost of a newer one than need be: records come in
/// the order of their policies.
fn hold<T>(read: &mut BTreeMap<u32, T>, seqno: u32, policy: T) {
    while read.len() >= HELD {
        read.pop_first();
    }
    read.insert(seqno, policy);
}

impl Policies {
    /// None read yet.
    pub fn new() -> Policies {
        Policies::default()
    }

    /// None read yet, but the names of the capability files whose images this monitor has.
    ///
    /// # Errors
    /// What the monitor says, if it cannot be asked for these.
    pub fn of(monitor: &Monitor) -> Result<Policies, tidegate_monitor::Error> {
        let policies = Policies::new();
        policies.caps.take_over(&monitor.images()?);
        Ok(policies)
    }

    fn read(&self) -> Held<'_, BTreeMap<u32, Arc<Policy>>> {
        self.read.lock()
    }

    fn numbering(&self) -> Held<'_, Numbering> {
        self.numbering.lock()
    }

    fn path(seqno: u32) -> PathBuf {
        PathBuf::from(paths::BUNDLES).join(format!("{seqno}.bundle"))
    }

    /// The policy of a number; `None` if its bundle is gone or damaged, or cannot be read just now.
    pub fn get(&self, seqno: u32) -> Option<Arc<Policy>> {
        if let Some(policy) = self.read().get(&seqno) {
            return Some(Arc::clone(policy));
        }
        // not held meanwhile: others ask for the policy in force
        let bytes = fs::read(Self::path(seqno)).ok()?;
        let policy = Arc::new(Policy::from_bundle(&bytes).ok()?);
        hold(&mut self.read(), seqno, Arc::clone(&policy));
        Some(policy)
    }

    /// The policy in force.
    ///
    /// # Errors
    /// Its bundle is gone, or cannot be read just now.
    pub fn in_force(&self, monitor: &Monitor) -> Outcome<Arc<Policy>> {
        let seqno = monitor.status()?.seqno;
        self.get(seqno).ok_or_else(|| {
            let bundle = Self::path(seqno);
            let message = format!(
                "the bundle of the policy in force, {}, is gone or cannot be read",
                bundle.display()
            );
            DaemonError::new(Code::Internal, message)
        })
    }

    /// The context behind a SID; `None` if it is not known, or cannot be read just now.
    pub fn context(&self, sid: Sid) -> Option<String> {
        self.named(|numbering| numbering.context(sid))
    }

    /// What the names of contexts say; of what is not among those read so far, they are read again.
    fn named<T>(&self, ask: impl Fn(&Numbering) -> Option<T>) -> Option<T> {
        let mut numbering = self.numbering();
        if let Some(found) = ask(&numbering) {
            return Some(found);
        }
        // names come with policies, and keep their numbers
        *numbering = Numbering::read(&fs::read(paths::CONTEXTS).ok()?)?;
        ask(&numbering)
    }

    /// The SID of a context that the policy in force has; its range, if it is new, gets a number by putting the policy in
    /// force anew.
    pub fn sid_of(
        &self,
        monitor: &Monitor,
        guard: &Guard,
        context: &str,
        by_root: bool,
    ) -> Outcome<Option<Sid>> {
        if let Some(sid) = self.sid(context) {
            return Ok(Some(sid));
        }
        // it takes a second, and everybody's decisions are made anew
        if !by_root {
            let message = "a range that nobody has asked for before takes root";
            return Err(DaemonError::new(Code::NotPermitted, message));
        }
        // whoever asks may ask for others without end
        if self.numbering().ranges.len() > RANGES {
            let message = format!(
                "{RANGES} ranges of levels have been asked for since the monitor was loaded"
            );
            return Err(DaemonError::new(Code::NotPermitted, message));
        }
        if let Some(range) = context.splitn(4, ':').nth(3) {
            let amended = self.amend(monitor, guard, |policy| {
                if let Some(te) = &mut policy.te {
                    te.ranges.push(range.to_owned());
                }
                Ok(())
            })?;
            amended.complain();
        }
        Ok(self.sid(context))
    }

    /// The SID of a context; `None` if one of its parts has no number.
    pub fn sid(&self, context: &str) -> Option<Sid> {
        self.named(|numbering| numbering.sid(context))
    }

    /// Puts the first policy in force: nothing is attached, so nobody was asked about what it has open.
    pub fn put_first(
        &self,
        monitor: &Monitor,
        policy: &Policy,
        refusals: Refusals,
    ) -> Outcome<InForce> {
        let _one = self.putting.lock();
        self.put_alone(monitor, policy, refusals)
    }

    /// Puts a policy in force, one at a time. On an error the one before is.
    ///
    /// What was open for writing may be above its holder under any policy that comes into force, also under the same one:
    /// what objects remember of their levels holds no more, and the paths that give levels may have changed. So all that
    /// follows the first one arms the guard.
    pub fn put(
        &self,
        monitor: &Monitor,
        guard: &Guard,
        policy: &Policy,
        refusals: Refusals,
    ) -> Outcome<InForce> {
        let _raising = guard.raise(monitor)?;
        let _one = self.putting.lock();
        self.put_alone(monitor, policy, refusals)
    }

    /// Puts the policy in force anew, with a change. On an error it is as it was.
    pub fn amend(
        &self,
        monitor: &Monitor,
        guard: &Guard,
        change: impl FnOnce(&mut Policy) -> Outcome,
    ) -> Outcome<InForce> {
        let _one = self.putting.lock();
        let mut policy = (*self.in_force(monitor)?).clone();
        change(&mut policy)?;
        let _raising = guard.raise(monitor)?;
        let refusals = refusals(monitor.status()?.permissive);
        self.put_alone(monitor, &policy, refusals)
    }

    /// Puts the policy in force anew: what objects remember of their levels holds no more.
    pub fn renew(&self, monitor: &Monitor, guard: &Guard) -> Outcome<InForce> {
        let _raising = guard.raise(monitor)?;
        let _one = self.putting.lock();
        let refusals = refusals(monitor.status()?.permissive);
        self.put_alone(monitor, &*self.in_force(monitor)?, refusals)
    }

    /// It is kept first: its records come at once.
    fn put_alone(
        &self,
        monitor: &Monitor,
        policy: &Policy,
        refusals: Refusals,
    ) -> Outcome<InForce> {
        let bundle = policy.to_bundle();
        self.keep(monitor.next_policy(), policy, &bundle)?;
        let page = Page::open()?;
        let put = monitor.put_policy(policy, refusals)?;
        // it is in force, whatever cannot be done now: a full disk is no reason to go without a policy
        let named = match policy.te {
            Some(_) => monitor
                .numbering()
                .map_err(DaemonError::from)
                .and_then(|numbering| write_whole(paths::CONTEXTS, &numbering.to_bytes(), 0o600)),
            None => Ok(()),
        };
        let told = page.renew(monitor, policy);
        let kept =
            directory(paths::STATE, 0o700).and_then(|()| write_whole(paths::LAST, &bundle, 0o600));
        let later = [
            (
                "programs of a model that the policy does not have stay attached, which takes time",
                put.kept.map(DaemonError::from),
            ),
            (
                "object managers may go on with what they decided before",
                told.err(),
            ),
            (
                "contexts may have no name until the next reload",
                named.err(),
            ),
            ("the next boot begins with an older policy", kept.err()),
        ];
        let warning = |(what, why): (&str, Option<DaemonError>)| Some(format!("{what}: {}", why?));
        Ok(InForce {
            seqno: put.seqno,
            warnings: later.into_iter().filter_map(warning).collect(),
        })
    }

    fn keep(&self, seqno: u32, policy: &Policy, bundle: &[u8]) -> Outcome {
        write_whole(&Self::path(seqno).to_string_lossy(), bundle, 0o644)?;
        hold(&mut self.read(), seqno, Arc::new(policy.clone()));
        let _ = fs::remove_file(Self::path(seqno.wrapping_sub(KEPT)));
        Ok(())
    }
}

impl PolicyNames for Policies {
    fn policy(&self, seqno: u32) -> Option<Arc<Policy>> {
        self.get(seqno)
    }

    fn context(&self, sid: Sid) -> Option<String> {
        self.named(|numbering| numbering.context(sid))
    }

    fn capability(&self, place: u32) -> Option<(Arc<Placed>, Place)> {
        self.caps.at(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_held_and_the_last_always() {
        let mut read = BTreeMap::new();
        for seqno in (1..1000).chain([5, 6]) {
            hold(&mut read, seqno, ());
            assert!(read.contains_key(&seqno) && read.len() <= HELD);
        }
    }
}
