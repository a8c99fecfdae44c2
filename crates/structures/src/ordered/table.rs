//! Leaves by number: the numbers are what the tree and the index refer to, so that a leaf copied
//! for writing stays where both look for it.

use super::leaf::Leaf;
use super::room_for;
use std::sync::Arc;

/// A leaf's number.
pub(super) type LeafId = u32;

/// Leaves per chunk: what a write after a clone copies at most, as pointers.
const CHUNK_LEN: usize = 256;
const NONE: LeafId = LeafId::MAX;

#[derive(Debug, Clone)]
enum Place {
    Used(Arc<Leaf>),
    /// Free, with the number of the next free place or [`NONE`].
    Free(LeafId),
}

/// All leaves. Clones share everything.
#[derive(Debug, Clone)]
pub(super) struct Leaves {
    chunks: Arc<Vec<Arc<Vec<Place>>>>,
    free: LeafId,
}

impl Default for Leaves {
    fn default() -> Leaves {
        Leaves { chunks: Arc::default(), free: NONE }
    }
}

impl Leaves {
    #[inline]
    pub(super) fn get(&self, id: LeafId) -> &Leaf {
        match &self.chunks[id as usize / CHUNK_LEN][id as usize % CHUNK_LEN] {
            Place::Used(leaf) => leaf,
            Place::Free(_) => unreachable!("a reference to a leaf that is gone"),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: LeafId) -> &mut Leaf {
        match self.place_mut(id) {
            Place::Used(leaf) => Arc::make_mut(leaf),
            Place::Free(_) => unreachable!("a reference to a leaf that is gone"),
        }
    }

    #[inline]
    fn place_mut(&mut self, id: LeafId) -> &mut Place {
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[id as usize / CHUNK_LEN]);
        &mut chunk[id as usize % CHUNK_LEN]
    }

    /// Adds a leaf under a free number.
    pub(super) fn add(&mut self, leaf: Leaf) -> LeafId {
        let leaf = Place::Used(Arc::new(leaf));
        if self.free != NONE {
            let id = self.free;
            if let Place::Free(next) = std::mem::replace(self.place_mut(id), leaf) {
                self.free = next;
            }
            return id;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.last().is_none_or(|chunk| chunk.len() == CHUNK_LEN) {
            room_for(chunks, 1);
            chunks.push(Arc::default());
        }
        let number = chunks.len() - 1;
        let chunk = Arc::make_mut(&mut chunks[number]);
        room_for(chunk, 1);
        chunk.push(leaf);
        (number * CHUNK_LEN + chunk.len() - 1) as LeafId
    }

    /// Takes a leaf away. What it holds is given out, shared or not.
    pub(super) fn remove(&mut self, id: LeafId) -> Arc<Leaf> {
        let free = self.free;
        let place = std::mem::replace(self.place_mut(id), Place::Free(free));
        self.free = id;
        match place {
            Place::Used(leaf) => leaf,
            Place::Free(_) => unreachable!("a leaf is removed once"),
        }
    }

    /// All leaves in use with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LeafId, &Leaf)> {
        let places = self.chunks.iter().flat_map(|chunk| chunk.iter());
        places.zip(0..).filter_map(|(place, id)| match place {
            Place::Used(leaf) => Some((id, &**leaf)),
            Place::Free(_) => None,
        })
    }

    /// Bytes of the table and all leaves. O(leaves).
    pub(super) fn allocated_bytes(&self) -> usize {
        const ARC_BYTES: usize = 2 * size_of::<usize>();
        let vector = ARC_BYTES + size_of::<Vec<u8>>();
        let table: usize =
            self.chunks.iter().map(|c| vector + c.capacity() * size_of::<Place>()).sum();
        let leaves = self.iter();
        let leaves: usize =
            leaves.map(|(_, leaf)| ARC_BYTES + size_of::<Leaf>() + leaf.allocated_bytes()).sum();
        vector + self.chunks.capacity() * size_of::<usize>() + table + leaves
    }
}
