//! A *lane*: one connection that any number of callers share, its queue, and the task that reads it.
//!
//! ```text
//!   callers ──encode──> cell: bytes to send, and waiting callers       ──swap──> driver ──> socket
//!      ^                  (one short lock; nothing is allocated)                    │
//!      └──────────────── pending reply: its waker          <──in order──── scan <──┘
//! ```
//!
//! | part | what it is |
//! |---|---|
//! | [`pending_reply`] | the place where one caller waits for one reply |
//! | [`cell`] | the state that callers and the driver share |
//! | [`in_flight`] | the driver's side of the queue: bytes being sent, callers that wait for replies |
//! | [`driver`] | the task that writes, reads and reconnects |
//! | [`connect`] | opens and sets up a connection |
//! | [`external`] | external events that concern a connection: a failover, a new login |
//! | [`io`] | the kinds of socket |
//! | [`wait_queue`] | tasks that wait until a budget has room |
//! | [`pool`] | lanes that take one piece at a time from a common queue |
//! | `model` | a loom model: callers, drivers and servers in every interleaving |
//! | `tls` | the TLS socket: records and the handshake |
//!
//! Rules:
//!
//! 1. Replies arrive in the order of the requests, so the entries, first in the cell and then in the driver, are in the
//!    order of their bytes. The bytes and the entry of a request are added under one lock.
//! 2. If a caller gives up before its reply arrives, its entry stays in the queue. The reply is read and dropped.
//! 3. Only one writer uses the socket at a time: the driver, or a caller that found nothing else to send.
//! 4. Requests that were not sent when the connection is lost stay in the cell, and are sent on the next connection.

pub(crate) mod cell;
pub(crate) mod connect;
pub(crate) mod driver;
mod external;
mod in_flight;
pub(crate) mod io;
#[cfg(all(test, brisk_loom))]
mod model;
pub(crate) mod pending_reply;
pub(crate) mod pool;
#[cfg(feature = "tls")]
mod tls;
mod wait_queue;

use crate::error::{Error, Kind, Result};
use crate::observe::Counts;
use crate::reply::Reply;
use crate::request::Request;
use cell::{Shared, Submitted};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The callers' side of a lane.
#[derive(Clone)]
pub(crate) struct Lane {
    shared: Arc<Shared>,
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>) -> Lane {
        Lane { shared }
    }

    /// Puts requests into the queue, with no requests of other callers in between. The replies arrive in a
    /// [`PendingReply`](pending_reply::PendingReply), which wakes `waker`. O(bytes).
    ///
    /// # Errors
    /// A lane counts one reply for each request, so it rejects requests that would make this count wrong.
    #[inline]
    pub(crate) fn submit(
        &self,
        requests: &[Request],
        timeout: Option<Duration>,
        waker: &Waker,
    ) -> Result<Submitted> {
        if let Some(failure) = requests.iter().find_map(Request::failure) {
            return Err(failure.clone());
        }
        if requests.iter().any(Request::is_unpaired) {
            return Err(unpaired());
        }
        self.shared.submit(requests, timeout, waker)
    }

    /// The state that callers and the driver share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Closes the lane. Waiting callers get an error.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Retires the lane: requests that were not sent are sent elsewhere; sent ones still get their replies.
    pub(crate) fn retire(&self) {
        self.shared.retire();
    }

    /// Reports whether the last attempt to connect failed.
    pub(crate) fn is_down(&self) -> bool {
        self.shared.is_down()
    }

    /// The counters of the lane.
    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// The approximate number of requests without a reply.
    pub(crate) fn pending(&self) -> usize {
        self.shared.pending()
    }
}

#[cold]
fn unpaired() -> Error {
    let text = "after this command the server does not send one reply per command: use a Subscriber for \
                messages; CLIENT REPLY OFF and SKIP, MONITOR, REPLCONF ACK and SYNC are not supported";
    Error::new(Kind::Invalid, text)
}

/// The result for a caller.
pub(crate) type ReplyResult = Result<Reply>;
