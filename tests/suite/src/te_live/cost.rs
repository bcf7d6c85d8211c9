//! What revocation costs, in time: of a boolean that takes back what is held through so many descriptors or connections.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};

use crate::te_live::domain::{Holder, set};

/// Descriptors that a process may have.
const FILES: u64 = 20_000;

/// Each is measured so often, and the middle one told.
const TIMES: usize = 5;

fn median(mut measure: impl FnMut() -> Duration) -> f64 {
    let mut all: Vec<Duration> = (0..TIMES).map(|_| measure()).collect();
    all.sort();
    all[TIMES / 2].as_secs_f64() * 1e3
}

fn timed(values: &[&str]) -> Duration {
    let start = Instant::now();
    if let Err(said) = set(values) {
        panic!("{said}");
    }
    start.elapsed()
}

/// Prints milliseconds of the whole command, from its start to its end.
pub fn measure() {
    // for a process that holds ten thousand files
    setrlimit(Resource::RLIMIT_NOFILE, FILES, FILES).expect("root may");
    let nobody = median(|| {
        let took = timed(&["may_read=off"]);
        timed(&["may_read=on"]);
        took
    });
    println!("{:<28} {nobody:>8.0} ms", "nobody is governed");
    for count in [1, 10, 100, 1000, 10_000] {
        let mut holder = Holder::new();
        assert_eq!(holder.does(&format!("open-many {count}")), "ok");
        let took = median(|| {
            let took = timed(&["may_read=off"]);
            assert_eq!(holder.does("read"), "13");
            timed(&["may_read=on"]);
            assert_eq!(holder.does("read"), "ok");
            took
        });
        println!("{:<28} {took:>8.0} ms", format!("{count} descriptors"));
    }
    let listener = TcpListener::bind("127.0.0.1:7001").expect("a port");
    for count in [1, 2, 4, 8, 16] {
        let mut holder = Holder::new();
        assert_eq!(
            holder.does(&format!("connect-many 127.0.0.1:7001 {count}")),
            "ok"
        );
        let ends: Vec<_> = (0..count).map(|_| listener.accept()).collect();
        let took = median(|| {
            let took = timed(&["may_connect=off"]);
            assert_eq!(holder.does("send"), "13");
            timed(&["may_connect=on"]);
            assert_eq!(holder.does("send"), "ok");
            took
        });
        drop(ends);
        println!("{:<28} {took:>8.0} ms", format!("{count} connections"));
    }
}
