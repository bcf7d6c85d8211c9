//! The cache against a model: a security server whose policy changes while threads ask.
//!
//! A policy allows a permission if a hash of its number and the question says so. What the cache says has to be what one of
//! the policies said that were in force between the call's beginning and its end: never what an older one said.

use std::collections::HashMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tidegate_avc::{
    Access, Avc, AvcError, Class, Denied, Question, Reply, SecurityServer, Sid, Told, Verdict,
};
use tidegate_protocol::{Page, PageStatus};

const PERMISSIONS: [&str; 4] = ["create", "read", "write", "delete"];

/// What a policy of this number says: mixed enough that each one says something else.
fn allowed(policy: u32, source: &str, target: &str) -> u32 {
    let mut hash = u64::from(policy).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in source.bytes().chain(target.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash >> 40) as u32 & 0xf
}

/// The kernel's policy and the page, as a daemon changes them.
#[derive(Debug)]
struct World {
    policy: AtomicU32,
    page: Page,
    permissive: AtomicBool,
    dead: AtomicBool,
    /// Policies that come while the next answers are on their way.
    overtaking: AtomicU32,
    asked: AtomicU32,
    records: Mutex<Vec<Told>>,
}

#[derive(Debug)]
struct Server(Arc<World>);

impl SecurityServer for Server {
    fn ask(&self, question: Question, _: Option<BorrowedFd<'_>>) -> Result<Reply, AvcError> {
        let world = &self.0;
        if world.dead.load(Ordering::SeqCst) {
            return Err(AvcError::NotRunning);
        }
        match question {
            Question::Access {
                source,
                target,
                class,
            } => {
                world.asked.fetch_add(1, Ordering::Relaxed);
                // in the daemon's order
                let sequence = world.page.sequence();
                let policy = world.policy.load(Ordering::SeqCst);
                if world.overtaking.load(Ordering::SeqCst) > 0 {
                    world.overtaking.fetch_sub(1, Ordering::SeqCst);
                    world.reload(true, true);
                }
                if source == "invalid" {
                    return Err(AvcError::Invalid(source));
                }
                let permissions = PERMISSIONS.map(str::to_owned).to_vec();
                Ok(Reply::Access(Access {
                    allowed: allowed(policy, &source, &target),
                    auditallow: if source == "watched" { !0 } else { 0 },
                    auditdeny: if source == "silent" { 0 } else { !0 },
                    permissive: world.permissive.load(Ordering::SeqCst),
                    permissions: if class == "document" {
                        permissions
                    } else {
                        Vec::new()
                    },
                    deny_unknown: policy.is_multiple_of(2),
                    seqno: policy,
                    sequence,
                }))
            }
            Question::Record(told) => {
                world.records.lock().unwrap().push(told);
                Ok(Reply::Recorded)
            }
            _ => Err(AvcError::Failed("not asked here".into())),
        }
    }
}

struct Stage {
    _dir: tempfile::TempDir,
    world: Arc<World>,
    avc: Arc<Avc>,
    document: Class,
}

fn stage() -> Stage {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().join("status");
    let world = Arc::new(World {
        policy: AtomicU32::new(0),
        page: Page::create(&path).unwrap(),
        permissive: false.into(),
        dead: false.into(),
        overtaking: 0.into(),
        asked: 0.into(),
        records: Mutex::default(),
    });
    // a second mapping, as another process has it
    let page = Page::create(&path).unwrap();
    let avc = Arc::new(Avc::with(page, Box::new(Server(Arc::clone(&world)))));
    let document = avc.class("document", &PERMISSIONS).unwrap();
    Stage {
        _dir: dir,
        world,
        avc,
        document,
    }
}

impl World {
    /// As `reload` does it: in force first, then told.
    fn reload(&self, enabled: bool, enforcing: bool) -> u32 {
        let policy = self.policy.fetch_add(1, Ordering::SeqCst) + 1;
        self.page.publish(PageStatus {
            sequence: 0,
            enforcing,
            policyload: policy,
            deny_unknown: policy.is_multiple_of(2),
            enabled,
        });
        policy
    }
}

fn is_allowed(stage: &Stage, source: Sid, target: Sid, bits: u32) -> bool {
    stage
        .avc
        .has_perm(source, target, &stage.document, bits, &"it")
        .is_ok()
}

#[derive(Debug, Clone)]
enum Step {
    Ask(usize, usize, u32),
    Reload,
    Permissive(bool),
    Die(bool),
    Stop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..6usize, 0..6usize, 1..16u32).prop_map(|(s, t, b)| Step::Ask(s, t, b)),
        3 => Just(Step::Reload),
        1 => any::<bool>().prop_map(Step::Permissive),
        1 => any::<bool>().prop_map(Step::Die),
        1 => Just(Step::Stop),
    ]
}

proptest! {
    #[test]
    fn each_answer_is_the_policys_in_force(steps in prop::collection::vec(step(), 1..200)) {
        let stage = stage();
        let (world, avc) = (&stage.world, &stage.avc);
        let mut known: HashMap<(usize, usize), (u32, bool)> = HashMap::new();
        let (mut policy, mut enabled, mut permissive) = (world.reload(true, true), true, false);
        for step in steps {
            match step {
                Step::Ask(s, t, bits) => {
                    let (source, target) = (format!("s{s}"), format!("t{t}"));
                    let sids = (avc.sid(&source).unwrap(), avc.sid(&target).unwrap());
                    let got = is_allowed(&stage, sids.0, sids.1, bits);
                    let dead = world.dead.load(Ordering::SeqCst);
                    let is_known = known.get(&(s, t)).filter(|(of, _)| *of == policy);
                    let lets = match is_known {
                        _ if !enabled => true,
                        // as it was when it was decided
                        Some((_, permissive)) => *permissive,
                        None if dead => false,
                        None => permissive,
                    };
                    let decided = is_known.is_some() || !dead;
                    let allows = decided && bits & !allowed(policy, &source, &target) == 0;
                    prop_assert_eq!(got, lets || allows);
                    if enabled && decided && is_known.is_none() {
                        known.insert((s, t), (policy, permissive));
                    }
                }
                Step::Reload => (policy, enabled) = (world.reload(true, true), true),
                Step::Permissive(is) => {
                    permissive = is;
                    world.permissive.store(is, Ordering::SeqCst);
                }
                Step::Die(is) => world.dead.store(is, Ordering::SeqCst),
                Step::Stop => (policy, enabled) = (world.reload(false, false), false),
            }
        }
    }
}

#[test]
fn while_policies_change_no_thread_uses_one_that_was_replaced_before_it_asked() {
    let stage = stage();
    stage.world.reload(true, true);
    // the newest policy whose reload has returned
    let returned = Arc::new(AtomicU32::new(1));
    let over = Arc::new(AtomicBool::new(false));
    let askers: Vec<_> = (0..3u64)
        .map(|seed| {
            let (world, avc) = (Arc::clone(&stage.world), Arc::clone(&stage.avc));
            let (returned, over) = (Arc::clone(&returned), Arc::clone(&over));
            let document = stage.document.clone();
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut asked = 0u32;
                while !over.load(Ordering::Relaxed) {
                    let (source, target) = (random.u8(0..8), random.u8(0..8));
                    let texts = (format!("s{source}"), format!("t{target}"));
                    let sids = (avc.sid(&texts.0).unwrap(), avc.sid(&texts.1).unwrap());
                    let bits = 1 << random.u32(0..4);
                    let before = returned.load(Ordering::SeqCst);
                    let got = avc.has_perm_noaudit(sids.0, sids.1, &document, bits);
                    // one that is being put in force may have decided as well
                    let after = world.policy.load(Ordering::SeqCst);
                    if let Err(Denied::Undecided(_)) = got {
                        continue;
                    }
                    let of = |policy| bits & !allowed(policy, &texts.0, &texts.1) == 0;
                    assert!(
                        (before..=after).any(|policy| of(policy) == got.is_ok()),
                        "{texts:?} {bits} {before}..{after}"
                    );
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    for n in 0..3000 {
        let policy = stage.world.reload(true, true);
        returned.store(policy, Ordering::SeqCst);
        if n % 4 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
    over.store(true, Ordering::Relaxed);
    let asked: u32 = askers.into_iter().map(|a| a.join().unwrap()).sum();
    let missed = stage.world.asked.load(Ordering::Relaxed);
    assert!(asked > 1000, "{asked}");
    println!("{asked} decisions, {missed} asked for");
}

#[test]
fn an_answer_that_a_policy_overtakes_is_neither_used_nor_kept() {
    let stage = stage();
    stage.world.reload(true, true);
    for n in 0..200 {
        let (source, target) = (format!("s{n}"), "t".to_owned());
        let sids = (
            stage.avc.sid(&source).unwrap(),
            stage.avc.sid(&target).unwrap(),
        );
        stage.world.overtaking.store(n % 4, Ordering::SeqCst);
        for _ in 0..2 {
            let got = stage.avc.decision(sids.0, sids.1, &stage.document).unwrap();
            let policy = stage.world.policy.load(Ordering::SeqCst);
            assert_eq!(got.allowed, allowed(policy, &source, &target));
        }
    }
    // one after the other, without end: no decision
    stage.world.overtaking.store(1000, Ordering::SeqCst);
    let (source, target) = (stage.avc.sid("x").unwrap(), stage.avc.sid("t").unwrap());
    let refused = stage.avc.has_perm(source, target, &stage.document, 0, &"");
    assert!(matches!(refused, Err(Denied::Undecided(_))));
}

#[test]
fn a_hit_asks_nobody() {
    let stage = stage();
    stage.world.reload(true, true);
    let (source, target) = (stage.avc.sid("s").unwrap(), stage.avc.sid("t").unwrap());
    for _ in 0..100 {
        let _ = stage
            .avc
            .has_perm_noaudit(source, target, &stage.document, 0);
    }
    assert_eq!(stage.world.asked.load(Ordering::Relaxed), 1);
}

#[test]
fn without_the_daemon_what_is_not_known_is_refused_and_what_is_known_counts() {
    let stage = stage();
    stage.world.reload(true, true);
    let avc = &stage.avc;
    let (source, target) = (avc.sid("s").unwrap(), avc.sid("t").unwrap());
    let bits = allowed(1, "s", "t");
    avc.has_perm(source, target, &stage.document, bits, &"")
        .unwrap();
    stage.world.dead.store(true, Ordering::SeqCst);
    avc.has_perm(source, target, &stage.document, bits, &"")
        .unwrap();
    let other = avc.sid("u").unwrap();
    let refused = avc.has_perm(other, target, &stage.document, 0, &"");
    assert!(matches!(
        refused,
        Err(Denied::Undecided(AvcError::NotRunning))
    ));
    // once nothing is enforced, nothing is refused
    stage.world.reload(true, false);
    avc.has_perm(other, target, &stage.document, 0xf, &"")
        .unwrap();
    stage.world.reload(false, false);
    avc.has_perm(other, target, &stage.document, 0xf, &"")
        .unwrap();
}

#[test]
fn what_the_policy_does_not_know_is_its_own_say() {
    let stage = stage();
    let avc = &stage.avc;
    let parcel = avc.class("parcel", &["send"]).unwrap();
    let (source, target) = (avc.sid("s").unwrap(), avc.sid("t").unwrap());
    for _ in 0..4 {
        let policy = stage.world.reload(true, true);
        let got = avc.has_perm_noaudit(source, target, &parcel, 1);
        assert_eq!(got.is_ok(), !policy.is_multiple_of(2), "{policy}");
        // a bit that was never declared is nobody's
        assert!(avc.has_perm_noaudit(source, target, &parcel, 2).is_err());
    }
    let invalid = avc.sid("invalid").unwrap();
    let refused = avc.has_perm(invalid, target, &stage.document, 0, &"");
    assert!(matches!(
        refused,
        Err(Denied::Undecided(AvcError::Invalid(_)))
    ));
}

#[test]
fn what_the_policy_wants_recorded_is_told() {
    let stage = stage();
    stage.world.reload(true, true);
    let avc = &stage.avc;
    let ask = |source: &str, bits: u32| {
        let (source, target) = (avc.sid(source).unwrap(), avc.sid("t").unwrap());
        avc.has_perm(source, target, &stage.document, bits, &"plans")
            .is_ok()
    };
    let told = || std::mem::take(&mut *stage.world.records.lock().unwrap());
    let missing = |source: &str| !allowed(1, source, "t") & 0xf;
    assert!(!ask("s", 0xf));
    let records = told();
    assert_eq!((records.len(), records[0].verdict), (1, Verdict::Denied));
    assert_eq!(records[0].request, "create read write delete");
    assert_eq!(records[0].denied, stage.document.names(missing("s")));
    assert_eq!(
        (records[0].about.as_str(), records[0].source.as_str()),
        ("plans", "s")
    );
    ask("silent", 0xf);
    assert!(missing("silent") != 0 && told().is_empty());
    ask("watched", allowed(1, "watched", "t"));
    assert_eq!(told()[0].verdict, Verdict::Audited);
    stage.world.reload(true, false);
    assert!(ask("s", 0xf));
    assert_eq!(told()[0].verdict, Verdict::Would);
}
