//! Executions, and what is carried across one.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::ptr;

use crate::sys::{answer, c};
use crate::te_ops::file;
use crate::te_ops::op::Ops;
use crate::te_ops::sys::{at, came_of, ended, fd, leave, open, so, sys, write};

/// Programs by their types: one whose execution changes nothing, one that leads to the domain's twin, the same
/// by a mount without setuid, one that leads to it with another range, one that nobody may enter by.
pub const PROGRAMS: &[&str] = &["plain", "exec", "nosuid", "range"];

/// Executes one of them in place of this process; its words say what it does.
fn execute(kind: &str, words: &[&str]) -> io::Result<()> {
    let path = c(format!("/srv/ops/{kind}/program"));
    execute_at(&path, words)
}

fn execute_at(path: &std::ffi::CStr, words: &[&str]) -> io::Result<()> {
    let words: Vec<_> = ["te-ops", "act"].iter().chain(words).map(c).collect();
    let mut argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(ptr::null());
    let env = [c"LD_PRELOAD=/nowhere".as_ptr(), ptr::null()];
    sys!(libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr())).map(drop)
}

/// What an executed program does.
pub fn act(words: &[&str]) -> io::Result<()> {
    match *words {
        ["nothing"] => Ok(()),
        // what nobody else may read
        ["twin"] => open("/srv/ops/twin/f", libc::O_RDONLY).map(drop),
        // where SELinux is, it is how the process is known
        ["label"] => {
            if let Ok(label) = fs::read_to_string("/proc/self/attr/current") {
                println!("label {}", label.trim_end_matches(['\0', '\n']));
            }
            Ok(())
        }
        // SAFETY: no pointers.
        ["secure"] => so(unsafe { libc::getauxval(libc::AT_SECURE) } == 0),
        ["signals"] => {
            // SAFETY: a set of signals of ours.
            let blocked = unsafe {
                let mut set = std::mem::zeroed();
                libc::sigprocmask(libc::SIG_BLOCK, ptr::null(), &raw mut set);
                libc::sigismember(&raw const set, libc::SIGUSR1)
            };
            so(blocked == 1)
        }
        ["limits", soft] => so(limit()?.rlim_cur.to_string() == soft),
        ["read", number] => {
            let mut byte = 0u8;
            let number = number.parse().unwrap_or(-1);
            let got = sys!(libc::read(number, (&raw mut byte).cast(), 1))?;
            so(got == 1 && byte == b'c')
        }
        ["write", number] => {
            let number = number.parse().unwrap_or(-1);
            // what was closed is /dev/null now, and takes everything
            sys!(libc::write(number, c"c".as_ptr().cast(), 1))?;
            // SAFETY: zeroes are a status.
            let mut status: libc::stat = unsafe { std::mem::zeroed() };
            sys!(libc::fstat(number, &raw mut status))?;
            so(status.st_mode & libc::S_IFMT != libc::S_IFCHR)
        }
        ["continue"] => sys!(libc::raise(libc::SIGCONT)).map(drop),
        _ => answer(-1).map(drop),
    }
}

fn limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    sys!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
    Ok(limit)
}

/// A copy of this program, which reads a script.
pub const INTERPRETER: &str = "/srv/ops/plain/program";

fn script() -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(at("script"), format!("#!{INTERPRETER} script\n"))?;
    fs::set_permissions(at("script"), PermissionsExt::from_mode(0o755))
}

fn traced(kind: &'static str) -> io::Result<()> {
    let pid = sys!(libc::fork())? as i32;
    if pid == 0 {
        leave(
            sys!(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))
                .and_then(|_| execute(kind, &["nothing"])),
        );
    }
    loop {
        let mut status = 0;
        sys!(libc::waitpid(pid, &raw mut status, 0))?;
        if !libc::WIFSTOPPED(status) {
            return came_of(status);
        }
        // what it was to be killed by kills it
        let signal = match libc::WSTOPSIG(status) {
            libc::SIGTRAP => 0,
            signal => signal,
        };
        sys!(libc::ptrace(libc::PTRACE_CONT, pid, 0, signal))?;
    }
}

pub fn add(ops: &mut Ops) {
    for kind in PROGRAMS {
        ops.plain(format!("execute, {kind}"), || execute(kind, &["nothing"]));
        ops.plain(format!("what one becomes, {kind}"), || {
            execute(kind, &["label"])
        });
        if *kind != "plain" {
            ops.plain(format!("become the twin, {kind}"), || {
                execute(kind, &["twin"])
            });
        }
    }
    ops.plain("execute by a descriptor", || {
        let file = open("/srv/ops/plain/program", libc::O_PATH)?;
        let argv = [
            c"te-ops".as_ptr(),
            c"act".as_ptr(),
            c"nothing".as_ptr(),
            ptr::null(),
        ];
        let env = [ptr::null::<libc::c_char>()];
        let flags = libc::AT_EMPTY_PATH;
        sys!(libc::syscall(
            libc::SYS_execveat,
            file.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
            flags
        ))
        .map(drop)
    });
    ops.with("execute a script", script, |()| {
        let path = c(at("script"));
        execute_at(&path, &[])
    });
    ops.plain("the environment is kept, without a change", || {
        execute("plain", &["secure"])
    });
    ops.plain("the environment is kept", || execute("exec", &["secure"]));
    ops.plain("blocked signals are kept", || {
        // SAFETY: a set of signals of ours.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigaddset(&raw mut set, libc::SIGUSR1);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
        }
        execute("exec", &["signals"])
    });
    ops.plain("limits are kept", || {
        let mut limit = limit()?;
        limit.rlim_cur = limit.rlim_max;
        sys!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        execute("exec", &["limits", &limit.rlim_cur.to_string()])
    });
    ops.plain("execute without new privileges, plain", || {
        sys!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        execute("plain", &["nothing"])
    });
    ops.plain("execute without new privileges", || {
        sys!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        execute("exec", &["label"])
    });
    ops.plain("become the twin without new privileges", || {
        sys!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        execute("exec", &["twin"])
    });
    ops.plain("execute while a directory is shared", || {
        let mut stack = vec![0u8; 65536];
        extern "C" fn child(_: *mut libc::c_void) -> i32 {
            leave(execute("exec", &["nothing"]));
        }
        // SAFETY: the memory is copied; the stack is the child's own then.
        let top = unsafe { stack.as_mut_ptr().add(65520) };
        let pid = sys!(libc::clone(
            child,
            top.cast(),
            libc::CLONE_FS | libc::SIGCHLD,
            ptr::null_mut()
        ))?;
        ended(pid as i32)
    });
    ops.plain("execute while traced, plain", || traced("plain"));
    ops.plain("execute while traced", || traced("exec"));
    ops.with("a file to read is inherited", file::make, |()| {
        let file = open(&at("f"), libc::O_RDONLY)?;
        keep(file.as_raw_fd())?;
        execute("exec", &["read", &file.as_raw_fd().to_string()])
    });
    ops.with("a file to write is inherited", file::make, |()| {
        let file = open(&at("f"), libc::O_WRONLY)?;
        keep(file.as_raw_fd())?;
        execute("exec", &["write", &file.as_raw_fd().to_string()])
    });
    ops.plain("a pipe is inherited", || {
        let (from, mut to) = io::pipe()?;
        to.write_all(b"c")?;
        keep(from.as_raw_fd())?;
        execute("exec", &["read", &from.as_raw_fd().to_string()])
    });
    ops.plain("a socket is inherited", || {
        let mut ends = [0; 2];
        sys!(libc::socketpair(
            libc::AF_UNIX,
            libc::SOCK_STREAM,
            0,
            ends.as_mut_ptr()
        ))?;
        let (from, to) = (fd(ends[0].into()), fd(ends[1].into()));
        sys!(libc::write(to.as_raw_fd(), c"c".as_ptr().cast(), 1))?;
        execute("exec", &["read", &from.as_raw_fd().to_string()])
    });
    // what one asks for by /proc/self/attr
    ops.plain("ask for a domain at the next execution", || {
        write("/proc/self/attr/exec", "u:r:asked_t:s0")
    })
    .own();
    ops.plain("execute into the domain asked for", || {
        write("/proc/self/attr/exec", "u:r:asked_t:s0")?;
        execute("exec", &["label"])
    })
    .own();
    ops.plain("change the domain", || {
        write("/proc/self/attr/current", "u:r:asked_t:s0")
    })
    .own();
    for what in ["fscreate", "keycreate", "sockcreate"] {
        ops.plain(format!("ask for a label by {what}"), move || {
            write(&format!("/proc/self/attr/{what}"), "u:object_r:other_t:s0")
        })
        .own();
    }
    ops.plain("create a file with a label asked for", || {
        write("/proc/self/attr/fscreate", "u:object_r:other_t:s0")?;
        open(&at("new"), libc::O_WRONLY | libc::O_CREAT).map(drop)
    })
    .labels("new")
    .own();
    ops.plain("create a socket with a label asked for", || {
        write("/proc/self/attr/sockcreate", "u:object_r:other_t:s0")?;
        sys!(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)).map(drop)
    })
    .own();
}

/// Has a descriptor stay open at an execution.
fn keep(fd: i32) -> io::Result<()> {
    sys!(libc::fcntl(fd, libc::F_SETFD, 0)).map(drop)
}
