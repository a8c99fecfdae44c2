//! One bucket: a cache line of seven tagged entry pointers, and the chain of overflow buckets after
//! a full one.
//!
//! ```text
//!  meta (8 bytes)                                    words (7 x 8 bytes)
//! +----+----+----+----+----+----+----+-------+      +----------------------+-------------------+
//! | t0 | t1 | t2 | t3 | t4 | t5 | t6 | state | ...  | high 16 of position  | 48-bit address    |
//! +----+----+----+----+----+----+----+-------+      +----------------------+-------------------+
//! state: bits 0-6 = word i holds an entry; bit 7 = word 6 links to an overflow bucket
//! ```
//!
//! A position (24 bits of the hash) is stored as 16 bits in the pointer and 8 in the tag, so moving
//! and scanning never touch an entry. All fields are relaxed atomics because prefetching threads
//! read primary buckets without the lock; the lock orders everything else.
//!
//! Invariants of a chain (`check_chain` verifies each; the numbers continue those of `table.rs`)
//!  5. If bit i of the state is set, word i is the address of an entry that the table owns. The
//!     bits above the address are the high part of the entry's position; tag i is the low part.
//!     Absent words are null.
//!  6. If bit 7 is set, word 6 is the address of a live overflow bucket allocated by
//!     `Bucket::overflow` and owned by this chain alone, and bit 6 is clear.
//!  7. Every bucket but the last of a chain holds six entries and the link; if the last one is an
//!     overflow bucket, it holds at least two entries. So only the last bucket has room.

use crate::entry::KEY_AT_MAX;
use crate::prefetch::prefetch;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

pub(super) const WORDS: usize = 7;
const LINK: u64 = 1 << 63;
const STATE_SHIFT: u32 = 56;
const LINK_WORD: usize = 6;
const ADDRESS_BITS: u32 = 48;
pub(super) const ADDRESS_MASK: usize = (1 << ADDRESS_BITS) - 1;

/// A position in hash space: the top 24 bits of the hash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Position(pub(super) u32);

impl Position {
    /// One more than the last position.
    pub(super) const END: u32 = 1 << 24;

    #[inline(always)]
    pub(super) fn of_hash(hash: u64) -> Self {
        Self((hash >> 40) as u32)
    }

    #[inline(always)]
    fn tag(self) -> u64 {
        u64::from(self.0 & 0xff)
    }

    #[inline(always)]
    fn high(self) -> usize {
        (self.0 >> 8) as usize
    }
}

/// Returns a mask of the tags in `meta` that may equal the tag of `position`: bit 7 of byte i
/// stands for word i. May include one wrong word after a true match; the high part of the position
/// decides.
#[inline(always)]
fn candidates(meta: u64, position: Position) -> u64 {
    let differing = meta ^ (position.tag() * 0x0001_0101_0101_0101);
    differing.wrapping_sub(0x0001_0101_0101_0101) & !differing & 0x0080_8080_8080_8080
}

#[inline(always)]
fn pack(entry: *mut u8, position: Position) -> *mut u8 {
    entry.map_addr(|address| address | position.high() << ADDRESS_BITS)
}

/// Returns the entry's address in a word.
#[inline(always)]
pub(super) fn entry_of(word: *mut u8) -> *mut u8 {
    word.map_addr(|address| address & ADDRESS_MASK)
}

#[inline(always)]
fn has(meta: u64, i: usize) -> bool {
    meta >> STATE_SHIFT >> i & 1 != 0
}

#[repr(C, align(64))]
pub(super) struct Bucket {
    meta: AtomicU64,
    words: [AtomicPtr<u8>; WORDS],
}

/// The location of an entry.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) index: usize,
}

impl Place<'_> {
    #[inline(always)]
    pub(super) fn entry(self) -> *mut u8 {
        entry_of(self.bucket.words[self.index].load(Relaxed))
    }

    /// Replaces the entry with another one of the same position.
    #[inline(always)]
    pub(super) fn set_entry(self, entry: *mut u8) {
        let word = &self.bucket.words[self.index];
        let high = word.load(Relaxed).addr() & !ADDRESS_MASK;
        word.store(entry.map_addr(|address| address | high), Relaxed);
    }
}

impl Bucket {
    pub(super) const LAYOUT: Layout = Layout::new::<Self>();

    /// Allocates an empty overflow bucket. A bucket whose bits are all zero is empty.
    fn overflow<'a>() -> &'a Self {
        // SAFETY: the layout is not empty; zeroes are valid for every field.
        unsafe {
            let fresh = alloc_zeroed(Self::LAYOUT).cast::<Self>();
            fresh.as_ref().unwrap_or_else(|| handle_alloc_error(Self::LAYOUT))
        }
    }

    /// Frees an overflow bucket. Prefetches never follow links, so nothing else can be reading it.
    fn free(link: *mut u8) {
        // SAFETY: 6: it was made by `overflow`, and the caller has just unlinked it.
        unsafe { dealloc(link, Self::LAYOUT) };
    }

    #[inline(always)]
    fn next(&self) -> Option<&Self> {
        if self.meta.load(Relaxed) & LINK == 0 {
            return None;
        }
        // SAFETY: 6: the link is live as long as the chain is not changed.
        Some(unsafe { &*self.words[LINK_WORD].load(Relaxed).cast::<Self>() })
    }

    #[inline(always)]
    fn present(meta: u64) -> u32 {
        (meta >> STATE_SHIFT) as u32 & 0x7f
    }

    #[inline(always)]
    fn set(&self, i: usize, word: *mut u8, tag: u64) {
        let meta = self.meta.load(Relaxed) & !(0xff << (8 * i));
        self.words[i].store(word, Relaxed);
        self.meta.store(meta | tag << (8 * i) | 1 << (STATE_SHIFT as usize + i), Relaxed);
    }

    #[inline]
    fn clear(&self, i: usize) -> (*mut u8, u64) {
        let meta = self.meta.load(Relaxed);
        let word = self.words[i].load(Relaxed);
        self.words[i].store(null_mut(), Relaxed);
        self.meta.store(meta & !(0xff << (8 * i) | 1 << (STATE_SHIFT as usize + i)), Relaxed);
        (word, meta >> (8 * i) & 0xff)
    }

    /// Prefetches the cache lines of the entry that most likely has this `position`, up to its key,
    /// or of the overflow bucket.
    #[inline(always)]
    pub(super) fn prefetch_entry(&self, position: Position) {
        let meta = self.meta.load(Relaxed);
        let found = candidates(meta, position);
        let i = if found != 0 { found.trailing_zeros() as usize / 8 } else { LINK_WORD };
        // A wrong guess costs a useless hint: the word may even be null or from an earlier state of
        // the bucket.
        if found != 0 || meta & LINK != 0 {
            // SAFETY: `candidates` sets bits of bytes 0 to 6 only, so i < WORDS.
            let word = unsafe { self.words.get_unchecked(i) };
            let entry = entry_of(word.load(Relaxed));
            prefetch(entry);
            // The key may be on the next line, as it is after an object in every other 48-byte
            // entry.
            prefetch(entry.wrapping_add(KEY_AT_MAX));
        }
    }

    /// Prefetches the cache lines of all entries of this bucket.
    pub(super) fn prefetch_all(&self) {
        for word in &self.words {
            prefetch(entry_of(word.load(Relaxed)));
        }
    }

    /// Returns the location of the entry in this chain that has `position` and for which `is_key`
    /// returns true.
    #[inline(always)]
    pub(super) fn find(
        &self,
        position: Position,
        mut is_key: impl FnMut(*mut u8) -> bool,
    ) -> Option<Place<'_>> {
        let mut bucket = self;
        loop {
            let meta = bucket.meta.load(Relaxed);
            let mut found = candidates(meta, position);
            while found != 0 {
                let index = found.trailing_zeros() as usize / 8;
                // SAFETY: `candidates` sets bits of bytes 0 to 6 only, so index < WORDS.
                let word = unsafe { bucket.words.get_unchecked(index) }.load(Relaxed);
                if word.addr() >> ADDRESS_BITS == position.high()
                    && has(meta, index)
                    && is_key(entry_of(word))
                {
                    return Some(Place { bucket, index });
                }
                found &= found - 1;
            }
            bucket = bucket.next()?;
        }
    }

    /// Adds an entry to the chain.
    #[inline]
    pub(super) fn push(&self, position: Position, entry: *mut u8) -> Place<'_> {
        self.push_word(pack(entry, position), position.tag())
    }

    fn push_word(&self, word: *mut u8, tag: u64) -> Place<'_> {
        let mut bucket = self;
        while let Some(next) = bucket.next() {
            bucket = next;
        }
        let free = !Self::present(bucket.meta.load(Relaxed)) & 0x7f;
        if free != 0 {
            let index = free.trailing_zeros() as usize;
            bucket.set(index, word, tag);
            return Place { bucket, index };
        }
        let overflow = Self::overflow();
        let (moved, moved_tag) = bucket.clear(LINK_WORD);
        overflow.set(0, moved, moved_tag);
        overflow.set(1, word, tag);
        let link = std::ptr::from_ref(overflow).cast_mut().cast();
        bucket.words[LINK_WORD].store(link, Relaxed);
        bucket.meta.store(bucket.meta.load(Relaxed) | LINK, Relaxed);
        Place { bucket: overflow, index: 1 }
    }

    /// Removes the entry at `place` from the chain that starts here, and fills the hole from the
    /// chain's last bucket (7).
    pub(super) fn remove(&self, place: Place<'_>) -> *mut u8 {
        let entry = place.entry();
        let mut before = None;
        let mut last = self;
        while let Some(next) = last.next() {
            before = Some(last);
            last = next;
        }
        place.bucket.clear(place.index);
        if !std::ptr::eq(last, place.bucket) {
            let filler = Self::present(last.meta.load(Relaxed)).ilog2() as usize;
            let (word, tag) = last.clear(filler);
            place.bucket.set(place.index, word, tag);
        }
        if let Some(before) = before {
            let left = Self::present(last.meta.load(Relaxed));
            if left.count_ones() == 1 {
                let (word, tag) = last.clear(left.trailing_zeros() as usize);
                let link = before.words[LINK_WORD].load(Relaxed);
                before.meta.store(before.meta.load(Relaxed) & !LINK, Relaxed);
                before.set(LINK_WORD, word, tag);
                Self::free(link);
            }
        }
        entry
    }

    /// Calls `f` with the position and location of every entry of the chain; `f` must not change
    /// the chain.
    #[inline]
    pub(super) fn for_each<'a>(&'a self, mut f: impl FnMut(Position, Place<'a>)) {
        let mut bucket = self;
        loop {
            let meta = bucket.meta.load(Relaxed);
            let mut present = Self::present(meta);
            while present != 0 {
                let index = present.trailing_zeros() as usize;
                let high = bucket.words[index].load(Relaxed).addr() >> ADDRESS_BITS;
                let tag = meta >> (8 * index) & 0xff;
                f(Position((high as u32) << 8 | tag as u32), Place { bucket, index });
                present &= present - 1;
            }
            match bucket.next() {
                Some(next) => bucket = next,
                None => return,
            }
        }
    }

    /// Empties the chain, frees its overflow buckets, and passes every entry to `f`.
    pub(super) fn drain(&self, mut f: impl FnMut(Position, *mut u8)) {
        self.for_each(|position, place| f(position, place.entry()));
        let mut link = self.take_link();
        self.reset();
        while let Some(bucket) = link {
            // SAFETY: 6: an owned, live overflow bucket, freed only below.
            link = unsafe { &*bucket.cast::<Self>() }.take_link();
            Self::free(bucket);
        }
    }

    fn take_link(&self) -> Option<*mut u8> {
        self.next()?;
        Some(self.words[LINK_WORD].load(Relaxed))
    }

    fn reset(&self) {
        self.meta.store(0, Relaxed);
        for word in &self.words {
            word.store(null_mut(), Relaxed);
        }
    }

    /// Returns the number of entries in the chain.
    #[inline]
    pub(super) fn chain_len(&self) -> usize {
        let mut len = 0;
        let mut bucket = Some(self);
        while let Some(b) = bucket {
            len += Self::present(b.meta.load(Relaxed)).count_ones() as usize;
            bucket = b.next();
        }
        len
    }

    /// Returns the `n`-th entry of the chain in its current order.
    pub(super) fn nth(&self, n: usize) -> Option<Place<'_>> {
        let mut at = 0;
        let mut found = None;
        self.for_each(|_, place| {
            if at == n {
                found = Some(place);
            }
            at += 1;
        });
        found
    }

    /// Returns the number of overflow buckets after this one.
    pub(super) fn overflow_buckets(&self) -> usize {
        std::iter::successors(self.next(), |bucket| bucket.next()).count()
    }

    /// Verifies 5 to 7.
    pub(super) fn check_chain(&self) {
        let mut bucket = self;
        loop {
            let meta = bucket.meta.load(Relaxed);
            for (i, word) in bucket.words.iter().enumerate() {
                let linked = i == LINK_WORD && meta & LINK != 0;
                let null = word.load(Relaxed).is_null();
                assert!(!(linked && has(meta, i)), "6: link and entry in one word");
                assert!(linked || has(meta, i) || null, "5: absent word not null");
                assert!(!has(meta, i) || !entry_of(word.load(Relaxed)).is_null(), "5: null entry");
                assert!(!linked || !null, "6: null link");
            }
            let entries = Self::present(meta).count_ones();
            let Some(next) = bucket.next() else {
                assert!(std::ptr::eq(bucket, self) || entries >= 2, "7: nearly empty overflow");
                return;
            };
            assert_eq!(entries, 6, "7: a hole before the last bucket");
            bucket = next;
        }
    }
}
