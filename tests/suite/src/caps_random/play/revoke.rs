//! What is taken back from outside, and time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tidegate_bundle::caps::{Class, Object};
use tidegate_policy::caps::model::{Fd, Refusal, Revoke};

use super::bind::file_object;
use super::{Play, WHILE, layer};
use crate::caps_random::file::{FILES, PORTS, ROOT, SOCKETS, SUBJECTS};
use crate::caps_random::stage;

impl Play {
    pub(super) fn revoke(&mut self) -> Result<()> {
        let living: Vec<usize> = self.actors.values().map(|actor| actor.pid).collect();
        // what takes all leaves little to be played
        let what = match self.rng.u32(..16) {
            0 => {
                let pid = living[self.rng.usize(..living.len())];
                Revoke::Session(self.world.session(pid).context("a session")?)
            }
            1 => Revoke::Subject(layer(self.rng.usize(..SUBJECTS.len()))),
            2..9 => Revoke::Capability(0, self.rng.u32(..self.lines.len() as u32)),
            9..11 => {
                let port = PORTS[self.rng.usize(..PORTS.len())];
                Revoke::Object(None, Object::Inet(Class::Tcp, [127, 0, 0, 1].into(), port))
            }
            11..13 => {
                let path = format!("{ROOT}/run/{}", SOCKETS[self.rng.usize(..SOCKETS.len())]);
                Revoke::Object(None, Object::Unix(path.into()))
            }
            _ => Revoke::Object(None, file_object(FILES[self.rng.usize(..FILES.len())])),
        };
        self.take_back(what)
    }

    /// What the command is told.
    fn words(&self, what: &Revoke) -> Result<[String; 2]> {
        Ok(match what {
            Revoke::Session(session) => {
                ["--caps-session".into(), self.sessions[*session].to_string()]
            }
            Revoke::Subject(layer) => [
                "--subject".into(),
                format!("random.caps:{}", SUBJECTS[layer.subject as usize]),
            ],
            Revoke::Capability(_, at) => [
                "--capability".into(),
                format!("random.caps:{}", self.lines[*at as usize]),
            ],
            Revoke::Object(_, object) => {
                let name = match object {
                    Object::Inet(_, address, port) => format!("tcp:{address}:{port}"),
                    Object::Unix(path) => format!("unix:{}", String::from_utf8_lossy(path)),
                    Object::Path(_, path) => format!("file:{}", String::from_utf8_lossy(path)),
                    other => bail!("{other:?} is not played with"),
                };
                ["--object".into(), name]
            }
        })
    }

    /// Takes something back. Only actors that had something mapped may be killed, and those that
    /// have mapped what was taken are.
    pub(super) fn take_back(&mut self, what: Revoke) -> Result<()> {
        let words = self.words(&what)?;
        self.trace.push(format!("revoke {}", words.join(" ")));
        let killed = stage::revoke(&words)?;
        self.trace.push(format!("  killed {killed:?}"));
        self.world.revoke(&what);
        let tally = self.tally.entry("revoke").or_default();
        *tally = [tally[0] + 1, tally[1] + killed.len() as u32];
        // the program itself is mapped, but not bound; what was mapped by a descriptor goes
        let all = self.actors.iter();
        let dead = all.filter(|(_, actor)| killed.contains(&actor.number));
        let dead: Vec<usize> = dead.map(|(&at, _)| at).collect();
        for (&at, actor) in &self.actors {
            let lost = |&(fd, right): &(Fd, u32)| {
                self.world.clone().access(actor.pid, fd, right) == Err(Refusal::Revoked)
            };
            ensure!(
                !actor.maps.iter().any(lost) || dead.contains(&at),
                "{at} has mapped what was taken back, and lives"
            );
            ensure!(
                !actor.maps.is_empty() || !dead.contains(&at),
                "{at} was killed, and has mapped nothing"
            );
        }
        self.actors.retain(|at, _| !dead.contains(at));
        Ok(())
    }

    pub(super) fn wait(&mut self) -> Result<()> {
        std::thread::sleep(Duration::from_secs(WHILE));
        self.world.pass_time(WHILE);
        self.since = Instant::now();
        self.trace.push("time passes".into());
        Ok(())
    }
}
