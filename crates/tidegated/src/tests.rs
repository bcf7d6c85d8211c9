//! What the tests of several modules need.

use tidegate_monitor::{Event, Kind, Op, Reason};

/// A record to test with.
pub fn event(kind: Kind) -> Event {
    Event {
        id: 1,
        time: 0,
        prev: None,
        start: 0,
        kind,
        op: Some(Op::OpenWrite),
        reason: Reason::Rule,
        class: None,
        seqno: 1,
        pid: 412,
        tid: 412,
        uid: 1000,
        payer: 1000,
        comm: "sh".into(),
        from: 0,
        to: 0,
        object: 1,
        source: None,
        peer: None,
        address: None,
        path: None,
        dev: 1,
        ino: 2,
        capability: None,
        request: None,
        asked: None,
        caps: None,
    }
}
