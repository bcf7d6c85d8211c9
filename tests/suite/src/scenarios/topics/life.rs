//! What Tidegate lives through: reloads, full tables, floods, the daemon's death, the end.

use std::fs;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::scenarios::check::{
    Failed, Outcome, PATIENCE, allowed, ensure, refused, refused_any, same, soon,
};
use crate::scenarios::daemon;
use crate::scenarios::level::{self, object_is};
use crate::scenarios::place::{self, AREA, LOW, SYSTEM, TMPFS, USER, path};
use crate::scenarios::scenario::{Scenario, bypass, life};
use crate::scenarios::setup;
use crate::scenarios::subject::{Level, at, lower, spawn, start, step};
use crate::scenarios::sys;

use Level::{System, Untrusted, User};

pub const SCENARIOS: &[Scenario] = &[
    bypass(
        "reload-under-load",
        "policies are swapped while a low subject tries without a pause",
        under_load,
    ),
    life(
        "reload-revokes",
        "what the new policy forbids, old descriptors do no more",
        reload_revokes,
    )
    .last(),
    life(
        "reload-permissive",
        "permissive: nothing is refused, all is recorded",
        permissive,
    )
    .last(),
    bypass(
        "table-full",
        "the table of given levels filled by a low subject",
        table_full,
    )
    .last(),
    life(
        "flood",
        "a flood of refusals: what is dropped is counted, demotions are kept",
        flood,
    )
    .slow()
    .last(),
    bypass(
        "daemon-killed",
        "enforcement without the daemon, and who takes over",
        killed,
    )
    .last(),
    life(
        "reload-unread",
        "no policy takes the place of one that cannot be read, as its levels might be others",
        unread,
    )
    .last(),
    life(
        "stop",
        "the top level stops it, and nothing stays behind",
        stop,
    )
    .last(),
];

/// The daemon's process.
fn daemon_pid() -> Outcome<Pid> {
    daemon::pid()
        .map(Pid::from_raw)
        .ok_or_else(|| Failed::because("no daemon"))
}

pub(super) fn reload(policy: &str, more: &[&str]) -> Outcome {
    let file = path(SYSTEM, "policy.plm");
    fs::write(&file, policy)?;
    let code = daemon::quietly(&[&["reload", "--policy", &file], more].concat())?;
    same("the exit code of reload", code, 0)
}

fn under_load() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let attacker = spawn(Untrusted, || {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !fs::exists(path(TMPFS, "enough"))? {
            refused(Errno::EPERM, sys::writes(&high))?;
            refused(Errno::EPERM, fs::write(path(SYSTEM, "new"), "x"))?;
        }
        Ok(())
    })?;
    for _ in 0..4 {
        reload(setup::POLICY, &[])?;
    }
    fs::write(path(TMPFS, "enough"), "")?;
    attacker.join()
}

fn reload_revokes() -> Outcome {
    let file = place::file(USER, "file")?;
    let holder = spawn(User, || {
        let fd = sys::both(&file)?;
        allowed(sys::put(&fd))?;
        step()?;
        refused(Errno::EIO, sys::put(&fd))?;
        refused(Errno::EPERM, sys::writes(&file))
    })?;
    holder.stands()?;
    let stricter = format!("{}\nsystem {file}\n", setup::POLICY);
    let reloaded = reload(&stricter, &[]);
    let ended = holder.join_after_step();
    reload(setup::POLICY, &[])?;
    reloaded?;
    ended?;
    object_is(&file, User)
}

fn permissive() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    reload(setup::POLICY, &["--permissive"])?;
    let result = start(|| {
        allowed(fs::read(&low))?;
        same("the level by the label", level::by_label()?, Untrusted)?;
        allowed(fs::write(&high, "changed"))?;
        step()
    });
    let result = result.and_then(|child| {
        child.stands()?;
        let mode = daemon::status("/permissive")?;
        let answer = level::ask(&json!({"ask": "why", "of": {"process": child.pid.as_raw()}}))?;
        child.join_after_step()?;
        same("permissive", mode, Value::Bool(true))?;
        same(
            "its level",
            answer["why"]["process"]["level"].clone(),
            json!("untrusted"),
        )
    });
    reload(setup::POLICY, &[])?;
    result?;
    same(
        "the content",
        fs::read_to_string(&high)?.as_str(),
        "changed",
    )?;
    same(
        "permissive",
        daemon::status("/permissive")?,
        Value::Bool(false),
    )?;
    at(Untrusted, || refused(Errno::EPERM, sys::writes(&high)))
}

fn table_full() -> Outcome {
    let dir = path(TMPFS, "dir");
    let first = path(AREA, "first");
    let filler = spawn(Untrusted, || {
        fs::write(&first, "low")?;
        fs::create_dir(&dir)?;
        for n in 0.. {
            match fs::write(format!("{dir}/{n}"), "") {
                Ok(()) if n > 2 * setup::GIVEN => {
                    return refused(Errno::ENOSPC, Ok::<_, Errno>(()));
                }
                Ok(()) => {}
                Err(e) => {
                    refused(Errno::ENOSPC, Err::<(), _>(e))?;
                    break;
                }
            }
        }
        refused_any(&[Errno::ENOSPC], fs::create_dir(format!("{dir}/d")))?;
        step()?;
        fs::remove_dir_all(&dir)?;
        allowed(fs::write(path(AREA, "again"), "x"))
    })?;
    filler.stands()?;
    // what needs no entry goes on; what has one keeps it
    let goes_on = (|| {
        place::file(SYSTEM, "high")?;
        place::file(AREA, "high")?;
        at(User, || allowed(fs::write(path(USER, "user"), "x")))?;
        sys::drop_caches()?;
        object_is(&first, Untrusted)?;
        refused_any(&[Errno::EPERM], fs::rename(&first, path(SYSTEM, "clean")))?;
        // no fall needs an entry that it might not get
        let high = place::file(SYSTEM, "falls")?;
        allowed(fs::rename(&high, path(LOW, "falls")))?;
        object_is(&path(LOW, "falls"), Untrusted)
    })();
    filler.join_after_step()?;
    goes_on
}

fn flood() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let count = |name: &str| -> Outcome<u64> { Ok(daemon::status(name)?.as_u64().unwrap_or(0)) };
    let (records, lost) = (count("/records")?, count("/events_lost")?);
    let stopped = daemon_pid()?;
    kill(stopped, Signal::SIGSTOP)?;
    let flooded = (|| {
        at_without_daemon(Untrusted, || {
            for _ in 0..9000 {
                refused(Errno::EPERM, sys::writes(&high))?;
            }
            Ok(())
        })?;
        // a demotion in the middle of it
        at_without_daemon(User, || {
            allowed(fs::read(&low))?;
            same(
                "the level by what may be written",
                level::by_writing()?,
                Untrusted,
            )
        })
    })();
    kill(stopped, Signal::SIGCONT)?;
    flooded?;
    ensure(
        count("/records")? >= records + 9000,
        "refusals are missing from the history",
    )?;
    ensure(count("/events_lost")? > lost, "nothing was counted as lost")?;
    // the demotion has come through: the end of the ring is kept for such
    let logged = soon(|| {
        let out = daemon::run(&["log", "--json", "--kind", "demoted", "--path", &low])?;
        Ok(!out.stdout.is_empty())
    })?;
    ensure(logged, "the demotion is not in the log")
}

/// Like [`at`], when nobody can be asked.
fn at_without_daemon(level: Level, part: impl FnOnce() -> Outcome) -> Outcome {
    at(level, part)
}

fn killed() -> Outcome {
    let (high, low) = (place::file(SYSTEM, "high")?, place::file(LOW, "low")?);
    let given = path(AREA, "given");
    at(Untrusted, || Ok(fs::write(&given, "x")?))?;
    let survivor = spawn(Untrusted, || {
        step()?;
        refused(Errno::EPERM, sys::writes(&high))
    })?;
    survivor.stands()?;
    let killed = daemon_pid()?;
    let process = sys::pidfd_open(killed.as_raw())?;
    kill(killed, Signal::SIGKILL)?;
    ensure(sys::ends(&process, PATIENCE)?, "the daemon does not end")?;
    // a process that holds a pidfd falls only with the guard, and without the daemon nobody attaches it
    drop(process);
    // all goes on but what needs the guard, and that fails closed
    survivor.join_after_step()?;
    at(User, || {
        refused(Errno::EPERM, sys::writes(&high))?;
        allowed(fs::read(&low))?;
        same(
            "the level by what may be written",
            level::by_writing()?,
            Untrusted,
        )
    })?;
    start(|| {
        let fd = sys::both(&high)?;
        match fs::read(&low) {
            Ok(_) => refused(Errno::EIO, sys::put(&fd)),
            Err(e) => {
                refused(Errno::EAGAIN, Err::<(), _>(e))?;
                same(
                    "the level by what may be written",
                    level::by_writing()?,
                    System,
                )
            }
        }
    })?
    .join()?;
    same("status", daemon::quietly(&["status"])?, 0)?;
    same("start", daemon::quietly(&["start"])?, 0)?;
    level::is(System)?;
    object_is(&given, Untrusted)?;
    same(
        "the levels",
        daemon::status("/levels")?,
        json!(["untrusted", "user", "system"]),
    )?;
    start(|| {
        let fd = sys::both(&high)?;
        allowed(fs::read(&low))?;
        level::is(Untrusted)?;
        refused(Errno::EIO, sys::put(&fd))
    })?
    .join()
}

fn unread() -> Outcome {
    const CANNOT: i32 = 8;
    let number = daemon::status("/seqno")?;
    let bundle = format!("/run/tidegate/policy/{number}.bundle");
    let away = format!("{bundle}.away");
    // another daemon, which has not read it yet
    let killed = daemon_pid()?;
    let process = sys::pidfd_open(killed.as_raw())?;
    kill(killed, Signal::SIGKILL)?;
    ensure(sys::ends(&process, PATIENCE)?, "the daemon does not end")?;
    drop(process);
    fs::rename(&bundle, &away)?;
    let refused = (|| {
        same("start", daemon::quietly(&["start"])?, 0)?;
        let file = path(SYSTEM, "policy.plm");
        fs::write(&file, setup::POLICY)?;
        let code = daemon::quietly(&["reload", "--policy", &file])?;
        same("the exit code of reload", code, CANNOT)?;
        same("its number", daemon::status("/seqno")?, number)
    })();
    fs::rename(&away, &bundle)?;
    refused?;
    reload(setup::POLICY, &[])
}

fn stop() -> Outcome {
    let high = place::file(SYSTEM, "high")?;
    let low = start(|| {
        lower(Untrusted)?;
        refused(Errno::EPERM, sys::writes(&high))?;
        step()?;
        allowed(sys::writes(&high)).map(drop)
    })?;
    low.stands()?;
    same("stop", daemon::quietly(&["stop"])?, 0)?;
    same("status", daemon::quietly(&["status"])?, 5)?;
    same("a second stop", daemon::quietly(&["stop"])?, 5)?;
    same("the pins", fs::exists("/sys/fs/bpf/tidegate")?, false)?;
    for socket in [level::SOCKET, level::ADMIN] {
        same("the socket", fs::exists(socket)?, false)?;
    }
    low.join_after_step()
}
