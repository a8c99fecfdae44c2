//! Compares sets with `BTreeSet`. The limits are so low that all encodings and conversions occur.

use super::*;
use crate::base::random::Random;
use std::collections::BTreeSet;

type Model = BTreeSet<Vec<u8>>;

fn limits() -> EncodingLimits {
    EncodingLimits {
        set_max_intset_entries: 6,
        set_max_listpack_entries: 10,
        set_max_listpack_value: 8,
        hash_key: brisk_structures::hash::HashKey { k0: 1, k1: 2 },
        ..EncodingLimits::default()
    }
}

/// A member of the kind that the round tests.
fn member(random: &mut Random, round: u64) -> Vec<u8> {
    let number = random.below(30) as i64 - 15;
    match (round % 4, random.below(20)) {
        (0, _) => (number << random.below(45)).to_string().into_bytes(),
        (1, 0) => b"a member that is too long".to_vec(),
        (1, 1..10) => number.to_string().into_bytes(),
        (2, _) => format!("m{}", random.below(2000)).into_bytes(),
        _ => format!("m{number}").into_bytes(),
    }
}

fn model_of(set: &Set) -> Model {
    let mut members = Model::new();
    set.each(|member| assert!(members.insert(member.to_vec()), "{member:?} is there twice"));
    members
}

fn assert_same(set: &Set, model: &Model) {
    set.check();
    assert_eq!(set.len(), model.len());
    assert_eq!(model_of(set), *model);
    match set.encoding() {
        Encoding::IntSet => assert!(set.len() <= limits().set_max_intset_entries),
        Encoding::ListPack => assert!(set.len() <= limits().set_max_listpack_entries),
        _ => {}
    }
}

fn built(random: &mut Random, round: u64, len: u64) -> (Set, Model) {
    let (mut set, mut model) = (Set::default(), Model::new());
    for _ in 0..random.below(len + 1) {
        let member = member(random, round);
        assert_eq!(set.add(&member, &limits()), model.insert(member));
    }
    (set, model)
}

#[test]
fn random_operations_do_what_a_tree_does() {
    let mut random = Random::seeded(5);
    for round in 0..60 {
        let (mut set, mut model) = built(&mut random, round, 20);
        let mut entropy = Random::seeded(round);
        let mut below = |bound| entropy.below(bound);
        for _ in 0..300 {
            let member = member(&mut random, round);
            match random.below(12) {
                0..=4 => assert_eq!(set.add(&member, &limits()), model.insert(member)),
                5..=7 => assert_eq!(set.remove(&member), model.remove(&member)),
                8 => assert_eq!(set.contains(&member), model.contains(&member)),
                9 => {
                    let mut popped = None;
                    set.pop(&mut below, |member| popped = Some(member.to_vec()));
                    assert_eq!(popped.is_some(), !model.is_empty());
                    popped.into_iter().for_each(|member| assert!(model.remove(&member)));
                }
                10 if model.len() > 1 => {
                    let count = 1 + random.below(model.len() as u64 - 1) as usize;
                    let mut popped = 0;
                    set.pop_many(count, &limits(), &mut below, |member| {
                        assert!(model.remove(&member.to_vec()));
                        popped += 1;
                    });
                    assert_eq!(popped, count);
                }
                _ => {
                    let chosen = set.random(&mut below).map(|member| member.to_vec());
                    assert!(chosen.map_or(model.is_empty(), |member| model.contains(&member)));
                }
            }
            assert_same(&set, &model);
        }
    }
}

#[test]
fn samples_are_distinct_and_all_members_are_equally_likely() {
    let mut random = Random::seeded(9);
    for round in 0..4 {
        let (set, model) = built(&mut random, round, 40);
        for count in 0..model.len() + 2 {
            let mut sample = Model::new();
            set.sample(
                count,
                |bound| random.below(bound),
                |member| {
                    assert!(sample.insert(member.to_vec()));
                },
            );
            assert_eq!(sample.len(), count.min(model.len()));
            assert!(sample.is_subset(&model));
        }
        let mut drawn = std::collections::BTreeMap::<Vec<u8>, u32>::new();
        let drawer = set.drawer();
        for _ in 0..1000 * model.len() {
            let member = drawer.draw(&mut |bound| random.below(bound));
            *drawn.entry(member.to_vec()).or_default() += 1;
        }
        assert_eq!(drawn.len(), model.len());
        assert!(drawn.values().all(|count| (800..1200).contains(count)), "{drawn:?}");
    }
}

#[test]
fn a_scan_shows_all_members_that_stay() {
    let mut random = Random::seeded(3);
    for round in 0..20 {
        let (mut set, mut kept) = built(&mut random, round, 3000);
        let (mut cursor, mut seen) = (0, Model::new());
        loop {
            cursor = set.scan(cursor, 10, |member| {
                seen.insert(member.to_vec());
            });
            if cursor == 0 {
                break;
            }
            for _ in 0..20 {
                let member = member(&mut random, round);
                if random.below(3) > 0 {
                    set.add(&member, &limits());
                } else {
                    set.remove(&member);
                    kept.remove(&member);
                }
            }
        }
        assert!(kept.is_subset(&seen));
    }
}

#[test]
fn set_algebra_agrees_with_that_of_trees() {
    let mut random = Random::seeded(8);
    for round in 0..400 {
        // The members are of one kind or of several. Sometimes the same set is used twice.
        let kind = |i: u64| if round % 5 == 0 { i } else { round };
        let built: Vec<(Set, Model)> =
            (0..1 + random.below(6)).map(|i| built(&mut random, kind(i), 40)).collect();
        let mut picks: Vec<usize> = (0..built.len()).collect();
        if random.below(8) == 0 {
            picks.push(random.below(built.len() as u64) as usize);
        }
        let sets: Vec<&Set> = picks.iter().map(|i| &built[*i].0).collect();
        let models: Vec<&Model> = picks.iter().map(|i| &built[*i].1).collect();
        let fold = |f: fn(&Model, &Model) -> Model| {
            models[1..].iter().fold(models[0].clone(), |all, other| f(&all, other))
        };

        let wanted = fold(|a, b| a & b);
        let mut shown = Vec::new();
        each_common(&mut sets.clone(), &limits(), |member| {
            shown.push(member.to_vec());
            ControlFlow::Continue(())
        });
        assert_members(shown, &wanted);
        assert_same(&intersection(&mut sets.clone(), &limits()), &wanted);

        let wanted = fold(|a, b| a | b);
        let mut shown = Vec::new();
        each_of_any(&mut sets.clone(), &limits(), |member| shown.push(member.to_vec()));
        assert_members(shown, &wanted);
        assert_same(&union(&sets, &limits()), &wanted);

        let wanted = fold(|a, b| a - b);
        let mut shown = Vec::new();
        let mut others = sets[1..].to_vec();
        each_only_in(sets[0], &mut others, &limits(), |member| shown.push(member.to_vec()));
        assert_members(shown, &wanted);
        assert_same(&difference(sets[0], &mut others, &limits()), &wanted);

        // The sources have not changed.
        built.iter().for_each(|(set, model)| assert_same(set, model));
    }
}

fn assert_members(shown: Vec<Vec<u8>>, wanted: &Model) {
    assert_eq!(shown.len(), wanted.len());
    assert_eq!(shown.into_iter().collect::<Model>(), *wanted);
}
