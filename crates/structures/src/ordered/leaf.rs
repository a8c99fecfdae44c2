//! Leaves: members in order, packed into two allocations.

use super::room_for;

/// Members of a leaf at most.
pub(super) const LEAF_LEN_MAX: usize = 64;
/// Bytes of the members of a leaf with two members or more, so that inserting moves little.
pub(super) const LEAF_BYTES_MAX: usize = 4096;
/// A leaf below both is joined with a neighbour if the two fit well into one.
const SPARSE_LEN: usize = LEAF_LEN_MAX / 4;
const SPARSE_BYTES: usize = LEAF_BYTES_MAX / 4;

/// One member without its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) score: f64,
    pub(super) hash: u32,
    /// Where its bytes end in the leaf's arena; they begin where those of its forerunner end.
    end: u32,
}

/// Neighbouring members, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    keys: Vec<Key>,
    bytes: Vec<u8>,
}

impl Leaf {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(super) fn key(&self, at: usize) -> Key {
        self.keys[at]
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    #[inline]
    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.keys[at - 1].end as usize }
    }

    #[inline]
    pub(super) fn member(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.keys[at].end as usize]
    }

    /// Where `member` stands, found by its hash.
    #[inline]
    pub(super) fn find(&self, hash: u32, member: &[u8]) -> Option<usize> {
        (0..self.keys.len()).find(|&at| self.keys[at].hash == hash && self.member(at) == member)
    }

    /// How many members come before (`score`, `member`), and whether the next is that very one.
    #[inline]
    pub(super) fn place(&self, score: f64, member: &[u8]) -> (usize, bool) {
        let mut at = self.keys.partition_point(|key| key.score < score);
        let ties = self.keys[at..].partition_point(|key| key.score <= score);
        let end = at + ties;
        let (mut low, mut high) = (at, end);
        while low < high {
            let middle = low.midpoint(high);
            if self.member(middle) < member {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        at = low;
        (at, at < end && self.member(at) == member)
    }

    /// Whether `member` can be added without breaking the bounds.
    #[inline]
    pub(super) fn has_room(&self, member: &[u8]) -> bool {
        self.keys.len() < LEAF_LEN_MAX
            && (self.keys.is_empty() || self.bytes.len() + member.len() <= LEAF_BYTES_MAX)
    }

    /// Adds a member at its place.
    pub(super) fn insert(&mut self, at: usize, score: f64, hash: u32, member: &[u8]) {
        room_for(&mut self.keys, 1);
        room_for(&mut self.bytes, member.len());
        let start = self.start(at);
        let old_len = self.bytes.len();
        self.bytes.resize(old_len + member.len(), 0);
        self.bytes.copy_within(start..old_len, start + member.len());
        self.bytes[start..start + member.len()].copy_from_slice(member);
        for key in &mut self.keys[at..] {
            key.end += member.len() as u32;
        }
        self.keys.insert(at, Key { score, hash, end: (start + member.len()) as u32 });
    }

    /// Gives the member at `at` another score, which must not change its place.
    #[inline]
    pub(super) fn set_score(&mut self, at: usize, score: f64) {
        self.keys[at].score = score;
    }

    /// Removes the members `range`.
    pub(super) fn remove(&mut self, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        let (start, end) = (self.start(range.start), self.keys[range.end - 1].end as usize);
        self.bytes.drain(start..end);
        self.keys.drain(range.clone());
        for key in &mut self.keys[range.start..] {
            key.end -= (end - start) as u32;
        }
        // A leaf of which little is left gives memory back.
        if self.keys.len() * 4 < self.keys.capacity() {
            self.fit();
        }
    }

    fn fit(&mut self) {
        self.keys.shrink_to(self.keys.len() + 2);
        self.bytes.shrink_to(self.bytes.len() + 16);
    }

    /// Where to cut the leaf in two so that both halves weigh about the same.
    pub(super) fn middle(&self) -> usize {
        let weight = |at: usize| self.start(at) * LEAF_LEN_MAX / LEAF_BYTES_MAX + at;
        let half = (self.bytes.len() * LEAF_LEN_MAX / LEAF_BYTES_MAX + self.keys.len()) / 2;
        let (mut low, mut high) = (1, self.keys.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if weight(middle) < half {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Cuts the leaf at `at`: gives back what stands behind.
    pub(super) fn split_off(&mut self, at: usize) -> Leaf {
        let start = self.start(at);
        let mut right = Leaf::default();
        room_for(&mut right.keys, self.keys.len() - at);
        room_for(&mut right.bytes, self.bytes.len() - start);
        right.bytes.extend_from_slice(&self.bytes[start..]);
        let moved = self.keys[at..].iter();
        right.keys.extend(moved.map(|key| Key { end: key.end - start as u32, ..*key }));
        self.keys.truncate(at);
        self.bytes.truncate(start);
        self.fit();
        right
    }

    /// Whether the leaf is too small to stand alone.
    pub(super) fn is_sparse(&self) -> bool {
        self.keys.len() < SPARSE_LEN && self.bytes.len() < SPARSE_BYTES
    }

    /// Whether the two leaves make a good one, with room to grow.
    pub(super) fn can_join(&self, other: &Leaf) -> bool {
        self.keys.len() + other.keys.len() <= LEAF_LEN_MAX * 3 / 4
            && self.bytes.len() + other.bytes.len() <= LEAF_BYTES_MAX * 3 / 4
    }

    /// Appends the members of `other`, all of which come behind.
    pub(super) fn append(&mut self, other: &Leaf) {
        let start = self.bytes.len() as u32;
        room_for(&mut self.keys, other.keys.len());
        room_for(&mut self.bytes, other.bytes.len());
        self.bytes.extend_from_slice(&other.bytes);
        self.keys.extend(other.keys.iter().map(|key| Key { end: key.end + start, ..*key }));
    }

    /// Bytes of the two allocations.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Key>() + self.bytes.capacity()
    }

    /// Panics unless offsets ascend to the arena's end.
    pub(super) fn check(&self) {
        assert!(self.keys.is_sorted_by_key(|key| key.end), "offsets ascend");
        assert_eq!(self.keys.last().map_or(0, |key| key.end as usize), self.bytes.len());
        assert!(self.keys.len() <= LEAF_LEN_MAX);
    }
}
