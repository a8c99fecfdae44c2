//! The document that was last examined, and the right to install another one.
//!
//! Only one thread at a time installs a document. This can take long, because a slow script delays a change of the
//! role. Other threads wait for the installation, some of them only for a limited time. The revision can be read during
//! the installation.

use brisk_cluster::document::InstallError;
use brisk_coordinate::values::Revision;
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// The document that was last examined.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentState {
    /// The coordinator's revision of the document in force.
    pub(super) revision: Revision,
    pub(super) refused: Option<(Revision, InstallError)>,
}

/// The state, and whether a thread is installing a document.
#[derive(Debug, Default)]
pub(super) struct DocumentLock {
    slot: Mutex<DocumentSlot>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct DocumentSlot {
    state: DocumentState,
    is_taken: bool,
}

/// The right to install a document, until it is dropped.
#[derive(Debug)]
pub(super) struct DocumentGuard<'d>(&'d DocumentLock);

impl DocumentLock {
    /// Waits until no other thread is installing a document, but no longer than `until`.
    pub(super) fn take(&self, until: Option<Instant>) -> Option<DocumentGuard<'_>> {
        let mut slot = self.slot();
        while slot.is_taken {
            slot = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.freed.wait(slot).even_poisoned(),
                Some(left) if left.is_zero() => return None,
                Some(left) => self.freed.wait_timeout(slot, left).even_poisoned().0,
            };
        }
        slot.is_taken = true;
        Some(DocumentGuard(self))
    }

    /// The revision of the document in force. Does not wait for an installation.
    pub(super) fn revision(&self) -> Revision {
        self.slot().state.revision
    }

    /// Why the newest document was rejected; `None` if it was not. Does not wait for an installation.
    pub(super) fn rejection(&self) -> Option<InstallError> {
        self.slot().state.refused.as_ref().map(|(_, error)| error.clone())
    }

    fn slot(&self) -> MutexGuard<'_, DocumentSlot> {
        self.slot.lock().even_poisoned()
    }
}

impl DocumentGuard<'_> {
    pub(super) fn state(&self) -> DocumentState {
        self.0.slot().state.clone()
    }

    pub(super) fn set(&self, state: DocumentState) {
        self.0.slot().state = state;
    }
}

impl Drop for DocumentGuard<'_> {
    fn drop(&mut self) {
        self.0.slot().is_taken = false;
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_installation_blocks_another_one_and_not_the_revision() {
        let lock = Arc::new(DocumentLock::default());
        let guard = lock.take(None).unwrap();
        guard.set(DocumentState { revision: Revision(7), refused: None });
        assert_eq!(lock.revision(), Revision(7));
        assert!(lock.take(Some(Instant::now())).is_none());
        let other = Arc::clone(&lock);
        let waiter =
            std::thread::spawn(move || other.take(None).map(|guard| guard.state().revision));
        drop(guard);
        assert_eq!(waiter.join().unwrap(), Some(Revision(7)));
        assert!(lock.take(Some(Instant::now())).is_some());
    }
}
