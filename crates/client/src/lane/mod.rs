//! A *lane*: one connection that any number of callers share, its queue, and the task that reads it.
//!
//! ```text
//!   callers ──encode──> cell: bytes to be sent, and who waits for them  ──swap──> driver ──> socket
//!      ^                  (one short lock; nothing is allocated)                    │
//!      └──────────────── slot: the reply, and whom to wake  <──in order──── scan <──┘
//! ```
//!
//! | part | what it is |
//! |---|---|
//! | [`slot`] | where one caller waits for one reply |
//! | [`cell`] | what callers and the driver share |
//! | [`in_flight`] | the driver's side of it: what is being sent, and who waits for what was sent |
//! | [`driver`] | the task that writes, reads, and connects anew |
//! | [`connect`] | opening a connection and making it what it has to be |
//! | [`attend`] | what goes on outside and concerns a connection: another primary, another login |
//! | [`io`] | the kinds of socket |
//! | [`for_room`] | who waits until a budget has room |
//! | [`pool`] | lanes that take one piece at a time from a common queue |
//! | `model` | callers, drivers and servers in every interleaving |
//! | `tls` | one of them: records and the handshake |
//!
//! Rules:
//!
//! 1. Replies come in the order of the requests, so the entries in the cell and behind it in the driver are
//!    in the order of their bytes. Bytes and entry are added under one lock.
//! 2. Who leaves before the reply is there leaves the entry behind. The reply is read and dropped.
//! 3. Only one at a time writes to the socket: the driver, or the caller that found the lane idle.
//! 4. What is not sent yet stays in the cell when the connection is lost, and goes by the next one.

mod attend;
pub(crate) mod cell;
pub(crate) mod connect;
pub(crate) mod driver;
mod for_room;
mod in_flight;
pub(crate) mod io;
#[cfg(all(test, brisk_loom))]
mod model;
pub(crate) mod pool;
pub(crate) mod slot;
#[cfg(feature = "tls")]
mod tls;

use crate::error::{Error, Kind, Result};
use crate::observe::Counts;
use crate::reply::Reply;
use crate::request::Request;
use cell::{Shared, Submitted};
use slot::Slot;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The callers' side of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    shared: Arc<Shared>,
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>) -> Lane {
        Lane { shared }
    }

    /// Puts requests into the queue, in one piece: nothing of another caller's comes between. Their replies
    /// will be in the slot, which wakes `waker`. O(bytes).
    ///
    /// # Errors
    /// A lane counts one reply for each request, so it refuses requests that would make this count wrong.
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

    /// What callers and the driver share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Nothing more goes by it; who waits gets an error.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Nothing more goes by it, and what was not sent goes elsewhere; what was sent is still answered.
    pub(crate) fn retire(&self) {
        self.shared.retire();
    }

    /// There was no connection when last one was tried.
    pub(crate) fn is_down(&self) -> bool {
        self.shared.is_down()
    }

    /// What it has counted.
    pub(crate) fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Requests whose replies have not come, about.
    pub(crate) fn pending(&self) -> usize {
        self.shared.pending()
    }
}

#[cold]
fn unpaired() -> Error {
    let text = "after this command the server sends replies that are no command's own: a Subscriber is for \
                messages, and CLIENT REPLY OFF and SKIP, MONITOR, REPLCONF ACK and SYNC have no place here";
    Error::new(Kind::Invalid, text)
}

/// Where a caller waits.
pub(crate) type Waiting = crate::sync::Arc<Slot>;

/// What a caller gets.
pub(crate) type Answer = Result<Reply>;
