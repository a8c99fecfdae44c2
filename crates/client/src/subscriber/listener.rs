//! The task of a subscriber: it sends subscriptions to the server, receives messages, and reconnects after a lost
//! connection.

use super::subscriptions::{SentRequest, ServerReply, SubscriptionKind};
use super::{Event, KEPT_BYTES_MAX, Message, Shared, size};
use crate::client::Cluster;
use crate::error::{Code, Error, Kind, Result};
use crate::lane::connect::{Connection, Setup, open};
use crate::observe::{ReportedConnection, reconnecting};
use crate::reply::Reply;
use crate::request::{Request, Traits};
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use brisk_resp::slot::key_slot;
use bytes::Bytes;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LONGEST: Duration = Duration::from_secs(2);
/// The interval of PING, which checks the connection while no messages arrive.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// How long the timer sleeps if no caller is waiting.
const NO_DEADLINE: Duration = Duration::from_secs(3600);

pub(super) struct Listener {
    pub(super) shared: Arc<Shared>,
    pub(super) setup: Arc<Setup>,
    pub(super) cluster: Option<Weak<Cluster>>,
    /// In a cluster, the subscriber connects to the node of this channel.
    pub(super) channel: Option<Bytes>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let wakers = self.shared.lock().end("the runtime has ended");
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Listener {
    pub(super) async fn run(self, first: Connection) {
        tokio::select! {
            () = self.run_connections(first) => {}
            () = self.keep_time() => {}
        }
    }

    /// Enforces the callers' time limits, even while there is no connection.
    async fn keep_time(&self) {
        loop {
            let next = self.shared.lock().subscriptions.deadline();
            let rest =
                next.map_or(NO_DEADLINE, |next| next.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = sleep(rest) => {}
                () = self.shared.waits.notified() => {}
            }
            let wakers = self.shared.lock().subscriptions.expire(Instant::now());
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    async fn run_connections(&self, first: Connection) {
        let mut next = Some(first);
        let mut retry = RETRY_FIRST;
        while self.shared.lock().over.is_none() {
            match next.take() {
                Some(connection) => {
                    let began = Instant::now();
                    let reported = ReportedConnection::connected(&self.setup, &connection);
                    // Subscribers do not need the reason, only the event.
                    if let Err(error) = self.listen(connection).await {
                        reported.ended(&error);
                        self.learn(&error);
                    }
                    if began.elapsed() >= RETRY_LONGEST {
                        retry = RETRY_FIRST;
                    } else if self.shared.lock().over.is_none() {
                        // If a server closes each connection, pause before the next attempt.
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
                        reconnecting(&self.setup, &error, retry);
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

    /// The setup of the next connection. In a cluster, it may lead to another node.
    fn next_setup(&self) -> Arc<Setup> {
        match self.cluster() {
            Some(cluster) => cluster.setup_to_listen(self.channel.as_deref()),
            None => Arc::clone(&self.setup),
        }
    }

    /// Handles a connection that was lost or could not be opened. The cluster may have changed.
    fn learn(&self, error: &Error) {
        if let Some(cluster) = self.cluster() {
            cluster.learn(error);
        }
    }

    /// Handles an error of the server. If another node has the channel now, the listener reconnects there. Otherwise
    /// the caller gets the error.
    fn handle_error(&self, error: Error) -> Result<()> {
        let is_moved = self.cluster.is_some() && error.code() == Some(Code::Moved);
        let slot = error.message().split(' ').nth(1).and_then(|slot| slot.parse::<u16>().ok());
        if is_moved && slot.is_some() && slot == self.channel.as_deref().map(key_slot) {
            return Err(error);
        }
        let error = match is_moved {
            true => error.with_note("use `subscriber_for` to subscribe to this channel"),
            false => error,
        };
        self.handle_reply(ServerReply::Rejected(error));
        Ok(())
    }

    /// Reports whether a sharded channel is still wanted. If so, the server has ended the subscription because the slot
    /// is moving to another node.
    fn has_moved(&self, channel: &[u8]) -> bool {
        self.cluster.is_some()
            && self.shared.lock().subscriptions.wants(SubscriptionKind::Shard, channel)
    }

    /// Requests all wanted subscriptions again on a new connection.
    fn subscribe_again(&self) {
        let mut state = self.shared.lock();
        state.subscriptions.resubscribe();
        state.has_gap = true;
        let waker = state.end_gap();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Sends requests and receives messages until the connection is lost or the subscriber is dropped.
    async fn listen(&self, mut connection: Connection) -> Result<()> {
        let origin = connection.origin.clone();
        let mut left = pin!(self.setup.destination.left(&origin));
        let mut scanner = FrameScanner::new(ReplyLimits::default());
        let mut silent = false;
        // The bytes that are being sent, and how many of them have been sent.
        let (mut out, mut sent) = (Vec::new(), 0);
        loop {
            {
                let mut state = self.shared.lock();
                if state.over.is_some() {
                    return Ok(());
                }
                if sent == out.len() {
                    (out, sent) = (Vec::new(), 0);
                    state.subscriptions.write_requests(&mut out);
                }
            }
            let Connection { reader, writer, buffer, .. } = &mut connection;
            while let Scan::Whole(len) = scanner.scan(buffer)? {
                let reply = Reply::cut(buffer, len);
                self.handle_message(&reply)?;
            }
            buffer.reserve(4096);
            let lost = |error: std::io::Error| Error::socket("", error);
            // Reading and writing must not wait for each other: a server may stop reading until its replies are read.
            tokio::select! {
                read = poll_fn(|cx| reader.poll_read(cx, buffer)) => {
                    silent = false;
                    if read.map_err(lost)? == 0 {
                        return Err(Error::new(Kind::Disconnected, "the server closed the connection"));
                    }
                }
                written = poll_fn(|cx| writer.poll_write(cx, &out[sent..])), if sent < out.len() => {
                    sent += written.map_err(lost)?;
                }
                () = self.shared.changed.notified() => {}
                error = &mut left => return Err(error),
                () = sleep(PING_INTERVAL.min(self.setup.silence_max / 2)) => {
                    if silent {
                        return Err(Error::new(Kind::Disconnected, "no reply to PING"));
                    }
                    silent = true;
                    self.shared.lock().subscriptions.record_sent(SentRequest::Ping);
                    Request::new("PING", Traits::default()).encode(&mut out);
                }
            }
        }
    }

    /// Handles a message of the server. In RESP2, messages are arrays instead of push messages.
    fn handle_message(&self, reply: &Reply) -> Result<()> {
        let mut reader = reply.reader();
        let count = match reader.part() {
            Ok(part) if part.len_within() > 0 => part.len_within(),
            Ok(_) => {
                self.handle_reply(ServerReply::Pong);
                return Ok(());
            }
            Err(error) => return self.handle_error(error),
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
            (Some(b"pong"), 2) => self.handle_reply(ServerReply::Pong),
            (Some(kind), 3) if kind.ends_with(b"subscribe") => {
                let name = read()?.0.unwrap_or_default();
                if kind == b"sunsubscribe" && self.has_moved(name) {
                    return Err(Error::new(Kind::Disconnected, "the channel has moved"));
                }
                self.handle_reply(ServerReply::Confirmed { kind, name });
            }
            _ => {}
        }
        Ok(())
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
        while state.bytes > KEPT_BYTES_MAX && state.events.len() > 1 {
            let Some(oldest) = state.events.pop_front() else { break };
            state.bytes -= size(&oldest);
            state.lost += 1;
        }
        let listener = state.listener.take();
        drop(state);
        listener.into_iter().for_each(Waker::wake);
    }

    /// Handles the reply to the oldest request without a reply.
    fn handle_reply(&self, reply: ServerReply<'_>) {
        let mut state = self.shared.lock();
        let effect = state.subscriptions.handle_reply(reply);
        let mut wakers = effect.waker.into_iter().collect::<Vec<_>>();
        if let Some((channel, error)) = effect.rejected {
            state.events.push_back(Event::Rejected { channel, error });
            wakers.extend(state.listener.take());
        }
        wakers.extend(state.end_gap());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
