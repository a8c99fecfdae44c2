//! The state that callers and the driver of a lane share: bytes to send, the callers that wait for replies, and whether
//! the connection is open. One lock, held for the time of a copy.

use super::for_room::{ForRoom, WAITING_MAX};
use super::io::Writer;
use super::pool::Seat;
use super::slot::Slot;
use super::{Answer, Waiting};
use crate::command::Replay;
use crate::error::{Error, Kind, Phase, Result};
use crate::observe::{Counts, Tallies};
use crate::reply::Reply;
use crate::request::Request;
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A longer queue grows by an eighth and not twofold: what is promised is a bound.
const GROWS_TWOFOLD_MAX: usize = 256 << 10;
/// The same of entries.
const ENTRIES_TWOFOLD_MAX: usize = 1024;
/// What a request costs beside its bytes: its entry, its slot, and what the allocator adds to that.
const ENTRY_BYTES: usize = size_of::<Entry>() + size_of::<Slot>() + 32;

/// What happens to a command when the [budget](crate::Budget) is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// The command waits until other commands have their replies.
    #[default]
    Wait,
    /// The command fails with [`Kind::Overloaded`] at once.
    Refuse,
}

/// How a lane is bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes of requests whose replies have not come, with what is known of each.
    pub(crate) bytes_max: usize,
    pub(crate) when_full: WhenFull,
    /// Time for a command that has none of its own.
    pub(crate) timeout: Option<Duration>,
    /// Which requests are sent again when their connection is lost.
    pub(crate) replay: Replay,
}

impl Bounds {
    /// Whether these requests would be sent again, so that their connection may be given up early.
    #[inline]
    pub(super) fn sends_again(&self, requests: &[Request]) -> bool {
        let only_read = |request: &Request| {
            let traits = request.traits();
            traits.reads_only && !traits.blocks
        };
        match self.replay {
            Replay::Never => false,
            Replay::Reads => requests.iter().all(only_read),
            Replay::AtLeastOnce => !requests.iter().any(|request| request.traits().blocks),
        }
    }

    /// There is no room: who asks is told so, or waits with the others.
    #[cold]
    pub(super) fn refuse(
        &self,
        full: std::fmt::Arguments<'_>,
        waiting: &mut ForRoom,
        timeout: Option<Duration>,
        waker: &Waker,
    ) -> Result<Submitted> {
        if self.when_full == WhenFull::Refuse {
            return Err(Error::new(Kind::Overloaded, format!("{full}, nothing was sent")));
        }
        let until =
            timeout.or(self.timeout).and_then(|timeout| Instant::now().checked_add(timeout));
        if !waiting.add(until, waker) {
            let text = format!("{full}, and {WAITING_MAX} tasks wait for room, nothing was sent");
            return Err(Error::new(Kind::Overloaded, text));
        }
        Ok(Submitted::Full)
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// The answer will be there.
    Waits(Waiting),
    /// There is no room: the waker is woken when there is, to try again.
    Full,
    /// Nothing had to be sent. No lane says so; what keeps replies does.
    Ready(Reply),
}

/// A request in the order of its bytes.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Who waits; nobody any more once there was an answer, though the reply may still have to come.
    slot: Option<Waiting>,
    /// Replies that belong to it.
    pub(crate) replies: u32,
    /// Bytes of it.
    pub(crate) len: usize,
    /// When it began to wait, as the driver has seen it: `None` until it looks.
    pub(crate) since: Option<Instant>,
    /// Its own time, if it has one.
    pub(crate) timeout: Option<Duration>,
    /// The caller sends it again if the connection is lost.
    pub(super) again: bool,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bounds: Bounds,
    /// Where the lane gets its work if it is one of a pool: then nothing is queued here.
    pub(crate) seat: Option<Seat>,
    pub(crate) tallies: Tallies,
    cell: Mutex<Cell>,
}

#[derive(Debug)]
pub(crate) struct Cell {
    /// Bytes that nobody has begun to send.
    pub(crate) out: Vec<u8>,
    /// Those of `out`, behind those that callers have sent themselves.
    pub(crate) entries: VecDeque<Entry>,
    /// Bytes at the end of which `out` begins: the lengths of the entries before it.
    pub(crate) sent_by_callers: usize,
    /// Whom to wake if the driver rests.
    pub(crate) driver: Option<Waker>,
    /// Entries that the driver holds, as of when it began to rest.
    pub(crate) held: usize,
    /// What all requests that are not answered cost.
    pub(crate) bytes: usize,
    /// Who waits for room.
    waiting: ForRoom,
    /// The connection, while there is one that may be written to.
    pub(crate) writer: Option<Writer>,
    /// A caller is sending.
    pub(crate) is_writing: bool,
    /// The driver looks at the clock by itself.
    pub(crate) ticks: bool,
    pub(crate) is_closed: bool,
    /// Whoever has it wanted it closed.
    is_given_up: bool,
    /// Nothing more is taken, and what was not sent has gone elsewhere; what was sent is still answered.
    is_retired: bool,
    /// Nothing new is sent for now: the server is about to be demoted.
    pub(crate) is_held: bool,
    /// The server answered before it had all of a request: nobody knows where the next one would begin.
    pub(crate) is_broken: bool,
    /// Why there is no connection.
    pub(crate) failure: Option<Error>,
}

impl Shared {
    pub(crate) fn new(bounds: Bounds) -> Shared {
        let cell = Cell {
            out: Vec::new(),
            entries: VecDeque::new(),
            sent_by_callers: 0,
            driver: None,
            held: 0,
            bytes: 0,
            waiting: ForRoom::default(),
            writer: None,
            is_writing: false,
            ticks: false,
            is_closed: false,
            is_given_up: false,
            is_retired: false,
            is_held: false,
            is_broken: false,
            failure: None,
        };
        Shared { bounds, seat: None, tallies: Tallies::default(), cell: Mutex::new(cell) }
    }

    /// Of a lane of a pool.
    pub(crate) fn seated(bounds: Bounds, seat: Seat) -> Shared {
        Shared { seat: Some(seat), ..Shared::new(bounds) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Cell> {
        lock(&self.cell)
    }

    #[inline]
    pub(crate) fn submit(
        &self,
        requests: &[Request],
        timeout: Option<Duration>,
        waker: &Waker,
    ) -> Result<Submitted> {
        let slot = Slot::take(waker);
        let mut guard = self.lock();
        let cell = &mut *guard;
        if cell.is_closed || cell.is_retired {
            return Err(cell.end());
        }
        // One alone is taken whatever its size: else it could never be sent.
        if cell.bytes > 0 && cell.bytes + cost(requests) > self.bounds.bytes_max {
            let full = format_args!("{} bytes wait for replies", cell.bytes);
            return self.bounds.refuse(full, &mut cell.waiting, timeout, waker);
        }
        let begin = cell.out.len();
        cell.make_room(requests, &self.bounds);
        requests.iter().for_each(|request| request.encode(&mut cell.out));
        let len = cell.out.len() - begin;
        self.tallies.commands.add(requests.len());
        self.tallies.sent_bytes.add(len);
        let again = self.bounds.sends_again(requests);
        let mut entry = Entry::new(Arc::clone(&slot), requests.len(), len, timeout);
        entry.again = again;
        cell.bytes += entry.cost();
        let was_idle = cell.entries.is_empty() && cell.held == 0 && begin == 0;
        cell.entries.push_back(entry);
        if cell.is_writing {
            // Whoever writes looks again.
            return Ok(Submitted::Waits(slot));
        }
        if was_idle
            && cell.ticks
            && !cell.is_held
            && self.seat.is_none()
            // The first reply to several could be here before the last of them is sent.
            && requests.len() == 1
            && cell.driver.is_some()
            && let Some(writer) = cell.writer.clone()
        {
            self.write_inline(guard, &writer);
            return Ok(Submitted::Waits(slot));
        }
        let driver = cell.driver.take();
        drop(guard);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(Submitted::Waits(slot))
    }

    /// Nobody else is under way: the caller sends by itself, which saves waking the driver.
    fn write_inline(&self, mut guard: MutexGuard<'_, Cell>, writer: &Writer) {
        let mut bytes = std::mem::take(&mut guard.out);
        guard.is_writing = true;
        guard.sent_by_callers += bytes.len();
        drop(guard);
        let written = writer.try_write(&bytes).unwrap_or(0);
        let mut cell = self.lock();
        cell.is_writing = false;
        if written == bytes.len() {
            bytes.clear();
            if cell.out.is_empty() {
                cell.out = bytes;
                return;
            }
        } else if cell.sent_by_callers < bytes.len() {
            cell.is_broken = true;
        } else {
            // What is left goes before what came meanwhile.
            bytes.drain(..written);
            cell.sent_by_callers = cell.sent_by_callers.saturating_sub(bytes.len());
            bytes.extend_from_slice(&cell.out);
            cell.out = bytes;
        }
        let driver = cell.driver.take();
        drop(cell);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// What was counted, and what is so now.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::of(&self.tallies);
        let cell = self.lock();
        counts.pending = (cell.held + cell.entries.len()) as u64;
        counts.pending_bytes = cell.bytes as u64;
        counts.connected = u64::from(cell.writer.is_some());
        counts
    }

    pub(crate) fn pending(&self) -> usize {
        let cell = self.lock();
        cell.held + cell.entries.len()
    }

    /// Nothing more is taken; the driver ends.
    pub(crate) fn close(&self) {
        let driver = {
            let mut cell = self.lock();
            (cell.is_closed, cell.is_given_up) = (true, true);
            cell.driver.take()
        };
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Starts or stops holding new requests back.
    pub(crate) fn hold(&self, is_held: bool) {
        let driver = {
            let mut cell = self.lock();
            let was_held = std::mem::replace(&mut cell.is_held, is_held);
            if was_held == is_held { None } else { cell.driver.take() }
        };
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.lock().is_held
    }

    /// Nothing more is taken; what was not sent goes elsewhere.
    pub(crate) fn retire(&self) {
        self.lock().is_retired = true;
        self.turn_away();
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.lock().is_retired
    }

    /// There was no connection when last one was tried.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// There is nothing any more that could send: who waits is told.
    pub(super) fn finish(&self) {
        self.seat.iter().for_each(Seat::end);
        let (entries, error, woken) = {
            let mut cell = self.lock();
            cell.is_closed = true;
            cell.writer = None;
            cell.out = Vec::new();
            let bytes = cell.bytes;
            let woken = cell.release(bytes);
            (std::mem::take(&mut cell.entries), cell.end(), woken)
        };
        woken.into_iter().for_each(Waker::wake);
        for mut entry in entries {
            if let Some(waker) = entry.answer(Err(error.clone())) {
                waker.wake();
            }
        }
    }

    /// Answers those of whom nothing was sent, that it never will be: they can go elsewhere.
    pub(crate) fn turn_away(&self) {
        self.seat.iter().for_each(Seat::turn_away);
        let mut woken = Vec::new();
        {
            let mut cell = self.lock();
            let mut sent = cell.sent_by_callers;
            for entry in &mut cell.entries {
                if sent == 0 {
                    woken.extend(entry.answer(Err(elsewhere())));
                }
                sent = sent.saturating_sub(entry.len);
            }
            woken.extend(cell.forget_unwanted());
            // Each finds out by itself that nothing is taken here.
            woken.extend(cell.release(0));
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Answers those whose time is over, and forgets what nobody waits for any more and was not sent: then it
    /// never will be.
    pub(crate) fn expire(&self, now: Instant) {
        let mut over = Vec::new();
        {
            let mut cell = self.lock();
            let cell = &mut *cell;
            // Each finds out by itself that its time is over.
            over.extend(cell.waiting.take_over(now));
            // What is being sent is neither sent nor not.
            if !cell.is_writing {
                let mut sent = cell.sent_by_callers;
                // One error for all: many may be over at once, and each waits for its caller.
                let mut errors = [None, None];
                for entry in &mut cell.entries {
                    let phase = if sent > 0 { Phase::Sent } else { Phase::Queued };
                    sent = sent.saturating_sub(entry.len);
                    if entry.expires(now, &self.bounds) {
                        self.tallies.timeouts.add(1);
                        let error = errors[usize::from(phase == Phase::Sent)]
                            .get_or_insert_with(|| timeout(phase, cell.failure.as_ref()));
                        over.extend(entry.answer(Err(error.clone())));
                    }
                }
                over.extend(cell.forget_unwanted());
            }
        }
        over.into_iter().for_each(Waker::wake);
    }
}

/// What requests that go together cost until they are answered.
pub(super) fn cost(requests: &[Request]) -> usize {
    requests.iter().map(Request::len).sum::<usize>() + ENTRY_BYTES
}

/// A command's time is over.
pub(crate) fn timeout(phase: Phase, failure: Option<&Error>) -> Error {
    let mut text = String::new();
    if let Some(failure) = failure {
        // Nothing that is written to a string fails.
        let _ = write!(text, ": {failure}");
    }
    Error::new(Kind::Timeout(phase), text)
}

impl Entry {
    /// So many requests of so many bytes, whose answer this caller waits for.
    #[inline]
    pub(crate) fn new(
        slot: Waiting,
        requests: usize,
        len: usize,
        timeout: Option<Duration>,
    ) -> Entry {
        let replies = u32::try_from(requests).unwrap_or(u32::MAX);
        Entry { slot: Some(slot), replies, len, since: None, timeout, again: false }
    }

    /// Losing the connection does no harm: the request would be sent again, or no caller waits.
    pub(crate) fn survives(&self) -> bool {
        self.again || !self.is_awaited()
    }

    /// What it takes of the budget.
    pub(super) fn cost(&self) -> usize {
        self.len + ENTRY_BYTES
    }

    /// Gives the answer to who waits; whom to wake. Later ones are nobody's.
    #[inline]
    #[must_use]
    pub(crate) fn answer(&mut self, answer: Answer) -> Option<Waker> {
        // The slot is let go before its caller wakes, who then can use it again.
        self.slot.take()?.answer(answer)
    }

    /// Whether somebody waits for the answer, or will find it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| Arc::strong_count(slot) > 1)
    }

    /// Whether its time is over now, and was not before.
    pub(crate) fn expires(&mut self, now: Instant, bounds: &Bounds) -> bool {
        let since = *self.since.get_or_insert(now);
        let Some(timeout) = self.timeout.or(bounds.timeout) else { return false };
        self.slot.is_some() && now.saturating_duration_since(since) >= timeout
    }
}

/// Whatever becomes of the driver, such as a runtime that is shut down: nobody waits for ever.
impl Drop for Entry {
    fn drop(&mut self) {
        if self.slot.is_some()
            && let Some(waker) = self.answer(Err(closed().after_sending()))
        {
            waker.wake();
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(Kind::Closed, "the client is closed")
}

/// Why a request was not sent by a lane that nothing goes by any more.
pub(crate) fn elsewhere() -> Error {
    Error::lost(Phase::Queued, "the node has no more part in this")
}

impl Cell {
    /// Long queues grow by little, and not beyond what is promised.
    #[inline]
    fn make_room(&mut self, requests: &[Request], bounds: &Bounds) {
        let len = self.out.len();
        if len > GROWS_TWOFOLD_MAX {
            let needed: usize = requests.iter().map(Request::len).sum();
            if self.out.capacity() - len < needed {
                let left = bounds.bytes_max.saturating_sub(self.bytes);
                self.out.reserve_exact(needed.max(left.min(len / 8)));
            }
        }
        let count = self.entries.len();
        if count > ENTRIES_TWOFOLD_MAX && count == self.entries.capacity() {
            self.entries.reserve_exact(count / 8);
        }
    }

    /// Drops requests of which nothing was sent and for which nobody waits. Not while a caller is sending.
    #[must_use]
    fn forget_unwanted(&mut self) -> Vec<Waker> {
        let mut sent = self.sent_by_callers;
        let mut is_unwanted = |entry: &Entry| {
            let is_sent = sent > 0;
            sent = sent.saturating_sub(entry.len);
            !is_sent && !entry.is_awaited()
        };
        if !self.entries.iter().any(&mut is_unwanted) {
            return Vec::new();
        }
        let (mut sent, mut kept, mut at, mut freed) = (self.sent_by_callers, 0, 0, 0);
        let out = &mut self.out;
        self.entries.retain(|entry| {
            let already = sent.min(entry.len);
            sent -= already;
            let bytes = at..(at + entry.len - already).min(out.len());
            at = bytes.end;
            let stays = already > 0 || entry.is_awaited();
            if stays {
                let len = bytes.len();
                out.copy_within(bytes, kept);
                kept += len;
            } else {
                freed += entry.cost();
            }
            stays
        });
        out.truncate(kept);
        self.release(freed)
    }

    /// What costs so much was answered. Whom to wake for it: each finds out by itself whether there is room.
    #[must_use]
    pub(crate) fn release(&mut self, cost: usize) -> Vec<Waker> {
        self.bytes = self.bytes.saturating_sub(cost);
        self.waiting.take()
    }

    /// No caller begins to send any more; whether one has begun.
    pub(crate) fn stop_writing(&mut self) -> bool {
        self.writer = None;
        self.is_writing
    }

    /// Bytes of the requests that the driver has not taken over: those that callers have sent, and queued ones.
    pub(crate) fn unanswered_bytes(&self) -> usize {
        self.out.len() + self.sent_by_callers
    }

    /// What is sent and what is to be sent is that of those who wait.
    pub(crate) fn is_whole(&self) -> bool {
        let entries: usize = self.entries.iter().map(|entry| entry.len).sum();
        self.unanswered_bytes() == entries
    }

    /// Why nothing goes by this lane any more.
    pub(crate) fn end(&self) -> Error {
        match &self.failure {
            _ if self.is_retired && !self.is_closed => elsewhere(),
            Some(failure) if !self.is_given_up => failure.clone(),
            _ => closed(),
        }
    }
}
