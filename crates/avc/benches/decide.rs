//! What a cached decision costs, by one thread and by several; and, where the daemon runs with a SELinux policy, what one
//! costs that has to be asked for.
//!
//! `cargo bench -p tidegate-avc`; `AVC_SOURCE=CONTEXT AVC_TARGET=CONTEXT` name contexts that the policy in force has.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use divan::{Bencher, black_box};
use tidegate_avc::{Access, Avc, AvcError, Class, Question, Reply, SecurityServer, Sid};
use tidegate_protocol::{Page, PageStatus};

fn main() {
    divan::main();
}

#[derive(Debug)]
struct All;

impl SecurityServer for All {
    fn ask(&self, _: Question, _: Option<BorrowedFd<'_>>) -> Result<Reply, AvcError> {
        Ok(Reply::Access(Access {
            allowed: !0,
            permissions: vec!["read".into()],
            sequence: 2,
            ..Access::default()
        }))
    }
}

struct Stage {
    avc: Avc,
    class: Class,
    sids: Vec<Sid>,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let page = Page::create(&dir.path().join("status")).expect("a page can be made");
        page.publish(PageStatus {
            sequence: 0,
            enforcing: true,
            policyload: 1,
            deny_unknown: true,
            enabled: true,
        });
        let avc = Avc::with(page, Box::new(All));
        let class = avc.class("document", &["read"]).expect("there is room");
        let sids = (0..32).map(|n| avc.sid(&n.to_string()).expect("there is room"));
        let sids = sids.collect();
        Stage { avc, class, sids }
    })
}

#[divan::bench(threads = [1, 2, 4], sample_size = 1000)]
fn cached(bencher: Bencher) {
    let stage = stage();
    bencher.bench(|| {
        let (source, target) = (black_box(stage.sids[3]), black_box(stage.sids[7]));
        stage.avc.has_perm(source, target, &stage.class, 1, &"")
    });
}

#[divan::bench(sample_size = 1000)]
fn cached_among_a_thousand(bencher: Bencher) {
    let stage = stage();
    let mut n = 0usize;
    bencher.bench_local(|| {
        n = n.wrapping_add(7);
        let (source, target) = (stage.sids[n % 32], stage.sids[n / 32 % 32]);
        stage.avc.has_perm(source, target, &stage.class, 1, &"")
    });
}

#[divan::bench(sample_size = 1000)]
fn a_context_that_is_known(bencher: Bencher) {
    let stage = stage();
    bencher.bench(|| stage.avc.sid(black_box("17")));
}

#[divan::bench(sample_count = 20, sample_size = 5)]
fn asked_of_the_daemon(bencher: Bencher) {
    let names = ["AVC_SOURCE", "AVC_TARGET"].map(std::env::var);
    let (Ok(avc), [Ok(source), Ok(target)]) = (Avc::open(), names) else {
        println!("no daemon, or no contexts: not measured");
        return;
    };
    let (source, target) = (avc.sid(&source), avc.sid(&target));
    let (source, target) = (
        source.expect("there is room"),
        target.expect("there is room"),
    );
    let mut n = 0;
    bencher.bench_local(|| {
        // a class of its own each time, so that none is in the cache
        n += 1;
        let class = avc.class("document", &["read", &n.to_string()]);
        avc.decision(source, target, &class.expect("there is room"))
    });
}
