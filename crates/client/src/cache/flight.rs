//! A request of the cache that is in progress, and all callers that wait for it.
//!
//! The request is its own waker. The driver that delivers the reply also passes it to all waiting callers, whether or
//! not any of them is still being polled. A caller that gives up therefore delays no other caller, and no task is
//! needed.

use super::store::{Store, Value};
use crate::error::{Phase, Result};
use crate::lane::cell::{Submitted, timeout};
use crate::lane::pending_reply::PendingReply;
use crate::lane::{Lane, ReplyResult};
use crate::poison::lock;
use crate::reply::{FromReply, Reply};
use crate::request::Request;
use bytes::Bytes;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Callers that have given up are removed once at least this number is waiting.
const WAITING_MIN: usize = 64;

pub(super) struct Flight {
    store: Arc<Store>,
    lane: Lane,
    /// The command under which the reply is stored; empty for a PING.
    command: Arc<[u8]>,
    pub(super) since: Instant,
    /// The caller's own time limit.
    pub(super) timeout: Option<Duration>,
    /// The maximum time that the request waits for room in the lane.
    queue_timeout: Option<Duration>,
    /// The number of replies to PTTL that precede the reply to the command.
    ttl_replies: usize,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    waiting: Vec<crate::sync::Arc<PendingReply>>,
    prune_at: usize,
}

enum Stage {
    Unsent(Vec<Request>),
    Sent(crate::sync::Arc<PendingReply>),
    Done,
}

/// The requests to send, and how.
pub(super) struct FetchPlan {
    pub(super) requests: Vec<Request>,
    pub(super) command: Arc<[u8]>,
    pub(super) ttl_replies: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) queue_timeout: Option<Duration>,
}

impl Flight {
    pub(super) fn new(
        store: &Arc<Store>,
        lane: &Lane,
        plan: FetchPlan,
        first: Option<crate::sync::Arc<PendingReply>>,
    ) -> Arc<Flight> {
        let state = State {
            stage: Stage::Unsent(plan.requests),
            waiting: Vec::from_iter(first),
            prune_at: WAITING_MIN,
        };
        Arc::new(Flight {
            store: Arc::clone(store),
            lane: lane.clone(),
            command: plan.command,
            since: Instant::now(),
            timeout: plan.timeout,
            queue_timeout: plan.queue_timeout,
            ttl_replies: plan.ttl_replies,
            state: Mutex::new(state),
        })
    }

    pub(super) fn command(&self) -> &Arc<[u8]> {
        &self.command
    }

    /// Adds a caller that waits for the reply. Call this only while the placeholder is in the store.
    pub(super) fn join(&self, pending_reply: crate::sync::Arc<PendingReply>) {
        let mut state = lock(&self.state);
        if state.waiting.len() >= state.prune_at {
            state.waiting.retain(|pending_reply| crate::sync::Arc::strong_count(pending_reply) > 1);
            state.prune_at = WAITING_MIN.max(2 * state.waiting.len());
        }
        state.waiting.push(pending_reply);
    }

    /// Advances the request as far as possible now: sends it, or takes its reply.
    pub(super) fn advance(self: &Arc<Flight>) {
        let waker = Waker::from(Arc::clone(self));
        let mut state = lock(&self.state);
        let result = match std::mem::replace(&mut state.stage, Stage::Done) {
            Stage::Unsent(_) if self.has_timed_out() => Err(timeout(Phase::Queued, None)),
            Stage::Unsent(requests) => match self.lane.submit(&requests, self.timeout, &waker) {
                Ok(Submitted::Waits(pending_reply)) => {
                    state.stage = Stage::Sent(pending_reply);
                    return;
                }
                Ok(Submitted::Full | Submitted::Ready(_)) => {
                    state.stage = Stage::Unsent(requests);
                    return;
                }
                Err(error) => Err(error),
            },
            Stage::Sent(pending_reply) => match pending_reply.poll(&waker) {
                Poll::Pending => {
                    state.stage = Stage::Sent(pending_reply);
                    return;
                }
                Poll::Ready(result) => {
                    PendingReply::give_back(pending_reply);
                    result
                }
            },
            Stage::Done => return,
        };
        drop(state);
        self.complete(result);
    }

    fn has_timed_out(&self) -> bool {
        self.queue_timeout.is_some_and(|queue_timeout| self.since.elapsed() >= queue_timeout)
    }

    /// Stores the reply, if permitted, and passes it to all waiting callers.
    fn complete(self: &Arc<Flight>, result: ReplyResult) {
        let result = result.and_then(|replies| self.split_replies(&replies));
        let (result, value) = match result {
            Ok((reply, until)) => {
                let has_timed_out = until.is_some_and(|until| until <= Instant::now());
                let (reply, since) = (own(&reply), self.since);
                let value = Value { reply: reply.clone(), since, until, was_used: false };
                (Ok(reply), (!has_timed_out).then_some(value))
            }
            Err(error) => (Err(error), None),
        };
        if self.command.is_empty() {
            self.store.ping_ended(result.is_ok());
        } else {
            self.store.settle(self, value);
        }
        // From now on, no caller joins the request.
        let waiting = std::mem::take(&mut lock(&self.state).waiting);
        for pending_reply in waiting {
            if let Some(waker) = pending_reply.complete(result.clone()) {
                waker.wake();
            }
        }
    }

    /// Returns the reply, and the earliest expiry time of its keys.
    fn split_replies(&self, replies: &Reply) -> Result<(Reply, Option<Instant>)> {
        let mut reader = replies.reader();
        let mut least = None;
        for _ in 0..self.ttl_replies {
            let left = i64::from_reply(&mut reader).map_err(|error| {
                error.with_note("while querying the TTL of a key; see CacheOptions::ignore_expiry")
            })?;
            // A negative value means that the key does not exist or has no TTL. If that changes, the server sends an
            // invalidation.
            if let Ok(left) = u64::try_from(left) {
                least = Some(least.map_or(left, |least: u64| least.min(left)));
            }
        }
        let reply = Reply::from_reply(&mut reader)?;
        // The TTL is counted from before the request was sent, so the value may expire too early, but not too late.
        let until = least.map(Duration::from_millis);
        Ok((reply, until.and_then(|left| self.since.checked_add(left))))
    }
}

/// Copies the reply, because a slice of the connection's buffer would keep the whole buffer in memory.
fn own(reply: &Reply) -> Reply {
    match reply.is_small() {
        true => reply.clone(),
        false => Reply::shared(Bytes::copy_from_slice(reply.as_bytes())),
    }
}

impl Wake for Flight {
    fn wake(self: Arc<Flight>) {
        self.advance();
    }
}
