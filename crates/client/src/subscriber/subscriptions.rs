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

/// The maximum number of names in requests without a reply, sent or not. Further names are rejected.
const PENDING_MAX: usize = 1 << 20;

/// The kind of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubscriptionKind {
    Channel,
    Pattern,
    Shard,
}

impl SubscriptionKind {
    fn command(self, ends: bool) -> &'static str {
        match (self, ends) {
            (SubscriptionKind::Channel, false) => "SUBSCRIBE",
            (SubscriptionKind::Pattern, false) => "PSUBSCRIBE",
            (SubscriptionKind::Shard, false) => "SSUBSCRIBE",
            (SubscriptionKind::Channel, true) => "UNSUBSCRIBE",
            (SubscriptionKind::Pattern, true) => "PUNSUBSCRIBE",
            (SubscriptionKind::Shard, true) => "SUNSUBSCRIBE",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Change {
    kind: SubscriptionKind,
    name: Bytes,
    ends: bool,
    /// The call that made the request; `None` if the request is repeated on a new connection.
    call: Option<u64>,
}

/// A request that was sent and has no reply yet.
#[derive(Debug)]
pub(super) enum SentRequest {
    Change(Change),
    Ping,
}

/// The server's reply to a request.
pub(super) enum ServerReply<'a> {
    Confirmed { kind: &'a [u8], name: &'a [u8] },
    Rejected(Error),
    Pong,
}

/// The effect of a reply.
#[derive(Default)]
pub(super) struct ReplyEffect {
    pub(super) waker: Option<Waker>,
    /// The subscription that has ended, and why.
    pub(super) rejected: Option<(Bytes, Error)>,
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
pub(super) struct Subscriptions {
    wanted: BTreeSet<(SubscriptionKind, Bytes)>,
    /// Requests that are not sent yet, in order.
    queued: VecDeque<Change>,
    sent: VecDeque<SentRequest>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
}

impl Subscriptions {
    /// Writes the requests to send.
    pub(super) fn write_requests(&mut self, out: &mut Vec<u8>) {
        for change in self.queued.drain(..) {
            // One command for each name, because all sharded channels of a command must be in one slot.
            let mut request = Request::new(change.kind.command(change.ends), Traits::default());
            request.arg(&change.name);
            request.encode(out);
            self.sent.push_back(SentRequest::Change(change));
        }
    }

    pub(super) fn record_sent(&mut self, sent: SentRequest) {
        self.sent.push_back(sent);
    }

    pub(super) fn are_all_confirmed(&self) -> bool {
        self.queued.is_empty()
            && !self.sent.iter().any(|sent| matches!(sent, SentRequest::Change(_)))
    }

    /// Reports whether this subscription exists or is requested.
    pub(super) fn wants(&self, kind: SubscriptionKind, name: &[u8]) -> bool {
        self.wanted.contains(&(kind, Bytes::copy_from_slice(name)))
    }

    /// On a new connection, requests all wanted subscriptions first, and then repeats the requests without a reply.
    pub(super) fn resubscribe(&mut self) {
        let pending = self.sent.drain(..).filter_map(|sent| match sent {
            SentRequest::Change(change) => Some(change),
            SentRequest::Ping => None,
        });
        let pending: VecDeque<Change> = pending.chain(self.queued.drain(..)).collect();
        let is_pending: BTreeSet<_> =
            pending.iter().map(|change| (change.kind, change.name.clone())).collect();
        let again = self.wanted.difference(&is_pending).cloned();
        self.queued = again
            .map(|(kind, name)| Change { kind, name, ends: false, call: None })
            .chain(pending)
            .collect();
    }

    /// Handles a reply, which belongs to the first request that has no reply yet.
    pub(super) fn handle_reply(&mut self, reply: ServerReply<'_>) -> ReplyEffect {
        let is_expected = match (self.sent.front(), &reply) {
            (Some(SentRequest::Ping), reply) => !matches!(reply, ServerReply::Confirmed { .. }),
            (Some(SentRequest::Change(change)), ServerReply::Confirmed { kind, name }) => {
                change.kind.command(change.ends).as_bytes().eq_ignore_ascii_case(kind)
                    && change.name == *name
            }
            (Some(SentRequest::Change(_)), reply) => matches!(reply, ServerReply::Rejected(_)),
            (None, _) => false,
        };
        // A message that the server sends unprompted, for example when a slot has moved, is not a reply.
        let true = is_expected else { return ReplyEffect::default() };
        let Some(SentRequest::Change(change)) = self.sent.pop_front() else {
            return ReplyEffect::default();
        };
        let error = if let ServerReply::Rejected(error) = reply { Some(error) } else { None };
        let is_on = change.ends == error.is_some();
        let wanted = (change.kind, change.name.clone());
        match is_on {
            true => self.wanted.insert(wanted),
            false => self.wanted.remove(&wanted),
        };
        let Some(number) = change.call else {
            return ReplyEffect { waker: None, rejected: error.map(|error| (change.name, error)) };
        };
        let Some(call) = self.calls.get_mut(&number) else { return ReplyEffect::default() };
        call.left = call.left.saturating_sub(1);
        call.error = call.error.take().or(error);
        ReplyEffect { waker: (call.left == 0).then(|| call.waker.clone()), rejected: None }
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

    fn add(&mut self, of: &ChangeSet, until: Option<Instant>, waker: &Waker) -> u64 {
        self.last_call += 1;
        let call = self.last_call;
        let ChangeSet { kind, names, ends, .. } = of;
        for name in names {
            let wanted = (*kind, name.clone());
            match ends {
                true => self.wanted.remove(&wanted),
                false => self.wanted.insert(wanted),
            };
            let change = Change { kind: *kind, name: name.clone(), ends: *ends, call: Some(call) };
            self.queued.push_back(change);
        }
        let waker = waker.clone();
        self.calls.insert(call, Call { left: names.len(), error: None, until, waker });
        call
    }
}

/// The changes of one call.
#[derive(Debug)]
pub(super) struct ChangeSet {
    pub(super) kind: SubscriptionKind,
    pub(super) names: Vec<Bytes>,
    pub(super) ends: bool,
    /// The error, if a name could not be written as an argument.
    pub(super) failure: Option<Error>,
}

/// The confirmation of a change to subscriptions. Nothing is sent before this future is polled or [waited
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
    changes: ChangeSet,
    timeout: Option<Duration>,
    call: Option<u64>,
}

impl<'a> Confirmation<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        home: Home,
        changes: ChangeSet,
        timeout: Option<Duration>,
    ) -> Confirmation<'a> {
        Confirmation { shared, home, changes, timeout, call: None }
    }

    /// Overrides the client's time limit for the server's confirmation.
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
        if let Some(failure) = &this.changes.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let mut state = this.shared.lock();
        if let Some(why) = state.over {
            return Poll::Ready(Err(Error::new(Kind::Closed, why)));
        }
        let is_new = this.call.is_none();
        let pending = state.subscriptions.queued.len() + state.subscriptions.sent.len();
        if is_new && pending + this.changes.names.len() > PENDING_MAX {
            let text = format!("{pending} subscription requests are pending, nothing was sent");
            return Poll::Ready(Err(Error::new(Kind::Overloaded, text)));
        }
        let number = *this.call.get_or_insert_with(|| {
            let until = this.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
            state.subscriptions.add(&this.changes, until, cx.waker())
        });
        let Some(call) = state.subscriptions.calls.get_mut(&number) else {
            return Poll::Ready(Err(Error::new(
                Kind::Invalid,
                "a subscription request was polled after it had completed",
            )));
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
        let call = state.subscriptions.calls.remove(&number);
        Poll::Ready(call.and_then(|call| call.error).map_or(Ok(()), Err))
    }
}

impl Drop for Confirmation<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            // Later replies belong to no call.
            self.shared.lock().subscriptions.calls.remove(&call);
        }
    }
}
