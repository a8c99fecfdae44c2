//! The driver's side of a lane's queue: the bytes that are being sent, and the callers that wait for replies to sent
//! requests. It takes both from the [cell](super::cell) or from a [pool](super::pool), and returns requests that were
//! not sent when the connection is lost.
//!
//! Nothing in this module blocks or depends on a runtime, so loom can explore every interleaving (`model.rs`).

use super::cell::{Cell, Entry, Shared, timeout};
use super::io::Writer;
use super::pool::Taken;
use crate::error::{Error, Kind, Phase, Result};
use crate::reply::Reply;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A buffer larger than this is freed when it is empty.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The requests in progress on one connection.
#[derive(Default)]
pub(super) struct InFlight {
    /// Requests without a reply, in order.
    entries: VecDeque<Entry>,
    /// The number of entries with their own time limit.
    own_timeouts: usize,
    /// True if the request in progress waits for other clients. Used only for connections in a pool.
    blocks: bool,
    /// The number of replies to the first entry that have arrived. The next field is their length in the buffer.
    seen: u32,
    seen_bytes: usize,
    /// The number of these replies that are errors because the server is a replica.
    rejected: u32,
    /// True if the server is a replica although a primary is required. The connection ends after the replies to sent
    /// requests.
    is_demoted: bool,
    /// Bytes that are being sent. The next field is the number of bytes already sent.
    sending: Vec<u8>,
    sent: usize,
    /// The cost of completed requests, which is not yet returned to the budget.
    freed: usize,
}

/// The next step of the driver after it has done all possible work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It waits to be woken.
    Idle,
    /// It continues, since there is more work.
    Work,
    /// It starts the timer again, since a caller has sent a request in the meantime.
    StartTimer,
}

impl InFlight {
    /// Starts with a new connection, on which callers may write from now on.
    pub(super) fn begin(shared: &Shared, writer: &Writer) -> InFlight {
        let mut cell = shared.lock();
        debug_assert!(cell.is_whole(), "bytes and entries belong together");
        cell.writer = Some(writer.clone());
        cell.failure = None;
        cell.is_broken = false;
        cell.sent_by_callers = 0;
        InFlight::default()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry whose reply comes next.
    pub(super) fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// The length of the first entry's replies that have arrived.
    pub(super) fn seen_bytes(&self) -> usize {
        self.seen_bytes
    }

    /// Reports whether the requests without a reply are larger than `bytes` in total. O(`bytes`).
    pub(super) fn exceeds(&self, shared: &Shared, bytes: usize) -> bool {
        let mut sum = shared.lock().unanswered_bytes();
        sum > bytes
            || self.entries.iter().any(|entry| {
                sum += entry.len;
                sum > bytes
            })
    }

    /// Reports whether the request in progress waits for other clients and no caller waits for it.
    pub(super) fn is_abandoned(&self) -> bool {
        self.blocks && self.entries.front().is_some_and(|entry| !entry.is_awaited())
    }

    /// Reports whether every request that was sent, whole or in part, would be sent again, so that nothing is lost if
    /// the connection is lost.
    pub(super) fn survives(&mut self, shared: &Shared) -> bool {
        self.take_sent(shared, false);
        self.survives_with(&shared.lock())
    }

    /// Like [`InFlight::survives`]. If so, no caller starts to write any more, because its request might not survive.
    pub(super) fn stop_if_it_survives(&mut self, shared: &Shared) -> bool {
        self.take_sent(shared, false);
        let mut cell = shared.lock();
        let survives = self.survives_with(&cell);
        if survives {
            cell.stop_writing();
        }
        survives
    }

    fn survives_with(&self, cell: &Cell) -> bool {
        // The requests that a caller is writing now, or the request that a caller has partially written.
        let sent_in_part = match cell.is_writing {
            true => cell.entries.len(),
            false => usize::from(cell.sent_by_callers > 0),
        };
        self.entries.iter().chain(cell.entries.iter().take(sent_in_part)).all(Entry::survives)
    }

    /// Reports whether the server is a replica now and all replies to sent requests have arrived.
    pub(super) fn is_demoted_and_done(&mut self, shared: &Shared) -> bool {
        if !self.is_demoted {
            return false;
        }
        self.take_sent(shared, false);
        self.is_done_with(&shared.lock())
    }

    fn is_done_with(&self, cell: &Cell) -> bool {
        // A request that a caller is writing, or has written, will get a reply. A request that was sent only in part
        // will not.
        self.is_demoted
            && self.entries.is_empty()
            && self.sent == self.sending.len()
            && !cell.is_writing
            && !cell.has_sent_whole()
    }

    /// Counts a reply of `len` bytes. Returns true if it is the last reply of its entry. In that case, call
    /// [`InFlight::deliver`].
    ///
    /// # Errors
    /// No request is waiting for a reply.
    pub(super) fn count(
        &mut self,
        shared: &Shared,
        len: usize,
        is_rejection: bool,
    ) -> Result<bool> {
        if self.entries.is_empty() {
            self.take_sent(shared, true);
        }
        let Some(entry) = self.entries.front() else {
            return Err(Error::new(Kind::Protocol, "a reply without a request"));
        };
        self.seen += 1;
        self.seen_bytes += len;
        self.rejected += u32::from(is_rejection);
        if is_rejection && !self.is_demoted {
            self.is_demoted = true;
            shared.lock().writer = None;
        }
        Ok(self.seen >= entry.replies)
    }

    /// Delivers the replies to the waiting caller, if there is one. Returns the waker to wake.
    #[must_use]
    pub(super) fn deliver(&mut self, reply: Reply, is_abort: bool) -> Option<Waker> {
        let rejected = std::mem::take(&mut self.rejected);
        // The server executed nothing, and the caller sends the request again.
        let result = match rejected == self.seen || (rejected > 0 && is_abort) {
            true => Err(Error::server(b"READONLY the server is a replica now")),
            false => Ok(reply),
        };
        (self.seen, self.seen_bytes) = (0, 0);
        let mut entry = self.entries.pop_front()?;
        self.own_timeouts -= usize::from(entry.timeout.is_some());
        self.freed += entry.cost();
        entry.complete(result)
    }

    /// Takes over the entries that callers have written themselves. An entry that is still being written is taken only
    /// if its reply has arrived, which shows that all of it was sent. Otherwise the owner of the remaining bytes would
    /// be unknown.
    fn take_sent(&mut self, shared: &Shared, has_reply: bool) {
        let mut cell = shared.lock();
        if cell.is_writing && !has_reply {
            return;
        }
        while cell.has_sent_whole()
            && let Some(mut entry) = cell.entries.pop_front()
        {
            cell.sent_by_callers -= entry.len;
            entry.since = entry.since.or_else(|| Some(Instant::now()));
            self.own_timeouts += usize::from(entry.timeout.is_some());
            self.entries.push_back(entry);
        }
    }

    /// Takes over the queued requests, if nothing is being sent.
    fn take_queued(&mut self, shared: &Shared) -> Result<()> {
        if self.sent < self.sending.len() || self.is_demoted {
            return Ok(());
        }
        self.sending.clear();
        self.sent = 0;
        if self.sending.capacity() > KEPT_BYTES_MAX {
            self.sending = Vec::new();
        }
        if shared.pool_slot.is_some() {
            if !self.entries.is_empty() || shared.is_held() {
                return Ok(());
            }
            // Requests about the connection itself, for example a new login, are sent first.
            if shared.lock().entries.is_empty() {
                self.take_from_pool(shared);
                return Ok(());
            }
        }
        let mut cell = shared.lock();
        if cell.is_broken {
            return Err(Error::new(
                Kind::Protocol,
                "a reply to a request that was sent only in part",
            ));
        }
        if cell.is_writing || cell.is_held || cell.entries.is_empty() {
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

    /// Takes one piece from the pool, if none is in progress.
    fn take_from_pool(&mut self, shared: &Shared) {
        let Some(pool_slot) = &shared.pool_slot else { return };
        if self.entries.is_empty()
            && let Some(Taken { mut entry, blocks }) = pool_slot.take(&mut self.sending)
        {
            // The time limit of a blocking command starts now, no matter how long the command was queued.
            let since = entry.since.filter(|_| !blocks);
            entry.since = since.or(Some(Instant::now()));
            self.own_timeouts += usize::from(entry.timeout.is_some());
            self.blocks = blocks;
            self.entries.push_back(entry);
        }
    }

    /// Sends the bytes; false if the socket accepts no more now.
    pub(super) fn write(
        &mut self,
        shared: &Shared,
        writer: &Writer,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        loop {
            self.take_queued(shared)?;
            if self.sent == self.sending.len() {
                return Ok(true);
            }
            match writer.poll_write(cx, &self.sending[self.sent..]) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(0)) => return Err(lost("nothing can be written")),
                Poll::Ready(Ok(written)) => self.sent += written,
                Poll::Ready(Err(error)) => return Err(Error::socket("", error)),
            }
        }
    }

    /// Returns the cost of completed requests to the budget, and lets callers wake the driver, unless there is more
    /// work.
    pub(super) fn rest(
        &mut self,
        shared: &Shared,
        waker: &Waker,
        is_flushed: bool,
        ticks: bool,
    ) -> NextStep {
        if let Some(pool_slot) = &shared.pool_slot
            && self.entries.is_empty()
            && !shared.is_held()
            && !pool_slot.rest(waker)
        {
            return if shared.lock().is_closed { NextStep::Idle } else { NextStep::Work };
        }
        let mut cell = shared.lock();
        let freed = std::mem::take(&mut self.freed);
        if freed > 0 {
            let woken = cell.release(freed);
            if !woken.is_empty() {
                drop(cell);
                woken.into_iter().for_each(Waker::wake);
                cell = shared.lock();
            }
        }
        // If a caller has sent a request only in part, the next write reports the error.
        let has_more = is_flushed
            && !self.is_demoted
            && (cell.is_broken || !cell.out.is_empty() && !cell.is_writing && !cell.is_held);
        // A caller may have finished writing since the driver last checked.
        if (has_more || self.is_done_with(&cell)) && !cell.is_closed {
            return NextStep::Work;
        }
        if !ticks && !cell.entries.is_empty() {
            return NextStep::StartTimer;
        }
        cell.held = self.entries.len();
        cell.is_flushed = is_flushed;
        cell.ticks = ticks;
        cell.driver = Some(waker.clone());
        NextStep::Idle
    }

    /// Returns errors for timed-out requests. Their replies may still arrive.
    pub(super) fn expire(&mut self, shared: &Shared, now: Instant) {
        self.take_sent(shared, false);
        let mut over = Vec::new();
        for entry in &mut self.entries {
            if entry.expires(now, &shared.bounds) {
                shared.tallies.timeouts.add(1);
                over.extend(entry.complete(Err(timeout(Phase::Sent, None))));
            } else if entry.is_awaited() && self.own_timeouts == 0 {
                // All later entries were started later and have the same time limit.
                break;
            }
        }
        over.into_iter().for_each(Waker::wake);
        shared.expire(now);
    }

    /// Frees memory after a period without work.
    pub(super) fn shrink(&mut self, shared: &Shared) {
        if self.sent == self.sending.len() {
            self.sending = Vec::new();
            self.sent = 0;
        }
        self.entries.shrink_to_fit();
        let mut cell = shared.lock();
        if cell.out.is_empty() && !cell.is_writing {
            cell.out = Vec::new();
        }
        cell.entries.shrink_to_fit();
    }

    /// Handles a lost connection: requests that were sent fail with this error, and the others are sent on the next
    /// connection. Call this once [`Cell::stop_writing`](super::cell::Cell::stop_writing) has reported that no caller
    /// is writing.
    pub(super) fn abandon(mut self, shared: &Shared, error: &Error) {
        let mut unsent = VecDeque::new();
        let mut unsent_bytes = 0;
        let left = self.sending.len() - self.sent;
        while self.entries.back().is_some_and(|entry| unsent_bytes + entry.len <= left) {
            let Some(entry) = self.entries.pop_back() else { break };
            unsent_bytes += entry.len;
            unsent.push_front(entry);
        }
        if let Some(pool_slot) = &shared.pool_slot {
            let bytes = self.sending.split_off(self.sending.len() - unsent_bytes);
            let entry = unsent.pop_front();
            pool_slot.leave(entry.map(|entry| (Taken { entry, blocks: self.blocks }, bytes)));
        }
        let mut freed = self.freed;
        let woken;
        {
            let mut guard = shared.lock();
            let cell = &mut *guard;
            cell.writer = None;
            cell.ticks = false;
            cell.held = 0;
            cell.failure = Some(error.clone());
            // A partially written request counts as sent, so the rest of its bytes is dropped.
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
        let is_lost = matches!(error.kind(), Kind::Disconnected | Kind::Tls);
        for mut entry in self.entries.drain(..) {
            let error = match is_lost {
                true => error.lost_at(Phase::Sent),
                false => error.after_sending(),
            };
            if let Some(waker) = entry.complete(Err(error)) {
                waker.wake();
            }
        }
    }
}

pub(super) fn lost(why: &str) -> Error {
    Error::new(Kind::Disconnected, why.to_owned())
}
