//! Listening to channels, on a connection of its own.
//!
//! What a listener cannot know by itself it is told: that messages may have been lost because the connection
//! was ([`Event::Gap`]), or because it was slower than they came ([`Event::Overflow`]).

use crate::client::{Client, Cluster, key_slot};
use crate::error::{Code, Error, Kind, Result};
use crate::lane::connect::{Connection, Setup, open};
use crate::poison::lock;
use crate::reply::Reply;
use crate::request::{Request, Traits};
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Bytes of messages that wait for the listener.
const KEPT_BYTES: usize = 8 << 20;
/// What a message takes beside its bytes, about.
const MESSAGE_BYTES: usize = 64;
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LONGEST: Duration = Duration::from_secs(2);
/// With nothing to hear a PING tells whether anybody is there.
const PING_EACH: Duration = Duration::from_secs(2);

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

/// What is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
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

/// A listener; [`Client::subscriber`] makes it. Dropped, it ends its connection.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is something to be sent, or the listener is gone.
    changed: Notify,
    kept_bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    wanted: BTreeSet<(Way, Bytes)>,
    /// What is to be told to the server, in order.
    orders: VecDeque<(Way, Bytes, bool)>,
    /// Orders the server has not confirmed.
    unconfirmed: usize,
    confirmed: Vec<Waker>,
    /// A gap is to be told of when everything is subscribed again.
    has_gap: bool,
    refused: Option<Error>,
    events: VecDeque<Event>,
    bytes: usize,
    lost: u64,
    listener: Option<Waker>,
    is_over: bool,
}

impl State {
    /// If everything is confirmed: whom to wake. Only then a gap is over.
    fn confirm(&mut self) -> Vec<Waker> {
        if self.unconfirmed > 0 {
            return Vec::new();
        }
        let mut wakers = std::mem::take(&mut self.confirmed);
        if std::mem::take(&mut self.has_gap) {
            if !matches!(self.events.back(), Some(Event::Gap)) {
                self.events.push_back(Event::Gap);
            }
            wakers.extend(self.listener.take());
        }
        wakers
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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
    /// The server is not there, or refuses.
    pub async fn subscriber(&self) -> Result<Subscriber> {
        self.listen_at(None).await
    }

    /// The same, in a cluster with the node that has this sharded channel, and others of its slot: those of other
    /// slots are refused. If the slot moves the listener goes with it, and tells of a [gap](Event::Gap). Plain channels
    /// and patterns are heard at any node.
    ///
    /// # Errors
    /// The server is not there, or refuses.
    pub async fn subscriber_for(&self, channel: impl Into<Bytes>) -> Result<Subscriber> {
        self.listen_at(Some(channel.into())).await
    }

    async fn listen_at(&self, channel: Option<Bytes>) -> Result<Subscriber> {
        let (setup, handle) = self.setup(channel.as_deref());
        let cluster = self.weak_cluster();
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Notify::new(),
            kept_bytes_max: KEPT_BYTES,
        });
        // Before the task: who leaves while it connects ends it.
        let subscriber = Subscriber { shared: Arc::clone(&shared) };
        let listener = Listener { shared, setup, cluster, channel };
        let opening = handle.spawn(async move {
            let connection = open(&listener.setup).await?;
            tokio::spawn(listener.run(connection));
            Ok(())
        });
        opening.await.unwrap_or_else(|_| Err(Error::new(Kind::Closed, "the runtime has ended")))?;
        Ok(subscriber)
    }
}

impl Subscriber {
    /// Listens to these channels too. Returns when the server has confirmed it.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn subscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Channel, channels, false).await
    }

    /// Listens to all channels that match these patterns too.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn psubscribe<K: Into<Bytes>>(
        &self,
        patterns: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Pattern, patterns, false).await
    }

    /// Listens to these sharded channels too.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn ssubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Shard, channels, false).await
    }

    /// Listens to these channels no more.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn unsubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Channel, channels, true).await
    }

    /// Listens to these patterns no more.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn punsubscribe<K: Into<Bytes>>(
        &self,
        patterns: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Pattern, patterns, true).await
    }

    /// Listens to these sharded channels no more.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn sunsubscribe<K: Into<Bytes>>(
        &self,
        channels: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.order(Way::Shard, channels, true).await
    }

    async fn order<K: Into<Bytes>>(
        &self,
        way: Way,
        names: impl IntoIterator<Item = K>,
        ends: bool,
    ) -> Result<()> {
        {
            let mut state = self.shared.lock();
            for name in names {
                let name = name.into();
                match ends {
                    true => state.wanted.remove(&(way, name.clone())),
                    false => state.wanted.insert((way, name.clone())),
                };
                state.orders.push_back((way, name, ends));
                state.unconfirmed += 1;
            }
        }
        self.shared.changed.notify_one();
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.is_over {
                return Poll::Ready(Err(Error::new(Kind::Closed, "the runtime has ended")));
            }
            if let Some(error) = state.refused.take() {
                return Poll::Ready(Err(error));
            }
            if state.unconfirmed == 0 {
                return Poll::Ready(Ok(()));
            }
            state.confirmed.push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The next event; `None` only when the runtime has ended.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.lost > 0 {
                let lost = std::mem::take(&mut state.lost);
                return Poll::Ready(Some(Event::Overflow { lost }));
            }
            if let Some(event) = state.events.pop_front() {
                state.bytes -= size(&event);
                return Poll::Ready(Some(event));
            }
            if state.is_over {
                return Poll::Ready(None);
            }
            state.listener = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_one();
    }
}

/// The task behind a listener.
struct Listener {
    shared: Arc<Shared>,
    setup: Arc<Setup>,
    cluster: Option<Weak<Cluster>>,
    /// It listens where this one is.
    channel: Option<Bytes>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        let mut wakers = std::mem::take(&mut state.confirmed);
        wakers.extend(state.listener.take());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Listener {
    async fn run(self, first: Connection) {
        let mut next = Some(first);
        let mut retry = RETRY_FIRST;
        while !self.shared.lock().is_over {
            match next.take() {
                Some(connection) => {
                    let began = Instant::now();
                    // Why it was lost is of no use to who listens; that it was, is.
                    let _ = self.listen(connection).await.map_err(|error| self.learn(&error));
                    if began.elapsed() >= RETRY_LONGEST {
                        retry = RETRY_FIRST;
                    } else if !self.shared.lock().is_over {
                        // A server that ends each connection is not asked without a pause.
                        sleep(retry).await;
                        retry = (retry * 2).min(RETRY_LONGEST);
                    }
                }
                None => match open(&self.next_setup()).await {
                    Ok(connection) => {
                        self.subscribe_again();
                        next = Some(connection);
                    }
                    Err(error) => {
                        self.learn(&error);
                        sleep(retry).await;
                        retry = (retry * 2).min(RETRY_LONGEST);
                    }
                },
            }
        }
    }

    fn cluster(&self) -> Option<Arc<Cluster>> {
        self.cluster.as_ref()?.upgrade()
    }

    /// Where the next connection goes: in a cluster not always to the same node.
    fn next_setup(&self) -> Arc<Setup> {
        match self.cluster() {
            Some(cluster) => cluster.setup_to_listen(self.channel.as_deref()),
            None => Arc::clone(&self.setup),
        }
    }

    /// A connection was lost, or could not be made: the cluster may have changed.
    fn learn(&self, error: &Error) {
        if let Some(cluster) = self.cluster() {
            cluster.learn(error);
        }
    }

    /// What the server refuses: another node has the channel now, and the listener goes there; or it is for who
    /// has asked.
    fn refuse(&self, error: Error) -> Result<()> {
        if self.cluster.is_none() || error.code() != Some(Code::Moved) {
            self.confirm(Some(error));
            return Ok(());
        }
        let slot = error.message().split(' ').nth(1).and_then(|slot| slot.parse::<u16>().ok());
        if slot.is_some() && slot == self.channel.as_deref().map(key_slot) {
            return Err(error);
        }
        // Else it would be refused again on each new connection.
        self.shared
            .lock()
            .wanted
            .retain(|(way, name)| *way != Way::Shard || Some(key_slot(name)) != slot);
        self.confirm(Some(error.with_note("a listener by `subscriber_for` hears this channel")));
        Ok(())
    }

    /// On a new connection everything that is wanted is ordered anew.
    fn subscribe_again(&self) {
        let mut state = self.shared.lock();
        let wanted = state.wanted.clone();
        state.unconfirmed = wanted.len();
        state.orders = wanted.into_iter().map(|(way, name)| (way, name, false)).collect();
        state.has_gap = true;
        let wakers = state.confirm();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Sends orders and hears messages until the connection is lost or the listener gone.
    async fn listen(&self, mut connection: Connection) -> Result<()> {
        let mut scanner = FrameScanner::new(ReplyLimits::default());
        let mut silent = false;
        loop {
            let orders: Vec<_> = {
                let mut state = self.shared.lock();
                if state.is_over {
                    return Ok(());
                }
                state.orders.drain(..).collect()
            };
            self.send(&mut connection, &orders).await?;
            while let Scan::Whole(len) = scanner.scan(&connection.buffer)? {
                let reply = Reply::cut(&mut connection.buffer, len);
                self.hear(&reply)?;
            }
            connection.buffer.reserve(4096);
            tokio::select! {
                read = poll_fn(|cx| connection.reader.poll_read(cx, &mut connection.buffer)) => {
                    silent = false;
                    if read.map_err(|error| Error::new(Kind::Disconnected, error.to_string()))? == 0 {
                        return Err(Error::new(Kind::Disconnected, "the server closed the connection"));
                    }
                }
                () = self.shared.changed.notified() => {}
                () = sleep(PING_EACH.min(self.setup.silence_max / 2)) => {
                    if silent {
                        return Err(Error::new(Kind::Disconnected, "no answer to PING"));
                    }
                    silent = true;
                    let mut ping = Vec::new();
                    Request::new("PING", Traits::default()).encode(&mut ping);
                    connection.write_all(&ping).await?;
                }
            }
        }
    }

    async fn send(&self, connection: &mut Connection, orders: &[(Way, Bytes, bool)]) -> Result<()> {
        let mut out = Vec::new();
        for (way, name, ends) in orders {
            // One each, in order: sharded channels of one command have to be of one slot.
            let mut request = Request::new(way.command(*ends), Traits::default());
            request.arg(name);
            request.encode(&mut out);
        }
        connection.write_all(&out).await
    }

    /// One message of the server's; in RESP2 an array is what a push is in RESP3.
    fn hear(&self, reply: &Reply) -> Result<()> {
        let mut reader = reply.reader();
        let count = match reader.part() {
            Ok(part) if part.len_within() > 0 => part.len_within(),
            // The answer to PING.
            Ok(_) => return Ok(()),
            Err(error) => {
                return self.refuse(error);
            }
        };
        let mut read = || reader.part().map(|part| (part.as_bytes(), part));
        let (kind, _) = read()?;
        match (kind, count) {
            (Some(b"message" | b"smessage"), 3) => {
                let (channel, payload) = (read()?.0, read()?.0);
                self.add(channel, None, payload, reply);
            }
            (Some(b"pmessage"), 4) => {
                let (pattern, channel, payload) = (read()?.0, read()?.0, read()?.0);
                self.add(channel, pattern, payload, reply);
            }
            (Some(b"sunsubscribe"), 3) if self.wants(read()?.0) => {
                return Err(Error::new(Kind::Disconnected, "the channel has moved"));
            }
            (Some(kind), 3) if kind.ends_with(b"subscribe") => self.confirm(None),
            _ => {}
        }
        Ok(())
    }

    /// Whether a sharded channel is wanted: then the server ends it by itself, since its slot moves.
    fn wants(&self, channel: Option<&[u8]>) -> bool {
        let channel = Bytes::copy_from_slice(channel.unwrap_or_default());
        self.cluster.is_some() && self.shared.lock().wanted.contains(&(Way::Shard, channel))
    }

    fn add(
        &self,
        channel: Option<&[u8]>,
        pattern: Option<&[u8]>,
        payload: Option<&[u8]>,
        reply: &Reply,
    ) {
        let reader = reply.reader();
        let share = |part: Option<&[u8]>| Bytes::copy_from_slice(part.unwrap_or_default());
        let message = Message {
            channel: share(channel),
            pattern: pattern.map(|pattern| share(Some(pattern))),
            payload: reader.share(payload.unwrap_or_default()),
        };
        let event = Event::Message(message);
        let mut state = self.shared.lock();
        state.bytes += size(&event);
        state.events.push_back(event);
        while state.bytes > self.shared.kept_bytes_max && state.events.len() > 1 {
            let Some(oldest) = state.events.pop_front() else { break };
            state.bytes -= size(&oldest);
            state.lost += 1;
        }
        let listener = state.listener.take();
        drop(state);
        listener.into_iter().for_each(Waker::wake);
    }

    fn confirm(&self, refused: Option<Error>) {
        let mut state = self.shared.lock();
        state.unconfirmed = state.unconfirmed.saturating_sub(1);
        let is_refused = refused.is_some();
        state.refused = refused.or(state.refused.take());
        let mut wakers = state.confirm();
        if is_refused {
            wakers.append(&mut state.confirmed);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
