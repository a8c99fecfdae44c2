//! A cell that lends a value for a limited time. Code that cannot be passed a reference, such as a
//! function that an interpreter keeps, finds the value in the cell while its owner waits.
//!
//! ```text
//!  owner: lend(&mut value, || run)          callback, somewhere below run: with(|value| …)
//! ```
//!
//! Invariants
//!  1. The pointer is present only while [`Lent::lend`] is running. `lend` holds the exclusive
//!     borrow from which the pointer was made, and does not use it.
//!  2. The pointer is absent while a reference exists that [`Lent::with`] made from it, so there is
//!     only one reference at a time.
//!  3. `Cell` and `NonNull` keep the cell on one thread, where 1 and 2 follow from
//!     the order of calls.
//!  4. Everything that a lent function borrows outlives the call of [`LentFn::lend`] that received
//!     the function, and the pointer is present only while that call runs.

use std::cell::Cell;
use std::ptr::NonNull;

/// A cell for one borrowed value. O(1) everywhere.
#[derive(Debug)]
pub struct Lent<T>(Cell<Option<NonNull<T>>>);

impl<T> Lent<T> {
    /// Creates an empty cell.
    pub const fn nothing() -> Lent<T> {
        Lent(Cell::new(None))
    }

    /// Lends `value` while `during` runs.
    #[inline]
    pub fn lend<R>(&self, value: &mut T, during: impl FnOnce() -> R) -> R {
        let before = self.0.replace(Some(NonNull::from(value)));
        let _back = PutBack { place: &self.0, pointer: before };
        during()
    }

    /// Calls `action` with the lent value; `None` if nothing is lent, or if it is already in use.
    #[inline]
    pub fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut pointer = self.0.take()?;
        let _back = PutBack { place: &self.0, pointer: Some(pointer) };
        // SAFETY: 1, 2: made from a borrow that is still held and not used in the meantime, and
        // there is no other reference to it until `_back` is dropped, after `action`.
        Some(action(unsafe { pointer.as_mut() }))
    }
}

/// A cell for one borrowed function, which may borrow itself. O(1) everywhere.
pub struct LentFn<R>(Cell<Option<NonNull<dyn Fn() -> R>>>);

impl<R> LentFn<R> {
    /// Creates an empty cell.
    pub const fn nothing() -> LentFn<R> {
        LentFn(Cell::new(None))
    }

    /// Lends `function` while `during` runs.
    #[inline]
    pub fn lend<D>(&self, function: &(dyn Fn() -> R + '_), during: impl FnOnce() -> D) -> D {
        let pointer: NonNull<dyn Fn() -> R + '_> = NonNull::from(function);
        // SAFETY: 4: the types differ only in the lifetime of what is borrowed, and no caller of
        // the function is promised any lifetime.
        let pointer: NonNull<dyn Fn() -> R> = unsafe { std::mem::transmute(pointer) };
        let before = self.0.replace(Some(pointer));
        let _back = PutBack { place: &self.0, pointer: before };
        during()
    }

    /// Calls the lent function and returns its result; `None` if there is no function.
    pub fn call(&self) -> Option<R> {
        // SAFETY: 4: made from a reference that is still held; any number of shared references may
        // exist.
        self.0.get().map(|pointer| unsafe { pointer.as_ref() }())
    }
}

/// Restores the cell, even during a panic.
struct PutBack<'a, T: ?Sized> {
    place: &'a Cell<Option<NonNull<T>>>,
    pointer: Option<NonNull<T>>,
}

impl<T: ?Sized> Drop for PutBack<'_, T> {
    fn drop(&mut self) {
        self.place.set(self.pointer);
    }
}

#[cfg(test)]
mod tests {
    use super::{Lent, LentFn};

    #[test]
    fn a_lent_value_is_accessible_by_one_borrower_at_a_time() {
        let place = Lent::nothing();
        assert_eq!(place.with(|n: &mut u32| *n), None);
        let mut value = 1;
        place.lend(&mut value, || {
            assert_eq!(place.with(|n| std::mem::replace(n, 2)), Some(1));
            let nested = place.with(|n| (*n, place.with(|n| *n)));
            assert_eq!(nested, Some((2, None)));
            let mut inner = 7;
            place.lend(&mut inner, || assert_eq!(place.with(|n| *n), Some(7)));
            assert_eq!(place.with(|n| *n), Some(2));
        });
        assert_eq!(value, 2);
        assert_eq!(place.with(|n| *n), None);
    }

    #[test]
    fn a_function_is_accessible_while_it_is_lent() {
        let place = LentFn::nothing();
        assert_eq!(place.call(), None);
        let words = ["a".to_owned(), "b".to_owned()];
        let joined = || words.join(" ");
        let seen = place.lend(&joined, || {
            let inner = place.lend(&|| String::new(), || place.call());
            (place.call(), inner, place.call())
        });
        let joined = Some(joined());
        assert_eq!(seen, (joined.clone(), Some(String::new()), joined));
        assert_eq!(place.call(), None);
    }

    #[test]
    fn a_panic_removes_the_lent_value() {
        let place = Lent::nothing();
        let mut value = 1;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            place.lend(&mut value, || place.with(|n: &mut i32| assert_eq!(*n, 2)));
        }));
        assert!(caught.is_err());
        assert_eq!(place.with(|n| *n), None);
    }
}
