//! The latest part of the stream, held once for all who read it: replicas that follow, replicas whose
//! snapshot is still on its way, and those that come back.
//!
//! ```text
//!   first                                                                    end
//!    |-- block --|-- block --|-- block --|-- block --|-- block --|-- block --|
//!    ^ slowest replica        ^ another                    |<-- wanted_bytes -->|
//! ```
//!
//! A replica is a place in it. So the slowest decides how much is held, and the others cost nothing more.
//! A block that is sent is referred to, not copied; only the last one grows, while nobody refers to it.
//!
//! Invariants (`check` verifies each)
//!  1. Blocks are not empty, follow one another without a gap, and the last ends at `end`.
//!  2. `bytes` is the sum of their lengths.
//!  3. A block that [`Block::ends_unit`] ends where transactions do: what is handed out ends there, unless
//!     the append-only file has less. So nothing else that a replica is sent comes between two halves of
//!     a command.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The last block grows up to so many bytes: a stream of small changes does not cost a block for each.
const TAIL_BYTES_MAX: usize = 16 * 1024;
/// No block is larger: one that is only partly wanted is held whole.
pub(super) const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Blocks that are dropped at once, at most, besides as many as have come: `repl-backlog-size` may
/// have been lowered by much.
const DROPPED_BLOCKS_MAX: usize = 256;

/// A part of the stream.
#[derive(Debug)]
struct Block {
    from: u64,
    bytes: Arc<Vec<u8>>,
    /// No command goes on behind it.
    ends_unit: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

/// Bytes to be sent.
#[derive(Debug, Clone)]
pub struct Piece {
    pub bytes: Arc<Vec<u8>>,
    pub range: Range<usize>,
}

impl Piece {
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// A list of blocks.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    blocks: VecDeque<Block>,
    bytes: u64,
    end: u64,
}

impl Backlog {
    /// An empty one, of a stream that has come so far.
    pub(super) fn beginning_at(place: u64) -> Backlog {
        Backlog { blocks: VecDeque::new(), bytes: 0, end: place }
    }

    /// The place of the first byte that is held; the end if there is none.
    pub(super) fn first(&self) -> u64 {
        self.blocks.front().map_or(self.end, |block| block.from)
    }

    /// The place behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether who stands at a place can go on from there.
    pub(super) fn reaches(&self, place: u64) -> bool {
        (self.first()..=self.end).contains(&place)
    }

    /// Whole transactions have come. Amortised O(bytes).
    pub(super) fn append(&mut self, news: &[u8]) {
        self.bytes += news.len() as u64;
        if let Some(tail) = self.blocks.back_mut()
            && tail.bytes.len() + news.len() <= TAIL_BYTES_MAX
            && let Some(own) = Arc::get_mut(&mut tail.bytes)
        {
            let (len, room) = (own.len() + news.len(), own.capacity());
            if len > room {
                // As a vector grows by itself, but not beyond what the block may have: of a stream of small
                // changes a third would be room for nothing.
                own.reserve_exact((2 * room).clamp(len, TAIL_BYTES_MAX) - own.len());
            }
            own.extend_from_slice(news);
            self.end += news.len() as u64;
            return;
        }
        for part in news.chunks(BLOCK_BYTES_MAX) {
            let bytes = Arc::new(part.to_vec());
            self.blocks.push_back(Block { from: self.end, bytes, ends_unit: false });
            self.end += part.len() as u64;
        }
        if let Some(last) = self.blocks.back_mut() {
            last.ends_unit = true;
        }
    }

    /// Drops blocks from the front that are not `needed_from` anybody, as long as `wanted` bytes are left.
    /// O(blocks dropped).
    pub(super) fn trim(&mut self, wanted: u64, needed_from: u64, came: usize) {
        for _ in 0..DROPPED_BLOCKS_MAX + came / BLOCK_BYTES_MAX {
            let Some(front) = self.blocks.front() else { return };
            let left = self.bytes - front.bytes.len() as u64;
            if left < wanted || front.end() > needed_from {
                return;
            }
            self.bytes = left;
            self.blocks.pop_front();
        }
    }

    /// Blocks of the front, whole transactions together, of about `most` bytes, if the rest still has
    /// `wanted`; without the last block, which grows. O(blocks).
    pub(super) fn front(&self, most: usize, wanted: u64) -> Vec<(Arc<Vec<u8>>, bool)> {
        let (mut found, mut bytes, mut whole) = (Vec::new(), 0, 0);
        for block in self.blocks.range(..self.blocks.len().saturating_sub(1)) {
            bytes += block.bytes.len();
            if self.bytes - (bytes as u64) < wanted {
                break;
            }
            found.push((Arc::clone(&block.bytes), block.ends_unit));
            if block.ends_unit {
                whole = found.len();
                if bytes >= most {
                    break;
                }
            }
        }
        found.truncate(whole);
        found
    }

    /// Drops so many blocks from the front. O(their number).
    pub(super) fn drop_front(&mut self, count: usize) {
        for block in self.blocks.drain(..count) {
            self.bytes -= block.bytes.len() as u64;
        }
    }

    /// Adds what stands from `from` on and before `until`, up to the first end of a transaction behind
    /// `most` bytes. Returns the place behind it; `None` if what stands there is not held any more.
    /// O(log blocks + pieces).
    pub(super) fn take(
        &self,
        from: u64,
        until: u64,
        most: usize,
        into: &mut Vec<Piece>,
    ) -> Option<u64> {
        if !self.reaches(from) {
            return None;
        }
        let begin = self.blocks.partition_point(|block| block.end() <= from);
        let (mut at, mut taken) = (from, 0);
        for block in self.blocks.range(begin..) {
            let end = block.end().min(until);
            if end <= at {
                break;
            }
            // Within a block, so they fit.
            let range = (at - block.from) as usize..(end - block.from) as usize;
            taken += range.len();
            into.push(Piece { bytes: Arc::clone(&block.bytes), range });
            at = end;
            if at < block.end() || (taken >= most && block.ends_unit) {
                break;
            }
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Backlog {
        fn check(&self) {
            let mut at = self.first();
            for block in &self.blocks {
                assert!(block.from == at && !block.bytes.is_empty());
                assert!(block.bytes.len() <= BLOCK_BYTES_MAX);
                at = block.end();
            }
            assert_eq!(at, self.end);
            assert_eq!(self.bytes, self.end - self.first());
        }

        /// What is taken, in one piece, and the place behind it.
        fn taken(&self, from: u64, until: u64, most: usize) -> Option<(Vec<u8>, u64)> {
            let mut pieces = Vec::new();
            let end = self.take(from, until, most, &mut pieces)?;
            let bytes: Vec<u8> = pieces.iter().flat_map(Piece::as_slice).copied().collect();
            assert_eq!(end, from + bytes.len() as u64);
            Some((bytes, end))
        }
    }

    #[test]
    fn small_changes_share_a_block_until_somebody_refers_to_it() {
        let mut backlog = Backlog::beginning_at(100);
        for _ in 0..100 {
            backlog.append(&[b'x'; 100]);
        }
        assert_eq!(backlog.blocks.len(), 1);
        let mut pieces = Vec::new();
        assert_eq!(backlog.take(100, u64::MAX, usize::MAX, &mut pieces), Some(10_100));
        backlog.append(b"new");
        assert_eq!((backlog.blocks.len(), pieces[0].as_slice().len()), (2, 10_000));
        drop(pieces);
        backlog.append(b"er");
        assert_eq!(backlog.taken(10_100, u64::MAX, 1), Some((b"newer".to_vec(), 10_105)));
        backlog.check();
    }

    #[test]
    fn a_stream_of_small_changes_takes_little_more_than_its_bytes() {
        let mut backlog = Backlog::beginning_at(0);
        for _ in 0..20_000 {
            backlog.append(&[b'x'; 49]);
        }
        let room: usize = backlog.blocks.iter().map(|block| block.bytes.capacity()).sum();
        assert!(room as u64 <= backlog.bytes() + backlog.bytes() / 50, "{room}");
        backlog.check();
    }

    #[test]
    fn what_is_taken_ends_with_a_transaction_or_where_the_file_does() {
        let mut backlog = Backlog::beginning_at(0);
        let unit: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        backlog.append(&unit);
        backlog.append(&unit);
        backlog.check();
        assert_eq!(backlog.taken(0, u64::MAX, 1), Some((unit.clone(), 200_000)));
        assert_eq!(backlog.taken(70_001, 70_003, 1), Some((unit[70_001..70_003].to_vec(), 70_003)));
        assert_eq!(backlog.taken(5, 5, 100), Some((vec![], 5)));
        assert_eq!(backlog.taken(400_000, u64::MAX, 100), Some((vec![], 400_000)));
        assert_eq!(backlog.taken(400_001, u64::MAX, 100), None);
    }

    #[test]
    fn whole_transactions_of_the_front_can_be_taken_out() {
        let mut backlog = Backlog::beginning_at(7);
        for _ in 0..4 {
            backlog.append(&[b'x'; 200_000]);
        }
        let sizes = |most, wanted| {
            let front = backlog.front(most, wanted);
            assert!(front.last().is_none_or(|(_, ends_unit)| *ends_unit));
            front.iter().map(|(bytes, _)| bytes.len()).sum::<usize>()
        };
        assert_eq!((sizes(1, 0), sizes(200_001, 0)), (200_000, 400_000));
        assert_eq!((sizes(1, 600_001), sizes(usize::MAX, 500_000)), (0, 200_000));
        // The last block stays, and so what it is a part of.
        assert_eq!(sizes(usize::MAX, 0), 600_000);
        let count = backlog.front(1, 0).len();
        backlog.drop_front(count);
        assert_eq!((backlog.first(), backlog.bytes()), (200_007, 600_000));
        backlog.check();
    }

    #[test]
    fn blocks_are_dropped_that_nobody_needs_and_that_are_not_wanted() {
        let mut backlog = Backlog::beginning_at(7);
        for _ in 0..10 {
            backlog.append(&[b'x'; 20_000]);
        }
        backlog.trim(50_000, 7 + 40_000, 0);
        assert_eq!((backlog.first(), backlog.bytes()), (40_007, 160_000));
        backlog.trim(50_000, u64::MAX, 0);
        // As many whole ones as are needed for what is wanted.
        assert_eq!(backlog.bytes(), 60_000);
        backlog.check();
        assert!(backlog.taken(140_006, u64::MAX, 1).is_none() && backlog.reaches(140_007));
        backlog.trim(0, u64::MAX, 0);
        assert_eq!((backlog.first(), backlog.bytes()), (200_007, 0));
        backlog.check();
    }
}
