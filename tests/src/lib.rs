//! Recorded replies of real servers, in `data/`, for tests that compare replies with them.
//!
//! The tests themselves are in `tests/`, one file per behavior. `BRISK_TEST_SUBJECT=redis cargo test -p brisk-tests`
//! runs them against a real Redis, which shows that they test the correct behavior. Assertions that apply only to our
//! server are marked.
#![forbid(unsafe_code)]

pub mod acted;
pub mod aof;
pub mod browser;
pub mod changes;
pub mod client_commands;
pub mod exposition;
pub mod links;
pub mod records;
pub mod sentinels;
pub mod snapshots;
pub mod web;
pub mod websocket;

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server};
use serde_json::Value;
use std::path::Path;

/// The facts in `data/<name>.json`.
#[track_caller]
pub fn facts(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{name}.json"));
    match std::fs::read_to_string(&path).map(|text| serde_json::from_str(&text)) {
        Ok(Ok(value)) => value,
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// A server with this number of workers; a real Redis ignores it. A replica does not wait for others that could share
/// its snapshot.
pub fn with_workers(workers: usize) -> Launch {
    let launch = Launch::subject().set("repl-diskless-sync-delay", "0");
    if subject_is_redis() { launch } else { launch.set("threads", &workers.to_string()) }
}

/// Calls `run` with the number of iterations of a loop in a script, and again with more iterations, until the server
/// has counted as many slow scripts as `run` returns. `busy-reply-threshold` must be low.
///
/// # Panics
/// If the server considers no script slow.
#[track_caller]
pub fn until_slow(server: &Server, mut run: impl FnMut(u64) -> usize) {
    const TURNS_MAX: u64 = 1 << 34;
    let slow = || server.log().matches("Slow script detected: still in execution after").count();
    let mut turns = 1 << 20;
    loop {
        let before = slow();
        let expected = run(turns);
        if slow() >= before + expected {
            return;
        }
        turns *= 4;
        assert!(turns <= TURNS_MAX, "no script is slow");
    }
}

/// A connection to each of the server's workers, in order.
///
/// # Panics
/// If the kernel assigns none of a few hundred connections to a worker.
#[track_caller]
pub fn one_of_each_worker(server: &Server, workers: usize) -> Vec<Conn> {
    const TRIES: usize = 300;
    const PINGS: usize = 100;
    let mut probe = server.connect();
    let mut counts = || -> Vec<i64> {
        let info = probe.cmd("INFO brisk").text();
        let count = |worker| {
            let line = format!("worker{worker}:commands=");
            let numbers = info.split(&line).nth(1).and_then(|rest| rest.split(',').next());
            numbers.and_then(|count| count.parse().ok()).expect("each worker counts its commands")
        };
        (0..workers).map(count).collect()
    };
    let mut found: Vec<Option<Conn>> = (0..workers).map(|_| None).collect();
    for _ in 0..TRIES {
        let mut conn = server.connect();
        let before = counts();
        conn.pipeline(&["PING"; PINGS]);
        let grown: Vec<i64> = counts().iter().zip(before).map(|(now, then)| now - then).collect();
        let worker = (0..workers).max_by_key(|worker| grown[*worker]).unwrap_or_default();
        found[worker].get_or_insert(conn);
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    let found: Option<Vec<Conn>> = found.into_iter().collect();
    found.expect("every worker has a connection")
}
