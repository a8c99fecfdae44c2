//! Sessions, subscribers and caches. They have their own connections, which are closed together with the client.

use crate::error::Result;
use crate::lane::cell::{Shared, closed};
use crate::poison::lock;
use std::sync::{Arc, Mutex, Weak};

/// An object that is closed together with its client.
pub(crate) trait CloseWithClient: Send + Sync {
    /// Closes the object. Pending calls fail, and later calls fail immediately.
    fn end(&self);
}

/// A session's lane.
impl CloseWithClient for Shared {
    fn end(&self) {
        self.close();
    }
}

#[derive(Default)]
pub(super) struct Attached(Mutex<State>);

#[derive(Default)]
struct State {
    all: Vec<Weak<dyn CloseWithClient>>,
    is_closed: bool,
}

impl Attached {
    /// # Errors
    /// The client is closed.
    pub(super) fn add(&self, one: &Arc<impl CloseWithClient + 'static>) -> Result<()> {
        let mut state = lock(&self.0);
        if state.is_closed {
            return Err(closed());
        }
        if state.all.len() == state.all.capacity() {
            // Remove dead entries before the list grows, so that its length is at most twice the number of live
            // entries.
            state.all.retain(|one| one.strong_count() > 0);
        }
        let one = Arc::downgrade(one);
        state.all.push(one);
        Ok(())
    }

    pub(super) fn close_all(&self) {
        let all = {
            let mut state = lock(&self.0);
            state.is_closed = true;
            std::mem::take(&mut state.all)
        };
        all.iter().filter_map(Weak::upgrade).for_each(|one| one.end());
    }
}
