//! Lines as the kernel writes them, and as recordings have them.

use std::borrow::Cow;
use std::net::IpAddr;

use tidegate_recording::{Act, End, Flags, Inode, Line, path_text};

use crate::recorder_skel::types::{tr_end, tr_line, tr_object};
use crate::sys::{Pod, text};
use crate::tasks::canonical;
use crate::{Class, Op};

/// `enum tr_what` of kernel/abi/recorder.h.
mod what {
    pub const ACCESS: u8 = 1;
    pub const HELD: u8 = 2;
    pub const PROCESS: u8 = 3;
    pub const FORK: u8 = 4;
    pub const STARTED: u8 = 5;
    pub const EXIT: u8 = 6;
    pub const CHANNELS: u8 = 7;
    pub const CLOSED: u8 = 8;
}

/// Hands over each line of what the kernel wrote; how many.
pub(super) fn each(mut bytes: &[u8], each: &mut impl FnMut(&Line<'_>)) -> usize {
    let mut lines = 0;
    while let Some(raw) = tr_line::read(bytes) {
        bytes = &bytes[size_of::<tr_line>()..];
        let ends = usize::from(raw.ends) * size_of::<tr_end>();
        let (path, other) = (usize::from(raw.path_len), usize::from(raw.other_len));
        let Some((behind, rest)) = bytes.split_at_checked(path + other + ends) else {
            break;
        };
        bytes = rest;
        let (path, behind) = behind.split_at(path);
        let (other, ends) = behind.split_at(other);
        if let Some(line) = line(&raw, path, other, ends) {
            each(&line);
            lines += 1;
        }
    }
    lines
}

fn act(raw: &tr_line) -> Option<Act> {
    Some(match raw.what {
        what::ACCESS => Act::from_word(Op::from_number(raw.op)?.word())?,
        what::HELD => Act::Held,
        what::PROCESS => Act::Process,
        what::FORK => Act::Fork,
        what::STARTED => Act::Started,
        what::EXIT => Act::Exit,
        what::CHANNELS => Act::Channels,
        what::CLOSED => Act::Closed,
        _ => return None,
    })
}

fn line(raw: &tr_line, path: &[u8], other: &[u8], ends: &[u8]) -> Option<Line<'static>> {
    let internet = matches!(raw.family, 2 | 10);
    let address = |bytes: [u8; 16]| -> Option<IpAddr> { internet.then(|| canonical(bytes)) };
    let classed = matches!(raw.what, what::ACCESS | what::HELD);
    Some(Line {
        time: raw.time,
        pid: raw.pid,
        tid: if raw.tid == raw.pid { 0 } else { raw.tid },
        start: raw.start,
        uid: raw.uid,
        comm: Cow::Owned(text(&raw.comm)),
        class: match Class::from_number(raw.class) {
            Some(class) if classed => class.word().into(),
            _ => "".into(),
        },
        flags: Flags::from_bits_truncate(raw.flags),
        refused: raw.refused.unsigned_abs(),
        path: Cow::Owned(path_text(path)),
        other: Cow::Owned(path_text(other)),
        inode: inode(raw.object),
        over: inode(raw.over),
        dir: inode(raw.dir),
        other_dir: inode(raw.other_dir),
        kind: raw.r#type.into(),
        links: raw.links,
        peer: raw.peer,
        channel: raw.channel,
        family: raw.family.into(),
        socket: raw.sock_type.into(),
        address: address(raw.addr),
        port: raw.port.into(),
        bound: address(raw.bound).filter(|a| !a.is_unspecified()),
        ends: ends
            .chunks_exact(size_of::<tr_end>())
            .filter_map(tr_end::read)
            .map(|e| End {
                dev: e.dev,
                ino: e.ino,
                peer: e.peer,
                flags: Flags::from_bits_truncate(e.flags),
            })
            .collect(),
        ..Line::new(act(raw)?)
    })
}

fn inode(o: tr_object) -> Inode {
    Inode(o.dev, o.ino, o.generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(raw: &tr_line, behind: &[u8]) -> Vec<u8> {
        // SAFETY: a Pod: integers without padding.
        let head = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(raw).cast::<u8>(), size_of::<tr_line>())
        };
        [head, behind].concat()
    }

    #[test]
    fn lines_are_parted_and_what_is_cut_off_is_left() {
        let mut raw = tr_line {
            what: what::ACCESS,
            op: Op::Rename as u8,
            class: Class::Dir as u8,
            pid: 7,
            tid: 8,
            path_len: 2,
            other_len: 3,
            ..Default::default()
        };
        let mut all = bytes(&raw, b"/a/bb");
        raw.path_len = 200;
        all.extend(bytes(&raw, b"/a"));
        let mut lines = Vec::new();
        let told = each(&all, &mut |l| {
            lines.push((l.act, l.path.to_string(), l.other.to_string()))
        });
        assert_eq!(told, 1);
        assert_eq!(lines, [(Act::Rename, "/a".into(), "/bb".into())]);
    }

    #[test]
    fn numbers_are_the_kernels() {
        let abi = include_str!("../../../../kernel/abi/recorder.h");
        for (name, number) in [
            ("TR_ACCESS", 1u8),
            ("TR_CLOSED", what::CLOSED),
            ("TR_FORK", what::FORK),
        ] {
            assert!(abi.contains(&format!("{name} = {number},")), "{name}");
        }
        for (name, flag) in Flags::all().iter_names() {
            let shift = flag.bits().trailing_zeros();
            assert!(
                abi.contains(&format!("TR_{name} = 1 << {shift},")),
                "{name}"
            );
        }
        // what is not recorded, then what only the profile and the te model ask about
        let other = ["pipe", "ipc", "tty", "key", "start"];
        let models = [
            "lock",
            "getattr",
            "userns",
            "change-profile",
            "change-onexec",
            "change-hat",
            "read-revoked",
        ];
        let told = |op: &&Op| ![&other[..], &models].concat().contains(&op.word());
        for op in Op::ALL.iter().filter(told) {
            assert!(Act::from_word(op.word()).is_some(), "{}", op.word());
        }
    }
}
