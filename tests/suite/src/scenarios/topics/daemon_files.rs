//! Capability files that users bring to the daemon, made so that they take its room or its time from others.

use std::fs::{self, File};
use std::io::Write;

use nix::errno::Errno;
use serde_json::{Value, json};
use tidegate_bundle::RuleSource;
use tidegate_bundle::automaton::Automaton;
use tidegate_bundle::caps::{
    Capabilities, Capability, Class, Names, Objects, Pattern, Subject, permission,
};

use super::commands::lines;
use super::floods::FLOODER;
use super::fuse_clients::ask_with;
use crate::scenarios::check::{Failed, Outcome, ensure, refused, same, soon};
use crate::scenarios::daemon;
use crate::scenarios::scenario::{Scenario, bypass};
use crate::scenarios::subject::{Child, Level, become_user, spawn, step, tell, told};
use crate::scenarios::sys;

use Level::Untrusted;

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "daemon-files-patterns",
        "long patterns take many times their bytes in the daemon",
        patterns,
    )
    .last(),
    bypass(
        "daemon-files-recorded",
        "each record of a refusal has a whole capability file read again",
        recorded,
    )
    .last(),
    bypass(
        "daemon-files-revoked",
        "a revocation waits until the capability files of all users are read",
        revoked,
    )
    .last(),
    bypass(
        "daemon-files-kept",
        "what the daemon keeps of a user's capability files fills /run",
        kept,
    )
    .last()
    .slow(),
    bypass(
        "daemon-files-without-end",
        "files that are too large are brought without end, and a revocation waits behind them",
        without_end,
    )
    .last()
    .slow(),
];

/// Where the daemon keeps what it keeps of capability files.
const KEPT: &str = "/run/tidegate/policy/caps";

/// Users beside the one that floods.
const OTHER: u32 = FLOODER + 1;

/// Bytes that a user may bring.
const OF_ONE: u64 = 32 << 20;

/// So many sessions that the daemon would not hold the files of all of them.
const SESSIONS: usize = 10;

/// An automaton of so many states that says nothing of any name.
fn silent<A: Default>(states: usize) -> Automaton<A> {
    let width = u8::MAX.into();
    Automaton {
        classes: Box::new([0; 256]),
        width,
        next: vec![0; states * usize::from(width)],
        accepts: vec![0; states],
        answers: vec![A::default()],
        start: 0,
    }
}

/// A file of one subject, as no compiler makes it.
struct Brought<'t> {
    subject: &'t str,
    /// So many capabilities,
    count: usize,
    /// whose pattern this is,
    pattern: &'t str,
    /// and whose line.
    text: &'t str,
    /// States of the automaton of each class.
    states: usize,
}

impl Brought<'_> {
    fn bundle(&self) -> Outcome<Vec<u8>> {
        let source = |text: &str| RuleSource {
            file: "brought.caps".into(),
            line: 1,
            text: text.into(),
        };
        let pattern = Pattern::parse(self.pattern, Names::Paths).map_err(Failed::because)?;
        let of = |class, rights| Capability {
            subject: 0,
            class,
            objects: Objects::Named(pattern.clone()),
            rights,
            becomes: None,
            expires: None,
            uses: None,
            source: source(self.text),
        };
        let classes = [
            (Class::File, permission::READ),
            (Class::Dir, permission::READ),
        ];
        let mut capabilities = vec![of(Class::File, permission::READ); self.count];
        capabilities.extend(classes.map(|(class, rights)| of(class, rights)));
        let subject = Subject {
            name: self.subject.into(),
            control: Vec::new(),
            automata: classes
                .map(|(class, _)| (class, silent(self.states)))
                .into(),
            source: source(""),
        };
        let all = Capabilities {
            subjects: vec![subject],
            services: Vec::new(),
            capabilities,
            sockets: silent(1),
        };
        Ok(all.to_bundle())
    }

    /// The least that there is of it.
    fn small(subject: &str) -> Brought<'_> {
        Brought {
            subject,
            count: 0,
            pattern: "/a",
            text: "",
            states: 1,
        }
    }
}

/// Has this process be limited by a bundle; what the daemon says.
fn brings(bundle: &[u8], now: bool) -> Outcome<Value> {
    let memory = sys::memfd(libc::MFD_ALLOW_SEALING)?;
    File::from(memory.try_clone()?).write_all(bundle)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK;
    sys::fcntl(&memory, libc::F_ADD_SEALS, seals.into())?;
    let question = json!({"ask": "capabilities", "subject": null, "now": now});
    let said = ask_with(&question, &memory)?;
    serde_json::from_str(&said).map_err(|e| Failed::because(format_args!("{said:?}: {e}")))
}

/// Whether the daemon did what it was asked for.
fn is_done(said: &Value) -> bool {
    said.get("done").is_some()
}

/// A user's process, of the lowest level, that may be limited.
fn of_user(user: u32, part: impl FnOnce() -> Outcome) -> Outcome<Child> {
    spawn(Untrusted, || {
        become_user(user)?;
        nix::sys::prctl::set_no_new_privs()?;
        part()
    })
}

/// A user's process that is limited by a small file, and stands still. Then it looks at what it may not, and stands still again.
fn limited(user: u32, subject: &str) -> Outcome<Child> {
    let bundle = Brought::small(subject).bundle()?;
    let child = of_user(user, || {
        let said = brings(&bundle, true)?;
        ensure(is_done(&said), &said.to_string())?;
        step()?;
        refused(Errno::EACCES, sys::reads("/"))?;
        step()
    })?;
    child.stands()?;
    Ok(child)
}

/// Sessions of as many files, whose subjects are called by their numbers.
fn sessions() -> Outcome<Vec<(String, Child)>> {
    let names = (0..SESSIONS).map(|number| format!("s{number}"));
    let limited = |name: String| {
        let child = limited(FLOODER, &name)?;
        Ok((name, child))
    };
    names.map(limited).collect()
}

fn end(children: Vec<(String, Child)>) -> Outcome {
    children.into_iter().try_for_each(|(_, child)| child.kill())
}

/// All that is kept, and how many bytes that is.
fn files_kept() -> Outcome<(Vec<std::path::PathBuf>, u64)> {
    let (mut paths, mut bytes) = (Vec::new(), 0);
    for entry in fs::read_dir(KEPT)? {
        let entry = entry?;
        bytes += entry.metadata()?.len();
        paths.push(entry.path());
    }
    Ok((paths, bytes))
}

/// Takes away what is kept, so that nobody can read it.
fn nothing_is_kept() -> Outcome {
    for path in files_kept()?.0 {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The most memory that the daemon has had so far, in bytes.
fn peak(pid: i32) -> Outcome<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = value.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    let kib = kib.ok_or_else(|| Failed::because("the daemon's memory is not told"))?;
    Ok(kib << 10)
}

fn patterns() -> Outcome {
    let pid = daemon::pid().ok_or_else(|| Failed::because("no daemon"))?;
    let pattern = format!("/{}", "a".repeat(2_049));
    let bundle = Brought {
        count: 1_500,
        pattern: &pattern,
        ..Brought::small("a")
    };
    let bundle = bundle.bundle()?;
    // the model is loaded by then
    limited(OTHER, "small")?.kill()?;
    let before = peak(pid)?;
    of_user(FLOODER, || {
        let said = brings(&bundle, false)?;
        ensure(is_done(&said), &said.to_string())
    })?
    .join()?;
    let grown = peak(pid)? - before;
    same("the daemon", daemon::pid(), Some(pid))?;
    ensure(
        grown < 6 * bundle.len(),
        &format!("{} bytes took {grown} in the daemon", bundle.len()),
    )
}

fn recorded() -> Outcome {
    let sessions = sessions()?;
    nothing_is_kept()?;
    let played = sessions.iter().try_for_each(|(name, child)| {
        child.go()?;
        child.stands()?;
        let pid = child.pid.to_string();
        let told = soon(|| {
            let records = lines(&["log", "--json", "--denied", "--pid", &pid]).unwrap_or_default();
            Ok(records.iter().any(|r| r["caps"]["subject"] == json!(name)))
        })?;
        ensure(told, &format!("no record names {name}"))
    });
    end(sessions)?;
    played
}

fn revoked() -> Outcome {
    let sessions = sessions()?;
    nothing_is_kept()?;
    let played = (|| {
        for what in [
            "--object=file:/a",
            "--subject=s0",
            "--subject=brought.caps:s9",
        ] {
            same(what, daemon::quietly(&["revoke", what])?, 0)?;
        }
        let listed = json!(lines(&["sessions", "--json"])?).to_string();
        ensure(
            listed.contains("s5 (brought.caps)"),
            "the other sessions are not told by name",
        )
    })();
    end(sessions)?;
    played
}

fn kept() -> Outcome {
    // files are kept as long as there is a session
    let holder = limited(OTHER, "holder")?;
    let text = "x".repeat(4_096);
    let flooder = of_user(FLOODER, || {
        for subject in ["first", "second", "third"] {
            let bundle = Brought {
                count: 7_000,
                text: &text,
                ..Brought::small(subject)
            };
            let said = brings(&bundle.bundle()?, false)?;
            ensure(
                is_done(&said) == (subject == "first"),
                &format!("{subject}: {said}"),
            )?;
        }
        Ok(())
    })?;
    let played = flooder.join().and_then(|()| {
        let (_, bytes) = files_kept()?;
        ensure(
            bytes <= OF_ONE,
            &format!("{bytes} bytes are kept of one user's files"),
        )?;
        limited(OTHER, "another")?.kill()
    });
    holder.kill()?;
    played
}

/// A user's process that brings what is too large for it again and again. It gives a sign once it was refused.
fn floods(bundle: &[u8], sign: &str) -> Outcome<Child> {
    let child = of_user(FLOODER, || {
        loop {
            let said = brings(bundle, false)?;
            ensure(!is_done(&said), "there is room for it")?;
            tell(sign)?;
        }
    })?;
    Ok(child)
}

fn without_end() -> Outcome {
    let bundle = Brought {
        states: 40_000,
        ..Brought::small("large")
    };
    let bundle = bundle.bundle()?;
    let flooders = [floods(&bundle, "one")?, floods(&bundle, "two")?];
    let played = (|| {
        told("one")?;
        told("two")?;
        for number in 0..3 {
            let session = limited(OTHER, &format!("s{number}"))?;
            let subject = format!("--subject=s{number}");
            for what in ["--object=file:/a", &subject] {
                same(what, daemon::quietly(&["revoke", what])?, 0)?;
            }
            session.kill()?;
        }
        Ok(())
    })();
    for flooder in flooders {
        flooder.kill()?;
    }
    played
}
