use tidegate_bundle::profile::{Access, Attach, Capabilities, Exec, Mode, PathFlags};

use super::*;

/// Reads an image as the kernel does: offsets of an arena, each looked at before it is followed.
struct Arena(Image);

impl Arena {
    fn of(set: &ProfileSet, seqno: u32) -> Arena {
        Arena(Image::of(set, base(seqno)).unwrap())
    }

    /// The value at an offset, which lies within the image and is aligned.
    fn at<T: Pod>(&self, at: u32) -> T {
        let Image { base, bytes } = &self.0;
        assert_eq!(at as usize % align_of::<T>(), 0, "{at} is not aligned");
        assert!(at >= *base, "{at} is before the image");
        let at = (at - base) as usize;
        assert!(at + size_of::<T>() <= bytes.len(), "{at} is behind it");
        T::read(&bytes[at..]).unwrap()
    }

    /// One value of a list.
    fn nth<T: Pod>(&self, list: u32, index: usize) -> T {
        self.at(list + (index * size_of::<T>()) as u32)
    }

    fn text(&self, at: u32, len: usize) -> String {
        let bytes = (0..len).map(|index| self.nth(at, index)).collect();
        String::from_utf8(bytes).unwrap()
    }

    fn head(&self) -> tg_image {
        self.at(self.0.base)
    }

    /// The profiles of a list: offsets.
    fn list(&self, first: u32) -> Vec<u32> {
        let some = |at: u32| (at != 0).then_some(at);
        let next = |&at: &u32| some(self.at::<tg_profile>(at).sibling);
        std::iter::successors(some(first), next).collect()
    }

    /// `profile_by_id()` of kernel/profile/subject.h.
    fn find(&self, id: u64) -> u32 {
        let tg_image {
            names, names_mask, ..
        } = self.head();
        for step in 0..=u64::from(names_mask) {
            let slot = (id + step) & u64::from(names_mask);
            let at = self.nth(names, slot as usize);
            if at == 0 || self.at::<tg_profile>(at).id == id {
                return at;
            }
        }
        0
    }

    fn named(&self, name: &str) -> tg_profile {
        self.at(self.find(profile_id(name)))
    }

    /// The state after some bytes: `profile_step()` of kernel/profile/rules.h.
    fn walk(&self, walk: tg_walk, bytes: &[u8]) -> u32 {
        let table: tg_table = self.at(walk.table);
        bytes.iter().fold(walk.start, |state, &byte| {
            let class = table.classes[usize::from(byte)];
            let index = state * table.width + u32::from(class);
            self.nth::<u16>(table.next, index as usize).into()
        })
    }

    /// `profile_perms()` of the same.
    fn perms(&self, table: u32, state: u32) -> tg_pair {
        let table: tg_table = self.at(table);
        let accept: u16 = self.nth(table.accepts, state as usize);
        self.nth(table.pairs, accept.into())
    }
}

fn numbers(p: &tg_perms) -> [u32; 5] {
    [p.allow, p.deny, p.audit, p.quiet, p.exec]
}

/// `/x` leads to state 3, and any more `x` there; the owner may more of it than others.
fn table() -> Table {
    let mut classes = Box::new([0; 256]);
    classes[usize::from(b'/')] = 1;
    classes[usize::from(b'x')] = 2;
    let of = |allow, exec| Perms {
        allow,
        audit: Access::WRITE,
        quiet: Access::LOCK,
        exec: Exec(exec),
        ..Perms::default()
    };
    Table {
        classes,
        width: 3,
        next: vec![0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 3],
        accepts: vec![0, 0, 0, 1],
        perms: vec![
            [Perms::default(); 2],
            [
                of(Access::READ | Access::EXEC, Exec::TABLE | 1),
                of(Access::READ, 0),
            ],
        ],
    }
}

/// One that differs from it in a state that accepts.
fn another_table() -> Table {
    let mut table = table();
    table.accepts[2] = 1;
    table
}

fn walk(automaton: u32, start: u16) -> Option<Walk> {
    Some(Walk { automaton, start })
}

fn profile(name: &str, parent: Option<u32>) -> Linked {
    Linked {
        name: name.into(),
        parent,
        is_hat: false,
        mode: Mode::Enforce,
        audit: false,
        path_flags: PathFlags::empty(),
        disconnected: None,
        capabilities: Capabilities::default(),
        rlimits: Vec::new(),
        attachment: None,
        file: walk(0, 1),
        policy: None,
        targets: Vec::new(),
    }
}

/// Two profiles, of which one has a child and leads to the other, and both have the same rules on files.
fn small() -> ProfileSet {
    let first = Linked {
        mode: Mode::Complain,
        audit: true,
        path_flags: PathFlags::CONNECT_PATH,
        disconnected: Some("/gone".into()),
        capabilities: Capabilities {
            allow: 1 << 40,
            audit: 2,
            quiet: 4,
            extended: 0,
        },
        attachment: Some(Attach {
            walk: Walk {
                automaton: 1,
                start: 1,
            },
            length: 2,
        }),
        policy: walk(1, 2),
        rlimits: vec![
            Rlimit {
                resource: 7,
                max: 100,
            },
            Rlimit {
                resource: 15,
                max: 0,
            },
        ],
        targets: vec![Target::Missing, Target::Profile(2), Target::Profile(1)],
        ..profile("a", None)
    };
    let child = Linked {
        is_hat: true,
        file: None,
        ..profile("a///bin/b", Some(0))
    };
    ProfileSet {
        profiles: vec![first, child, profile("é", None)],
        automata: vec![table(), another_table()],
        unmediated: Vec::new(),
        left_out: Vec::new(),
    }
}

#[test]
fn each_profile_is_in_one_list_and_found_by_its_name() {
    let set = small();
    for seqno in [1, 2] {
        let arena = Arena::of(&set, seqno);
        let head = arena.head();
        assert_eq!(head.profiles, 3);
        let mut seen = arena.list(head.first);
        assert_eq!(seen.len(), 2, "at the top");
        for at in seen.clone() {
            let parent: tg_profile = arena.at(at);
            assert_eq!(parent.parent, 0);
            for child in arena.list(parent.children) {
                assert_eq!(arena.at::<tg_profile>(child).parent, at);
                seen.push(child);
            }
        }
        let mut found: Vec<u32> = set
            .profiles
            .iter()
            .map(|p| profile_id(&p.name))
            .map(|id| arena.find(id))
            .collect();
        seen.sort_unstable();
        found.sort_unstable();
        assert_eq!(seen, found, "listed, and found by name");
        found.dedup();
        assert_eq!(found.len(), 3);
        assert_eq!(arena.find(profile_id("b")), 0);
        for profile in &set.profiles {
            assert_eq!(arena.named(&profile.name).id, profile_id(&profile.name));
        }
    }
}

#[test]
fn a_profile_is_what_it_was() {
    let set = small();
    let arena = Arena::of(&set, 1);
    let a = arena.named("a");
    let caps = [a.caps_allow, a.caps_audit, a.caps_quiet];
    assert_eq!(caps, [1 << 40, 2, 4]);
    assert_eq!((a.mode, a.audit, a.hat), (Mode::Complain as u8, 1, 0));
    assert_eq!(a.path_flags, PathFlags::CONNECT_PATH.bits());
    let disconnected = arena.text(a.disconnected, a.disconnected_len.into());
    assert_eq!(disconnected, "/gone");
    assert_eq!(a.attach_length, 2);
    assert_eq!([a.file.start, a.policy.start, a.attach.start], [1, 2, 1]);
    assert_eq!(a.policy.table, a.attach.table);
    let targets = [0, 1, 2].map(|index| arena.nth::<u32>(a.targets, index));
    let at = ["é", "a///bin/b"].map(|name| arena.find(profile_id(name)));
    assert_eq!(targets, [0, at[0], at[1]]);
    assert_eq!(a.limited, 1 << 7 | 1 << 15);
    let limits = [0, 7, 15].map(|index| arena.nth::<u64>(a.limits, index));
    assert_eq!(limits, [u64::MAX, 100, 0]);

    let other = arena.named("é");
    assert_eq!(other.file.table, a.file.table, "one automaton for both");
    assert_eq!([other.policy.table, other.attach.table], [0, 0]);
    assert_eq!([other.targets, other.children], [0, 0]);
    assert_eq!([other.limited, other.limits], [0, 0]);
    assert_eq!((other.disconnected, other.disconnected_len), (0, 0));
    assert_eq!((other.mode, other.audit), (Mode::Enforce as u8, 0));

    let child = arena.named("a///bin/b");
    assert_eq!((child.hat, child.file.table), (1, 0));
}

#[test]
fn a_childs_name_is_its_last_part() {
    let arena = Arena::of(&small(), 2);
    for (name, last) in [("a", "a"), ("a///bin/b", "/bin/b"), ("é", "é")] {
        let profile = arena.named(name);
        assert_eq!(arena.text(profile.name, profile.name_len as usize), name);
        assert_eq!(arena.text(profile.last, profile.last_len as usize), last);
    }
}

#[test]
fn a_walk_is_the_tables() {
    let set = small();
    let arena = Arena::of(&set, 1);
    let a = arena.named("a");
    for (laid_out, table) in [(a.file, &set.automata[0]), (a.policy, &set.automata[1])] {
        let step = |state: usize, byte: u8| {
            let class = usize::from(table.classes[usize::from(byte)]);
            usize::from(table.next[state * usize::from(table.width) + class])
        };
        for start in 0..table.accepts.len() {
            let from = tg_walk {
                start: start as u32,
                ..laid_out
            };
            for first in 0..=u8::MAX {
                for second in *b"/xy\0" {
                    let state = step(step(start, first), second);
                    let found = arena.walk(from, &[first, second]);
                    assert_eq!(found, state as u32);
                }
            }
            let pair = arena.perms(laid_out.table, start as u32);
            let wanted = table.perms[usize::from(table.accepts[start])];
            assert_eq!(numbers(&pair.owner), numbers(&perms(&wanted[0])));
            assert_eq!(numbers(&pair.other), numbers(&perms(&wanted[1])));
            for bit in (0..32).map(|bit| 1 << bit) {
                let said = [&pair.owner, &pair.other];
                let simply = |p: &tg_perms| p.allow & bit != 0 && (p.deny | p.audit) & bit == 0;
                assert_eq!(pair.plain & bit != 0, said.into_iter().all(simply));
            }
        }
    }
    let owner = arena.perms(a.file.table, arena.walk(a.file, b"/xx")).owner;
    let allow = (Access::READ | Access::EXEC).bits();
    let [audit, quiet] = [Access::WRITE, Access::LOCK].map(|access| access.bits());
    assert_eq!(numbers(&owner), [allow, 0, audit, quiet, Exec::TABLE | 1]);
}

#[test]
fn an_automaton_of_256_classes_has_its_last_one() {
    let mut table = table();
    table.width = 256;
    table.classes = Box::new(std::array::from_fn(|byte| byte as u8));
    table.next = (0..4 * 256).map(|at| at % 4).collect();
    let set = ProfileSet {
        profiles: vec![profile("a", None)],
        automata: vec![table],
        unmediated: Vec::new(),
        left_out: Vec::new(),
    };
    let arena = Arena::of(&set, 1);
    let from = tg_walk {
        start: 3,
        ..arena.named("a").file
    };
    assert_eq!(arena.walk(from, &[0xff]), 3);
    assert_eq!(arena.walk(from, &[0xfe]), 2);
}

#[test]
fn a_crowd_is_found_by_name() {
    let names: Vec<String> = (0..1000).map(|n| format!("profile {n}")).collect();
    let set = ProfileSet {
        profiles: names.iter().map(|name| profile(name, None)).collect(),
        automata: vec![table()],
        unmediated: Vec::new(),
        left_out: Vec::new(),
    };
    let arena = Arena::of(&set, 1);
    for name in &names {
        let found = arena.named(name);
        assert_eq!(&arena.text(found.name, found.name_len as usize), name);
    }
    assert_eq!(arena.find(profile_id("profile 1000")), 0);
    assert_eq!(arena.list(arena.head().first).len(), names.len());
}

#[test]
fn two_profiles_of_one_number_are_refused() {
    let mut set = small();
    set.profiles[2].name = "a".into();
    let error = Image::of(&set, base(1)).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn without_profiles_there_are_none() {
    let arena = Arena::of(&ProfileSet::default(), 1);
    let head = arena.head();
    assert_eq!((head.profiles, head.first), (0, 0));
    assert_eq!(arena.find(profile_id("a")), 0);
}

#[test]
fn two_policies_have_a_half_each() {
    let halves = [base(1), base(2)];
    assert_eq!(base(3), halves[0]);
    assert_eq!(halves[0].abs_diff(halves[1]), TG_ARENA_HALF);
    assert!(halves.iter().all(|&half| half >= PAGE && half % PAGE == 0));
}
