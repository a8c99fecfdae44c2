//! Requests that need slots which other clients constantly use eventually get them, and block no other client while
//! they wait.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{assert_reply, wait_until};
use brisk_tests::{one_of_each_worker, with_workers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Iterations of a script's loop that take about a second.
const TURNS: u64 = 20_000_000;

#[test]
fn a_request_starved_by_a_long_script_is_served_in_the_end() {
    if subject_is_redis() {
        return; // has one thread
    }
    // The threshold is so high that the server does not reject the request with BUSY, even on a slow machine.
    let server = with_workers(2).set("busy-reply-threshold", "60000").start();
    let mut conns = one_of_each_worker(&server, 2);
    let (mut holder, mut wide) = (conns.remove(0), conns.remove(0));
    let script = format!("local n = 0 for i = 1, {TURNS} do n = n + 1 end return n");
    holder.send(&format!("EVAL \"{script}\" 1 held"));
    // When the script holds its key, the server tries to run this request with all workers quiesced, which the script
    // prevents.
    wait_until("a request is starved", || {
        assert_reply!(wide, "MSET held 1 other 2", "OK");
        wide.info("starved_requests") != "0"
    });
    assert_eq!(holder.reply().text(), TURNS.to_string());
    assert_reply!(holder, "GET other", "\"2\"");
}

#[test]
fn a_wide_request_gets_through_among_many_narrow_ones() {
    const KEYS: usize = 64;
    let server = with_workers(2).start();
    let over = Arc::new(AtomicBool::new(false));
    let narrow: Vec<_> = (0..4)
        .map(|_| {
            let (mut conn, over) = (server.connect(), Arc::clone(&over));
            std::thread::spawn(move || {
                let mut batch = Vec::new();
                for key in 0..KEYS {
                    batch.extend_from_slice(format!("INCR key:{key}\r\n").as_bytes());
                }
                while !over.load(Ordering::Relaxed) {
                    conn.send_raw(&batch);
                    for _ in 0..KEYS {
                        conn.reply();
                    }
                }
            })
        })
        .collect();
    let mut wide = server.connect();
    let pairs: Vec<String> = (0..KEYS).map(|key| format!("key:{key} 0")).collect();
    let all = format!("MSET {}", pairs.join(" "));
    for _ in 0..200 {
        wide.send(&all);
        assert_eq!(wide.reply().text(), "OK");
        assert_reply!(wide, "MULTI", "OK");
        wide.send(&all);
        assert_eq!(wide.reply().text(), "QUEUED");
        wide.send("EXEC");
        wide.reply();
    }
    over.store(true, Ordering::Relaxed);
    for thread in narrow {
        thread.join().unwrap();
    }
}
