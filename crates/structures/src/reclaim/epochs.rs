//! The reclamation protocol: stamps, announcements, and the oldest announcement.
//!
//! A participant's word is 0 if the participant is offline or the word is unused. Otherwise it is
//! the counter's value at the participant's last boundary. A stamp is drawn after an array is
//! unlinked. A participant that announces a value of at least the stamp has seen the unlinking.
//!
//! Why this is sufficient: a boundary reads the counter with acquire, so a participant whose word
//! reaches the stamp sees the unlinking and cannot find the array again. It stores its word with
//! release and the collector reads it with acquire, so the participant's earlier reads have
//! finished. For a thread coming online, both sides put a sequentially consistent fence between
//! their write and their read. Either the collector sees the word (and waits), or the thread sees
//! the unlinking.

// The atomics of the parent module: `std`'s, or loom's in `reclaim/model.rs`.
use super::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

pub(super) const OFFLINE: u64 = 0;
/// The counter's first value; above `OFFLINE`.
pub(super) const FIRST: u64 = 1;

/// One participant's word, on cache lines of its own since its owner writes it every batch.
#[repr(align(128))]
pub(super) struct Word {
    pub(super) seen: AtomicU64,
    pub(super) claimed: AtomicBool,
}

/// The shared state of up to `N` participants.
pub(super) struct Epochs<const N: usize> {
    pub(super) counter: AtomicU64,
    /// Words from this index on were never claimed, so collecting need not look at them.
    pub(super) claimed_max: AtomicUsize,
    pub(super) words: [Word; N],
}

impl<const N: usize> Epochs<N> {
    /// Claims a free word and sets it online; `None` if all are taken. O(N).
    pub(super) fn claim(&self) -> Option<usize> {
        let index = self.words.iter().position(|word| {
            word.claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        // Must precede the fence of `online`, like the write of the word itself, so that a
        // collector sees both or neither.
        self.claimed_max.fetch_max(index + 1, Ordering::AcqRel);
        self.online(index);
        Some(index)
    }

    /// Sets the word offline and frees it.
    pub(super) fn release(&self, index: usize) {
        self.offline(index);
        self.words[index].claimed.store(false, Ordering::Release);
    }

    pub(super) fn online(&self, index: usize) {
        let now = self.counter.load(Ordering::Acquire);
        self.words[index].seen.store(now, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    pub(super) fn offline(&self, index: usize) {
        self.words[index].seen.store(OFFLINE, Ordering::Release);
    }

    /// A boundary of an online participant: a load and a store, both plain on x86-64.
    #[inline]
    pub(super) fn announce_boundary(&self, index: usize) {
        let now = self.counter.load(Ordering::Acquire);
        self.words[index].seen.store(now, Ordering::Release);
    }

    /// Returns the stamp for an array that the caller has just unlinked.
    pub(super) fn stamp(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Returns the highest stamp that every online participant has passed. O(words ever claimed).
    pub(super) fn passed_by_all(&self) -> u64 {
        // An acquire load here orders the counter before the words: a stamp drawn later is not
        // covered even if no participant is online.
        let now = self.counter.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        let words = &self.words[..self.claimed_max.load(Ordering::Acquire)];
        words.iter().fold(now, |least, word| match word.seen.load(Ordering::Acquire) {
            OFFLINE => least,
            seen => least.min(seen),
        })
    }
}
