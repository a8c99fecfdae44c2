//! The place where one caller waits for one reply.
//!
//! Pending replies are reused: a thread keeps some, so that waiting allocates no memory. One is returned only if no one
//! holds it, so a late reply never reaches another caller.

use super::ReplyResult;
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use std::cell::RefCell;
use std::task::{Poll, Waker};

/// The number of idle pending replies that a thread keeps.
const KEPT_MAX: usize = 256;

#[cfg(brisk_loom)]
loom::thread_local! {
    static KEPT: RefCell<Vec<Arc<PendingReply>>> = RefCell::new(Vec::new());
}

#[cfg(not(brisk_loom))]
thread_local! {
    static KEPT: RefCell<Vec<Arc<PendingReply>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(crate) struct PendingReply {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Waker),
    Completed(ReplyResult),
    Idle,
}

impl PendingReply {
    /// Takes a pending reply whose arrival wakes `waker`.
    #[inline]
    pub(crate) fn take(waker: &Waker) -> Arc<PendingReply> {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let state = State::Waiting(waker.clone());
        match kept {
            Some(pending_reply) => {
                *pending_reply.lock() = state;
                pending_reply
            }
            None => Arc::new(PendingReply { state: Mutex::new(state) }),
        }
    }

    /// Returns the pending reply to the thread, if no one else holds it.
    #[inline]
    pub(crate) fn give_back(mut pending_reply: Arc<PendingReply>) {
        if Arc::get_mut(&mut pending_reply).is_none() {
            return;
        }
        *pending_reply.lock() = State::Idle;
        // A thread that is exiting keeps no pending replies.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_MAX {
                kept.push(pending_reply);
            }
        });
    }

    /// Stores the reply, unless there is one already. Returns the waker to wake.
    #[inline]
    #[must_use]
    pub(crate) fn complete(&self, result: ReplyResult) -> Option<Waker> {
        let mut state = self.lock();
        if !matches!(*state, State::Waiting(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Completed(result)) {
            State::Waiting(waker) => Some(waker),
            _ => None,
        }
    }

    /// Returns the reply the first time it is available. If it has not arrived yet, `waker` is woken when it arrives.
    #[inline]
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<ReplyResult> {
        let mut state = self.lock();
        match &mut *state {
            State::Waiting(present) => {
                present.clone_from(waker);
                Poll::Pending
            }
            State::Completed(_) => match std::mem::replace(&mut *state, State::Idle) {
                State::Completed(result) => Poll::Ready(result),
                _ => Poll::Pending,
            },
            State::Idle => Poll::Pending,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
