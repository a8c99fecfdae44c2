//! Keeps the oldest part of the stream in a file, for replicas whose full synchronization is in progress.
//!
//! ```text
//!   |---------- in the file ----------|-- block --|-- block --|-- block --|-- block --|
//!   ^ from        ^ a replica         ^ end: the backlog begins                  end of the stream
//! ```
//!
//! Sending a snapshot may take long, and all changes that are made during that time must follow it. Without the file,
//! these changes would fill the memory or exceed `client-output-buffer-limit`, and the replica would have to start over
//! each time. From the start of the snapshot until a replica has caught up, its missing bytes do not count toward that
//! limit as long as there is room for the file. Afterwards, its missing bytes count as for any other replica.
//!
//! A thread (`brisk-spill`, see `spilling`) runs while there are replicas that have not caught up. If there are too
//! many blocks in memory, it moves some from the front of the backlog to the end of the file. The workers of the
//! replicas read them back. Replicas that reconnect can resume in the file. The file has no name and disappears when no
//! replica needs it any more.

use super::backlog::StreamPiece;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes of blocks that are moved in one step. The number is rounded up to the end of a transaction.
pub(super) const MOVED_BYTES: usize = 4 << 20;
/// Minimum distance in bytes between two transaction ends that are noted. This is about the number of bytes that a
/// replica is given at a time.
const ENDS_APART: u64 = 128 << 10;

/// The file.
pub(super) struct Spilled {
    file: Arc<File>,
    /// The position of the file's first byte in the stream.
    from: u64,
    /// The position after the file's last byte. A transaction ends there.
    end: u64,
    /// Some of the positions where transactions end.
    ends: Vec<u64>,
}

/// Blocks at the front of the backlog that are to be moved. Together they are whole transactions.
pub(super) struct Move {
    /// `None` if there is no file yet.
    file: Option<(Arc<File>, u64)>,
    from: u64,
    blocks: Vec<(Arc<Vec<u8>>, bool)>,
}

impl Move {
    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The file and its length, if there is one.
    pub(super) fn file(&self) -> Option<(Arc<File>, u64)> {
        self.file.clone()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(|(bytes, _)| bytes.as_slice())
    }

    /// The position at which the blocks begin.
    pub(super) fn from(&self) -> u64 {
        self.from
    }
}

/// The next part of the file for a replica.
pub(super) struct Part {
    file: Arc<File>,
    at: u64,
    len: usize,
}

impl Part {
    pub(super) fn read(&self) -> io::Result<StreamPiece> {
        let mut bytes = vec![0; self.len];
        self.file.read_exact_at(&mut bytes, self.at)?;
        Ok(StreamPiece { bytes: Arc::new(bytes), range: 0..self.len })
    }
}

impl Spilled {
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end - self.from
    }

    /// The bytes between `from` and `until`, up to the end of a transaction after about `most` bytes, and the position
    /// after them. `None` if the file begins after `from`. O(log ends).
    pub(super) fn part(&self, from: u64, until: u64, most: usize) -> Option<(Part, u64)> {
        let at = from.checked_sub(self.from)?;
        let next = self.ends.partition_point(|end| *end < from.saturating_add(most as u64));
        let end = self.ends.get(next).copied().unwrap_or(self.end).min(until).max(from);
        // The part fits into memory, because it was in memory before.
        let len = (end - from) as usize;
        Some((Part { file: Arc::clone(&self.file), at, len }, end))
    }

    /// Prepares to move blocks, which begin at `from`, to the end of the file.
    pub(super) fn begin_move(
        spilled: Option<&Spilled>,
        from: u64,
        blocks: Vec<(Arc<Vec<u8>>, bool)>,
    ) -> Move {
        let file = spilled.map(|spilled| (Arc::clone(&spilled.file), spilled.bytes()));
        Move { file, from, blocks }
    }

    /// Notes that the blocks are in the file.
    pub(super) fn note_moved(spilled: &mut Option<Spilled>, moved: &Move, file: Arc<File>) {
        let from = moved.from;
        let spilled =
            spilled.get_or_insert_with(|| Spilled { file, from, end: from, ends: Vec::new() });
        for (bytes, ends_unit) in &moved.blocks {
            spilled.end += bytes.len() as u64;
            let last = spilled.ends.last().copied().unwrap_or(spilled.from);
            if *ends_unit && spilled.end - last >= ENDS_APART {
                spilled.ends.push(spilled.end);
            }
        }
    }
}

/// Bytes in memory beyond `repl-backlog-size` at which the stream spills to the file. This is half of the lower
/// `client-output-buffer-limit` of replicas, so that a replica that has caught up is within its limits.
pub fn memory_bytes_max(hard_bytes: u64, soft_bytes: u64) -> u64 {
    /// The value if there is no limit.
    const USUAL: u64 = 64 << 20;
    let limits = [hard_bytes / 2, soft_bytes / 2].into_iter().filter(|bytes| *bytes > 0);
    limits.min().unwrap_or(USUAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::disk;

    #[test]
    fn reads_end_at_transaction_boundaries() {
        let dir = std::env::temp_dir();
        let file = disk::nameless(&dir, &format!("brisk-spill-{}", std::process::id())).unwrap();
        let file = Arc::new(file);
        let mut spilled = None;
        let block = |n: u8, len: usize, ends| (Arc::new(vec![n; len]), ends);
        let (large, small) = (300 << 10, 1000);
        let moves = [
            (1000, vec![block(1, large, false), block(2, large, true)]),
            (1000 + 2 * large as u64, vec![block(3, small, true), block(4, small, true)]),
        ];
        for (from, blocks) in moves {
            let job = Spilled::begin_move(spilled.as_ref(), from, blocks);
            let mut at = job.file.as_ref().map_or(0, |(_, at)| *at);
            for (bytes, _) in &job.blocks {
                file.write_all_at(bytes, at).unwrap();
                at += bytes.len() as u64;
            }
            Spilled::note_moved(&mut spilled, &job, Arc::clone(&file));
        }
        let spilled = spilled.unwrap();
        let first_end = 1000 + 2 * large as u64;
        assert_eq!(spilled.end(), first_end + 2 * small as u64);
        let read = |from, until| {
            let (part, end) = spilled.part(from, until, 1)?;
            Some((part.read().unwrap().as_slice().to_vec(), end))
        };
        let (bytes, end) = read(1000, u64::MAX).unwrap();
        assert_eq!((bytes.len(), end), (2 * large, first_end));
        assert!(bytes[..large].iter().all(|byte| *byte == 1));
        let (bytes, end) = read(first_end, u64::MAX).unwrap();
        assert_eq!(bytes, [vec![3; small], vec![4; small]].concat());
        assert_eq!(end, spilled.end());
        assert_eq!(read(1500, 1502), Some((vec![1; 2], 1502)));
        assert_eq!(read(999, u64::MAX), None);
    }

    #[test]
    fn the_memory_bound_respects_both_limits() {
        assert_eq!(memory_bytes_max(256 << 20, 64 << 20), 32 << 20);
        assert_eq!(memory_bytes_max(10, 0), 5);
        assert_eq!(memory_bytes_max(10, 100), 5);
        assert_eq!(memory_bytes_max(0, 100), 50);
        assert_eq!(memory_bytes_max(0, 0), 64 << 20);
    }
}
