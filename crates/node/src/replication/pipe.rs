//! A snapshot on its way to replicas while it is written: blocks that all of them share.
//!
//! ```text
//!   brisk-sync ──► block ─ block ─ block ─ block
//!                  ^ slowest replica       ^ another
//! ```
//!
//! No more than [`HELD_BYTES_MAX`] are held: the writer waits until the slowest replica has taken a block.
//! Who takes none for long is dropped by its worker, so that the others go on.
//!
//! Invariants (`check` verifies each)
//!  1. `bytes` is the sum of the blocks' lengths.
//!  2. No reader is before the first block, or behind the last.
//!  3. When there are readers, one of them has not taken the first block.

use brisk_structures::poison::EvenPoisoned;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes that are written and not taken by all, at most: a block more.
pub const HELD_BYTES_MAX: usize = 8 << 20;
/// A block has so many bytes; the last has less.
const BLOCK_BYTES: usize = 128 << 10;
/// How long the writer waits before it looks whether anybody wants what it writes.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What there is for a reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Block(Arc<Vec<u8>>),
    /// More will be written; the reader's worker is woken then.
    NotYet,
    /// It has all.
    End,
}

/// One of them.
pub struct Pipe {
    /// What its readers are told that marks the end.
    mark: String,
    state: Mutex<State>,
    /// A block was taken by all, or a reader is gone.
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
    /// Nothing more will come.
    is_whole: bool,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    worker: usize,
    /// The number of the block that it takes next.
    next: u64,
    /// It found none.
    waits: bool,
}

impl State {
    fn drop_what_all_have(&mut self) {
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

impl Pipe {
    /// Without readers. The mark must be one that the snapshot does not have in it.
    pub fn new(mark: String) -> Pipe {
        Pipe { mark, state: Mutex::default(), changed: Condvar::new() }
    }

    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// A reader of this worker wants all of it; its number. Only before anything is written.
    pub(super) fn join(&self, worker: usize) -> u64 {
        let mut state = self.state.lock().even_poisoned();
        let number = state.next_reader;
        state.next_reader += 1;
        state.readers.push(Reader { number, worker, next: 0, waits: false });
        number
    }

    /// It wants no more.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.state.lock().even_poisoned();
        state.readers.retain(|reader| reader.number != number);
        state.drop_what_all_have();
        self.changed.notify_all();
    }

    /// The next block for a reader. O(readers).
    pub(super) fn take(&self, number: u64) -> Next {
        let mut guard = self.state.lock().even_poisoned();
        let state = &mut *guard;
        let Some(reader) = state.readers.iter_mut().find(|reader| reader.number == number) else {
            return Next::End;
        };
        // Within the list, so it fits.
        let Some(block) = state.blocks.get((reader.next - state.first) as usize) else {
            reader.waits = !state.is_whole;
            return if state.is_whole { Next::End } else { Next::NotYet };
        };
        reader.next += 1;
        let block = Arc::clone(block);
        state.drop_what_all_have();
        self.changed.notify_all();
        Next::Block(block)
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.state.lock().even_poisoned().bytes as u64
    }

    /// Adds a block when there is room for it; the workers of readers that waited for one.
    fn put(&self, block: Vec<u8>, is_over: &dyn Fn() -> bool) -> io::Result<Vec<usize>> {
        let mut state = self.state.lock().even_poisoned();
        while state.bytes >= HELD_BYTES_MAX {
            if is_over() {
                return Err(io::Error::other("nobody wants it any more"));
            }
            let is_full = |state: &mut State| state.bytes >= HELD_BYTES_MAX;
            let waited = self.changed.wait_timeout_while(state, LOOK_AGAIN, is_full);
            state = waited.even_poisoned().0;
        }
        state.bytes += block.len();
        state.blocks.push_back(Arc::new(block));
        // Nobody may read at all by now.
        state.drop_what_all_have();
        Ok(state.take_waiting())
    }

    /// It was written to its end; the workers of readers that wait.
    pub(super) fn finish(&self) -> Vec<usize> {
        let mut state = self.state.lock().even_poisoned();
        state.is_whole = true;
        state.take_waiting()
    }
}

/// What is written goes into the pipe by blocks.
pub(super) struct PipeWriter<'p> {
    pipe: &'p Pipe,
    buffer: Vec<u8>,
    /// Nobody wants what is written.
    is_over: &'p dyn Fn() -> bool,
    /// Has a worker look at its replicas.
    wake: &'p dyn Fn(usize),
}

impl<'p> PipeWriter<'p> {
    pub(super) fn new(
        pipe: &'p Pipe,
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

    impl Pipe {
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

    fn pipe() -> Pipe {
        Pipe::new("mark".to_owned())
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
                        Next::Block(block) => {
                            let is_next = |(n, byte): (usize, &u8)| *byte == (at + n) as u8;
                            assert!(block.iter().enumerate().all(is_next));
                            at += block.len();
                            let ahead = written.load(Ordering::Relaxed).saturating_sub(at);
                            assert!(number == 1 || ahead <= HELD_BYTES_MAX + 2 * BLOCK_BYTES);
                            pipe.check();
                        }
                        Next::NotYet => std::thread::yield_now(),
                        Next::End => break at,
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
    fn a_reader_that_leaves_lets_the_others_go_on() {
        let pipe = pipe();
        let numbers = [pipe.join(0), pipe.join(1)];
        let block = || vec![0; BLOCK_BYTES];
        let mut count = 0;
        while pipe.bytes() < HELD_BYTES_MAX as u64 {
            pipe.put(block(), &|| false).unwrap();
            assert!(matches!(pipe.take(numbers[0]), Next::Block(_)));
            count += 1;
        }
        assert_eq!(pipe.take(numbers[0]), Next::NotYet);
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
        assert!(count > 1 && matches!(pipe.take(numbers[0]), Next::Block(_)));
        pipe.check();
        assert_eq!(pipe.take(numbers[0]), Next::NotYet);
        assert_eq!(pipe.finish(), [0]);
        assert_eq!(pipe.take(numbers[0]), Next::End);
    }

    #[test]
    fn nobody_waits_for_room_in_what_nobody_wants() {
        let pipe = pipe();
        pipe.join(0);
        let put = || pipe.put(vec![0; HELD_BYTES_MAX], &|| true);
        put().unwrap();
        assert!(put().is_err());
    }
}
