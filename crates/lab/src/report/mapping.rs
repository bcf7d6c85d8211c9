//! Which of the lab's items stands for which published one: the one place where that is
//! decided.

/// What a published row is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The lab's items that do the same; the first that was measured is taken.
    Items(&'static [&'static str]),
    /// What a system adds to the first items together, less what it adds to the second ones.
    More(&'static [&'static str], &'static [&'static str]),
    /// Half of the item, which is a way and the way back.
    Half(&'static str),
    /// Nothing: shown as it was published only, for this reason.
    Absolute(&'static str),
}

impl Means {
    /// All items that it is made from.
    #[must_use]
    pub fn ids(&self) -> Vec<&'static str> {
        match self {
            Self::Items(ids) => ids.to_vec(),
            Self::More(plus, minus) => [*plus, *minus].concat(),
            Self::Half(id) => vec![id],
            Self::Absolute(_) => Vec::new(),
        }
    }
}

/// A row of the mapping: part of the source's name, part of the benchmark's name, the
/// item's beginning, and what they mean. The first row that fits counts.
pub type Entry = (&'static str, &'static str, &'static str, Means);

use Means::{Absolute, Half, Items, More};

const SHARE: &str = "a share of a processor that is computed from other rows";
const FLUKE: &str = "IPC between Fluke's servers; Linux has no such path";
const CACHES: &str = "counts cache misses, which the lab cannot see";
const SMALL: &str = "Linux has no small address spaces";
const RETRIEVAL: &str = "a part of what an active operation takes, which is not to be had apart";
const OTHERS: &str = "cited from others, not measured";
const DECISIONS: &str = "counts of decisions, not of time: the table of decisions has them";
const LATENCY: &str = "a latency of communication, of which the lab has no item";

/// The mapping.
#[rustfmt::skip]
pub const TABLE: &[Entry] = &[
    ("", "kernel build", "", Items(&["build-kernel/make"])),
    ("", "WebStone 2.5b4", "latency", Items(&["apache/latency, 32 clients", "nginx/latency, 32 clients"])),
    ("", "WebStone 2.5b4", "throughput", Items(&["apache/KB, 32 clients", "nginx/KB, 32 clients"])),
    ("", "WebStone conn", "8 clients", Items(&["apache/connection, 8 clients", "nginx/connection, 8 clients"])),
    ("", "WebStone conn", "16 clients", Items(&["apache/connection, 16 clients", "nginx/connection, 16 clients"])),
    ("", "WebStone conn", "24 clients", Items(&["apache/connection, 24 clients", "nginx/connection, 24 clients"])),
    ("", "WebStone conn", "32 clients", Items(&["apache/connection, 32 clients", "nginx/connection, 32 clients"])),

    ("", "UnixBench", "Dhrystone", Items(&["unixbench/dhrystone"])),
    ("", "UnixBench", "Double-Precision Whetstone", Items(&["unixbench/whetstone"])),
    ("", "UnixBench", "Execl", Items(&["unixbench/execl"])),
    ("", "UnixBench", "File Copy 256 ", Items(&["unixbench/file copy 256"])),
    ("", "UnixBench", "File Copy 1024 ", Items(&["unixbench/file copy 1024"])),
    ("", "UnixBench", "File Copy 4096 ", Items(&["unixbench/file copy 4096"])),
    ("", "UnixBench", "Pipe Throughput", Items(&["unixbench/pipe throughput"])),
    ("", "UnixBench", "Pipe-based Context", Items(&["unixbench/context switch"])),
    ("", "UnixBench", "Process Creation", Items(&["unixbench/process creation"])),
    ("", "UnixBench", "System Call Overhead", Items(&["unixbench/system call overhead"])),
    ("", "UnixBench", "8 Shell Script", Items(&["shell8/8 shell scripts"])),
    ("", "UnixBench", "Shell Scripts (8", Items(&["shell8/8 shell scripts"])),

    ("", "bandwidth", "pipe", Items(&["lmbench/pipe bandwidth"])),
    ("", "bandwidth", "AF Unix", Items(&["lmbench/unix bandwidth"])),
    ("", "bandwidth", "TCP", Items(&["lmbench/tcp bandwidth"])),
    ("", "bandwidth", "file reread", Items(&["lmbench/file reread"])),
    ("", "bandwidth", "mmap reread", Items(&["lmbench/mmap reread"])),
    ("", "bandwidth", "bcopy (libc)", Items(&["lmbench/bcopy libc"])),
    ("", "bandwidth", "bcopy (hand)", Items(&["lmbench/bcopy hand"])),
    ("", "bandwidth", "mem read", Items(&["lmbench/mem read"])),
    ("", "bandwidth", "mem write", Items(&["lmbench/mem write"])),
    ("", "lmbench 2 (Table 10)", "pipe", Absolute(LATENCY)),
    ("", "lmbench 2 (Table 10)", "AF_UNIX", Absolute(LATENCY)),
    ("", "lmbench 2 (Table 10)", "UDP", Absolute(LATENCY)),
    ("", "lmbench 2 (Table 10)", "RPC", Absolute(LATENCY)),
    ("", "lmbench 2 (Table 10)", "TCP", Absolute(LATENCY)),
    ("", "lmbench", "null call", Items(&["lmbench/null call"])),
    ("", "lmbench", "null I/O", Items(&["lmbench/null I/O"])),
    ("", "lmbench", "stat", Items(&["lmbench/stat"])),
    ("", "lmbench", "open/close", Items(&["lmbench/open+close"])),
    ("", "lmbench", "select TCP", Items(&["lmbench/select TCP"])),
    ("", "lmbench", "sig inst", Items(&["lmbench/signal install"])),
    ("", "lmbench", "sig handl", Items(&["lmbench/signal handle"])),
    ("Spenneberg", "lmbench", "start of a new process", Items(&["lmbench/fork"])),
    ("Spenneberg", "lmbench", "execution of a new process", Items(&["lmbench/exec"])),
    ("Spenneberg", "lmbench", "start of a process with its own shell", Items(&["lmbench/sh"])),
    ("Spenneberg", "lmbench", "shell script execution", Items(&["lmbench/sh"])),
    ("Spenneberg", "lmbench", "start of a file", Items(&["lmbench/exec"])),
    ("", "lmbench", "fork", Items(&["lmbench/fork"])),
    ("", "lmbench", "exec", Items(&["lmbench/exec"])),
    ("", "lmbench", "sh", Items(&["lmbench/sh"])),
    ("", "lmbench", "0K file create", Items(&["lmbench/0K create"])),
    ("", "lmbench", "0K file delete", Items(&["lmbench/0K delete"])),
    ("", "lmbench", "10K file create", Items(&["lmbench/10K create"])),
    ("", "lmbench", "10K file delete", Items(&["lmbench/10K delete"])),
    ("", "lmbench", "0KB create", Items(&["lmbench/0K create"])),
    ("", "lmbench", "0KB delete", Items(&["lmbench/0K delete"])),
    ("", "lmbench", "file create", Items(&["lmbench/0K create"])),
    ("", "lmbench", "file delete", Items(&["lmbench/0K delete"])),
    ("", "lmbench", "mmap latency", Items(&["lmbench/mmap"])),
    ("", "lmbench", "prot fault", Items(&["lmbench/protection fault"])),
    ("", "lmbench", "page fault", Items(&["lmbench/page fault"])),

    ("Lava", "fixed interception", "minimum", More(&["lava/free"], &[])),
    ("Lava", "fixed interception", "maximum", More(&["lava/free, 4 KB"], &[])),
    ("Lava", "authorization", "create active", More(&["lava/bind with a descriptor, and its end"], &["lava/bind", "lava/active"])),
    ("Lava", "authorization", "derive requirements, write", More(&["lava/active"], &["lava/free"])),
    ("Lava", "authorization", "derive requirements, open", More(&["lava/bind"], &["lava/free"])),
    ("Lava", "authorization", "retrieve active", Absolute(RETRIEVAL)),
    ("Lava", "one-way IPC, ideal", "fastest", Half("lava/active")),
    ("Lava", "one-way IPC, ideal", "typical upper", Half("lava/active, 4 KB")),
    ("Lava", "one-way IPC, ideal", "bind operation, minimum", Half("lava/bind")),
    ("Lava", "one-way IPC, ideal", "bind operation, upper", Half("lava-names/bind of a name, 255 bytes")),
    ("Lava", "one-way IPC, actual", "monitors and", Absolute(SMALL)),
    ("Lava", "one-way IPC, actual", "only monitors", Absolute(SMALL)),
    ("Lava", "one-way IPC, actual", "data cache", Absolute(CACHES)),
    ("Lava", "CPU share", "ideal, 10% bind", Items(&["lava-paced/a bind among ten"])),
    ("Lava", "CPU share", "ideal, 4 us", Absolute(SHARE)),
    ("Lava", "CPU share", "actual, small", Absolute(SMALL)),
    ("Lava", "CPU share", "actual, large", Items(&["lava-paced/active"])),
    ("Lava", "IPC alone", "", Absolute(OTHERS)),

    ("Flask", "make of 20", "elapsed", Items(&["build-flask/make"])),
    ("Flask", "(Table 6)", "", Absolute(DECISIONS)),
    ("Flask", "round trip", "", Absolute(FLUKE)),
    ("Flask", "revocation", "", Absolute(FLUKE)),
];

/// Every id that the lab's workloads print and that [`TABLE`] may name.
#[rustfmt::skip]
#[cfg(test)]
pub const IDS: &[&str] = &[
    "unixbench/execl", "unixbench/file copy 256", "unixbench/file copy 1024",
    "unixbench/file copy 4096", "unixbench/pipe throughput", "unixbench/context switch",
    "unixbench/process creation", "unixbench/system call overhead", "unixbench/dhrystone",
    "unixbench/whetstone", "shell8/8 shell scripts",
    "lmbench/null call", "lmbench/null I/O", "lmbench/stat", "lmbench/open+close",
    "lmbench/select TCP", "lmbench/signal install", "lmbench/signal handle", "lmbench/fork",
    "lmbench/exec", "lmbench/sh", "lmbench/0K create", "lmbench/0K delete",
    "lmbench/10K create", "lmbench/10K delete", "lmbench/mmap", "lmbench/protection fault",
    "lmbench/page fault", "lmbench/pipe bandwidth", "lmbench/unix bandwidth",
    "lmbench/tcp bandwidth", "lmbench/file reread", "lmbench/mmap reread",
    "lmbench/bcopy libc", "lmbench/bcopy hand", "lmbench/mem read", "lmbench/mem write",
    "build-flask/make", "build-kernel/make",
    "nginx/connection, 8 clients", "nginx/connection, 16 clients",
    "nginx/connection, 24 clients", "nginx/connection, 32 clients",
    "nginx/latency, 8 clients", "nginx/latency, 16 clients", "nginx/latency, 24 clients",
    "nginx/latency, 32 clients", "nginx/KB, 8 clients", "nginx/KB, 16 clients",
    "nginx/KB, 24 clients", "nginx/KB, 32 clients",
    "apache/connection, 8 clients", "apache/connection, 16 clients",
    "apache/connection, 24 clients", "apache/connection, 32 clients",
    "apache/latency, 8 clients", "apache/latency, 16 clients", "apache/latency, 24 clients",
    "apache/latency, 32 clients", "apache/KB, 8 clients", "apache/KB, 16 clients",
    "apache/KB, 24 clients", "apache/KB, 32 clients",
    "lava/free", "lava/free, 4 KB", "lava/active", "lava/active, 4 KB", "lava/bind",
    "lava/bind with a descriptor, and its end", "lava-names/bind of a name, 255 bytes",
    "lava-paced/active", "lava-paced/a bind among ten",
];

/// The number that `UnixBench` divides a rate by before it multiplies by 10, by the lab's
/// item; of its `index.base`. Whetstone has none here: its base is in millions of
/// Whetstone instructions, not in loops.
#[rustfmt::skip]
const INDEX_BASES: &[(&str, f64)] = &[
    ("unixbench/execl", 43.0),
    ("unixbench/file copy 256", 1655.0),
    ("unixbench/file copy 1024", 3960.0),
    ("unixbench/file copy 4096", 5800.0),
    ("unixbench/pipe throughput", 12_440.0),
    ("unixbench/context switch", 4000.0),
    ("unixbench/process creation", 126.0),
    ("unixbench/system call overhead", 15_000.0),
    ("shell8/8 shell scripts", 6.0),
];

/// What a published row means; none if nobody has decided.
#[must_use]
pub fn means(source: &str, benchmark: &str, item: &str) -> Option<Means> {
    let benchmark = benchmark.to_lowercase();
    let fits = |(s, b, i, _): &&Entry| {
        source.contains(s) && benchmark.contains(&b.to_lowercase()) && item.starts_with(i)
    };
    TABLE.iter().find(fits).map(|entry| entry.3)
}

/// How a figure (units of the clock for one operation) is said in a published unit, with
/// 10⁹ units of the clock in the place of a second.
#[must_use]
pub fn convert(value: f64, unit: &str, id: &str) -> Option<f64> {
    let rate = 1e9 / value;
    match unit {
        "s" => Some(value / 1e9),
        "ms" => Some(value / 1e6),
        "us" => Some(value / 1e3),
        "percent" => Some(value / 1e7),
        "loops/s" | "KByte/s" | "MB/s" | "connections/s" => Some(rate),
        "loops/minute" => Some(rate * 60.0),
        "Mbit/s" => Some(rate * KILOBYTE_IN_MEGABITS),
        "index" => {
            let base = INDEX_BASES.iter().find(|(name, _)| *name == id)?.1;
            let minutes = if id.starts_with("shell8/") { 60.0 } else { 1.0 };
            Some(rate * minutes / base * 10.0)
        }
        _ => None,
    }
}

/// 1,024 bytes in units of 10⁶ bits.
const KILOBYTE_IN_MEGABITS: f64 = 1024.0 * 8.0 / 1e6;

#[cfg(test)]
mod tests {
    use super::super::published;
    use super::*;

    #[test]
    fn every_published_row_is_mapped_or_listed_as_absolute() {
        for row in published::all() {
            let found = means(row.source.as_str(), &row.benchmark, &row.item);
            assert!(found.is_some(), "{row:?}");
        }
    }

    #[test]
    fn every_target_is_an_item_that_workloads_print() {
        for (_, benchmark, item, means) in TABLE {
            let ids = means.ids();
            let is_absolute = matches!(means, Absolute(_));
            assert_eq!(ids.is_empty(), is_absolute, "{benchmark} {item}");
            for id in ids {
                assert!(IDS.contains(&id), "{id}");
            }
        }
        for (id, _) in INDEX_BASES {
            assert!(IDS.contains(id), "{id}");
        }
    }

    #[test]
    fn each_row_is_used() {
        for (at, entry) in TABLE.iter().enumerate() {
            let hit = published::all()
                .iter()
                .any(|row| means(row.source.as_str(), &row.benchmark, &row.item) == Some(entry.3));
            assert!(hit, "row {at}, {entry:?}, fits nothing");
        }
    }

    /// By hand: 20 µs an exec are 50,000 a second; 50,000 ÷ 43 × 10 = 11,627.9.
    #[test]
    fn rates_and_indices_are_unixbenchs() {
        let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-3 * b;
        assert!(near(
            convert(20_000.0, "loops/s", "unixbench/execl"),
            50_000.0
        ));
        assert!(near(
            convert(20_000.0, "index", "unixbench/execl"),
            11_627.9
        ));
        assert!(near(convert(1e9, "index", "shell8/8 shell scripts"), 100.0));
        assert!(near(convert(5.9e9, "s", ""), 5.9));
        // a fifth of a second in a second
        assert!(near(convert(2e8, "percent", ""), 20.0));
        assert_eq!(convert(1.0, "index", "unixbench/whetstone"), None);
    }
}
