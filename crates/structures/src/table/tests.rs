//! Compares the table with `std`'s map, with `check` after every step. Arrays of more than eight
//! buckets are replaced incrementally, so that a resize is usually in progress.

use super::{SCAN_END, Table, TableRef};
use crate::entry::{Entry, ValueRef};
use crate::hash::HashKey;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const HASH: HashKey = HashKey { k0: 3, k1: 5 };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn scaled(full: u64, miri: u64) -> u64 {
    if cfg!(miri) { miri } else { full }
}

/// Returns hashes with few distinct positions, so that chains grow long and positions are shared.
fn clustered(key: u64) -> u64 {
    HASH.hash(&key.to_le_bytes()) & 0xf0f0_0f00_0000_0000
}

fn spread(key: u64) -> u64 {
    HASH.hash(&key.to_le_bytes())
}

fn entry(key: u64, value: u64) -> Entry<u64> {
    match value % 3 {
        0 => Entry::new_int(&key.to_le_bytes(), 0, value as i64),
        1 => Entry::new_object(&key.to_le_bytes(), 0, value),
        _ => Entry::new_bytes(&key.to_le_bytes(), 0, &value.to_le_bytes()),
    }
}

fn number(value: ValueRef<'_, u64>) -> u64 {
    match value {
        ValueRef::Int(int) => int as u64,
        ValueRef::Object(object) => *object,
        ValueRef::Bytes(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
    }
}

fn key_number(key: &[u8]) -> u64 {
    u64::from_le_bytes(key.try_into().expect("eight bytes"))
}

fn assert_equal(table: TableRef<'_, u64>, model: &HashMap<u64, u64>, hash: fn(u64) -> u64) {
    assert_eq!(table.len(), model.len());
    for (&key, &value) in model {
        let found = table.find(hash(key), &key.to_le_bytes()).expect("in the model");
        assert_eq!(number(found.value()), value);
    }
    let mut visited = HashMap::new();
    table.for_each(|e| assert!(visited.insert(key_number(e.key()), number(e.value())).is_none()));
    assert_eq!(visited, *model);
    visited.clear();
    table.for_each_prefetched(|e| {
        assert!(visited.insert(key_number(e.key()), number(e.value())).is_none());
    });
    assert_eq!(visited, *model);
}

fn random_operations(hash: fn(u64) -> u64, seed: u64) {
    let mut random = Random(seed);
    let mut table = Table::new();
    let mut model = HashMap::new();
    let keys = scaled(600, 90);
    for step in 0..scaled(12_000, 500) {
        // Long phases of mostly inserting and mostly removing make the table size swing.
        let inserting = (step / scaled(1_500, 120)).is_multiple_of(2);
        let key = random.below(keys);
        let bytes = key.to_le_bytes();
        let value = random.next() >> 1;
        let mut t = table.view_mut();
        match random.below(10) {
            0 => {
                if let Some(mut found) = t.find_mut(hash(key), &bytes) {
                    found.set_deadline(Some(value));
                    found.set_bytes(&[0; 100]);
                    found.set_int(value as i64);
                    model.insert(key, value);
                }
            }
            1 => {
                let old = t.replace(hash(key), entry(key, value));
                assert_eq!(old.map(|e| number(e.value())), model.insert(key, value));
            }
            2 => {
                let sampled = t.as_ref().sample(random.next());
                assert_eq!(sampled.is_some(), !model.is_empty());
                assert!(sampled.is_none_or(|e| model.contains_key(&key_number(e.key()))));
            }
            3 if step % 16 == 0 => t.shrink_to_fit(),
            4 if step % 64 == 0 => {
                t.retain(|e| !key_number(e.key()).is_multiple_of(5));
                model.retain(|key, _| !key.is_multiple_of(5));
            }
            _ if inserting => {
                if t.find(hash(key), &bytes).is_none() {
                    let inserted = match random.below(3) {
                        0 => {
                            let expected = random.below(200) as u32;
                            t.insert_first_of(hash(key), entry(key, value), expected)
                        }
                        _ => t.insert(hash(key), entry(key, value)),
                    };
                    assert_eq!(inserted.key(), bytes);
                    model.insert(key, value);
                }
            }
            _ => {
                let removed = t.remove(hash(key), &bytes);
                assert_eq!(removed.map(|e| number(e.value())), model.remove(&key));
            }
        }
        table.view().check();
        if step % 97 == 0 {
            assert_equal(table.view(), &model, hash);
        }
    }
    assert_equal(table.view(), &model, hash);
}

#[test]
fn behaves_like_a_map_with_spread_hashes() {
    random_operations(spread, 0x1234_5678);
}

#[test]
fn behaves_like_a_map_with_clustered_hashes() {
    random_operations(clustered, 0x8765_4321);
}

#[test]
fn behaves_like_a_map_when_all_hashes_are_equal() {
    random_operations(|_| u64::MAX, 99);
}

#[test]
fn a_scan_returns_what_was_there_throughout_exactly_once() {
    let mut random = Random(0xfeed);
    for hash in [spread, clustered] {
        for _ in 0..scaled(40, 2) {
            let mut table = Table::new();
            let stay = 1 + random.below(scaled(300, 40));
            for key in 0..stay {
                table.view_mut().insert(hash(key), entry(key, 0));
            }
            let mut passing: HashSet<u64> = HashSet::new();
            let mut seen: HashMap<u64, u32> = HashMap::new();
            let mut cursor = 0;
            let mut next_key = stay;
            loop {
                cursor = table.view().scan(cursor, |e| {
                    *seen.entry(key_number(e.key())).or_default() += 1;
                });
                if cursor == 0 {
                    break;
                }
                for _ in 0..random.below(scaled(30, 4)) {
                    table.view_mut().insert(hash(next_key), entry(next_key, 1));
                    passing.insert(next_key);
                    next_key += 1;
                }
                if random.below(3) == 0 {
                    for key in passing.drain() {
                        table.view_mut().remove(hash(key), &key.to_le_bytes()).expect("there");
                    }
                    table.view_mut().shrink_to_fit();
                }
            }
            for key in 0..stay {
                assert_eq!(seen.get(&key), Some(&1), "key {key} of {stay}");
            }
            assert!(seen.values().all(|&times| times == 1), "a passing entry came twice");
        }
    }
}

#[test]
fn a_table_does_not_grow_until_it_has_what_it_expects() {
    for expected in [1, 2, 7, 50, 300] {
        let mut table = Table::new();
        table.view_mut().insert_first_of(spread(0), entry(0, 0), expected);
        let array = table.root.current().0;
        for key in 1..u64::from(expected) {
            table.view_mut().insert_first_of(spread(key), entry(key, key), 1);
        }
        assert_eq!(table.root.current().0, array, "{expected}");
        table.view().check();
        assert_eq!(table.view().len(), expected as usize);
    }
}

#[test]
fn an_invalid_cursor_ends_the_scan_or_continues_it() {
    let mut table = Table::new();
    assert_eq!(table.view().scan(7, |_: super::EntryRef<'_, u64>| ()), 0);
    for key in 0..100 {
        table.view_mut().insert(spread(key), entry(key, key));
    }
    assert_eq!(table.view().scan(SCAN_END, |_| unreachable!()), 0);
    assert_eq!(table.view().scan(u32::MAX, |_| unreachable!()), 0);
    assert_eq!(table.view().scan(SCAN_END - 1, |_| ()), 0);
}

#[test]
fn few_entries_share_one_bucket_and_none_take_no_memory() {
    let mut table = Table::<u64>::new();
    assert_eq!(table.view().allocated_bytes(), 0);
    for key in 0..7 {
        table.view_mut().insert(spread(key), entry(key, key));
        assert_eq!(table.view().allocated_bytes(), 64);
    }
    for key in 0..7 {
        table.view_mut().remove(spread(key), &key.to_le_bytes());
    }
    assert_eq!(table.view().allocated_bytes(), 0);
}

#[test]
fn samples_reach_every_entry_about_equally_often() {
    let mut random = Random(77);
    let n = scaled(200, 12);
    let mut table = Table::new();
    for key in 0..n {
        table.view_mut().insert(spread(key), entry(key, key));
    }
    while table.view_mut().resize_step(1) {}
    let mut counts = vec![0u64; n as usize];
    let per_key = scaled(500, 60);
    for _ in 0..n * per_key {
        let e = table.view().sample(random.next()).expect("not empty");
        counts[key_number(e.key()) as usize] += 1;
    }
    for (key, &count) in counts.iter().enumerate() {
        assert!((per_key / 3..per_key * 3).contains(&count), "key {key}: {count} of {per_key}");
    }
}

#[test]
fn sample_many_visits_n_distinct_entries() {
    let mut random = Random(78);
    let mut table = Table::new();
    for key in 0..50 {
        table.view_mut().insert(spread(key), entry(key, key));
    }
    for n in [0, 1, 5, 16, 49, 50, 80] {
        for _ in 0..scaled(50, 3) {
            let mut seen = HashSet::new();
            table.view().sample_many(random.next(), n, |e| {
                assert!(seen.insert(key_number(e.key())));
            });
            assert_eq!(seen.len(), n.min(50));
        }
    }
}

#[test]
fn extract_if_hands_over_what_it_takes() {
    let mut table = Table::new();
    for key in 0..scaled(500, 60) {
        table.view_mut().insert(clustered(key), entry(key, key));
    }
    let before = table.view().len();
    let mut taken = 0;
    table.view_mut().extract_if(
        |e| key_number(e.key()).is_multiple_of(2),
        |e| {
            assert!(key_number(e.key()).is_multiple_of(2));
            taken += 1;
        },
    );
    table.view().check();
    assert_eq!(taken, before / 2);
    table.view().for_each(|e| assert!(!key_number(e.key()).is_multiple_of(2)));
    table.view_mut().retain(|_| false);
    table.view().check();
    assert_eq!(table.view().allocated_bytes(), 0);
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_value_is_dropped_once_however_it_leaves() {
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = |key: u64| Entry::new_object(&key.to_le_bytes(), 0, Counted(Arc::clone(&drops)));
    let n = 100;
    let mut table = Table::new();
    for key in 0..n {
        table.view_mut().insert(spread(key), counted(key));
    }
    assert!(table.view_mut().remove(spread(3), &3u64.to_le_bytes()).is_some());
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    drop(table.view_mut().replace(spread(4), counted(4)));
    assert_eq!(drops.load(Ordering::Relaxed), 2);
    let taken = table.view_mut().take();
    assert_eq!((table.view().len(), taken.view().len()), (0, 99));
    table.view().check();
    std::thread::scope(|scope| scope.spawn(move || drop(taken)).join()).expect("no panic");
    assert_eq!(drops.load(Ordering::Relaxed), 101);
    table.view_mut().insert(spread(1), counted(1));
    table.view_mut().clear();
    assert_eq!(drops.load(Ordering::Relaxed), 102);
}

#[test]
fn an_entry_that_had_to_move_is_found_again() {
    let mut table = Table::<u64>::new();
    table.view_mut().insert(spread(1), entry(1, 0));
    let mut view = table.view_mut();
    let mut handle = view.find_mut(spread(1), &1u64.to_le_bytes()).expect("inserted");
    handle.set_bytes(&[7; 1000]);
    let found = table.view().find(spread(1), &1u64.to_le_bytes()).expect("still there");
    assert!(matches!(found.value(), ValueRef::Bytes(bytes) if bytes == [7; 1000]));
}

#[test]
fn one_call_moves_a_bounded_part_of_a_large_table() {
    let mut table = Table::<u64>::new();
    let resizing = Cell::new(0);
    for key in 0..400 {
        table.view_mut().insert(spread(key), entry(key, 0));
        if table.view().is_resizing() {
            resizing.set(resizing.get() + 1);
        }
    }
    assert!(resizing.get() > 50, "growth above eight buckets takes several inserts");
}
