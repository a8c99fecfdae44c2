//! One server, and the connections to it: shared by all callers, or a pool.

use crate::command::{Grouping, SendPlan};
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::Submitted;
use crate::lane::pool::Pool;
use crate::observe::Counts;
use crate::request::{Request, Traits};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The lanes to a server.
#[derive(Debug)]
pub(crate) struct Node {
    lanes: Vec<Lane>,
    /// The queue of the pool, if the lanes are not shared.
    pool: Option<Arc<Pool>>,
}

impl Node {
    pub(crate) fn new(lanes: Vec<Lane>, pool: Option<Arc<Pool>>) -> Node {
        Node { lanes, pool }
    }

    /// Puts requests into the queue of a lane, or of the pool.
    pub(crate) fn submit(&self, plan: &SendPlan<'_>, waker: &Waker) -> Result<Submitted> {
        check_allowed(plan, self.pool.is_some())?;
        let key = plan.requests.first().and_then(Request::routing_key);
        let margin = self.pool.as_ref().and_then(|pool| pool.timeout());
        self.take(plan.requests, key, plan.limit(margin), waker)
    }

    /// Like `submit`, but for requests that have been checked. `key` selects the lane.
    pub(crate) fn take(
        &self,
        requests: &[Request],
        key: Option<&[u8]>,
        limit: Option<Duration>,
        waker: &Waker,
    ) -> Result<Submitted> {
        match &self.pool {
            Some(pool) => pool.submit(requests, limit, waker),
            None => self.lane(key)?.submit(requests, limit, waker),
        }
    }

    pub(crate) fn is_pool(&self) -> bool {
        self.pool.is_some()
    }

    /// The lane for a key: always the same one, to keep the order. Without a key, the first lane. O(key).
    #[inline]
    fn lane(&self, key: Option<&[u8]>) -> Result<&Lane> {
        let at = match (self.lanes.len(), key) {
            (0 | 1, _) | (_, None) => 0,
            (count, Some(key)) => (hash(key) % count as u64) as usize,
        };
        self.lanes.get(at).ok_or_else(|| Error::new(Kind::Closed, "no connection"))
    }

    /// Retires the lanes: requests that were not sent are sent elsewhere; sent ones still get their replies.
    pub(crate) fn retire(&self) {
        self.pool.iter().for_each(|pool| pool.retire());
        self.lanes.iter().for_each(Lane::retire);
    }

    /// Reports whether at least one lane has no connection.
    pub(crate) fn is_down(&self) -> bool {
        self.lanes.iter().any(Lane::is_down)
    }

    pub(crate) fn close(&self) {
        self.pool.iter().for_each(|pool| pool.close());
        self.lanes.iter().for_each(Lane::close);
    }

    /// The counters of each lane.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.lanes.iter().map(Lane::counts)
    }

    /// The approximate number of commands without a reply.
    pub(crate) fn pending(&self) -> usize {
        let queued = self.pool.as_ref().map_or(0, |pool| pool.pending());
        queued + self.lanes.iter().map(Lane::pending).sum::<usize>()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.close();
    }
}

/// Rejects requests that would block or change a connection that others share. A pool accepts blocking requests,
/// because no other command waits for the same connection. Requests with an argument that could not be encoded are
/// rejected, too. This is checked here because the parts of a split command do not record the failure.
pub(crate) fn check_allowed(plan: &SendPlan<'_>, is_pool: bool) -> Result<()> {
    if let Some(failure) = plan.requests.iter().find_map(Request::failure) {
        return Err(failure.clone());
    }
    let own = match (plan.grouping, plan.requests) {
        // The library itself has added MULTI and EXEC.
        (Grouping::Transaction, [_, own @ .., _]) => own,
        (_, requests) => requests,
    };
    let any = |is: fn(&Traits) -> bool| own.iter().any(|request| is(&request.traits()));
    let text = if any(|traits| traits.binds) {
        "this command would change a connection that other callers share: use a Session"
    } else if any(|traits| traits.blocks) && !is_pool {
        "this command would block a connection that other callers share: use a Session, or a client with Lanes::Pool"
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::Invalid, text))
}

/// The FNV-1a hash of a key. A simple hash is enough, because keys are short and only an even distribution matters.
fn hash(key: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    hash ^ (hash >> 32)
}
