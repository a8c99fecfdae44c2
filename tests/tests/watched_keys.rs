//! Sessions that watch many keys. Their watches end immediately, but are removed from the keys' queues in slices,
//! between which other clients are served.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, each_backend, wait_until};
use brisk_tests::with_workers;

/// Enough keys that EXEC has to quiesce all other workers.
const KEYS: usize = 3000;

/// Lets a client watch `key:0` to `key:<keys - 1>`.
#[track_caller]
fn watch(conn: &mut Conn, keys: usize) {
    for first in (0..keys).step_by(1000) {
        let names = (first..keys.min(first + 1000)).map(|number| format!("key:{number}"));
        let words: Vec<String> = std::iter::once("WATCH".to_owned()).chain(names).collect();
        assert_eq!(conn.call(&words).to_string(), "OK");
    }
}

/// A field of INFO brisk or INFO clients.
#[track_caller]
fn metric(text: &str, field: &str) -> usize {
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.and_then(|value| value.trim_end().parse().ok()).expect("INFO has the field")
}

/// Reports whether a transaction of the client would run now.
#[track_caller]
fn runs(conn: &mut Conn) -> bool {
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "PING", "QUEUED");
    let reply = conn.cmd("EXEC").to_string();
    assert!(reply == "1) PONG" || reply == "(nil)", "{reply}");
    reply != "(nil)"
}

/// Runs the test on each back end, with one worker.
fn each_server(test: impl Fn(&Server)) {
    each_backend(|| with_workers(1), |server| test(server));
}

#[test]
fn ended_watches_are_removed_in_slices_between_requests_of_others() {
    if subject_is_redis() {
        return; // takes them out at once
    }
    const WATCHED: usize = 50_000;
    const SLICE: usize = 128;
    /// Maximum number of attempts. Each sends twice as many requests as the previous one, until they take longer than
    /// one iteration.
    const ATTEMPTS: usize = 6;
    each_server(|server| {
        let [mut conn, mut other] = server.connections();
        let leave_between_requests = (0..ATTEMPTS).any(|attempt| {
            watch(&mut conn, WATCHED);
            assert_eq!(conn.info("total_watched_keys"), WATCHED.to_string());
            let mut lines = vec!["UNWATCH"];
            lines.resize(1000 << attempt, "INFO brisk");
            let replies = conn.pipeline(&lines);
            assert_reply!(other, "PING", "PONG");
            let left = replies[1..].iter().map(|reply| metric(&reply.text(), "leftover_watches"));
            let left: Vec<usize> = left.collect();
            // UNWATCH itself has removed no watch. They are removed in slices, of which the last may be smaller.
            assert_eq!(left[0], WATCHED);
            let is_whole = |left: &usize| *left == 0 || (WATCHED - left).is_multiple_of(SLICE);
            assert!(left.iter().all(is_whole), "{left:?}");
            wait_until("all are taken out", || other.info("leftover_watches") == "0");
            left.iter().any(|left| (1..WATCHED).contains(left))
        });
        assert!(leave_between_requests, "all requests of each pipeline saw the same number");
    });
}

#[test]
fn ended_watches_do_not_affect_the_session() {
    each_server(|server| {
        let mut other = server.connect();
        let ends: [&[&str]; 6] = [
            &["UNWATCH"],
            &["MULTI", "PING", "EXEC"],
            &["MULTI", "DISCARD"],
            &["MULTI", "RESET"],
            &["MULTI", "EXEC now"],
            &["SET key:0 own", "MULTI", "PING", "EXEC"],
        ];
        for end in ends {
            let mut conn = server.connect();
            watch(&mut conn, KEYS);
            let mut lines = end.to_vec();
            lines.extend(["INFO clients", "INFO brisk"]);
            let replies = conn.pipeline(&lines);
            if !subject_is_redis() {
                let [clients, brisk] = [&replies[end.len()], &replies[end.len() + 1]];
                assert_eq!(metric(&clients.text(), "watching_clients"), 0);
                assert_eq!(metric(&clients.text(), "total_watched_keys"), 0);
                assert_eq!(metric(&brisk.text(), "leftover_watches"), KEYS, "{end:?}");
            }
            // Change keys that were watched, and keys that are watched again.
            for (line, wanted) in [
                ("SET key:1 x", true),
                ("FLUSHALL", true),
                ("SWAPDB 0 1", true),
                ("SET key:0 x", false),
                ("DEL key:2999", true),
                ("SET key:2999 x", false),
                ("FLUSHALL", false),
            ] {
                if !wanted {
                    conn.cmd("WATCH key:0 key:2999");
                }
                other.cmd(line);
                assert_eq!(runs(&mut conn), wanted, "{end:?} {line}");
            }
        }
    });
}

#[test]
fn a_key_watched_again_stays_watched_after_leftover_cleanup() {
    if subject_is_redis() {
        return; // leaves none over
    }
    each_server(|server| {
        let [mut conn, mut other, mut third] = server.connections();
        for (line, wanted) in
            [("SET key:0 x", false), ("SET key:2999 x", false), ("SET key:1 x", true)]
        {
            watch(&mut conn, KEYS);
            assert_reply!(third, "WATCH key:0", "OK");
            let replies =
                conn.pipeline(&["UNWATCH", "WATCH key:0 key:2999", "INFO brisk", "INFO clients"]);
            // Each WATCH removes as many leftover watches as it adds.
            assert_eq!(metric(&replies[2].text(), "leftover_watches"), KEYS - 2);
            assert_eq!(metric(&replies[3].text(), "watching_clients"), 2);
            wait_until("all are taken out", || other.info("leftover_watches") == "0");
            assert_eq!(other.info("total_watched_keys"), "2");
            other.cmd(line);
            assert_eq!(runs(&mut conn), wanted, "{line}");
            assert_eq!(runs(&mut third), line != "SET key:0 x");
        }
    });
}

#[test]
fn clients_with_many_watched_keys_that_end_together_give_the_memory_back() {
    if subject_is_redis() {
        return; // counts nothing that would show it
    }
    each_server(|server| {
        let mut other = server.connect();
        let used = |conn: &mut Conn| -> u64 {
            conn.info("used_memory").parse().expect("a number of bytes")
        };
        let before = used(&mut other);
        let mut clients: Vec<Conn> = (0..5).map(|_| server.connect()).collect();
        for conn in &mut clients {
            watch(conn, 10 * KEYS);
        }
        assert_eq!(other.info("watching_clients"), "5");
        assert_eq!(other.info("total_watched_keys"), (10 * KEYS).to_string());
        let taken = used(&mut other) - before;
        clients.truncate(1);
        wait_until("four are gone", || other.info("watching_clients") == "1");
        clients[0].cmd("UNWATCH");
        assert_eq!(other.info("watching_clients"), "0");
        assert_eq!(other.info("total_watched_keys"), "0");
        wait_until("all are taken out", || other.info("leftover_watches") == "0");
        wait_until("the memory is given back", || used(&mut other) < before + taken / 10);
        assert_reply!(other, "WATCH key:0", "OK");
        assert_reply!(clients[0], "SET key:0 x", "OK");
        assert!(!runs(&mut other));
    });
}

#[test]
fn repeated_watch_and_unwatch_leaves_bounded_leftovers() {
    if subject_is_redis() {
        return; // leaves none over
    }
    each_server(|server| {
        let mut conn = server.connect();
        let names: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
        let line = format!("WATCH {}", names.join(" "));
        let lines: Vec<&str> =
            (0..10).flat_map(|_| [line.as_str(), "UNWATCH", "INFO brisk"]).collect();
        let replies = conn.pipeline(&lines);
        for reply in replies.chunks(3) {
            assert!(metric(&reply[2].text(), "leftover_watches") <= KEYS);
        }
    });
}
