//! Treats a lock whose holder has panicked like any other lock.
//!
//! A panic is a defect. In a release build it ends the process before another thread can take the
//! lock. In a debug build, a second panic in the next thread would only hide the first one.

use std::sync::{LockResult, PoisonError};

/// Takes the result of a lock operation, even if a holder of the lock has panicked.
pub trait EvenPoisoned {
    /// The lock guard, or the result of waiting with the guard.
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
    fn a_poisoned_lock_can_be_taken() {
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
