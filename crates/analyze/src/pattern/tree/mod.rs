//! A tree of the tokens of many keys, with a [`Group`] of totals for the keys of each pattern.
//!
//! Different words at one position are distinguished while there are few. When there are more than [`Bounds::words`],
//! the rare ones are merged into one branch, `*`. From then on, new words also go to this branch. If there are still
//! more groups than [`GROUPS_MAX`] or nodes than [`NODES_MAX`], the bounds are halved for the whole tree: first the
//! words at one position, then the tokens of a key. So memory does not depend on the number of keys.

use super::{Mark, Part, Pattern, Placed, TOKENS_MAX, Token};
use crate::group::{Group, GroupKey};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Maximum number of groups.
pub const GROUPS_MAX: usize = 4096;
/// Maximum number of nodes of the tree.
pub const NODES_MAX: usize = 64 << 10;
/// Maximum number of different words at one position of a key.
const WORDS_MAX: usize = 64;
/// If there are more words than [`WORDS_MAX`], a word stays distinguished if at least one in this many keys has it.
const COMMON_PART: u64 = 50;
/// At the end, words at one position are merged if there are at least this many, and they have few keys each.
const FEW_WORDS_MIN: u64 = 8;
const KEYS_PER_WORD_MIN: u64 = 4;

/// Limits on the words that the tree distinguishes, and on the tokens of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of different words at one position.
    pub words: usize,
    /// Maximum number of tokens of a key.
    pub tokens: usize,
}

/// Patterns and their groups.
#[derive(Debug)]
pub struct Tree {
    root: Node,
    bounds: Bounds,
    /// Upper bounds on the numbers of groups and nodes.
    groups: usize,
    nodes: usize,
}

#[derive(Debug, Default)]
struct Node {
    words: HashMap<Box<[u8]>, Node>,
    separators: BTreeMap<u8, Node>,
    marks: BTreeMap<Mark, Node>,
    /// The branch of words that are not distinguished.
    any: Option<Box<Node>>,
    groups: BTreeMap<GroupKey, Box<Group>>,
    keys: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        let bounds = Bounds { words: WORDS_MAX, tokens: TOKENS_MAX };
        Tree { root: Node::default(), bounds, groups: 0, nodes: 1 }
    }
}

impl Tree {
    /// The group of a key, and the part of the key that varies in its pattern: from the start of the first mark to the
    /// end of the last one. O(tokens), and O(nodes) when the bounds are reached.
    pub fn group(
        &mut self,
        tokens: &[Placed<'_>],
        key_len: usize,
        group: GroupKey,
    ) -> (&mut Group, Option<Range<usize>>) {
        if self.groups >= GROUPS_MAX || self.nodes >= NODES_MAX {
            self.make_room();
        }
        let mut varies: Option<Range<usize>> = None;
        let mut vary = |place: Range<usize>| {
            let start = varies.as_ref().map_or(place.start, |old| old.start);
            varies = Some(start..place.end);
        };
        let mut node = &mut self.root;
        node.keys += 1;
        for (at, (token, place)) in tokens.iter().enumerate() {
            if at + 1 >= self.bounds.tokens && tokens.len() > self.bounds.tokens {
                vary(place.start..key_len);
                node = child(&mut node.marks, Mark::Rest, &mut self.nodes);
                node.keys += 1;
                break;
            }
            node = match token {
                Token::Separator(byte) => child(&mut node.separators, *byte, &mut self.nodes),
                Token::Mark(mark) => {
                    vary(place.clone());
                    child(&mut node.marks, *mark, &mut self.nodes)
                }
                Token::Word(word) => {
                    let (next, is_any) = node.word(word, self.bounds.words, &mut self.nodes);
                    if is_any {
                        vary(place.clone());
                    }
                    next
                }
            };
            node.keys += 1;
        }
        let groups = &mut self.groups;
        let found = node.groups.entry(group).or_insert_with(|| {
            *groups += 1;
            Box::default()
        });
        (found, varies)
    }

    /// The group to which a key with these tokens would be added, if it exists. O(tokens).
    #[must_use]
    pub fn find(&self, tokens: &[Placed<'_>], group: GroupKey) -> Option<&Group> {
        let mut node = &self.root;
        for (at, (token, _)) in tokens.iter().enumerate() {
            if at + 1 >= self.bounds.tokens && tokens.len() > self.bounds.tokens {
                node = node.marks.get(&Mark::Rest)?;
                break;
            }
            node = match token {
                Token::Separator(byte) => node.separators.get(byte)?,
                Token::Mark(mark) => node.marks.get(mark)?,
                Token::Word(word) => node.words.get(*word).or(node.any.as_deref())?,
            };
        }
        node.groups.get(&group).map(|group| &**group)
    }

    /// Tightens the bounds until a quarter of the room is free.
    fn make_room(&mut self) {
        loop {
            (self.nodes, self.groups) = self.root.count();
            if self.groups * 4 <= GROUPS_MAX * 3 && self.nodes * 4 <= NODES_MAX * 3 {
                return;
            }
            if self.bounds.words > 1 {
                self.bounds.words /= 2;
            } else if self.bounds.tokens > 1 {
                self.bounds.tokens = (self.bounds.tokens / 2).max(1);
            } else {
                // Only databases, types and encodings remain, whose numbers are bounded elsewhere.
                return;
            }
            self.root.tighten(self.bounds, 0);
        }
    }

    /// The current bounds.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// The numbers of nodes and groups. O(nodes).
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        self.root.count()
    }

    /// All groups with their patterns. Words that are rare at the end are merged too.
    #[must_use]
    pub fn into_groups(mut self) -> Vec<(Pattern, GroupKey, Group)> {
        self.root.merge_rare();
        let mut all = Vec::new();
        self.root.collect(&mut Vec::new(), &mut all);
        all
    }
}

fn child<'n, K: Ord>(map: &'n mut BTreeMap<K, Node>, key: K, nodes: &mut usize) -> &'n mut Node {
    map.entry(key).or_insert_with(|| {
        *nodes += 1;
        Node::default()
    })
}

impl Node {
    /// The branch of a word, and whether it is the branch for undistinguished words.
    fn word(&mut self, word: &[u8], words_max: usize, nodes: &mut usize) -> (&mut Node, bool) {
        if !self.words.contains_key(word) {
            if self.any.is_none() && self.words.len() >= words_max {
                self.merge_words(self.keys.div_ceil(COMMON_PART));
            }
            if let Some(any) = &mut self.any {
                return (any, true);
            }
            *nodes += 1;
        }
        (self.words.entry(word.into()).or_default(), false)
    }

    /// Merges all words with fewer keys than this into one branch, and also words for which there is no room.
    fn merge_words(&mut self, keys_min: u64) {
        let mut any = self.any.take().map(|any| *any).unwrap_or_default();
        let rare = self.words.extract_if(|_, node| node.keys < keys_min);
        for (_, node) in rare {
            any.merge(node);
        }
        self.any = Some(Box::new(any));
    }

    /// Merges another node into this one.
    fn merge(&mut self, other: Node) {
        self.keys += other.keys;
        for (key, group) in other.groups {
            self.groups.entry(key).or_default().merge(*group);
        }
        for (byte, node) in other.separators {
            self.separators.entry(byte).or_default().merge(node);
        }
        for (mark, node) in other.marks {
            self.marks.entry(mark).or_default().merge(node);
        }
        if let Some(any) = other.any {
            self.any.get_or_insert_default().merge(*any);
        }
        for (word, node) in other.words {
            match (self.words.get_mut(&word), &mut self.any) {
                (Some(same), _) => same.merge(node),
                (None, Some(any)) => any.merge(node),
                (None, None) => {
                    self.words.insert(word, node);
                }
            }
        }
    }

    /// Applies bounds to the whole subtree, whose root is at `depth` tokens.
    fn tighten(&mut self, bounds: Bounds, depth: usize) {
        if self.words.len() > bounds.words {
            let mut keys: Vec<u64> = self.words.values().map(|node| node.keys).collect();
            keys.sort_unstable_by(|a, b| b.cmp(a));
            // Up to half of the bound may stay, if they are common.
            let least = keys.get(bounds.words / 2).map_or(0, |keys| keys + 1);
            self.merge_words(least.max(self.keys.div_ceil(COMMON_PART)));
        }
        if depth + 1 >= bounds.tokens {
            let below = std::mem::take(self);
            self.keys = below.keys;
            let mut rest = below.marks.into_values().collect::<Vec<_>>();
            rest.extend(below.words.into_values());
            rest.extend(below.separators.into_values());
            rest.extend(below.any.map(|any| *any));
            self.groups = below.groups;
            for node in rest {
                let mut flat = Node::default();
                node.flatten(&mut flat);
                self.marks.entry(Mark::Rest).or_default().merge(flat);
            }
            return;
        }
        let children = self.words.values_mut().chain(self.separators.values_mut());
        let children = children.chain(self.marks.values_mut()).chain(self.any.as_deref_mut());
        children.for_each(|node| node.tighten(bounds, depth + 1));
    }

    /// Merges all groups of a branch into one node.
    fn flatten(self, into: &mut Node) {
        into.keys += self.keys;
        for (key, group) in self.groups {
            into.groups.entry(key).or_default().merge(*group);
        }
        let below = self.words.into_values().chain(self.separators.into_values());
        let below = below.chain(self.marks.into_values()).chain(self.any.map(|any| *any));
        // The keys of the subtree are already counted.
        let keys = into.keys;
        below.for_each(|node| node.flatten(into));
        into.keys = keys;
    }

    /// Merges rare words at the end; see [`FEW_WORDS_MIN`].
    fn merge_rare(&mut self) {
        let words = self.words.len() as u64;
        let keys: u64 = self.words.values().map(|node| node.keys).sum();
        let are_few = words >= FEW_WORDS_MIN && keys < words * KEYS_PER_WORD_MIN;
        if self.any.is_some() || are_few {
            // If there is a branch for undistinguished words, only common words have their own branch.
            let common = self.keys.div_ceil(COMMON_PART);
            self.merge_words(if are_few { u64::MAX } else { common.min(KEYS_PER_WORD_MIN) });
        }
        let children = self.words.values_mut().chain(self.separators.values_mut());
        let children = children.chain(self.marks.values_mut()).chain(self.any.as_deref_mut());
        children.for_each(Node::merge_rare);
    }

    fn count(&self) -> (usize, usize) {
        let children = self.words.values().chain(self.separators.values());
        let children = children.chain(self.marks.values()).chain(self.any.as_deref());
        children.map(Node::count).fold((1, self.groups.len()), |(nodes, groups), below| {
            (nodes + below.0, groups + below.1)
        })
    }

    fn collect(self, path: &mut Vec<Part>, all: &mut Vec<(Pattern, GroupKey, Group)>) {
        for (key, group) in self.groups {
            all.push((Pattern(path.clone()), key, *group));
        }
        let words = self.words.into_iter().map(|(word, node)| (Part::Word(word.into_vec()), node));
        let separators =
            self.separators.into_iter().map(|(byte, node)| (Part::Separator(byte), node));
        let marks = self.marks.into_iter().map(|(mark, node)| (Part::Mark(mark), node));
        let any = self.any.map(|node| (Part::Any, *node));
        for (part, node) in words.chain(separators).chain(marks).chain(any) {
            path.push(part);
            node.collect(path, all);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests;
