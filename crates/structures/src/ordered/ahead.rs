//! Looking ahead: of members that are about to be looked up, all lines are asked for at once, step
//! by step, so that a group of members waits for the memory as often as one does.

use super::Ordered;
use super::table::LeafId;
use crate::prefetch::prefetch_value;

/// Members taken together; more would push each other out of the cache.
const GROUP: usize = 16;
/// With fewer members what is asked for would mostly be in the cache anyway.
const LEN_MIN: usize = if cfg!(test) { 64 } else { 4096 };
/// Lines of a leaf's marks, of its scores, and of its members' bytes.
const LEAF_LINES: usize = 8;

impl Ordered {
    /// Asks for what looking up these members will read. Changes nothing. O(members).
    pub fn prefetch(&self, members: &[&[u8]]) {
        if self.len < LEN_MIN {
            return;
        }
        for members in members.chunks(GROUP) {
            self.prefetch_group(members);
        }
    }

    fn prefetch_group(&self, members: &[&[u8]]) {
        let mut hashes = [0; GROUP];
        let hashes = &mut hashes[..members.len()];
        for (hash, member) in hashes.iter_mut().zip(members) {
            *hash = self.hash(member);
            prefetch_value(self.index.segment_of(*hash).0);
        }
        for &hash in &*hashes {
            self.index.prefetch(hash);
        }
        let mut leaves: [Option<LeafId>; GROUP] = [None; GROUP];
        for (leaf, &hash) in leaves.iter_mut().zip(&*hashes) {
            *leaf = self.index.find(hash).next();
            if let Some(id) = *leaf {
                self.leaves.prefetch(id);
            }
        }
        for leaf in leaves.into_iter().flatten().map(|id| self.leaves.get(id)) {
            leaf.prefetch(LEAF_LINES);
        }
    }
}
