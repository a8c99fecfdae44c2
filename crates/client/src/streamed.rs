//! Replies that are too large for memory: read piece by piece as they arrive, over a separate connection.

use crate::client::{Client, CloseWithClient};
use crate::command::Command;
use crate::command::sealed::Target;
use crate::error::{Error, Kind, Phase, Result};
use crate::lane::cell::{closed, timeout};
use crate::lane::connect::{Connection, WINDOW_BYTES_MIN, open};
use crate::reply::{FromReply, Reply};
use crate::request::Request;
use crate::wait::Home;
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use brisk_resp::reply::head::{Head, head};
use bytes::{Buf, Bytes};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// The maximum size of a piece of a string, and of one read.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// The maximum number of times that a command follows its key to another node.
const MOVES_MAX: usize = 4;

/// A reply that is read piece by piece: a string in [chunks](Streamed::chunk); a list, set or map by its
/// [elements](Streamed::element). [`Client::stream`] returns it.
///
/// The part that has not been read yet stays on the server and in the buffers of the operating system. A slow reader
/// slows down only this reply, since it has its own connection. The server holds the part that it could not send,
/// within its `client-output-buffer-limit`. Dropping the `Streamed` closes the connection.
pub struct Streamed {
    connection: Connection,
    handle: Handle,
    /// The thread that runs the socket, if a single thread runs all sockets of the client.
    home: Home,
    /// How long the server may stay silent.
    silence_max: Option<Duration>,
    closing: watch::Receiver<bool>,
    /// The client holds only a weak reference, so this lives as long as the stream.
    _close_signal: Arc<CloseSignal>,
    left: Remaining,
    /// The first reply of a pair whose second has not arrived.
    half: Option<Reply>,
    /// The error that ended the stream early.
    failed: Option<Error>,
    scanner: FrameScanner,
    limits: ReplyLimits,
}

/// The rest of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remaining {
    /// The number of bytes left in a string, not counting the line ending.
    Bytes(usize),
    /// The number of elements left.
    Elements(u64),
    Nothing,
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Lets the client end the stream.
#[derive(Debug)]
struct CloseSignal(watch::Sender<bool>);

impl CloseWithClient for CloseSignal {
    fn end(&self) {
        self.0.send_replace(true);
    }
}

impl Client {
    /// Sends a command over a new connection and returns its reply as it arrives: for values and collections that are
    /// too large for memory. `None` if the reply is null (the key does not exist).
    ///
    /// The client's time limit applies to each interval in which no bytes arrive, so the whole reply may take longer.
    /// In a cluster, the command goes to the primary that has the key. The stream needs memory for 64 KiB and one
    /// element.
    ///
    /// ```no_run
    /// # async fn example(db: brisk::Client, mut out: impl std::io::Write) -> Result<(), Box<dyn std::error::Error>> {
    /// use brisk::commands::{get, hgetall};
    ///
    /// if let Some(mut video) = db.stream(get::<brisk::Bytes>("video:7")).await? {
    ///     while let Some(chunk) = video.chunk().await? {
    ///         out.write_all(&chunk)?;
    ///     }
    /// }
    /// if let Some(mut users) = db.stream(hgetall::<()>("users")).await? {
    ///     while let Some((id, name)) = users.pair::<u64, String>().await? {
    ///         println!("{id}: {name}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server cannot be reached, or rejects the connection; the server's error reply; [`Kind::Timeout`] with
    /// [`Phase::Sent`] if no reply arrives.
    pub async fn stream<T, O>(&self, command: Command<(), T, O>) -> Result<Option<Streamed>> {
        let request = command.into_request();
        if let Some(failure) = request.failure() {
            return Err(failure.clone());
        }
        let mut moves = 0;
        loop {
            match self.stream_once(&request).await {
                // No part of the command was executed.
                Err(error) if self.has_moved(&error) && moves < MOVES_MAX => moves += 1,
                done => return done,
            }
        }
    }

    async fn stream_once(&self, request: &Request) -> Result<Option<Streamed>> {
        let (setup, handle) = self.setup(request.routing_key());
        let tuning = setup.tuning;
        let connection = self.run_on_runtime(async move { open(&setup).await }).await?;
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        if bytes.len() > WINDOW_BYTES_MIN {
            connection.writer.limit_unacked(tuning.unacked_limit(true));
        }
        connection.write_all(&bytes).await?;
        let (close_signal, closing) = watch::channel(false);
        let close_signal = Arc::new(CloseSignal(close_signal));
        self.attach(&close_signal)?;
        let limits = ReplyLimits::default();
        let mut streamed = Streamed {
            connection,
            handle,
            home: self.home(),
            silence_max: if request.traits().blocks { None } else { self.default_timeout() },
            closing,
            _close_signal: close_signal,
            left: Remaining::Nothing,
            half: None,
            failed: None,
            scanner: FrameScanner::new(limits),
            limits,
        };
        let exists = streamed.begin().await?;
        Ok(exists.then_some(streamed))
    }
}

impl Streamed {
    /// Returns how many bytes of a string, or elements, have not been read yet. In a map, keys and values count
    /// separately.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        match self.left {
            Remaining::Bytes(bytes) => bytes as u64,
            Remaining::Elements(elements) => elements + u64::from(self.half.is_some()),
            Remaining::Nothing => 0,
        }
    }

    /// Returns the next piece of a string: the bytes that have arrived, at most 64 KiB. `None` after the last piece.
    /// The bytes are not copied.
    ///
    /// # Errors
    /// [`Kind::UnexpectedReply`] if the reply is not a string; [`Kind::Disconnected`] or [`Kind::Timeout`] with
    /// [`Phase::Streaming`], which every later call returns again; [`Kind::Closed`] if the client was closed.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>> {
        self.check()?;
        let left = match self.left {
            Remaining::Bytes(left) => left,
            Remaining::Nothing => return Ok(None),
            Remaining::Elements(_) => return Err(unexpected("a list, which has elements")),
        };
        if left == 0 {
            while self.connection.buffer.len() < 2 {
                self.read(Phase::Streaming, 2).await?;
            }
            if !self.connection.buffer.starts_with(b"\r\n") {
                return Err(self.fail(Error::new(Kind::Protocol, "a string without its line end")));
            }
            self.left = Remaining::Nothing;
            return Ok(None);
        }
        if self.connection.buffer.is_empty() {
            self.read(Phase::Streaming, left).await?;
        }
        let len = left.min(self.connection.buffer.len()).min(PIECE_BYTES_MAX);
        self.left = Remaining::Bytes(left - len);
        Ok(Some(self.connection.buffer.split_to(len).freeze()))
    }

    /// Returns the next element of a list, a set or a map (keys and values alternate). `None` after the last one. A
    /// reply of another type counts as a single element. Each element is held in memory as a whole. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// Those of [`Streamed::chunk`], and an error if an element has another type. After the latter, you can read the
    /// next element.
    pub async fn element<T: FromReply>(&mut self) -> Result<Option<T>> {
        let element = match self.half.take() {
            Some(half) => Some(half),
            None => self.next_whole().await?,
        };
        element.map(|element| element.read()).transpose()
    }

    /// The next element, of any type.
    async fn next_whole(&mut self) -> Result<Option<Reply>> {
        self.check()?;
        let left = match self.left {
            Remaining::Elements(left) => left,
            Remaining::Nothing => return Ok(None),
            Remaining::Bytes(_) => return Err(unexpected("a string, which has chunks")),
        };
        if left == 0 {
            self.left = Remaining::Nothing;
            return Ok(None);
        }
        let element = self.whole(Phase::Streaming).await?;
        self.left = Remaining::Elements(left - 1);
        Ok(Some(element))
    }

    /// Returns the next two elements: a field and its value, a member and its score, a key and its value. In RESP3,
    /// some commands reply with lists of pairs. Read these pairs as [elements](Streamed::element). Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// Those of [`Streamed::chunk`], and an error if an element has another type. After the latter, you can read the
    /// next pair. [`Kind::UnexpectedReply`] if only one element is left.
    pub async fn pair<K: FromReply, V: FromReply>(&mut self) -> Result<Option<(K, V)>> {
        if self.half.is_none() {
            self.half = self.next_whole().await?;
        }
        if self.half.is_none() {
            return Ok(None);
        }
        let second = self.next_whole().await?;
        let too_few = || unexpected("a list with an odd number of elements");
        let (first, second) = self.half.take().zip(second).ok_or_else(too_few)?;
        Ok(Some((first.read()?, second.read()?)))
    }

    /// Waits for the type of the reply; false if the reply is nil.
    async fn begin(&mut self) -> Result<bool> {
        let mut phase = Phase::Sent;
        loop {
            let found = head(&self.connection.buffer, &self.limits)
                .map_err(|error| self.fail(error.into()))?;
            let Some((head, line)) = found else {
                self.read(phase, 1).await?;
                phase = Phase::Streaming;
                continue;
            };
            phase = Phase::Streaming;
            self.left = match head {
                Head::Bulk(len) => Remaining::Bytes(len),
                Head::Values(count) => Remaining::Elements(count),
                Head::Null => return Ok(false),
                Head::Other => {
                    let reply = self.peek_whole(phase).await?;
                    reply.read::<Reply>()?;
                    self.left = Remaining::Elements(1);
                    return Ok(true);
                }
                Head::Attributes(values) => {
                    self.connection.buffer.advance(line);
                    for _ in 0..values {
                        self.whole(phase).await?;
                    }
                    continue;
                }
                Head::Push(_) => {
                    self.whole(phase).await?;
                    continue;
                }
            };
            self.connection.buffer.advance(line);
            return Ok(true);
        }
    }

    /// The next complete value.
    async fn whole(&mut self, phase: Phase) -> Result<Reply> {
        let len = self.whole_len(phase).await?;
        Ok(Reply::cut(&mut self.connection.buffer, len))
    }

    /// Like [`Self::whole`], but without consuming the value.
    async fn peek_whole(&mut self, phase: Phase) -> Result<Reply> {
        let len = self.whole_len(phase).await?;
        Ok(Reply::shared(Bytes::copy_from_slice(&self.connection.buffer[..len])))
    }

    async fn whole_len(&mut self, phase: Phase) -> Result<usize> {
        loop {
            let scan = self
                .scanner
                .scan(&self.connection.buffer)
                .map_err(|error| self.fail(error.into()))?;
            match scan {
                Scan::Whole(len) => return Ok(len),
                Scan::Incomplete(missing) => self.read(phase, missing).await?,
            }
        }
    }

    /// Reads more bytes. `missing` is the number of bytes that the value still lacks.
    async fn read(&mut self, phase: Phase, missing: usize) -> Result<()> {
        self.home.check()?;
        self.connection.buffer.reserve(missing.clamp(1, PIECE_BYTES_MAX));
        let Connection { reader, buffer, .. } = &mut self.connection;
        let reading = poll_fn(|cx| reader.poll_read(cx, buffer));
        let limited = async {
            let Some(limit) = self.silence_max else { return Ok(reading.await) };
            let sleep = {
                // The caller may be on a thread without a runtime.
                let _within = self.handle.enter();
                tokio::time::sleep(limit)
            };
            tokio::select! {
                read = reading => Ok(read),
                () = sleep => Err(timeout(phase, None)),
            }
        };
        let read = tokio::select! {
            biased;
            _ = self.closing.wait_for(|is_closing| *is_closing) => Err(closed()),
            read = limited => read,
        };
        let lost = |why: &str| Err(Error::lost(phase, why));
        let failed = match read {
            Ok(Ok(0)) => lost("the server closed the connection"),
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => Err(Error::socket("", error).lost_at(phase)),
            Err(error) => Err(error),
        };
        failed.map_err(|error| self.fail(error))
    }

    /// Ends the stream: every further read returns the error, so that a partial reply is never mistaken for a complete
    /// one.
    fn fail(&mut self, error: Error) -> Error {
        self.failed = Some(error.clone());
        error
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

fn unexpected(what: &str) -> Error {
    Error::new(Kind::UnexpectedReply, format!("the reply is {what}"))
}
