//! A snapshot that is sent to replicas while it is being written: blocks that all replicas share.
//!
//! ```text
//!   brisk-sync ──► block ─ block ─ block ─ block
//!                  ^ slowest replica       ^ another
//! ```
//!
//! At most [`HELD_BYTES_MAX`] bytes are held. Then the writer waits until the slowest replica has taken a block. If a
//! replica takes no block for a long time, its worker disconnects it so that the other replicas can continue.
//!
//! Invariants (`check` verifies each)
//!  1. `bytes` is the sum of the blocks' lengths.
//!  2. No reader is before the first block or after the last.
//!  3. If there are readers, at least one of them has not taken the first block.

use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The maximum number of bytes that are written but not yet taken by all readers. One more block may be held.
pub const HELD_BYTES_MAX: usize = 8 << 20;
/// The size of a block. The last block is smaller.
const BLOCK_BYTES: usize = 128 << 10;
/// How often a waiting writer checks that there are readers.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The next block for a reader, if any.
#[derive(Debug, PartialEq, Eq)]
pub enum PipeRead {
    Block(Arc<Vec<u8>>),
    /// More will be written. The reader's worker is woken when the next block is available.
    NotYet,
    /// The reader has taken all blocks.
    End,
}

/// A snapshot that several replicas read while it is being written.
pub struct SnapshotPipe {
    /// The end mark that follows the snapshot.
    mark: String,
    state: Mutex<State>,
    /// Notified when all readers have taken a block, or a reader has left.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    blocks: VecDeque<Arc<Vec<u8>>>,
    bytes: usize,
    /// The number of the first block.
    first: u64,
    readers: Vec<Reader>,
    /// The number of the next reader.
    next_reader: u64,
    /// No more blocks follow.
    is_whole: bool,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    worker: usize,
    /// The number of the next block that it takes.
    next: u64,
    /// True if the reader found no block and must be woken.
    waits: bool,
}

impl State {
    /// Drops blocks that all readers have taken.
    fn drop_taken(&mut self) {
        let needed = self.readers.iter().map(|reader| reader.next).min().unwrap_or(u64::MAX);
        while self.first < needed
            && let Some(block) = self.blocks.pop_front()
        {
            self.bytes -= block.len();
            self.first += 1;
        }
    }

    /// The workers of readers that wait.
    fn take_waiting(&mut self) -> Vec<usize> {
        let readers = self.readers.iter_mut();
        let waiting =
            readers.filter_map(|reader| std::mem::take(&mut reader.waits).then_some(reader.worker));
        waiting.collect()
    }
}

impl SnapshotPipe {
    /// A pipe without readers. The snapshot must not contain `mark`.
    pub fn new(mark: String) -> SnapshotPipe {
        SnapshotPipe { mark, state: Mutex::default(), changed: Condvar::new() }
    }

    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Adds a reader of this worker and returns its number. Called before the first block is written.
    pub(super) fn join(&self, worker: usize) -> u64 {
        let mut state = self.state.lock().even_poisoned();
        let number = state.next_reader;
        state.next_reader += 1;
        state.readers.push(Reader { number, worker, next: 0, waits: false });
        number
    }

    /// Removes a reader.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.state.lock().even_poisoned();
        state.readers.retain(|reader| reader.number != number);
        state.drop_taken();
        self.changed.notify_all();
    }

    /// The next block for a reader. O(readers).
    pub(super) fn take(&self, number: u64) -> PipeRead {
        let mut guard = self.state.lock().even_poisoned();
        let state = &mut *guard;
        let Some(reader) = state.readers.iter_mut().find(|reader| reader.number == number) else {
            return PipeRead::End;
        };
        // The difference is an index into the list, so it fits into `usize`.
        let Some(block) = state.blocks.get((reader.next - state.first) as usize) else {
            reader.waits = !state.is_whole;
            return if state.is_whole { PipeRead::End } else { PipeRead::NotYet };
        };
        reader.next += 1;
        let block = Arc::clone(block);
        state.drop_taken();
        self.changed.notify_all();
        PipeRead::Block(block)
    }

    /// True if the slowest replica is behind by half of the pipe, so it receives more slowly than the writer writes.
    pub(super) fn is_half_full(&self) -> bool {
        self.state.lock().even_poisoned().bytes > HELD_BYTES_MAX / 2
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> u64 {
        self.state.lock().even_poisoned().bytes as u64
    }

    /// Adds a block, after waiting for room if necessary. Returns the workers of readers that were waiting for a block.
    fn put(&self, block: Vec<u8>, is_over: &dyn Fn() -> bool) -> io::Result<Vec<usize>> {
        let mut state = self.state.lock().even_poisoned();
        while state.bytes >= HELD_BYTES_MAX {
            if is_over() {
                return Err(io::Error::other("no replica needs it any longer"));
            }
            let is_full = |state: &mut State| state.bytes >= HELD_BYTES_MAX;
            let waited = self.changed.wait_timeout_while(state, LOOK_AGAIN, is_full);
            state = waited.even_poisoned().0;
        }
        state.bytes += block.len();
        state.blocks.push_back(Arc::new(block));
        // If there is no reader left, this drops the block.
        state.drop_taken();
        Ok(state.take_waiting())
    }

    /// Notes that the snapshot is complete. Returns the workers of readers that wait.
    pub(super) fn finish(&self) -> Vec<usize> {
        let mut state = self.state.lock().even_poisoned();
        state.is_whole = true;
        state.take_waiting()
    }
}

/// Writes to the pipe in blocks.
pub(super) struct PipeWriter<'p> {
    pipe: &'p SnapshotPipe,
    buffer: Vec<u8>,
    /// Returns true if the snapshot is no longer needed.
    is_over: &'p dyn Fn() -> bool,
    /// Notifies a worker of a block for its replicas.
    wake: &'p dyn Fn(usize),
}

impl<'p> PipeWriter<'p> {
    pub(super) fn new(
        pipe: &'p SnapshotPipe,
        is_over: &'p dyn Fn() -> bool,
        wake: &'p dyn Fn(usize),
    ) -> PipeWriter<'p> {
        PipeWriter { pipe, buffer: Vec::with_capacity(BLOCK_BYTES), is_over, wake }
    }
}

impl Write for PipeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == BLOCK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            let block = std::mem::replace(&mut self.buffer, Vec::with_capacity(BLOCK_BYTES));
            self.pipe.put(block, self.is_over)?.into_iter().for_each(self.wake);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    impl SnapshotPipe {
        fn check(&self) {
            let state = self.state.lock().even_poisoned();
            assert_eq!(state.bytes, state.blocks.iter().map(|block| block.len()).sum::<usize>());
            assert!(state.bytes < HELD_BYTES_MAX + BLOCK_BYTES);
            let end = state.first + state.blocks.len() as u64;
            for reader in &state.readers {
                assert!((state.first..=end).contains(&reader.next));
            }
            let slowest = state.readers.iter().map(|reader| reader.next).min();
            assert!(slowest.is_none_or(|next| next == state.first));
        }
    }

    fn pipe() -> SnapshotPipe {
        SnapshotPipe::new("mark".to_owned())
    }

    #[test]
    fn all_readers_get_everything_and_the_slowest_holds_the_writer_up() {
        const BYTES: usize = HELD_BYTES_MAX * 3 + 17;
        let pipe = pipe();
        let numbers = [pipe.join(0), pipe.join(1)];
        let written = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = PipeWriter::new(&pipe, &|| false, &|_| {});
                for n in 0..BYTES {
                    writer.write_all(&[n as u8]).unwrap();
                    written.store(n, Ordering::Relaxed);
                }
                writer.flush().unwrap();
                pipe.finish();
            });
            let read = |number: u64| {
                let mut at = 0;
                loop {
                    match pipe.take(number) {
                        PipeRead::Block(block) => {
                            let is_next = |(n, byte): (usize, &u8)| *byte == (at + n) as u8;
                            assert!(block.iter().enumerate().all(is_next));
                            at += block.len();
                            let ahead = written.load(Ordering::Relaxed).saturating_sub(at);
                            assert!(number == 1 || ahead <= HELD_BYTES_MAX + 2 * BLOCK_BYTES);
                            pipe.check();
                        }
                        PipeRead::NotYet => std::thread::yield_now(),
                        PipeRead::End => break at,
                    }
                }
            };
            let fast = scope.spawn(move || read(numbers[1]));
            assert_eq!(read(numbers[0]), BYTES);
            assert_eq!(fast.join().unwrap(), BYTES);
        });
        assert_eq!(pipe.bytes(), 0);
    }

    #[test]
    fn a_reader_that_leaves_does_not_block_the_others() {
        let pipe = pipe();
        let numbers = [pipe.join(0), pipe.join(1)];
        let block = || vec![0; BLOCK_BYTES];
        let mut count = 0;
        while pipe.bytes() < HELD_BYTES_MAX as u64 {
            pipe.put(block(), &|| false).unwrap();
            assert!(matches!(pipe.take(numbers[0]), PipeRead::Block(_)));
            count += 1;
        }
        assert_eq!(pipe.take(numbers[0]), PipeRead::NotYet);
        let is_left = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(pipe.put(block(), &|| false).unwrap(), [0], "the one that waits");
                assert!(is_left.load(Ordering::SeqCst), "there was no room");
            });
            is_left.store(true, Ordering::SeqCst);
            pipe.leave(numbers[1]);
        });
        assert_eq!(pipe.bytes(), BLOCK_BYTES as u64);
        assert!(count > 1 && matches!(pipe.take(numbers[0]), PipeRead::Block(_)));
        pipe.check();
        assert_eq!(pipe.take(numbers[0]), PipeRead::NotYet);
        assert_eq!(pipe.finish(), [0]);
        assert_eq!(pipe.take(numbers[0]), PipeRead::End);
    }

    #[test]
    fn a_pipe_without_readers_fails_instead_of_waiting() {
        let pipe = pipe();
        pipe.join(0);
        let put = || pipe.put(vec![0; HELD_BYTES_MAX], &|| true);
        put().unwrap();
        assert!(put().is_err());
    }
}
