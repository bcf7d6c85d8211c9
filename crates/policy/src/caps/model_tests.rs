//! What active capabilities are good for: scenes, and random sequences held against what every link of a chain allowed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::decide::{self, Layer, Withdrawn};
use super::model::*;
use super::permission::*;
use super::*;

const FILES: [&str; 2] = [
    r#"
subject host {
    file /data/** read write lock
    file /data/log append
    file /data/once read expires 10s
    file /data/few read write uses 2
    file /data/** append ioctl expires 5s
    program /bin/** execute
    program /bin/tool execute as tool
    library /lib/** load
    library /lib/plugin load as plugin
    connect unix /run/notes
    connect unix /run/plain
    service notes pub:* read write
    service notes own:* read expires 10s
    service notes few:* read uses 2
    control file read write append
}
subject tool {
    file /data/** read
    program /bin/** execute
    library /lib/** load
    connect unix /run/notes
    service notes pub:** read
}
subject plugin {
    file /data/plugin/** read write
    library /lib/** load
    program /bin/** execute
}
service notes on /run/notes {
    permission read write
    operation 1 open bind operand 1 by operand 2 { 0 read  1 write  2 read write }
    operation 2 get  active operand 1 read
    operation 3 put  active operand 1 write
    operation 4 ping free
    operation 5 copy active operand 1 read operand 2 write
}
"#,
    r#"
subject box {
    file /data/** read write lock ioctl append
    file /data/p* read
    program /bin/** execute
    library /lib/** load
    connect unix /run/*
}
subject shut {
}
"#,
];

const HOST: Layer = Layer {
    files: 0,
    subject: 0,
};
const TOOL: Layer = Layer {
    files: 0,
    subject: 1,
};
const PLUGIN: Layer = Layer {
    files: 0,
    subject: 2,
};
const BOX: Layer = Layer {
    files: 1,
    subject: 0,
};
const SHUT: Layer = Layer {
    files: 1,
    subject: 1,
};

/// Few objects, and each given with limits somewhere, so that random sequences meet what ends.
const RANDOM: [&str; 2] = [
    r#"
subject host {
    file /a read write expires 6s
    file /b read write lock
    file /b append expires 9s
    file /c read
    program /bin/** execute
    program /bin/tool execute as tool
    library /lib/** load
    library /lib/plugin load as plugin
}
subject tool {
    file /a read
    file /b read write expires 12s
    program /bin/** execute
    library /lib/** load
}
subject plugin {
    file /b write lock
    file /a read write
    program /bin/** execute
    library /lib/** load
}
"#,
    r#"
subject box {
    file /* read write lock ioctl append
    program /bin/** execute
    library /lib/** load
}
subject shut {
}
"#,
];

fn files() -> Vec<Capabilities> {
    compiled(FILES)
}

fn compiled(files: [&str; 2]) -> Vec<Capabilities> {
    let compile = |text: &str| match Capabilities::compile_str("model.caps", text) {
        Ok(compiled) => compiled.capabilities,
        Err(errors) => panic!("{errors:?}"),
    };
    files.map(compile).into()
}

fn file(path: &str) -> Object {
    Object::Path(Class::File, path.into())
}

fn socket(path: &str) -> Object {
    Object::Unix(path.into())
}

fn missing(result: Result<impl Sized, Refusal>) -> (Layer, u32) {
    match result {
        Err(Refusal::Missing(missing)) => (missing.layer, missing.rights),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is allowed"),
    }
}

#[test]
fn what_is_bound_is_good_for_what_was_asked() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    assert_eq!(
        missing(world.bind(host, &file("/etc/x"), READ)),
        (HOST, READ)
    );
    assert_eq!(
        missing(world.bind(host, &file("/data/x"), READ | CREATE)),
        (HOST, CREATE)
    );
    assert_eq!(
        missing(world.bind(host, &file("/data/x"), UNLINK)),
        (HOST, UNLINK)
    );
    let fd = world.bind(host, &file("/data/x"), READ).unwrap().unwrap();
    assert_eq!(world.access(host, fd, READ), Ok(()));
    assert_eq!(world.access(host, fd, WRITE), Err(Refusal::NotBound));
    assert_eq!(world.access(host, fd, LOCK), Ok(()));
    // it would end the descriptor sooner
    assert_eq!(world.access(host, fd, IOCTL), Err(Refusal::NotBound));
    assert_eq!(world.access(host, fd + 1, READ), Err(Refusal::Descriptor));
    let free = world.ungoverned();
    let fd = world
        .bind(free, &file("/etc/x"), READ | UNLINK)
        .unwrap()
        .unwrap();
    assert_eq!(world.access(free, fd, IOCTL), Ok(()));
}

#[test]
fn what_is_bound_ends_by_time_and_by_use() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    let once = world
        .bind(host, &file("/data/once"), READ)
        .unwrap()
        .unwrap();
    // the other capability for it lasts
    world.pass_time(11);
    assert_eq!(world.access(host, once, READ), Ok(()));
    let few = world.bind(host, &file("/data/few"), READ).unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(world.access(host, few, READ), Ok(()));
    }
    let notes = world
        .bind(host, &socket("/run/notes"), CONNECT | READ | WRITE)
        .unwrap()
        .unwrap();
    let open = |world: &mut World, name: &str, number| {
        let operands = [Operand::Name(name.into()), Operand::Number(0)];
        let request = world.request(host, notes, 1, &operands).unwrap().unwrap();
        world.reply(host, notes, request, number).unwrap();
    };
    open(&mut world, "own:a", 7);
    open(&mut world, "few:a", 8);
    let get =
        |world: &mut World, number| world.request(host, notes, 2, &[Operand::Descriptor(number)]);
    world.pass_time(9);
    assert_eq!(get(&mut world, 7), Ok(None));
    world.pass_time(1);
    assert_eq!(get(&mut world, 7), Err(Refusal::Expired));
    assert_eq!(get(&mut world, 8), Ok(None));
    assert_eq!(get(&mut world, 8), Ok(None));
    assert_eq!(get(&mut world, 8), Err(Refusal::UsedUp));
    assert_eq!(get(&mut world, 9), Err(Refusal::Descriptor));
}

#[test]
fn a_receiver_has_what_it_may_have_itself() {
    let mut world = World::new(files());
    let (host, tool, shut) = (world.start(HOST), world.start(TOOL), world.start(SHUT));
    let fd = world
        .bind(host, &file("/data/x"), READ | WRITE)
        .unwrap()
        .unwrap();
    assert_eq!(missing(world.pass(host, fd, shut)), (SHUT, READ | WRITE));
    let got = world.pass(host, fd, tool).unwrap();
    assert_eq!(world.access(tool, got, READ), Ok(()));
    assert_eq!(world.access(tool, got, WRITE), Err(Refusal::NotBound));
    // it has no more when it comes back
    let back = world.pass(tool, got, host).unwrap();
    assert_eq!(world.access(host, back, WRITE), Err(Refusal::NotBound));
    // and ends with what it came from
    assert_eq!(
        world.revoke(&Revoke::Session(world.session(host).unwrap())),
        2
    );
    assert_eq!(world.access(tool, got, READ), Err(Refusal::Revoked));
    // who is not governed hands over what the receiver could have bound
    let free = world.ungoverned();
    let fd = world
        .bind(free, &file("/data/y"), READ | WRITE)
        .unwrap()
        .unwrap();
    let got = world.pass(free, fd, tool).unwrap();
    assert_eq!(world.access(tool, got, READ), Ok(()));
    assert_eq!(world.access(tool, got, WRITE), Err(Refusal::NotBound));
    let fd = world
        .bind(free, &file("/etc/shadow"), READ)
        .unwrap()
        .unwrap();
    assert_eq!(missing(world.pass(free, fd, tool)), (TOOL, READ));
}

#[test]
fn content_narrows_what_runs_and_what_it_holds() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    let x = world
        .bind(host, &file("/data/x"), READ | WRITE)
        .unwrap()
        .unwrap();
    let child = world.fork(host);
    assert_eq!(world.exec(child, b"/bin/sh"), Ok(()));
    assert_eq!(world.access(child, x, WRITE), Ok(()));
    assert_eq!(world.exec(child, b"/bin/tool"), Ok(()));
    assert_eq!(world.layers(child).len(), 2);
    assert_eq!(world.access(child, x, READ), Ok(()));
    assert_eq!(world.access(child, x, WRITE), Err(Refusal::NotBound));
    assert_eq!(
        missing(world.bind(child, &file("/data/x"), WRITE)),
        (TOOL, WRITE)
    );
    // the parent has what it had
    assert_eq!(world.access(host, x, WRITE), Ok(()));
    // a library is the same, and what it may not have at all is closed
    assert_eq!(world.load(host, b"/lib/libc"), Ok(()));
    assert_eq!(world.load(host, b"/lib/plugin"), Ok(()));
    assert_eq!(world.access(host, x, READ), Err(Refusal::Descriptor));
    assert!(world.bind(host, &file("/data/plugin/x"), WRITE).is_ok());
    assert_eq!(missing(world.load(host, b"/tmp/x")).1, LOAD);
    assert_eq!(missing(world.exec(host, b"/tmp/x")).1, EXECUTE);
}

#[test]
fn who_narrows_itself_keeps_what_it_has_bound() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    let x = world
        .bind(host, &file("/data/x"), READ | WRITE)
        .unwrap()
        .unwrap();
    assert_eq!(world.narrow(host, SHUT), Ok(()));
    assert_eq!(world.access(host, x, WRITE), Ok(()));
    assert_eq!(
        missing(world.bind(host, &file("/data/x"), READ)),
        (SHUT, READ)
    );
    // a layer that is taken back takes all along
    world.revoke(&Revoke::Subject(SHUT));
    assert_eq!(world.access(host, x, WRITE), Err(Refusal::Revoked));
    // who was free begins a session by it
    let free = world.ungoverned();
    assert_eq!(world.narrow(free, TOOL), Ok(()));
    assert_eq!(
        missing(world.bind(free, &file("/data/x"), WRITE)),
        (TOOL, WRITE)
    );
}

#[test]
fn there_are_so_many_layers_and_no_more() {
    let text: String = (0..17)
        .map(|at| format!("subject s{at} {{\n}}\n"))
        .collect();
    let files = vec![
        Capabilities::compile_str("many.caps", &text)
            .unwrap()
            .capabilities,
    ];
    let mut world = World::new(files);
    let pid = world.start(Layer {
        files: 0,
        subject: 0,
    });
    for subject in 1..16 {
        assert_eq!(world.narrow(pid, Layer { files: 0, subject }), Ok(()));
    }
    assert_eq!(
        world.narrow(
            pid,
            Layer {
                files: 0,
                subject: 15
            }
        ),
        Ok(())
    );
    assert_eq!(
        world.narrow(
            pid,
            Layer {
                files: 0,
                subject: 16
            }
        ),
        Err(Refusal::Layers)
    );
    assert_eq!(world.layers(pid).len(), 16);
}

#[test]
fn what_is_taken_back_is_not_given_again_to_who_runs() {
    for what in [
        Revoke::Session(0),
        Revoke::Subject(HOST),
        Revoke::Capability(0, 0),
        Revoke::Object(None, file("/data/x")),
    ] {
        let mut world = World::new(files());
        let host = world.start(HOST);
        let x = world.bind(host, &file("/data/x"), READ).unwrap().unwrap();
        let child = world.fork(host);
        assert_eq!(world.revoke(&what), 1, "{what:?}");
        for pid in [host, child] {
            assert_eq!(
                world.access(pid, x, READ),
                Err(Refusal::Revoked),
                "{what:?}"
            );
            assert_eq!(
                missing(world.bind(pid, &file("/data/x"), READ)).0,
                HOST,
                "{what:?}"
            );
        }
        let other = matches!(what, Revoke::Object(..));
        assert_eq!(
            world.bind(host, &file("/data/y"), READ).is_ok(),
            other,
            "{what:?}"
        );
        // who starts anew begins with what the file says
        let new = world.start(HOST);
        assert!(world.bind(new, &file("/data/x"), READ).is_ok());
    }
}

#[test]
fn requests_to_a_service() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    let notes = world
        .bind(host, &socket("/run/notes"), CONNECT | READ | WRITE)
        .unwrap()
        .unwrap();
    let name = |name: &str| Operand::Name(name.into());
    let ask = |world: &mut World, number, operands: &[Operand]| {
        world.request(host, notes, number, operands)
    };
    assert_eq!(ask(&mut world, 4, &[]), Ok(None));
    assert_eq!(ask(&mut world, 9, &[]), Err(Refusal::Operation));
    assert_eq!(ask(&mut world, 1, &[]), Err(Refusal::Operand(2)));
    assert_eq!(
        ask(&mut world, 1, &[name("pub:a"), name("x")]),
        Err(Refusal::Operand(2))
    );
    assert_eq!(
        ask(&mut world, 1, &[name("pub:a"), Operand::Number(3)]),
        Err(Refusal::Value(2))
    );
    assert_eq!(
        ask(&mut world, 1, &[Operand::Number(0), Operand::Number(0)]),
        Err(Refusal::Operand(1))
    );
    assert_eq!(
        missing(ask(&mut world, 1, &[name("own:a"), Operand::Number(2)])),
        (HOST, 2)
    );
    assert_eq!(
        missing(ask(&mut world, 1, &[name("x"), Operand::Number(0)])),
        (HOST, 1)
    );
    let request = ask(&mut world, 1, &[name("pub:a"), Operand::Number(0)])
        .unwrap()
        .unwrap();
    assert_eq!(
        ask(&mut world, 2, &[Operand::Descriptor(3)]),
        Err(Refusal::Descriptor)
    );
    assert_eq!(world.reply(host, notes, request, 3), Ok(()));
    assert_eq!(world.reply(host, notes, request, 4), Err(Refusal::Reply));
    assert_eq!(ask(&mut world, 2, &[Operand::Descriptor(3)]), Ok(None));
    assert_eq!(
        ask(&mut world, 2, &[Operand::Number(3)]),
        Err(Refusal::Operand(1))
    );
    assert_eq!(
        ask(&mut world, 3, &[Operand::Descriptor(3)]),
        Err(Refusal::NotBound)
    );
    let request = ask(&mut world, 1, &[name("pub:b"), Operand::Number(1)])
        .unwrap()
        .unwrap();
    assert_eq!(world.reply(host, notes, request, 3), Err(Refusal::Reply));
    assert_eq!(world.reply(host, notes, request, 5), Ok(()));
    let both = [Operand::Descriptor(3), Operand::Descriptor(5)];
    assert_eq!(ask(&mut world, 5, &both), Ok(None));
    let swapped = [Operand::Descriptor(5), Operand::Descriptor(3)];
    assert_eq!(ask(&mut world, 5, &swapped), Err(Refusal::NotBound));
    // the tool may read what is public, and no more, by the same connection
    let tool = world.start(TOOL);
    let got = world.pass(host, notes, tool).unwrap();
    assert_eq!(
        world.request(tool, got, 2, &[Operand::Descriptor(3)]),
        Ok(None)
    );
    assert_eq!(
        missing(world.request(tool, got, 3, &[Operand::Descriptor(5)])),
        (TOOL, 2)
    );
    // a layer that knows nothing of the service leaves it to the others
    world.narrow(host, BOX).unwrap();
    assert_eq!(ask(&mut world, 2, &[Operand::Descriptor(3)]), Ok(None));
    assert_eq!(
        ask(&mut world, 3, &[Operand::Descriptor(3)]),
        Err(Refusal::NotBound)
    );
    // one that does is asked about what was bound before
    world.narrow(host, TOOL).unwrap();
    assert_eq!(
        missing(ask(&mut world, 3, &[Operand::Descriptor(5)])),
        (TOOL, 2)
    );
    assert_eq!(ask(&mut world, 2, &[Operand::Descriptor(3)]), Ok(None));
    // an object that is taken back is gone for both
    assert_eq!(
        world.revoke(&Revoke::Object(Some(0), Object::Of(0, b"pub:a".to_vec()))),
        1
    );
    assert_eq!(
        ask(&mut world, 2, &[Operand::Descriptor(3)]),
        Err(Refusal::Revoked)
    );
    assert_eq!(
        world.request(tool, got, 2, &[Operand::Descriptor(3)]),
        Err(Refusal::Revoked)
    );
    world.drop_descriptor(host, notes, 3);
    assert_eq!(
        ask(&mut world, 2, &[Operand::Descriptor(3)]),
        Err(Refusal::Descriptor)
    );
}

#[test]
fn what_is_taken_back_before_the_reply_is_not_given_by_it() {
    for what in [
        Revoke::Session(0),
        Revoke::Capability(0, 11),
        Revoke::Object(Some(0), Object::Of(0, b"pub:a".to_vec())),
    ] {
        let mut world = World::new(files());
        let host = world.start(HOST);
        let notes = world
            .bind(host, &socket("/run/notes"), CONNECT | READ | WRITE)
            .unwrap()
            .unwrap();
        let operands = [Operand::Name(b"pub:a".to_vec()), Operand::Number(0)];
        let request = world.request(host, notes, 1, &operands).unwrap().unwrap();
        world.revoke(&what);
        world.reply(host, notes, request, 1).unwrap();
        let got = world.request(host, notes, 2, &[Operand::Descriptor(1)]);
        assert_eq!(got, Err(Refusal::Revoked), "{what:?}");
    }
    let caps = &files()[0];
    assert_eq!(
        caps.capabilities[11].source.text,
        "service notes pub:* read write"
    );
}

#[test]
fn who_gave_a_part_of_what_is_bound_takes_all_of_it_back() {
    let mut world = World::new(compiled(RANDOM));
    let host = world.start(HOST);
    let fd = world.bind(host, &file("/b"), APPEND).unwrap().unwrap();
    // by another line than the one that it was opened by
    assert_eq!(world.access(host, fd, LOCK), Ok(()));
    assert_eq!(world.revoke(&Revoke::Capability(0, 1)), 1);
    assert_eq!(world.access(host, fd, LOCK), Err(Refusal::Revoked));
    assert_eq!(world.access(host, fd, APPEND), Err(Refusal::Revoked));
}

#[test]
fn a_services_descriptor_is_good_for_what_it_was_opened_for_whoever_uses_it() {
    let mut world = World::new(files());
    let (host, tool) = (world.start(HOST), world.start(TOOL));
    let wanted = CONNECT | READ | WRITE;
    let notes = world
        .bind(host, &socket("/run/notes"), wanted)
        .unwrap()
        .unwrap();
    let got = world.pass(host, notes, tool).unwrap();
    let open = |world: &mut World, pid, fd, name: &str, number| {
        let operands = [Operand::Name(name.into()), Operand::Number(0)];
        let request = world.request(pid, fd, 1, &operands).unwrap().unwrap();
        world.reply(host, notes, request, number).unwrap();
    };
    open(&mut world, tool, got, "pub:a", 1);
    let use_it = |world: &mut World, pid, fd, operation, number| {
        world.request(pid, fd, operation, &[Operand::Descriptor(number)])
    };
    assert_eq!(use_it(&mut world, host, notes, 2, 1), Ok(None));
    assert_eq!(
        use_it(&mut world, host, notes, 3, 1),
        Err(Refusal::NotBound)
    );
    // another session's object is taken back before a new one opens it
    world.revoke(&Revoke::Object(Some(0), Object::Of(0, b"pub:b".to_vec())));
    let new = world.start(HOST);
    let again = world.pass(host, notes, new).unwrap();
    open(&mut world, new, again, "pub:b", 2);
    assert_eq!(use_it(&mut world, new, again, 2, 2), Ok(None));
    assert_eq!(missing(use_it(&mut world, host, notes, 2, 2)), (HOST, 1));
    // uses are the opener's, whoever makes them
    open(&mut world, host, notes, "few:a", 3);
    assert_eq!(use_it(&mut world, new, again, 2, 3), Ok(None));
    assert_eq!(use_it(&mut world, host, notes, 2, 3), Ok(None));
    assert_eq!(use_it(&mut world, new, again, 2, 3), Err(Refusal::UsedUp));
}

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

fn layer() -> impl Strategy<Value = Layer> {
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

/// How a descriptor came to where it is: who had it, and since when.
#[derive(Debug, Clone)]
struct Link {
    layers: Vec<Layer>,
    session: Option<Session>,
    since: u64,
    /// How many revocations there had been when its session began: later ones count for it, whenever it bound what it has.
    after: usize,
}

/// What a test remembers beside the world: the chain of each descriptor, and what was revoked.
#[derive(Default)]
struct Memory {
    chains: BTreeMap<(Pid, Fd), (Object, Vec<Link>)>,
    revoked: Vec<Revoke>,
    /// By session, how many there had been when it began.
    begun: Vec<usize>,
}

impl Memory {
    fn link(&self, world: &World, pid: Pid) -> Link {
        Link {
            layers: world.layers(pid).iter().copied().collect(),
            session: world.session(pid),
            since: world.now(),
            after: world
                .session(pid)
                .map_or(self.revoked.len(), |session| self.begun[session]),
        }
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
    fn gives(
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

fn pick(index: &Index, of: usize) -> Option<usize> {
    (of > 0).then(|| index.index(of))
}

fn pick_fd(world: &World, pid: Pid, index: &Index) -> Option<Fd> {
    let fds = world.descriptors(pid);
    pick(index, fds.len()).map(|at| fds[at])
}

/// Processes of a random sequence, at most.
const PROCESSES: usize = 5;

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
                    // who is not governed is trusted with what it has, and hands over what the receiver could have bound
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

/// A step of a random sequence of requests.
#[derive(Debug, Clone)]
enum ServiceStep {
    Start(Layer),
    Pass(Index, Index),
    Narrow(Index, Layer),
    Open(Index, &'static str, u64),
    Reply(Index),
    Use(Index, Index, u32),
    Revoke(usize, Index, Layer, u32, &'static str),
    Time(u64),
}

fn service_step() -> impl Strategy<Value = ServiceStep> {
    use ServiceStep as Step;
    let index = any::<Index>;
    let name = || select(vec!["pub:a", "pub:b", "own:a", "few:a"]);
    prop_oneof![
        2 => select(vec![HOST, HOST, TOOL, PLUGIN]).prop_map(Step::Start),
        3 => (index(), index()).prop_map(|(p, to)| Step::Pass(p, to)),
        1 => (index(), select(vec![TOOL, BOX])).prop_map(|(p, l)| Step::Narrow(p, l)),
        6 => (index(), name(), 0..4u64).prop_map(|(p, n, v)| Step::Open(p, n, v)),
        6 => index().prop_map(Step::Reply),
        14 => (index(), index(), 2..4u32).prop_map(|(p, d, o)| Step::Use(p, d, o)),
        1 => (0..4usize, index(), layer(), 10..18u32, name()).prop_map(|(k, s, l, c, n)| Step::Revoke(k, s, l, c, n)),
        2 => (1..5u64).prop_map(Step::Time),
    ]
}

/// Plays requests on one connection, which all have who may.
fn play_service(steps: &[ServiceStep]) -> Result<(), TestCaseError> {
    use ServiceStep as Step;
    let files = files();
    let mut world = World::new(files.clone());
    let mut memory = Memory::default();
    let first = world.start(HOST);
    let wanted = CONNECT | READ | WRITE;
    let fd = world
        .bind(first, &socket("/run/notes"), wanted)
        .unwrap()
        .unwrap();
    let mut holders = vec![(first, fd)];
    let mut asked: Vec<(usize, (Object, Link))> = Vec::new();
    let mut made: Vec<(Object, Link, u32)> = Vec::new();
    for step in steps {
        memory.begun.resize(world.sessions(), memory.revoked.len());
        let holder = |index: &Index| holders[index.index(holders.len())];
        match step {
            Step::Start(_) if world.processes() == PROCESSES => {}
            Step::Start(layer) => drop(world.start(*layer)),
            Step::Pass(from, to) => {
                let (from, to) = (holder(from), to.index(world.processes()));
                if let Ok(got) = world.pass(from.0, from.1, to) {
                    holders.push((to, got));
                }
            }
            Step::Narrow(index, layer) => drop(world.narrow(holder(index).0, *layer)),
            Step::Open(index, name, value) => {
                let (pid, fd) = holder(index);
                let operands = [
                    Operand::Name(name.as_bytes().into()),
                    Operand::Number(*value),
                ];
                if let Ok(Some(request)) = world.request(pid, fd, 1, &operands) {
                    let object = Object::Of(0, name.as_bytes().into());
                    asked.push((request, (object, memory.link(&world, pid))));
                }
            }
            Step::Reply(index) => {
                let Some(at) = pick(index, asked.len()) else {
                    continue;
                };
                let (request, (object, link)) = asked.swap_remove(at);
                let number = made.len() as u64;
                prop_assert_eq!(world.reply(first, fd, request, number), Ok(()));
                made.push((object, link, 0));
            }
            Step::Use(index, descriptor, operation) => {
                let (pid, fd) = holder(index);
                let Some(number) = pick(descriptor, made.len()) else {
                    continue;
                };
                let operands = [Operand::Descriptor(number as u64)];
                if world.request(pid, fd, *operation, &operands).is_ok() {
                    let right = operation - 1;
                    let (object, opened, uses) = &mut made[number];
                    *uses += 1;
                    let few = matches!(object, Object::Of(_, name) if name.starts_with(b"few"));
                    prop_assert!(!few || *uses <= 2, "{uses}");
                    let object = (Some(0), &*object);
                    prop_assert!(memory.gives(&files, &world, opened, object, right));
                    // who uses it may do so itself, as far as it has layers that were not asked when it was opened
                    let mut user = memory.link(&world, pid);
                    user.layers.retain(|layer| !opened.layers.contains(layer));
                    prop_assert!(memory.gives(&files, &world, &user, object, right));
                }
            }
            Step::Revoke(kind, session, layer, capability, name) => {
                let what = match kind {
                    0 => Revoke::Session(session.index(world.sessions())),
                    1 => Revoke::Subject(*layer),
                    2 => Revoke::Capability(0, *capability),
                    _ => Revoke::Object(Some(0), Object::Of(0, name.as_bytes().into())),
                };
                world.revoke(&what);
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

    /// The same of what services' descriptors are used for.
    #[test]
    fn whatever_a_service_is_asked_is_justified(steps in prop::collection::vec(service_step(), 1..100)) {
        play_service(&steps)?;
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
        let mut world = World::new(vec![Capabilities::compile_str("uses.caps", text).unwrap().capabilities]);
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
