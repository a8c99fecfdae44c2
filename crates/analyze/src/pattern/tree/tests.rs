//! The patterns of many keys, and the bound on the memory of the tree.

use super::*;
use crate::pattern::tokens;
use crate::record::{Encoding, Kind};

const STRINGS: GroupKey = GroupKey { db: 0, kind: Kind::String, encoding: Encoding::Raw };

fn add(tree: &mut Tree, key: &str) -> Option<Range<usize>> {
    let mut found = Vec::new();
    tokens(key.as_bytes(), &mut found);
    let (group, varies) = tree.group(&found, key.len(), STRINGS);
    group.keys += 1;
    varies
}

fn found(tree: Tree) -> Vec<(String, u64)> {
    let groups = tree.into_groups().into_iter();
    let mut all: Vec<_> =
        groups.map(|(pattern, _, group)| (pattern.to_string(), group.keys)).collect();
    all.sort();
    all
}

#[test]
fn keys_that_differ_in_marks_are_one_group() {
    let mut tree = Tree::default();
    for number in 0..1000 {
        add(&mut tree, &format!("user:{number}"));
        add(&mut tree, &format!("user:{number}:cart"));
    }
    assert_eq!(add(&mut tree, "user:12:cart"), Some(5..7));
    assert_eq!(found(tree), [("user:<n>".into(), 1000), ("user:<n>:cart".into(), 1001)]);
}

/// A name that consists of letters only.
fn name(number: usize) -> String {
    let letter = |place: u32| char::from(b'a' + (number / 26_usize.pow(place) % 26) as u8);
    (0..4).map(letter).collect()
}

#[test]
fn varying_words_become_a_wildcard() {
    let mut tree = Tree::default();
    for number in 0..10_000 {
        add(&mut tree, &format!("session:{}", name(number)));
        add(&mut tree, "session:common");
    }
    let expected = [("session:*".to_owned(), 10_000), ("session:common".to_owned(), 10_000)];
    assert_eq!(found(tree), expected);
}

#[test]
fn a_few_words_with_one_key_each_become_a_wildcard_at_the_end() {
    let mut tree = Tree::default();
    for number in 0..20 {
        add(&mut tree, &format!("feature:{}:on", name(number)));
    }
    add(&mut tree, "config:a");
    add(&mut tree, "config:b");
    let expected = [("config:a", 1), ("config:b", 1), ("feature:*:on", 20)];
    assert_eq!(found(tree), expected.map(|(pattern, keys)| (pattern.to_owned(), keys)));
}

/// The keys have names at every position, all kinds of separators, and different numbers of parts.
#[test]
fn the_tree_stays_bounded_and_loses_no_key() {
    let mut tree = Tree::default();
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let keys = 300_000;
    for _ in 0..keys {
        let mut key = String::new();
        for _ in 0..=random(12) {
            key.push_str(&name(random(40_000) as usize));
            key.push(char::from(b"!#$%&()*+,-./:;<=>?@"[random(20) as usize]));
            if random(3) == 0 {
                key.push_str(&random(1000).to_string());
            }
        }
        add(&mut tree, &key);
        assert!(tree.groups <= GROUPS_MAX && tree.nodes <= NODES_MAX + TOKENS_MAX);
    }
    let (nodes, groups) = tree.count();
    assert!(groups <= GROUPS_MAX && nodes <= NODES_MAX, "{nodes} {groups}");
    assert_eq!(found(tree).iter().map(|(_, keys)| keys).sum::<u64>(), keys);
}
