//! Byte strings in chunks of equal size. A clone, or a change to any part, costs no more than
//! copying a chunk.
//!
//! ```text
//!  root: 300,000 bytes      branches of up to 128 chunks           chunks of 64 KiB
//! +--------------------+    +---+---+---+---+---+
//! | len    | 0 |       | -> | 0 | 1 | 2 | 3 | 4 |    ...    65,536 65,536 65,536 65,536 37,856
//! +--------------------+    +---+---+---+---+---+
//! ```
//!
//! Byte `n` is in chunk `n / CHUNK_BYTES`, so finding it takes two steps for any length. A clone
//! increments one counter. A change to a shared part copies the root (8 bytes per 8 MiB of
//! content), a branch (1 KiB) and the chunks that it touches, and nothing else. If a string is
//! extended beyond its content, the gap consists of references to one chunk of zeros that all
//! strings of the process share.
//!
//! Invariants (`check` verifies each)
//!  1. All chunks but the last have `CHUNK_BYTES` bytes; the last has at least one and at most
//!     `CHUNK_BYTES`.
//!  2. All branches but the last have `BRANCH_CHUNKS` chunks; the last has at least one.
//!  3. `len` is the sum of the chunks' lengths.
//!
//! Memory overhead: 56 bytes per chunk, and the spare capacity of the last chunk, which is at most
//! as large as its content.

use crate::chunk::Chunk;
use crate::shared::Shared;
use std::ops::Range;
use std::sync::LazyLock;

/// Size of a chunk in bytes. A change copies at most one chunk per clone, which takes about 5 µs,
/// and each piece of a send refers to one chunk. The size is a size class of the allocator, so
/// nothing is lost to rounding. Tests use a small size to get many chunks.
pub const CHUNK_BYTES: usize = if cfg!(test) { 16 } else { 64 * 1024 };

/// Maximum number of chunks in a branch.
const BRANCH_CHUNKS: usize = if cfg!(test) { 4 } else { 128 };

type Branch = Vec<Chunk>;

/// The chunk of zeros that all strings share.
static ZEROS: LazyLock<Chunk> = LazyLock::new(|| Chunk::new(vec![0; CHUNK_BYTES]));

/// A byte string of any length. A clone shares all chunks until one side changes them.
#[derive(Debug, Clone, Default)]
pub struct ChunkedBytes(Shared<Root>);

#[derive(Debug, Clone, Default)]
struct Root {
    len: usize,
    branches: Vec<Shared<Branch>>,
}

impl ChunkedBytes {
    /// Creates an empty string.
    #[must_use]
    pub fn new() -> ChunkedBytes {
        ChunkedBytes::default()
    }

    /// Creates a string of `len` bytes chunk by chunk: `write` appends the bytes of the given
    /// range, which is the range of one chunk. O(len).
    ///
    /// # Panics
    /// If `write` appends more or fewer bytes than requested.
    #[must_use]
    pub fn written(len: usize, mut write: impl FnMut(Range<usize>, &mut Vec<u8>)) -> ChunkedBytes {
        let mut root = Root::default();
        while root.len < len {
            let range = root.len..len.min(root.len + CHUNK_BYTES);
            let mut chunk = Vec::with_capacity(range.len());
            write(range.clone(), &mut chunk);
            assert_eq!(chunk.len(), range.len(), "a chunk has the bytes of its range");
            root.push(Chunk::new(chunk));
        }
        ChunkedBytes(Shared::new(root))
    }

    /// Returns the number of bytes. O(1).
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Returns true if the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if one is an unchanged clone of the other. O(1).
    #[must_use]
    pub fn is_same(&self, other: &ChunkedBytes) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Returns the chunk that contains byte `at`, and the offset of the chunk's first byte. `None`
    /// if `at` is after the end. O(1).
    #[inline]
    #[must_use]
    pub fn chunk_of(&self, at: usize) -> Option<(&Chunk, usize)> {
        let number = at / CHUNK_BYTES;
        let chunk = self.0.branches.get(number / BRANCH_CHUNKS)?.get(number % BRANCH_CHUNKS)?;
        (at < self.len()).then_some((chunk, number * CHUNK_BYTES))
    }

    /// Returns the byte at `at`. O(1).
    #[inline]
    #[must_use]
    pub fn byte(&self, at: usize) -> Option<u8> {
        self.chunk_of(at).map(|(chunk, start)| chunk[at - start])
    }

    /// Returns the chunks that hold the bytes of `range`, and the range within each. Offsets after
    /// the end are ignored. O(1) per chunk.
    pub fn parts(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (&Chunk, Range<usize>)> + Clone {
        let end = range.end.min(self.len());
        let mut at = range.start;
        std::iter::from_fn(move || {
            let (chunk, start) = self.chunk_of(at).filter(|_| at < end)?;
            let part = at - start..chunk.len().min(end - start);
            at = start + part.end;
            Some((chunk, part))
        })
    }

    /// Returns the bytes of `range`, piece by piece. Offsets after the end are ignored.
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> + Clone {
        self.parts(range).map(|(chunk, part)| &chunk[part])
    }

    /// Copies the bytes of `range` into one vector. O(bytes).
    #[must_use]
    pub fn copy_of(&self, range: Range<usize>) -> Vec<u8> {
        let len = range.end.min(self.len()).saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(len);
        self.pieces(range).for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// Copies all bytes into one vector. O(len).
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.copy_of(0..self.len())
    }

    /// Appends `bytes`. Amortised O(bytes), plus a copy of the last chunk if a clone shares it.
    pub fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let root = Shared::make_mut(&mut self.0);
        let rest = bytes.split_at(root.room().min(bytes.len()));
        if !rest.0.is_empty() {
            let last = root.chunk_mut(root.len - 1).make_mut();
            reserve(last, rest.0.len());
            last.extend_from_slice(rest.0);
            root.len += rest.0.len();
        }
        for piece in rest.1.chunks(CHUNK_BYTES) {
            root.push(Chunk::new(piece.to_vec()));
        }
    }

    /// Extends the string to at least `len` bytes with zeros. O(chunks). Whole chunks of zeros take
    /// no memory.
    pub fn extend_to(&mut self, len: usize) {
        if len <= self.len() {
            return;
        }
        let root = Shared::make_mut(&mut self.0);
        let fill = root.room().min(len - root.len);
        if fill > 0 {
            let last = root.chunk_mut(root.len - 1).make_mut();
            reserve(last, fill);
            last.resize(last.len() + fill, 0);
            root.len += fill;
        }
        while root.len < len {
            root.push(match len - root.len {
                CHUNK_BYTES.. => ZEROS.clone(),
                rest => Chunk::new(vec![0; rest]),
            });
        }
    }

    /// Returns the chunk that contains byte `at` for writing, and the offset of its first byte.
    /// O(1); O(chunk) if a clone shares it.
    ///
    /// # Panics
    /// If `at` is after the end.
    pub fn chunk_mut(&mut self, at: usize) -> (&mut [u8], usize) {
        assert!(at < self.len(), "byte {at} of a string of {} bytes", self.len());
        let root = Shared::make_mut(&mut self.0);
        let chunk = root.chunk_mut(at).make_mut();
        (chunk, at - at % CHUNK_BYTES)
    }

    /// Overwrites existing bytes from `at` on with `bytes`. O(bytes), plus one or two chunks.
    ///
    /// # Panics
    /// If the range extends beyond the end.
    pub fn write_at(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (chunk, start) = self.chunk_mut(at);
            let room = &mut chunk[at - start..];
            let (now, later) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            at += now.len();
            bytes = later;
        }
    }

    /// Returns the memory usage in bytes. Chunks that clones share are included; the shared zeros
    /// are not. O(chunks).
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        let counters = 2 * size_of::<usize>();
        let branches =
            self.0.branches.iter().map(|branch| {
                counters + size_of::<Branch>() + branch.capacity() * size_of::<Chunk>()
            });
        let own = |chunk: &&Chunk| !Chunk::ptr_eq(chunk, &ZEROS);
        let chunks = self.0.branches.iter().flat_map(|branch| branch.iter()).filter(own);
        let chunks = chunks.map(|chunk| Chunk::OVERHEAD_BYTES + chunk.capacity());
        let root = counters + size_of::<Root>() + self.0.branches.capacity() * size_of::<usize>();
        root + branches.sum::<usize>() + chunks.sum::<usize>()
    }

    /// Verifies the invariants listed at the top of this file.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        let full =
            |len: usize, max: usize, is_last| (is_last || len == max) && (1..=max).contains(&len);
        let mut len = 0;
        for (number, branch) in self.0.branches.iter().enumerate() {
            let is_last = number + 1 == self.0.branches.len();
            assert!(full(branch.len(), BRANCH_CHUNKS, is_last), "branch {number}");
            for (place, chunk) in branch.iter().enumerate() {
                let is_last = is_last && place + 1 == branch.len();
                assert!(
                    full(chunk.len(), CHUNK_BYTES, is_last),
                    "chunk {place} of branch {number}"
                );
                len += chunk.len();
            }
        }
        assert_eq!(len, self.0.len);
    }
}

impl From<&[u8]> for ChunkedBytes {
    fn from(bytes: &[u8]) -> ChunkedBytes {
        ChunkedBytes::written(bytes.len(), |range, chunk| chunk.extend_from_slice(&bytes[range]))
    }
}

impl PartialEq for ChunkedBytes {
    /// O(len).
    fn eq(&self, other: &ChunkedBytes) -> bool {
        self.is_same(other)
            || (self.len() == other.len()
                && self.pieces(0..self.len()).eq(other.pieces(0..other.len())))
    }
}

impl Eq for ChunkedBytes {}

impl Root {
    /// Returns how many more bytes fit into the last chunk.
    fn room(&self) -> usize {
        self.len.next_multiple_of(CHUNK_BYTES) - self.len
    }

    /// Returns the chunk that contains byte `at`, which must exist.
    fn chunk_mut(&mut self, at: usize) -> &mut Chunk {
        let number = at / CHUNK_BYTES;
        &mut Shared::make_mut(&mut self.branches[number / BRANCH_CHUNKS])[number % BRANCH_CHUNKS]
    }

    /// Appends a chunk. The chunk before it must be full.
    fn push(&mut self, chunk: Chunk) {
        debug_assert_eq!(self.room(), 0);
        self.len += chunk.len();
        match self.branches.last_mut() {
            Some(last) if last.len() < BRANCH_CHUNKS => Shared::make_mut(last).push(chunk),
            _ => self.branches.push(Shared::new(vec![chunk])),
        }
    }
}

/// Makes room for `more` bytes in a chunk: doubles it, up to the size of a whole chunk.
fn reserve(chunk: &mut Vec<u8>, more: usize) {
    let needed = chunk.len() + more;
    if needed > chunk.capacity() {
        let capacity = needed.max((2 * chunk.len()).min(CHUNK_BYTES));
        chunk.reserve_exact(capacity - chunk.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 % 251) as u8).collect()
    }

    /// Random changes to a string and its clones, compared with plain vectors.
    #[test]
    fn a_string_behaves_like_a_vector_and_clones_stay_unchanged() {
        let mut state = 7u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for _ in 0..30 {
            let model = sample(random(300));
            let mut all = vec![(ChunkedBytes::from(&model[..]), model)];
            for _ in 0..if cfg!(miri) { 10 } else { 150 } {
                let which = random(all.len());
                if all.len() < 5 && random(6) == 0 {
                    let copy = all[which].clone();
                    assert!(copy.0.is_same(&all[which].0));
                    all.push(copy);
                }
                let (string, model) = &mut all[which];
                match random(4) {
                    0 => {
                        let more = sample(random(60));
                        string.append(&more);
                        model.extend_from_slice(&more);
                    }
                    1 => {
                        let len = model.len() + random(90);
                        string.extend_to(len);
                        model.resize(len, 0);
                    }
                    2 if !model.is_empty() => {
                        let at = random(model.len());
                        let bytes = sample(random(model.len() - at + 1));
                        string.write_at(at, &bytes);
                        model[at..at + bytes.len()].copy_from_slice(&bytes);
                    }
                    _ if !model.is_empty() => {
                        let at = random(model.len());
                        let (chunk, start) = string.chunk_mut(at);
                        chunk[at - start] ^= 1;
                        model[at] ^= 1;
                    }
                    _ => {}
                }
                for (string, model) in &all {
                    string.check();
                    assert_eq!(string.to_vec(), *model);
                    let (a, b) = (random(model.len() + 2), random(model.len() + 40));
                    let clipped = a.min(model.len())..b.clamp(a.min(model.len()), model.len());
                    assert_eq!(string.copy_of(a..b), model[clipped]);
                    assert_eq!(string.byte(a), model.get(a).copied());
                }
            }
        }
    }

    #[test]
    fn a_change_copies_the_chunk_it_touches_and_no_other() {
        let mut one = ChunkedBytes::from(&sample(20 * CHUNK_BYTES)[..]);
        let other = one.clone();
        one.write_at(5 * CHUNK_BYTES + 3, b"x");
        one.append(b"y");
        let copied: Vec<usize> = (0..20)
            .filter(|number| {
                let at = number * CHUNK_BYTES;
                !Chunk::ptr_eq(one.chunk_of(at).unwrap().0, other.chunk_of(at).unwrap().0)
            })
            .collect();
        assert_eq!(copied, [5]);
        assert!(!one.is_same(&other) && one != other);
    }

    #[test]
    fn unwritten_zeros_take_no_memory() {
        let mut string = ChunkedBytes::new();
        string.extend_to(1000 * CHUNK_BYTES + 1);
        string.chunk_mut(0).0[0] = 1;
        string.check();
        let own = string.parts(0..string.len()).filter(|(chunk, _)| !Chunk::ptr_eq(chunk, &ZEROS));
        assert_eq!(own.count(), 2);
        let written = ChunkedBytes::from(&string.to_vec()[..]);
        let own_bytes = CHUNK_BYTES + Chunk::OVERHEAD_BYTES;
        assert!(string.allocated_bytes() + 999 * own_bytes <= written.allocated_bytes());
        assert_eq!(string.byte(CHUNK_BYTES), Some(0));
        assert_eq!(string.pieces(0..string.len()).flatten().filter(|byte| **byte == 1).count(), 1);
    }

    #[test]
    fn appending_byte_by_byte_moves_little_and_wastes_less_than_a_chunk() {
        let mut string = ChunkedBytes::new();
        for at in 0..40 * CHUNK_BYTES {
            string.append(&[at as u8]);
            let (last, _) = string.chunk_of(at).unwrap();
            assert!(last.capacity() <= (2 * last.len()).min(CHUNK_BYTES));
        }
        string.check();
    }
}
