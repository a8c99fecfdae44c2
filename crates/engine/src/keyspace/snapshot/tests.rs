//! Snapshots taken during commands are loaded, and must equal the dataset at their start.

use super::{Snapshot, SnapshotOptions, SnapshotWalker, WalkOutcome};
use crate::base::random::Random;
use crate::dataset::digest::Digest;
use crate::dataset::loader::load_file;
use crate::dataset::snapshot::Duplicate;
use crate::keyspace::expire::{SweepOutcome, Sweeper};
use crate::keyspace::{DbIndex, EntryRef, Keys, SLOTS, SlotId, SlotSet, UnixMs};
use crate::testing::Db;
use brisk_persist::rdb::{RdbWriter, VERSION_FIELD_TTL};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};

const OPTIONS: SnapshotOptions =
    SnapshotOptions { compresses: true, queue_bytes_max: 1 << 30, dataset_bytes: 0 };

type Contents = BTreeMap<(u32, Vec<u8>), (Digest, Option<UnixMs>)>;

/// All keys of some slots, with digests of their values and with their expiry times.
fn contents(db: &Db, slots: &SlotSet) -> Contents {
    let mut contents = Contents::new();
    let keys = Keys::unlocked(db.keyspace(), db.env(), DbIndex::default());
    for number in 0..db.keyspace().database_count() {
        keys.each_slot(DbIndex::of(number), |_, slot| {
            slot.table().for_each(|entry| {
                let entry = EntryRef(entry);
                if !slots.contains(db.keyspace().hasher().key(entry.key()).slot) {
                    return;
                }
                let value = (Digest::of_value(&entry), entry.deadline());
                assert!(contents.insert((number, entry.key().to_vec()), value).is_none());
            });
            ControlFlow::Continue(())
        });
    }
    contents
}

/// A snapshot in progress, and its expected contents.
struct Taken {
    snapshot: Arc<Snapshot>,
    want: Contents,
    writer: JoinHandle<io::Result<Vec<u8>>>,
}

impl Taken {
    fn begin(db: &Db) -> Taken {
        Taken::begin_with(db, SlotSet::all())
    }

    fn begin_with(db: &Db, slots: SlotSet) -> Taken {
        let want = contents(db, &slots);
        let snapshot = db
            .keyspace()
            .begin_snapshot(slots.clone(), OPTIONS)
            .expect("no other snapshot has these slots");
        assert!(db.keyspace().begin_snapshot(slots, OPTIONS).is_none(), "one at a time");
        assert_eq!(snapshot.keys(), want.len() as u64);
        let own = Arc::clone(&snapshot);
        let writer = spawn(move || {
            let mut out = RdbWriter::new(Vec::new(), VERSION_FIELD_TTL);
            own.write(&mut out, || true, |_| ())?;
            out.finish()
        });
        Taken { snapshot, want, writer }
    }

    /// Walks until the only snapshot is written, and compares the contents of the file.
    fn end(self, db: &Db, walker: &mut SnapshotWalker) {
        self.end_with_others(db, walker);
        assert_eq!(walker.walk(db.keyspace(), db.env(), || true), WalkOutcome::Nothing);
    }

    fn end_with_others(self, db: &Db, walker: &mut SnapshotWalker) {
        while !self.writer.is_finished() {
            walker.walk(db.keyspace(), db.env(), || true);
            std::thread::yield_now();
        }
        let file = self.writer.join().expect("no panic").expect("a Vec takes everything");
        db.keyspace().end_snapshot(&self.snapshot);
        assert_eq!(self.snapshot.bytes(), 0);
        let loaded = Db::new();
        // At time 0 nothing has expired.
        loaded.env().set_now(UnixMs(0));
        let _ = load_file(loaded.keyspace(), loaded.env(), &file, Duplicate::Refuse);
        let got = contents(&loaded, &SlotSet::all());
        let differing = self.want.iter().find(|(place, value)| got.get(*place) != Some(*value));
        assert!(differing.is_none(), "{differing:?}");
        assert_eq!(got.len(), self.want.len());
    }
}

/// Random changes.
struct Changes {
    random: Random,
    now: u64,
    sweeper: Sweeper,
}

impl Changes {
    fn new(seed: u64) -> Changes {
        Changes { random: Random::seeded(seed), now: 1000, sweeper: Sweeper::new(0, 1) }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Most keys are in a few slots, which have too many keys to be emitted at once.
    fn key(&mut self, kind: &str) -> String {
        let tag = self.below(12);
        let count = if tag < 3 { 200 } else { 8 };
        format!("{{{tag}}}{kind}{}", self.below(count))
    }

    fn line(&mut self) -> String {
        let (number, other) = (self.below(1000), self.below(50));
        let size = [1, 40, 3000, 70_000][self.below(100) as usize / 33];
        let text = "x".repeat(size);
        let kind = ["s", "l", "h", "e", "z", "t"][self.below(6) as usize];
        let key = self.key(kind);
        match (self.below(12), kind) {
            (0, _) => format!("DEL {key}"),
            (1, _) => format!("RENAME {key} {}", self.key(kind)),
            (2, _) => format!("COPY {key} {} REPLACE", self.key(kind)),
            (3, _) => format!("MOVE {key} {}", self.below(3)),
            (4, _) => format!("PEXPIRE {key} {}", 1 + self.below(400)),
            (5, _) => format!("PERSIST {key}"),
            (6, "s") => format!("APPEND {key} {number}"),
            (7, "s") => format!("SETRANGE {key} {other} {number}"),
            (8, "s") => format!("SET {key} {number} PX {}", 1 + self.below(400)),
            (_, "s") => format!("SET {key} {text}{number}"),
            (6 | 7, "l") => format!("LPOP {key}"),
            (8, "l") => format!("LSET {key} 0 {number}"),
            (_, "l") => format!("RPUSH {key} {text} {number}"),
            (6 | 7, "h") => format!("HDEL {key} {other}"),
            (8, "h") => format!("HPEXPIRE {key} {} FIELDS 1 {other}", 1 + self.below(400)),
            (_, "h") => format!("HSET {key} {other} {text} {number} y"),
            (6 | 7, "e") => format!("SREM {key} {other}"),
            (_, "e") => format!("SADD {key} {other} {number}"),
            (6 | 7, "z") => format!("ZREM {key} {other}"),
            (_, "z") => format!("ZADD {key} {number} {other} {other} {number}"),
            (6 | 7, _) => format!("XTRIM {key} MAXLEN 3"),
            (_, _) => format!("XADD {key} * {other} {number}"),
        }
    }

    fn change(&mut self, db: &mut Db, seldom: bool) {
        let selected = self.below(3) as u32;
        db.select(selected);
        match self.below(2000) {
            0 if seldom => _ = db.run("FLUSHDB"),
            1 | 2 if seldom => _ = db.run(&format!("SWAPDB {} {}", self.below(3), self.below(3))),
            3..100 => {
                self.now += self.below(20);
                db.at(self.now);
                let (keyspace, env) = (db.keyspace(), db.env());
                while self.sweeper.cycle(keyspace, env, || true) == SweepOutcome::Part {}
                env.garbage.borrow_mut().clear();
            }
            _ => {
                let line = self.line();
                db.run(&line);
            }
        }
    }
}

#[test]
fn a_snapshot_during_random_changes_contains_the_dataset_at_its_start() {
    let rounds = if cfg!(miri) { 1 } else { 60 };
    for seed in 0..rounds {
        let (mut db, mut changes) = (Db::new(), Changes::new(seed));
        let mut walker = SnapshotWalker::default();
        for _ in 0..1500 {
            changes.change(&mut db, false);
        }
        // The second snapshot starts with the stamps that the first one left behind.
        for _ in 0..2 {
            let taken = Taken::begin(&db);
            let steps = changes.below(40);
            for _ in 0..changes.below(1500) {
                changes.change(&mut db, true);
                if changes.below(40) < steps {
                    let mut left = changes.below(3);
                    walker.walk(db.keyspace(), db.env(), || {
                        left = left.wrapping_sub(1);
                        left < 3
                    });
                }
            }
            taken.end(&db, &mut walker);
            db.invariants();
        }
    }
}

/// Divides the slots randomly among `parts` sets. Some slots are in no set.
fn divided(random: &mut Random, parts: u64) -> Vec<SlotSet> {
    let mut sets = vec![SlotSet::new(); parts as usize];
    for slot in 0..SLOTS as u16 {
        if let Some(set) = sets.get_mut(random.below(parts + 1) as usize) {
            set.insert(SlotId::new(slot));
        }
    }
    sets
}

#[test]
fn snapshots_of_disjoint_slots_begin_and_end_in_any_order_during_random_changes() {
    let rounds = if cfg!(miri) { 1 } else { 40 };
    for seed in 0..rounds {
        let (mut db, mut changes) = (Db::new(), Changes::new(1000 + seed));
        let mut walker = SnapshotWalker::default();
        for _ in 0..1500 {
            changes.change(&mut db, false);
        }
        let mut sets = divided(&mut changes.random, 3);
        let mut taken: Vec<Taken> = Vec::new();
        while !(sets.is_empty() && taken.is_empty()) {
            for _ in 0..changes.below(400) {
                changes.change(&mut db, true);
                let mut steps = changes.below(4);
                walker.walk(db.keyspace(), db.env(), || {
                    steps = steps.saturating_sub(1);
                    steps > 0
                });
            }
            match sets.pop() {
                // Usually a snapshot begins while another one is in progress. Otherwise, one in
                // progress is completely written first.
                Some(slots) if taken.is_empty() || changes.below(3) > 0 => {
                    if !taken.is_empty() {
                        assert!(db.keyspace().begin_snapshot(SlotSet::all(), OPTIONS).is_none());
                    }
                    taken.push(Taken::begin_with(&db, slots));
                }
                slots => {
                    sets.extend(slots);
                    let index = changes.below(taken.len() as u64) as usize;
                    taken.swap_remove(index).end_with_others(&db, &mut walker);
                }
            }
        }
        assert_eq!(walker.walk(db.keyspace(), db.env(), || true), WalkOutcome::Nothing);
        assert!(!db.keyspace().is_emitting());
        Taken::begin(&db).end(&db, &mut walker);
        db.invariants();
    }
}

#[test]
fn a_snapshot_of_some_slots_keeps_nothing_of_the_others() {
    let mut db = Db::new();
    let text = "x".repeat(100_000);
    for number in 0..20 {
        db.check(&format!("SET {{{number}}} {text}"), "OK");
    }
    let key = db.keyspace().hasher().key(b"{7}");
    let slots: SlotSet = [key.slot].into_iter().collect();
    let snapshot =
        db.keyspace().begin_snapshot(slots, OPTIONS).expect("no other snapshot is in progress");
    assert_eq!(snapshot.keys(), 1);
    for number in (0..20).filter(|number| *number != 7) {
        db.check(&format!("DEL {{{number}}}"), "(integer) 1");
    }
    assert_eq!(snapshot.bytes(), 0);
    db.check("DEL {7}", "(integer) 1");
    assert!(snapshot.bytes() >= 100_000);
    db.keyspace().end_snapshot(&snapshot);
}

#[test]
fn a_snapshot_that_was_given_up_leaves_nothing_for_the_next() {
    let (mut db, mut changes) = (Db::new(), Changes::new(1));
    let mut walker = SnapshotWalker::default();
    for round in 0..6 {
        for _ in 0..600 {
            changes.change(&mut db, false);
        }
        let taken = Taken::begin(&db);
        let mut left = 3;
        walker.walk(db.keyspace(), db.env(), || {
            left -= 1;
            left > 0
        });
        for _ in 0..200 {
            changes.change(&mut db, true);
        }
        if round % 2 == 0 {
            taken.snapshot.give_up("enough");
            let error = taken.writer.join().expect("no panic").unwrap_err();
            assert_eq!(error.to_string(), "enough");
            // Change data before the snapshot ends. The next round changes data after it has ended.
            changes.change(&mut db, true);
            db.keyspace().end_snapshot(&taken.snapshot);
            assert_eq!(taken.snapshot.bytes(), 0);
        } else {
            taken.end(&db, &mut walker);
        }
    }
}

#[test]
fn a_flush_hands_its_tables_over_without_walking_through_them() {
    let (mut db, mut walker) = (Db::new(), SnapshotWalker::default());
    for number in 0..5000 {
        db.check(&format!("SET {{{}}}{number} v", number % 7), "OK");
    }
    let taken = Taken::begin(&db);
    db.check("SET {1}1 other", "OK").check("FLUSHALL", "OK").check("SET {1}1 third", "OK");
    assert!(db.env().garbage.borrow().is_empty(), "the tables are the snapshot's");
    taken.end(&db, &mut walker);
    db.check("GET {1}1", "\"third\"").check("DBSIZE", "(integer) 1").invariants();
}

#[test]
fn keys_that_were_not_emitted_make_the_snapshot_fail() {
    let mut db = Db::new();
    for number in 0..300 {
        db.check(&format!("SET {{t}}{number} v"), "OK");
    }
    let taken = Taken::begin(&db);
    // No command can do this: an entry leaves its slot without the hook.
    let key = db.keyspace().hasher().key(b"{t}7");
    let mut guard = db.keyspace().database(DbIndex::FIRST).slot(key.slot).try_lock().expect("free");
    drop(guard.stash(key.hash, key.bytes).expect("it was set"));
    drop(guard);
    let mut walker = SnapshotWalker::default();
    while !taken.snapshot.is_over() {
        walker.walk(db.keyspace(), db.env(), || true);
    }
    let error = taken.writer.join().expect("no panic").unwrap_err();
    assert!(error.to_string().starts_with("internal error: "), "{error}");
}

#[test]
fn a_writer_that_is_too_slow_ends_the_snapshot_and_nothing_else() {
    let mut db = Db::new();
    let text = "x".repeat(4000);
    for number in 0..300 {
        db.check(&format!("SET {{t}}{number} {text}"), "OK");
    }
    let options = SnapshotOptions { queue_bytes_max: 100_000, ..OPTIONS };
    let snapshot = db
        .keyspace()
        .begin_snapshot(SlotSet::all(), options)
        .expect("no other snapshot is in progress");
    for number in 0..300 {
        db.check(&format!("APPEND {{t}}{number} y"), "(integer) 4001");
    }
    let mut out = RdbWriter::new(Vec::new(), VERSION_FIELD_TTL);
    let error = snapshot.write(&mut out, || true, |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("the disk, or a replica, is too slow"), "{error}");
    db.keyspace().end_snapshot(&snapshot);
    db.check("DBSIZE", "(integer) 300").invariants();
}

/// Removing values and tables that the snapshot still needs frees nothing yet, so eviction must not
/// count their memory as free.
#[test]
fn values_and_tables_that_only_the_snapshot_has_are_counted() {
    const BYTES: u64 = 200_000;
    let mut db = Db::new();
    let text = "x".repeat(BYTES as usize);
    for key in ["{t}removed", "{t}changed", "{t}left", "flushed"] {
        db.check(&format!("SET {key} {text}"), "OK");
    }
    let options = SnapshotOptions { dataset_bytes: 4 * BYTES, ..OPTIONS };
    let snapshot = db
        .keyspace()
        .begin_snapshot(SlotSet::all(), options)
        .expect("no other snapshot is in progress");
    assert_eq!(snapshot.bytes(), 0);
    db.check("APPEND {t}changed y", "(integer) 200001");
    let shared = snapshot.bytes();
    assert!(shared < BYTES, "the dataset has them: {shared}");
    db.check("FLUSHDB", "OK");
    let flushed = snapshot.bytes() - shared;
    assert_eq!(flushed, BYTES, "the slot of the others owes nothing");
    db.keyspace().end_snapshot(&snapshot);
    assert_eq!(snapshot.bytes(), 0);

    db.check(&format!("SET removed {text}"), "OK");
    let snapshot = db
        .keyspace()
        .begin_snapshot(SlotSet::all(), OPTIONS)
        .expect("no other snapshot is in progress");
    db.check("DEL removed", "(integer) 1");
    assert!(snapshot.bytes() >= BYTES, "{}", snapshot.bytes());
    assert!(snapshot.bytes_peak() >= BYTES);
    db.keyspace().end_snapshot(&snapshot);
    assert_eq!(snapshot.bytes(), 0);
}

/// The end of a turn leaves little data in a large buffer.
#[test]
fn short_turns_do_not_queue_empty_room() {
    let mut db = Db::new();
    for number in 0..200 {
        db.check(&format!("SET key{number} v"), "OK");
    }
    let snapshot = db
        .keyspace()
        .begin_snapshot(SlotSet::all(), OPTIONS)
        .expect("no other snapshot is in progress");
    let mut walker = SnapshotWalker::default();
    for number in 0..200 {
        db.check(&format!("SET key{number} w"), "OK");
        walker.walk(db.keyspace(), db.env(), || false);
    }
    assert!(snapshot.bytes() < 200 * 100, "{}", snapshot.bytes());
    db.keyspace().end_snapshot(&snapshot);
}
