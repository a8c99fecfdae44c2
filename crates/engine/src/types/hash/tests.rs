//! Compares hashes in all encodings with a `BTreeMap`. The limits are so low that conversions
//! happen.

use super::{FieldDeadline, Hash};
use crate::base::random::Random;
use crate::types::{Collection, Encoding, EncodingLimits};
use std::collections::BTreeMap;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn assert_equal(hash: &Hash, model: &Model) {
    let mut all = Model::new();
    hash.each_timed(|field, value, deadline| {
        assert!(all.insert(field.to_vec(), (value.to_vec(), deadline)).is_none());
    });
    assert_eq!(all, *model);
    assert_eq!(hash.len(), model.len());
    let earliest = model.values().filter_map(|stored| stored.1).min();
    assert!(earliest.is_none() || hash.next_deadline() <= earliest);
    assert!(earliest.is_none() || hash.next_deadline().is_some());
}

fn step(hash: &mut Hash, model: &mut Model, random: &mut Random, limits: &EncodingLimits) {
    let number = random.below(40);
    let field = match number % 4 {
        0 => number.to_string().into_bytes(),
        _ => format!("field:{number}").into_bytes(),
    };
    let bits = random.below(40);
    let value = random.below(1 << bits).to_string().into_bytes();
    match random.below(8) {
        0..=2 => {
            let keep = random.below(2) == 0;
            let kept = model.get(&field).and_then(|stored| stored.1).filter(|_| keep);
            let how = if keep { FieldDeadline::Keep } else { FieldDeadline::Drop };
            let is_new = hash.set(&field, &value, how, limits);
            assert_eq!(is_new, model.insert(field, (value, kept)).is_none());
        }
        3 => {
            let deadline = (random.below(3) > 0).then(|| 1 + random.below(500));
            assert_eq!(hash.set_deadline(&field, deadline), model.contains_key(&field));
            model.entry(field).and_modify(|stored| stored.1 = deadline);
        }
        4 => {
            let now = random.below(100);
            let mut expired = Vec::new();
            assert!(hash.expire(now, usize::MAX, |field| expired.push(field.to_vec())));
            let due = |stored: &(Vec<u8>, Option<u64>)| stored.1.is_some_and(|at| at <= now);
            expired.sort();
            let expected: Vec<_> = model
                .iter()
                .filter(|(_, stored)| due(stored))
                .map(|(key, _)| key.clone())
                .collect();
            assert_eq!(expired, expected);
            model.retain(|_, stored| !due(stored));
        }
        5 => assert_eq!(
            hash.get(&field).map(|value| value.to_vec()),
            model.get(&field).map(|stored| stored.0.clone())
        ),
        6 => assert_eq!(hash.deadline(&field), model.get(&field).map(|stored| stored.1)),
        _ => assert_eq!(hash.remove(&field), model.remove(&field).is_some()),
    }
}

#[test]
fn random_operations_do_what_a_tree_does_in_every_encoding() {
    for (entries, longest) in [(100, 100), (12, 100), (0, 100), (100, 7)] {
        let limits = EncodingLimits {
            hash_max_listpack_entries: entries,
            hash_max_listpack_value: longest,
            ..EncodingLimits::default()
        };
        let mut random = Random::seeded(entries as u64 + longest as u64);
        let (mut hash, mut model) = (Hash::new(&limits), Model::new());
        let mut copy = (hash.clone(), model.clone());
        for round in 0..4_000 {
            step(&mut hash, &mut model, &mut random, &limits);
            assert_equal(&hash, &model);
            if round % 100 == 0 {
                assert_equal(&copy.0, &copy.1);
                copy = (hash.clone(), model.clone());
            }
        }
        let compact = hash.encoding() != Encoding::HashTable;
        assert_eq!(compact, entries == 100 && longest == 100, "{entries} {longest}");
    }
}
