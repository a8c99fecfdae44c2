//! Entry: a key, its value, its expiry time (deadline) and its access clock in one allocation.
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
//! The caller defines the meaning of `kind` (type and encoding) and of the clock's 24 bits. No
//! capacity is stored: the size of the allocation is the size class of what the header describes. A
//! value can therefore change in place if the class stays the same. Objects move with their entry.
//!
//! Invariants (`check` verifies 1-4; SAFETY notes cite them by number)
//!  1. `pointer` is the start of a live allocation of `size_class(geometry.total)` bytes, aligned
//!     to 8, owned by this `Entry` alone. All `geometry.total` bytes of it are initialized, except
//!     the part of an object's room that V does not use.
//!  2. The header's `shape` and the long key length describe that allocation; they change only
//!     through `&mut self` or in the constructor.
//!  3. The form is one of: inline bytes; an integer (INT); a live V that this entry owns (OBJECT),
//!     of at most `OBJECT_LEN` bytes and an alignment of at most `ALIGN`. The inline length is the
//!     length of the value for inline bytes, otherwise 0.
//!  4. The key is at most `KEY_LEN_MAX` long; `key_len` is 255 if and only if the key has at least
//!     255 bytes.
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

/// Maximum length of a key: 512 MiB, the protocol's limit for any string.
pub const KEY_LEN_MAX: usize = 512 << 20;
/// Maximum length of a value that is stored as inline bytes.
pub const INLINE_LEN_MAX: usize = u16::MAX as usize;
/// The bits of the access clock, which counts modulo 2^24.
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

/// An owned key with its value, in the size of one pointer.
pub struct Entry<V> {
    pointer: NonNull<u8>,
    owns: PhantomData<V>,
}

// SAFETY: by 1 and 3 the entry owns its allocation and its V alone, so it may move with V.
unsafe impl<V: Send> Send for Entry<V> {}
// SAFETY: through & only the clock changes, atomically (5). V may be shared because it is Sync.
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
    /// Creates an entry whose value is `value`. Panics if the value is longer than
    /// [`INLINE_LEN_MAX`] bytes. O(key + value).
    #[inline]
    #[must_use]
    pub fn new_bytes(key: &[u8], kind: u8, value: &[u8]) -> Self {
        let entry = Self::with_shape(key, kind, 0, inline_len(value.len()));
        // SAFETY: with_shape allocated room for the value after the key (1).
        unsafe {
            let at = entry.pointer.as_ptr().add(entry.geometry().value_at());
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        entry
    }

    /// Creates an entry whose value is an integer.
    #[must_use]
    pub fn new_int(key: &[u8], kind: u8, value: i64) -> Self {
        let mut entry = Self::with_shape(key, kind, INT, 0);
        entry.write_int(value);
        entry
    }

    /// Creates an entry whose value is the object `value`. `V` must have at most 24 bytes and an
    /// alignment of at most 8; other types do not compile.
    #[must_use]
    pub fn new_object(key: &[u8], kind: u8, value: V) -> Self {
        let mut entry = Entry::with_shape(key, kind, OBJECT, 0);
        entry.write_object(value);
        entry
    }

    /// Allocates an entry and writes its header and key. The caller must then initialise all other
    /// parts, and nothing in between may panic.
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
        // SAFETY: 1: every allocation starts with an initialized header.
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
        // SAFETY: 2 and 4: key_len = 255 means that a u32 follows the prefix.
        unsafe { self.pointer.as_ptr().add(shape.prefix()).cast::<u32>().read() as usize }
    }

    /// Returns the key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        let Geometry { key_at, key_len, .. } = self.geometry();
        // SAFETY: 1 and 2: there are key_len initialized bytes at key_at.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().add(key_at), key_len) }
    }

    /// Returns the caller's type and encoding byte.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.header().kind_clock.load(Relaxed) as u8
    }

    /// Replaces the caller's type and encoding byte.
    #[inline]
    pub fn set_kind(&mut self, kind: u8) {
        let word = &self.header().kind_clock;
        word.store(word.load(Relaxed) & !0xff | u32::from(kind), Relaxed);
    }

    /// Returns the access clock: 24 bits whose meaning the caller defines (LRU time or LFU
    /// counter).
    #[inline(always)]
    #[must_use]
    pub fn clock(&self) -> u32 {
        self.header().kind_clock.load(Relaxed) >> 8
    }

    /// Stores the access clock, modulo 2^24. After concurrent calls, one of their values remains.
    #[inline(always)]
    pub fn set_clock(&self, clock: u32) {
        let word = &self.header().kind_clock;
        word.store(word.load(Relaxed) & 0xff | clock << 8, Relaxed);
    }

    /// Returns the value.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> ValueRef<'_, V> {
        let shape = self.shape();
        let form = shape.flags & FORM;
        if form == 0 {
            ValueRef::Bytes(self.inline_bytes())
        } else if form == INT {
            // SAFETY: 3: INT means that there is an initialized integer.
            ValueRef::Int(unsafe { self.form(shape).cast::<i64>().read() })
        } else {
            // SAFETY: 3: OBJECT means that there is a live V, which is borrowed as long as `self`.
            ValueRef::Object(unsafe { &*self.form(shape).cast::<V>() })
        }
    }

    #[inline(always)]
    fn inline_bytes(&self) -> &[u8] {
        let at = self.geometry().value_at();
        let len = usize::from(self.shape().inline_len);
        // SAFETY: 1 and 2: inline_len initialized bytes follow the key.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr().add(at), len) }
    }

    /// Returns the inline bytes, which can be changed in place; `None` for integers and objects.
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

    /// Returns a mutable reference to the object; `None` for bytes and integers.
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut V> {
        // SAFETY: 3: a live V that this entry owns; &mut self makes the borrow exclusive.
        self.is_object().then(|| unsafe { &mut *self.form(self.shape()).cast::<V>() })
    }

    #[inline(always)]
    fn is_object(&self) -> bool {
        self.shape().flags & FORM == OBJECT
    }

    /// Returns the address of the integer or the object.
    #[inline(always)]
    fn form(&self, shape: Shape) -> *mut u8 {
        // SAFETY: 2: everything before the key is inside the allocation, regardless of the form.
        unsafe { self.pointer.as_ptr().add(shape.form_at()) }
    }

    /// Sets the value to `value`, in place if the size class allows. Drops the object if there was
    /// one. Panics if the value is longer than [`INLINE_LEN_MAX`] bytes. O(key + value) in the
    /// worst case.
    #[inline]
    pub fn set_bytes(&mut self, value: &[u8]) {
        let shape = self.shape();
        if shape.flags & FORM == 0 && usize::from(shape.inline_len) == value.len() {
            // The most common write: the length is the same, so nothing moves.
            if let Some(bytes) = self.bytes_mut() {
                bytes.copy_from_slice(value);
            }
            return;
        }
        let old = self.reform(0, inline_len(value.len()), false);
        let at = self.geometry().value_at();
        // SAFETY: reform made room for value.len() bytes at value_at; `value` cannot be inside
        // this entry because &mut self is exclusive.
        unsafe {
            let at = self.pointer.as_ptr().add(at);
            ptr::copy_nonoverlapping(value.as_ptr(), at, value.len());
        }
        drop(old);
    }

    /// Changes the length of the value to `new_len`, keeps existing bytes and fills new ones with
    /// zeros. An integer or object is dropped and treated as an empty value. Panics if `new_len` is
    /// above [`INLINE_LEN_MAX`].
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

    /// Sets the value to an integer. Drops the object if there was one. O(key) if the form changes.
    pub fn set_int(&mut self, value: i64) {
        let old = match self.shape().flags & FORM {
            INT => None,
            _ => self.reform(INT, 0, false),
        };
        self.write_int(value);
        drop(old);
    }

    /// Sets the value to an object. Drops the earlier object if there was one. O(key) if the form
    /// changes.
    pub fn set_object(&mut self, value: V) {
        if let Some(object) = self.object_mut() {
            *object = value;
            return;
        }
        let old = self.reform(OBJECT, 0, false);
        debug_assert!(old.is_none(), "an object is changed in its place above");
        self.write_object(value);
    }

    /// Like `reshape`, but sets the form to `form`. If the value is an object, `form` must not be
    /// OBJECT. The object is returned. The caller must first write the part that belongs to the new
    /// form, with nothing in between that can panic, and drop the object only after the entry is
    /// complete again.
    #[inline]
    fn reform(&mut self, form: u8, inline_len: u16, keep_value: bool) -> Option<V> {
        let shape = self.shape();
        let old = self.is_object().then(|| {
            debug_assert!(form != OBJECT);
            // SAFETY: 3: a live V. Until `reshape` has returned, the entry owns it, even if
            // `reshape` unwinds, and this copy is never dropped. After that, the entry no longer
            // owns it, since its form has changed.
            ManuallyDrop::new(unsafe { self.form(shape).cast::<V>().read() })
        });
        self.reshape(shape.flags & DEADLINE | form, inline_len, keep_value);
        old.map(ManuallyDrop::into_inner)
    }

    /// Returns the time at which the key expires, in Unix milliseconds. If the key never expires,
    /// this only tests one bit.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        if self.shape().flags & DEADLINE == 0 {
            return None;
        }
        // SAFETY: 2: the flag says that the deadline follows the header.
        Some(unsafe { self.pointer.as_ptr().add(HEADER).cast::<u64>().read() })
    }

    /// Sets or removes the expiry time. If the entry gains or loses an expiry time, key and value
    /// move by 8 bytes. O(key + inline value) in that case.
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

    /// Returns the size of the entry's own allocation in bytes, rounded up to its size class.
    /// Memory that an object owns is not included.
    #[inline]
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.geometry().capacity()
    }

    /// Returns an entry with another key and the same value, expiry time, kind and clock. O(key +
    /// inline value).
    #[must_use]
    pub fn with_key(self, new_key: &[u8]) -> Self {
        let shape = self.shape();
        let renamed = Self::with_shape(new_key, self.kind(), shape.flags, shape.inline_len);
        let old = ManuallyDrop::new(self);
        renamed.set_clock(old.clock());
        let (from, to) = (old.pointer.as_ptr(), renamed.pointer.as_ptr());
        // SAFETY: deadline and form have the same offset in both entries, and the inline values
        // follow their keys (1, 2). This moves an object: the old entry is not dropped. Only its
        // allocation is freed, with the size with which it was allocated.
        unsafe {
            ptr::copy_nonoverlapping(from.add(HEADER), to.add(HEADER), shape.prefix() - HEADER);
            let (at, new_at) = (old.geometry().value_at(), renamed.geometry().value_at());
            let len = usize::from(shape.inline_len);
            ptr::copy_nonoverlapping(from.add(at), to.add(new_at), len);
            dealloc(from, layout(old.geometry().capacity()));
        }
        renamed
    }

    /// Changes the length of the inline value and which optional parts exist. Keeps the key. Keeps
    /// the deadline and the form if both the old and the new shape have them. With `keep_value`,
    /// keeps the common part of an inline value. New parts are uninitialized: the caller must write
    /// them immediately. An object for which the new form has no room is forgotten, not dropped.
    /// O(key + inline value).
    fn reshape(&mut self, flags: u8, inline_len: u16, keep_value: bool) {
        let old_shape = self.shape();
        let old = self.geometry();
        let shape = Shape { flags, key_len: old_shape.key_len, inline_len };
        let new = Geometry::new(shape, old.key_len);
        let deadline = self.deadline();
        let mut form = MaybeUninit::<[u8; OBJECT_LEN]>::uninit();
        let form_len = if flags & FORM == old_shape.flags & FORM { shape.form_len() } else { 0 };
        let kept_value = if keep_value { old_shape.inline_len.min(inline_len) } else { 0 };
        let moved = old.key_len + usize::from(kept_value); // the value directly follows the key
        // SAFETY: both ranges are inside their allocations (1); `copy` allows them to overlap. The
        // form, of at most OBJECT_LEN bytes, is saved first, since the key may overwrite it. The
        // old allocation is freed with the size with which it was allocated, and not used again.
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
        // SAFETY: 2: the form INT has room for an integer.
        unsafe { self.form(shape).cast::<i64>().write(value) }
    }

    fn write_object(&mut self, value: V) {
        const { assert!(size_of::<V>() <= OBJECT_LEN && align_of::<V>() <= ALIGN) };
        let shape = self.shape();
        debug_assert!(shape.flags & FORM == OBJECT);
        // SAFETY: 2: the form OBJECT has room for a V; 1: it is aligned as V requires.
        unsafe { self.form(shape).cast::<V>().write(value) }
    }

    /// Releases ownership. Only `from_raw` may take it back.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        let pointer = self.pointer;
        std::mem::forget(self);
        pointer
    }

    /// # Safety
    /// `pointer` came from `into_raw` of an `Entry<V>`. The caller drops only one of the entries
    /// made from it, and changes only one.
    #[inline(always)]
    pub(crate) unsafe fn from_raw(pointer: NonNull<u8>) -> Self {
        Self { pointer, owns: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> NonNull<u8> {
        self.pointer
    }

    /// Verifies invariants 1 to 4 as far as they can be checked from inside.
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
        // SAFETY: the length is in the 4 bytes before the key, 8-aligned like the prefix.
        unsafe {
            let at = pointer.as_ptr().add(geometry.key_at - 4).cast::<u32>();
            at.write(geometry.key_len as u32);
        }
    }
}

impl<V> Drop for Entry<V> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: 3: a live V, which nothing reads again at this address.
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
