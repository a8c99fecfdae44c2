//! Handles to an entry inside a table: `EntryRef` to read, `EntryMut` to change.
//!
//! A bucket's word is not an `Entry` (it carries position bits, and is atomic), so the handles hold
//! a copy of the address. `EntryMut` writes the address back within each call that may have moved
//! the entry, not on drop: a leaked handle leaves nothing dangling. No handle ever returns `&mut
//! Entry`, through which an entry with another key could be swapped in.

use super::bucket::Place;
use crate::entry::{Entry, ValueRef};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// An entry that does not change for 'a.
pub struct EntryRef<'a, V> {
    entry: ManuallyDrop<Entry<V>>,
    borrows: PhantomData<&'a Entry<V>>,
}

impl<V> Clone for EntryRef<'_, V> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: the same entry under the same promise as in `new`.
        unsafe { Self::new(self.entry.raw().as_ptr()) }
    }
}

impl<'a, V> From<&'a Entry<V>> for EntryRef<'a, V> {
    /// Creates a handle to an entry that is in no table.
    #[inline]
    fn from(entry: &'a Entry<V>) -> Self {
        // SAFETY: the entry is live and borrowed for 'a.
        unsafe { Self::new(entry.raw().as_ptr()) }
    }
}

impl<'a, V> EntryRef<'a, V> {
    /// # Safety
    /// `address` is the non-null address of a live entry that does not change for 'a.
    #[inline(always)]
    pub(super) unsafe fn new(address: *mut u8) -> Self {
        // SAFETY: the caller's promise; ManuallyDrop keeps the copy from freeing anything.
        let entry = unsafe { Entry::from_raw(NonNull::new_unchecked(address)) };
        Self { entry: ManuallyDrop::new(entry), borrows: PhantomData }
    }

    #[inline(always)]
    fn get(&self) -> &'a Entry<V> {
        // SAFETY: everything that Entry's readers return is in the entry's allocation or belongs to
        // its object, never to the handle, and both live and stay unchanged for 'a; the handle
        // itself is only read here. The reference does not leave this type.
        unsafe { &*std::ptr::from_ref::<Entry<V>>(&self.entry) }
    }

    /// Returns the key.
    #[inline(always)]
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.get().key()
    }

    /// Returns the value.
    #[inline(always)]
    #[must_use]
    pub fn value(&self) -> ValueRef<'a, V> {
        self.get().value()
    }
}

/// Gives access to kind, clock, deadline and size.
impl<V> Deref for EntryRef<'_, V> {
    type Target = Entry<V>;

    #[inline(always)]
    fn deref(&self) -> &Entry<V> {
        &self.entry
    }
}

/// An entry to which only the holder of the handle has access for 'a.
pub struct EntryMut<'a, V> {
    place: Place<'a>,
    entry: ManuallyDrop<Entry<V>>,
    borrows: PhantomData<&'a mut Entry<V>>,
}

/// Gives access to all methods that read.
impl<V> Deref for EntryMut<'_, V> {
    type Target = Entry<V>;

    #[inline(always)]
    fn deref(&self) -> &Entry<V> {
        &self.entry
    }
}

/// Writes a moved entry's new address to its bucket, even if the change panics halfway.
struct WriteBack<'h, 'a, V>(&'h mut EntryMut<'a, V>);

impl<V> Drop for WriteBack<'_, '_, V> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.place.set_entry(self.0.entry.raw().as_ptr());
    }
}

impl<'a, V> EntryMut<'a, V> {
    /// # Safety
    /// `place` holds a live entry that nothing else reads or changes for 'a, in a table that
    /// changes only through this handle.
    #[inline(always)]
    pub(super) unsafe fn new(place: Place<'a>) -> Self {
        // SAFETY: the caller's promise; ManuallyDrop keeps the copy from freeing anything.
        let entry = unsafe { Entry::from_raw(NonNull::new_unchecked(place.entry())) };
        Self { place, entry: ManuallyDrop::new(entry), borrows: PhantomData }
    }

    #[inline(always)]
    fn change<R>(&mut self, change: impl FnOnce(&mut Entry<V>) -> R) -> R {
        let guard = WriteBack(self);
        change(&mut guard.0.entry)
    }

    /// See [`Entry::set_kind`].
    #[inline]
    pub fn set_kind(&mut self, kind: u8) {
        self.entry.set_kind(kind);
    }

    /// See [`Entry::bytes_mut`].
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.entry.bytes_mut()
    }

    /// See [`Entry::object_mut`].
    #[inline]
    pub fn object_mut(&mut self) -> Option<&mut V> {
        self.entry.object_mut()
    }

    /// See [`Entry::set_bytes`].
    #[inline]
    pub fn set_bytes(&mut self, value: &[u8]) {
        self.change(|entry| entry.set_bytes(value));
    }

    /// See [`Entry::resize_bytes`].
    pub fn resize_bytes(&mut self, new_len: usize) {
        self.change(|entry| entry.resize_bytes(new_len));
    }

    /// See [`Entry::set_int`].
    #[inline]
    pub fn set_int(&mut self, value: i64) {
        self.change(|entry| entry.set_int(value));
    }

    /// See [`Entry::set_object`].
    pub fn set_object(&mut self, value: V) {
        self.change(|entry| entry.set_object(value));
    }

    /// See [`Entry::set_deadline`].
    pub fn set_deadline(&mut self, deadline: Option<u64>) {
        self.change(|entry| entry.set_deadline(deadline));
    }
}
