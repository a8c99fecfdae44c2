//! A value that clones share until one of them is changed.
//!
//! Like `Arc`, but without weak references. A count of one therefore proves that the value is not
//! shared, and a change in place costs only one load. In contrast, `Arc::make_mut` has to exchange
//! the count and restore it, and the trees of this crate would need this on every level.
//!
//! Invariant
//!  1. The `Arc` never leaves this file, so there is no weak reference to its value.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// A value behind a counter, which can be changed in place if the counter is one.
#[derive(Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Creates a value that is not shared yet.
    #[inline]
    #[must_use]
    pub fn new(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }

    /// Returns true if the two are the same value, not merely equal values.
    #[must_use]
    pub fn ptr_eq(this: &Shared<T>, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&this.0, &other.0)
    }
}

impl<T: Clone> Shared<T> {
    /// Returns a mutable reference to the value. It is copied first if it is shared.
    #[inline]
    pub fn make_mut(this: &mut Shared<T>) -> &mut T {
        if Arc::strong_count(&this.0) != 1 {
            this.part();
        }
        // Everything that other owners did with the value before they dropped it happens before
        // this point.
        fence(Ordering::Acquire);
        // SAFETY: the count is one, and `this` is that one reference, borrowed for as long as the
        // result. By 1 there is no weak reference from which another one could be created in the
        // meantime.
        unsafe { &mut *Arc::as_ptr(&this.0).cast_mut() }
    }

    #[cold]
    #[inline(never)]
    fn part(&mut self) {
        self.0 = Arc::new(T::clone(&self.0));
    }

    /// Returns the value itself, or a copy if it is shared.
    #[must_use]
    pub fn unwrap_or_clone(this: Shared<T>) -> T {
        Arc::unwrap_or_clone(this.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Shared<T> {
        Shared(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_values_are_copied_and_others_are_changed_in_place() {
        let mut one = Shared::new(vec![1]);
        let place = one.as_ptr();
        Shared::make_mut(&mut one)[0] = 2;
        assert_eq!(one.as_ptr(), place);
        let two = one.clone();
        Shared::make_mut(&mut one)[0] = 3;
        assert_eq!((one[0], two[0]), (3, 2));
        assert_eq!(two.as_ptr(), place);
        assert_eq!(
            (Shared::unwrap_or_clone(one), Shared::unwrap_or_clone(two)),
            (vec![3], vec![2])
        );
    }

    #[test]
    fn changes_follow_what_other_threads_did_with_the_value() {
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            let mut one = Shared::new(vec![0u64; 4]);
            let other = one.clone();
            let reader = std::thread::spawn(move || {
                let sum: u64 = other.iter().sum();
                drop(other);
                sum
            });
            Shared::make_mut(&mut one).fill(7);
            assert_eq!(reader.join().unwrap(), 0);
            assert_eq!(one[0], 7);
        }
    }
}
