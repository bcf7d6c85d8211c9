//! Processes.

use std::fs;
use std::io;
use std::ptr;

use crate::te_ops::op::Ops;
use crate::te_ops::sys::{Helper, forked, helper, open, past, sys};

/// A process to do something to.
pub fn other() -> io::Result<(Helper, i64)> {
    let helper = helper(|| {
        for signal in [libc::SIGUSR1, 40] {
            // SAFETY: nothing is called.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        Ok(())
    })?;
    let pid = helper.0.into();
    Ok((helper, pid))
}

/// One of another user's.
pub fn stranger() -> io::Result<(Helper, i64)> {
    let helper = helper(|| {
        // SAFETY: nothing is called.
        unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
        sys!(libc::setgid(1000))?;
        sys!(libc::setuid(1000)).map(drop)
    })?;
    let pid = helper.0.into();
    Ok((helper, pid))
}

/// This process, which needs nothing.
fn own() -> io::Result<((), i64)> {
    Ok(((), 0))
}

fn capabilities(pid: i32, set: bool) -> io::Result<()> {
    let mut header = [0x2008_0522, pid as u32];
    let mut data = [0u32; 6];
    sys!(libc::syscall(
        libc::SYS_capget,
        header.as_mut_ptr(),
        data.as_mut_ptr()
    ))?;
    if set {
        sys!(libc::syscall(
            libc::SYS_capset,
            header.as_mut_ptr(),
            data.as_mut_ptr()
        ))?;
    }
    Ok(())
}

fn limit(pid: i32, what: u32, hard: Option<u64>) -> io::Result<()> {
    let mut was = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    sys!(libc::prlimit64(pid, what, ptr::null(), &raw mut was))?;
    if let Some(hard) = hard {
        was.rlim_cur = was.rlim_cur.min(hard);
        was.rlim_max = hard;
        sys!(libc::prlimit64(pid, what, &raw const was, ptr::null_mut()))?;
    }
    Ok(())
}

/// Each operation on a process, by its name.
type Does = fn(i32) -> io::Result<()>;

const ON_ANY: &[(&str, Does)] = &[
    ("signal 0", |pid| sys!(libc::kill(pid, 0)).map(drop)),
    ("signal SIGUSR1", |pid| {
        sys!(libc::kill(pid, libc::SIGUSR1)).map(drop)
    }),
    ("signal SIGCHLD", |pid| {
        sys!(libc::kill(pid, libc::SIGCHLD)).map(drop)
    }),
    ("signal 40", |pid| sys!(libc::kill(pid, 40)).map(drop)),
    ("signal by tgkill", |pid| {
        sys!(libc::syscall(libc::SYS_tgkill, pid, pid, libc::SIGUSR1)).map(drop)
    }),
    ("queue a signal", |pid| {
        let value = libc::sigval {
            sival_ptr: ptr::null_mut(),
        };
        sys!(libc::sigqueue(pid, libc::SIGUSR1, value)).map(drop)
    }),
    ("signal by a pidfd", |pid| {
        let on = sys!(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        sys!(libc::syscall(
            libc::SYS_pidfd_send_signal,
            on,
            libc::SIGUSR1,
            0,
            0
        ))
        .map(drop)
    }),
    ("signal SIGSTOP", |pid| {
        sys!(libc::kill(pid, libc::SIGSTOP)).map(drop)
    }),
    ("signal SIGCONT", |pid| {
        sys!(libc::kill(pid, libc::SIGCONT)).map(drop)
    }),
    ("signal SIGKILL", |pid| {
        sys!(libc::kill(pid, libc::SIGKILL)).map(drop)
    }),
    ("getpgid", |pid| sys!(libc::getpgid(pid)).map(drop)),
    ("getsid", |pid| sys!(libc::getsid(pid)).map(drop)),
    ("ask for the scheduler", |pid| {
        sys!(libc::sched_getscheduler(pid)).map(drop)
    }),
    ("ask for the scheduler's parameter", |pid| {
        let mut parameter = libc::sched_param { sched_priority: 0 };
        sys!(libc::sched_getparam(pid, &raw mut parameter)).map(drop)
    }),
    ("set the scheduler", |pid| {
        let parameter = libc::sched_param { sched_priority: 0 };
        sys!(libc::sched_setscheduler(
            pid,
            libc::SCHED_BATCH,
            &raw const parameter
        ))
        .map(drop)
    }),
    ("ask for processors", |pid| {
        let mut set = [0u64; 128];
        sys!(libc::syscall(
            libc::SYS_sched_getaffinity,
            pid,
            1024,
            set.as_mut_ptr()
        ))
        .map(drop)
    }),
    ("set processors", |pid| {
        let set = [3u64; 1];
        sys!(libc::syscall(
            libc::SYS_sched_setaffinity,
            pid,
            8,
            set.as_ptr()
        ))
        .map(drop)
    }),
    ("set the niceness", |pid| {
        sys!(libc::setpriority(libc::PRIO_PROCESS, pid as u32, 5)).map(drop)
    }),
    ("ask for the niceness", |pid| {
        sys!(libc::syscall(
            libc::SYS_getpriority,
            libc::PRIO_PROCESS,
            pid
        ))
        .map(drop)
    }),
    ("set the disk's priority", |pid| {
        sys!(libc::syscall(libc::SYS_ioprio_set, 1, pid, 2 << 13 | 5)).map(drop)
    }),
    ("ask for the disk's priority", |pid| {
        sys!(libc::syscall(libc::SYS_ioprio_get, 1, pid)).map(drop)
    }),
    ("ask for capabilities", |pid| capabilities(pid, false)),
    ("ask for a limit", |pid| limit(pid, libc::RLIMIT_CPU, None)),
    ("set a limit", |pid| {
        limit(pid, libc::RLIMIT_CPU, Some(100_000))
    }),
    ("move memory", |pid| {
        past(sys!(libc::syscall(libc::SYS_migrate_pages, pid, 0, 0, 0)))
    }),
    ("ask where memory is", |pid| {
        past(sys!(libc::syscall(
            libc::SYS_move_pages,
            pid,
            0,
            0,
            0,
            0,
            0
        )))
    }),
    ("ask for robust locks", |pid| {
        let (mut head, mut len) = (0u64, 0u64);
        sys!(libc::syscall(
            libc::SYS_get_robust_list,
            pid,
            &raw mut head,
            &raw mut len
        ))
        .map(drop)
    }),
    ("open the status", |pid| {
        open(&format!("/proc/{pid}/status"), libc::O_RDONLY).map(drop)
    }),
    ("read the status", |pid| {
        fs::read(format!("/proc/{pid}/status")).map(drop)
    }),
    ("look at the directory", |pid| {
        fs::metadata(format!("/proc/{pid}")).map(drop)
    }),
    ("list the descriptors", |pid| {
        fs::read_dir(format!("/proc/{pid}/fd")).map(|all| drop(all.collect::<Vec<_>>()))
    }),
    ("read where the program is", |pid| {
        fs::read_link(format!("/proc/{pid}/exe")).map(drop)
    }),
    ("read the environment", |pid| {
        fs::read(format!("/proc/{pid}/environ")).map(drop)
    }),
    ("open the memory", |pid| {
        open(&format!("/proc/{pid}/mem"), libc::O_RDONLY).map(drop)
    }),
    ("write the fault's score", |pid| {
        crate::te_ops::sys::write(&format!("/proc/{pid}/oom_score_adj"), "10")
    }),
];

const ON_OTHERS: &[(&str, Does)] = &[
    ("trace", |pid| {
        sys!(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0)).map(drop)
    }),
    ("attach to", |pid| {
        sys!(libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0)).map(drop)
    }),
    ("read the memory", |pid| {
        let mut byte = 0u8;
        let local = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        // the same program, at the same place
        let remote = libc::iovec {
            iov_base: 0x10 as *mut _,
            iov_len: 1,
        };
        past(sys!(libc::process_vm_readv(
            pid,
            &raw const local,
            1,
            &raw const remote,
            1,
            0
        )))
    }),
    ("write the memory", |pid| {
        let mut byte = 0u8;
        let local = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        let remote = libc::iovec {
            iov_base: 0x10 as *mut _,
            iov_len: 1,
        };
        past(sys!(libc::process_vm_writev(
            pid,
            &raw const local,
            1,
            &raw const remote,
            1,
            0
        )))
    }),
    ("compare with", |pid| {
        sys!(libc::syscall(libc::SYS_kcmp, libc::getpid(), pid, 3, 0, 0)).map(drop)
    }),
    ("take a descriptor of", |pid| {
        let on = sys!(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        sys!(libc::syscall(libc::SYS_pidfd_getfd, on, 1, 0)).map(drop)
    }),
    ("advise on memory of", |pid| {
        let on = sys!(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        let part = libc::iovec {
            iov_base: 0x1000 as *mut _,
            iov_len: 4096,
        };
        past(sys!(libc::syscall(
            libc::SYS_process_madvise,
            on,
            &raw const part,
            1,
            libc::MADV_COLD,
            0
        )))
    }),
    ("enter the namespace of", |pid| {
        let on = sys!(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        sys!(libc::setns(on as i32, libc::CLONE_NEWUTS)).map(drop)
    }),
];

pub fn add(ops: &mut Ops) {
    ops.plain("fork", || forked(|| Ok(())));
    ops.plain("start a thread", || {
        std::thread::Builder::new()
            .spawn(|| ())?
            .join()
            .map_err(|_| io::ErrorKind::Other.into())
    });
    for (name, does) in ON_ANY {
        ops.told(format!("{name}, another's"), other, |pid| does(pid as i32));
        // what stops or ends the one that plays leaves nobody to tell
        if !name.starts_with("signal SIG") {
            ops.told(format!("{name}, one's own"), own, |_| {
                does(std::process::id() as i32)
            });
        }
    }
    for (name, does) in ON_OTHERS {
        ops.told(format!("{name} another"), other, |pid| does(pid as i32));
    }
    ops.plain("be traced", || {
        forked(|| sys!(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)).map(drop))
    });
    ops.plain("setpgid", || sys!(libc::setpgid(0, 0)).map(drop));
    ops.plain("setsid", || forked(|| sys!(libc::setsid()).map(drop)));
    ops.plain("set capabilities", || capabilities(0, true));
    ops.plain("set a hard limit of one's own", || {
        limit(0, libc::RLIMIT_NOFILE, Some(500))
    });
    ops.plain("set the name", || {
        sys!(libc::prctl(libc::PR_SET_NAME, c"ops".as_ptr(), 0, 0, 0)).map(drop)
    });
    ops.plain("be dumpable no more", || {
        sys!(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0)).map(drop)
    });
    ops.told("read the label of another", other, |pid| {
        fs::read(format!("/proc/{pid}/attr/current")).map(drop)
    })
    .own();
    ops.plain("read the label of one's own", || {
        fs::read("/proc/self/attr/current").map(drop)
    })
    .own();
}
