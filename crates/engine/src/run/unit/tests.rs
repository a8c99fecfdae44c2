//! Units and watches in one thread. Integration tests show that units exclude other threads.

use crate::base::error::CommandError;
use crate::command::args::PreparedKey;
use crate::keyspace::expire::{SweepOutcome, Sweeper};
use crate::keyspace::{DbIndex, DbSlot, EndedWatches, Watches};
use crate::run::exec;
use crate::run::unit::Unit;
use crate::testing::Db;

fn place(db: &Db, key: &str) -> (DbSlot, PreparedKey) {
    let key = db.keyspace().hasher().key(key.as_bytes());
    ((DbIndex::FIRST, key.slot), exec::prepare(1, &key))
}

#[test]
fn the_effects_of_a_unit_share_a_ticket() {
    let mut db = Db::new();
    db.unit(
        &["SET a 1 EX 10", "GET a", "LPUSH l x y", "RENAME l m"],
        &["OK", "\"1\"", "(integer) 2", "OK"],
        &["SET a 1 PXAT 11000", "LPUSH l x y", "RENAME l m"],
    );
    // No effects, no ticket.
    db.unit(&["GET a", "INCR a"], &["\"1\"", "(integer) 2"], &["INCR a"]);
    db.unit(&["GET a", "DEL none"], &["\"2\"", "(integer) 0"], &[]);
    db.unit(&[], &[], &[]);
    db.invariants();
}

#[test]
fn an_error_within_a_unit_does_not_affect_other_commands() {
    let mut db = Db::new();
    db.unit(
        &["SET a x", "LPUSH a 1", "INCR a", "SET b y"],
        &[
            "OK",
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value",
            "(error) ERR value is not an integer or out of range",
            "OK",
        ],
        &["SET a x", "SET b y"],
    );
}

#[test]
fn an_expired_key_is_removed_at_its_position_among_the_effects() {
    let mut db = Db::new();
    db.check("SET a 1 PX 500", "OK");
    db.at(1500).unit(
        &["SET b 1", "GET a", "SET c 1"],
        &["OK", "(nil)", "OK"],
        &["SET b 1", "DEL a", "SET c 1"],
    );
}

#[test]
fn blocking_commands_within_a_unit_reply_null_at_once() {
    let mut db = Db::new();
    db.unit(&["BLPOP none 0", "BLMOVE none other LEFT LEFT 0"], &["(nil)", "(nil)"], &[]);
}

#[test]
fn a_unit_holds_all_of_its_slots_or_none() {
    let db = Db::new();
    let (keyspace, env) = (db.keyspace(), db.env());
    let [(a, _), (b, prepared)] = ["a", "b"].map(|key| place(&db, key));
    let first = Unit::holding(keyspace, env, vec![b]).expect("no thread holds it");
    assert!(matches!(Unit::holding(keyspace, env, vec![a, b]), Err(CommandError::SlotBusy)));
    first.finish(env);
    let mut both = Unit::holding(keyspace, env, vec![b, a, b]).expect("they are free");
    let seen = both.with_keys(env, DbIndex::FIRST, &[prepared, prepared], |keys| {
        Ok(keys.contains(&keyspace.hasher().key(b"b")))
    });
    assert!(!seen.expect("the slot is held"));
    both.finish(env);
    db.invariants();
}

fn watches() -> Watches {
    Watches::new(Default::default())
}

/// Checks whether a watch of `k` survives `line` after `before`.
#[track_caller]
fn survives(before: &[&str], line: &str, wanted: bool) {
    let mut db = Db::new();
    before.iter().for_each(|line| _ = db.run(line));
    let mut watches = watches();
    db.watch("k", &mut watches);
    db.run(line);
    assert_eq!(db.settles(&mut watches), wanted, "{before:?} {line}");
    assert_eq!(db.keyspace().watched_keys(), 0);
}

#[test]
fn a_watch_sees_only_changes_of_the_key() {
    for line in ["SET k y", "APPEND k ''", "DEL k", "EXPIRE k 9", "RENAME k l", "RENAME l k"] {
        survives(&["SET k x", "SET l x"], line, false);
    }
    for line in ["MOVE k 1", "COPY l k REPLACE", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "GETDEL k"] {
        survives(&["SET k x", "SET l x"], line, false);
    }
    for line in ["GET k", "SET l y", "PERSIST k", "COPY k m", "SWAPDB 0 0", "SWAPDB 2 3"] {
        survives(&["SET k x", "SET l x"], line, true);
    }
    for line in ["SET l y", "FLUSHALL", "SWAPDB 0 1", "DEL k", "SINTERSTORE k none"] {
        survives(&[], line, true);
    }
    survives(&[], "SET k x", false);
    survives(&["LPUSH k x"], "LPOP k", false);
    survives(&["LPUSH k x"], "LREM k 0 y", true);
    // A change to a stream's groups is not a change to its contents.
    survives(&["XADD k 1-1 f v"], "XGROUP CREATE k g 0", true);
    survives(&["XADD k 1-1 f v"], "XADD k 2-1 f v", false);
    survives(&[], "XGROUP CREATE k g 0 MKSTREAM", false);
}

#[test]
fn an_expired_key_breaks_its_watch_however_it_is_removed() {
    let removers: [fn(&mut Db); 3] = [
        |_| {},
        |db| _ = db.run("GET k"),
        |db| {
            let mut sweeper = Sweeper::new(0, 1);
            assert_eq!(sweeper.cycle(db.keyspace(), db.env(), || true), SweepOutcome::All);
        },
    ];
    for remove in removers {
        let mut db = Db::new();
        db.run("SET k x PX 500");
        let mut watches = watches();
        db.watch("k", &mut watches);
        assert!(db.at(1499).settles(&mut watches));
        db.watch("k", &mut watches);
        remove(db.at(1500));
        assert!(!db.settles(&mut watches));
    }
}

#[test]
fn removing_a_stale_key_is_not_a_change_but_later_changes_are() {
    for (line, wanted) in
        [("GET other", true), ("GET k", true), ("FLUSHALL", true), ("SET k y", false)]
    {
        let mut db = Db::new();
        db.run("SET k x PX 500");
        db.at(1500);
        let mut watches = watches();
        db.watch("k", &mut watches);
        db.run(line);
        assert_eq!(db.settles(&mut watches), wanted, "{line}");
    }
}

#[test]
fn swapdb_distinguishes_stale_keys_from_living_ones() {
    // The contents of databases 0 and 1 at 1500 ms, and whether a watch of `k` in 0 survives.
    for (in_first, in_second, wanted) in [
        ("", "", true),
        ("", "SET k x", false),
        ("SET k x", "", false),
        ("SET k x", "SET k x", false),
        ("", "SET k x PX 500", true),
        ("SET k x PX 500", "", true),
        ("SET k x PX 500", "SET k x PX 500", true),
        ("SET k x PX 500", "SET k x", false),
        ("SET k x", "SET k x PX 500", false),
    ] {
        let mut db = Db::new();
        let set = |db: &mut Db, line: &str| {
            if !line.is_empty() {
                db.check(line, "OK");
            }
        };
        set(&mut db, in_first);
        set(db.select(1), in_second);
        db.at(1500).select(0);
        let mut watches = watches();
        db.watch("k", &mut watches);
        db.run("SWAPDB 0 1");
        assert_eq!(db.settles(&mut watches), wanted, "{in_first:?} {in_second:?}");
    }
}

#[test]
fn watching_a_key_twice_is_one_watch() {
    let mut db = Db::new();
    let (mut one, mut other) = (watches(), watches());
    for _ in 0..3 {
        db.watch("k", &mut one);
    }
    db.watch("k", &mut other);
    assert_eq!((one.len(), db.keyspace().watched_keys()), (1, 1));
    db.keyspace().unwatch(&mut one, &mut EndedWatches::default());
    db.run("SET k x");
    assert!(!one.watcher().is_broken() && other.watcher().is_broken());
    assert!(db.settles(&mut one) && !db.settles(&mut other));
}

#[test]
fn a_transaction_is_not_broken_by_its_own_changes() {
    let mut db = Db::new();
    let mut watches = watches();
    db.watch("k", &mut watches);
    let (place, _) = place(&db, "k");
    let mut unit = Unit::holding(db.keyspace(), db.env(), vec![place]).expect("free");
    assert!(unit.settle(db.env(), &watches));
    unit.finish(db.env());
    db.run("SET k x");
    assert!(!watches.watcher().is_broken());
    db.keyspace().unwatch(&mut watches, &mut EndedWatches::default());
}

/// Makes a session watch `key:0` to `key:999`.
fn watch_many(db: &Db, watches: &mut Watches) {
    (0..1000).for_each(|number| db.watch(&format!("key:{number}"), watches));
}

#[test]
fn many_watches_end_at_once_and_leave_their_queues_in_slices() {
    let mut db = Db::new();
    let (mut watches, mut leftovers) = (watches(), EndedWatches::default());
    watch_many(&db, &mut watches);
    assert_eq!((db.keyspace().watching_clients(), db.keyspace().watched_keys()), (1, 1000));
    db.keyspace().unwatch(&mut watches, &mut leftovers);
    assert_eq!((db.keyspace().watching_clients(), db.keyspace().watched_keys()), (0, 0));
    for left in [1000, 900, 800] {
        assert_eq!(db.keyspace().ended_watches(), left);
        db.keyspace().remove_ended_watches(&mut leftovers, 100);
    }
    // The session is not notified, regardless of what happens to the keys.
    for line in ["SET key:0 x", "MSET key:1 x key:999 x", "FLUSHALL", "SET key:2 x", "SWAPDB 0 1"] {
        db.run(line);
        assert!(!watches.watcher().is_broken(), "{line}");
    }
    db.keyspace().remove_ended_watches(&mut leftovers, usize::MAX);
    assert!(leftovers.is_empty());
    assert_eq!(db.keyspace().ended_watches(), 0);
    db.invariants();
}

#[test]
fn a_few_watches_leave_their_queues_when_they_end() {
    let db = Db::new();
    let (mut watches, mut leftovers) = (watches(), EndedWatches::default());
    (0..32).for_each(|number| db.watch(&format!("key:{number}"), &mut watches));
    db.keyspace().unwatch(&mut watches, &mut leftovers);
    assert!(leftovers.is_empty());
    assert_eq!(db.keyspace().ended_watches(), 0);
}

#[test]
fn a_key_is_watched_again_while_an_ended_watch_is_left() {
    let (first, last) = ("key:0", "key:999");
    // Before, during and after the removal of the leftovers.
    for taken_out in [0, 500, 1000] {
        for (line, wanted) in [("SET key:0 x", false), ("SET key:999 x", false), ("SET k x", true)]
        {
            let mut db = Db::new();
            let (mut one, mut other) = (watches(), watches());
            let mut leftovers = EndedWatches::default();
            watch_many(&db, &mut one);
            db.watch(first, &mut other);
            db.watch(last, &mut other);
            db.keyspace().unwatch(&mut one, &mut leftovers);
            db.keyspace().remove_ended_watches(&mut leftovers, taken_out);
            db.watch(first, &mut one);
            db.watch(last, &mut one);
            assert_eq!(one.len(), 2);
            assert_eq!(db.keyspace().watching_clients(), 2);
            db.keyspace().remove_ended_watches(&mut leftovers, 250);
            db.run(line);
            db.keyspace().remove_ended_watches(&mut leftovers, usize::MAX);
            assert_eq!(db.keyspace().watched_keys(), 2);
            assert_eq!(db.settles(&mut one), wanted, "{taken_out} {line}");
            assert_eq!(db.settles(&mut other), wanted, "{taken_out} {line}");
            db.invariants();
        }
    }
}

#[test]
fn leftover_watches_of_several_sessions_are_all_removed() {
    let mut db = Db::new();
    let mut leftovers = EndedWatches::default();
    let mut sessions: Vec<Watches> = (0..3).map(|_| watches()).collect();
    for watches in &mut sessions {
        watch_many(&db, watches);
    }
    assert_eq!((db.keyspace().watching_clients(), db.keyspace().watched_keys()), (3, 1000));
    for (ended, watches) in (1..).zip(&mut sessions) {
        db.keyspace().unwatch(watches, &mut leftovers);
        assert_eq!(db.keyspace().watching_clients(), 3 - ended);
        assert_eq!(db.keyspace().ended_watches(), 1000 * ended);
    }
    for left in (0..10).rev() {
        db.keyspace().remove_ended_watches(&mut leftovers, 300);
        assert_eq!(db.keyspace().ended_watches(), 300 * left);
    }
    assert!(leftovers.is_empty());
    db.run("FLUSHALL");
    db.invariants();
}

#[test]
fn a_unit_that_ends_waits_for_no_slot_while_it_holds_one() {
    let db = Db::new();
    let (keyspace, env) = (db.keyspace(), db.env());
    let ((own, _), (other, _)) = (place(&db, "a"), place(&db, "b"));
    let unit = Unit::holding(keyspace, env, [own]).expect("no other thread runs");
    env.aftermath.borrow_mut().effects.push(DbIndex::FIRST, [&b"FLUSHALL"[..]].into_iter());
    env.aftermath.borrow_mut().slots.extend([own, other]);
    let slot = |place: DbSlot| keyspace.database(place.0).slot(place.1);
    let (held, is_held) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let holder = scope.spawn(move || {
            let guard = slot(other).try_lock().expect("it is free");
            held.send(()).expect("the test waits for it");
            // Gives up after some time, so that the test fails and does not run forever.
            let comes_free = (0..100_000).any(|_| {
                std::thread::yield_now();
                slot(own).try_lock().is_some()
            });
            drop(guard);
            comes_free
        });
        is_held.recv().expect("the thread lives");
        assert!(unit.finish(env).is_some());
        assert!(holder.join().expect("it does not panic"), "the unit gives its slots free first");
    });
    for place in [own, other] {
        let guard = slot(place).try_lock().expect("the unit is over");
        assert_eq!(guard.meta().last_write, keyspace.journal().end());
    }
}
