//! The queue of a file's blocks, in order, from the reading thread to the loading threads.

use brisk_engine::DbIndex;
use brisk_persist::rdb::RdbBlock;
use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

/// Maximum memory of waiting blocks. A single block may take more.
const BYTES_MAX: usize = 16 << 20;

/// Entries of one database.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) db: DbIndex,
    /// The number of keys of the database in the whole file, according to the file.
    pub(super) expected: u64,
    pub(super) block: RdbBlock,
}

/// Blocks that wait to be loaded.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    parts: VecDeque<Part>,
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    /// Adds a block, after waiting for room if necessary. Returns false if no more blocks are wanted.
    pub(super) fn put(&self, part: Part) -> bool {
        let bytes = part.block.allocated_bytes();
        let has_room = |waiting: &Waiting| {
            waiting.parts.is_empty() || waiting.bytes + bytes <= BYTES_MAX || waiting.is_closed
        };
        let mut waiting = self.waiting.lock().even_poisoned();
        while !has_room(&waiting) {
            waiting = self.changed.wait(waiting).even_poisoned();
        }
        if waiting.is_closed {
            return false;
        }
        waiting.bytes += bytes;
        waiting.parts.push_back(part);
        self.changed.notify_all();
        true
    }

    /// The next block; `None` after the last.
    pub(super) fn take(&self) -> Option<Part> {
        let mut waiting = self.waiting.lock().even_poisoned();
        while waiting.parts.is_empty() && !waiting.is_closed {
            waiting = self.changed.wait(waiting).even_poisoned();
        }
        let next = waiting.parts.pop_front()?;
        waiting.bytes -= next.block.allocated_bytes();
        self.changed.notify_all();
        Some(next)
    }

    /// Notes that no more blocks will be added.
    pub(super) fn close(&self) {
        self.waiting.lock().even_poisoned().is_closed = true;
        self.changed.notify_all();
    }

    /// Notes that no more blocks are wanted.
    pub(super) fn give_up(&self) {
        let mut waiting = self.waiting.lock().even_poisoned();
        waiting.parts.clear();
        waiting.is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brisk_persist::rdb::{RdbPiece, RdbSplitter};

    fn database(number: usize) -> DbIndex {
        DbIndex::checked(number, 16).expect("one of sixteen databases")
    }

    fn part(db: usize, value_bytes: usize) -> Part {
        let len = (value_bytes as u32).to_be_bytes();
        let file = [&b"REDIS0010\0\x01k\x80"[..], &len, &vec![b'v'; value_bytes]].concat();
        let mut splitter = RdbSplitter::new(&file[..]).expect("a header");
        match splitter.next_piece() {
            Ok(Some(RdbPiece::Entries(block))) => Part { db: database(db), expected: 0, block },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_come_in_order_and_the_reader_waits_for_room() {
        let queue = Queue::default();
        let sizes = [10, BYTES_MAX * 2, 20, BYTES_MAX / 2, BYTES_MAX, 30];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (db, size) in sizes.into_iter().enumerate() {
                    assert!(queue.put(part(db, size)));
                }
                queue.close();
            });
            for db in 0..sizes.len() {
                assert_eq!(queue.take().map(|part| part.db), Some(database(db)));
            }
            assert!(queue.take().is_none());
        });
    }

    #[test]
    fn an_abandoned_queue_blocks_neither_side() {
        let queue = Queue::default();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| while queue.put(part(0, BYTES_MAX / 4)) {});
            assert!(queue.take().is_some());
            queue.give_up();
            assert!(queue.take().is_none());
            reader.join().expect("no panic");
        });
    }
}
