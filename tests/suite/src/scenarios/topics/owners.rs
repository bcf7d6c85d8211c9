//! What is asked for by whose it is: a user's keys, which root reaches under other numbers, too; his files, whose blocks and
//! keys their owner changes by a descriptor for reading; what he serves himself; and where his memory lies.

use libc::{MAP_SHARED, PROT_READ};
use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::unistd::{Uid, setresuid};

use super::low_root::{
    KEYCTL_CLEAR, KEYCTL_REVOKE, KEYCTL_SET_TIMEOUT, NO, SESSION_KEYRING, add_key, keyctl, ring,
    size,
};
use crate::scenarios::check::{Outcome, allowed, ensure, refused, refused_any, same};
use crate::scenarios::devfuse::Fuse;
use crate::scenarios::level;
use crate::scenarios::place::{self, MOUNT, SYSTEM, TMPFS_SYSTEM, home};
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Level, at, become_alice, own_namespaces, start};
use crate::scenarios::sys::{self, Map};
use crate::sys::syscall;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "key-ring-by-number",
        "root below the top, whose real user is another, empties a key ring of root's and revokes its key",
        ring_by_number,
    ),
    bypass(
        "key-ring-inherited",
        "a lower process of another user empties the session's key ring, root's, that it inherited",
        ring_inherited,
    ),
    bypass(
        "file-migrated",
        "a higher file's blocks are noted in another way, by a descriptor for reading (EXT4_IOC_MIGRATE)",
        migrated,
    ),
    bypass(
        "file-pinned",
        "a higher file of F2FS is pinned to its blocks, by a descriptor for reading",
        pinned,
    ),
    bypass(
        "file-compressed-blocks",
        "the blocks that a compressed file of F2FS spares are taken from it, by a descriptor for reading",
        compressed,
    ),
    bypass(
        "subvolume-of-bcachefs",
        "a subvolume is made, copied to a higher place or removed by an ioctl, which asks nobody about names",
        subvolume,
    ),
    bypass(
        "encryption-key-removed",
        "a lower process takes the key of encrypted files away (FS_IOC_REMOVE_ENCRYPTION_KEY)",
        key_removed,
    ),
    bypass(
        "fuse-server-reads",
        "a lower client writes to a file that a higher process serves, which writes that where it likes",
        server_reads,
    )
    .gap("FUSE servers"),
    bypass(
        "memory-placed",
        "who may only read a higher file in memory says on which node its pages are to lie (mbind)",
        placed,
    )
    .gap("Placing of shared memory"),
];

/// How long a key is to live, in seconds.
const LONG: i64 = 10_000;

/// Is root for files, and another user by the real number.
fn half_alice() -> Outcome {
    let (alice, root) = (Uid::from_raw(1000), Uid::from_raw(0));
    Ok(setresuid(alice, root, root)?)
}

fn ring_by_number() -> Outcome {
    let (ring, key) = ring()?;
    // the kernel lets it
    start(|| {
        half_alice()?;
        allowed(keyctl(KEYCTL_SET_TIMEOUT, key, LONG, 0)).map(drop)
    })?
    .join()?;
    for level in Level::LOWER {
        at(level, || {
            half_alice()?;
            refused_any(NO, keyctl(KEYCTL_SET_TIMEOUT, key, 1, 0))?;
            refused_any(NO, keyctl(KEYCTL_REVOKE, key, 0, 0))?;
            refused_any(NO, keyctl(KEYCTL_CLEAR, ring, 0, 0))
        })?;
    }
    // the number of one key
    same("the size of the key ring", size(ring), Ok(4))
}

fn ring_inherited() -> Outcome {
    const JOIN_SESSION_KEYRING: i32 = 1;
    let session = i64::from(SESSION_KEYRING);
    keyctl(JOIN_SESSION_KEYRING, 0, 0, 0)?;
    let key = add_key("user", b"high", session)?;
    start(|| {
        become_alice()?;
        allowed(keyctl(KEYCTL_SET_TIMEOUT, key, LONG, 0)).map(drop)
    })?
    .join()?;
    for level in Level::LOWER {
        at(level, || {
            become_alice()?;
            refused_any(NO, keyctl(KEYCTL_SET_TIMEOUT, key, 1, 0))?;
            refused_any(NO, add_key("user", b"low", session))?;
            refused_any(NO, keyctl(KEYCTL_CLEAR, session, 0, 0))
        })?;
    }
    same("the size of the key ring", size(session), Ok(4))
}

/// An ioctl by a descriptor for reading of a file.
fn asks(file: &str, request: u64) -> Result<i64, Errno> {
    let nothing = [0u64; 8];
    sys::ioctl(&sys::reads(file)?, request, nothing.as_ptr() as usize)
}

fn migrated() -> Outcome {
    const MIGRATE: u64 = 0x6609;
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, asks(&high, MIGRATE))?;
            // of its own it may ask it, though there be nothing to do
            let own = place::file(home(level), level.name())?;
            let answer = asks(&own, MIGRATE);
            ensure(
                answer != Err(Errno::EPERM),
                "it may not change a file of its own",
            )
        })?;
    }
    Ok(())
}

fn pinned() -> Outcome {
    const PIN: u64 = 0x4004_f50d;
    const IS_PINNED: u64 = 0x8004_f50e;
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, asks(&high, PIN))?;
            // what changes nothing, or a file of its own, the filesystem answers, which knows no pins
            let own = place::file(home(level), level.name())?;
            refused(Errno::ENOTTY, asks(&own, PIN))?;
            refused(Errno::ENOTTY, asks(&high, IS_PINNED))
        })?;
    }
    Ok(())
}

fn compressed() -> Outcome {
    const SPARED: u64 = 0x8008_f511;
    const RELEASE: u64 = 0x8008_f512;
    const RESERVE: u64 = 0x8008_f513;
    let high = place::file(SYSTEM, "high")?;
    for level in Level::LOWER {
        at(level, || {
            let own = place::file(home(level), level.name())?;
            for request in [RELEASE, RESERVE] {
                refused(Errno::EPERM, asks(&high, request))?;
                refused(Errno::ENOTTY, asks(&own, request))?;
            }
            refused(Errno::ENOTTY, asks(&high, SPARED))
        })?;
    }
    Ok(())
}

fn subvolume() -> Outcome {
    const MAKE: u64 = 0x4020_bc10;
    const REMOVE: u64 = 0x4020_bc11;
    /// Of OCFS2: a file's content gets a further name.
    const COPY: u64 = 0x4018_6f04;
    let requests = [MAKE, REMOVE, COPY];
    for level in Level::LOWER {
        at(level, || {
            let own = place::directory(home(level), level.name())?;
            for request in requests {
                refused(Errno::EPERM, asks(&own, request))?;
            }
            Ok(())
        })?;
    }
    // at the top the filesystem answers, which has none
    for request in requests {
        refused(Errno::ENOTTY, asks(home(System), request))?;
    }
    Ok(())
}

fn key_removed() -> Outcome {
    const REMOVE_KEY: u64 = 0xc040_6618;
    for level in Level::LOWER {
        at(level, || {
            let own = place::file(home(level), level.name())?;
            refused(Errno::EPERM, asks(&own, REMOVE_KEY))
        })?;
    }
    // at the top the filesystem answers, which has no such keys
    let high = place::file(home(System), "high")?;
    let answer = asks(&high, REMOVE_KEY);
    ensure(answer != Err(Errno::EPERM), "it is refused at the top")
}

fn server_reads() -> Outcome {
    at(User, || {
        own_namespaces(CloneFlags::CLONE_NEWNS)?;
        let fuse = Fuse::mount(MOUNT)?;
        at(Untrusted, || {
            match sys::writes(fuse.file()).and_then(|file| sys::put_all(&file, b"low")) {
                Ok(_) => Ok(()),
                Err(e) => refused_any(NO, Err::<(), _>(e)),
            }
        })?;
        ensure(
            !fuse.has_been_written() || level::by_writing()? == Untrusted,
            "low data was read, and its reader still writes at `user`",
        )
    })
}

fn placed() -> Outcome {
    const BIND: i32 = 2;
    const FIRST_NODE: u64 = 1;
    const OF_ADDRESS: i32 = 2;
    let file = place::file(TMPFS_SYSTEM, "file")?;
    let map = || Map::of(&sys::reads(&file)?, PROT_READ, MAP_SHARED);
    let high = map()?;
    at(Untrusted, || {
        let (low, nodes) = (map()?, FIRST_NODE);
        let tried = syscall!(
            libc::SYS_mbind,
            low.address(),
            sys::PAGE,
            BIND,
            &raw const nodes,
            u64::BITS,
            0
        );
        match tried {
            Ok(_) => Ok(()),
            Err(_) => refused_any(NO, tried),
        }
    })?;
    let mut rule = 0i32;
    syscall!(
        libc::SYS_get_mempolicy,
        &raw mut rule,
        0,
        0,
        high.address(),
        OF_ADDRESS
    )?;
    same("how its pages are placed", rule, 0)
}
