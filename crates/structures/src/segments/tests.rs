//! Compares the map with `std`'s, and calls `check` after every step. Segments and pages are small,
//! so that splits and merges happen constantly on both levels.

use super::{Element, Segments};
use crate::hash::HashKey;
use std::collections::{BTreeMap, HashMap, HashSet};

const HASH: HashKey = HashKey { k0: 3, k1: 5 };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

type Stored = (Option<Vec<u8>>, Option<u64>);
type Model = BTreeMap<Vec<u8>, Stored>;

fn stored(element: Element<'_>) -> Stored {
    (element.value.map(<[u8]>::to_vec), element.deadline)
}

/// Returns a key. Most are short; some are long, and some are stored outside the arena.
fn key(random: &mut Random, keys: u64) -> Vec<u8> {
    let number = random.below(keys);
    let mut key = number.to_string().into_bytes();
    let len = match number % 40 {
        0 => 513 + number as usize % 9,
        1 => 512,
        2 => 32,
        3 => 31,
        4 => 300,
        _ => key.len(),
    };
    key.resize(len.max(key.len()), b'k');
    key
}

fn value(random: &mut Random) -> Option<Vec<u8>> {
    let len = match random.below(12) {
        0 => return None,
        1 => 250 + random.below(10),
        2 => 508 + random.below(8),
        3 => 2_000,
        _ => random.below(20),
    };
    Some((0..len).map(|_| random.next() as u8).collect())
}

fn assert_equal(map: &Segments, model: &Model) {
    map.check();
    assert_eq!(map.len(), model.len());
    let all: Model = map.iter().map(|e| (e.key.to_vec(), stored(e))).collect();
    assert_eq!(all, *model);
}

/// A scan in progress: the elements that it has visited, and those that have existed since it
/// began.
struct Scan {
    cursor: u64,
    seen: HashSet<Vec<u8>>,
    throughout: HashSet<Vec<u8>>,
}

impl Scan {
    fn over(model: &Model) -> Scan {
        let throughout = model.keys().cloned().collect();
        Scan { cursor: 0, seen: HashSet::new(), throughout }
    }

    fn step(mut self, map: &Segments, model: &Model) -> Scan {
        self.cursor = map.scan(self.cursor, |e| {
            self.seen.insert(e.key.to_vec());
        });
        if self.cursor != 0 {
            return self;
        }
        assert!(self.throughout.is_subset(&self.seen), "the scan missed an element");
        Scan::over(model)
    }
}

fn change(map: &mut Segments, model: &mut Model, random: &mut Random, keys: u64) {
    let key = key(random, keys);
    match random.below(10) {
        0..=3 => {
            let value = value(random);
            let deadline = random.next().is_multiple_of(4).then(|| random.below(1_000));
            let new = map.insert(&key, value.as_deref(), deadline);
            assert_eq!(new, model.insert(key, (value, deadline)).is_none());
        }
        4 => {
            let added = map.add(&key, None);
            assert_eq!(added, !model.contains_key(&key));
            model.entry(key).or_insert((None, None));
        }
        5 => {
            let deadline = random.next().is_multiple_of(2).then(|| random.below(1_000));
            let existed = map.set_deadline(&key, deadline);
            assert_eq!(existed, model.contains_key(&key));
            model.entry(key).and_modify(|stored| stored.1 = deadline);
        }
        6 if random.below(20) == 0 => {
            let now = random.below(300);
            let mut expired = Model::new();
            let limit = if now.is_multiple_of(2) { usize::MAX } else { 5 };
            let done = map.expire(now, limit, |e| {
                expired.insert(e.key.to_vec(), stored(e));
            });
            let due = |stored: &Stored| stored.1.is_some_and(|deadline| deadline <= now);
            assert!(expired.values().all(due));
            model.retain(|key, _| !expired.contains_key(key));
            assert!(!done || !model.values().any(due));
            assert!(done || expired.len() >= limit);
        }
        _ => {
            let old = map.take(&key, stored);
            assert_eq!(old, model.remove(&key));
        }
    }
}

/// Alternately grows the map to `keys` elements and shrinks it to nothing.
#[test]
fn random_operations_agree_with_a_model() {
    let steps = if cfg!(miri) { 300 } else { 12_000 };
    for (seed, keys) in [(1, 30), (2, 900), (3, 5_000)] {
        let mut random = Random(seed);
        let (mut map, mut model) = (Segments::new(HASH), Model::new());
        let mut snapshot = (map.clone(), model.clone());
        let mut scan = Scan::over(&model);
        for step in 0..steps {
            change(&mut map, &mut model, &mut random, keys);
            if step % 16 < 8 && step / 2_000 % 2 == 1 {
                let first = model.keys().next().cloned();
                first.iter().for_each(|key| assert!(map.remove(key)));
                first.iter().for_each(|key| drop(model.remove(key)));
            }
            scan.throughout.retain(|key| model.contains_key(key));
            scan = scan.step(&map, &model);
            assert_eq!(map.len(), model.len());
            let probe = key(&mut random, keys);
            // Prefetching is only a hint: the key may belong to any segment, and need not exist.
            map.prefetch(&[&probe[..]; 40][..step % 40]);
            assert_eq!(map.get(&probe).map(stored), model.get(&probe).cloned());
            let earliest = model.values().filter_map(|stored| stored.1).min();
            assert!(earliest >= map.soonest() || earliest.is_none());
            assert_eq!(earliest.is_some(), map.has_deadlines());
            if step % 64 == 0 {
                assert_equal(&map, &model);
                assert_equal(&snapshot.0, &snapshot.1);
                snapshot = (map.clone(), model.clone());
            }
        }
        for key in model.keys() {
            assert!(map.remove(key));
        }
        map.check();
        assert_eq!((map.len(), map.segment_count()), (0, 1), "an emptied map gives all back");
    }
}

#[test]
fn a_scan_without_changes_visits_each_element_once() {
    let mut map = Segments::new(HASH);
    (0..700_u32).for_each(|i| assert!(map.add(&i.to_le_bytes(), None)));
    let (mut cursor, mut seen) = (0, HashMap::new());
    loop {
        cursor = map.scan(cursor, |e| *seen.entry(e.key).or_insert(0) += 1);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), 700);
    assert!(seen.values().all(|&times| times == 1));
}

#[test]
fn any_cursor_is_accepted() {
    let mut map = Segments::new(HASH);
    (0..700_u32).for_each(|i| assert!(map.add(&i.to_le_bytes(), None)));
    let mut random = Random(7);
    for _ in 0..1_000 {
        assert!(map.scan(random.next(), |_| ()) < 1 << 48);
    }
    assert_eq!(map.scan(u64::MAX, |_| ()), 0);
}

#[test]
fn random_elements_are_equally_likely() {
    let mut map = Segments::new(HASH);
    let mut random = Random(11);
    // Some segments are full, some nearly empty.
    (0..400_u32).for_each(|i| assert!(map.add(&i.to_le_bytes(), None)));
    (40..300_u32).for_each(|i| assert!(map.remove(&i.to_le_bytes())));
    let draws = if cfg!(miri) { 1_000 } else { 140_000 };
    let mut counts = HashMap::new();
    for _ in 0..draws {
        let element = map.random(|n| random.below(n)).expect("not empty");
        *counts.entry(element.key).or_insert(0_u32) += 1;
    }
    if !cfg!(miri) {
        // 1,000 are expected of each, with a standard deviation of 32.
        assert_eq!(counts.len(), 140);
        assert!(counts.values().all(|&n| (840..1_160).contains(&n)), "{counts:?}");
    }
}

#[test]
fn samples_are_distinct_and_fair() {
    let mut map = Segments::new(HASH);
    let mut random = Random(13);
    (0..300_u32).for_each(|i| assert!(map.add(&i.to_le_bytes(), None)));
    for count in [0, 1, 3, 10, 100, 299, 300, 400] {
        let mut counts = HashMap::new();
        let rounds = if cfg!(miri) { 2 } else { 60_000 / (count + 1) };
        for _ in 0..rounds {
            let mut seen = HashSet::new();
            map.sample(count, |n| random.below(n), |e| assert!(seen.insert(e.key)));
            assert_eq!(seen.len(), count.min(300));
            seen.into_iter().for_each(|key| *counts.entry(key).or_insert(0) += 1);
        }
        if !cfg!(miri) && (1..=100).contains(&count) {
            let mean = rounds * count / 300;
            assert!(counts.values().all(|n| (mean / 2..mean * 2).contains(n)), "{counts:?}");
        }
    }
}

#[test]
fn a_prepared_map_works_like_any_other() {
    for len in [0, 1, 16, 17, 100, 1_000, 3_000] {
        let mut map = Segments::with_capacity(HASH, len);
        map.check();
        (0..len as u32).for_each(|i| assert!(map.add(&i.to_le_bytes(), Some(b"v"))));
        map.check();
        (0..len as u32).for_each(|i| assert!(map.remove(&i.to_le_bytes())));
        map.check();
    }
}

#[test]
fn a_map_whose_elements_expired_frees_its_memory() {
    let mut map = Segments::new(HASH);
    let key = |i: u32| i.to_le_bytes();
    (0..3_000_u32).for_each(|i| assert!(map.insert(&key(i), None, Some(u64::from(i % 10)))));
    assert!(map.segment_count() > 100);
    assert!(map.expire(8, usize::MAX, |_| ()));
    map.check();
    assert_eq!((map.len(), map.soonest()), (300, Some(9)));
    assert!(map.segment_count() < 100);
    assert!(map.expire(9, usize::MAX, |_| ()));
    map.check();
    assert_eq!((map.len(), map.segment_count(), map.soonest()), (0, 1, None));
}

#[test]
fn elements_of_one_map_are_found_in_another_of_any_size() {
    let mut random = Random(29);
    for len in [0, 1, 10, 100, 1500] {
        let mut one = Segments::new(HASH);
        (0..len).for_each(|_| _ = one.insert(&key(&mut random, 3000), None, None));
        let placed = one.iter_placed().map(|(_, element)| element);
        assert!(placed.eq(one.iter()));
        for other_len in [0, 1, 10, 100, 1500] {
            let mut other = Segments::new(HASH);
            (0..other_len).for_each(|_| _ = other.insert(&key(&mut random, 3000), None, None));
            let mut lookup = other.lookup();
            for (start, element) in one.iter_placed() {
                let found = lookup.contains(start, element.key);
                assert_eq!(found, other.contains(element.key));
            }
            let mut own = one.lookup();
            assert!(one.iter_placed().all(|(start, e)| own.contains(start, e.key)));
        }
    }
}
