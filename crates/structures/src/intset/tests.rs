//! Compares the integer set with `BTreeSet`, and tests invalid bytes.

use super::{IntSet, validate};
use std::collections::BTreeSet;

/// Generates numbers from a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }

    /// Returns an integer of up to `bits` bits, of either sign, mostly close to others.
    fn integer(&mut self, bits: u64) -> i64 {
        let magnitude = (self.below(40) as i64) << self.below(bits.max(7) - 6);
        match self.below(40) {
            0 if bits == 64 => i64::MIN,
            1 if bits == 64 => i64::MAX,
            2 => i64::from(i16::MAX),
            3 => i64::from(i16::MIN),
            n if n % 2 == 0 => -magnitude,
            _ => magnitude,
        }
    }
}

fn assert_same(set: &IntSet, model: &BTreeSet<i64>) {
    set.check();
    assert_eq!(set.len(), model.len());
    assert!(set.iter().eq(model.iter().copied()), "{set:?} instead of {model:?}");
    assert!(set.iter().rev().eq(model.iter().rev().copied()));
    assert_eq!((set.min(), set.max()), (model.first().copied(), model.last().copied()));
}

#[test]
fn random_operations_do_what_a_tree_does() {
    let (rounds, steps) = if cfg!(miri) { (3, 100) } else { (30, 2_000) };
    let mut numbers = Numbers(42);
    for round in 0..rounds {
        // Width 2, then 4, then 8, so that all operations run with every width.
        let bits = [15, 31, 64][round % 3];
        let (mut set, mut model) = (IntSet::new(), BTreeSet::new());
        for _ in 0..steps {
            let value = numbers.integer(bits);
            match numbers.below(20) {
                0..=9 => assert_eq!(set.insert(value), model.insert(value)),
                10..=15 => assert_eq!(set.remove(value), model.remove(&value)),
                16 => {
                    let index = numbers.below(set.len() as u64 + 2) as usize;
                    let wanted = model.iter().nth(index).copied();
                    assert_eq!(set.get(index), wanted);
                    assert_eq!(set.remove_at(index), wanted);
                    wanted.map(|value| model.remove(&value));
                }
                17 if numbers.below(20) == 0 => {
                    let mut indexes = vec![];
                    set.retain(|index, value| {
                        indexes.push(index);
                        value % 3 != 0
                    });
                    assert!(indexes.into_iter().eq(0..model.len()));
                    model.retain(|value| value % 3 != 0);
                }
                18 => {
                    let place = model.iter().position(|item| *item == value);
                    assert_eq!(set.position(value), place);
                }
                _ => assert_eq!(set.contains(value), model.contains(&value)),
            }
            assert_same(&set, &model);
        }
        if !set.is_empty() {
            let copy = IntSet::from_bytes(set.as_bytes().to_vec());
            assert_eq!(copy, Ok(set));
        }
    }
}

#[test]
fn bytes_are_those_that_redis_writes() {
    let mut set = IntSet::new();
    assert_eq!(set.as_bytes(), b"\x02\0\0\0\0\0\0\0");
    set.insert(-5);
    set.insert(3);
    assert_eq!(set.as_bytes(), b"\x02\0\0\0\x02\0\0\0\xfb\xff\x03\0");
    set.insert(100_000);
    assert_eq!(set.as_bytes(), b"\x04\0\0\0\x03\0\0\0\xfb\xff\xff\xff\x03\0\0\0\xa0\x86\x01\0");
    set.insert(-5_000_000_000);
    assert_eq!(set.as_bytes()[..8], *b"\x08\0\0\0\x04\0\0\0");
    assert!(set.iter().eq([-5_000_000_000, -5, 3, 100_000]));
    set.remove(-5_000_000_000);
    assert_eq!(set.as_bytes()[0], 8, "the width stays");
}

#[test]
fn malformed_bytes_are_rejected() {
    let cases: &[(&[u8], Option<usize>)] = &[
        (b"\x02\0\0\0\x02\0\0\0\xfb\xff\x03\0", None),
        // Wider than necessary, as after removals.
        (b"\x08\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0", None),
        (b"", Some(0)),
        (b"\x02\0\0\0\x02\0\0", Some(7)),
        (b"\x02\0\0\0\x02\0\0\0\xfb\xff\x03", Some(4)),
        (b"\x02\0\0\0\x02\0\0\0\xfb\xff\x03\0\0", Some(4)),
        (b"\x02\0\0\0\x03\0\0\0\xfb\xff\x03\0", Some(4)),
        (b"\x02\0\0\0\xff\xff\xff\xff\xfb\xff\x03\0", Some(4)),
        (b"\x02\0\0\0\0\0\0\0", Some(4)),
        (b"\x03\0\0\0\x02\0\0\0\xfb\xff\x03\0\0\0", Some(0)),
        (b"\0\0\0\0\x02\0\0\0\xfb\xff\x03\0", Some(0)),
        (b"\x02\x01\0\0\x02\0\0\0\xfb\xff\x03\0", Some(0)),
        (b"\x02\0\0\0\x02\0\0\0\x03\0\xfb\xff", Some(10)),
        (b"\x02\0\0\0\x02\0\0\0\x03\0\x03\0", Some(10)),
    ];
    for (bytes, offset) in cases {
        assert_eq!(validate(bytes).err().map(|error| error.offset), *offset, "{bytes:?}");
    }
}

#[test]
fn appending_leaves_little_memory_unused() {
    let set: IntSet = (0..10_000).map(|n| n * 7).collect();
    let used = set.as_bytes().len();
    assert!(set.allocated_bytes() <= used + used / 7, "{} for {used}", set.allocated_bytes());
    let mut few = set;
    few.retain(|_, value| value < 70);
    assert!(few.allocated_bytes() < 100, "{}", few.allocated_bytes());
}
