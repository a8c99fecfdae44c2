//! A loom model of a lane: callers, the driver's side of the queue and a server, in every interleaving with up to two
//! preemptions. The model runs the real `cell.rs`, `pool.rs`, `pending_reply.rs` and `in_flight.rs`; this file
//! simulates the socket, the server and the runtime. There is no clock: a task that is not woken waits forever, and
//! loom reports it.
//!
//! Run with `RUSTFLAGS="--cfg brisk_loom" cargo test --release -p brisk --lib model`, or `cargo xtask nightly loom`.

use super::ReplyResult;
use super::cell::{Bounds, Shared, Submitted, WhenFull, closed};
use super::in_flight::{InFlight, NextStep, lost};
use super::io::Writer;
use super::pending_reply::PendingReply;
use super::pool::{Pool, PoolSlot};
use crate::command::Replay;
use crate::error::{Error, Kind, Phase, Result};
use crate::reply::Reply;
use crate::request::{Request, Traits};
use crate::sync::{Mutex, lock};
use loom::sync::Notify;
use loom::thread;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The length of a request whose only argument is one letter.
const LEN: usize = b"*1\r\n$1\r\nA\r\n".len();
const TIMEOUT: Duration = Duration::from_secs(1);
/// The letter of a request that the server rejects because it is a replica now.
const REJECTED: u8 = b'R';

/// The notification on which a thread of the model sleeps.
struct Bell(Notify);

impl Bell {
    fn new() -> Arc<Bell> {
        Arc::new(Bell(Notify::new()))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// A connection with a server, which replies to each request with its letter.
#[derive(Clone, Debug)]
pub(crate) struct Wire(Arc<Mutex<End>>);

#[derive(Debug)]
struct End {
    /// The number of bytes that each write accepts. 0 means that the socket cannot be written to now. Writes after the
    /// last entry accept all bytes.
    takes: Vec<usize>,
    received: Vec<u8>,
    replied: usize,
    /// The server replies to a request when this many of its bytes have arrived.
    replies_at: usize,
    /// The number of writes before the connection is cut.
    writes_left: usize,
    is_lost: bool,
    /// Woken when there is something to read, or when the connection can be written to.
    driver: Option<Waker>,
}

impl Wire {
    fn new(takes: &[usize]) -> Wire {
        Wire::replying(takes, LEN)
    }

    fn replying(takes: &[usize], replies_at: usize) -> Wire {
        let takes = takes.iter().rev().copied().collect();
        Wire(Arc::new(Mutex::new(End {
            takes,
            received: Vec::new(),
            replied: 0,
            replies_at,
            writes_left: usize::MAX,
            is_lost: false,
            driver: None,
        })))
    }

    /// A connection that is cut after this number of writes.
    fn cut_after(self, writes: usize) -> Wire {
        lock(&self.0).writes_left = writes;
        self
    }

    fn lose(&self) {
        let driver = {
            let mut end = lock(&self.0);
            end.is_lost = true;
            end.driver.take()
        };
        driver.into_iter().for_each(Waker::wake);
    }

    pub(super) fn write(&self, bytes: &[u8], waker: Option<&Waker>) -> io::Result<usize> {
        let (written, driver) = {
            let mut end = lock(&self.0);
            if end.is_lost {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if end.writes_left == 0 {
                end.is_lost = true;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            end.writes_left -= 1;
            let takes = end.takes.pop().unwrap_or(usize::MAX).min(bytes.len());
            if takes == 0 {
                // The connection can immediately be written to again, and a waiting driver is woken.
                waker.into_iter().for_each(Waker::wake_by_ref);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            end.received.extend_from_slice(&bytes[..takes]);
            (takes, end.driver.take())
        };
        driver.into_iter().for_each(Waker::wake);
        Ok(written)
    }

    /// The next reply.
    fn read(&self, waker: &Waker) -> Poll<Result<Reply>> {
        let mut end = lock(&self.0);
        if end.received.len() >= end.replied * LEN + end.replies_at {
            let letter = end.received.get(end.replied * LEN + LEN - 3).copied().unwrap_or(b'?');
            end.replied += 1;
            let reply = [b"$1\r\n", &[letter][..], b"\r\n"].concat();
            return Poll::Ready(Ok(Reply::small(&reply).expect("it is short")));
        }
        if end.is_lost {
            return Poll::Ready(Err(lost("it was cut")));
        }
        end.driver = Some(waker.clone());
        Poll::Pending
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.write(bytes, Some(cx.waker())) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            done => Poll::Ready(done),
        }
    }

    /// The letters of the complete requests in the order of arrival, and whether an incomplete request followed.
    fn letters(&self) -> (String, bool) {
        let end = lock(&self.0);
        let whole = end.received.chunks_exact(LEN);
        let is_cut = !whole.remainder().is_empty();
        let letters = whole.map(|bytes| {
            assert_eq!(bytes, encoded(bytes[LEN - 3]), "a request is one piece");
            char::from(bytes[LEN - 3])
        });
        (letters.collect(), is_cut)
    }
}

fn encoded(letter: u8) -> Vec<u8> {
    [b"*1\r\n$1\r\n", &[letter][..], b"\r\n"].concat()
}

fn encoded_reply(letters: &str) -> Vec<u8> {
    letters.bytes().flat_map(|letter| [b"$1\r\n", &[letter][..], b"\r\n"].concat()).collect()
}

fn request_with(letter: char) -> Request {
    Request::new(&letter.to_string(), Traits::default())
}

fn lane(bytes_max: usize) -> Arc<Shared> {
    let bounds = Bounds {
        bytes_max,
        when_full: WhenFull::Wait,
        timeout: Some(TIMEOUT),
        replay: Replay::Reads,
    };
    Arc::new(Shared::new(bounds))
}

fn wide() -> Arc<Shared> {
    lane(1 << 20)
}

/// The driver's side of one connection.
struct Link {
    flight: InFlight,
    /// The replies so far to a request that has more replies to come.
    seen: Vec<u8>,
}

impl Link {
    fn begin(lane: &Shared, wire: &Wire) -> Link {
        Link { flight: InFlight::begin(lane, &Writer::Model(wire.clone())), seen: Vec::new() }
    }

    /// Does all work that is possible now.
    fn turn(&mut self, lane: &Shared, wire: &Wire, cx: &mut Context<'_>) -> Result<()> {
        while let Poll::Ready(reply) = wire.read(cx.waker()) {
            let reply = reply?;
            self.seen.extend_from_slice(reply.as_bytes());
            let is_rejection = reply.as_bytes().contains(&REJECTED);
            if self.flight.count(lane, reply.as_bytes().len(), is_rejection)? {
                let reply = Reply::small(&self.seen).expect("it is short");
                self.seen.clear();
                self.flight.deliver(reply, false).into_iter().for_each(Waker::wake);
            }
        }
        loop {
            if self.flight.is_demoted_and_done(lane) {
                return Err(lost("the server is a replica now"));
            }
            let is_flushed = self.flight.write(lane, &Writer::Model(wire.clone()), cx)?;
            if self.flight.rest(lane, cx.waker(), is_flushed, true) == NextStep::Idle {
                return Ok(());
            }
        }
    }
}

/// The driver, like `Task::run`: uses one connection after the other until the lane is closed.
fn drive(lane: &Shared, first: Link, wires: &[Wire]) {
    let bell = Bell::new();
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    let mut first = Some(first);
    for wire in wires {
        let mut link = first.take().unwrap_or_else(|| Link::begin(lane, wire));
        let error = loop {
            match link.turn(lane, wire, &mut cx) {
                Err(error) => break error,
                Ok(()) if lane.lock().is_closed => break closed(),
                Ok(()) => bell.0.wait(),
            }
        };
        while lane.lock().stop_writing() {
            thread::yield_now();
        }
        link.flight.abandon(lane, &error);
        assert!(lane.lock().is_whole(), "bytes and entries belong together");
        if lane.lock().is_closed {
            break;
        }
    }
    lane.finish();
    let cell = lane.lock();
    assert!(cell.entries.is_empty() && cell.bytes == 0);
}

/// Starts an idle driver, as in a lane without requests.
fn resting(lane: &Arc<Shared>, wires: &[Wire]) -> thread::JoinHandle<()> {
    let (lane, wires) = (Arc::clone(lane), wires.to_vec());
    let mut link = Link::begin(&lane, &wires[0]);
    // The driver checks the lane when its thread starts, so it need not be woken before that.
    assert_eq!(link.flight.rest(&lane, Waker::noop(), true, true), NextStep::Idle);
    thread::spawn(move || drive(&lane, link, &wires))
}

/// Submits a request, waiting for room if necessary. Returns the pending reply.
fn submit(
    lane: &Arc<Shared>,
    letters: &str,
    bell: &Arc<Bell>,
) -> Result<crate::sync::Arc<PendingReply>> {
    let waker = Waker::from(Arc::clone(bell));
    let requests: Vec<_> = letters.chars().map(request_with).collect();
    loop {
        match lane.submit(&requests, None, &waker)? {
            Submitted::Waits(pending_reply) => return Ok(pending_reply),
            Submitted::Full => bell.0.wait(),
            Submitted::Ready(_) => unreachable!("a lane sends"),
        }
    }
}

fn wait_for_reply(pending_reply: crate::sync::Arc<PendingReply>, bell: &Arc<Bell>) -> ReplyResult {
    let waker = Waker::from(Arc::clone(bell));
    loop {
        if let Poll::Ready(result) = pending_reply.poll(&waker) {
            PendingReply::give_back(pending_reply);
            return result;
        }
        bell.0.wait();
    }
}

/// Submits a request and checks the reply: the caller's own letters, in order.
fn request(lane: &Arc<Shared>, letters: &str) -> Result<()> {
    let bell = Bell::new();
    let reply = wait_for_reply(submit(lane, letters, &bell)?, &bell)?;
    assert_eq!(reply.as_bytes(), encoded_reply(letters), "no caller gets another caller's reply");
    Ok(())
}

fn request_in_thread(lane: &Arc<Shared>, letters: &'static str) -> thread::JoinHandle<Result<()>> {
    let lane = Arc::clone(lane);
    thread::spawn(move || request(&lane, letters))
}

/// Reports whether the error is that of a lost connection: the command may have been executed.
fn is_lost(error: &Error) -> bool {
    error.kind() == Kind::Disconnected && error.maybe_applied()
}

fn check(run: impl Fn() + Sync + Send + 'static) {
    check_to(2, run);
}

/// Explores all interleavings with up to this number of preemptions.
fn check_to(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    model.check(run);
}

/// How many times the servers have received a letter.
fn times(wires: &[Wire], letter: char) -> usize {
    wires.iter().map(|wire| wire.letters().0.matches(letter).count()).sum()
}

/// Checks that the server has received these letters in order, and B once anywhere between them.
fn check_order(wire: &Wire, expected: &str) {
    let (mut letters, is_cut) = wire.letters();
    assert!(!is_cut);
    assert_eq!(letters.matches('B').count(), 1);
    letters.retain(|letter| letter != 'B');
    assert_eq!(letters, expected);
}

#[test]
fn two_concurrent_callers_get_their_own_replies_even_after_partial_writes() {
    // The first write accepts all bytes, a part, or none.
    for takes in [&[][..], &[4], &[0], &[4, 0, 9]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            let other = request_in_thread(&lane, "B");
            request(&lane, "A").expect("nothing is lost");
            other.join().expect("the thread does not panic").expect("nothing is lost");
            lane.close();
            driver.join().expect("the thread does not panic");
            check_order(&wires[0], "A");
        });
    }
}

/// A caller also writes its request itself while few other requests are in flight.
#[test]
fn a_caller_that_writes_next_to_requests_in_flight_gets_its_own_reply() {
    for takes in [&[][..], &[LEN, 4], &[4, 0]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            let bell = Bell::new();
            let first = submit(&lane, "A", &bell).expect("the lane is open");
            let other = request_in_thread(&lane, "B");
            request(&lane, "C").expect("nothing is lost");
            let reply = wait_for_reply(first, &bell).expect("nothing is lost");
            assert_eq!(reply.as_bytes(), encoded_reply("A"));
            other.join().expect("the thread does not panic").expect("nothing is lost");
            lane.close();
            driver.join().expect("the thread does not panic");
            check_order(&wires[0], "AC");
        });
    }
}

/// The reply to a request that a caller is writing is awaited although the server is a replica now.
#[test]
fn a_request_written_during_a_demotion_gets_its_reply() {
    check_to(3, || {
        let (lane, wires) = (wide(), [Wire::new(&[]), Wire::new(&[])]);
        let driver = resting(&lane, &wires);
        let bell = Bell::new();
        let rejected = submit(&lane, "R", &bell).expect("the lane is open");
        let other = request_in_thread(&lane, "B");
        let error = wait_for_reply(rejected, &bell).expect_err("the server is a replica");
        assert!(!error.maybe_applied());
        other.join().expect("the thread does not panic").expect("nothing is lost");
        lane.close();
        driver.join().expect("the thread does not panic");
        assert_eq!(times(&wires, 'B'), 1);
    });
}

/// Checks what caller and server must agree on after the first connection was cut.
fn agree(result: Result<()>, letter: char, wires: &[Wire]) {
    match result {
        Ok(()) => assert_eq!(times(wires, letter), 1),
        Err(error) => {
            assert!(is_lost(&error), "{error}");
            assert!(times(wires, letter) <= 1);
            assert!(!wires[1].letters().0.contains(letter), "it was not sent again");
        }
    }
    assert!(!wires[1].letters().1);
}

#[test]
fn a_connection_lost_during_a_callers_own_write_completes_each_call_once() {
    for takes in [&[][..], &[4], &[0]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes), Wire::new(&[])]);
            let driver = resting(&lane, &wires);
            let caller = request_in_thread(&lane, "A");
            wires[0].lose();
            let result = caller.join().expect("the thread does not panic");
            lane.close();
            driver.join().expect("the thread does not panic");
            agree(result, 'A', &wires);
        });
    }
}

#[test]
fn a_connection_lost_while_callers_queue_completes_each_call_once() {
    for (takes, writes) in [(&[4][..], 1), (&[], 1), (&[0, 4], 2), (&[], 0)] {
        check(move || {
            let first = Wire::new(takes).cut_after(writes);
            let (lane, wires) = (wide(), [first, Wire::new(&[])]);
            let driver = resting(&lane, &wires);
            let other = request_in_thread(&lane, "B");
            let mine = request(&lane, "A");
            let theirs = other.join().expect("the thread does not panic");
            lane.close();
            driver.join().expect("the thread does not panic");
            agree(mine, 'A', &wires);
            agree(theirs, 'B', &wires);
        });
    }
}

#[test]
fn the_first_replies_to_a_batch_may_arrive_before_the_whole_batch_was_sent() {
    for takes in [&[LEN + 3][..], &[LEN], &[LEN, 0]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            let other = request_in_thread(&lane, "C");
            request(&lane, "AB").expect("nothing is wrong with that");
            other.join().expect("the thread does not panic").expect("nothing is wrong with that");
            lane.close();
            driver.join().expect("the thread does not panic");
            let (letters, is_cut) = wires[0].letters();
            assert!(!is_cut && matches!(letters.as_str(), "ABC" | "CAB"), "{letters}");
        });
    }
}

#[test]
fn a_reply_to_a_partially_sent_request_shifts_no_other_reply() {
    for takes in [&[4][..], &[4, 0]] {
        check(|| {
            // The server replies `?` once it has received four bytes but no letter.
            let early = Wire::replying(takes, 4);
            let (lane, wires) = (wide(), [early, Wire::new(&[])]);
            let driver = resting(&lane, &wires);
            let request = |lane: &Arc<Shared>, letter: &str| {
                let bell = Bell::new();
                match wait_for_reply(submit(lane, letter, &bell).expect("it is open"), &bell) {
                    Ok(reply) => {
                        let own = encoded_reply(letter);
                        assert!(reply.as_bytes() == own || reply.as_bytes() == encoded_reply("?"));
                    }
                    Err(error) => assert!(error.maybe_applied(), "{error}"),
                }
            };
            let other = {
                let lane = Arc::clone(&lane);
                thread::spawn(move || request(&lane, "B"))
            };
            request(&lane, "A");
            other.join().expect("the thread does not panic");
            lane.close();
            driver.join().expect("the thread does not panic");
        });
    }
}

#[test]
fn an_abandoned_slot_gives_no_other_call_a_wrong_reply() {
    for takes in [&[][..], &[4]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            // The caller may give up at any moment, including just as its reply arrives.
            let bell = Bell::new();
            PendingReply::give_back(submit(&lane, "A", &bell).expect("it is open"));
            request(&lane, "B").expect("nothing is lost");
            request(&lane, "C").expect("nothing is lost");
            lane.close();
            driver.join().expect("the thread does not panic");
            assert_eq!(wires[0].letters(), ("ABC".to_owned(), false));
        });
    }
}

#[test]
fn a_lane_that_is_closed_at_any_moment_completes_all_calls() {
    for takes in [&[][..], &[4], &[0, 0]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            let caller = request_in_thread(&lane, "A");
            lane.close();
            if let Err(error) = caller.join().expect("the thread does not panic") {
                assert_eq!(error.kind(), Kind::Closed);
                assert!(error.maybe_applied() || times(&wires, 'A') == 0);
            }
            driver.join().expect("the thread does not panic");
        });
    }
}

#[test]
fn a_request_that_was_not_sent_before_its_timeout_is_never_sent() {
    for takes in [&[0][..], &[4, 0], &[]] {
        check(|| {
            let (lane, wires) = (wide(), [Wire::new(takes)]);
            let driver = resting(&lane, &wires);
            let clock = {
                let lane = Arc::clone(&lane);
                thread::spawn(move || {
                    let now = Instant::now();
                    lane.expire(now);
                    lane.expire(now + 2 * TIMEOUT);
                })
            };
            let bell = Bell::new();
            let submits = |letter| submit(&lane, letter, &bell).expect("it is open");
            let (mine, theirs) = (submits("A"), submits("B"));
            let (mine, theirs) = (wait_for_reply(mine, &bell), wait_for_reply(theirs, &bell));
            clock.join().expect("the thread does not panic");
            lane.close();
            driver.join().expect("the thread does not panic");
            let (_, is_cut) = wires[0].letters();
            for (result, letter) in [(mine, 'A'), (theirs, 'B')] {
                let times = times(&wires, letter);
                match result.map_err(|error| error.kind()) {
                    Ok(_) => assert_eq!(times, 1),
                    Err(Kind::Timeout(Phase::Queued)) => assert_eq!(times, 0),
                    // Closing may have cut the connection.
                    Err(Kind::Timeout(Phase::Sent)) => assert!(times == 1 || is_cut),
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
    }
}

#[test]
fn a_call_that_waits_for_room_gets_it() {
    check(|| {
        // Room for one request at a time.
        let (lane, wires) = (lane(1), [Wire::new(&[])]);
        let driver = resting(&lane, &wires);
        let other = request_in_thread(&lane, "B");
        request(&lane, "A").expect("nothing is lost");
        other.join().expect("the thread does not panic").expect("nothing is lost");
        lane.close();
        driver.join().expect("the thread does not panic");
        assert_eq!((times(&wires, 'A'), times(&wires, 'B')), (1, 1));
    });
}

/// Two lanes that take from one queue.
fn seats() -> (Arc<Pool>, [Arc<Shared>; 2]) {
    let bounds = Bounds {
        bytes_max: 1 << 20,
        when_full: WhenFull::Wait,
        timeout: Some(TIMEOUT),
        replay: Replay::Reads,
    };
    let pool = Arc::new(Pool::new(bounds, 2));
    let lanes = [0, 1].map(|at| Arc::new(Shared::in_pool(bounds, PoolSlot::new(&pool, at))));
    (pool, lanes)
}

/// Submits a request to a pool and checks the reply.
fn request_from_pool(pool: &Pool, letters: &str) -> Result<()> {
    let bell = Bell::new();
    let requests: Vec<_> = letters.chars().map(request_with).collect();
    let pending_reply = match pool.submit(&requests, None, &Waker::from(Arc::clone(&bell)))? {
        Submitted::Waits(pending_reply) => pending_reply,
        other => panic!("there is room: {other:?}"),
    };
    let reply = wait_for_reply(pending_reply, &bell)?;
    assert_eq!(reply.as_bytes(), encoded_reply(letters), "no caller gets another caller's reply");
    Ok(())
}

fn end_pool(pool: &Pool, lanes: &[Arc<Shared>; 2], drivers: [thread::JoinHandle<()>; 2]) {
    pool.close();
    lanes.iter().for_each(|lane| lane.close());
    drivers.into_iter().for_each(|driver| driver.join().expect("the thread does not panic"));
}

#[test]
fn a_piece_in_a_pool_is_taken_by_a_lane_that_is_or_becomes_idle() {
    // Exploring two preemptions takes minutes.
    check_to(1, || {
        let (pool, lanes) = seats();
        let wires = [Wire::new(&[]), Wire::new(&[4])];
        let drivers = [0, 1].map(|at| resting(&lanes[at], &wires[at..=at]));
        request_from_pool(&pool, "A").expect("nothing is lost");
        request_from_pool(&pool, "BC").expect("nothing is lost");
        end_pool(&pool, &lanes, drivers);
        for letter in ['A', 'B', 'C'] {
            assert_eq!(times(&wires, letter), 1);
        }
    });
}

#[test]
fn a_piece_in_a_pool_is_still_sent_after_its_first_lane_is_lost() {
    check(|| {
        let (pool, lanes) = seats();
        // The first lane's connection accepts nothing and is cut, now or when it is written to.
        let first = [Wire::new(&[0]).cut_after(1), Wire::new(&[])];
        let second = [Wire::new(&[])];
        let drivers = [resting(&lanes[0], &first), resting(&lanes[1], &second)];
        let result = request_from_pool(&pool, "A");
        end_pool(&pool, &lanes, drivers);
        result.expect("the first lane sent nothing");
        assert_eq!(times(&first, 'A') + times(&second, 'A'), 1);
    });
}
