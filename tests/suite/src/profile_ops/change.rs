//! Operations of a process that changes what confines it: played under the profiles whose names
//! begin with `change`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use crate::profile_ops::calls::{exec, read, refused, refused_by};
use crate::profile_ops::ops::{Op, ops};

/// Writes to an attribute of the thread, in one call, as libapparmor(3) does.
fn attribute(name: &str, text: &str) -> io::Result<()> {
    let path = format!("/proc/thread-self/attr/apparmor/{name}");
    let done = OpenOptions::new()
        .write(true)
        .open(path)?
        .write(text.as_bytes())?;
    if done == text.len() {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }
}

/// Asks for another profile at once.
pub fn current(text: &str) -> io::Result<()> {
    attribute("current", text)
}

fn onexec(name: &str) -> io::Result<()> {
    attribute("exec", &format!("exec {name}"))
}

fn no_new_privs() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs().map_err(io::Error::from)
}

/// Makes an io_uring, whose workers would stay what this thread was.
fn ring() -> io::Result<()> {
    /// struct io_uring_params of the kernel.
    const PARAMS: usize = 120;
    let mut params = [0u8; PARAMS];
    // SAFETY: the parameters outlive the call, which writes no more than they are.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// All of them.
pub const CHANGES: &[Op] = ops![
    "change to b" => current("changeprofile change-b"),
    "change to b, read b" => current("changeprofile change-b").and_then(|()| read("b")),
    "change to b, read a" => current("changeprofile change-b").and_then(|()| read("a")),
    "change to c" => current("changeprofile change-c"),
    "change to itself, read a" => current("changeprofile change").and_then(|()| read("a")),
    "change to b and back, read a" => {
        current("changeprofile change-b")?;
        current("changeprofile change")?;
        read("a")
    },
    "change to b and to none, read own" => {
        current("changeprofile change-b")?;
        current("changeprofile unconfined")?;
        read("own")
    },
    "change to none, read own" => current("changeprofile unconfined").and_then(|()| read("own")),
    "change to what is not there" => current("changeprofile change-nowhere"),
    "change to what is not there, read own" => {
        current("changeprofile change-nowhere").and_then(|()| read("own"))
    },
    "change to a child" => current("changeprofile change//child"),
    "change to a hat" => current("changeprofile change//one"),
    "change to no name" => current("changeprofile "),
    "ask whether it may change to b" => current("permprofile change-b").and_then(|()| read("a")),
    "ask whether it may change to c" => current("permprofile change-c").and_then(|()| read("a")),
    "change to b without new privileges" => {
        no_new_privs()?;
        current("changeprofile change-b")
    },
    "change to itself without new privileges" => {
        no_new_privs()?;
        current("changeprofile change")
    },
    "no word" => current("rubbish change-b"),
    "a word alone" => current("changehat"),
    "hat" => current("changehat 00000000000000ab^one"),
    "hat, read secret" => current("changehat ab^one").and_then(|()| read("secret/a")),
    "hat, read a" => current("changehat ab^one").and_then(|()| read("a")),
    "hat and back, read a" => {
        current("changehat ab^one")?;
        current("changehat ab^")?;
        read("a")
    },
    "hat and back by an empty name, read a" => {
        current("changehat ab^one")?;
        current("changehat ab^\0")?;
        read("a")
    },
    "change to b, and a line's end, read b" => {
        current("changeprofile change-b\n").and_then(|()| read("b"))
    },
    "change to b, by many spaces, read b" => {
        current("changeprofile   change-b  ").and_then(|()| read("b"))
    },
    "hat and back, read secret" => {
        current("changehat ab^one")?;
        current("changehat ab^")?;
        read("secret/a")
    },
    "hat and back by another token" => {
        current("changehat ab^one")?;
        current("changehat ac^")
    },
    "hat and a further one, read b" => {
        current("changehat ab^one")?;
        current("changehat ab^two")?;
        read("b")
    },
    "hat and a further one by another token" => {
        current("changehat ab^one")?;
        current("changehat ac^two")
    },
    "hat, a further one and back, read a" => {
        current("changehat ab^one")?;
        current("changehat ab^two")?;
        current("changehat ab^")?;
        read("a")
    },
    "hat, and change to b" => {
        current("changehat ab^one")?;
        current("changeprofile change-b")
    },
    "the first hat that is there, read b" => {
        current("changehat ab^none\0two\0one").and_then(|()| read("b"))
    },
    "no such hat" => current("changehat ab^none"),
    "no such hat, read secret" => current("changehat ab^none").and_then(|()| read("secret/a")),
    "a hat that is a child" => current("changehat ab^child"),
    "hat by the token 0" => current("changehat 0^one").and_then(|()| read("secret/a")),
    "back by the token 0" => current("changehat 0^"),
    "back from no hat" => current("changehat ab^"),
    "hat without a token" => current("changehat ^one"),
    "hat by what is no token" => current("changehat xyz^one"),
    "ask whether there is a hat" => current("permhat ab^one").and_then(|()| read("a")),
    "ask for no hat" => current("permhat ab^none"),
    "hat without new privileges" => {
        no_new_privs()?;
        current("changehat ab^one")
    },
    "at execution, c" => onexec("change-c").and_then(|()| exec("ops", "read-secret")),
    "at execution, c, a" => onexec("change-c").and_then(|()| exec("ops", "read-a")),
    "at execution, c, scrubbed" => onexec("change-c").and_then(|()| exec("ops", "secure")),
    "at execution, c, px" => onexec("change-c").and_then(|()| exec("px", "read-secret")),
    "at execution, c, cx" => onexec("change-c").and_then(|()| exec("cx", "read-secret")),
    "at execution, c, cx, scrubbed" => onexec("change-c").and_then(|()| exec("cx", "secure")),
    "at execution, c, other" => onexec("change-c").and_then(|()| exec("other", "read-secret")),
    "at execution, b" => onexec("change-b").and_then(|()| exec("ops", "read-a")),
    "at execution, b, px" => onexec("change-b").and_then(|()| exec("px", "read-a")),
    "at execution, none" => onexec("unconfined").and_then(|()| exec("ops", "read-secret")),
    "at execution, nowhere" => onexec("change-nowhere"),
    "at execution, itself" => onexec("change").and_then(|()| exec("ops", "read-a")),
    "at execution, without new privileges" => {
        onexec("change-c")?;
        no_new_privs()?;
        exec("ops", "read-secret")
    },
    "at execution, asked for and read" => onexec("change-c").and_then(|()| read("a")),
    "at execution, then another one at once" => {
        onexec("change-c")?;
        current("changeprofile change-b")?;
        exec("ops", "read-secret")
    },
];

/// What AppArmor lets be where the rules name no such program at all: it loses the error.
pub const DENIED: &[Op] = ops![
    "change to what is denied" => refused(current("changeprofile change-b")),
    "at the execution of a denied program, none" => refused(
        onexec("unconfined").and_then(|()| exec("ops", "read-secret"))
    ),
    "at the execution of a denied program, itself" => refused(
        onexec("change").and_then(|()| exec("ops", "read-a"))
    ),
    "change with an io_uring" => {
        ring()?;
        refused_by(libc::EBUSY, current("changeprofile change"))
    },
    "at execution, with an io_uring" => {
        ring()?;
        onexec("change")
    },
];
