//! Compares quicklists with a vector, with small nodes, compression and large elements.

use super::*;
use crate::shared::Shared;

type Model = Vec<Vec<u8>>;

fn texts(list: &QuickList) -> Model {
    let mut all = vec![];
    list.walk(0, End::Front, |index, item| {
        assert_eq!(index, all.len());
        all.push(item.to_vec());
        ControlFlow::<()>::Continue(())
    });
    all
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }

    fn element(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => vec![b'z'; 40 + self.below(60)],
            1..=4 => self.below(5).to_string().into_bytes(),
            _ => format!("element {}", self.below(1000)).into_bytes(),
        }
    }

    fn end(&mut self) -> End {
        if self.below(2) == 0 { End::Front } else { End::Back }
    }
}

/// Makes one random change to both, and compares the results.
fn change(random: &mut Random, list: &mut QuickList, model: &mut Model) {
    let (element, end) = (random.element(), random.end());
    let index = random.below(model.len().max(1));
    let kind = random.below(if model.len() > 120 { 14 } else { 9 });
    match kind {
        0..=3 => {
            list.push(end, &element);
            model.insert(if end == End::Front { 0 } else { model.len() }, element);
        }
        4..=5 if !model.is_empty() => {
            list.insert(index, end, &element);
            model.insert(index + usize::from(end == End::Back), element);
        }
        6 if !model.is_empty() => {
            list.replace(index, &element);
            model[index] = element;
        }
        7 => {
            let limit = 1 + random.below(3);
            let mut found: Vec<usize> =
                (0..model.len()).filter(|&at| model[at] == element).collect();
            if end == End::Back {
                found.reverse();
            }
            found.truncate(limit);
            assert_eq!(list.remove_matching(&element, limit, end), found.len());
            found.sort_unstable();
            found.into_iter().rev().for_each(|at| drop(model.remove(at)));
        }
        8 | 9 => {
            let count = random.below(if kind == 9 { 60 } else { 4 });
            list.remove_range(index, count);
            model.drain(index.min(model.len())..(index + count).min(model.len()));
        }
        _ => {
            let got = list.pop(end, |item| item.to_vec());
            let want = match end {
                End::Front if !model.is_empty() => Some(model.remove(0)),
                End::Front => None,
                End::Back => model.pop(),
            };
            assert_eq!(got, want);
        }
    }
}

#[test]
fn random_changes_agree_with_a_vector_and_clones_do_not_notice() {
    for (seed, fill, compress_depth, plain_min) in
        [(1, 3, 0, 0), (2, 4, 1, 0), (3, 5, 2, 40), (4, -1, 1, 60), (5, 1, 3, 0), (6, 0, 0, 1)]
    {
        let mut random = Random(seed);
        let mut list = QuickList::new(Options { fill, compress_depth, plain_min });
        let mut model: Model = vec![];
        let mut kept = (list.clone(), model.clone());
        for _ in 0..if cfg!(miri) { 60 } else { 1_500 } {
            change(&mut random, &mut list, &mut model);
            list.check();
            assert_eq!(list.len(), model.len());
            assert_eq!(texts(&list), model);
            let index = random.below(model.len() + 1);
            let got = list.get(index, |item| item.to_vec());
            assert_eq!(got.as_ref(), model.get(index));
            let mut backward = vec![];
            list.walk(index, End::Back, |at, item| {
                assert!(item.is(&model[at]));
                backward.push(at);
                if backward.len() == 20 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            let expected =
                if index < model.len() { (0..=index).rev().take(20).collect() } else { vec![] };
            assert_eq!(backward, expected);
            if random.below(40) == 0 {
                assert_eq!(texts(&kept.0), kept.1);
                kept = (list.clone(), model.clone());
            }
        }
    }
}

fn filled(options: Options, count: usize) -> QuickList {
    let mut list = QuickList::new(options);
    (0..count).for_each(|n| list.push(End::Back, format!("element number {n}").as_bytes()));
    list
}

fn compressed(list: &QuickList) -> Vec<usize> {
    let is = |node| matches!(node, NodeRef::Compressed { .. });
    list.nodes().enumerate().filter(|(_, node)| is(*node)).map(|(place, _)| place).collect()
}

#[test]
fn nodes_are_filled_to_their_limit() {
    let by_count = filled(Options { fill: 10, compress_depth: 0, plain_min: 0 }, 95);
    assert_eq!(by_count.node_count(), 10);
    for (fill, bytes) in [(-1, 4096), (-2, 8192), (-5, 65_536), (-9, 65_536)] {
        let list = filled(Options { fill, compress_depth: 0, plain_min: 0 }, 20_000);
        for node in list.nodes().take(list.node_count() - 1) {
            let NodeRef::Packed(node) = node else { panic!("all elements are small") };
            assert!((bytes - 40..=bytes).contains(&node.bytes()), "{}", node.bytes());
        }
    }
}

#[test]
fn only_inner_nodes_are_compressed() {
    let mut list = filled(Options { fill: 10, compress_depth: 2, plain_min: 0 }, 100);
    assert_eq!(compressed(&list), [2, 3, 4, 5, 6, 7]);
    let plain = filled(Options { fill: 10, compress_depth: 0, plain_min: 0 }, 100);
    assert!(list.allocated_bytes() < plain.allocated_bytes());
    list.remove_range(0, 50);
    assert_eq!(compressed(&list), [2]);
    list.push(End::Back, b"x");
    assert_eq!(compressed(&list), [2, 3]);
    list.remove_range(1, 40);
    assert_eq!(compressed(&list), []);
    list.check();
}

#[test]
fn large_elements_have_separate_nodes() {
    let mut list = filled(Options { fill: -1, compress_depth: 0, plain_min: 0 }, 10);
    let large = vec![b'l'; 4097];
    list.insert(5, End::Front, &large);
    assert_eq!(list.node_count(), 3);
    assert_eq!(list.get(5, |item| item.len()), Some(4097));
    list.replace(5, b"small");
    list.check();
    assert!(list.single().is_none());
    list.replace(0, &large);
    list.replace(0, &vec![b'm'; 5000]);
    assert_eq!(list.get(0, |item| item.len()), Some(5000));
    list.check();
    assert_eq!(list.remove_matching(&vec![b'm'; 5000], 1, End::Back), 1);
    assert_eq!(list.len(), 10);
}

#[test]
fn a_clone_shares_all_but_the_changed_node() {
    let mut list = filled(Options { fill: 10, compress_depth: 0, plain_min: 0 }, 1000);
    let copy = list.clone();
    list.push(End::Back, b"new");
    list.replace(0, b"new");
    let same = list.nodes.iter().zip(copy.nodes.iter()).filter(|(a, b)| Shared::ptr_eq(a, b));
    assert_eq!(same.count(), 99);
    assert_eq!(copy.len(), 1000);
}
