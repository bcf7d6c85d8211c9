//! Processes in the domain, and the policy's booleans.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::wait::{state, until};

pub const TIDEGATE: &str = "/payload/tidegate";
pub const CONTEXT: &str = "u:r:live_t";

/// How long is waited for what has to come: an emulated processor may be slow.
const PATIENCE: Duration = Duration::from_secs(300);

/// Asks again and again until it is so; whether it came to be.
pub fn soon(mut so: impl FnMut() -> bool) -> bool {
    until(PATIENCE, || Ok::<_, Infallible>(so())).unwrap_or(false)
}

/// A process that holds what it is told to.
pub struct Holder {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Holder {
    /// Begins one.
    pub fn new() -> Holder {
        let mut command = Command::new(TIDEGATE);
        command.args([
            "run",
            "--context",
            CONTEXT,
            "--",
            "/payload/te-live",
            "hold",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tidegate runs");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        Holder { child, to, from }
    }

    /// Tells it to do something.
    pub fn tell(&mut self, what: &str) {
        let _ = writeln!(self.to, "{what}");
    }

    /// Tells it to do something that waits for others, and waits until it does: it has taken the line, and sleeps.
    pub fn waits(&mut self, what: &str) {
        self.tell(what);
        let task = format!("/proc/{}", self.child.id());
        let taken = || {
            let mut left: libc::c_int = 1;
            // SAFETY: the number is written to room for it.
            let asked = unsafe { libc::ioctl(self.to.as_raw_fd(), libc::FIONREAD, &raw mut left) };
            asked == 0 && left == 0
        };
        let is = soon(|| taken() && matches!(state(&task), None | Some('S' | 'Z')));
        assert!(is, "{what}: it does not wait");
    }

    /// What became of it; `gone` if it has ended.
    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) | Err(_) => "gone".into(),
            Ok(_) => line.trim_end().into(),
        }
    }

    /// Both.
    pub fn does(&mut self, what: &str) -> String {
        self.tell(what);
        self.hear()
    }

    /// The signal that it was killed by.
    pub fn signal(&mut self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        self.child.wait().ok().and_then(|status| status.signal())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sets booleans; what was said.
pub fn set(values: &[&str]) -> Result<String, String> {
    tidegate(&[&["setsebool"], values].concat())
}

/// Runs a command of Tidegate's; what it said, or what of it failed.
pub fn tidegate(args: &[&str]) -> Result<String, String> {
    let out = Command::new(TIDEGATE)
        .args(args)
        .output()
        .map_err(|e| e.to_string())?;
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    if out.status.success() {
        Ok(said)
    } else {
        Err(said)
    }
}
