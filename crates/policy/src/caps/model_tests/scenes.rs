//! What becomes of what processes bind.

use super::*;

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
    // a process that is not governed hands over what the receiver could have bound
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
    // a process that was free begins a session by it
    let free = world.ungoverned();
    assert_eq!(world.narrow(free, TOOL), Ok(()));
    assert_eq!(
        missing(world.bind(free, &file("/data/x"), WRITE)),
        (TOOL, WRITE)
    );
}

#[test]
fn a_layer_that_was_taken_back_leaves_nothing_to_who_comes_by_it_later() {
    let mut world = World::new(files());
    let host = world.start(HOST);
    let x = world.bind(host, &file("/data/x"), READ).unwrap().unwrap();
    world.revoke(&Revoke::Subject(TOOL));
    world.revoke(&Revoke::Subject(PLUGIN));
    assert_eq!(world.access(host, x, READ), Ok(()));
    let (narrowed, executed, other) = (world.fork(host), world.fork(host), world.start(HOST));
    assert_eq!(world.narrow(narrowed, TOOL), Ok(()));
    assert_eq!(world.access(narrowed, x, READ), Err(Refusal::Revoked));
    assert_eq!(
        missing(world.bind(narrowed, &file("/data/x"), READ)).0,
        TOOL
    );
    assert_eq!(world.exec(executed, b"/bin/tool"), Ok(()));
    assert_eq!(world.access(executed, x, READ), Err(Refusal::Descriptor));
    // what is mapped could not be taken, so it is not brought by what is mapped
    assert_eq!(world.load(host, b"/lib/plugin"), Err(Refusal::Revoked));
    // others go on, and a session that began later goes by its file
    assert_eq!(world.access(host, x, READ), Ok(()));
    let y = world.bind(other, &file("/data/y"), READ).unwrap().unwrap();
    assert_eq!(world.narrow(other, TOOL), Ok(()));
    assert_eq!(world.access(other, y, READ), Ok(()));
}

#[test]
fn there_are_so_many_layers_and_no_more() {
    let text: String = (0..17)
        .map(|at| format!("subject s{at} {{\n}}\n"))
        .collect();
    let files = vec![compile_str("many.caps", &text).unwrap().capabilities];
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
        // a process that starts anew begins with what the file says
        let new = world.start(HOST);
        assert!(world.bind(new, &file("/data/x"), READ).is_ok());
    }
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
