//! The queue of a pool: requests that wait for a connection, and connections that wait for work.
//!
//! Each lane of a pool takes one piece at a time from the queue: a command, a batch or a transaction. It takes the next
//! piece once the reply to the previous one has been read, whether or not a caller was still waiting for that reply. A
//! piece therefore never waits for another one on its connection, at the cost of one round trip per piece.
//!
//! Order: pieces are taken in the order in which they were queued. If a connection is lost, its unsent pieces return to
//! the front.
//!
//! An idle lane is in `idle`. A caller that queues a piece takes a lane out of `idle` and wakes it. A lane that loses
//! its connection while pieces are waiting wakes another lane, because the lost lane may be the one that was woken for
//! these pieces.
//!
//! Locks: the pool's lock may be taken while a cell's lock is held, never the other way round. While the pool's lock is
//! held, no task is woken and no entry is dropped.

use super::cell::{Bounds, Entry, Submitted, closed, cost, retired, timeout};
use super::pending_reply::PendingReply;
use super::wait_queue::WaitQueue;
use crate::error::{Error, Phase, Result};
use crate::request::Request;
use crate::sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Every lane checks the time limits of the pool, but one check per interval is enough.
const EXPIRE_INTERVAL: Duration = Duration::from_millis(5);
/// The number of buffers that are kept for later requests. The next constant is their maximum size.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 4096;

/// The state that the lanes of a pool share.
pub(crate) struct Pool {
    bounds: Bounds,
    state: Mutex<State>,
}

struct State {
    /// Pieces that no lane has taken.
    pieces: VecDeque<Piece>,
    /// The total bytes of these pieces.
    bytes: usize,
    /// The tasks that wait for room, and their time limits.
    waiting: WaitQueue,
    /// Idle lanes, the most recently used one last. That one is woken first, so that no more connections are used than
    /// necessary.
    idle: Vec<(usize, Waker)>,
    /// The number of lanes whose task has not ended.
    alive: usize,
    spare: Vec<Vec<u8>>,
    expired_at: Option<Instant>,
    is_closed: bool,
    /// True if the pool accepts no more requests, and unsent ones are sent elsewhere.
    is_retired: bool,
}

struct Piece {
    entry: Entry,
    bytes: Vec<u8>,
    blocks: bool,
}

/// A piece that a lane has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) entry: Entry,
    /// True if the piece waits for other clients, so that its connection is occupied until the piece completes.
    pub(crate) blocks: bool,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(bounds: Bounds, lanes: usize) -> Pool {
        let state = State {
            pieces: VecDeque::new(),
            bytes: 0,
            waiting: WaitQueue::default(),
            idle: Vec::new(),
            alive: lanes,
            spare: Vec::new(),
            expired_at: None,
            is_closed: false,
            is_retired: false,
        };
        Pool { bounds, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Puts requests at the end of the queue, as one piece. O(bytes).
    pub(crate) fn submit(
        &self,
        requests: &[Request],
        timeout: Option<Duration>,
        waker: &Waker,
    ) -> Result<Submitted> {
        let pending_reply = PendingReply::take(waker);
        let mut state = self.lock();
        if state.is_closed {
            return Err(closed());
        }
        if state.is_retired {
            return Err(retired());
        }
        // A single piece is accepted regardless of its size; otherwise it could never be sent.
        if state.bytes > 0 && state.bytes + cost(requests) > self.bounds.bytes_max {
            let state = &mut *state;
            let full = format_args!("{} bytes wait for a connection", state.bytes);
            return self.bounds.handle_full(full, &mut state.waiting, timeout, waker);
        }
        let mut bytes = state.spare.pop().unwrap_or_default();
        requests.iter().for_each(|request| request.encode(&mut bytes));
        let mut entry = Entry::new(
            crate::sync::Arc::clone(&pending_reply),
            requests.len(),
            bytes.len(),
            timeout,
        );
        entry.again = self.bounds.sends_again(requests);
        state.bytes += entry.cost();
        let blocks = requests.iter().any(|request| request.traits().blocks);
        state.pieces.push_back(Piece { entry, bytes, blocks });
        let called = state.call();
        drop(state);
        wake(called);
        Ok(Submitted::Waits(pending_reply))
    }

    /// The time limit of a command that has none of its own.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.bounds.timeout
    }

    /// The number of pieces that no lane has taken.
    pub(crate) fn pending(&self) -> usize {
        self.lock().pieces.len()
    }

    /// Closes the pool: no more requests are accepted, and queued ones are not sent.
    pub(crate) fn close(&self) {
        let (pieces, waiting) = self.lock().end();
        complete_all(pieces, &closed());
        wake(waiting);
    }

    /// Retires the pool: no more requests are accepted, and unsent ones are sent elsewhere.
    pub(crate) fn retire(&self) {
        self.lock().is_retired = true;
        self.reject_unsent();
    }

    /// Returns errors for all pieces that no lane has taken: they will not be sent here.
    fn reject_unsent(&self) {
        let (pieces, waiting) = self.lock().clear();
        complete_all(pieces, &retired());
        wake(waiting);
    }

    /// Returns errors for timed-out pieces, and drops pieces without a waiting caller: they are never sent.
    pub(crate) fn expire(&self, now: Instant, failure: Option<&Error>) {
        let mut over: Vec<Waker> = Vec::new();
        let mut abandoned = Vec::new();
        {
            let mut state = self.lock();
            let state = &mut *state;
            let is_recent =
                |expired_at| now.saturating_duration_since(expired_at) < EXPIRE_INTERVAL;
            if state.expired_at.is_some_and(is_recent) {
                return;
            }
            state.expired_at = Some(now);
            for piece in &mut state.pieces {
                if piece.entry.expires(now, &self.bounds) {
                    let error = timeout(Phase::Queued, failure);
                    over.extend(piece.entry.complete(Err(error)));
                }
            }
            if state.pieces.iter().any(|piece| !piece.entry.is_awaited()) {
                let (kept, taken): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut state.pieces)
                    .into_iter()
                    .partition(|piece| piece.entry.is_awaited());
                state.pieces = kept;
                state.bytes = state.pieces.iter().map(|piece| piece.entry.cost()).sum();
                abandoned.extend(taken);
            }
            if !abandoned.is_empty() || state.waiting.has_expired(now) {
                // Each task checks on its own whether there is room, or whether it has timed out.
                over.extend(state.waiting.take_all());
            }
        }
        drop(abandoned);
        wake(over);
    }
}

impl State {
    /// Returns an idle lane to wake, if there is work.
    #[must_use]
    fn call(&mut self) -> Option<Waker> {
        if self.pieces.is_empty() {
            return None;
        }
        self.idle.pop().map(|(_, waker)| waker)
    }

    fn leave(&mut self, lane: usize) {
        self.idle.retain(|(other, _)| *other != lane);
    }

    #[must_use]
    fn end(&mut self) -> (VecDeque<Piece>, Vec<Waker>) {
        self.is_closed = true;
        self.clear()
    }

    /// Takes out all pieces, and the tasks that wait for room.
    #[must_use]
    fn clear(&mut self) -> (VecDeque<Piece>, Vec<Waker>) {
        self.bytes = 0;
        let waiting = self.waiting.take_all();
        (std::mem::take(&mut self.pieces), waiting)
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

fn complete_all(pieces: VecDeque<Piece>, error: &Error) {
    for mut piece in pieces {
        wake(piece.entry.complete(Err(error.clone())));
    }
}

/// A lane's slot in a pool.
#[derive(Debug)]
pub(crate) struct PoolSlot {
    pool: Arc<Pool>,
    lane: usize,
}

impl PoolSlot {
    pub(crate) fn new(pool: &Arc<Pool>, lane: usize) -> PoolSlot {
        PoolSlot { pool: Arc::clone(pool), lane }
    }

    /// Takes the next piece that a caller waits for. Its bytes are appended to `out`.
    pub(crate) fn take(&self, out: &mut Vec<u8>) -> Option<Taken> {
        let mut abandoned = Vec::new();
        let mut state = self.pool.lock();
        let mut taken = None;
        while let Some(mut piece) = state.pieces.pop_front() {
            state.bytes -= piece.entry.cost();
            if piece.entry.is_awaited() {
                std::mem::swap(out, &mut piece.bytes);
                piece.bytes.clear();
                if state.spare.len() < SPARE_MAX && piece.bytes.capacity() <= SPARE_BYTES_MAX {
                    state.spare.push(piece.bytes);
                }
                taken = Some(Taken { entry: piece.entry, blocks: piece.blocks });
                break;
            }
            abandoned.push(piece);
        }
        let mut woken = Vec::new();
        if taken.is_some() || !abandoned.is_empty() {
            // There is room again.
            woken.extend(state.waiting.take_all());
        }
        if taken.is_some() && !state.idle.is_empty() {
            // The lane may be looking for work without having been woken.
            state.leave(self.lane);
        }
        drop(state);
        drop(abandoned);
        wake(woken);
        taken
    }

    /// Marks the lane as idle until it is woken; false if there is work.
    pub(crate) fn rest(&self, waker: &Waker) -> bool {
        let mut state = self.pool.lock();
        if !state.pieces.is_empty() {
            return false;
        }
        state.leave(self.lane);
        state.idle.push((self.lane, waker.clone()));
        true
    }

    /// Records that the lane has lost its connection. Another lane takes the unsent piece, if there is one.
    pub(crate) fn leave(&self, unsent: Option<(Taken, Vec<u8>)>) {
        let mut state = self.pool.lock();
        state.leave(self.lane);
        if state.is_closed || state.is_retired {
            let error = if state.is_closed { closed() } else { retired() };
            drop(state);
            if let Some((mut taken, _)) = unsent {
                wake(taken.entry.complete(Err(error)));
            }
            return;
        }
        if let Some((Taken { entry, blocks }, bytes)) = unsent {
            state.bytes += entry.cost();
            state.pieces.push_front(Piece { entry, bytes, blocks });
        }
        let called = state.call();
        drop(state);
        wake(called);
    }

    /// Returns errors for the pieces that no lane has taken, so that their callers send them elsewhere.
    pub(crate) fn reject_unsent(&self) {
        self.pool.reject_unsent();
    }

    /// Calls [`Pool::expire`].
    pub(crate) fn expire(&self, now: Instant, failure: Option<&Error>) {
        self.pool.expire(now, failure);
    }

    /// Records that the lane's task has ended. If no lane is left, waiting callers get an error.
    pub(crate) fn end(&self) {
        let mut state = self.pool.lock();
        state.leave(self.lane);
        state.alive = state.alive.saturating_sub(1);
        if state.alive > 0 {
            return;
        }
        let (pieces, waiting) = state.end();
        drop(state);
        complete_all(pieces, &closed());
        wake(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Replay;
    use crate::error::Kind;
    use crate::lane::cell::WhenFull;
    use crate::request::Traits;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Poll, Wake};

    /// Counts how many times it was woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Lane {
        pool_slot: PoolSlot,
        bell: Arc<Bell>,
    }

    impl Lane {
        fn rest(&self) -> bool {
            self.pool_slot.rest(&Waker::from(Arc::clone(&self.bell)))
        }

        fn take(&self) -> Option<(Taken, String)> {
            let mut out = Vec::new();
            let taken = self.pool_slot.take(&mut out)?;
            Some((taken, String::from_utf8(out).unwrap()))
        }

        fn rings(&self) -> usize {
            self.bell.0.load(Ordering::SeqCst)
        }
    }

    fn pool<const N: usize>() -> (Arc<Pool>, [Lane; N]) {
        let bounds = Bounds {
            bytes_max: 2000,
            when_full: WhenFull::Fail,
            timeout: None,
            replay: Replay::Reads,
        };
        let pool = Arc::new(Pool::new(bounds, N));
        let lanes = std::array::from_fn(|at| Lane {
            pool_slot: PoolSlot::new(&pool, at),
            bell: Arc::new(Bell::default()),
        });
        (pool, lanes)
    }

    #[track_caller]
    fn submit(pool: &Pool, word: &str) -> crate::sync::Arc<PendingReply> {
        let mut request = Request::new("ECHO", Traits::default());
        request.arg(word);
        match pool.submit(&[request], None, Waker::noop()).unwrap() {
            Submitted::Waits(pending_reply) => pending_reply,
            other => panic!("there is room, and a lane to it: {other:?}"),
        }
    }

    #[test]
    fn the_most_recently_idle_lane_is_woken_once_per_piece() {
        let (pool, [a, b]) = pool();
        assert!(a.rest() && b.rest());
        let _first = submit(&pool, "x");
        assert_eq!((a.rings(), b.rings()), (0, 1));
        let _second = submit(&pool, "y");
        assert_eq!((a.rings(), b.rings()), (1, 1));
        assert!(a.take().unwrap().1.contains("x") && !a.rest());
        assert!(b.take().unwrap().1.contains("y") && b.rest());
    }

    #[test]
    fn a_lane_that_took_a_piece_unprompted_is_not_woken_while_it_is_busy() {
        let (pool, [a, b]) = pool();
        assert!(a.rest() && b.rest());
        let _first = submit(&pool, "x");
        // b was woken.
        let _busy = a.take().unwrap();
        assert!(b.take().is_none() && b.rest());
        let (_second, _third) = (submit(&pool, "y"), submit(&pool, "z"));
        assert_eq!((a.rings(), b.rings()), (0, 2));
    }

    #[test]
    fn a_lost_lane_wakes_another_and_returns_its_unsent_piece() {
        let (pool, [a, b]) = pool();
        assert!(a.rest() && b.rest());
        let _first = submit(&pool, "x");
        b.pool_slot.leave(None);
        assert_eq!((a.rings(), b.rings()), (1, 1));
        let (taken, bytes) = a.take().unwrap();
        let _second = submit(&pool, "y");
        assert!(b.take().unwrap().1.contains("y") && b.rest());
        let _third = submit(&pool, "z");
        a.pool_slot.leave(Some((taken, bytes.into_bytes())));
        assert!(b.take().unwrap().1.contains("x"));
        assert!(b.take().unwrap().1.contains("z"));
    }

    #[test]
    fn an_abandoned_request_is_never_taken_and_makes_room() {
        let (pool, [a]) = pool();
        drop(submit(&pool, &"x".repeat(1400)));
        let mut request = Request::new("ECHO", Traits::default());
        request.arg("y".repeat(1400));
        let rejected = pool.submit(std::slice::from_ref(&request), None, Waker::noop());
        assert_eq!(rejected.unwrap_err().kind(), Kind::Overloaded);
        pool.expire(Instant::now(), None);
        assert_eq!(pool.pending(), 0);
        let _kept = pool.submit(&[request], None, Waker::noop()).unwrap();
        drop(submit(&pool, "z"));
        assert!(a.take().unwrap().1.contains("yyy"));
        assert!(a.take().is_none());
    }

    #[test]
    fn no_call_waits_after_the_last_lane_has_ended() {
        let (pool, [a, b]) = pool();
        let waits = submit(&pool, "x");
        a.pool_slot.end();
        assert!(waits.poll(Waker::noop()).is_pending());
        b.pool_slot.end();
        let Poll::Ready(Err(error)) = waits.poll(Waker::noop()) else { panic!("an error") };
        assert_eq!((error.kind(), error.maybe_applied()), (Kind::Closed, false));
        let mut request = Request::new("ECHO", Traits::default());
        request.arg("y");
        assert_eq!(pool.submit(&[request], None, Waker::noop()).unwrap_err().kind(), Kind::Closed);
    }
}
