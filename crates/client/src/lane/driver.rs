//! The task of a lane: it connects, writes the queued requests, passes each reply to its caller, and reconnects after a
//! lost connection.
//!
//! In one turn it reads the received bytes, wakes a wave of callers with their replies, and lets these callers run
//! before it looks for requests to write. The next requests of all woken callers are therefore sent in one write, while
//! the server is still executing requests of the other waves.

use super::cell::{Shared, closed};
use super::connect::{Connection, Setup, WINDOW_BYTES_MIN, open};
use super::external;
use super::in_flight::{InFlight, NextStep, lost};
use super::io::{ReadSide, Writer};
use crate::error::{Error, Result};
use crate::observe::{ReportedConnection, reconnecting};
use crate::reply::Reply;
use crate::request::{Request, Traits};
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use bytes::BytesMut;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep};

/// The interval at which time limits are checked.
const TICK: Duration = Duration::from_millis(10);
/// The timer stops after this number of ticks without work.
const IDLE_TICKS: u32 = 20;
/// The buffer space that is reserved for each read.
const READ_BYTES: usize = 16 << 10;
/// The maximum space that is reserved in advance for a long reply, even if the peer announces a greater length.
const CLAIMED_BYTES_MAX: usize = 1 << 20;
/// The maximum number of reads in one turn.
const READS_MAX: usize = 8;
/// The pending replies are delivered in this number of waves. The next two constants are the smallest and the largest
/// number of callers in a wave.
const WAVES: usize = 4;
const WAVE_MIN: usize = 2;
const WAVE_MAX: usize = 64;

/// Handles push messages, which are not replies to requests.
pub(crate) trait PushHandler: Send + Sync {
    /// A push message arrived.
    fn push(&self, message: Reply);
    /// The connection was lost; push messages may be missing.
    fn lost(&self);
}

/// Notified when a connection was lost or could not be opened.
pub(crate) trait Watch: Send + Sync {
    /// There is no connection now. Unsent requests wait in the cell.
    fn disconnected(&self, shared: &Shared);
}

/// The settings of a driver.
pub(crate) struct Task {
    pub(crate) shared: Arc<Shared>,
    pub(crate) setup: Arc<Setup>,
    /// If a reply is due and no bytes arrive for this long, the connection is considered lost. The limit is longer if
    /// the waiting command has a longer time limit.
    pub(crate) silence_max: Duration,
    /// True if a lost connection is replaced. Otherwise, the lane closes when the connection is lost.
    pub(crate) reconnects: bool,
    pub(crate) push_handler: Option<Arc<dyn PushHandler>>,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

impl Task {
    /// Runs until the lane is closed. `first` is a connection that is already open.
    pub(crate) async fn run(self, first: Option<Connection>) {
        let mut next = first;
        let (retry_first, retry_longest) = self.setup.tuning.retry;
        let mut retry = retry_first;
        let mut random = Jitter::new();
        loop {
            let connection = match next.take() {
                Some(connection) => connection,
                None => match self.connect().await {
                    Some(Ok(connection)) => connection,
                    Some(Err(error)) => {
                        self.shared.tallies.failed_connections.add(1);
                        reconnecting(&self.setup, &error, retry);
                        self.shared.lock().failure = Some(error);
                        self.report_disconnect();
                        if !self.wait(random.spread(retry)).await {
                            break;
                        }
                        retry = (retry * 2).min(retry_longest);
                        continue;
                    }
                    None => break,
                },
            };
            let origin = connection.origin.clone();
            self.shared.tallies.connections.add(1);
            let reported = ReportedConnection::connected(&self.setup, &connection);
            let is_watched = external::is_needed(&self.setup);
            if is_watched {
                external::begin(&self.setup, &self.shared);
            }
            let mut link = Link::new(&self, connection);
            let ended = tokio::select! {
                biased;
                ended = poll_fn(|cx| link.poll(cx)) => ended,
                error = external::watch(&self.setup, &self.shared, &origin, self.reconnects), if is_watched => {
                    Ended::Failed(error)
                }
            };
            let is_closed = matches!(ended, Ended::Closed);
            let was_useful = link.was_useful;
            next = link.replacement.take();
            let error = match ended {
                Ended::Closed => closed(),
                Ended::Failed(error) => error,
            };
            // This comes before anyone is notified, because nothing that arrived on the connection may be used from now
            // on.
            self.lose();
            link.abandon(&error).await;
            self.report_disconnect();
            reported.ended(&error);
            if is_closed || !self.reconnects {
                break;
            }
            if was_useful {
                retry = retry_first;
            } else if !self.wait(random.spread(retry)).await {
                break;
            } else {
                // If a server closes each connection, pause before the next attempt.
                retry = (retry * 2).min(retry_longest);
            }
        }
    }

    /// How often an idle connection sends PING. A session's connection sends no PING, which could become part of a
    /// transaction.
    fn idle_ping(&self) -> Option<Duration> {
        if self.reconnects { self.setup.tuning.idle_ping } else { None }
    }

    fn report_disconnect(&self) {
        if let Some(watch) = &self.watch {
            watch.disconnected(&self.shared);
        }
    }

    fn lose(&self) {
        if let Some(push_handler) = &self.push_handler {
            push_handler.lost();
        }
    }

    /// Ends the lane. Callers that wait for a connection get an error.
    fn end(&self) {
        self.lose();
        self.shared.finish();
    }

    /// Opens a connection; `None` if the lane is closed. Time limits of waiting callers are enforced in the meantime.
    async fn connect(&self) -> Option<Result<Connection>> {
        let mut opening = Box::pin(open(&self.setup));
        loop {
            tokio::select! {
                opened = &mut opening => return Some(opened),
                () = sleep(TICK) => {
                    if !self.tick() {
                        return None;
                    }
                }
            }
        }
    }

    /// Waits; false if the lane is closed.
    async fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            sleep(TICK.min(time)).await;
            if !self.tick() {
                return false;
            }
        }
        true
    }

    fn tick(&self) -> bool {
        let now = Instant::now();
        self.shared.expire(now);
        if let Some(pool_slot) = &self.shared.pool_slot {
            let failure = self.shared.lock().failure.clone();
            pool_slot.expire(now, failure.as_ref());
        }
        !self.shared.lock().is_closed
    }
}

/// Also called when the runtime is shut down and drops the task.
impl Drop for Task {
    fn drop(&mut self) {
        self.end();
    }
}

/// Random variation, so that many clients do not reconnect at the same time.
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new() -> Jitter {
        use std::hash::{BuildHasher, RandomState};
        Jitter(RandomState::new().hash_one(0) | 1)
    }

    /// A random time between `time / 2` and `time`.
    pub(crate) fn spread(&mut self, time: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let part = (self.0 >> 40) as f64 / (1_u64 << 24) as f64;
        time.mul_f64(0.5 + part / 2.0)
    }
}

enum Ended {
    Closed,
    Failed(Error),
}

/// One connection, from when it is open until it is lost.
struct Link<'a> {
    task: &'a Task,
    reader: ReadSide,
    writer: Writer,
    buffer: BytesMut,
    scanner: FrameScanner,
    in_flight: InFlight,
    wakers: Vec<Waker>,
    /// True if at least one caller got a reply on this connection.
    was_useful: bool,
    /// True if the callers have had a chance to run.
    has_yielded: bool,
    /// The number of callers that can still get a reply in this wave.
    wave_left: usize,
    /// True if the wave ended before all received replies were delivered.
    has_unanswered: bool,
    timer: Pin<Box<Sleep>>,
    ticks: bool,
    idle_ticks: u32,
    /// True if bytes have arrived from the peer since the last tick.
    heard: bool,
    last_heard: Instant,
    /// True if the requests without a reply may fill the peer's receive window.
    may_fill_window: bool,
    /// Tests whether the server replies on a new connection while this one is silent.
    probe: Option<Probe<'a>>,
    /// True if a probe has been made since the last bytes arrived.
    has_probed: bool,
    /// A new connection on which the server replied: it replaces this one.
    replacement: Option<Connection>,
}

type Probe<'a> = Pin<Box<dyn Future<Output = Result<Connection>> + Send + 'a>>;

impl<'a> Link<'a> {
    fn new(task: &'a Task, connection: Connection) -> Link<'a> {
        let Connection { reader, writer, buffer, .. } = connection;
        let in_flight = InFlight::begin(&task.shared, &writer);
        Link {
            task,
            reader,
            writer,
            buffer,
            scanner: FrameScanner::new(ReplyLimits::default()),
            in_flight,
            wakers: Vec::new(),
            was_useful: false,
            has_yielded: false,
            wave_left: 0,
            has_unanswered: false,
            timer: Box::pin(sleep(task.idle_ping().unwrap_or(TICK))),
            ticks: false,
            idle_ticks: 0,
            heard: false,
            last_heard: Instant::now(),
            may_fill_window: false,
            probe: None,
            has_probed: false,
            replacement: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.turn(cx) {
            Ok(true) => Poll::Ready(Ended::Closed),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Ended::Failed(error)),
        }
    }

    /// Does all work that is possible now; true if the lane is closed.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        if !self.has_yielded {
            self.wave_left = self.wave();
        }
        let was_busy = !self.in_flight.is_empty();
        let has_delivered = self.read(cx)?;
        self.check_probe(cx)?;
        if (has_delivered || was_busy) && !self.has_yielded {
            // Woken callers, and those that are about to submit, run before the next write.
            self.has_yielded = true;
            cx.waker().wake_by_ref();
            return Ok(false);
        }
        self.has_yielded = false;
        loop {
            if self.in_flight.is_demoted_and_done(&self.task.shared) {
                return Err(lost("the server is a replica now"));
            }
            let is_flushed = self.in_flight.write(&self.task.shared, &self.writer, cx)?;
            self.tick(cx)?;
            if self.has_unanswered {
                cx.waker().wake_by_ref();
                return Ok(false);
            }
            match self.in_flight.rest(&self.task.shared, cx.waker(), is_flushed, self.ticks) {
                NextStep::Idle => return Ok(self.task.shared.lock().is_closed),
                NextStep::StartTimer => self.heard = true,
                NextStep::Work => {}
            }
        }
    }

    /// The number of callers that get replies before the woken callers may send again.
    ///
    /// If all callers got their replies at the same time, client and server would take turns, each idle while the other
    /// works. A quarter of the callers per wave keeps both busy. Measured with one core each: the throughput is 2.2
    /// times as high with 64 callers and 1.9 times as high with 256, at the same CPU time on both sides.
    fn wave(&self) -> usize {
        (self.in_flight.len() / WAVES).clamp(WAVE_MIN, WAVE_MAX)
    }

    /// Reads, and delivers replies. Reports whether a caller got one.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let read = self.read_all(cx);
        // The callers are woken even if the connection was lost after their replies.
        self.wakers.drain(..).for_each(Waker::wake);
        read
    }

    fn read_all(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let mut has_delivered = false;
        if std::mem::take(&mut self.has_unanswered) {
            has_delivered |= self.deliver()?;
        }
        for turn in 0.. {
            if self.has_unanswered {
                break;
            }
            if turn == READS_MAX {
                cx.waker().wake_by_ref();
                break;
            }
            if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 4 {
                self.buffer.reserve(READ_BYTES);
            }
            match self.reader.poll_read(cx, &mut self.buffer) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(lost("the server closed the connection")),
                Poll::Ready(Ok(read)) => {
                    self.heard = true;
                    self.task.shared.tallies.received_bytes.add(read);
                    has_delivered |= self.deliver()?;
                }
                Poll::Ready(Err(error)) => return Err(Error::socket("", error)),
            }
        }
        Ok(has_delivered)
    }

    /// Delivers complete replies to their callers.
    fn deliver(&mut self) -> Result<bool> {
        let mut has_delivered = false;
        loop {
            if self.wave_left == 0 {
                self.has_unanswered = !self.buffer.is_empty();
                return Ok(has_delivered);
            }
            let unread = self.buffer.get(self.in_flight.seen_bytes()..).unwrap_or_default();
            let len = match self.scanner.scan(unread)? {
                Scan::Whole(len) => len,
                Scan::Incomplete(need) => {
                    if need > READ_BYTES {
                        self.buffer.reserve(need.min(CLAIMED_BYTES_MAX));
                    }
                    return Ok(has_delivered);
                }
            };
            if unread.first() == Some(&b'>') {
                self.take_push(len);
                continue;
            }
            let is_rejection = unread.starts_with(b"-READONLY ") && self.wants_primary();
            let is_abort = unread.starts_with(b"-EXECABORT ");
            let is_error = usize::from(matches!(unread.first(), Some(b'-' | b'!')));
            let is_last = self.in_flight.count(&self.task.shared, len, is_rejection)?;
            self.task.shared.tallies.replies.add(1);
            self.task.shared.tallies.errors.add(is_error);
            if !is_last {
                continue;
            }
            let reply = Reply::cut(&mut self.buffer, self.in_flight.seen_bytes());
            self.wakers.extend(self.in_flight.deliver(reply, is_abort));
            self.wave_left -= 1;
            (has_delivered, self.was_useful) = (true, true);
        }
    }

    /// Reports whether the lane must be connected to a primary: with Sentinel, a connection to a replica is of no use.
    fn wants_primary(&self) -> bool {
        self.task.reconnects && self.task.setup.destination.wants_primary()
    }

    /// Handles a push message, which may arrive between the replies of one batch.
    fn take_push(&mut self, len: usize) {
        let before = self.buffer.split_to(self.in_flight.seen_bytes());
        let message = Reply::cut(&mut self.buffer, len);
        if !before.is_empty() {
            let mut whole = before;
            whole.extend_from_slice(&self.buffer);
            self.buffer = whole;
        }
        if let Some(push_handler) = &self.task.push_handler {
            push_handler.push(message);
        }
    }

    /// Checks the time limits and schedules the next check.
    fn tick(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if !self.ticks {
            if self.in_flight.is_empty() && !self.heard && !self.task.shared.is_held() {
                self.rest(cx);
                return Ok(());
            }
            self.ticks = true;
            self.idle_ticks = 0;
            // No reply was due while the timer was stopped.
            self.last_heard = Instant::now();
            self.timer.as_mut().reset((Instant::now() + TICK).into());
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            self.in_flight.expire(&self.task.shared, now);
            self.limit_unacked();
            if let Some(pool_slot) = &self.task.shared.pool_slot {
                pool_slot.expire(now, None);
                if self.in_flight.is_abandoned() {
                    // A blocking command without a caller would keep the connection busy and consume data meant for
                    // other clients. The server is working, so the next connection is opened immediately.
                    self.was_useful = true;
                    return Err(lost("the caller of a blocking command gave up"));
                }
            }
            let waits = !self.in_flight.is_empty() || self.task.shared.pending() > 0;
            let is_held = self.task.shared.is_held();
            if self.heard || !waits || is_held {
                self.last_heard = now;
            }
            self.idle_ticks = if self.heard || waits || is_held { 0 } else { self.idle_ticks + 1 };
            self.heard = false;
            let silence = now.saturating_duration_since(self.last_heard);
            if waits && silence >= self.silence_max() {
                let text = format!("no reply for {:.1} s", silence.as_secs_f64());
                return Err(lost(&text));
            }
            if waits && silence >= self.probes_after() {
                self.begin_probe();
                self.check_probe(cx)?;
            }
            if self.idle_ticks >= IDLE_TICKS {
                self.ticks = false;
                self.shrink();
                if let Some(pause) = self.task.idle_ping() {
                    self.timer.as_mut().reset((now + pause).into());
                    self.rest(cx);
                }
                return Ok(());
            }
            self.timer.as_mut().reset((now + TICK).into());
        }
        Ok(())
    }

    /// Raises the limit for unacknowledged bytes while the peer's receive window may be full. If a live peer reads
    /// nothing for a while, the operating system cannot distinguish that from a dead link and would close the
    /// connection. A dead link is then noticed because no bytes arrive.
    fn limit_unacked(&mut self) {
        let may_fill_window = self.in_flight.exceeds(&self.task.shared, WINDOW_BYTES_MIN);
        if may_fill_window != self.may_fill_window {
            self.may_fill_window = may_fill_window;
            self.writer.limit_unacked(self.task.setup.tuning.unacked_limit(may_fill_window));
        }
    }

    /// How long the peer may be silent: at least the time limit of the command whose reply comes next.
    fn silence_max(&self) -> Duration {
        let own = self.in_flight.first().and_then(|entry| entry.timeout);
        let timeout = own.or(self.task.shared.bounds.timeout).unwrap_or(Duration::MAX);
        self.task.silence_max.max(timeout)
    }

    /// The time without received bytes after which a new connection is tried: at most half of the time limit of the
    /// command whose reply comes next.
    fn probes_after(&self) -> Duration {
        let own = self.in_flight.first().and_then(|entry| entry.timeout);
        let timeout = own.or(self.task.shared.bounds.timeout).unwrap_or(Duration::MAX);
        self.task.silence_max.min(timeout) / 2
    }

    /// Opens a new connection to test whether the peer is alive. A server that is merely busy replies on neither
    /// connection, or on both. If only the new connection gets a reply, and closing the old one loses nothing, the new
    /// one replaces it early enough for a read to be sent again. A connection that has not delivered any reply is not
    /// given up this early, so a slow command is sent again at most once.
    fn begin_probe(&mut self) {
        let may = self.task.reconnects && self.was_useful && !self.has_probed;
        if may && self.in_flight.survives(&self.task.shared) {
            self.has_probed = true;
            self.probe = Some(Box::pin(open(&self.task.setup)));
        }
    }

    fn check_probe(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if self.heard {
            (self.probe, self.has_probed) = (None, false);
        }
        let Some(probe) = &mut self.probe else { return Ok(()) };
        let Poll::Ready(opened) = probe.as_mut().poll(cx) else { return Ok(()) };
        self.probe = None;
        if let Ok(connection) = opened
            && self.in_flight.stop_if_it_survives(&self.task.shared)
        {
            self.replacement = Some(connection);
            return Err(lost("no reply, although the server replies on a new connection"));
        }
        Ok(())
    }

    /// Stops the timer. An idle connection sends PING from time to time.
    fn rest(&mut self, cx: &mut Context<'_>) {
        let Some(pause) = self.task.idle_ping() else { return };
        while self.timer.as_mut().poll(cx).is_ready() {
            let ping = Request::new("PING", Traits { reads_only: true, ..Traits::default() });
            let requests = std::slice::from_ref(&ping);
            // No caller waits for this reply. The PING only checks whether a reply arrives.
            let _ = self.task.shared.submit(requests, Some(self.task.silence_max), cx.waker());
            self.timer.as_mut().reset((Instant::now() + pause).into());
        }
    }

    /// Frees memory after a period without work.
    fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        self.wakers = Vec::new();
        self.in_flight.shrink(&self.task.shared);
    }

    /// Handles a lost connection.
    async fn abandon(self, error: &Error) {
        // No caller starts to write from here on. Wait for one that is already writing.
        while self.task.shared.lock().stop_writing() {
            tokio::task::yield_now().await;
        }
        self.in_flight.abandon(&self.task.shared, error);
    }
}
