//! Subscription requests that were sent, callers that wait for confirmation, and the wanted subscriptions.
//!
//! The server replies in the order of the requests, separately for each name. A reply therefore belongs to the first
//! request without a reply. An error goes to the call that made the request, and is dropped if that call no longer
//! waits.

use super::Shared;
use crate::error::{Error, Kind, Phase, Result};
use crate::lane::cell::timeout;
use crate::request::{Request, Traits};
use crate::wait::{Home, block_on};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The maximum number of names without a reply, sent or not. Further ones are rejected.
const UNANSWERED_MAX: usize = 1 << 20;

/// The kind of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Channel,
    Pattern,
    Shard,
}

impl Way {
    fn command(self, ends: bool) -> &'static str {
        match (self, ends) {
            (Way::Channel, false) => "SUBSCRIBE",
            (Way::Pattern, false) => "PSUBSCRIBE",
            (Way::Shard, false) => "SSUBSCRIBE",
            (Way::Channel, true) => "UNSUBSCRIBE",
            (Way::Pattern, true) => "PUNSUBSCRIBE",
            (Way::Shard, true) => "SUNSUBSCRIBE",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Order {
    way: Way,
    name: Bytes,
    ends: bool,
    /// The call that made the request; `None` if the request is repeated on a new connection.
    call: Option<u64>,
}

/// A request that was sent and has no reply yet.
#[derive(Debug)]
pub(super) enum Asked {
    Order(Order),
    Ping,
}

/// The server's reply to a request.
pub(super) enum Answer<'a> {
    Confirmed { kind: &'a [u8], name: &'a [u8] },
    Refused(Error),
    Pong,
}

/// The effect of a reply.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) waker: Option<Waker>,
    /// The subscription that has ended, and why.
    pub(super) refused: Option<(Bytes, Error)>,
}

/// A caller that waits until all of its requests have replies.
#[derive(Debug)]
struct Call {
    left: usize,
    error: Option<Error>,
    until: Option<Instant>,
    waker: Waker,
}

#[derive(Debug, Default)]
pub(super) struct Orders {
    wanted: BTreeSet<(Way, Bytes)>,
    /// Requests that are not sent yet, in order.
    queued: VecDeque<Order>,
    asked: VecDeque<Asked>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
}

impl Orders {
    /// Writes the requests to send.
    pub(super) fn ask(&mut self, out: &mut Vec<u8>) {
        for order in self.queued.drain(..) {
            // One command for each name, because all sharded channels of a command must be in one slot.
            let mut request = Request::new(order.way.command(order.ends), Traits::default());
            request.arg(&order.name);
            request.encode(out);
            self.asked.push_back(Asked::Order(order));
        }
    }

    pub(super) fn asked(&mut self, asked: Asked) {
        self.asked.push_back(asked);
    }

    pub(super) fn are_confirmed(&self) -> bool {
        self.queued.is_empty() && !self.asked.iter().any(|asked| matches!(asked, Asked::Order(_)))
    }

    /// Reports whether this subscription exists or is requested.
    pub(super) fn are_for(&self, way: Way, name: &[u8]) -> bool {
        self.wanted.contains(&(way, Bytes::copy_from_slice(name)))
    }

    /// On a new connection, requests all wanted subscriptions first, and then repeats the requests without a reply.
    pub(super) fn begin_anew(&mut self) {
        let unanswered = self.asked.drain(..).filter_map(|asked| match asked {
            Asked::Order(order) => Some(order),
            Asked::Ping => None,
        });
        let pending: VecDeque<Order> = unanswered.chain(self.queued.drain(..)).collect();
        let is_pending: BTreeSet<_> =
            pending.iter().map(|order| (order.way, order.name.clone())).collect();
        let again = self.wanted.difference(&is_pending).cloned();
        self.queued = again
            .map(|(way, name)| Order { way, name, ends: false, call: None })
            .chain(pending)
            .collect();
    }

    /// Handles a reply, which belongs to the first request that has no reply yet.
    pub(super) fn answer(&mut self, answer: Answer<'_>) -> Answered {
        let is_its = match (self.asked.front(), &answer) {
            (Some(Asked::Ping), answer) => !matches!(answer, Answer::Confirmed { .. }),
            (Some(Asked::Order(order)), Answer::Confirmed { kind, name }) => {
                order.way.command(order.ends).as_bytes().eq_ignore_ascii_case(kind)
                    && order.name == *name
            }
            (Some(Asked::Order(_)), answer) => matches!(answer, Answer::Refused(_)),
            (None, _) => false,
        };
        // A message that the server sends unprompted, for example when a slot has moved, is not a reply.
        let true = is_its else { return Answered::default() };
        let Some(Asked::Order(order)) = self.asked.pop_front() else { return Answered::default() };
        let error = if let Answer::Refused(error) = answer { Some(error) } else { None };
        let is_on = order.ends == error.is_some();
        let wanted = (order.way, order.name.clone());
        match is_on {
            true => self.wanted.insert(wanted),
            false => self.wanted.remove(&wanted),
        };
        let Some(number) = order.call else {
            return Answered { waker: None, refused: error.map(|error| (order.name, error)) };
        };
        let Some(call) = self.calls.get_mut(&number) else { return Answered::default() };
        call.left = call.left.saturating_sub(1);
        call.error = call.error.take().or(error);
        Answered { waker: (call.left == 0).then(|| call.waker.clone()), refused: None }
    }

    /// The earliest time limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.calls.values().filter(|call| call.left > 0).filter_map(|call| call.until).min()
    }

    /// Returns errors to calls that have timed out. Returns the wakers to wake.
    #[must_use]
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Waker> {
        let is_over = |call: &&mut Call| call.left > 0 && call.until.is_some_and(|end| end <= now);
        let over = self.calls.values_mut().filter(is_over);
        over.map(|call| {
            call.left = 0;
            call.error = Some(timeout(Phase::Sent, None));
            call.waker.clone()
        })
        .collect()
    }

    /// The wakers of all waiting callers.
    pub(super) fn wakers(&self) -> Vec<Waker> {
        self.calls.values().map(|call| call.waker.clone()).collect()
    }

    fn add(&mut self, of: &New, until: Option<Instant>, waker: &Waker) -> u64 {
        self.last_call += 1;
        let call = self.last_call;
        let New { way, names, ends } = of;
        for name in names {
            let wanted = (*way, name.clone());
            match ends {
                true => self.wanted.remove(&wanted),
                false => self.wanted.insert(wanted),
            };
            let order = Order { way: *way, name: name.clone(), ends: *ends, call: Some(call) };
            self.queued.push_back(order);
        }
        let waker = waker.clone();
        self.calls.insert(call, Call { left: names.len(), error: None, until, waker });
        call
    }
}

#[derive(Debug)]
struct New {
    way: Way,
    names: Vec<Bytes>,
    ends: bool,
}

/// The confirmation of a change to subscriptions. Nothing is sent before the confirmation is polled or [waited
/// for](Self::wait).
///
/// The client's time limit applies. If the time limit passes, or the future is dropped, the change remains queued and
/// is sent when possible. If the server rejects one name of a call, that subscription is dropped, and the others of the
/// call continue.
///
/// The error is the server's first rejection, [`Kind::Timeout`], [`Kind::Closed`], or [`Kind::Overloaded`] if a million
/// names are waiting.
#[must_use = "nothing is sent unless it is awaited or waited for"]
#[derive(Debug)]
pub struct Confirmation<'a> {
    shared: &'a Shared,
    home: Home,
    new: New,
    timeout: Option<Duration>,
    call: Option<u64>,
}

impl<'a> Confirmation<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        home: Home,
        way: Way,
        names: Vec<Bytes>,
        ends: bool,
        timeout: Option<Duration>,
    ) -> Confirmation<'a> {
        Confirmation { shared, home, new: New { way, names, ends }, timeout, call: None }
    }

    /// Sets the time limit for the server's confirmation, instead of the client's.
    pub fn timeout(mut self, timeout: Duration) -> Confirmation<'a> {
        self.timeout = Some(timeout);
        self
    }

    /// Blocks this thread until the server has confirmed the change. No runtime is needed.
    ///
    /// # Errors
    /// The same as when awaited.
    pub fn wait(self) -> Result<()> {
        block_on(self)
    }
}

impl Future for Confirmation<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        this.home.check()?;
        let mut state = this.shared.lock();
        if let Some(why) = state.over {
            return Poll::Ready(Err(Error::new(Kind::Closed, why)));
        }
        let is_new = this.call.is_none();
        let unanswered = state.orders.queued.len() + state.orders.asked.len();
        if is_new && unanswered + this.new.names.len() > UNANSWERED_MAX {
            let text = format!("{unanswered} names wait to be listened to, nothing was sent");
            return Poll::Ready(Err(Error::new(Kind::Overloaded, text)));
        }
        let number = *this.call.get_or_insert_with(|| {
            let until = this.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
            state.orders.add(&this.new, until, cx.waker())
        });
        let Some(call) = state.orders.calls.get_mut(&number) else {
            return Poll::Ready(Err(Error::new(Kind::Invalid, "polled after it had completed")));
        };
        if call.left > 0 {
            call.waker.clone_from(cx.waker());
            drop(state);
            if is_new {
                this.shared.changed.notify_one();
                this.shared.waits.notify_one();
            }
            return Poll::Pending;
        }
        let call = state.orders.calls.remove(&number);
        Poll::Ready(call.and_then(|call| call.error).map_or(Ok(()), Err))
    }
}

impl Drop for Confirmation<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            // Later replies belong to no call.
            self.shared.lock().orders.calls.remove(&call);
        }
    }
}
