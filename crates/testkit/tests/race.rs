//! Tests of the race checker: with handwritten histories, both valid and invalid, and with deliberately faulty servers.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::race::linear::{Event, EventOf, Verdict, check};
use brisk_testkit::race::model::{End, Key, Op, State};
use brisk_testkit::race::{self, Found, Options};
use brisk_testkit::reply::{Reply, frame_len};
use brisk_testkit::server::Launch;
use brisk_testkit::words::encode;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const LEFT: End = End::Left;
const RIGHT: End = End::Right;

fn ok() -> Reply {
    Reply::Status(b"OK".to_vec())
}

fn text(value: i64) -> Reply {
    Reply::Bulk(value.to_string().into_bytes())
}

fn number(value: i64) -> Reply {
    Reply::Integer(value)
}

fn list(items: &[Reply]) -> Reply {
    Reply::Array(items.to_vec())
}

fn popped(name: &str, value: i64) -> Reply {
    list(&[Reply::Bulk(name.as_bytes().to_vec()), text(value)])
}

/// An operation of a client, from `times.0` to `times.1`.
fn by(client: usize, times: (u64, u64), op: Op, reply: Reply) -> EventOf<State> {
    Event { client, invoked: times.0, returned: times.1, op, reply }
}

fn verdict(history: &[EventOf<State>]) -> Verdict<State> {
    check(&State::new(4), history, 100_000)
}

#[track_caller]
fn accept(history: &[EventOf<State>]) {
    assert!(matches!(verdict(history), Verdict::Linearizable(_)), "{:?}", verdict(history));
}

#[track_caller]
fn refuse(history: &[EventOf<State>]) {
    assert!(matches!(verdict(history), Verdict::Violation(_)), "{:?}", verdict(history));
}

#[test]
fn an_update_that_is_lost_is_noticed() {
    let adds = |first, second, sum| {
        [
            by(0, (0, 10), Op::Add(0, 1), number(first)),
            by(1, (0, 10), Op::Add(0, 1), number(second)),
            by(2, (20, 21), Op::Get(0), text(sum)),
        ]
    };
    accept(&adds(1, 2, 2));
    accept(&adds(2, 1, 2));
    refuse(&adds(1, 1, 1));
    refuse(&adds(1, 2, 1));
}

#[test]
fn a_stale_read_is_noticed() {
    let read =
        |times, seen: Reply| [by(0, (0, 10), Op::Set(0, 5), ok()), by(1, times, Op::Get(0), seen)];
    accept(&read((5, 15), Reply::Null));
    accept(&read((5, 15), text(5)));
    accept(&read((11, 15), text(5)));
    refuse(&read((11, 15), Reply::Null));
}

#[test]
fn a_torn_transaction_is_noticed() {
    let both = vec![Op::Set(0, 1), Op::Set(1, 1)];
    for op in [Op::Exec(both.clone()), Op::Script(both)] {
        let seen = |first: Reply, second: Reply| {
            [
                by(0, (0, 10), op.clone(), list(&[ok(), ok()])),
                by(1, (0, 10), Op::GetAll(vec![0, 1]), list(&[first, second])),
            ]
        };
        accept(&seen(Reply::Null, Reply::Null));
        accept(&seen(text(1), text(1)));
        refuse(&seen(text(1), Reply::Null));
        refuse(&seen(Reply::Null, text(1)));
    }
}

#[test]
fn a_read_between_two_commands_of_a_transaction_is_noticed() {
    let adds = vec![Op::Add(0, 1), Op::Add(0, 1)];
    let seen = |value| {
        [
            by(0, (0, 10), Op::Exec(adds.clone()), list(&[number(1), number(2)])),
            by(1, (0, 10), Op::Get(0), value),
        ]
    };
    accept(&seen(Reply::Null));
    accept(&seen(text(2)));
    refuse(&seen(text(1)));
}

#[test]
fn a_duplicate_item_is_noticed() {
    let pops = |first, second| {
        [
            by(0, (0, 1), Op::Push(0, RIGHT, vec![7, 8]), number(2)),
            by(1, (5, 10), Op::Pop(0, LEFT), text(first)),
            by(2, (5, 10), Op::WaitPop(vec![0], LEFT), popped("l0", second)),
        ]
    };
    accept(&pops(7, 8));
    accept(&pops(8, 7));
    refuse(&pops(7, 7));
    refuse(&pops(8, 8));
}

#[test]
fn an_item_that_is_lost_is_noticed() {
    let left = |rest: &[Reply]| {
        [
            by(0, (0, 1), Op::Push(0, RIGHT, vec![7, 8]), number(2)),
            by(1, (5, 10), Op::WaitMove(0, 1, LEFT, RIGHT), text(7)),
            by(2, (20, 21), Op::Range(0), list(&[text(8)])),
            by(2, (22, 23), Op::Range(1), list(rest)),
        ]
    };
    accept(&left(&[text(7)]));
    refuse(&left(&[]));
}

#[test]
fn a_pop_out_of_order_is_noticed() {
    let pops = |first, second| {
        [
            by(0, (0, 1), Op::Push(0, RIGHT, vec![7]), number(1)),
            by(0, (2, 3), Op::Push(0, RIGHT, vec![8]), number(2)),
            by(1, (5, 6), Op::Pop(0, LEFT), text(first)),
            by(2, (7, 8), Op::Pop(0, LEFT), text(second)),
        ]
    };
    accept(&pops(7, 8));
    refuse(&pops(8, 7));
}

#[test]
fn a_wait_gets_items_that_arrive_during_it() {
    let waits = |times, reply| {
        [
            by(0, (10, 20), Op::Push(1, RIGHT, vec![7]), number(1)),
            by(1, times, Op::WaitPop(vec![0, 1], LEFT), reply),
        ]
    };
    accept(&waits((0, 30), popped("l1", 7)));
    accept(&waits((0, 30), Reply::Null));
    refuse(&waits((0, 9), popped("l1", 7)));
    refuse(&waits((25, 30), Reply::Null));
    refuse(&waits((0, 30), popped("l0", 7)));
}

#[test]
fn a_watch_that_missed_a_change_is_noticed() {
    let watched = |changed, reply: Reply| {
        [
            by(0, (0, 1), Op::Watch(vec![Key::Text(0)]), ok()),
            by(0, (2, 3), Op::Get(0), Reply::Null),
            by(1, changed, Op::Set(0, 5), ok()),
            by(0, (30, 40), Op::Exec(vec![Op::Set(0, 1)]), reply),
        ]
    };
    let ran = || list(&[ok()]);
    refuse(&watched((10, 20), ran()));
    accept(&watched((10, 20), Reply::Null));
    // Before the watch, or after the transaction: no client can distinguish them.
    accept(&watched((35, 50), ran()));
    accept(&watched((35, 50), Reply::Null));
    refuse(&watched((50, 60), Reply::Null));
}

#[test]
fn operations_without_effect_break_no_watch() {
    let watched = |op: Op, done: Reply, reply: Reply| {
        [
            by(0, (0, 1), Op::Watch(vec![Key::Text(0), Key::List(0)]), ok()),
            by(1, (2, 3), op, done),
            by(0, (4, 5), Op::Exec(vec![Op::Get(1)]), reply),
        ]
    };
    let ran = || list(&[Reply::Null]);
    accept(&watched(Op::Pop(0, LEFT), Reply::Null, ran()));
    refuse(&watched(Op::Pop(0, LEFT), Reply::Null, Reply::Null));
    accept(&watched(Op::Take(0), Reply::Null, ran()));
    accept(&watched(Op::CompareAndSet(0, 3, 4), number(0), ran()));
    refuse(&watched(Op::Push(0, LEFT, vec![1]), number(1), ran()));
}

#[test]
fn a_move_that_leaves_a_list_equal_still_breaks_a_watch() {
    let moved = |times| {
        [
            by(0, (0, 1), Op::Push(0, RIGHT, vec![7]), number(1)),
            by(1, (2, 10), Op::Watch(vec![Key::List(0)]), ok()),
            by(2, times, Op::Move(0, 0, LEFT, LEFT), text(7)),
            by(1, (11, 20), Op::Exec(vec![Op::Get(0)]), Reply::Null),
        ]
    };
    accept(&moved((2, 20)));
    accept(&moved((5, 15)));
    refuse(&moved((21, 22)));
}

#[test]
fn a_compare_and_set_that_two_win_is_noticed() {
    let both = |first, second| {
        [
            by(0, (0, 1), Op::Set(0, 1), ok()),
            by(1, (5, 10), Op::CompareAndSet(0, 1, 2), number(first)),
            by(2, (5, 10), Op::CompareAndSet(0, 1, 3), number(second)),
        ]
    };
    accept(&both(1, 0));
    accept(&both(0, 1));
    refuse(&both(1, 1));
    refuse(&both(0, 0));
}

/// The fault of a faulty server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Runs the commands of a transaction as they arrive.
    Torn,
    /// Replies OK to WATCH, but does nothing.
    BlindWatch,
    /// Repeats earlier replies to some reads.
    StaleRead,
    /// Occasionally puts a popped item back.
    Twice,
}

fn race_against(address: &str, operations: u64) -> Option<Found> {
    let options = Options { operations, groups: 2, ..Options::default() };
    race::run(address, &options).unwrap().1
}

#[test]
fn a_real_server_passes() {
    let server = Launch::redis().start();
    let options = Options { operations: 10_000, ..Options::default() };
    let (summary, found) = race::run(&server.address(), &options).unwrap();
    assert!(found.is_none(), "{}", found.unwrap());
    assert!(summary.overlapping > 0 && summary.aborted > 0 && summary.waits > 0, "{summary}");
}

#[test]
fn every_faulty_server_is_detected() {
    for fault in [Fault::Torn, Fault::BlindWatch, Fault::StaleRead, Fault::Twice] {
        let upstream = Launch::redis().start();
        let address = faulty(upstream.address(), fault);
        let found = race_against(&address, 200_000);
        let found = found.unwrap_or_else(|| panic!("{fault:?} was not noticed"));
        assert!(found.placed.is_some(), "{fault:?}: {found}");
        assert!(found.to_string().contains("not linearizable"));
    }
}

/// A server that forwards everything to `upstream`, except for one fault.
fn faulty(upstream: String, fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&upstream).unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let relay = Relay { client, server, fault, calls: 0, read: Vec::new(), queued: None };
            std::thread::spawn(move || relay.run());
        }
    });
    address
}

/// One connection of a faulty server. It ends when either side closes.
struct Relay {
    client: TcpStream,
    server: TcpStream,
    fault: Fault,
    calls: usize,
    /// The last replies to reads of texts, by request.
    read: Vec<(Vec<u8>, Vec<u8>)>,
    /// Replies to the commands of a torn transaction.
    queued: Option<Vec<Vec<u8>>>,
}

impl Relay {
    fn run(mut self) -> Option<()> {
        let mut input = Vec::new();
        loop {
            let request = frame(&mut self.client, &mut input)?;
            let name = request.split(|byte| *byte == b'\n').nth(2).unwrap_or_default();
            let name = String::from_utf8_lossy(name).trim().to_owned();
            self.calls += 1;
            let reply = match self.fault {
                Fault::Torn => self.torn(&name, &request)?,
                Fault::BlindWatch if name == "WATCH" => b"+OK\r\n".to_vec(),
                Fault::StaleRead if name == "GET" => self.stale(request)?,
                Fault::Twice if name == "LPOP" && self.calls.is_multiple_of(16) => {
                    let reply = self.forward(&request)?;
                    self.put_back(&request, &reply)?;
                    reply
                }
                _ => self.forward(&request)?,
            };
            self.client.write_all(&reply).ok()?;
        }
    }

    fn forward(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        self.server.write_all(request).ok()?;
        frame(&mut self.server, &mut Vec::new())
    }

    fn torn(&mut self, name: &str, request: &[u8]) -> Option<Vec<u8>> {
        match (name, self.queued.take()) {
            ("MULTI", _) => {
                self.queued = Some(Vec::new());
                Some(b"+OK\r\n".to_vec())
            }
            ("EXEC", Some(replies)) => {
                let head = format!("*{}\r\n", replies.len()).into_bytes();
                Some([head, replies.concat()].concat())
            }
            ("DISCARD", Some(_)) => Some(b"+OK\r\n".to_vec()),
            (_, Some(mut replies)) => {
                // A command that would block gets the reply that it gets inside a transaction.
                let waits = name.starts_with('B');
                replies.push(if waits { b"*-1\r\n".to_vec() } else { self.forward(request)? });
                self.queued = Some(replies);
                Some(b"+QUEUED\r\n".to_vec())
            }
            (_, None) => self.forward(request),
        }
    }

    fn stale(&mut self, request: Vec<u8>) -> Option<Vec<u8>> {
        let fresh = self.forward(&request)?;
        match self.read.iter_mut().find(|(earlier, _)| *earlier == request) {
            Some((_, before)) => Some(std::mem::replace(before, fresh)),
            None => {
                self.read.push((request, fresh.clone()));
                Some(fresh)
            }
        }
    }

    fn put_back(&mut self, request: &[u8], reply: &[u8]) -> Option<()> {
        let word = |frame: &[u8], line: usize| {
            let line = frame.split(|byte| *byte == b'\n').nth(line).unwrap_or_default();
            line.trim_ascii_end().to_vec()
        };
        if reply.starts_with(b"$") && !reply.starts_with(b"$-1") {
            let (key, item) = (word(request, 4), word(reply, 1));
            self.forward(&encode(&[b"LPUSH".to_vec(), key, item]))?;
        }
        Some(())
    }
}

/// Reads the next request or reply. Returns `None` at the end of the connection.
fn frame(from: &mut TcpStream, input: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(len) = frame_len(input).ok()? {
            return Some(input.drain(..len).collect());
        }
        match from.read(&mut chunk) {
            Ok(n @ 1..) => input.extend_from_slice(&chunk[..n]),
            _ => return None,
        }
    }
}
