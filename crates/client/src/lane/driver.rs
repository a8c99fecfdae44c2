//! The task behind a lane: it connects, writes what callers have queued, gives each reply to who waits for it,
//! and connects anew when the connection is lost.
//!
//! In one turn it reads what has come, answers a wave of callers, and lets them run before it looks at what is
//! to be written: so the next requests of all whom it woke go out with one write, while the server still works
//! on those of the other waves.

use super::attend::{self, attend};
use super::cell::{Entry, Shared, closed, timeout};
use super::connect::{Connection, Setup, open};
use super::io::{ReadSide, Writer};
use super::pool::Taken;
use crate::error::{Error, Kind, Phase, Result};
use crate::observe::{Seen, reconnecting};
use crate::reply::Reply;
use brisk_resp::reply::decode::ReplyLimits;
use brisk_resp::reply::frame::{FrameScanner, Scan};
use bytes::BytesMut;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep};

/// How exactly time is kept.
const TICK: Duration = Duration::from_millis(10);
/// So many ticks without anything to do, and the clock rests.
const IDLE_TICKS: u32 = 20;
/// Room that is made for reading.
const READ_BYTES: usize = 16 << 10;
/// Room that a long reply gets at once on the peer's word alone.
const CLAIMED_BYTES_MAX: usize = 1 << 20;
/// Reads in one turn.
const READS_MAX: usize = 8;
/// What is under way is answered in so many waves, of so many callers at least and at most.
const WAVES: usize = 4;
const WAVE_MIN: usize = 2;
const WAVE_MAX: usize = 64;
/// Buffers that grew larger are given back once they are empty.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// First and longest wait between two attempts to connect.
const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_LONGEST: Duration = Duration::from_secs(2);

/// What is done with what comes without being asked for.
pub(crate) trait Pushed: Send + Sync {
    /// A push message came.
    fn push(&self, message: Reply);
    /// The connection was lost; what was pushed meanwhile is not known.
    fn lost(&self);
}

/// Who is told that a connection was lost, or could not be made.
pub(crate) trait Watch: Send + Sync {
    /// There is none now; what was not sent waits in the cell.
    fn troubled(&self, shared: &Shared);
}

/// What a driver needs to know.
pub(crate) struct Task {
    pub(crate) shared: Arc<Shared>,
    pub(crate) setup: Arc<Setup>,
    /// It was lost if nothing came for so long although something should.
    pub(crate) silence_max: Duration,
    /// Whether a lost connection is made anew. Else the lane is closed with it.
    pub(crate) reconnects: bool,
    pub(crate) pushed: Option<Arc<dyn Pushed>>,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

impl Task {
    /// Works until the lane is closed. `first` is a connection that was made before.
    pub(crate) async fn run(self, first: Option<Connection>) {
        let mut next = first;
        let mut retry = RETRY_FIRST;
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
                        self.tell_trouble();
                        if !self.wait(random.spread(retry)).await {
                            break;
                        }
                        retry = (retry * 2).min(RETRY_LONGEST);
                        continue;
                    }
                    None => break,
                },
            };
            let origin = connection.origin.clone();
            self.shared.tallies.connections.add(1);
            let seen = Seen::connected(&self.setup, &connection);
            let mut link = Link::new(&self, connection);
            let is_attended = attend::is_needed(&self.setup);
            let ended = tokio::select! {
                biased;
                ended = poll_fn(|cx| link.poll(cx)) => ended,
                error = attend(&self.setup, &self.shared, &origin, self.reconnects), if is_attended => {
                    Ended::Failed(error)
                }
            };
            let is_closed = matches!(ended, Ended::Closed);
            let was_useful = link.was_useful;
            let error = match ended {
                Ended::Closed => closed(),
                Ended::Failed(error) => error,
            };
            // Before anybody is told: nothing that came by it is to be used any more.
            self.lose();
            link.abandon(&error).await;
            self.tell_trouble();
            seen.ended(&error);
            if is_closed || !self.reconnects {
                break;
            }
            if was_useful {
                retry = RETRY_FIRST;
            } else if !self.wait(random.spread(retry)).await {
                break;
            } else {
                // A server that ends each connection is not asked without a pause.
                retry = (retry * 2).min(RETRY_LONGEST);
            }
        }
    }

    fn tell_trouble(&self) {
        if let Some(watch) = &self.watch {
            watch.troubled(&self.shared);
        }
    }

    fn lose(&self) {
        if let Some(pushed) = &self.pushed {
            pushed.lost();
        }
    }

    /// Who waits for a connection has to hear that there will be none.
    fn end(&self) {
        self.lose();
        if let Some(seat) = &self.shared.seat {
            seat.end();
        }
        let (entries, error, freed) = {
            let mut cell = self.shared.lock();
            cell.is_closed = true;
            cell.writer = None;
            cell.out = Vec::new();
            let bytes = cell.bytes;
            let freed = cell.release(bytes);
            (std::mem::take(&mut cell.entries), cell.end(), freed)
        };
        freed.into_iter().for_each(Waker::wake);
        for mut entry in entries {
            if let Some(waker) = entry.answer(Err(error.clone())) {
                waker.wake();
            }
        }
    }

    /// A connection; `None` if the lane is closed. Meanwhile the clock goes on for those who wait.
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
        if let Some(seat) = &self.shared.seat {
            let failure = self.shared.lock().failure.clone();
            seat.expire(now, failure.as_ref());
        }
        !self.shared.lock().is_closed
    }
}

/// Also when the runtime is shut down and the task with it.
impl Drop for Task {
    fn drop(&mut self) {
        self.end();
    }
}

/// Spreads attempts of many clients.
struct Jitter(u64);

impl Jitter {
    fn new() -> Jitter {
        use std::hash::{BuildHasher, RandomState};
        Jitter(RandomState::new().hash_one(0) | 1)
    }

    /// Between a half and the whole.
    fn spread(&mut self, time: Duration) -> Duration {
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

/// One connection, from when it is there until it is lost.
struct Link<'a> {
    task: &'a Task,
    reader: ReadSide,
    writer: Writer,
    buffer: BytesMut,
    scanner: FrameScanner,
    /// Requests whose replies have not come, in order.
    entries: VecDeque<Entry>,
    /// How many of those have a time of their own.
    own_timeouts: usize,
    /// What is under way waits for other clients, on a connection of a pool.
    blocks: bool,
    /// Replies of the first of them that are there, and their bytes in the buffer.
    seen: u32,
    seen_bytes: usize,
    /// How many of those say that the server is a replica.
    refused: u32,
    /// It is one, and we want a primary: what was sent is still answered, then the connection ends.
    is_demoted: bool,
    /// Bytes that are being sent, and how many were.
    sending: Vec<u8>,
    sent: usize,
    /// Bytes of requests that were answered, still to be told.
    freed: usize,
    wakers: Vec<Waker>,
    /// Somebody was answered by it.
    was_useful: bool,
    /// The callers had their turn.
    has_yielded: bool,
    /// Callers that may still be answered in this wave.
    wave_left: usize,
    /// The wave ended before the replies in the buffer did.
    has_unanswered: bool,
    timer: Pin<Box<Sleep>>,
    ticks: bool,
    idle_ticks: u32,
    /// Something came since the last tick.
    heard: bool,
    last_heard: Instant,
}

impl<'a> Link<'a> {
    fn new(task: &'a Task, connection: Connection) -> Link<'a> {
        let Connection { reader, writer, buffer, .. } = connection;
        {
            let mut cell = task.shared.lock();
            debug_assert!(cell.is_whole(), "bytes and entries belong together");
            cell.writer = Some(writer.clone());
            cell.failure = None;
            cell.is_broken = false;
            cell.sent_by_callers = 0;
        }
        Link {
            task,
            reader,
            writer,
            buffer,
            scanner: FrameScanner::new(ReplyLimits::default()),
            entries: VecDeque::new(),
            own_timeouts: 0,
            blocks: false,
            seen: 0,
            seen_bytes: 0,
            refused: 0,
            is_demoted: false,
            sending: Vec::new(),
            sent: 0,
            freed: 0,
            wakers: Vec::new(),
            was_useful: false,
            has_yielded: false,
            wave_left: 0,
            has_unanswered: false,
            timer: Box::pin(sleep(TICK)),
            ticks: false,
            idle_ticks: 0,
            heard: false,
            last_heard: Instant::now(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.turn(cx) {
            Ok(true) => Poll::Ready(Ended::Closed),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Ended::Failed(error)),
        }
    }

    /// Does what can be done now; true if the lane is closed.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        if !self.has_yielded {
            self.wave_left = self.wave();
        }
        let was_busy = !self.entries.is_empty();
        let answered = self.read(cx)?;
        if self.is_demoted {
            self.take_sent(false);
            if self.entries.is_empty() && self.sent == self.sending.len() {
                return Err(lost("the server is a replica now"));
            }
        }
        if (answered || was_busy) && !self.has_yielded {
            // Whoever was woken, or is about to ask, does so before the next write.
            self.has_yielded = true;
            cx.waker().wake_by_ref();
            return Ok(false);
        }
        self.has_yielded = false;
        loop {
            let is_flushed = self.write(cx)?;
            self.tick(cx)?;
            if self.has_unanswered {
                cx.waker().wake_by_ref();
                return Ok(false);
            }
            if self.rest(cx, is_flushed) {
                return Ok(self.task.shared.lock().is_closed);
            }
        }
    }

    /// How many are answered before those who were may send again.
    ///
    /// If all were, client and server would take turns, each idle while the other works. A quarter keeps both busy:
    /// measured on two processors, one each, 64 callers get through 2.2 times and 256 get through 1.9 times as much,
    /// for the same processor time of both.
    fn wave(&self) -> usize {
        (self.entries.len() / WAVES).clamp(WAVE_MIN, WAVE_MAX)
    }

    /// Reads and answers; whether somebody was answered.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let read = self.read_all(cx);
        // Also if the connection was lost behind their replies.
        self.wakers.drain(..).for_each(Waker::wake);
        read
    }

    fn read_all(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let mut answered = false;
        if std::mem::take(&mut self.has_unanswered) {
            answered |= self.answer()?;
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
                    answered |= self.answer()?;
                }
                Poll::Ready(Err(error)) => return Err(lost(&error.to_string())),
            }
        }
        Ok(answered)
    }

    /// Gives the replies that are whole to who waits for them.
    fn answer(&mut self) -> Result<bool> {
        let mut answered = false;
        loop {
            if self.wave_left == 0 {
                self.has_unanswered = !self.buffer.is_empty();
                return Ok(answered);
            }
            let unread = self.buffer.get(self.seen_bytes..).unwrap_or_default();
            let len = match self.scanner.scan(unread)? {
                Scan::Whole(len) => len,
                Scan::Incomplete(need) => {
                    if need > READ_BYTES {
                        self.buffer.reserve(need.min(CLAIMED_BYTES_MAX));
                    }
                    return Ok(answered);
                }
            };
            if unread.first() == Some(&b'>') {
                self.take_push(len);
                continue;
            }
            let is_refusal = unread.starts_with(b"-READONLY ") && self.wants_primary();
            let is_abort = unread.starts_with(b"-EXECABORT ");
            let is_error = usize::from(matches!(unread.first(), Some(b'-' | b'!')));
            if self.entries.is_empty() {
                self.take_sent(true);
            }
            let Some(entry) = self.entries.front() else {
                return Err(Error::new(Kind::Protocol, "a reply that nobody asked for"));
            };
            self.task.shared.tallies.replies.add(1);
            self.task.shared.tallies.errors.add(is_error);
            self.seen += 1;
            self.seen_bytes += len;
            self.refused += u32::from(is_refusal);
            if is_refusal && !self.is_demoted {
                self.is_demoted = true;
                self.task.shared.lock().writer = None;
            }
            if self.seen < entry.replies {
                continue;
            }
            let reply = Reply::cut(&mut self.buffer, self.seen_bytes);
            let refused = std::mem::take(&mut self.refused);
            // Then nothing of it was executed, and who waits sends it again.
            let answer = match refused == self.seen || (refused > 0 && is_abort) {
                true => Err(Error::server(b"READONLY the server is a replica now")),
                false => Ok(reply),
            };
            (self.seen, self.seen_bytes) = (0, 0);
            let Some(mut entry) = self.entries.pop_front() else { continue };
            self.own_timeouts -= usize::from(entry.timeout.is_some());
            self.freed += entry.cost();
            self.wakers.extend(entry.answer(answer));
            self.wave_left -= 1;
            (answered, self.was_useful) = (true, true);
        }
    }

    /// A lane of a client with sentinels is of use only if it goes to a primary.
    fn wants_primary(&self) -> bool {
        self.task.reconnects && self.task.setup.place.wants_primary()
    }

    /// A message that nobody asked for; it may stand between the replies of one batch.
    fn take_push(&mut self, len: usize) {
        let before = self.buffer.split_to(self.seen_bytes);
        let message = Reply::cut(&mut self.buffer, len);
        if !before.is_empty() {
            let mut whole = before;
            whole.extend_from_slice(&self.buffer);
            self.buffer = whole;
        }
        if let Some(pushed) = &self.task.pushed {
            pushed.push(message);
        }
    }

    /// Takes over those that callers have sent by themselves. One that is being sent is taken only if its
    /// reply is there, which says that all of it was: else nobody would know whose the rest is.
    fn take_sent(&mut self, is_answered: bool) {
        let mut cell = self.task.shared.lock();
        if cell.is_writing && !is_answered {
            return;
        }
        while let Some(entry) = cell.entries.front() {
            if entry.len > cell.sent_by_callers {
                break;
            }
            cell.sent_by_callers -= entry.len;
            let Some(entry) = cell.entries.pop_front() else { break };
            self.own_timeouts += usize::from(entry.timeout.is_some());
            self.entries.push_back(entry);
        }
    }

    /// Takes over what was queued, if nothing is being sent.
    fn take_queued(&mut self) -> Result<()> {
        if self.sent < self.sending.len() || self.is_demoted {
            return Ok(());
        }
        self.sending.clear();
        self.sent = 0;
        if self.sending.capacity() > KEPT_BYTES_MAX {
            self.sending = Vec::new();
        }
        if self.task.shared.seat.is_some() {
            if !self.entries.is_empty() {
                return Ok(());
            }
            // What concerns the connection itself, such as a new login, goes first.
            if self.task.shared.lock().entries.is_empty() {
                self.take_from_pool();
                return Ok(());
            }
        }
        let mut cell = self.task.shared.lock();
        if cell.is_broken {
            return Err(Error::new(Kind::Protocol, "a reply to a request that was not sent whole"));
        }
        if cell.is_writing || cell.entries.is_empty() {
            return Ok(());
        }
        cell.sent_by_callers = 0;
        std::mem::swap(&mut cell.out, &mut self.sending);
        let since = Some(Instant::now());
        let first = self.entries.len();
        self.entries.append(&mut cell.entries);
        drop(cell);
        for entry in self.entries.range_mut(first..) {
            entry.since = entry.since.or(since);
            self.own_timeouts += usize::from(entry.timeout.is_some());
        }
        Ok(())
    }

    /// Takes one piece from the pool, if none is under way.
    fn take_from_pool(&mut self) {
        let Some(seat) = &self.task.shared.seat else { return };
        if self.entries.is_empty()
            && let Some(Taken { mut entry, blocks }) = seat.take(&mut self.sending)
        {
            // What it tells the server begins now, however long it was queued.
            let since = entry.since.filter(|_| !blocks);
            entry.since = since.or(Some(Instant::now()));
            self.own_timeouts += usize::from(entry.timeout.is_some());
            self.blocks = blocks;
            self.entries.push_back(entry);
        }
    }

    /// Sends what there is; false if the system takes no more now.
    fn write(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            self.take_queued()?;
            if self.sent == self.sending.len() {
                return Ok(true);
            }
            match self.writer.poll_write(cx, &self.sending[self.sent..]) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(0)) => return Err(lost("nothing can be written")),
                Poll::Ready(Ok(written)) => self.sent += written,
                Poll::Ready(Err(error)) => return Err(lost(&error.to_string())),
            }
        }
    }

    /// Lets callers wake the driver; false if there is something to do already.
    fn rest(&mut self, cx: &mut Context<'_>, is_flushed: bool) -> bool {
        if let Some(seat) = &self.task.shared.seat
            && self.entries.is_empty()
            && !seat.rest(cx.waker())
        {
            return self.task.shared.lock().is_closed;
        }
        let mut cell = self.task.shared.lock();
        let freed = std::mem::take(&mut self.freed);
        if freed > 0 {
            let woken = cell.release(freed);
            if !woken.is_empty() {
                drop(cell);
                woken.into_iter().for_each(Waker::wake);
                cell = self.task.shared.lock();
            }
        }
        let has_more = is_flushed && !cell.out.is_empty() && !cell.is_writing && !self.is_demoted;
        if has_more && !cell.is_closed {
            return false;
        }
        if !self.ticks && !cell.entries.is_empty() {
            // A caller has sent something while the clock was being stopped.
            self.heard = true;
            return false;
        }
        cell.held = self.entries.len() + usize::from(!is_flushed);
        cell.ticks = self.ticks;
        cell.driver = Some(cx.waker().clone());
        true
    }

    /// Looks at the clock, and sees to it that somebody does later.
    fn tick(&mut self, cx: &mut Context<'_>) -> Result<()> {
        if !self.ticks {
            if self.entries.is_empty() && !self.heard {
                return Ok(());
            }
            self.ticks = true;
            self.idle_ticks = 0;
            // Nothing had to be heard since the clock was stopped.
            self.last_heard = Instant::now();
            self.timer.as_mut().reset((Instant::now() + TICK).into());
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            self.expire(now);
            if let Some(seat) = &self.task.shared.seat {
                seat.expire(now, None);
                if self.blocks && self.entries.front().is_some_and(|entry| !entry.is_awaited()) {
                    // It would keep the connection for as long as it waits, and take what is meant for others.
                    // The server is well, so the next connection is made at once.
                    self.was_useful = true;
                    return Err(lost("a command that waits for other clients was left"));
                }
            }
            let waits = !self.entries.is_empty() || self.task.shared.pending() > 0;
            if self.heard || !waits {
                self.last_heard = now;
            }
            self.idle_ticks = if self.heard || waits { 0 } else { self.idle_ticks + 1 };
            self.heard = false;
            let silence = now.saturating_duration_since(self.last_heard);
            if waits && silence >= self.silence_max() {
                let text = format!("no answer for {:.1} s", silence.as_secs_f64());
                return Err(lost(&text));
            }
            if self.idle_ticks >= IDLE_TICKS {
                self.ticks = false;
                self.shrink();
                return Ok(());
            }
            self.timer.as_mut().reset((now + TICK).into());
        }
        Ok(())
    }

    /// While somebody may wait for longer the server may be silent for as long.
    fn silence_max(&self) -> Duration {
        let own = self.entries.front().and_then(|entry| entry.timeout);
        let patience = own.or(self.task.shared.bounds.timeout).unwrap_or(Duration::MAX);
        self.task.silence_max.max(patience)
    }

    /// Nothing has happened for a while.
    fn shrink(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        self.sending = Vec::new();
        self.sent = 0;
        self.wakers = Vec::new();
        self.entries.shrink_to_fit();
        let mut cell = self.task.shared.lock();
        if cell.out.is_empty() && !cell.is_writing {
            cell.out = Vec::new();
        }
        cell.entries.shrink_to_fit();
    }

    /// Answers those whose time is over. Their replies are still to come.
    fn expire(&mut self, now: Instant) {
        self.take_sent(false);
        let bounds = &self.task.shared.bounds;
        let mut over = Vec::new();
        for entry in &mut self.entries {
            if entry.expires(now, bounds) {
                self.task.shared.tallies.timeouts.add(1);
                over.extend(entry.answer(Err(timeout(Phase::Sent, None))));
            } else if entry.is_awaited() && self.own_timeouts == 0 {
                // All others came later, and have as much time.
                break;
            }
        }
        over.into_iter().for_each(Waker::wake);
        self.task.shared.expire(now);
    }

    /// The connection is lost. What was sent gets the error; what was not goes by the next one.
    async fn abandon(&mut self, error: &Error) {
        // Nobody begins to write from here on; who has begun is waited for.
        while self.task.shared.lock().stop_writing() {
            tokio::task::yield_now().await;
        }
        let mut unsent = VecDeque::new();
        let mut unsent_bytes = 0;
        let left = self.sending.len() - self.sent;
        while self.entries.back().is_some_and(|entry| unsent_bytes + entry.len <= left) {
            let Some(entry) = self.entries.pop_back() else { break };
            unsent_bytes += entry.len;
            unsent.push_front(entry);
        }
        if let Some(seat) = &self.task.shared.seat {
            let bytes = self.sending.split_off(self.sending.len() - unsent_bytes);
            let entry = unsent.pop_front();
            seat.leave(entry.map(|entry| (Taken { entry, blocks: self.blocks }, bytes)));
        }
        let mut freed = std::mem::take(&mut self.freed);
        let woken;
        {
            let mut guard = self.task.shared.lock();
            let cell = &mut *guard;
            cell.writer = None;
            cell.ticks = false;
            cell.held = 0;
            cell.failure = Some(error.clone());
            // A request of which a caller has sent a part is lost as a whole.
            let mut sent = std::mem::take(&mut cell.sent_by_callers);
            while sent > 0 {
                let Some(entry) = cell.entries.pop_front() else { break };
                let rest = entry.len.saturating_sub(sent);
                sent = sent.saturating_sub(entry.len);
                cell.out.drain(..rest.min(cell.out.len()));
                self.entries.push_back(entry);
            }
            if !unsent.is_empty() {
                let mut out = self.sending.split_off(self.sending.len() - unsent_bytes);
                out.append(&mut cell.out);
                cell.out = out;
                unsent.append(&mut cell.entries);
                cell.entries = unsent;
            }
            freed += self.entries.iter().map(Entry::cost).sum::<usize>();
            woken = cell.release(freed);
            debug_assert!(cell.is_whole(), "bytes and entries belong together");
        }
        woken.into_iter().for_each(Waker::wake);
        let is_lost = error.kind() == Kind::Disconnected;
        for mut entry in self.entries.drain(..) {
            let error = match is_lost {
                true => Error::lost(Phase::Sent, error.message()),
                false => error.after_sending(),
            };
            if let Some(waker) = entry.answer(Err(error)) {
                waker.wake();
            }
        }
    }
}

fn lost(why: &str) -> Error {
    Error::new(Kind::Disconnected, why.to_owned())
}
