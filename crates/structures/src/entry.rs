//! Entry: a key, its value, its deadline and its access clock in one allocation.
//!
//! ```text
//!  byte 0     1..3           4        5              6..7
//! +------+----------------+-------+-----------+----------------+
//! | kind |  access clock  | flags | key_len   | inline length  |   header, always 8 bytes
//! +------+----------------+-------+-----------+----------------+
//! | deadline, ms (if flag DEADLINE)                            |   8 bytes
//! +------------------------------------------------------------+
//! | integer, or pointer of a Box<V> (if flag WORD)             |   8 bytes
//! +------------------------------------------------------------+
//! | key length as u32 (if key_len = 255) | key ... | inline value ... | slack up to the size class
//! +------------------------------------------------------------+
//! ```
//!
//! `kind` belongs to the caller (type and encoding); the clock's 24 bits too. No capacity is
//! stored: the allocation's size is the size class of what the header describes, so a value may
//! change in place whenever the class stays the same.
//!
//! Invariants (`check` verifies 1-4; SAFETY notes cite them by number)
//!  1. `pointer` is the start of a live allocation of `size_class(geometry.total)` bytes, aligned to
//!     8, owned by this `Entry` alone; all `geometry.total` bytes of it are initialised.
//!  2. The header's `shape` and the long key length describe that allocation; they change only
//!     through `&mut self` or in the constructor.
//!  3. Exactly one of: the value is inline bytes (neither WORD nor BOXED); an integer (WORD);
//!     a box (WORD and BOXED), and then the word is `Box::into_raw` of a box owned by this entry.
//!     Without WORD the inline length is the value's; with WORD it is 0.
//!  4. The key is at most `KEY_LEN_MAX` long; `key_len` is 255 exactly for keys of 255 bytes and more.
//!  5. The first four bytes are accessed as one relaxed atomic through `&self` (only the clock
//!     bits change); all others are written through `&mut self` only.

mod layout;

pub use layout::size_class;
use layout::{ALIGN, BOXED, DEADLINE, Geometry, HEADER, Header, LONG_KEY, Shape, WORD};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The longest key: 512 MiB, the protocol's limit for any string.
pub const KEY_LEN_MAX: usize = 512 << 20;
/// The longest value kept inline; longer ones must be boxed.
pub const INLINE_LEN_MAX: usize = u16::MAX as usize;
/// The access clock counts modulo 2^24.
pub const CLOCK_MASK: u32 = 0x00ff_ffff;

/// The value of an entry, borrowed.
#[derive(Debug)]
pub enum ValueRef<'a, V> {
    Bytes(&'a [u8]),
    Int(i64),
    Boxed(&'a V),
}

impl<V> Clone for ValueRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for ValueRef<'_, V> {}

/// An owned key with its value; the size of one pointer.
pub struct Entry<V> {
    pointer: NonNull<u8>,
    owns: PhantomData<Box<V>>,
}

// SAFETY: by 1 and 3 the entry owns its allocation and its V alone, so it may move with V.
unsafe impl<V: Send> Send for Entry<V> {}
// SAFETY: through & only the clock changes, atomically (5); V is shared as V allows.
unsafe impl<V: Sync> Sync for Entry<V> {}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGN)
        .expect("key and value limits keep capacities far below isize::MAX")
}

fn allocate(capacity: usize) -> NonNull<u8> {
    let layout = layout(capacity);
    // SAFETY: capacities are at least 8, never zero.
    let pointer = unsafe { alloc(layout) };
    NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
}

fn inline_len(len: usize) -> u16 {
    assert!(len <= INLINE_LEN_MAX, "values above {INLINE_LEN_MAX} bytes must be boxed");
    len as u16
}

impl<V> Entry<V> {
    /// An entry whose value is `value`, at most [`INLINE_LEN_MAX`] bytes (panics above). O(lengths).
    #[inline]
    #[must_use]
    pub fn new_bytes(key: &[u8], kind: u8, value: &[u8]) -> Self {
        let entry = Self::with_shape(key, kind, 0, inline_len(value.len()));
        // SAFETY: with_shape allocated room for the value behind the key (1).
        unsafe {
            let at = entry.pointer.as_ptr().add(entry.geometry().value_at());
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        entry
    }

    /// An entry whose value is an integer.
    #[must_use]
    pub fn new_int(key: &[u8], kind: u8, value: i64) -> Self {
        let mut entry = Self::with_shape(key, kind, WORD, 0);
        entry.write_int(value);
        entry
    }

    /// An entry whose value is `value`.
    #[must_use]
    pub fn new_boxed(key: &[u8], kind: u8, value: Box<V>) -> Self {
        let mut entry = Self::with_shape(key, kind, WORD | BOXED, 0);
        entry.write_word(Box::into_raw(value).cast());
        entry
    }

    /// Allocates, writes header and key; the caller initialises word and inline value at once.
    #[inline]
    fn with_shape(key: &[u8], kind: u8, flags: u8, inline_len: u16) -> Self {
        assert!(key.len() <= KEY_LEN_MAX, "keys are limited to {KEY_LEN_MAX} bytes");
        let shape = Shape { flags, key_len: key.len().min(LONG_KEY) as u8, inline_len };
        let geometry = Geometry::new(shape, key.len());
        let pointer = allocate(geometry.capacity());
        // SAFETY: the allocation holds geometry.total bytes, which include header, length and key.
        unsafe {
            let kind_clock = AtomicU32::new(u32::from(kind));
            pointer.cast::<Header>().write(Header { kind_clock, shape });
            write_key_len(pointer, geometry);
            let at = pointer.as_ptr().add(geometry.key_at);
            ptr::copy_nonoverlapping(key.as_ptr(), at, key.len());
        }
        Self { pointer, owns: PhantomData }
    }

    #[inline(always)]
    fn header(&self) -> &Header {
        // SAFETY: 1: every allocation starts with an initialised header.
        unsafe { self.pointer.cast::<Header>().as_ref() }
    }

    #[inline(always)]
    fn shape(&self) -> Shape {
        self.header().shape
    }

    #[inline(always)]
    fn geometry(&self) -> Geometry {
        let shape = self.shape();
        Geometry::new(shape, self.key_len(shape))
    }

    #[inline(always)]
    fn key_len(&self, shape: Shape) -> usize {
        let short = usize::from(shape.key_len);
        if short == LONG_KEY { self.long_key_len(shape) } else { short }
    }

    #[cold]
    fn long_key_len(&self, shape: Shape) -> usize {
        // SAFETY: 2 and 4: key_len = 255 says that a u32 stands behind the prefix.
        unsafe { self.pointer.as_ptr().add(shape.prefix()).cast::<u32>().read() as usize }
    }

    /// The key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        let Geometry { key_at, key_len, .. } = self.geometry();
        // SAFETY: 1 and 2: key_len initialised bytes stand at key_at.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().add(key_at), key_len) }
    }

    /// The caller's type and encoding byte.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.header().kind_clock.load(Relaxed) as u8
    }

    /// Replaces the caller's byte.
    #[inline]
    pub fn set_kind(&mut self, kind: u8) {
        let word = &self.header().kind_clock;
        word.store(word.load(Relaxed) & !0xff | u32::from(kind), Relaxed);
    }

    /// The access clock, 24 bits whose meaning is the caller's (LRU time or LFU counter).
    #[inline(always)]
    #[must_use]
    pub fn clock(&self) -> u32 {
        self.header().kind_clock.load(Relaxed) >> 8
    }

    /// Stores the access clock, modulo 2^24. Concurrent calls leave one of the values.
    #[inline(always)]
    pub fn set_clock(&self, clock: u32) {
        let word = &self.header().kind_clock;
        word.store(word.load(Relaxed) & 0xff | clock << 8, Relaxed);
    }

    /// The value.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> ValueRef<'_, V> {
        let shape = self.shape();
        if shape.flags & WORD == 0 {
            ValueRef::Bytes(self.inline_bytes())
        } else if shape.flags & BOXED == 0 {
            // SAFETY: 3: WORD without BOXED is an initialised integer at word_at.
            let int = unsafe { self.pointer.as_ptr().add(shape.word_at()).cast::<i64>().read() };
            ValueRef::Int(int)
        } else {
            // SAFETY: 3: the word is a live box owned by this entry, borrowed as long as `self`.
            ValueRef::Boxed(unsafe { &*self.read_word().cast::<V>() })
        }
    }

    #[inline(always)]
    fn inline_bytes(&self) -> &[u8] {
        let at = self.geometry().value_at();
        let len = usize::from(self.shape().inline_len);
        // SAFETY: 1 and 2: inline_len initialised bytes stand behind the key.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().add(at), len) }
    }

    /// The inline bytes for change in place; `None` for integers and boxes.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let shape = self.shape();
        if shape.flags & WORD != 0 {
            return None;
        }
        let at = self.geometry().value_at();
        let len = usize::from(shape.inline_len);
        // SAFETY: as in inline_bytes; &mut self makes the borrow exclusive (1).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr().add(at), len) })
    }

    /// The boxed value for change; `None` for bytes and integers.
    #[inline]
    pub fn boxed_mut(&mut self) -> Option<&mut V> {
        // SAFETY: 3: the word is a live box owned by this entry; &mut self makes it exclusive.
        self.is_boxed().then(|| unsafe { &mut *self.read_word().cast::<V>() })
    }

    #[inline(always)]
    fn is_boxed(&self) -> bool {
        self.shape().flags & BOXED != 0
    }

    /// Makes the value `value`, in place if the size class allows; drops a boxed value.
    /// Panics above [`INLINE_LEN_MAX`] bytes. O(key + value) at worst.
    #[inline]
    pub fn set_bytes(&mut self, value: &[u8]) {
        let shape = self.shape();
        if shape.flags & WORD == 0 && usize::from(shape.inline_len) == value.len() {
            // The commonest write of all: same length, nothing to move.
            if let Some(bytes) = self.bytes_mut() {
                bytes.copy_from_slice(value);
            }
            return;
        }
        let old = self.take_boxed();
        self.reshape(self.shape().flags & DEADLINE, inline_len(value.len()), false);
        let at = self.geometry().value_at();
        // SAFETY: reshape made room for value.len() bytes at value_at; `value` cannot lie inside
        // this entry because &mut self is exclusive.
        unsafe {
            let at = self.pointer.as_ptr().add(at);
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        drop(old);
    }

    /// Makes the value `new_len` bytes long, keeping what there is and zero-filling growth. An
    /// integer or boxed value is dropped and counts as empty. Panics above [`INLINE_LEN_MAX`].
    pub fn resize_bytes(&mut self, new_len: usize) {
        let old = self.take_boxed();
        let shape = self.shape();
        let kept = if shape.flags & WORD == 0 { usize::from(shape.inline_len) } else { 0 };
        self.reshape(shape.flags & DEADLINE, inline_len(new_len), true);
        if new_len > kept {
            let at = self.geometry().value_at();
            // SAFETY: reshape made room for new_len bytes at value_at.
            unsafe { self.pointer.as_ptr().add(at + kept).write_bytes(0, new_len - kept) };
        }
        drop(old);
    }

    /// Makes the value an integer; drops a boxed value.
    pub fn set_int(&mut self, value: i64) {
        let old = self.take_boxed();
        self.reshape(self.shape().flags & DEADLINE | WORD, 0, false);
        self.write_int(value);
        drop(old);
    }

    /// Makes the value a box; drops an earlier boxed value.
    pub fn set_boxed(&mut self, value: Box<V>) {
        let old = self.take_boxed();
        self.reshape(self.shape().flags & DEADLINE | WORD | BOXED, 0, false);
        self.write_word(Box::into_raw(value).cast());
        drop(old);
    }

    /// Takes a boxed value out and leaves the integer 0 in its place (in place, O(1)); `None` for
    /// other values.
    pub fn take_boxed(&mut self) -> Option<Box<V>> {
        if !self.is_boxed() {
            return None;
        }
        // SAFETY: 3: the word came from Box::into_raw; clearing BOXED below gives up ownership.
        let taken = unsafe { Box::from_raw(self.read_word().cast::<V>()) };
        let shape = self.shape();
        self.write_shape(Shape { flags: shape.flags & !BOXED, ..shape });
        self.write_int(0);
        Some(taken)
    }

    /// The boxed value, or the entry back if its value is of another form.
    pub fn into_boxed(mut self) -> Result<Box<V>, Self> {
        self.take_boxed().ok_or(self)
    }

    /// When the key expires, in Unix milliseconds; one bit test when it does not.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        if self.shape().flags & DEADLINE == 0 {
            return None;
        }
        // SAFETY: 2: the flag says that the deadline stands behind the header.
        Some(unsafe { self.pointer.as_ptr().add(HEADER).cast::<u64>().read() })
    }

    /// Sets or removes the deadline, moving key and value by 8 bytes if its presence changes.
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        let shape = self.shape();
        let flag = if deadline.is_some() { DEADLINE } else { 0 };
        if shape.flags & DEADLINE != flag {
            self.reshape(shape.flags & !DEADLINE | flag, shape.inline_len, true);
        }
        if let Some(at_ms) = deadline {
            // SAFETY: the flag is set now, so the field exists (2).
            unsafe { self.pointer.as_ptr().add(HEADER).cast::<u64>().write(at_ms) };
        }
    }

    /// Bytes of the entry's own allocation, rounded to its size class; a boxed value is not counted.
    #[inline]
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.geometry().capacity()
    }

    /// Gives the entry another key; value, deadline, kind and clock stay. O(key + inline value).
    #[must_use]
    pub fn with_key(mut self, new_key: &[u8]) -> Self {
        let shape = self.shape();
        let mut renamed =
            Self::with_shape(new_key, self.kind(), shape.flags & !BOXED, shape.inline_len);
        renamed.set_clock(self.clock());
        if let Some(at_ms) = self.deadline() {
            // SAFETY: the flag was passed on, so the field exists (2).
            unsafe { renamed.pointer.as_ptr().add(HEADER).cast::<u64>().write(at_ms) };
        }
        match self.take_boxed() {
            Some(value) => {
                let shape = renamed.shape();
                renamed.write_shape(Shape { flags: shape.flags | BOXED, ..shape });
                renamed.write_word(Box::into_raw(value).cast());
            }
            None => match self.value() {
                ValueRef::Int(value) => renamed.write_int(value),
                // A box was taken above; take_boxed leaves an integer, which is handled there.
                ValueRef::Bytes(bytes) => {
                    let at = renamed.geometry().value_at();
                    // SAFETY: with_shape made room for inline_len bytes in a new allocation.
                    unsafe {
                        let at = renamed.pointer.as_ptr().add(at);
                        ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
                    }
                }
                ValueRef::Boxed(_) => unreachable!("take_boxed left no box"),
            },
        }
        renamed
    }

    /// Changes which optional parts there are and how long the inline value is, keeping key,
    /// deadline and word where old and new have them, and with `keep_value` the common part of an
    /// inline value. New parts are uninitialised: the caller writes them at once. Boxes must have
    /// been taken out or keep their word.
    fn reshape(&mut self, flags: u8, inline_len: u16, keep_value: bool) {
        let old_shape = self.shape();
        let old = self.geometry();
        let shape = Shape { flags, key_len: old_shape.key_len, inline_len };
        let new = Geometry::new(shape, old.key_len);
        let deadline = self.deadline();
        let word = (old_shape.flags & flags & WORD != 0).then(|| self.read_word());
        let kept_value = if keep_value { old_shape.inline_len.min(inline_len) } else { 0 };
        let moved = old.key_len + usize::from(kept_value); // the value stands right behind the key
        // SAFETY: both ranges lie inside their allocations (1); `copy` allows them to overlap.
        // The old allocation is freed with the size it was made with, and not used again.
        unsafe {
            if old.capacity() == new.capacity() {
                let base = self.pointer.as_ptr();
                ptr::copy(base.add(old.key_at), base.add(new.key_at), moved);
            } else {
                let fresh = allocate(new.capacity());
                let from = self.pointer.as_ptr();
                ptr::copy_nonoverlapping(from, fresh.as_ptr(), HEADER);
                let to = fresh.as_ptr().add(new.key_at);
                ptr::copy_nonoverlapping(from.add(old.key_at), to, moved);
                dealloc(from, layout(old.capacity()));
                self.pointer = fresh;
            }
            write_key_len(self.pointer, new);
        }
        self.write_shape(shape);
        if let (Some(at_ms), true) = (deadline, flags & DEADLINE != 0) {
            // SAFETY: the new shape has the field (2).
            unsafe { self.pointer.as_ptr().add(HEADER).cast::<u64>().write(at_ms) };
        }
        if let Some(word) = word {
            self.write_word(word);
        }
    }

    fn write_shape(&mut self, shape: Shape) {
        // SAFETY: 1: the header is ours, and &mut self is exclusive (5).
        unsafe { (*self.pointer.cast::<Header>().as_ptr()).shape = shape };
    }

    #[inline(always)]
    fn read_word(&self) -> *mut u8 {
        debug_assert!(self.shape().flags & WORD != 0);
        // SAFETY: 3: WORD says that an initialised word stands at word_at; it is read as a pointer
        // so that a box keeps its provenance.
        unsafe { self.pointer.as_ptr().add(self.shape().word_at()).cast::<*mut u8>().read() }
    }

    fn write_word(&mut self, word: *mut u8) {
        debug_assert!(self.shape().flags & WORD != 0);
        // SAFETY: 2: WORD says that the word stands at word_at.
        unsafe { self.pointer.as_ptr().add(self.shape().word_at()).cast::<*mut u8>().write(word) }
    }

    fn write_int(&mut self, value: i64) {
        debug_assert!(self.shape().flags & (WORD | BOXED) == WORD);
        // SAFETY: 2: WORD says that the word stands at word_at.
        unsafe { self.pointer.as_ptr().add(self.shape().word_at()).cast::<i64>().write(value) }
    }

    /// Gives up ownership; only `from_raw` may take it again.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        let pointer = self.pointer;
        std::mem::forget(self);
        pointer
    }

    /// # Safety
    /// `pointer` came from `into_raw` of an `Entry<V>`, and the caller sees to it that of all
    /// entries made from it only one is dropped or used for change.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(pointer: NonNull<u8>) -> Self {
        Self { pointer, owns: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> NonNull<u8> {
        self.pointer
    }

    /// Verifies invariants 1 to 4 as far as they can be seen from inside.
    pub fn check(&self) {
        let shape = self.shape();
        assert_eq!(self.pointer.addr().get() % ALIGN, 0, "1: alignment");
        assert!(shape.flags & !(DEADLINE | WORD | BOXED) == 0, "2: unknown flag");
        assert!(shape.flags & BOXED == 0 || shape.flags & WORD != 0, "3: a box without its word");
        assert!(shape.flags & WORD == 0 || shape.inline_len == 0, "3: word and inline value");
        let key_len = self.key().len();
        assert!(key_len <= KEY_LEN_MAX, "4: key length");
        assert_eq!(usize::from(shape.key_len) == LONG_KEY, key_len >= LONG_KEY, "4: long keys");
    }
}

/// # Safety
/// `pointer` is an allocation of at least `geometry.key_at` bytes.
#[inline(always)]
unsafe fn write_key_len(pointer: NonNull<u8>, geometry: Geometry) {
    if geometry.key_len >= LONG_KEY {
        // SAFETY: the length stands in the 4 bytes before the key, 8-aligned like the prefix.
        unsafe {
            let at = pointer.as_ptr().add(geometry.key_at - 4).cast::<u32>();
            at.write(geometry.key_len as u32);
        }
    }
}

impl<V> Drop for Entry<V> {
    #[inline]
    fn drop(&mut self) {
        let boxed = if self.is_boxed() { self.take_boxed() } else { None };
        // SAFETY: 1: allocated with this capacity and owned by us; nothing uses it afterwards.
        unsafe { dealloc(self.pointer.as_ptr(), layout(self.geometry().capacity())) };
        drop(boxed);
    }
}

impl<V: std::fmt::Debug> std::fmt::Debug for Entry<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key())
            .field("kind", &self.kind())
            .field("value", &self.value())
            .field("deadline", &self.deadline())
            .finish()
    }
}

#[cfg(test)]
mod tests;
