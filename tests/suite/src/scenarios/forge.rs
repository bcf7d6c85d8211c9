//! A process says that it is another program: /proc/PID/exe names what it never executed.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};
use nix::errno::Errno;
use nix::sched::{CloneFlags, clone, unshare};
use nix::sys::wait::{WaitStatus, waitpid};

use crate::scenarios::check::{Failed, Outcome};
use crate::scenarios::sys::{self, Map};
use crate::sys::syscall;

const PR_SET_MM: i32 = 35;
const EXE_FILE: i32 = 13;
const MAP: i32 = 14;

/// The process that tells the kernel.
#[derive(Debug, Clone, Copy)]
pub enum By {
    /// The process itself, in a user namespace of its own.
    Itself,
    /// A child that shares its memory, in a user namespace of its own; and it has the other program mapped to be executed.
    Child,
    /// The process itself, as root.
    Root,
}

/// Takes another program's name; false: that was refused.
pub fn forge(program: &str, by: By) -> Outcome<bool> {
    let exe = sys::reads(program)?;
    let map = description(&exe)?;
    anonymous()?;
    let told = match by {
        By::Itself => {
            unshare(CloneFlags::CLONE_NEWUSER)?;
            tell(&map)
        }
        By::Child => {
            std::mem::forget(Map::of(&exe, PROT_READ | PROT_EXEC, MAP_PRIVATE)?);
            by_child(&map)?
        }
        By::Root => syscall!(libc::SYS_prctl, PR_SET_MM, EXE_FILE, exe.as_raw_fd(), 0, 0).map(drop),
    };
    match told {
        Ok(()) => Ok(true),
        Err(Errno::EPERM | Errno::EACCES) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// struct prctl_mm_map: what the process has, but for the program's file.
type Description = [u64; 13];

fn description(exe: &OwnedFd) -> Outcome<Description> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(") ").unwrap_or_default();
    // as proc_pid_stat(5) counts them: the third is the first behind the name
    let field = |number: usize| -> u64 {
        let word = rest.split(' ').nth(number - 3);
        word.and_then(|w| w.trim().parse().ok()).unwrap_or(0)
    };
    let end = syscall!(libc::SYS_brk, 0)? as u64;
    Ok([
        field(26),
        field(27),
        field(45),
        field(46),
        field(47),
        end,
        field(28),
        field(48),
        field(49),
        field(50),
        field(51),
        0,
        (exe.as_raw_fd() as u64) << 32,
    ])
}

fn tell(map: &Description) -> Result<(), Errno> {
    syscall!(
        libc::SYS_prctl,
        PR_SET_MM,
        MAP,
        map.as_ptr(),
        size_of_val(map),
        0
    )
    .map(drop)
}

fn by_child(map: &Description) -> Outcome<Result<(), Errno>> {
    let mut stack = vec![0u8; 256 * 1024];
    let run = Box::new(|| tell(map).err().map_or(0, |e| e as isize));
    let flags = CloneFlags::CLONE_VM | CloneFlags::CLONE_VFORK | CloneFlags::CLONE_NEWUSER;
    // SAFETY: the stack lives until the child has ended: vfork waits.
    let child = unsafe { clone(run, &mut stack, flags, Some(libc::SIGCHLD)) }?;
    match waitpid(child, None)? {
        WaitStatus::Exited(_, 0) => Ok(Ok(())),
        WaitStatus::Exited(_, errno) => Ok(Err(Errno::from_raw(errno))),
        other => Err(Failed::because(format_args!("the child: {other:?}"))),
    }
}

/// Puts anonymous memory with the same in it in the place of each mapping of the process's own program: as long as that
/// is mapped the kernel takes no other one.
fn anonymous() -> Outcome {
    let own = fs::read_link("/proc/self/exe")?;
    let own = own.to_string_lossy();
    let maps = fs::read_to_string("/proc/self/maps")?;
    let parts: Vec<_> = maps
        .lines()
        .filter(|line| line.ends_with(&format!(" {own}")))
        .filter_map(mapping)
        .collect();
    for (from, size, prot) in parts {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        let copy = syscall!(
            libc::SYS_mmap,
            0,
            size,
            PROT_READ | PROT_WRITE,
            flags,
            -1,
            0
        )?;
        // SAFETY: both are of this size, the one mapped readable and the other a new mapping.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, copy as *mut u8, size) };
        syscall!(libc::SYS_mprotect, copy, size, prot)?;
        syscall!(
            libc::SYS_mremap,
            copy,
            size,
            size,
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            from
        )?;
    }
    Ok(())
}

/// Where a line of /proc/PID/maps begins, its size and its protection.
fn mapping(line: &str) -> Option<(usize, usize, i32)> {
    let mut words = line.split(' ');
    let (from, to) = words.next()?.split_once('-')?;
    let from = usize::from_str_radix(from, 16).ok()?;
    let to = usize::from_str_radix(to, 16).ok()?;
    let letters = words.next()?;
    let prot = [('r', PROT_READ), ('w', PROT_WRITE), ('x', PROT_EXEC)]
        .into_iter()
        .filter(|(letter, _)| letters.contains(*letter))
        .fold(0, |all, (_, one)| all | one);
    Some((from, to - from, prot))
}
