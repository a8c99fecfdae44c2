//! An incomplete request takes only the memory of its received part. All of them together are bounded by a limit that
//! applies by default. (Like P4, for input instead of output.)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::wait::{DEADLINE, holds_within};
use brisk_testkit::{Conn, Launch, Server, assert_reply, each_backend, wait_until};
use brisk_tests::with_workers;

const CLIENTS: usize = 1000;
/// The memory of a session in addition to its input: its record, its connection, and the allocator's overhead.
const CLIENT_BYTES: usize = 4 * 1024;
/// The memory that two workers need for receiving. With io_uring, each worker has up to 16 MiB of buffers, which all of
/// its connections share.
const WORKERS_BYTES: usize = 2 * (16 << 20);

/// The beginning of a SET with the largest possible value, with `bytes` bytes of the value.
fn beginning(bytes: usize) -> Vec<u8> {
    let mut request = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$536870912\r\n".to_vec();
    request.resize(request.len() + bytes, b'x');
    request
}

/// Connects a client that sends this number of bytes of a request's value.
fn unfinished(server: &Server, bytes: usize) -> Conn {
    let mut conn = server.connect();
    conn.send_raw(&beginning(bytes));
    conn
}

/// The total number of bytes of unexecuted requests that the server holds.
fn held(control: &mut Conn) -> u64 {
    let list = control.cmd("CLIENT LIST").text();
    let fields = list.split([' ', '\n']);
    let bytes = fields.filter_map(|word| {
        word.strip_prefix("qbuf=").or_else(|| word.strip_prefix("argv-mem="))?.parse::<u64>().ok()
    });
    bytes.sum()
}

fn number(control: &mut Conn, field: &str) -> u64 {
    control.info(field).parse().unwrap()
}

#[test]
fn memory_follows_the_bytes_that_arrived() {
    for bytes in [4, 10_000, 40_000] {
        each_backend(
            || with_workers(2),
            |server| {
                let mut control = server.connect();
                // Connect and disconnect clients first, so that one-time costs are not measured.
                drop((0..CLIENTS).map(|_| server.connect()).collect::<Vec<Conn>>());
                wait_until("they are gone", || control.info("connected_clients") == "1");
                let before = server.rss();
                let mut conns: Vec<Conn> = (0..CLIENTS).map(|_| unfinished(server, 4)).collect();
                // Send pieces, as they arrive over a network.
                for _ in 0..bytes / 10_000 {
                    conns.iter_mut().for_each(|conn| conn.send_raw(&[b'x'; 10_000]));
                }
                let sent = (CLIENTS * (beginning(4).len() + bytes / 10_000 * 10_000)) as u64;
                wait_until("all has arrived", || held(&mut control) >= sent);
                let bound =
                    sent + sent / 4 + (CLIENTS * (4096 + CLIENT_BYTES) + WORKERS_BYTES) as u64;
                let mut grown = 0;
                // Buffers that became too small are freed, but the allocator retains their pages for a while.
                let follows = holds_within(DEADLINE, || {
                    assert_reply!(control, "MEMORY PURGE", "OK");
                    grown = server.rss().saturating_sub(before);
                    grown <= bound
                });
                assert!(follows, "{sent} bytes were sent, and {grown} are taken");
                if !subject_is_redis() {
                    let reported = number(&mut control, "mem_clients_input");
                    let most = sent + sent / 4 + (CLIENTS * 4096) as u64;
                    assert!(
                        (sent..=most).contains(&reported),
                        "{sent} bytes were sent, INFO: {reported}"
                    );
                }
            },
        );
    }
}

#[test]
fn all_of_them_together_stay_below_the_limit_and_the_largest_go_first() {
    if subject_is_redis() {
        return; // limits only each single request
    }
    each_backend(
        || with_workers(2).set("input-total-limit", "8mb"),
        |server| {
            let mut control = server.connect();
            let small: Vec<Conn> = (0..50).map(|_| unfinished(server, 10_000)).collect();
            // CLIENT NO-EVICT does not protect against this limit.
            let mut large: Vec<Conn> = (0..10)
                .map(|_| {
                    let mut conn = server.connect();
                    assert_reply!(conn, "CLIENT NO-EVICT on", "OK");
                    conn
                })
                .collect();
            let value = vec![b'x'; 1_500_000];
            for conn in &mut large {
                conn.send_raw(&beginning(0));
                // This client may be the one that is closed.
                let _ = conn.try_send_raw(&value);
            }
            // Four or five of the ten fit in addition to the small ones.
            wait_until("the rest is gone", || {
                let closed = number(&mut control, "client_input_total_limit_disconnections");
                closed >= 5 && number(&mut control, "connected_clients") == 61 - closed
            });
            let closed = number(&mut control, "client_input_total_limit_disconnections");
            assert!(closed <= 6, "{closed} were closed");
            assert!(number(&mut control, "mem_clients_input") <= 8 << 20);
            assert!(server.log().contains("input-total-limit (8388608 bytes)"), "{}", server.log());
            // No other client was closed, and ordinary requests are served.
            assert_reply!(control, "SET k v", "OK");
            let list = control.cmd("CLIENT LIST").text();
            for mut conn in small {
                let addr = format!(" addr={} ", conn.local_addr());
                assert!(list.contains(&addr), "{addr} in {list}");
                conn.send_raw(b"x");
            }
        },
    );
}

#[test]
fn queued_commands_count_toward_the_input_limit() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("input-total-limit", "4mb").start();
    let mut control = server.connect();
    let mut queueing = server.connect();
    assert_reply!(queueing, "MULTI", "OK");
    let line = format!("SET k {}", "v".repeat(100_000));
    let closed = (0..60).any(|_| queueing.try_cmd(&line).is_err());
    assert!(closed);
    wait_until("it is gone", || control.info("connected_clients") == "1");
    assert_eq!(control.info("client_input_total_limit_disconnections"), "1");
    assert_eq!(control.info("mem_clients_input"), "0");
}

#[test]
fn a_value_that_is_sent_slowly_arrives_whole() {
    each_backend(Launch::subject, |server| {
        const BYTES: usize = 5_000_000;
        let mut control = server.connect();
        let mut conn = server.connect();
        conn.send_raw(format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${BYTES}\r\n").as_bytes());
        let value: Vec<u8> = (0..BYTES).map(|at| b'a' + (at / 1000 % 26) as u8).collect();
        for piece in value.chunks(70_001) {
            conn.send_raw(piece);
            control.cmd("PING");
        }
        conn.send_raw(b"\r\n*1\r\n$4\r\nPI");
        conn.send_raw(b"NG\r\n");
        assert_eq!(conn.reply().text(), "OK");
        assert_eq!(conn.reply().text(), "PONG");
        assert!(control.cmd("GET a").text().into_bytes() == value);
        // The memory that the value took is freed.
        if !subject_is_redis() {
            wait_until("its memory is given back", || {
                number(&mut control, "mem_clients_input") < 100_000
            });
        }
    });
}
