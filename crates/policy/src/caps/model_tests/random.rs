//! Random sequences of what processes do: whatever goes through is justified by something slower.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::caps::decide::{self, Withdrawn};

/// A step of a random sequence.
#[derive(Debug, Clone)]
enum Step {
    Start(Layer),
    Free,
    Fork(Index),
    Narrow(Index, Layer),
    Bind(Index, &'static str, u32),
    Access(Index, Index, u32),
    Pass(Index, Index, Index),
    Exec(Index, &'static str),
    Load(Index, &'static str),
    Revoke(usize, Index, Layer, u32, &'static str),
    Time(u64),
}

pub(super) fn layer() -> impl Strategy<Value = Layer> {
    select(vec![HOST, TOOL, PLUGIN, BOX, SHUT])
}

fn path() -> impl Strategy<Value = &'static str> {
    select(vec!["/a", "/b", "/c"])
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let rights = select(vec![READ, WRITE, READ | WRITE, APPEND]);
    let used = select(vec![READ, READ, WRITE, WRITE, APPEND, LOCK, IOCTL]);
    prop_oneof![
        2 => layer().prop_map(Step::Start),
        1 => Just(Step::Free),
        2 => index().prop_map(Step::Fork),
        2 => (index(), layer()).prop_map(|(p, l)| Step::Narrow(p, l)),
        8 => (index(), path(), rights).prop_map(|(p, f, r)| Step::Bind(p, f, r)),
        16 => (index(), index(), used).prop_map(|(p, f, r)| Step::Access(p, f, r)),
        6 => (index(), index(), index()).prop_map(|(p, f, to)| Step::Pass(p, f, to)),
        2 => (index(), select(vec!["/bin/sh", "/bin/tool"])).prop_map(|(p, f)| Step::Exec(p, f)),
        1 => (index(), select(vec!["/lib/libc", "/lib/plugin"])).prop_map(|(p, f)| Step::Load(p, f)),
        2 => (0..4usize, index(), layer(), 0..10u32, path()).prop_map(|(k, s, l, c, f)| Step::Revoke(k, s, l, c, f)),
        3 => (1..8u64).prop_map(Step::Time),
    ]
}

/// How a descriptor came to where it is: the processes that had it, and since when.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) layers: Vec<Layer>,
    session: Option<Session>,
    since: u64,
    /// How many revocations there had been when its session began: later ones count for it, whenever it bound what it has.
    after: usize,
}

/// What a test remembers beside the world: the chain of each descriptor, and what was revoked.
#[derive(Default)]
pub(super) struct Memory {
    chains: BTreeMap<(Pid, Fd), (Object, Vec<Link>)>,
    pub(super) revoked: Vec<Revoke>,
    /// By session, how many there had been when it began.
    pub(super) begun: Vec<usize>,
}

impl Memory {
    pub(super) fn link(&self, world: &World, pid: Pid) -> Link {
        Link {
            layers: world.layers(pid).iter().copied().collect(),
            session: world.session(pid),
            since: world.now(),
            after: world
                .session(pid)
                .map_or(self.revoked.len(), |session| self.begun[session]),
        }
    }

    /// Whether no layer that a process has by now was taken back from its session, before it had it or since.
    fn limits(&self, world: &World, pid: Pid) -> bool {
        let since = &self.revoked[self.link(world, pid).after..];
        let mut layers = world.layers(pid).iter();
        layers.all(|layer| !since.contains(&Revoke::Subject(*layer)))
    }

    /// Whether every link, in every layer, has a capability that gives this, was not taken back since, and is not over. It knows
    /// nothing of active capabilities.
    fn is_justified(
        &self,
        files: &[Capabilities],
        world: &World,
        at: (Pid, Fd),
        right: u32,
    ) -> bool {
        let (object, chain) = &self.chains[&at];
        let gives = |link: &Link| self.gives(files, world, link, (None, object), right);
        chain.iter().all(gives)
    }

    /// The same of one link. A service's object has the number of its files, whose layers alone are asked.
    pub(super) fn gives(
        &self,
        files: &[Capabilities],
        world: &World,
        link: &Link,
        (of_files, object): (Option<usize>, &Object),
        right: u32,
    ) -> bool {
        let since = &self.revoked[link.after..];
        let is_over = since.iter().any(|what| match what {
            Revoke::Session(session) => Some(*session) == link.session,
            Revoke::Object(of, taken) => {
                link.session.is_some() && *of == of_files && taken == object
            }
            _ => false,
        });
        let asked = link.layers.iter();
        let mut asked = asked.filter(|layer| of_files.is_none_or(|of| layer.files == of));
        !is_over
            && asked.all(|layer| {
                let caps = &files[layer.files];
                let said = decide::allowed(caps, layer.subject, object);
                !since.contains(&Revoke::Subject(*layer))
                    && said.by.iter().any(|&by| {
                        let capability = &caps.capabilities[by as usize];
                        let seconds = capability.expires.map(u64::from);
                        capability.rights & right != 0
                            && !since.contains(&Revoke::Capability(layer.files, by))
                            && seconds.is_none_or(|seconds| world.now() < link.since + seconds)
                    })
            })
    }
}

pub(super) fn pick(index: &Index, of: usize) -> Option<usize> {
    (of > 0).then(|| index.index(of))
}

fn pick_fd(world: &World, pid: Pid, index: &Index) -> Option<Fd> {
    let fds = world.descriptors(pid);
    pick(index, fds.len()).map(|at| fds[at])
}

/// Processes of a random sequence, at most.
pub(super) const PROCESSES: usize = 5;

/// Steps a world, and checks each access that goes through.
fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let files = compiled(RANDOM);
    let mut world = World::new(files.clone());
    let mut memory = Memory::default();
    for step in steps {
        memory.begun.resize(world.sessions(), memory.revoked.len());
        let process = |index: &Index| pick(index, world.processes());
        match step {
            // few processes, which meet again
            Step::Start(_) | Step::Free | Step::Fork(_) if world.processes() == PROCESSES => {}
            Step::Start(layer) => drop(world.start(*layer)),
            Step::Free => drop(world.ungoverned()),
            Step::Fork(index) => {
                let Some(pid) = process(index) else { continue };
                let child = world.fork(pid);
                prop_assert_eq!(world.layers(child), world.layers(pid));
                for fd in world.descriptors(pid) {
                    let chain = memory.chains[&(pid, fd)].clone();
                    memory.chains.insert((child, fd), chain);
                }
            }
            Step::Narrow(index, layer) => {
                let Some(pid) = process(index) else { continue };
                let before = world.layers(pid).clone();
                let result = world.narrow(pid, *layer);
                prop_assert!(before.is_subset(world.layers(pid)));
                prop_assert!(result.is_err() || world.layers(pid).contains(layer));
            }
            Step::Bind(index, path, wanted) => {
                let Some(pid) = process(index) else { continue };
                if let Ok(Some(fd)) = world.bind(pid, &file(path), *wanted) {
                    let link = memory.link(&world, pid);
                    memory.chains.insert((pid, fd), (file(path), vec![link]));
                }
            }
            Step::Access(index, of, right) => {
                let Some(pid) = process(index) else { continue };
                let Some(fd) = pick_fd(&world, pid, of) else {
                    continue;
                };
                if world.access(pid, fd, *right).is_ok() {
                    prop_assert!(
                        memory.is_justified(&files, &world, (pid, fd), *right),
                        "{pid} {fd} {right:#x}"
                    );
                    prop_assert!(memory.limits(&world, pid), "{pid} {fd}");
                }
            }
            Step::Pass(index, of, to) => {
                let (Some(pid), Some(to)) = (process(index), process(to)) else {
                    continue;
                };
                let Some(fd) = pick_fd(&world, pid, of) else {
                    continue;
                };
                if let Ok(got) = world.pass(pid, fd, to) {
                    let (object, mut chain) = memory.chains[&(pid, fd)].clone();
                    // a process that is not governed is trusted with what it has, and hands over
                    // what the receiver could have bound
                    if world.session(pid).is_none() || world.session(to).is_none() {
                        chain.clear();
                    }
                    chain.push(memory.link(&world, to));
                    memory.chains.insert((to, got), (object, chain));
                }
            }
            Step::Exec(index, path) | Step::Load(index, path) => {
                let Some(pid) = process(index) else { continue };
                let before = world.layers(pid).clone();
                let result = match step {
                    Step::Exec(..) => world.exec(pid, path.as_bytes()),
                    _ => world.load(pid, path.as_bytes()),
                };
                prop_assert!(before.is_subset(world.layers(pid)));
                if result.is_ok() && *world.layers(pid) != before {
                    let link = memory.link(&world, pid);
                    for fd in world.descriptors(pid) {
                        memory
                            .chains
                            .get_mut(&(pid, fd))
                            .unwrap()
                            .1
                            .push(link.clone());
                    }
                }
            }
            Step::Revoke(kind, session, layer, capability, path) => {
                let what = match kind {
                    0 => {
                        let Some(session) = pick(session, world.sessions()) else {
                            continue;
                        };
                        Revoke::Session(session)
                    }
                    1 => Revoke::Subject(*layer),
                    2 => Revoke::Capability(0, *capability),
                    _ => Revoke::Object(None, file(path)),
                };
                world.revoke(&what);
                prop_assert_eq!(world.revoke(&what), 0);
                memory.revoked.push(what);
            }
            Step::Time(seconds) => world.pass_time(*seconds),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No use after revocation or expiry, and no step widens anything: whatever goes through was allowed to everybody whom it
    /// came by, and still is.
    #[test]
    fn whatever_goes_through_is_justified(steps in prop::collection::vec(step(), 1..120)) {
        play(&steps)?;
    }

    /// A layer more allows nothing more, and their order has no meaning.
    #[test]
    fn layers_only_narrow(layers in prop::collection::vec(layer(), 1..5), more in layer(), path in path(), wanted in 1..1024u32) {
        let files = compiled(RANDOM);
        let withdrawn = Withdrawn::default();
        let mut worlds = Vec::new();
        let forwards = layers.iter();
        for order in [forwards.clone().collect::<Vec<_>>(), forwards.rev().collect()] {
            let mut world = World::new(files.clone());
            let pid = world.start(*order[0]);
            for layer in &order[1..] {
                world.narrow(pid, **layer).unwrap();
            }
            worlds.push((world.bind(pid, &file(path), wanted), world.layers(pid).clone()));
        }
        prop_assert_eq!(&worlds[0], &worlds[1]);
        let (bound, set) = &worlds[0];
        let wider = decide::common(&files, set, &withdrawn, &file(path), wanted);
        prop_assert_eq!(bound.is_ok(), wider == wanted);
        let mut narrower = set.clone();
        narrower.insert(more);
        let rights = decide::common(&files, &narrower, &withdrawn, &file(path), wanted);
        prop_assert_eq!(rights & !wider, 0);
        // uses are never more than the fewest that a layer says
        if let (Ok(wide), Ok(narrow)) = (
            decide::ask(&files, set, &withdrawn, &file(path), wanted),
            decide::ask(&files, &narrower, &withdrawn, &file(path), wanted),
        ) {
            prop_assert!(narrow.by.is_superset(&wide.by));
            prop_assert!(wide.expires.is_none_or(|most| narrow.expires.is_some_and(|own| own <= most)));
            prop_assert!(wide.uses.is_none_or(|most| narrow.uses.is_some_and(|own| own <= most)));
        }
    }

    /// However descriptors are shared, what is counted is used as often as it says, and no more.
    #[test]
    fn uses_are_counted_wherever_they_are_made(steps in prop::collection::vec((any::<Index>(), any::<Index>(), 0..4u8), 1..60)) {
        let text = "subject a {\n file /f read uses 5\n file /f write uses 7\n control file read write\n}\n";
        let mut world = World::new(vec![compile_str("uses.caps", text).unwrap().capabilities]);
        let first = world.start(Layer { files: 0, subject: 0 });
        world.start(Layer { files: 0, subject: 0 });
        world.bind(first, &file("/f"), READ).unwrap();
        let mut used = 0;
        for (pid, other, what) in steps {
            let pid = pid.index(world.processes());
            let Some(fd) = pick_fd(&world, pid, &other) else { continue };
            match what {
                0 => drop(world.fork(pid)),
                1 => drop(world.pass(pid, fd, other.index(world.processes()))),
                _ => used += u32::from(world.access(pid, fd, READ).is_ok()),
            }
            prop_assert!(used <= 5);
        }
    }
}
