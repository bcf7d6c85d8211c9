//! Keys.

use std::io;
use std::ptr;

use crate::te_ops::op::Ops;
use crate::te_ops::sys::sys;

const USER_KEYRING: i64 = -4;
const PROCESS_KEYRING: i64 = -2;

fn keyctl(what: i64, a: i64, b: i64, c: i64) -> io::Result<i64> {
    sys!(libc::syscall(libc::SYS_keyctl, what, a, b, c, 0))
}

fn add_key(kind: &std::ffi::CStr, ring: i64) -> io::Result<i64> {
    let (text, len) = if kind == c"keyring" {
        (ptr::null(), 0)
    } else {
        (c"x".as_ptr(), 1)
    };
    sys!(libc::syscall(
        libc::SYS_add_key,
        kind.as_ptr(),
        c"ops".as_ptr(),
        text,
        len,
        ring
    ))
}

/// A key that goes with this.
struct Key(i64);

impl Drop for Key {
    fn drop(&mut self) {
        // revoked, and unlinked
        let _ = keyctl(9, self.0, USER_KEYRING, 0);
    }
}

fn made(kind: &std::ffi::CStr) -> io::Result<(Key, i64)> {
    let key = add_key(kind, USER_KEYRING)?;
    keyctl(5, key, 0x3f3f_3f3f, 0)?;
    Ok((Key(key), key))
}

fn key() -> io::Result<(Key, i64)> {
    made(c"user")
}

fn ring() -> io::Result<(Key, i64)> {
    made(c"keyring")
}

type Does = fn(i64) -> io::Result<()>;

const ON_KEY: &[(&str, Does)] = &[
    ("describe", |key| keyctl(6, key, 0, 0).map(drop)),
    ("read", |key| {
        let mut byte = 0u8;
        keyctl(11, key, &raw mut byte as i64, 1).map(drop)
    }),
    ("update", |key| {
        keyctl(2, key, c"y".as_ptr() as i64, 1).map(drop)
    }),
    ("revoke", |key| keyctl(3, key, 0, 0).map(drop)),
    ("give away", |key| keyctl(4, key, 1000, -1).map(drop)),
    ("change what may be done", |key| {
        keyctl(5, key, 0x3f3f_0000, 0).map(drop)
    }),
    ("set a time", |key| keyctl(15, key, 100, 0).map(drop)),
    ("invalidate", |key| keyctl(21, key, 0, 0).map(drop)),
    ("ask for the label", |key| keyctl(17, key, 0, 0).map(drop)),
    ("link to one's own ring", |key| {
        keyctl(8, key, PROCESS_KEYRING, 0).map(drop)
    }),
    ("unlink", |key| keyctl(9, key, USER_KEYRING, 0).map(drop)),
];

pub fn add(ops: &mut Ops) {
    ops.plain("a key in a ring of one's own", || {
        add_key(c"user", PROCESS_KEYRING).map(drop)
    });
    ops.plain("a ring in a ring of one's own", || {
        add_key(c"keyring", PROCESS_KEYRING).map(drop)
    });
    ops.plain("a session of one's own", || keyctl(1, 0, 0, 0).map(drop));
    for &(name, does) in ON_KEY {
        ops.told(format!("a key: {name}"), key, does);
    }
    ops.told("a ring: read", ring, |ring| {
        let mut number = 0u32;
        keyctl(11, ring, &raw mut number as i64, 4).map(drop)
    });
    ops.told("a ring: add a key", ring, |ring| {
        add_key(c"user", ring).map(drop)
    });
    ops.told("a ring: clear", ring, |ring| {
        keyctl(7, ring, 0, 0).map(drop)
    });
    ops.told("a ring: search", ring, |ring| {
        keyctl(10, ring, c"user".as_ptr() as i64, c"none".as_ptr() as i64)
            .map(drop)
            .or_else(|e| {
                if e.raw_os_error() == Some(libc::ENOKEY) {
                    Ok(())
                } else {
                    Err(e)
                }
            })
    });
}
