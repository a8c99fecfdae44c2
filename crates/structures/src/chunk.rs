//! Chunks of long strings: bytes that values share, and that replies refer to while they are sent.
//!
//! ```text
//!  string ── Chunk ─┐
//!  clone  ── Chunk ─┼─► ChunkBytes { owners: 2, … }
//!  reply being sent ┘
//! ```
//!
//! A [`Chunk`] belongs to a string. A reply holds only the [`ChunkBytes`] ([`Chunk::lend`]). If the
//! last string drops the bytes while replies still refer to them, the bytes count as orphaned
//! ([`orphaned_bytes`]) until the last reply is sent. So their memory is always accounted for,
//! however many replies refer to it.
//!
//! Invariants
//!  1. `owners` is the number of [`Chunk`]s that share the bytes. A [`Chunk`] that was dropped as
//!     the last of all references is still included.
//!  2. `orphaned` is 0, or the number of bytes that this chunk contributes to [`orphaned_bytes`].
//!     It changes once, while the last [`Chunk`] still exists.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The sum of `orphaned` over all chunks.
static ORPHANED: AtomicU64 = AtomicU64::new(0);

/// Returns the memory, in bytes, of chunks to which replies still refer but which no string owns
/// any more. O(1).
#[must_use]
pub fn orphaned_bytes() -> u64 {
    ORPHANED.load(Ordering::Relaxed)
}

/// The bytes of a chunk.
#[derive(Debug)]
pub struct ChunkBytes {
    bytes: Vec<u8>,
    owners: AtomicUsize,
    orphaned: AtomicUsize,
}

impl Deref for ChunkBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for ChunkBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ChunkBytes {
    fn drop(&mut self) {
        let orphaned = *self.orphaned.get_mut();
        if orphaned > 0 {
            ORPHANED.fetch_sub(orphaned as u64, Ordering::Relaxed);
        }
    }
}

/// A chunk that belongs to a string.
#[derive(Debug)]
pub struct Chunk(Arc<ChunkBytes>);

impl Chunk {
    /// Memory overhead per chunk in bytes, in addition to the capacity of the content.
    pub(crate) const OVERHEAD_BYTES: usize = 2 * size_of::<usize>() + size_of::<ChunkBytes>();

    /// Creates a chunk that one string owns.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Chunk {
        let (owners, orphaned) = (AtomicUsize::new(1), AtomicUsize::new(0));
        Chunk(Arc::new(ChunkBytes { bytes, owners, orphaned }))
    }

    /// Returns a reference for a reply. Later changes to the string do not affect the bytes that
    /// the reply sees.
    #[inline]
    #[must_use]
    pub fn lend(&self) -> Arc<ChunkBytes> {
        Arc::clone(&self.0)
    }

    /// Returns true if the two chunks share the same bytes, not merely equal ones.
    #[must_use]
    pub fn ptr_eq(this: &Chunk, other: &Chunk) -> bool {
        Arc::ptr_eq(&this.0, &other.0)
    }

    /// Returns the bytes for writing. They are copied first if anything else refers to them. O(1),
    /// or O(bytes) with a copy.
    #[must_use]
    pub fn make_mut(&mut self) -> &mut Vec<u8> {
        if Arc::get_mut(&mut self.0).is_none() {
            *self = Chunk::new(self.0.bytes.clone());
        }
        &mut Arc::get_mut(&mut self.0).expect("nothing else refers to the bytes").bytes
    }
}

impl Clone for Chunk {
    #[inline]
    fn clone(&self) -> Chunk {
        self.0.owners.fetch_add(1, Ordering::Relaxed);
        Chunk(Arc::clone(&self.0))
    }
}

impl Drop for Chunk {
    #[inline]
    fn drop(&mut self) {
        // There is no other reference, so the bytes are freed.
        if Arc::strong_count(&self.0) == 1 {
            return;
        }
        if self.0.owners.fetch_sub(1, Ordering::AcqRel) == 1 {
            orphan(&self.0);
        }
    }
}

/// Counts the bytes as orphaned when the last string drops them. The caller's reference still
/// exists.
#[cold]
fn orphan(chunk: &ChunkBytes) {
    let bytes = chunk.bytes.capacity() + Chunk::OVERHEAD_BYTES;
    chunk.orphaned.store(bytes, Ordering::Relaxed);
    ORPHANED.fetch_add(bytes as u64, Ordering::Relaxed);
}

impl Deref for Chunk {
    type Target = Vec<u8>;

    #[inline]
    fn deref(&self) -> &Vec<u8> {
        &self.0.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// The tests of this module run one after another; other tests lend no chunks.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn bytes_are_orphaned_from_the_last_string_to_the_last_reply() {
        let _turn = TURN.lock().unwrap();
        const BYTES: usize = 1 << 16;
        for replies in 0..4 {
            for clones in 0..3 {
                let mut strings = vec![Chunk::new(vec![7; BYTES])];
                strings.extend((0..clones).map(|_| strings[0].clone()).collect::<Vec<_>>());
                let mut lent: Vec<_> = (0..replies).map(|_| strings[0].lend()).collect();
                while let Some(string) = strings.pop() {
                    assert_eq!(orphaned_bytes(), 0);
                    drop(string);
                }
                while let Some(reply) = lent.pop() {
                    let orphaned = orphaned_bytes() as usize;
                    assert!((BYTES..BYTES + 128).contains(&orphaned), "{orphaned}");
                    assert!(reply.iter().all(|byte| *byte == 7));
                }
                assert_eq!(orphaned_bytes(), 0);
            }
        }
    }

    #[test]
    fn a_change_orphans_what_replies_alone_refer_to() {
        let _turn = TURN.lock().unwrap();
        let mut string = Chunk::new(vec![1; 100]);
        let before: *const u8 = string.as_ptr();
        string.make_mut()[0] = 2;
        assert_eq!(string.as_ptr(), before, "nothing else refers to it");
        let other = string.clone();
        let reply = string.lend();
        string.make_mut()[0] = 3;
        assert!(!Chunk::ptr_eq(&string, &other));
        assert_eq!((string[0], other[0], reply[0]), (3, 2, 2));
        assert_eq!(orphaned_bytes(), 0, "the other string has them");
        drop(other);
        assert!(orphaned_bytes() >= 100);
        drop(reply);
        assert_eq!(orphaned_bytes(), 0);
    }

    #[test]
    fn strings_and_replies_that_end_at_the_same_time_leave_nothing_counted() {
        let _turn = TURN.lock().unwrap();
        for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
            let string = Chunk::new(vec![1; 64]);
            let (clone, one, two) = (string.clone(), string.lend(), string.lend());
            std::thread::scope(|scope| {
                scope.spawn(move || drop((string, one)));
                scope.spawn(move || drop((two, clone)));
            });
            assert_eq!(orphaned_bytes(), 0);
        }
    }
}
