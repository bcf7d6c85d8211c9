//! What the targets do with a recording.

use std::io::Cursor;
use std::path::Path;
use std::sync::OnceLock;

use tidegate_bundle::Policy;
use tidegate_policy::map;
use tidegate_recording::{Act, Comparison, End, Error, Flags, Head, Inode, Line, Reader, VERSION};

/// A recording's first line.
fn head() -> Vec<u8> {
    let head = Head {
        tidegate_recording: VERSION,
        ..Head::default()
    };
    let mut text = serde_json::to_vec(&head).expect("a head can be written");
    text.push(b'\n');
    text
}

/// A recording with anything behind its head.
pub fn bytes_as_recording(bytes: &[u8]) -> Vec<u8> {
    [head(), bytes.to_vec()].concat()
}

const PATHS: [&str; 8] = [
    "/etc/passwd",
    "/home/ann/.bashrc",
    "/home/ann/src/x",
    "/home/ann/.ssh/id",
    "/tmp/x",
    "/usr/bin/ssh",
    "hex:2fff",
    "",
];

/// A recording of lines, eight bytes of input each.
///
/// # Panics
///
/// If a line cannot be written.
pub fn lines_as_recording(bytes: &[u8]) -> Vec<u8> {
    let mut text = head();
    for b in bytes.chunks_exact(8) {
        let path = PATHS[usize::from(b[3] % 8)];
        let inode = Inode(1, u64::from(b[4] % 6), 0);
        let line = Line {
            pid: u32::from(b[1] % 5),
            peer: u32::from(b[2] % 5),
            path: path.into(),
            other: PATHS[usize::from(b[3] / 8 % 8)].into(),
            inode,
            over: Inode(1, u64::from(b[4] / 6 % 6), 0),
            flags: Flags::from_bits_truncate(u32::from_le_bytes([b[5], b[6], b[7] & 7, 0])),
            kind: [0o100_000, 0o040_000, 0o010_000, 0o140_000][usize::from(b[7] >> 6)],
            class: ["file", "socket", "unix", "mmap"][usize::from(b[7] >> 4 & 3)].into(),
            family: [1, 2, 10, 0][usize::from(b[2] >> 6)],
            socket: u32::from(b[2] >> 3 & 1),
            channel: u64::from(b[6] % 4),
            address: Some(std::net::Ipv4Addr::new(127, 0, 0, b[6]).into()),
            refused: u32::from(b[1] >> 7),
            ends: vec![End {
                dev: 1,
                ino: inode.1,
                peer: u64::from(b[6] % 3),
                flags: Flags::from_bits_truncate(u32::from(b[5] & 3)),
            }],
            ..Line::new(Act::ALL[usize::from(b[0]) % Act::ALL.len()])
        };
        serde_json::to_writer(&mut text, &line).expect("a line can be written");
        text.push(b'\n');
    }
    text
}

fn policies() -> &'static [Policy; 2] {
    static POLICIES: OnceLock<[Policy; 2]> = OnceLock::new();
    POLICIES.get_or_init(|| {
        let preset = |name| map::compile_preset(name).expect("presets compile").policy;
        [preset("workstation"), preset("classic")]
    })
}

/// Replays a recording with a right head.
///
/// # Panics
///
/// If a line is lost in silence, or told to be broken twice.
pub fn replay(recording: &[u8]) {
    let lines = recording.split_inclusive(|b| *b == b'\n').count() as u64 - 1;
    let input = Box::new(Cursor::new(recording.to_vec()));
    let mut reader = Reader::new(Path::new("fuzz"), input).expect("the head is right");
    let [proposed, base] = policies();
    let mut comparison = Comparison::new((proposed, false), Some((base, true)));
    let mut broken = 0;
    loop {
        match reader.next_line() {
            Ok(Some(line)) => comparison.feed(&line),
            Ok(None) => break,
            Err(Error::Line { line, .. }) => {
                assert!(line >= 2 && line <= lines + 1);
                broken += 1;
            }
            Err(e) => panic!("memory cannot fail: {e}"),
        }
    }
    assert_eq!(comparison.finish().lines + broken, lines);
}
