//! BPF's maps and programs.

use std::io;

use crate::te_ops::op::Ops;
use crate::te_ops::sys::sys;

fn bpf(command: i64, attr: &[u64]) -> io::Result<i64> {
    let mut whole = [0u64; 16];
    whole[..attr.len()].copy_from_slice(attr);
    sys!(libc::syscall(
        libc::SYS_bpf,
        command,
        whole.as_mut_ptr(),
        120
    ))
}

fn map() -> io::Result<i64> {
    // an array of one value of 8 bytes
    bpf(0, &[2 | 4 << 32, 8 | 1 << 32])
}

fn program() -> io::Result<i64> {
    // r0 = 0; exit
    let code: [u64; 2] = [0xb7, 0x95];
    let attr = [1 | 2 << 32, code.as_ptr() as u64, c"GPL".as_ptr() as u64];
    bpf(5, &attr)
}

pub fn add(ops: &mut Ops) {
    ops.plain("a map", || map().map(drop));
    ops.plain("a map: write", || {
        let (map, key, value) = (map()?, 0u32, 1u64);
        bpf(
            2,
            &[map as u64, &raw const key as u64, &raw const value as u64],
        )
        .map(drop)
    });
    ops.plain("a map: read", || {
        let (map, key, mut value) = (map()?, 0u32, 1u64);
        bpf(
            1,
            &[map as u64, &raw const key as u64, &raw mut value as u64],
        )
        .map(drop)
    });
    ops.plain("a map: by its number", || {
        let map = map()?;
        let mut info = [0u32; 32];
        bpf(15, &[map as u64 | 128 << 32, info.as_mut_ptr() as u64])?;
        bpf(14, &[info[1].into()]).map(drop)
    });
    ops.plain("a map: to read only", || {
        // BPF_F_RDONLY
        bpf(0, &[2 | 4 << 32, 8 | 1 << 32, 1 << 3]).map(drop)
    });
    ops.plain("a program", || program().map(drop));
    ops.plain("a program: attach", || {
        let program = program()? as u32;
        let mut ends = [0; 2];
        sys!(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_DGRAM,
            0,
            ends.as_mut_ptr()
        ))?;
        let at = (&raw const program).cast();
        sys!(libc::setsockopt(
            ends[0],
            libc::SOL_SOCKET,
            libc::SO_ATTACH_BPF,
            at,
            4
        ))
        .map(drop)
    });
}
