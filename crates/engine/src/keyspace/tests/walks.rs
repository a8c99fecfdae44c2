//! The guarantee of SCAN, and the fairness of RANDOMKEY.

use super::*;
use crate::keyspace::keys::lock_blocking;
use crate::testing::Db;
use std::collections::HashMap;

/// Scans the whole database and runs `between` before each call. Returns how often each key was
/// returned.
fn scan_all(world: &World, count: u64, mut between: impl FnMut(usize)) -> HashMap<String, usize> {
    let mut seen = HashMap::new();
    let (mut cursor, mut calls) = (0, 0);
    loop {
        between(calls);
        cursor = world.unlocked(|keys| {
            keys.scan(cursor, count, |entry| {
                let key = String::from_utf8(entry.key().to_vec()).unwrap();
                *seen.entry(key).or_insert(0) += 1;
            })
        });
        calls += 1;
        if cursor == 0 {
            return seen;
        }
    }
}

#[track_caller]
fn assert_each_once(seen: &HashMap<String, usize>, stayed: usize) {
    for n in 0..stayed {
        assert_eq!(seen.get(&name(n)), Some(&1), "{}", name(n));
    }
}

#[test]
fn keys_that_stay_are_scanned_once_while_tables_grow_and_shrink() {
    let world = World::new();
    (0..2000).for_each(|n| world.set(&name(n), None));
    let seen = scan_all(&world, 100, |call| {
        let more = 2000 + call * 200..2200 + call * 200;
        more.filter(|n| *n < 8000).for_each(|n| world.set(&name(n), None));
    });
    assert_each_once(&seen, 2000);
    let held = world.count() as usize;
    let seen = scan_all(&world, held as u64 / 40, |call| {
        let fewer = 2000 + call * held / 40..(2000 + (call + 1) * held / 40).min(held);
        fewer.for_each(|n| assert!(world.delete(&name(n))));
    });
    assert_each_once(&seen, 2000);
    world.keyspace.check();
}

#[test]
fn a_scan_ends_even_if_the_database_is_flushed_or_swapped() {
    let world = World::new();
    (0..2000).for_each(|n| world.set(&name(n), None));
    scan_all(&world, 10, |call| match call {
        20 => world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1))),
        21 => (0..300).for_each(|n| world.set(&name(n), None)),
        30 => assert_eq!(world.unlocked(|keys| keys.flush(HOME)), 300),
        _ => {}
    });
    world.keyspace.check();
}

#[test]
fn walks_skip_slots_that_lost_their_keys() {
    let world = World::new();
    (0..3000).for_each(|n| world.set(&name(n), None));
    (10..3000).for_each(|n| assert!(world.delete(&name(n))));
    world.keyspace.check();
    let database = world.keyspace.database(HOME);
    let noted =
        || (0..SLOTS as u16).filter(|n| database.occupied.contains(SlotId::new(*n))).count();
    let before = noted();
    assert_each_once(&scan_all(&world, 100, |_| {}), 10);
    assert!(noted() <= 10 && before > 1000, "{before} slots, then {}", noted());
    world.unlocked(|keys| keys.swap(HOME, DbIndex::of(1)));
    world.keyspace.check();
    assert_eq!(scan_all(&world, 100, |_| {}).len(), 0);
}

#[test]
fn any_number_may_be_a_cursor() {
    let world = World::new();
    (0..100).for_each(|n| world.set(&name(n), None));
    let mut random = Random::seeded(3);
    for shift in 0..64 {
        for cursor in [u64::MAX >> shift, 1 << shift, random.bits() >> shift] {
            world.unlocked(|keys| keys.scan(cursor, 5, |_| {}));
        }
    }
}

#[test]
fn a_scan_step_is_bounded_by_its_count() {
    let world = World::new();
    (0..4000).for_each(|n| world.set(&name(n), None));
    let mut cursor = 0;
    loop {
        let mut seen = 0;
        cursor = world.unlocked(|keys| keys.scan(cursor, 10, |_| seen += 1));
        assert!(seen < 100, "{seen} keys for a count of 10");
        if cursor == 0 {
            break;
        }
    }
}

/// Draws keys and returns the sum of squared deviations from an even share, divided by the share.
fn unevenness(world: &World, keys: usize, draws: usize) -> f64 {
    let mut drawn: HashMap<Vec<u8>, usize> = HashMap::new();
    for _ in 0..draws {
        let key = world.unlocked(|keys| keys.random_key()).unwrap();
        *drawn.entry(key).or_insert(0) += 1;
    }
    let share = draws as f64 / keys as f64;
    let squares = drawn.values().map(|n| (*n as f64 - share).powi(2)).sum::<f64>();
    let never = (keys - drawn.len()) as f64 * share.powi(2);
    (squares + never) / share
}

/// The mean of chi-square plus five times its standard deviation.
fn suspicious(degrees: usize) -> f64 {
    let degrees = degrees as f64;
    degrees + 5.0 * (2.0 * degrees).sqrt()
}

#[test]
fn keys_are_drawn_evenly_from_crowded_and_lonely_slots() {
    let world = World::new();
    (0..60).for_each(|n| world.set(&name(n), None));
    let chi = unevenness(&world, 60, 3000);
    assert!(chi < suspicious(59), "{chi}");
}

#[test]
fn keys_are_drawn_evenly_when_a_slot_holds_half_of_many_keys() {
    let world = World::new();
    let spread = 20_000;
    (0..spread).for_each(|n| world.set(&format!("key:{n}"), None));
    (0..5000).for_each(|n| world.set(&format!("{{crowd}}:{n}"), None));
    let crowd = (0..1000)
        .filter(|_| world.unlocked(|keys| keys.random_key()).unwrap().starts_with(b"{crowd}"))
        .count();
    // A fifth of 1000, plus or minus five standard deviations.
    assert!((137..263).contains(&crowd), "{crowd}");
}

#[test]
fn keys_are_drawn_evenly_from_many_even_slots() {
    let world = World::new();
    (0..1000).for_each(|n| world.set(&format!("key:{n}"), None));
    let chi = unevenness(&world, 1000, 20_000);
    assert!(chi < suspicious(999), "{chi}");
}

/// The tickets of a database's slots that differ from 0.
fn tickets(db: &Db, index: u32) -> Vec<u64> {
    let database = db.keyspace().database(DbIndex::of(index));
    let slots = (0..SLOTS as u16).map(SlotId::new);
    let mut tickets: Vec<u64> =
        slots.map(|slot| lock_blocking(database, slot).meta().last_write.0).collect();
    tickets.retain(|ticket| *ticket > 0);
    tickets.sort_unstable();
    tickets
}

/// The ticket of a transaction is the stream offset after it.
fn ticket(db: &Db) -> u64 {
    db.keyspace().journal().end().0
}

#[test]
fn commands_on_whole_databases_mark_the_slots_they_changed() {
    let mut db = Db::new();
    db.effects("MSET a 1 b 2", &["MSET a 1 b 2"]);
    let first = ticket(&db);
    assert_eq!(tickets(&db, 0), [first, first]);
    db.select(1).effects("SET c 3", &["SET c 3"]);
    db.effects("SWAPDB 0 1", &["SWAPDB 0 1"]);
    let swap = ticket(&db);
    assert_eq!((tickets(&db, 0), tickets(&db, 1)), (vec![swap; 3], vec![swap; 3]));
    db.effects("FLUSHDB", &["FLUSHDB"]);
    let flush = ticket(&db);
    assert_eq!((tickets(&db, 0), tickets(&db, 1)), (vec![swap; 3], vec![swap, flush, flush]));
    db.effects("FLUSHALL", &["FLUSHALL"]);
    let all = ticket(&db);
    assert!(first < swap && swap < flush && flush < all);
    let marked = (tickets(&db, 0), tickets(&db, 1));
    assert_eq!(marked, (vec![swap, swap, all], vec![swap, flush, flush]));
    db.check("FLUSHALL", "OK"); // no thread collects effects: no ticket
    assert_eq!(tickets(&db, 0).iter().max(), Some(&all));
}

#[test]
fn the_contents_of_another_keyspace_replace_all_databases() {
    let (ours, theirs) = (World::new(), World::new());
    for n in 0..500 {
        ours.set(&name(n), (n % 3 == 0).then_some(5000));
        theirs.set(&name(n + 250), (n % 5 == 0).then_some(9000));
    }
    theirs.set("expires", Some(7000));
    // A database that only one of the keyspaces has ever used.
    ours.with(DbIndex::of(1), &[b"old"], |keys, found| {
        keys.set_string(&found[0], b"value", Overwrite::Persist, "set");
    });
    theirs.with(DbIndex::of(2), &[b"new"], |keys, found| {
        keys.set_string(&found[0], b"value", Overwrite::Persist, "set");
    });
    ours.unlocked(|keys| keys.adopt(&theirs.keyspace));
    ours.keyspace.check();
    assert_eq!(ours.count(), 501);
    assert!(ours.exists("expires") && ours.exists(&name(749)) && !ours.exists(&name(0)));
    let counts = [1, 2].map(|db| ours.keyspace.key_count(DbIndex::of(db)));
    assert_eq!(counts, [0, 1]);
    assert_eq!(ours.keyspace.totals().databases[0].with_deadline, 101);
    // Another thread frees the old contents, and the keyspace can be written to as before.
    assert!(!ours.env.garbage.borrow().is_empty());
    ours.set("another", None);
    assert!(ours.delete(&name(749)));
    ours.keyspace.check();
}
