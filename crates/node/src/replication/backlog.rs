//! The latest part of the stream, held once for all replicas: replicas that follow the stream, replicas whose snapshot
//! is being sent, and replicas that reconnect.
//!
//! ```text
//!   first                                                                    end
//!    |-- block --|-- block --|-- block --|-- block --|-- block --|-- block --|
//!    ^ slowest replica        ^ another                    |<-- wanted_bytes -->|
//! ```
//!
//! A replica is a position in the backlog. The slowest replica determines how much is held, and the other replicas need
//! no additional memory. Output refers to a block and does not copy it. Only the last block grows, and only while no
//! output refers to it.
//!
//! Invariants (`check` verifies each)
//!  1. Blocks are not empty and follow one another without gaps. The last block ends at `end`.
//!  2. `bytes` is the sum of their lengths.
//!  3. A block with [`Block::ends_unit`] ends where a transaction ends. Bytes are handed out up to the end of such a
//!     block, unless the append-only file has fewer. This ensures that no other output for a replica comes between two
//!     halves of a command.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The last block grows up to this size, so that small changes share a block.
const TAIL_BYTES_MAX: usize = 16 * 1024;
/// The largest size of a block. A block is held whole even if only a part of it is needed.
pub(super) const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of blocks that are dropped in one call, in addition to the number that was added. After
/// `repl-backlog-size` is lowered, many blocks may have to be dropped.
const DROPPED_BLOCKS_MAX: usize = 256;

/// A part of the stream.
#[derive(Debug)]
struct Block {
    from: u64,
    bytes: Arc<Vec<u8>>,
    /// True if no command continues in the next block.
    ends_unit: bool,
}

impl Block {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

/// A piece of the stream that is to be sent.
#[derive(Debug, Clone)]
pub struct StreamPiece {
    pub bytes: Arc<Vec<u8>>,
    pub range: Range<usize>,
}

impl StreamPiece {
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
    /// An empty backlog at this position of the stream.
    pub(super) fn beginning_at(place: u64) -> Backlog {
        Backlog { blocks: VecDeque::new(), bytes: 0, end: place }
    }

    /// The position of the first byte that is held, or the end if there is none.
    pub(super) fn first(&self) -> u64 {
        self.blocks.front().map_or(self.end, |block| block.from)
    }

    /// The position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if a replica at this position can resume.
    pub(super) fn reaches(&self, place: u64) -> bool {
        (self.first()..=self.end).contains(&place)
    }

    /// Appends whole transactions. Amortized O(bytes).
    pub(super) fn append(&mut self, added: &[u8]) {
        self.bytes += added.len() as u64;
        if let Some(tail) = self.blocks.back_mut()
            && tail.bytes.len() + added.len() <= TAIL_BYTES_MAX
            && let Some(own) = Arc::get_mut(&mut tail.bytes)
        {
            let (len, room) = (own.len() + added.len(), own.capacity());
            if len > room {
                // Grow by doubling, like `Vec`, but not beyond the largest size of the block. Otherwise a third of the
                // memory for small changes would be unused.
                own.reserve_exact((2 * room).clamp(len, TAIL_BYTES_MAX) - own.len());
            }
            own.extend_from_slice(added);
            self.end += added.len() as u64;
            return;
        }
        for part in added.chunks(BLOCK_BYTES_MAX) {
            let bytes = Arc::new(part.to_vec());
            self.blocks.push_back(Block { from: self.end, bytes, ends_unit: false });
            self.end += part.len() as u64;
        }
        if let Some(last) = self.blocks.back_mut() {
            last.ends_unit = true;
        }
    }

    /// Drops blocks that end before `needed_from` from the front, as long as `wanted` bytes are left.
    /// O(blocks dropped).
    pub(super) fn trim(&mut self, wanted: u64, needed_from: u64, added: usize) {
        for _ in 0..DROPPED_BLOCKS_MAX + added / BLOCK_BYTES_MAX {
            let Some(front) = self.blocks.front() else { return };
            let left = self.bytes - front.bytes.len() as u64;
            if left < wanted || front.end() > needed_from {
                return;
            }
            self.bytes = left;
            self.blocks.pop_front();
        }
    }

    /// Returns blocks from the front that together contain whole transactions and have about `most` bytes. Returns
    /// fewer blocks if the remaining blocks would have less than `wanted` bytes. The last block is left out because it
    /// grows. O(blocks).
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

    /// Drops `count` blocks from the front. O(count).
    pub(super) fn drop_front(&mut self, count: usize) {
        for block in self.blocks.drain(..count) {
            self.bytes -= block.bytes.len() as u64;
        }
    }

    /// Adds the bytes between `from` and `until`, up to the first end of a transaction after `most` bytes. Returns the
    /// position after the added bytes, or `None` if the bytes are no longer held. O(log blocks + pieces).
    pub(super) fn take(
        &self,
        from: u64,
        until: u64,
        most: usize,
        into: &mut Vec<StreamPiece>,
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
            // Both differences are offsets within a block, so they fit into `usize`.
            let range = (at - block.from) as usize..(end - block.from) as usize;
            taken += range.len();
            into.push(StreamPiece { bytes: Arc::clone(&block.bytes), range });
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

        /// Takes bytes and returns them in one piece, with the position after them.
        fn taken(&self, from: u64, until: u64, most: usize) -> Option<(Vec<u8>, u64)> {
            let mut pieces = Vec::new();
            let end = self.take(from, until, most, &mut pieces)?;
            let bytes: Vec<u8> = pieces.iter().flat_map(StreamPiece::as_slice).copied().collect();
            assert_eq!(end, from + bytes.len() as u64);
            Some((bytes, end))
        }
    }

    #[test]
    fn small_changes_share_a_block_until_output_refers_to_it() {
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
    fn taken_bytes_end_with_a_transaction_or_where_the_file_ends() {
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
    fn complete_transactions_can_be_taken_from_the_front() {
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
        // The last block stays, together with the blocks of the same transaction.
        assert_eq!(sizes(usize::MAX, 0), 600_000);
        let count = backlog.front(1, 0).len();
        backlog.drop_front(count);
        assert_eq!((backlog.first(), backlog.bytes()), (200_007, 600_000));
        backlog.check();
    }

    #[test]
    fn blocks_that_are_not_needed_are_dropped_down_to_the_wanted_size() {
        let mut backlog = Backlog::beginning_at(7);
        for _ in 0..10 {
            backlog.append(&[b'x'; 20_000]);
        }
        backlog.trim(50_000, 7 + 40_000, 0);
        assert_eq!((backlog.first(), backlog.bytes()), (40_007, 160_000));
        backlog.trim(50_000, u64::MAX, 0);
        // The backlog keeps as many whole blocks as the wanted bytes require.
        assert_eq!(backlog.bytes(), 60_000);
        backlog.check();
        assert!(backlog.taken(140_006, u64::MAX, 1).is_none() && backlog.reaches(140_007));
        backlog.trim(0, u64::MAX, 0);
        assert_eq!((backlog.first(), backlog.bytes()), (200_007, 0));
        backlog.check();
    }
}
