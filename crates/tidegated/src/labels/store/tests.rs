//! What is kept, sorted and merged.

use std::cell::Cell;
use std::slice;

use super::*;

fn disk(dev: u32, identity: &str) -> Filesystem {
    Filesystem {
        dev,
        identity: identity.into(),
        kind: "ext4".into(),
        ..Filesystem::default()
    }
}

fn given(dev: u32, ino: u64, level: u8) -> Given {
    Given {
        dev,
        ino,
        generation: 7,
        level,
    }
}

#[test]
fn a_disk_that_comes_has_its_levels_and_its_suspects() {
    let mut away = Away::default();
    away.add(Some(99), [given(0, 5, 0), given(0, 6, 1)]);
    let mut known = Known {
        here: BTreeMap::from([(8, "uuid=a".into())]),
        away: BTreeMap::from([("uuid=b".into(), away)]),
        at: None,
    };
    let (a, b) = (disk(8, "uuid=a"), disk(9, "uuid=b"));
    assert!(!known.is_new(&a) && known.is_new(&b));
    // one is lower by now
    let now = known.meet(&[&b], &[], &[given(8, 5, 2), given(9, 6, 0)], &[]);
    assert_eq!(now.table, Table::from([((9, 5, 7), 0), ((9, 6, 7), 0)]));
    assert_eq!(now.since, BTreeMap::from([(9, 99)]));
    assert!(now.gone.is_empty() && known.away.is_empty() && !known.is_new(&b));
}

#[test]
fn a_disk_that_comes_again_or_twice_has_its_levels() {
    let mut known = Known {
        here: BTreeMap::from([(8, "uuid=a".into())]),
        ..Known::default()
    };
    let (first, other) = (disk(8, "uuid=a"), disk(9, "uuid=a"));
    assert!(known.is_new(&other));
    // beside the first
    let mut beside = known.clone();
    let both = [first.clone(), other.clone()];
    let now = beside.meet(&[&other], &both, &[given(8, 5, 1)], &[]);
    assert_eq!(now.table, Table::from([((9, 5, 7), 1)]));
    assert!(now.gone.is_empty() && !beside.is_new(&first));
    // by another number: what it has from then on counts when the first number comes again
    let now = known.meet(&[&other], slice::from_ref(&other), &[given(8, 5, 1)], &[]);
    assert_eq!(now.table, Table::from([((9, 5, 7), 1)]));
    assert_eq!(now.gone, [given(8, 5, 1)]);
    assert!(known.is_new(&first));
    let now = known.meet(
        &[&first],
        slice::from_ref(&first),
        &[given(9, 5, 0), given(9, 6, 0)],
        &[],
    );
    assert_eq!(now.table, Table::from([((8, 5, 7), 0), ((8, 6, 7), 0)]));
}

#[test]
fn another_disk_of_the_same_number_has_none_of_its_levels() {
    let mut known = Known {
        here: BTreeMap::from([(8, "uuid=a".into())]),
        ..Known::default()
    };
    let other = disk(8, "uuid=b");
    let now = known.meet(&[&other], &[], &[given(8, 5, 1)], &[]);
    assert_eq!((now.gone, now.table), (vec![given(8, 5, 1)], Table::new()));
    assert_eq!(known.away["uuid=a"].given, [given(0, 5, 1)]);
    // and it gets them when it is back
    let now = known.meet(&[&disk(8, "uuid=a")], &[], &[], &[]);
    assert_eq!(now.table, Table::from([((8, 5, 7), 1)]));
}

#[test]
fn a_clock_is_behind_what_was_written_last() {
    let known = |at| Known {
        at,
        ..Known::default()
    };
    assert!(known(Some(100)).is_behind(99));
    assert!(!known(Some(100)).is_behind(100) && !known(None).is_behind(99));
}

#[test]
fn the_last_saving_is_of_all_that_was_given() {
    let table = Cell::new(0);
    let saved = Cell::new(0);
    let under_way = Cell::new(2);
    let read = || {
        Ok((0..table.get())
            .map(|ino| given(8, ino, 0))
            .collect::<Vec<_>>())
    };
    let save = || {
        saved.set(table.get());
        // a creation that had begun
        if under_way.get() > 0 {
            under_way.set(under_way.get() - 1);
            table.set(table.get() + 1);
        }
        Ok(())
    };
    last(read, save).unwrap();
    assert_eq!((table.get(), saved.get()), (2, 2));
    under_way.set(100);
    assert!(last(read, save).is_err());
}

#[test]
fn a_disk_that_does_not_tell_its_name_is_the_one_it_was() {
    let known = Known {
        here: BTreeMap::from([(8, "uuid=a".into())]),
        ..Known::default()
    };
    let (silent, memory) = (
        disk(8, "ext4 /dev/sda1"),
        Filesystem {
            memory: true,
            ..disk(8, "tmpfs t")
        },
    );
    assert!(!known.is_new(&silent));
    assert_eq!(known.called(8, &[silent]), "uuid=a");
    assert_eq!(known.called(8, &[memory]), "tmpfs t");
    assert_eq!(known.called(8, &[]), "uuid=a");
    assert_eq!(known.called(9, &[]), UNMOUNTED);
}
