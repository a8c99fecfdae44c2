//! Publish and subscribe, on a separate connection.
//!
//! | part | what it is |
//! |---|---|
//! | [`Subscriber`] | the API |
//! | `listener` | the subscriber's task: subscribes, receives messages, reconnects |
//! | `subscriptions` | requested and confirmed subscriptions, and the callers that wait for confirmations |
//! | `keyspace` | keyspace notifications |
//!
//! A subscriber receives an event if messages may be missing: [`Event::Gap`] after a lost connection, and
//! [`Event::Overflow`] if it was too slow.

mod keyspace;
mod listener;
mod subscriptions;

pub use keyspace::KeyspaceEvent;
pub use subscriptions::Confirmation;

use crate::arg::ToArgs;
use crate::client::{Client, CloseWithClient};
use crate::command::sealed::Target;
use crate::error::{Error, Kind, Result};
use crate::lane::connect::{Setup, open};
use crate::poison::lock;
use crate::request::Request;
use crate::wait::{Home, block_on};
use bytes::Bytes;
use listener::Listener;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use subscriptions::{ChangeSet, SubscriptionKind, Subscriptions};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The maximum total size of the messages that are kept for a slow subscriber, in bytes.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// Approximate overhead of a message, in addition to its bytes.
const MESSAGE_BYTES: usize = 64;

/// An event that a [`Subscriber`] receives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message.
    Message(Message),
    /// The connection was lost, and has been reopened with all subscriptions. Messages that were published in between
    /// are missing.
    Gap,
    /// The oldest messages were dropped, because the subscriber did not read them in time.
    Overflow {
        /// The number of dropped messages.
        lost: u64,
    },
    /// The server rejected a subscription on a new connection, so that the subscription has ended.
    Rejected {
        /// The channel or pattern.
        channel: Bytes,
        /// The server's error.
        error: Error,
    },
}

/// A message that was published. `Debug` shows the length of the payload, but not its bytes, which may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The channel.
    pub channel: Bytes,
    /// The pattern of the subscription, if it is a pattern subscription.
    pub pattern: Option<Bytes>,
    /// The payload.
    pub payload: Bytes,
}

/// A connection that receives published messages; [`Client::subscriber`] opens it. It reconnects and resubscribes
/// automatically. Dropping the subscriber, or [`Client::close`], closes the connection.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared>,
    /// The thread that runs the connection, if a single thread runs all connections of the client.
    home: Home,
    /// The time limit for confirmations.
    timeout: Option<Duration>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is something to send, or when the subscriber is dropped.
    changed: Notify,
    /// Notified when a caller with a time limit starts to wait for a confirmation.
    waits: Notify,
}

#[derive(Default)]
struct State {
    subscriptions: Subscriptions,
    /// True if a `Gap` is due once all subscriptions are confirmed again.
    has_gap: bool,
    events: VecDeque<Event>,
    bytes: usize,
    lost: u64,
    listener: Option<Waker>,
    /// Why the subscriber has ended, if it has.
    over: Option<&'static str>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("channel", &self.channel)
            .field("pattern", &self.pattern)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Shared")
            .field("unread_events", &state.events.len())
            .field("unread_bytes", &state.bytes)
            .field("lost", &state.lost)
            .field("over", &state.over)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Ends the subscriber. Returns the wakers to wake.
    #[must_use]
    fn end(&mut self, why: &'static str) -> Vec<Waker> {
        self.over.get_or_insert(why);
        let mut wakers = self.subscriptions.wakers();
        wakers.extend(self.listener.take());
        wakers
    }

    /// Adds the due `Gap` if all subscriptions are confirmed. Returns the waker to wake.
    #[must_use]
    fn end_gap(&mut self) -> Option<Waker> {
        if !self.has_gap || !self.subscriptions.are_all_confirmed() {
            return None;
        }
        self.has_gap = false;
        if !matches!(self.events.back(), Some(Event::Gap)) {
            self.events.push_back(Event::Gap);
        }
        self.listener.take()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl CloseWithClient for Shared {
    fn end(&self) {
        let wakers = self.lock().end("the client is closed");
        self.changed.notify_one();
        wakers.into_iter().for_each(Waker::wake);
    }
}

fn size(event: &Event) -> usize {
    match event {
        Event::Message(message) => MESSAGE_BYTES + message.channel.len() + message.payload.len(),
        _ => 0,
    }
}

impl Client {
    /// Opens a connection that receives published messages. It has no subscriptions yet.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// let mut news = db.subscriber().await?;
    /// news.subscribe(["news"]).await?;
    /// while let Some(event) = news.next().await {
    ///     if let brisk::Event::Message(message) = event {
    ///         println!("{:?}", message.payload);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the connection; or the client is closed.
    pub async fn subscriber(&self) -> Result<Subscriber> {
        self.listen_at(None).await
    }

    /// Like [`Client::subscriber`]. In a cluster, it connects to the node that serves this sharded channel. You can
    /// subscribe to other sharded channels of the same slot; the node rejects channels of other slots. If the slot
    /// moves, the subscriber follows it and reports a [gap](Event::Gap). Plain channels and patterns work on any node.
    ///
    /// # Errors
    /// Those of [`Client::subscriber`].
    pub async fn subscriber_for(&self, channel: impl Into<Bytes>) -> Result<Subscriber> {
        self.listen_at(Some(channel.into())).await
    }

    async fn listen_at(&self, channel: Option<Bytes>) -> Result<Subscriber> {
        let (setup, handle) = self.setup(channel.as_deref());
        let shared = Arc::new(Shared::default());
        let cluster = self.weak_cluster();
        let listener = Listener { shared, setup, cluster, channel };
        let subscriber = Subscriber::open(listener, &handle, self.default_timeout()).await?;
        self.attach(&subscriber.shared)?;
        Ok(subscriber)
    }

    /// Like [`Client::subscriber`], but blocks this thread. No runtime is needed.
    ///
    /// # Errors
    /// Those of [`Client::subscriber`].
    pub fn subscriber_blocking(&self) -> Result<Subscriber> {
        block_on(Box::pin(self.subscriber()))
    }
}

impl Subscriber {
    /// Opens a subscriber for this setup, with its task on this runtime.
    pub(crate) async fn at(
        setup: Arc<Setup>,
        handle: &Handle,
        timeout: Option<Duration>,
    ) -> Result<Subscriber> {
        let shared = Arc::new(Shared::default());
        let listener = Listener { shared, setup, cluster: None, channel: None };
        Subscriber::open(listener, handle, timeout).await
    }

    async fn open(
        listener: Listener,
        handle: &Handle,
        timeout: Option<Duration>,
    ) -> Result<Subscriber> {
        // Created before the task, so that dropping this future while the task connects ends the task.
        let home = listener.setup.home;
        home.check()?;
        let subscriber = Subscriber { shared: Arc::clone(&listener.shared), home, timeout };
        let opening = handle.spawn(async move {
            let connection = open(&listener.setup).await?;
            tokio::spawn(listener.run(connection));
            Ok(())
        });
        opening.await.unwrap_or_else(|_| Err(Error::new(Kind::Closed, "the runtime has ended")))?;
        Ok(subscriber)
    }

    /// Subscribes to a channel or a list of channels. To wait until the server has confirmed the subscription, await
    /// the result or [block](Confirmation::wait) on it.
    pub fn subscribe(&self, channels: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Channel, channels, false)
    }

    /// Subscribes to all channels that match these patterns.
    pub fn psubscribe(&self, patterns: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Pattern, patterns, false)
    }

    /// Subscribes to these sharded channels.
    pub fn ssubscribe(&self, channels: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Shard, channels, false)
    }

    /// Ends the subscriptions to these channels.
    pub fn unsubscribe(&self, channels: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Channel, channels, true)
    }

    /// Ends the subscriptions to these patterns.
    pub fn punsubscribe(&self, patterns: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Pattern, patterns, true)
    }

    /// Ends the subscriptions to these sharded channels.
    pub fn sunsubscribe(&self, channels: impl ToArgs) -> Confirmation<'_> {
        self.change(SubscriptionKind::Shard, channels, true)
    }

    fn change(&self, kind: SubscriptionKind, names: impl ToArgs, ends: bool) -> Confirmation<'_> {
        let mut request = Request::named("NAMES");
        request.args(names);
        let failure = request.failure().cloned();
        let names = request.arguments().skip(1).map(Bytes::copy_from_slice).collect();
        let changes = ChangeSet { kind, names, ends, failure };
        Confirmation::new(&self.shared, self.home, changes, self.timeout)
    }

    /// Returns the next event; `None` only when the client is closed or the runtime has ended.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The poll form of [`Subscriber::next`], to build a `Stream` with another library (this crate depends on none):
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client) -> brisk::Result<()> {
    /// use futures_util::{StreamExt, stream};
    /// let mut news = db.subscriber().await?;
    /// news.subscribe(["news"]).await?;
    /// let events = stream::poll_fn(move |cx| news.poll_next(cx));
    /// events.take(10).for_each(async |event| println!("{event:?}")).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.shared.lock();
        if state.lost > 0 {
            let lost = std::mem::take(&mut state.lost);
            return Poll::Ready(Some(Event::Overflow { lost }));
        }
        if let Some(event) = state.events.pop_front() {
            state.bytes -= size(&event);
            return Poll::Ready(Some(event));
        }
        if state.over.is_some() || self.home.is_stopped() {
            return Poll::Ready(None);
        }
        state.listener = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Like [`Subscriber::next`], but blocks this thread and needs no runtime. If this thread runs the subscriber's
    /// connection (a current-thread runtime), the call does not wait, and `None` means that there is no event now.
    pub fn wait_next(&mut self) -> Option<Event> {
        block_on(Box::pin(self.next()))
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        drop(self.shared.lock().end("the listener is gone"));
        self.shared.changed.notify_one();
    }
}
