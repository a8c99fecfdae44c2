//! Compares sorted sets of members with a plain model, and measures their memory.

use super::Ordered;
use crate::hash::HashKey;
use std::collections::{BTreeMap, BTreeSet, HashSet};

const KEY: HashKey = HashKey { k0: 1, k1: 2 };

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

/// Total order of the scores used here, none of which is NaN.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
struct Score(f64);
impl Eq for Score {}
#[expect(clippy::derive_ord_xor_partial_ord, reason = "the scores of the tests are all comparable")]
impl Ord for Score {
    fn cmp(&self, other: &Score) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Default)]
struct Model {
    scores: BTreeMap<Vec<u8>, f64>,
    order: BTreeSet<(Score, Vec<u8>)>,
}

impl Model {
    fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let old = self.remove(member);
        self.scores.insert(member.to_vec(), score);
        self.order.insert((Score(score), member.to_vec()));
        old
    }

    fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let old = self.scores.remove(member)?;
        self.order.remove(&(Score(old), member.to_vec()));
        Some(old)
    }
}

fn same(set: &Ordered, model: &Model) {
    set.check();
    assert_eq!(set.len(), model.order.len());
    let want = || model.order.iter().map(|(score, member)| (&member[..], score.0));
    assert!(set.iter().eq(want()));
    assert!(set.iter().rev().eq(want().rev()));
}

/// Members with their scores, in order.
type Pairs = Vec<(Vec<u8>, f64)>;

/// Random operations. Members and scores are drawn from ranges of these sizes; members are padded
/// to `pad` bytes.
fn compare(seed: u64, steps: usize, members: u64, scores: u64, pad: usize) {
    let mut random = Random(seed);
    let mut set = Ordered::new(KEY);
    let mut model = Model::default();
    let mut kept: Option<(Ordered, Pairs)> = None;
    let mut shrinking = false;
    for step in 0..steps {
        if step % 701 == 0 {
            shrinking = random.below(3) == 0;
        }
        let length = pad.saturating_sub(random.below(pad as u64 + 1) as usize);
        let member = format!("{:0length$}", random.below(members)).into_bytes();
        let score = random.below(scores) as f64 - (scores / 2) as f64;
        let new = |index: usize| (!index.is_multiple_of(3)).then_some(score + index as f64);
        set.prefetch(&[&member[..]; 20][..step % 20], new);
        match random.below(100) {
            0..=54 if !shrinking => {
                assert_eq!(set.insert(&member, score), model.insert(&member, score));
            }
            0..=89 => assert_eq!(set.remove(&member), model.remove(&member)),
            90 if set.len() > 10 => {
                let start = random.below(set.len() as u64 - 5) as usize;
                let end = start + random.below(5.max(set.len() as u64 / 40)) as usize;
                let end = end.min(set.len());
                let removed: Vec<Vec<u8>> =
                    model.order.iter().skip(start).take(end - start).map(|m| m.1.clone()).collect();
                removed.iter().for_each(|member| assert!(model.remove(member).is_some()));
                set.remove_range(start..end);
            }
            91 => {
                let all = set.iter().map(|(member, score)| (member.to_vec(), score)).collect();
                kept = Some((set.clone(), all));
            }
            92..=95 => {
                let rank = model.order.iter().position(|(_, other)| *other == member);
                assert_eq!(set.rank(&member).map(|found| found.0), rank);
                let below = model.order.iter().filter(|(other, _)| other.0 < score).count();
                assert_eq!(set.count_below(score, false), below);
            }
            _ => assert_eq!(set.score(&member), model.scores.get(&member).copied()),
        }
        if step % 97 == 0 {
            same(&set, &model);
            if let Some((clone, all)) = &kept {
                clone.check();
                assert!(clone.iter().eq(all.iter().map(|(member, score)| (&member[..], *score))));
            }
        }
    }
    same(&set, &model);
}

#[test]
fn agrees_with_a_plain_model_under_random_operations() {
    let steps = if cfg!(miri) { 300 } else { 12_000 };
    compare(1, steps, 3_000, 1_000_000, 0);
    compare(2, steps, 3_000, 3, 12);
    compare(3, steps, 200, 50, 0);
    compare(4, steps / 4, 600, 100, 900);
    compare(5, steps / 8, 40, 100, 9_000);
}

#[test]
fn a_deep_tree_grows_and_shrinks() {
    let count = if cfg!(miri) { 500 } else { 200_000 };
    let mut random = Random(9);
    let mut set = Ordered::new(KEY);
    let member = |i: u64| format!("member:{i}").into_bytes();
    for i in 0..count {
        set.insert(&member(i), random.below(1_000_000) as f64);
    }
    set.check();
    for rank in (0..set.len()).step_by(997) {
        let (member, score) = set.by_rank(rank).unwrap();
        assert_eq!(set.rank(member), Some((rank, score)));
    }
    let clone = set.clone();
    for i in 0..count {
        if i % 10 != 0 {
            assert!(set.remove(&member(i)).is_some());
        }
    }
    set.check();
    clone.check();
    assert_eq!(set.len(), count as usize / 10);
    assert_eq!(clone.len(), count as usize);
    while !set.is_empty() {
        let len = set.len();
        set.remove_range(len / 3..(len / 3 + 1 + len / 5).min(len));
    }
    set.check();
}

#[test]
fn a_scan_returns_every_member_that_is_never_removed() {
    let mut random = Random(5);
    let mut set = Ordered::new(KEY);
    let count = if cfg!(miri) { 300 } else { 5_000 };
    for i in 0..count {
        set.insert(format!("stay:{i}").as_bytes(), 0.0);
    }
    let mut seen = HashSet::new();
    let mut cursor = 0;
    let mut calls = 0;
    loop {
        let mut visited = 0;
        cursor = set.scan(cursor, 10, |member, _| {
            visited += 1;
            seen.insert(member.to_vec());
        });
        calls += 1;
        assert!(visited <= 12, "{visited} members for a count of 10");
        if cursor == 0 {
            break;
        }
        for _ in 0..20 {
            let i = random.below(count);
            set.insert(format!("stay:{i}").as_bytes(), random.below(50) as f64);
            let other = format!("other:{}", random.below(3_000));
            if random.below(2) == 0 {
                set.insert(other.as_bytes(), 0.0);
            } else {
                set.remove(other.as_bytes());
            }
        }
    }
    assert!((0..count).all(|i| seen.contains(format!("stay:{i}").as_bytes())));
    assert!(calls <= count, "{calls}");
}

#[test]
fn equal_scores_order_members_by_their_bytes() {
    let mut set = Ordered::new(KEY);
    for member in ["b", "", "a", "ab", "\u{7f}", "B"] {
        set.insert(member.as_bytes(), 0.0);
    }
    set.insert(b"z", -0.0);
    let members: Vec<&[u8]> = set.iter().map(|(member, _)| member).collect();
    assert_eq!(members, [&b""[..], b"B", b"a", b"ab", b"b", b"z", b"\x7f"]);
    assert_eq!(set.partition(|_, member| member.bytes() < b"ab".as_slice()), 3);
}

/// The memory per member of 1,000 members of about ten bytes, including the allocator's size
/// classes.
#[test]
fn members_take_at_most_45_bytes_each_at_a_thousand() {
    for ascending in [true, false] {
        let mut random = Random(3);
        let mut set = Ordered::new(KEY);
        for i in 0..1_000 {
            let score = if ascending { f64::from(i) } else { random.below(1 << 40) as f64 };
            set.insert(format!("member:{i:03}").as_bytes(), score);
        }
        let each = set.allocated_bytes() as f64 / 1_000.0;
        assert!(each < 45.0, "{each} bytes each, ascending: {ascending}");
    }
}
