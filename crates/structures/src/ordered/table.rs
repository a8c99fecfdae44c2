//! Leaves by number. The tree and the index refer to these numbers, so a leaf that is copied for
//! writing keeps its number in both.

use super::leaf::Leaf;
use super::room_for;
use crate::prefetch::prefetch_value;
use crate::shared::Shared;

/// A leaf's number.
pub(super) type LeafId = u32;

/// Number of leaves per chunk. The first write after a clone copies one chunk: about 700 members.
const CHUNK_LEN: usize = 16;
const NONE: LeafId = LeafId::MAX;

#[derive(Debug, Clone)]
enum Place {
    Used(Leaf),
    /// Free, with the number of the next free entry or [`NONE`].
    Free(LeafId),
}

type Chunk = [Place; CHUNK_LEN];

/// All leaves. Clones share everything.
#[derive(Debug, Clone)]
pub(super) struct Leaves {
    chunks: Shared<Vec<Shared<Chunk>>>,
    free: LeafId,
}

impl Default for Leaves {
    fn default() -> Leaves {
        Leaves { chunks: Shared::default(), free: NONE }
    }
}

impl Leaves {
    /// Returns true if the two tables share the same leaves.
    pub(super) fn is_same(&self, other: &Leaves) -> bool {
        Shared::ptr_eq(&self.chunks, &other.chunks)
    }

    #[inline]
    pub(super) fn get(&self, id: LeafId) -> &Leaf {
        match &self.chunks[id as usize / CHUNK_LEN][id as usize % CHUNK_LEN] {
            Place::Used(leaf) => leaf,
            Place::Free(_) => unreachable!("a reference to a leaf that is gone"),
        }
    }

    /// Prefetches the leaf without reading it.
    #[inline]
    pub(super) fn prefetch(&self, id: LeafId) {
        let chunk: *const Place = std::ptr::from_ref(&*self.chunks[id as usize / CHUNK_LEN]).cast();
        prefetch_value(chunk.wrapping_add(id as usize % CHUNK_LEN));
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: LeafId) -> &mut Leaf {
        match self.place_mut(id) {
            Place::Used(leaf) => leaf,
            Place::Free(_) => unreachable!("a reference to a leaf that is gone"),
        }
    }

    #[inline]
    fn place_mut(&mut self, id: LeafId) -> &mut Place {
        let chunks = Shared::make_mut(&mut self.chunks);
        let chunk = Shared::make_mut(&mut chunks[id as usize / CHUNK_LEN]);
        &mut chunk[id as usize % CHUNK_LEN]
    }

    /// Adds a leaf under a free number.
    pub(super) fn add(&mut self, leaf: Leaf) -> LeafId {
        if self.free == NONE {
            self.add_chunk();
        }
        let id = self.free;
        if let Place::Free(next) = std::mem::replace(self.place_mut(id), Place::Used(leaf)) {
            self.free = next;
        }
        id
    }

    /// Adds a chunk of free entries.
    fn add_chunk(&mut self) {
        let chunks = Shared::make_mut(&mut self.chunks);
        let first = (chunks.len() * CHUNK_LEN) as LeafId;
        let last = first + CHUNK_LEN as LeafId - 1;
        let mut ids = first..;
        let chunk = std::array::from_fn(|_| {
            let id = ids.next().unwrap_or(NONE);
            Place::Free(if id == last { NONE } else { id + 1 })
        });
        room_for(chunks, 1);
        chunks.push(Shared::new(chunk));
        self.free = first;
    }

    /// Removes a leaf.
    pub(super) fn remove(&mut self, id: LeafId) -> Leaf {
        let free = self.free;
        let place = std::mem::replace(self.place_mut(id), Place::Free(free));
        self.free = id;
        match place {
            Place::Used(leaf) => leaf,
            Place::Free(_) => unreachable!("a leaf is removed once"),
        }
    }

    /// Returns all leaves in use, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LeafId, &Leaf)> {
        let places = self.chunks.iter().flat_map(|chunk| chunk.iter());
        places.zip(0..).filter_map(|(place, id)| match place {
            Place::Used(leaf) => Some((id, leaf)),
            Place::Free(_) => None,
        })
    }

    /// Returns the memory usage of the table and all leaves in bytes. O(leaves).
    pub(super) fn allocated_bytes(&self) -> usize {
        const ARC_BYTES: usize = 2 * size_of::<usize>();
        let chunk = size_of::<usize>() + ARC_BYTES + size_of::<Chunk>();
        let leaves: usize = self.iter().map(|(_, leaf)| leaf.allocated_bytes()).sum();
        ARC_BYTES + size_of::<Vec<u8>>() + self.chunks.len() * chunk + leaves
    }
}
