//! A client that asks much and reads late costs a bounded amount, and still gets everything. (P4)
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Launch, assert_reply, each_backend, wait_until, words};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Writes to `stream` until the peer takes no more for a while; returns the bytes written.
fn write_until_refused(stream: &mut TcpStream, request: &[u8], times: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let bytes = request.repeat(times);
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(n) => written += n,
            Err(_) => break,
        }
    }
    written
}

#[test]
fn a_client_that_never_reads_costs_little_and_hinders_nobody() {
    each_backend(Launch::subject, |server| {
        let mut other = server.connect();
        let value = "v".repeat(1024);
        assert_reply!(other, &format!("SET k {value}"), "OK");
        let before = server.rss();

        let mut deaf = TcpStream::connect(server.address()).unwrap();
        let request = words::encode(&["GET", "k"]);
        write_until_refused(&mut deaf, &request, 200_000);

        assert_reply!(other, "GET k", format!("\"{value}\""));
        assert_reply!(other, "SET other 1", "OK");
        if !subject_is_redis() {
            // 200 MB of replies are owed; what may be held is one output limit, one input buffer,
            // and what the allocator keeps from serving `other`.
            let grown = server.rss().saturating_sub(before);
            assert!(grown < 8 * MIB, "grew by {grown} bytes");
        }
    });
}

#[test]
fn a_client_that_reads_late_gets_every_reply_in_order() {
    const ASKED: usize = 60_000;
    each_backend(Launch::subject, |server| {
        let late = TcpStream::connect(server.address()).unwrap();
        let mut sender = late.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let padding = "p".repeat(500);
            for i in 0..ASKED {
                sender.write_all(&words::encode(&["ECHO", &format!("{i}{padding}")])).unwrap();
            }
        });
        // Reading begins when the server has taken all it wants to take: its counters stand still.
        let mut control = server.connect();
        let mut last = 0;
        wait_until("the server takes no more", || {
            let now: u64 = control.info("total_net_input_bytes").parse().unwrap();
            // The INFO requests themselves are counted, some dozen bytes each.
            let still = now > MIB && now - last < 1_000;
            last = now;
            still || sending.is_finished()
        });
        let mut input = std::io::BufReader::with_capacity(1 << 16, late);
        let padding = "p".repeat(500);
        for i in 0..ASKED {
            let text = format!("{i}{padding}");
            let wanted = format!("${}\r\n{text}\r\n", text.len());
            let mut got = vec![0; wanted.len()];
            input.read_exact(&mut got).unwrap();
            assert!(got == wanted.as_bytes(), "reply {i}: {}", String::from_utf8_lossy(&got));
        }
        sending.join().unwrap();
    });
}

#[test]
fn many_clients_that_never_read_stay_below_the_limit_of_all_together() {
    const CLIENTS: usize = 64;
    if subject_is_redis() {
        return; // holds all replies
    }
    each_backend(
        || Launch::subject().set("output-total-limit", "8mb"),
        |server| {
            let mut other = server.connect();
            assert_reply!(other, &format!("SET k {}", "v".repeat(8192)), "OK");
            let before = server.rss();
            // Eight megabytes of replies each, of which the kernel takes some and the soft limit
            // allows one: 64 MB together.
            let batch = words::encode(&["GET", "k"]).repeat(1_000);
            let deaf: Vec<TcpStream> = (0..CLIENTS)
                .map(|_| {
                    let mut socket = TcpStream::connect(server.address()).unwrap();
                    socket.write_all(&batch).unwrap();
                    socket
                })
                .collect();
            wait_until("all have asked and nothing moves any more", || {
                let figure = |conn: &mut brisk_testkit::Conn, name| -> u64 {
                    conn.info(name).parse().unwrap()
                };
                figure(&mut other, "connected_clients") == CLIENTS as u64 + 1
                    && figure(&mut other, "output_stalls") >= CLIENTS as u64
                    && figure(&mut other, "instantaneous_ops_per_sec") < 500
            });
            // Besides the limit: 16 KiB and the rest of a receive for each,
            // and what the allocator keeps.
            let grown = server.rss().saturating_sub(before);
            assert!(grown < 32 * MIB, "grew by {grown} bytes");
            drop(deaf);
            wait_until("they are gone", || other.info("connected_clients") == "1");
        },
    );
}
