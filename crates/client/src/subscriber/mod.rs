//! Listening to channels, on a connection of its own.
//!
//! | part | what it is |
//! |---|---|
//! | [`Subscriber`] | what callers have |
//! | `listener` | the task behind it: it tells the server what is wanted, hears, and connects anew |
//! | `orders` | what the server was told, who waits for its answers, and what is wanted |
//! | `keyspace` | what the server tells of its keys |
//!
//! What a listener cannot know by itself it is told: that messages may have been lost because the connection
//! was ([`Event::Gap`]), or because it was slower than they came ([`Event::Overflow`]).

mod keyspace;
mod listener;
mod orders;

pub use keyspace::KeyspaceEvent;
pub use orders::Confirmation;

use crate::client::{Client, Ends};
use crate::command::sealed::Target;
use crate::error::{Error, Kind, Result};
use crate::lane::connect::{Setup, open};
use crate::poison::lock;
use crate::wait::{Home, block_on};
use bytes::Bytes;
use listener::Listener;
use orders::{Orders, Way};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Bytes of messages that wait for the listener.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// What a message takes beside its bytes, about.
const MESSAGE_BYTES: usize = 64;

/// What a listener hears.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message.
    Message(Message),
    /// The connection was lost and is there again, with all subscriptions: what was published in between is
    /// not known.
    Gap,
    /// So many messages were dropped, the oldest, because the listener did not take them.
    Overflow {
        /// How many.
        lost: u64,
    },
    /// A channel or pattern that was listened to is refused on a new connection, and not listened to any more.
    Refused {
        /// Which.
        channel: Bytes,
        /// What the server says.
        error: Error,
    },
}

/// A message that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it was published.
    pub channel: Bytes,
    /// The pattern by which it was heard, if it was by one.
    pub pattern: Option<Bytes>,
    /// The message.
    pub payload: Bytes,
}

/// A listener; [`Client::subscriber`] makes it. Dropped, it ends its connection; it also ends with
/// [`Client::close`].
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared>,
    /// The thread that runs the connection, if it is a single one.
    home: Home,
    /// Time for the server's answers.
    timeout: Option<Duration>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to be sent, or the listener is gone.
    changed: Notify,
    /// Somebody waits, for no longer than he may.
    waits: Notify,
}

#[derive(Debug, Default)]
struct State {
    orders: Orders,
    /// A gap is to be told of when everything is subscribed again.
    has_gap: bool,
    events: VecDeque<Event>,
    bytes: usize,
    lost: u64,
    listener: Option<Waker>,
    /// Why nothing is heard any more.
    over: Option<&'static str>,
}

impl State {
    /// Nothing is heard any more. Whom to wake.
    #[must_use]
    fn end(&mut self, why: &'static str) -> Vec<Waker> {
        self.over.get_or_insert(why);
        let mut wakers = self.orders.wakers();
        wakers.extend(self.listener.take());
        wakers
    }

    /// If everything is confirmed a gap is over. Whom to wake.
    #[must_use]
    fn end_gap(&mut self) -> Option<Waker> {
        if !self.has_gap || !self.orders.are_confirmed() {
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

impl Ends for Shared {
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
    /// A listener with a connection of its own, made now. It listens to nothing yet.
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
    /// The server is not there, or refuses; the client is closed.
    pub async fn subscriber(&self) -> Result<Subscriber> {
        self.listen_at(None).await
    }

    /// The same, in a cluster with the node that has this sharded channel, and others of its slot: those of other
    /// slots are refused. If the slot moves the listener goes with it, and tells of a [gap](Event::Gap). Plain channels
    /// and patterns are heard at any node.
    ///
    /// # Errors
    /// As [`Client::subscriber`].
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

    /// As [`Client::subscriber`], for programs without a runtime.
    ///
    /// # Errors
    /// As [`Client::subscriber`].
    pub fn subscriber_blocking(&self) -> Result<Subscriber> {
        block_on(Box::pin(self.subscriber()))
    }
}

impl Subscriber {
    /// One that listens where this leads to, on a task of that runtime.
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
        // Before the task: who leaves while it connects ends it.
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

    /// Listens to these channels too. Awaited, or [waited for](Confirmation::wait), it
    /// returns when the server has confirmed it.
    pub fn subscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Channel, channels, false)
    }

    /// Listens to all channels that match these patterns too.
    pub fn psubscribe<K: Into<Bytes>>(
        &self,
        patterns: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Pattern, patterns, false)
    }

    /// Listens to these sharded channels too.
    pub fn ssubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Shard, channels, false)
    }

    /// Listens to these channels no more.
    pub fn unsubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Channel, channels, true)
    }

    /// Listens to these patterns no more.
    pub fn punsubscribe<K: Into<Bytes>>(
        &self,
        patterns: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Pattern, patterns, true)
    }

    /// Listens to these sharded channels no more.
    pub fn sunsubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Confirmation<'_> {
        self.order(Way::Shard, channels, true)
    }

    fn order<K: Into<Bytes>>(
        &self,
        way: Way,
        names: impl IntoIterator<Item = K>,
        ends: bool,
    ) -> Confirmation<'_> {
        let names = names.into_iter().map(Into::into).collect();
        Confirmation::new(&self.shared, self.home, way, names, ends, self.timeout)
    }

    /// The next event; `None` only when the client is closed or the runtime has ended.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The poll form of [`Subscriber::next`], for a `Stream` of any library (this crate depends on
    /// none):
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
    /// connection (a current-thread runtime), the call does not wait: then `None` means that there is no event now.
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
