//! Entry: a key, its value, its deadline and its access clock in one allocation.
//!
//! ```text
//!  byte 0     1..3           4        5              6..7
//! +------+----------------+-------+-----------+----------------+
//! | kind |  access clock  | flags | key_len   | inline length  |   header, always 8 bytes
//! +------+----------------+-------+-----------+----------------+
//! | deadline, ms (if flag DEADLINE)                            |   8 bytes
//! +------------------------------------------------------------+
//! | an integer (form INT), or a V (form OBJECT)                |   8 or 24 bytes
//! +------------------------------------------------------------+
//! | key length as u32 (if key_len = 255) | key ... | inline value ... | slack up to the size class
//! +------------------------------------------------------------+
//! ```
//!
//! `kind` belongs to the caller (type and encoding); the clock's 24 bits too. No capacity is
//! stored: the allocation's size is the size class of what the header describes, so a value may
//! change in place whenever the class stays the same. Objects move with their entry.
//!
//! Invariants (`check` verifies 1-4; SAFETY notes cite them by number)
//!  1. `pointer` is the start of a live allocation of `size_class(geometry.total)` bytes, aligned
//!     to 8, owned by this `Entry` alone; all `geometry.total` bytes of it are initialised, but for
//!     those that V leaves free of the room for objects.
//!  2. The header's `shape` and the long key length describe that allocation; they change only
//!     through `&mut self` or in the constructor.
//!  3. The form is one of: inline bytes; an integer (INT); a live V that this entry owns (OBJECT),
//!     of at most `OBJECT_LEN` bytes and an alignment of at most `ALIGN`. The inline length is
//!     the value's for inline bytes, else 0.
//!  4. The key is at most `KEY_LEN_MAX` long; `key_len` is 255 exactly for keys of
//!     255 bytes and more.
//!  5. The first four bytes are accessed as one relaxed atomic through `&self` (only the clock
//!     bits change); all others are written through `&mut self` only.

mod layout;

pub(crate) use layout::KEY_AT_MAX;
pub use layout::size_class;
use layout::{
    ALIGN, DEADLINE, FORM, Geometry, HEADER, Header, INT, LONG_KEY, OBJECT, OBJECT_LEN, Shape,
};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The longest key: 512 MiB, the protocol's limit for any string.
pub const KEY_LEN_MAX: usize = 512 << 20;
/// The longest value kept as inline bytes.
pub const INLINE_LEN_MAX: usize = u16::MAX as usize;
/// The access clock counts modulo 2^24.
pub const CLOCK_MASK: u32 = 0x00ff_ffff;

/// The value of an entry, borrowed.
#[derive(Debug)]
pub enum ValueRef<'a, V> {
    Bytes(&'a [u8]),
    Int(i64),
    Object(&'a V),
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
    owns: PhantomData<V>,
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
    assert!(len <= INLINE_LEN_MAX, "values above {INLINE_LEN_MAX} bytes cannot stand inline");
    len as u16
}

impl<V> Entry<V> {
    /// An entry whose value is `value`, at most [`INLINE_LEN_MAX`] bytes (panics above).
    /// O(lengths).
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
        let mut entry = Self::with_shape(key, kind, INT, 0);
        entry.write_int(value);
        entry
    }

    /// An entry whose value is `value`, of at most 24 bytes with an alignment of at most 8 (else it
    /// does not compile).
    #[must_use]
    pub fn new_object(key: &[u8], kind: u8, value: V) -> Self {
        let mut entry = Entry::with_shape(key, kind, OBJECT, 0);
        entry.write_object(value);
        entry
    }

    /// Allocates, writes header and key; the caller initialises what belongs to the form at once,
    /// without a panic between.
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
        let form = shape.flags & FORM;
        if form == 0 {
            ValueRef::Bytes(self.inline_bytes())
        } else if form == INT {
            // SAFETY: 3: INT says that there is an initialised integer.
            ValueRef::Int(unsafe { self.form(shape).cast::<i64>().read() })
        } else {
            // SAFETY: 3: OBJECT says that there is a live V, which is borrowed as long as `self`.
            ValueRef::Object(unsafe { &*self.form(shape).cast::<V>() })
        }
    }

    #[inline(always)]
    fn inline_bytes(&self) -> &[u8] {
        let at = self.geometry().value_at();
        let len = usize::from(self.shape().inline_len);
        // SAFETY: 1 and 2: inline_len initialised bytes stand behind the key.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().add(at), len) }
    }

    /// The inline bytes for change in place; `None` for integers and objects.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let shape = self.shape();
        if shape.flags & FORM != 0 {
            return None;
        }
        let at = self.geometry().value_at();
        let len = usize::from(shape.inline_len);
        // SAFETY: as in inline_bytes; &mut self makes the borrow exclusive (1).
        Some(unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr().add(at), len) })
    }

    /// The object for change; `None` for bytes and integers.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut V> {
        // SAFETY: 3: a live V of this entry's own; &mut self makes the borrow exclusive.
        self.is_object().then(|| unsafe { &mut *self.form(self.shape()).cast::<V>() })
    }

    #[inline(always)]
    fn is_object(&self) -> bool {
        self.shape().flags & FORM == OBJECT
    }

    /// Where the integer or the object is.
    #[inline(always)]
    fn form(&self, shape: Shape) -> *mut u8 {
        // SAFETY: 2: what stands before the key lies inside the allocation, whatever the form.
        unsafe { self.pointer.as_ptr().add(shape.form_at()) }
    }

    /// Makes the value `value`, in place if the size class allows; drops an object.
    /// Panics above [`INLINE_LEN_MAX`] bytes. O(key + value) at worst.
    #[inline]
    pub fn set_bytes(&mut self, value: &[u8]) {
        let shape = self.shape();
        if shape.flags & FORM == 0 && usize::from(shape.inline_len) == value.len() {
            // The commonest write of all: same length, nothing to move.
            if let Some(bytes) = self.bytes_mut() {
                bytes.copy_from_slice(value);
            }
            return;
        }
        let old = self.reform(0, inline_len(value.len()), false);
        let at = self.geometry().value_at();
        // SAFETY: reform made room for value.len() bytes at value_at; `value` cannot lie inside
        // this entry because &mut self is exclusive.
        unsafe {
            let at = self.pointer.as_ptr().add(at);
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        drop(old);
    }

    /// Makes the value `new_len` bytes long, keeping what there is and zero-filling growth. An
    /// integer or object is dropped and counts as empty. Panics above [`INLINE_LEN_MAX`].
    pub fn resize_bytes(&mut self, new_len: usize) {
        let kept = usize::from(self.shape().inline_len);
        let old = self.reform(0, inline_len(new_len), true);
        if new_len > kept {
            let at = self.geometry().value_at();
            // SAFETY: reform made room for new_len bytes at value_at.
            unsafe { self.pointer.as_ptr().add(at + kept).write_bytes(0, new_len - kept) };
        }
        drop(old);
    }

    /// Makes the value an integer; drops an object. O(key) if the form changes.
    pub fn set_int(&mut self, value: i64) {
        let old = match self.shape().flags & FORM {
            INT => None,
            _ => self.reform(INT, 0, false),
        };
        self.write_int(value);
        drop(old);
    }

    /// Makes the value an object; drops an earlier one. O(key) if the form changes.
    pub fn set_object(&mut self, value: V) {
        if let Some(object) = self.object_mut() {
            *object = value;
            return;
        }
        let old = self.reform(OBJECT, 0, false);
        debug_assert!(old.is_none(), "an object is changed in its place above");
        self.write_object(value);
    }

    /// As `reshape` with the form `form`, which is not that of objects if there is one. It is taken
    /// out, for the caller to drop when the entry is whole again: what the new form wants has to be
    /// written at once, without a panic between.
    #[inline]
    fn reform(&mut self, form: u8, inline_len: u16, keep_value: bool) -> Option<V> {
        let shape = self.shape();
        let old = self.is_object().then(|| {
            debug_assert!(form != OBJECT);
            // SAFETY: 3: a live V. Until `reshape` is over it is the entry's, also if that should
            // unwind, and this copy is never dropped; then the entry has lost it, since its form
            // is another one.
            ManuallyDrop::new(unsafe { self.form(shape).cast::<V>().read() })
        });
        self.reshape(shape.flags & DEADLINE | form, inline_len, keep_value);
        old.map(ManuallyDrop::into_inner)
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
    /// O(key + inline value) then.
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

    /// Bytes of the entry's own allocation, rounded to its size class, without what an object owns.
    #[inline]
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.geometry().capacity()
    }

    /// Gives the entry another key; value, deadline, kind and clock stay. O(key + inline value).
    #[must_use]
    pub fn with_key(self, new_key: &[u8]) -> Self {
        let shape = self.shape();
        let renamed = Self::with_shape(new_key, self.kind(), shape.flags, shape.inline_len);
        let old = ManuallyDrop::new(self);
        renamed.set_clock(old.clock());
        let (from, to) = (old.pointer.as_ptr(), renamed.pointer.as_ptr());
        // SAFETY: deadline and form stand in the same place in both, and the inline values behind
        // their keys (1, 2). An object has moved then: the old entry is not dropped, only its
        // allocation is freed, with the size that it was made with.
        unsafe {
            ptr::copy_nonoverlapping(from.add(HEADER), to.add(HEADER), shape.prefix() - HEADER);
            let (at, new_at) = (old.geometry().value_at(), renamed.geometry().value_at());
            let len = usize::from(shape.inline_len);
            ptr::copy_nonoverlapping(from.add(at), to.add(new_at), len);
            dealloc(from, layout(old.geometry().capacity()));
        }
        renamed
    }

    /// Changes which optional parts there are and how long the inline value is, keeping key,
    /// deadline and form where old and new have the same, and with `keep_value` the common part of
    /// an inline value. New parts are uninitialised: the caller writes them at once. An object that
    /// the new form has no room for is forgotten. O(key + inline value).
    fn reshape(&mut self, flags: u8, inline_len: u16, keep_value: bool) {
        let old_shape = self.shape();
        let old = self.geometry();
        let shape = Shape { flags, key_len: old_shape.key_len, inline_len };
        let new = Geometry::new(shape, old.key_len);
        let deadline = self.deadline();
        let mut form = MaybeUninit::<[u8; OBJECT_LEN]>::uninit();
        let form_len = if flags & FORM == old_shape.flags & FORM { shape.form_len() } else { 0 };
        let kept_value = if keep_value { old_shape.inline_len.min(inline_len) } else { 0 };
        let moved = old.key_len + usize::from(kept_value); // the value stands right behind the key
        // SAFETY: both ranges lie inside their allocations (1); `copy` allows them to overlap. The
        // form, of at most OBJECT_LEN bytes, is put aside meanwhile, since the key may come to lie
        // on it. The old allocation is freed with the size it was made with, and not used again.
        unsafe {
            ptr::copy_nonoverlapping(self.form(old_shape), form.as_mut_ptr().cast(), form_len);
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
            ptr::copy_nonoverlapping(form.as_ptr().cast(), self.form(shape), form_len);
        }
        self.write_shape(shape);
        if let (Some(at_ms), true) = (deadline, flags & DEADLINE != 0) {
            // SAFETY: the new shape has the field (2).
            unsafe { self.pointer.as_ptr().add(HEADER).cast::<u64>().write(at_ms) };
        }
    }

    fn write_shape(&mut self, shape: Shape) {
        // SAFETY: 1: the header is ours, and &mut self is exclusive (5).
        unsafe { (*self.pointer.cast::<Header>().as_ptr()).shape = shape };
    }

    fn write_int(&mut self, value: i64) {
        let shape = self.shape();
        debug_assert!(shape.flags & FORM == INT);
        // SAFETY: 2: INT says that there is room for an integer.
        unsafe { self.form(shape).cast::<i64>().write(value) }
    }

    fn write_object(&mut self, value: V) {
        const { assert!(size_of::<V>() <= OBJECT_LEN && align_of::<V>() <= ALIGN) };
        let shape = self.shape();
        debug_assert!(shape.flags & FORM == OBJECT);
        // SAFETY: 2: OBJECT says that there is room for a V; 1: it is aligned as V wants.
        unsafe { self.form(shape).cast::<V>().write(value) }
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
        assert!([0, INT, OBJECT].contains(&(shape.flags & FORM)), "3: unknown form");
        assert!(shape.flags & FORM == 0 || shape.inline_len == 0, "3: form and inline value");
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
        // SAFETY: 3: a live V, which nobody reads again in its place.
        let object =
            self.is_object().then(|| unsafe { self.form(self.shape()).cast::<V>().read() });
        // SAFETY: 1: allocated with this capacity and owned by us; nothing uses it afterwards.
        unsafe { dealloc(self.pointer.as_ptr(), layout(self.geometry().capacity())) };
        drop(object);
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
