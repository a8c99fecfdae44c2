//! Prefetches members before they are looked up. A group of members goes through the lookup step by
//! step together, so that the group waits for memory only as often as a single member would.

use super::Ordered;
use super::table::LeafId;
use super::tree::{Node, Prefix};
use crate::prefetch::prefetch_value;

/// Number of members in a group. With more members, their cache lines would evict each other.
const GROUP: usize = 16;
/// With fewer members, most of the prefetched lines would be in the cache anyway.
const LEN_MIN: usize = if cfg!(test) { 64 } else { 4096 };
/// Maximum number of lines of a leaf's marks, of its scores, and of its members' bytes.
const LEAF_LINES: usize = 8;

/// The search in progress for the leaf of a member with its new score.
#[derive(Clone, Copy)]
struct Search<'a> {
    score: f64,
    prefix: Prefix,
    node: &'a Node,
}

impl Ordered {
    /// Prefetches the memory that looking up these members will read. Also prefetches the places
    /// for new scores. `score_of` takes the index of a member and returns its new score, if there
    /// is one. Changes nothing. O(members).
    pub fn prefetch(&self, members: &[&[u8]], score_of: impl Fn(usize) -> Option<f64>) {
        if self.len < LEN_MIN {
            return;
        }
        for (group, members) in members.chunks(GROUP).enumerate() {
            self.prefetch_group(members, |index| score_of(group * GROUP + index));
        }
    }

    fn prefetch_group(&self, members: &[&[u8]], score_of: impl Fn(usize) -> Option<f64>) {
        let mut hashes = [0; GROUP];
        let hashes = &mut hashes[..members.len()];
        for (hash, member) in hashes.iter_mut().zip(members) {
            *hash = self.hash(member);
            prefetch_value(self.index.segment_of(*hash).0);
        }
        for &hash in &*hashes {
            self.index.prefetch(hash);
        }
        let homes = self.homes(members, score_of);
        let mut leaves: [Option<LeafId>; GROUP] = [None; GROUP];
        for (leaf, &hash) in leaves.iter_mut().zip(&*hashes) {
            *leaf = self.index.find(hash).next();
            if let Some(id) = *leaf {
                self.leaves.prefetch(id);
            }
        }
        for leaf in leaves.into_iter().chain(homes).flatten().map(|id| self.leaves.get(id)) {
            leaf.prefetch(LEAF_LINES);
        }
    }

    /// Prefetches the leaves for the new scores, and returns them.
    fn homes(
        &self,
        members: &[&[u8]],
        score_of: impl Fn(usize) -> Option<f64>,
    ) -> [Option<LeafId>; GROUP] {
        let mut homes = [None; GROUP];
        let mut searches: [Option<Search<'_>>; GROUP] = [None; GROUP];
        for (index, (search, member)) in searches.iter_mut().zip(members).enumerate() {
            let prefix = Prefix::of(member);
            *search = score_of(index).map(|score| Search { score, prefix, node: &self.root });
        }
        while searches.iter().any(Option::is_some) {
            for (search, home) in searches.iter_mut().zip(&mut homes) {
                let Some(Search { score, prefix, node }) = search else { continue };
                match node.near(*score, *prefix) {
                    Ok(child) => {
                        prefetch_value(child);
                        *node = child;
                    }
                    Err(leaf) => {
                        leaf.into_iter().for_each(|id| self.leaves.prefetch(id));
                        (*search, *home) = (None, leaf);
                    }
                }
            }
            searches.iter().flatten().for_each(|search| search.node.prefetch());
        }
        homes
    }
}
