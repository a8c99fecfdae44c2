//! Locks whose holder has panicked are taken as if it had not.
//!
//! A panic is a defect, and ends a release build before anybody comes to such a lock. In a debug
//! build a second panic, in whoever comes next, would only hide the first.

use std::sync::{LockResult, PoisonError};

/// What asking for a lock gives, whether or not a holder of it has panicked.
pub trait EvenPoisoned {
    /// What holds the lock, or what waiting with it gives.
    type Held;

    fn even_poisoned(self) -> Self::Held;
}

impl<H> EvenPoisoned for LockResult<H> {
    type Held = H;

    #[inline]
    fn even_poisoned(self) -> H {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::EvenPoisoned;
    use std::sync::Mutex;

    #[test]
    fn a_lock_whose_holder_panicked_is_taken_as_it_was_left() {
        let lock = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                *lock.lock().even_poisoned() = 2;
                let _held = lock.lock();
                panic!("while it holds the lock");
            });
            holder.join().is_err()
        });
        assert!(panicked && lock.is_poisoned());
        assert_eq!(*lock.lock().even_poisoned(), 2);
    }
}
