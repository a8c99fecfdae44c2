//! One server, and the connections to it: shared by all callers, or a pool.

use crate::command::Way;
use crate::error::{Error, Kind, Result};
use crate::lane::Lane;
use crate::lane::cell::Submitted;
use crate::lane::pool::Pool;
use crate::request::Request;
use std::sync::Arc;
use std::task::Waker;

/// A server's lanes.
#[derive(Debug)]
pub(crate) struct Node {
    lanes: Vec<Lane>,
    /// From which the lanes take their work, if they are not shared.
    pool: Option<Arc<Pool>>,
}

impl Node {
    pub(crate) fn new(lanes: Vec<Lane>, pool: Option<Arc<Pool>>) -> Node {
        Node { lanes, pool }
    }

    /// Puts requests into the queue of a lane, or of the pool.
    pub(crate) fn submit(&self, way: &Way<'_>, waker: &Waker) -> Result<Submitted> {
        if way.requests.iter().any(|request| self.refuses(request)) {
            let text = "this command would hold up, or change, a connection that others share: use a Session";
            return Err(Error::new(Kind::Invalid, text));
        }
        if let Some(pool) = &self.pool {
            return pool.submit(way.requests, way.limit(), waker);
        }
        let key = way.requests.first().and_then(Request::first_key);
        self.lane(key)?.submit(way.requests, way.limit(), waker)
    }

    /// In a pool nobody stands behind a command that waits for other clients.
    #[inline]
    fn refuses(&self, request: &Request) -> bool {
        let traits = request.traits();
        traits.binds || (traits.blocks && self.pool.is_none())
    }

    /// The lane for a key: always the same one, so that order is kept. Without a key it is the first. O(key).
    #[inline]
    fn lane(&self, key: Option<&[u8]>) -> Result<&Lane> {
        let at = match (self.lanes.len(), key) {
            (1, _) | (_, None) => 0,
            (count, Some(key)) => (hash(key) % count as u64) as usize,
        };
        self.lanes.get(at).ok_or_else(|| Error::new(Kind::Closed, "no connection"))
    }

    pub(crate) fn close(&self) {
        self.pool.iter().for_each(|pool| pool.close());
        self.lanes.iter().for_each(Lane::close);
    }

    /// Commands whose replies have not come, about.
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

/// FNV-1a: keys are short, and all that matters is that they are spread.
fn hash(key: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    hash ^ (hash >> 32)
}
