//! Tidegate's commands and its daemon, as users and attackers meet them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use serde_json::{Value, json};

use crate::scenarios::check::{Failed, Outcome, PATIENCE, allowed, ensure, refused, same, soon};
use crate::scenarios::daemon;
use crate::scenarios::level::{self, ask, object_is};
use crate::scenarios::place::{self, AREA, LOW, RUN_AREA, SYSTEM, path};
use crate::scenarios::scenario::{Scenario, bypass, life};
use crate::scenarios::setup;
use crate::scenarios::subject::{Level, at, become_alice, lower, spawn, start, step};
use crate::scenarios::sys;
use crate::sys::c;

use Level::{System, Untrusted, User};

/// docs/reference/exit-codes.md
const USAGE: i32 = 2;
const POLICY: i32 = 3;
const RUNNING: i32 = 6;
const NOT_PERMITTED: i32 = 7;

pub const SCENARIOS: &[Scenario] = &[
    life(
        "adopted-processes",
        "what ran before the start has the level of what it had open",
        adopted,
    ),
    life("status", "status says what is in force", status),
    life("ps", "ps agrees with the processes themselves", ps),
    life("ls", "ls agrees with who may write", ls),
    life(
        "run",
        "run executes a command at a level, and never above the asker's",
        run,
    ),
    life(
        "promote",
        "promote raises an object, for the top level only",
        promote,
    ),
    life(
        "why-denied",
        "why tells a refusal and how the subject came to be what it is",
        why_denied,
    ),
    life(
        "why-channel",
        "and who drew it down with a channel",
        why_channel,
    ),
    life(
        "why-exec",
        "a subject's history goes on through fork and exec",
        why_exec,
    ),
    life("log", "the audit log has every refusal", log),
    life(
        "second-start",
        "a second start changes nothing",
        second_start,
    ),
    life(
        "bad-policy",
        "a wrong policy leaves the one in force",
        bad_policy,
    ),
    bypass(
        "stop-from-below",
        "root below the top stops or reloads",
        stop_from_below,
    ),
    bypass(
        "daemon-asked-by-hand",
        "the same by words to the daemon's socket",
        by_hand,
    ),
    bypass(
        "daemon-connection-inherited",
        "the same over a connection that a higher parent made",
        inherited,
    ),
    bypass(
        "daemon-socket-of-administrators",
        "a connection to the socket of those who administer, to keep that busy",
        administrators_socket,
    ),
    bypass(
        "daemon-socket-replaced",
        "the daemon's files removed or replaced",
        replaced,
    ),
    bypass(
        "daemon-attacked",
        "the daemon stopped, traced, starved or renamed from below",
        attacked,
    ),
];

/// What squatters do that the orchestrator starts before Tidegate.
pub fn adopted() -> Outcome {
    for (what, level) in [("low", Untrusted), ("user", User), ("none", System)] {
        let said = format!("{}/{what}", place::TMPFS);
        // its level is the level of what it makes
        ensure(
            soon(|| Ok(fs::exists(&said)?))?,
            &format!("the process that has {what} open says nothing"),
        )?;
        object_is(&said, level)?;
    }
    Ok(())
}

fn status() -> Outcome {
    same(
        "the levels",
        daemon::status("/levels")?,
        json!(["untrusted", "user", "system"]),
    )?;
    same("permissive", daemon::status("/permissive")?, json!(false))?;
    same(
        "the daemon",
        daemon::status("/daemon")?,
        json!(daemon::pid()),
    )?;
    same("room", daemon::status("/given/max")?, json!(setup::GIVEN))?;
    let attached = daemon::status("/attached")?.as_u64().unwrap_or(0);
    ensure(attached > 50, "few programs are attached")?;
    let before = daemon::status("/records")?.as_u64();
    at(Untrusted, || Ok(()))?;
    ensure(
        daemon::status("/records")?.as_u64() > before,
        "a demotion left no record",
    )
}

/// Lines of JSON that a command prints.
pub(super) fn lines(args: &[&str]) -> Outcome<Vec<Value>> {
    let out = daemon::run(args)?;
    let text = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        return Err(Failed::because(format_args!("{args:?}: {said}")));
    }
    let parsed: Result<_, _> = text.lines().map(serde_json::from_str).collect();
    parsed.map_err(|e| Failed::because(format_args!("{args:?}: {e}")))
}

fn ps() -> Outcome {
    let children = Level::ALL.map(|l| spawn(l, step));
    let mut seen = Vec::new();
    for (child, level) in children.into_iter().zip(Level::ALL) {
        let child = child?;
        child.stands()?;
        let list = lines(&["ps", "--json"])?;
        let line = list.iter().find(|l| l["pid"] == json!(child.pid.as_raw()));
        seen.push((level, line.map(|l| l["level"].clone())));
        child.kill()?;
    }
    for (level, said) in seen {
        same("what ps says", said, Some(json!(level.name())))?;
    }
    level::is(System)
}

fn ls() -> Outcome {
    let given = path(AREA, "given");
    at(Untrusted, || Ok(fs::write(&given, "x")?))?;
    let ruled = place::file(LOW, "ruled")?;
    let high = place::file(SYSTEM, "high")?;
    for (file, level, from) in [
        (&given, Untrusted, "given"),
        (&ruled, Untrusted, "rule"),
        (&high, System, "rule"),
    ] {
        let list = lines(&["ls", "--json", file])?;
        same(
            "what ls says",
            list[0]["level"].clone(),
            json!(level.name()),
        )?;
        same("whence", list[0]["from"].clone(), json!(from))?;
        object_is(file, level)?;
    }
    // looking is not reading
    level::is(System)
}

fn run() -> Outcome {
    for level in Level::ALL {
        let args = [
            "run",
            "--level",
            level.name(),
            "--",
            "dash",
            "-c",
            super::exec::TELL,
        ];
        let code = daemon::quietly(&args)?;
        same(
            "the level",
            crate::scenarios::helper::level_of_status(code),
            Some(level),
        )?;
        level::is(System)?;
    }
    at(Untrusted, || {
        let code = daemon::quietly(&["run", "--level", "user", "--", "true"])?;
        same("the exit code", code, NOT_PERMITTED)?;
        same(
            "an unknown level",
            daemon::quietly(&["run", "--level", "none", "--", "true"])?,
            USAGE,
        )
    })
}

fn promote() -> Outcome {
    let file = path(AREA, "file");
    at(Untrusted, || Ok(fs::write(&file, "x")?))?;
    for level in Level::LOWER {
        at(level, || {
            same(
                "the exit code",
                daemon::quietly(&["promote", &file])?,
                NOT_PERMITTED,
            )
        })?;
    }
    object_is(&file, Untrusted)?;
    same(
        "the exit code",
        daemon::quietly(&["promote", &file, "--level", "user"])?,
        0,
    )?;
    object_is(&file, User)?;
    same("the exit code", daemon::quietly(&["promote", &file])?, 0)?;
    object_is(&file, System)?;
    sys::drop_caches()?;
    object_is(&file, System)
}

/// The chain that explains something.
fn chain(of: Value) -> Outcome<Vec<Value>> {
    let answer = ask(&json!({"ask": "why", "of": of}))?;
    let chain = answer.pointer("/why/chain").and_then(Value::as_array);
    chain
        .cloned()
        .ok_or_else(|| Failed::because(format_args!("the daemon said {answer}")))
}

fn why_denied() -> Outcome {
    let (low, high) = (place::file(LOW, "low")?, place::file(SYSTEM, "high")?);
    let child = start(|| {
        allowed(fs::read(&low))?;
        refused(Errno::EPERM, sys::writes(&high))?;
        step()
    })?;
    child.stands()?;
    let chain = chain(json!("last"))?;
    let pid = json!(child.pid.as_raw());
    child.kill()?;
    ensure(chain.len() >= 2, "the chain is short")?;
    let (denied, demoted) = (&chain[0], &chain[1]);
    same("the kind", denied["kind"].clone(), json!("denied"))?;
    same("the operation", denied["op"].clone(), json!("open-write"))?;
    same("the object", denied["object"]["path"].clone(), json!(high))?;
    same("the subject", denied["subject"]["pid"].clone(), pid.clone())?;
    same(
        "its level",
        denied["subject"]["level"].clone(),
        json!("untrusted"),
    )?;
    ensure(
        denied["rule"]["text"]
            .as_str()
            .is_some_and(|t| t.contains("/scn/system")),
        "another rule",
    )?;
    same("the kind before", demoted["kind"].clone(), json!("demoted"))?;
    same("the cause", demoted["object"]["path"].clone(), json!(low))?;
    same("who fell", demoted["subject"]["pid"].clone(), pid)?;
    same("from", demoted["subject"]["was"].clone(), json!("system"))?;
    ensure(
        demoted["rule"]["text"]
            .as_str()
            .is_some_and(|t| t.contains("/scn/low")),
        "another rule",
    )
}

fn why_channel() -> Outcome {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let reader = start(|| {
        let child = start(|| {
            lower(Untrusted)?;
            Ok(sys::put(&write)?)
        })?;
        let drew = child.pid.as_raw();
        child.join()?;
        let chain = chain(json!({"process": std::process::id()}))?;
        let first = chain.first().cloned().unwrap_or_default();
        same("the kind", first["kind"].clone(), json!("demoted"))?;
        same("the reason", first["reason"].clone(), json!("channel"))?;
        same("by whom", first["object"]["pid"].clone(), json!(drew))
    })?;
    drop(read);
    reader.join()
}

/// Becomes another program.
fn execute(program: &str, args: &[&str]) -> Outcome {
    let argv: Vec<_> = [&[program], args].concat().into_iter().map(c).collect();
    nix::unistd::execv(&argv[0], &argv)?;
    Ok(())
}

fn why_exec() -> Outcome {
    let low = place::file(LOW, "low")?;
    // neither leaves a record where the label stays as it was
    let shell = start(|| {
        allowed(fs::read(&low))?;
        execute("/usr/bin/dash", &["-c", "sleep 1000 & kill -STOP $$"])
    })?;
    shell.stands()?;
    let pid = shell.pid;
    let forked = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    for pid in [pid.to_string(), forked.trim().to_string()] {
        let pid: i32 = pid.parse().map_err(Failed::because)?;
        let chain = chain(json!({"process": pid}))?;
        same("the records", chain.len(), 1)?;
        same("the kind", chain[0]["kind"].clone(), json!("demoted"))?;
        same("the cause", chain[0]["object"]["path"].clone(), json!(low))?;
    }
    shell.kill()?;
    // it changes where trust begins
    let program = format!("{}/trusted", place::BIN);
    let trusted = spawn(User, || execute(&program, &["--helper", "stand"]))?;
    trusted.stands()?;
    let chain = chain(json!({"process": trusted.pid.as_raw()}))?;
    trusted.kill()?;
    same("the records", chain.len(), 2)?;
    for (record, kind, path) in [
        (&chain[0], "started", program),
        (&chain[1], "demoted", place::level_file(User)),
    ] {
        same("the kind", record["kind"].clone(), json!(kind))?;
        same("the object", record["object"]["path"].clone(), json!(path))?;
    }
    Ok(())
}

fn log() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let child = spawn(Untrusted, || {
        refused(Errno::EPERM, sys::writes(&high))?;
        step()
    })?;
    child.stands()?;
    let pid = child.pid.as_raw().to_string();
    let logged = soon(|| {
        let list = lines(&["log", "--json", "--denied", "--pid", &pid]).unwrap_or_default();
        Ok(list.iter().any(|r| r["object"]["path"] == json!(high)))
    })?;
    child.kill()?;
    ensure(logged, "the refusal is not in the log")
}

fn second_start() -> Outcome {
    let seqno = daemon::status("/seqno")?;
    same(
        "the exit code",
        daemon::quietly(&["start", "--policy", setup::POLICY_FILE])?,
        RUNNING,
    )?;
    same("the exit code", daemon::quietly(&["start"])?, RUNNING)?;
    same("the policy's number", daemon::status("/seqno")?, seqno)
}

fn bad_policy() -> Outcome {
    let seqno = daemon::status("/seqno")?;
    for text in [
        "levels system > user > untrusted\nsytem /\n",
        "levels high > low\nhigh /\n",
        "",
        "system /\n",
    ] {
        let file = path(SYSTEM, "wrong.plm");
        fs::write(&file, text)?;
        same(
            "the exit code",
            daemon::quietly(&["reload", "--policy", &file])?,
            POLICY,
        )?;
    }
    let bundle = path(SYSTEM, "wrong.bundle");
    fs::write(&bundle, "not a bundle")?;
    same(
        "the exit code",
        daemon::quietly(&["reload", "--bundle", &bundle])?,
        POLICY,
    )?;
    same(
        "the exit code",
        daemon::quietly(&["reload", "--policy", "/scn/none"])?,
        USAGE,
    )?;
    same("the policy's number", daemon::status("/seqno")?, seqno)?;
    at(Untrusted, || {
        refused(Errno::EPERM, sys::writes(place::PROBES[0].1))
    })
}

fn stop_from_below() -> Outcome {
    for level in Level::LOWER {
        for alice in [false, true] {
            at(level, || {
                if alice {
                    become_alice()?;
                }
                for args in [
                    &["stop"][..],
                    &["reload", "--policy", setup::POLICY_FILE],
                    &["start"],
                ] {
                    let code = daemon::quietly(args)?;
                    ensure(
                        [NOT_PERMITTED, RUNNING].contains(&code),
                        &format!("{args:?} gave {code}"),
                    )?;
                }
                Ok(())
            })?;
        }
    }
    // nor does an ordinary user at the top
    at(System, || {
        become_alice()?;
        same("the exit code", daemon::quietly(&["stop"])?, NOT_PERMITTED)
    })?;
    at(Untrusted, || {
        refused(Errno::EPERM, sys::writes(place::PROBES[0].1))
    })
}

fn by_hand() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let file = place::path(AREA, level.name());
            fs::write(&file, "x")?;
            for question in [
                json!({"ask": "stop"}),
                json!({"ask": "reload", "permissive": true}),
                json!({"ask": "promote", "level": "system", "path": file}),
                json!({"ask": "none"}),
                json!([1, 2]),
            ] {
                let answer = ask(&question)?;
                ensure(
                    answer.get("error").is_some(),
                    &format!("{question}: {answer}"),
                )?;
            }
            Ok(())
        })?;
    }
    status()
}

fn inherited() -> Outcome {
    for question in [r#"{"ask":"reload","permissive":true}"#, r#"{"ask":"stop"}"#] {
        let mut stream = UnixStream::connect("/run/tidegate/tidegate.sock")?;
        start(|| {
            lower(Untrusted)?;
            Ok(writeln!(stream, "{question}")?)
        })?
        .join()?;
        let mut answer = String::new();
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.read_to_string(&mut answer)?;
        ensure(
            answer.contains(r#""error""#) && answer.contains("level"),
            &format!("the daemon answered: {answer}"),
        )?;
    }
    status()
}

fn administrators_socket() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            refused(Errno::EPERM, UnixStream::connect(level::ADMIN))
        })?;
    }
    at(System, || {
        become_alice()?;
        refused(Errno::EACCES, UnixStream::connect(level::ADMIN))
    })?;
    allowed(UnixStream::connect(level::ADMIN))?;
    status()
}

fn replaced() -> Outcome {
    for level in Level::LOWER {
        at(level, || {
            let (own, taken) = (path(RUN_AREA, "own"), path(RUN_AREA, "taken"));
            fs::write(&own, "x")?;
            for file in ["tidegate.sock", "admin.sock", "lock", "pid", "level/system"] {
                let file = format!("/run/tidegate/{file}");
                refused(Errno::EPERM, fs::remove_file(&file))?;
                refused(Errno::EPERM, fs::rename(&file, &taken))?;
                refused(Errno::EPERM, fs::rename(&own, &file))?;
            }
            refused(Errno::EPERM, fs::remove_dir("/run/tidegate/policy"))?;
            for dir in ["/run/tidegate/policy", "/run/tidegate"] {
                refused(Errno::EPERM, fs::rename(dir, &taken))?;
            }
            refused(Errno::EPERM, fs::write("/run/tidegate/level/system", "x"))?;
            refused(Errno::EPERM, fs::create_dir("/run/tidegate/own"))?;
            refused(Errno::EPERM, sys::writes("/var/log/tidegate/audit.jsonl"))?;
            refused(
                Errno::EPERM,
                fs::remove_file("/var/log/tidegate/audit.jsonl"),
            )?;
            refused(Errno::EPERM, level::touch(setup::tidegate()))?;
            Ok(fs::remove_file(own)?)
        })?;
    }
    status()
}

fn attacked() -> Outcome {
    let daemon = daemon::pid().ok_or_else(|| Failed::because("no daemon"))?;
    let pid = nix::unistd::Pid::from_raw(daemon);
    for level in Level::LOWER {
        at(level, || {
            use nix::sys::signal::{Signal, kill};
            for signal in [
                Signal::SIGKILL,
                Signal::SIGSTOP,
                Signal::SIGTERM,
                Signal::SIGINT,
            ] {
                refused(Errno::EPERM, kill(pid, signal))?;
            }
            refused(Errno::EPERM, nix::sys::ptrace::attach(pid))?;
            refused(
                Errno::EPERM,
                crate::sys::syscall!(libc::SYS_setpriority, libc::PRIO_PROCESS, daemon, 19),
            )?;
            let limit = [0u64, 0];
            refused(
                Errno::EPERM,
                crate::sys::syscall!(
                    libc::SYS_prlimit64,
                    daemon,
                    libc::RLIMIT_NOFILE,
                    limit.as_ptr(),
                    0
                ),
            )?;
            refused(
                Errno::EPERM,
                sys::writes(format!("/proc/{daemon}/oom_score_adj")),
            )?;
            refused(Errno::EPERM, sys::writes(format!("/proc/{daemon}/comm")))
        })?;
    }
    // connections that say nothing do not keep others out
    let silent = spawn(Untrusted, || {
        let connect = |_| UnixStream::connect("/run/tidegate/tidegate.sock").ok();
        let held: Vec<_> = (0..48).filter_map(connect).collect();
        step()?;
        ensure(!held.is_empty(), "no connection")
    })?;
    silent.stands()?;
    let answers = status();
    silent.join_after_step()?;
    answers
}
