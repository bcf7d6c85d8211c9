//! The guarded world: higher files, secrets, processes, IPC objects and a key, all open to everybody as far as ordinary permission
//! goes, so that nothing but the monitor keeps an attacker from them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::mqueue::{MQ_OFlag, MqAttr, MqdT, mq_getattr, mq_open, mq_send, mq_unlink};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::stat::Mode;
use nix::unistd::{mkfifo, setsid};
use serde_json::Value;
use tidegate_monitor::Monitor;

use crate::attack::given::{self, Given, NAME, ROOTS, VICTIM};
use crate::attack::judge::GROUP;
use crate::attack::look::{self, Clocks, Look};
use crate::sys::{self, c, syscall};

/// The key of the IPC objects.
const IPC_KEY: i32 = 0x7469_6465;
/// How long a victim or the daemon may take for an answer, in milliseconds.
const ANSWERS_WITHIN: u16 = 60_000;
/// Semaphores of the set.
const SEMAPHORES: usize = 4;

/// A higher process, and what it is asked by.
#[derive(Debug)]
struct Victim {
    process: Child,
    asks: ChildStdin,
    says: BufReader<ChildStdout>,
    /// What it says of its memory.
    memory: String,
}

impl Victim {
    /// Starts one as this user; where its secret is.
    fn start(user: u32) -> Result<(Self, u64)> {
        let mut command = Command::new(VICTIM);
        command.uid(user).gid(user).current_dir("/").env_clear();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // SAFETY: setsid may be called between fork and exec.
        unsafe { command.pre_exec(|| setsid().map(drop).map_err(Into::into)) };
        let mut process = command.spawn().context(VICTIM)?;
        let asks = process.stdin.take().context("a pipe")?;
        let says = BufReader::new(process.stdout.take().context("a pipe")?);
        let mut victim = Self {
            process,
            asks,
            says,
            memory: String::new(),
        };
        let secret_at = victim
            .line()?
            .trim()
            .parse()
            .context("where the secret is")?;
        victim.memory = victim.ask()?;
        Ok((victim, secret_at))
    }

    /// A line that it says; one that has been stopped says none.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let mut fds = [PollFd::new(self.says.get_ref().as_fd(), PollFlags::POLLIN)];
        ensure!(
            poll(&mut fds, ANSWERS_WITHIN)? != 0,
            "a victim says nothing"
        );
        self.says.read_line(&mut line).context("hear a victim")?;
        Ok(line)
    }

    /// What its memory comes to now.
    fn ask(&mut self) -> Result<String> {
        self.asks.write_all(b"\n").context("ask a victim")?;
        self.line()
    }

    fn pid(&self) -> i32 {
        self.process.id() as i32
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// All of it.
#[derive(Debug)]
pub struct World {
    victims: Vec<Victim>,
    /// Open files that attackers have, too.
    shared: [File; 2],
    /// Named sockets that nobody accepts connections of.
    _sockets: Vec<UnixListener>,
    queue: MqdT,
    clocks: Clocks,
    /// What attackers are told of it.
    pub given: Given,
}

/// Detaches the monitor's program on a hook: its link lives by its pin alone.
///
/// # Errors
/// Nothing is attached there.
pub fn leave_out(hook: &str) -> Result<()> {
    let link = format!("{}/lomac_{hook}", look::LINKS);
    fs::remove_file(&link).context(link)
}

/// Puts the programs in their places: all are this one.
///
/// # Errors
/// They cannot be copied.
pub fn install() -> Result<()> {
    let me = std::env::current_exe()?;
    for program in [given::ATTACKER, VICTIM] {
        let dir = Path::new(program).parent().context("a directory")?;
        fs::create_dir_all(dir)?;
        fs::copy(&me, program).context(program)?;
        fs::set_permissions(program, Permissions::from_mode(0o755))?;
    }
    let dir = Path::new(given::LOG).parent().context("a directory")?;
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o777))?;
    Ok(())
}

fn file(path: &str, content: &[u8], mode: u32) -> Result<()> {
    fs::write(path, content).with_context(|| path.to_owned())?;
    // some filesystems have no such attributes
    let (path_c, name) = (c(path), c("user.word"));
    let _ = syscall!(
        libc::SYS_setxattr,
        path_c.as_ptr(),
        name.as_ptr(),
        content.as_ptr(),
        content.len().min(16),
        0
    );
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(())
}

fn dir(path: &str) -> Result<()> {
    fs::create_dir(path).with_context(|| path.to_owned())?;
    fs::set_permissions(path, Permissions::from_mode(0o777))?;
    Ok(())
}

/// The files below one of the roots. The socket that is there listens.
fn files(root: &str) -> Result<UnixListener> {
    for part in ["top", "secret"] {
        let path = format!("{root}/{part}");
        match fs::remove_dir_all(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e).context(path)?,
            _ => {}
        }
    }
    fs::create_dir_all(root)?;
    let top = format!("{root}/top");
    for path in ["", "/dir", "/theirs-dir"] {
        dir(&format!("{top}{path}"))?;
    }
    for name in ["plain", "theirs", "log", "dir/inner", "theirs-dir/inner"] {
        file(
            &format!("{top}/{name}"),
            format!("the words of {name}\n").as_bytes(),
            0o666,
        )?;
    }
    for name in ["theirs", "theirs-dir", "theirs-dir/inner"] {
        chown(format!("{top}/{name}"), Some(1000), Some(1000))?;
    }
    fs::copy("/bin/true", format!("{top}/program")).context("/bin/true")?;
    symlink(format!("{top}/plain"), format!("{top}/link"))?;
    fs::hard_link(format!("{top}/plain"), format!("{top}/dir/again"))?;
    mkfifo(
        format!("{top}/fifo").as_str(),
        Mode::from_bits_truncate(0o666),
    )?;
    let socket = format!("{top}/socket");
    let listener = UnixListener::bind(&socket).with_context(|| socket.clone())?;
    fs::set_permissions(socket, Permissions::from_mode(0o777))?;
    let secret = format!("{root}/secret");
    dir(&secret)?;
    file(&format!("{secret}/file"), &given::secret().repeat(4), 0o666)?;
    given::make_low(root)?;
    Ok(listener)
}

fn ipc() -> Result<[i32; 3]> {
    let flags = libc::IPC_CREAT | 0o666;
    let objects = [
        syscall!(libc::SYS_shmget, IPC_KEY, 4096, flags)?,
        syscall!(libc::SYS_semget, IPC_KEY, SEMAPHORES, flags)?,
        syscall!(libc::SYS_msgget, IPC_KEY, flags)?,
    ];
    // a message that is there for good: a type, and a word
    let message = [1_u64, 0x6465];
    syscall!(
        libc::SYS_msgsnd,
        objects[2],
        message.as_ptr(),
        8,
        libc::IPC_NOWAIT
    )?;
    Ok(objects.map(|object| object as i32))
}

/// The objects that another world of this run has left.
fn remove_ipc() {
    let left = [
        (libc::SYS_shmctl, syscall!(libc::SYS_shmget, IPC_KEY, 0, 0)),
        (libc::SYS_msgctl, syscall!(libc::SYS_msgget, IPC_KEY, 0)),
    ];
    for (control, object) in left {
        if let Ok(object) = object {
            let _ = syscall!(control, object, libc::IPC_RMID, 0);
        }
    }
    if let Ok(set) = syscall!(libc::SYS_semget, IPC_KEY, 0, 0) {
        let _ = syscall!(libc::SYS_semctl, set, 0, libc::IPC_RMID, 0);
    }
}

/// A key in the keyring of this user.
fn key() -> Result<i32> {
    /// KEY_SPEC_USER_KEYRING
    const OF_USER: i32 = -4;
    let (kind, name) = (c("user"), c(NAME));
    let key = syscall!(
        libc::SYS_add_key,
        kind.as_ptr(),
        name.as_ptr(),
        c"word".as_ptr(),
        4,
        OF_USER
    )?;
    // everybody who has the same user may do everything with it
    let (set_permission, all) = (5, 0x3f3f_0000);
    syscall!(libc::SYS_keyctl, set_permission, key, all)?;
    Ok(key as i32)
}

impl World {
    /// Makes it anew, whatever an attack has left.
    ///
    /// # Errors
    /// A part of it cannot be made.
    pub fn make(clocks: Clocks, daemon: i32) -> Result<Self> {
        nix::sys::stat::umask(Mode::empty());
        remove_ipc();
        let _ = mq_unlink(format!("/{NAME}").as_str());
        let sockets = ROOTS
            .iter()
            .map(|root| files(root))
            .collect::<Result<Vec<_>>>()?;
        let log = OpenOptions::new()
            .append(true)
            .read(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(format!("{}/top/log", ROOTS[0]))?;
        let plain = File::open(format!("{}/top/plain", ROOTS[0]))?;
        let attributes = MqAttr::new(0, 4, 64, 0);
        let queue = mq_open(
            format!("/{NAME}").as_str(),
            MQ_OFlag::O_CREAT | MQ_OFlag::O_RDWR | MQ_OFlag::O_NONBLOCK,
            Mode::from_bits_truncate(0o666),
            Some(&attributes),
        )?;
        mq_send(&queue, b"word", 1)?;
        let (of_root, secret_at) = Victim::start(0)?;
        let (of_user, _) = Victim::start(1000)?;
        let inodes = ROOTS.iter().flat_map(|root| {
            ["top/plain", "top/theirs", "secret", "secret/file"]
                .map(|file| format!("{root}/{file}"))
        });
        let inodes = inodes.map(|path| anyhow::Ok(fs::metadata(path)?.ino()));
        let given = Given {
            processes: vec![
                of_root.pid(),
                of_user.pid(),
                std::process::id() as i32,
                daemon,
            ],
            secret_at,
            ipc: ipc()?,
            ipc_key: IPC_KEY,
            key: key()?,
            inodes: inodes.collect::<Result<_>>()?,
        };
        Ok(Self {
            victims: vec![of_root, of_user],
            shared: [log, plain],
            _sockets: sockets,
            queue,
            clocks,
            given,
        })
    }

    /// Copies of the descriptors that attackers share.
    ///
    /// # Errors
    /// No more of them can be had.
    pub fn shared(&self) -> io::Result<[File; 2]> {
        let [log, plain] = &self.shared;
        Ok([log.try_clone()?, plain.try_clone()?])
    }

    /// What it looks like.
    ///
    /// # Errors
    /// The monitor does not say what it enforces.
    pub fn look(&mut self, monitor: &Monitor) -> Result<Look> {
        let mut look = Look::new();
        for root in ROOTS {
            for part in ["top", "secret"] {
                look::tree(&mut look, Path::new(&format!("{root}/{part}")));
            }
        }
        for victim in &mut self.victims {
            let pid = victim.pid();
            look::process(&mut look, pid);
            let line = match victim.process.try_wait()? {
                Some(status) => format!("ended: {status}"),
                None if victim.ask().is_ok_and(|memory| memory == victim.memory) => {
                    "as it was".into()
                }
                None => "other, or it does not answer".into(),
            };
            look.insert(format!("victim {pid} memory"), line);
            let level = syscall!(libc::SYS_pidfd_open, pid, 0).map(|fd| {
                // SAFETY: the kernel has just made it for this process.
                let process = unsafe { OwnedFd::from_raw_fd(fd as i32) };
                monitor.level_of(process.as_fd())
            });
            look.insert(format!("victim {pid} level"), format!("{level:?}"));
        }
        self.objects(&mut look)?;
        let status = monitor.status()?;
        let line = format!(
            "policy {} top {} permissive {} daemon {}",
            status.seqno, status.top, status.permissive, status.daemon
        );
        look.insert("monitor status".into(), line);
        let answer = answer().unwrap_or_else(|e| format!("does not answer: {e}"));
        look.insert("monitor daemon".into(), answer);
        look::machine(&mut look, self.clocks, GROUP);
        Ok(look)
    }

    /// IPC objects, the key, the queue, and the flags of the shared files.
    fn objects(&self, look: &mut Look) -> Result<()> {
        let [segment, set, queue] = self.given.ipc;
        let shown = |state: Result<[u64; 32], Errno>| match state {
            // struct ipc64_perm: the key, owners and mode
            Ok(state) => format!("{:x?}", &state[..6]),
            Err(e) => e.to_string(),
        };
        look.insert(
            "ipc segment".into(),
            shown(ipc_state(libc::SYS_shmctl, &[segment, libc::IPC_STAT])),
        );
        look.insert(
            "ipc set".into(),
            shown(ipc_state(libc::SYS_semctl, &[set, 0, libc::IPC_STAT])),
        );
        let state = ipc_state(libc::SYS_msgctl, &[queue, libc::IPC_STAT]);
        // struct msqid64_ds: three times and the bytes come before the count
        let messages = state.map_or(0, |state| state[10]);
        look.insert(
            "ipc queue".into(),
            format!("{}, {messages} messages", shown(state)),
        );
        let mut values = [0_u16; SEMAPHORES];
        // GETALL
        let got = syscall!(libc::SYS_semctl, set, 0, 13, values.as_mut_ptr());
        look.insert("ipc semaphores".into(), format!("{got:?} {values:?}"));
        look.insert("ipc memory".into(), format!("{:x}", segment_sum(segment)));
        look.insert(
            "queue".into(),
            format!(
                "{:?}",
                mq_getattr(&self.queue).map(|attributes| attributes.curmsgs())
            ),
        );
        let mut text = [0_u8; 256];
        for (what, call) in [("describe", 6), ("read", 11)] {
            let got = syscall!(
                libc::SYS_keyctl,
                call,
                self.given.key,
                text.as_mut_ptr(),
                text.len()
            );
            let length = got.map_or(0, |length| length as usize).min(text.len());
            look.insert(
                format!("key {what}"),
                format!("{got:?} {}", String::from_utf8_lossy(&text[..length])),
            );
        }
        for (file, number) in self.shared.iter().zip(given::SHARED) {
            let flags = rustix::fs::fcntl_getfl(file)?;
            look.insert(format!("shared file {number}"), format!("{flags:?}"));
        }
        Ok(())
    }

    /// Makes what attacks may change as it was.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn tidy(&self) -> Result<()> {
        for root in ROOTS {
            given::make_low(root).with_context(|| format!("{root}/low"))?;
        }
        Ok(())
    }
}

/// What a control call writes of an object's state after these arguments.
fn ipc_state(call: libc::c_long, args: &[i32]) -> Result<[u64; 32], Errno> {
    let mut state = [0_u64; 32];
    let mut all: Vec<libc::c_long> = args.iter().map(|arg| (*arg).into()).collect();
    all.push(state.as_mut_ptr() as libc::c_long);
    sys::by_number(call, &all)?;
    Ok(state)
}

/// What the segment's memory comes to.
fn segment_sum(segment: i32) -> u64 {
    // SAFETY: a new mapping at a place that the kernel chooses.
    let at = unsafe { libc::shmat(segment, std::ptr::null(), libc::SHM_RDONLY) };
    if at as isize == -1 {
        return u64::MAX;
    }
    // SAFETY: the segment has a page; others may write to it, and any bytes will do.
    let sum: u64 = (0..4096)
        .map(|n| u64::from(unsafe { at.cast::<u8>().add(n).read_volatile() }))
        .sum();
    // SAFETY: nothing points there any more.
    unsafe { libc::shmdt(at) };
    sum
}

/// What the daemon says of this process.
fn answer() -> io::Result<String> {
    let mut stream = UnixStream::connect("/run/tidegate/tidegate.sock")?;
    stream.set_read_timeout(Some(Duration::from_millis(ANSWERS_WITHIN.into())))?;
    stream.write_all(b"{\"ask\":\"whoami\"}\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let answer: Value = serde_json::from_str(&answer)?;
    Ok(answer
        .pointer("/you/level")
        .map_or_else(|| "says no level".into(), Value::to_string))
}

/// The daemon's process, as it says itself.
///
/// # Errors
/// None runs.
pub fn daemon() -> Result<i32> {
    let pid = fs::read_to_string("/run/tidegate/pid").context("the daemon")?;
    let pid = pid.trim().parse().context("the daemon")?;
    ensure!(pid > 1, "the daemon is process {pid}");
    Ok(pid)
}
