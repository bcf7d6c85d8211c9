//! Requests to services: scenes, and random sequences.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::random::{Link, Memory, PROCESSES, layer, pick};
use super::*;

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

/// Plays requests on one connection, which all processes have that may.
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
                    // a process that uses it may do so itself, as far as it has layers that were
                    // not asked when it was opened
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

    /// No use after revocation or expiry: whatever a request does was allowed to the process that
    /// opened the descriptor, and to the one that uses it.
    #[test]
    fn whatever_a_service_is_asked_is_justified(steps in prop::collection::vec(service_step(), 1..100)) {
        play_service(&steps)?;
    }
}
