//! Replicas that reconnect continue where they were, if the server still has the changes that they lack. The bytes that
//! are kept for them are stored only once.
//!
//! The expected behavior is that of Redis: offsets count the bytes of the stream from 1 on, PSYNC names the next
//! offset, and INFO replication shows the retained range.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::{changes, with_workers};
use std::sync::atomic::{AtomicBool, Ordering};

/// A real Redis that replicates from `of`.
fn follower(of: &Server) -> Server {
    let primary = format!("127.0.0.1 {}", of.port());
    let launch = Launch::redis().set("replicaof", &primary).set("enable-debug-command", "yes");
    let replica = launch.start();
    replica.wait_for_info("master_link_status", |status| status == "up");
    of.wait_for_info("slave0", |line| line.contains("state=online"));
    replica
}

fn number(server: &Server, field: &str) -> u64 {
    server.info(field).parse().unwrap()
}

fn line(conn: &mut Conn) -> String {
    let mut line = Vec::new();
    loop {
        match conn.bytes(1)[0] {
            b'\n' if line.is_empty() => {}
            b'\n' => return String::from_utf8(line).unwrap().trim_end().to_owned(),
            byte => line.push(byte),
        }
    }
}

/// Sends PSYNC. Returns the reply and the connection.
fn psync(server: &Server, id: &str, next: i64) -> (String, Conn) {
    let mut conn = server.connect();
    assert_reply!(conn, "REPLCONF capa psync2", "OK");
    conn.send(&format!("PSYNC {id} {next}"));
    (line(&mut conn), conn)
}

/// Requests a full synchronization. Returns the replication ID, the offset, and the connection.
fn follow(server: &Server) -> (String, i64, Conn) {
    let (reply, mut conn) = psync(server, "?", -1);
    let words: Vec<&str> = reply.split(' ').collect();
    let ["+FULLRESYNC", id, place] = words[..] else { panic!("{reply}") };
    let len: usize = line(&mut conn).strip_prefix('$').unwrap().parse().unwrap();
    conn.bytes(len);
    (id.to_owned(), place.parse().unwrap(), conn)
}

fn assert_same(server: &Server, replica: &Server) {
    let mut conn = server.connect();
    assert_reply!(conn, "SET last 1", "OK");
    assert_reply!(conn, "WAIT 1 60000", "(integer) 1");
    assert_eq!(replica.info("slave_repl_offset"), server.info("master_repl_offset"));
    let digest = conn.cmd("DEBUG DIGEST").text();
    assert_eq!(replica.connect().cmd("DEBUG DIGEST").text(), digest);
}

#[test]
fn a_replica_whose_link_is_cut_under_load_resumes() {
    for policy in ["", "always"] {
        let mut launch =
            with_workers(2).set("repl-backlog-size", "100mb").set("enable-debug-command", "yes");
        if !policy.is_empty() {
            launch = launch.set("appendonly", "yes").set("appendfsync", policy);
        }
        let server = launch.start();
        let replica = follower(&server);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for client in 0..3 {
                let (server, is_over) = (&server, &is_over);
                scope.spawn(move || {
                    changes::make(server, client, |_| !is_over.load(Ordering::Relaxed));
                });
            }
            let mut conn = server.connect();
            for cut in 1..=5 {
                conn.cmd("CLIENT KILL TYPE replica");
                server.wait_for_info("sync_partial_ok", |count| count == cut.to_string());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_same(&server, &replica);
        assert_eq!((number(&server, "sync_full"), number(&server, "sync_partial_err")), (1, 0));
        assert!(server.log().contains("Partial resynchronization request from "));
    }
}

#[test]
fn a_replica_that_lacks_more_than_the_backlog_gets_a_full_copy() {
    let server =
        with_workers(2).set("repl-backlog-size", "16kb").set("enable-debug-command", "yes").start();
    let replica = follower(&server);
    let mut conn = server.connect();
    // The replica is stopped while its connection is closed and more is written than the backlog keeps.
    replica.signal("STOP");
    conn.cmd("CLIENT KILL TYPE replica");
    server.wait_for_info("connected_slaves", |count| count == "0");
    for n in 0..50 {
        conn.call(&["SET", &format!("key:{n}"), &"x".repeat(10_000)]);
    }
    replica.signal("CONT");
    server.wait_for_info("sync_full", |count| count == "2");
    assert_eq!((number(&server, "sync_partial_ok"), number(&server, "sync_partial_err")), (0, 1));
    replica.wait_for_info("master_link_status", |status| status == "up");
    assert_same(&server, &replica);
    assert!(server.log().contains("for lack of backlog (Replica request was: "));
}

#[test]
fn the_backlog_is_kept_to_the_byte() {
    let server = with_workers(2)
        .set("repl-backlog-size", "16kb")
        .set("repl-ping-replica-period", "10000")
        .start();
    let mut conn = server.connect();
    let (id, place, mut first) = follow(&server);
    assert_eq!(id, server.info("master_replid"));
    for n in 0..200 {
        conn.call(&["SET", &format!("key:{n}"), &"x".repeat(1000)]);
    }
    let end = number(&server, "master_repl_offset") as i64;
    // The whole stream, as received by a replica that stayed connected.
    let stream = first.bytes((end - place) as usize);
    drop(first);
    server.wait_for_info("connected_slaves", |count| count == "0");
    let begin = number(&server, "repl_backlog_first_byte_offset") as i64;
    let len = number(&server, "repl_backlog_histlen") as i64;
    assert_eq!((server.info("repl_backlog_active").as_str(), begin + len - 1), ("1", end));
    assert!((16_384..200_000).contains(&len), "{len}");
    let (mut full, mut partial, mut refused) = (1, 0, 0);
    for next in [begin, begin + 1, begin + 777, end - 1, end, end + 1] {
        let (reply, mut conn) = psync(&server, &id, next);
        assert_eq!(reply, format!("+CONTINUE {id}"), "{next}");
        let lacking = &stream[(next - 1 - place) as usize..];
        assert!(conn.bytes(lacking.len()) == lacking, "{next}");
        partial += 1;
    }
    let strange = "f".repeat(40);
    for (id, next) in [
        (id.as_str(), begin - 1),
        (&id, end + 2),
        (&id, 0),
        (&id, -1),
        (&id, i64::MAX),
        (&id, i64::MIN),
        (&strange, end + 1),
        ("?", -1),
        ("?", end + 1),
    ] {
        assert!(psync(&server, id, next).0.starts_with("+FULLRESYNC "), "{id} {next}");
        full += 1;
        refused += i32::from(id != "?");
    }
    let counts = [("sync_full", full), ("sync_partial_ok", partial), ("sync_partial_err", refused)];
    for (field, count) in counts {
        assert_eq!(server.info(field), count.to_string(), "{field}");
    }
    // A replica that does not announce psync2 gets no ID. IDs are case-insensitive.
    let mut plain = server.connect();
    plain.send(&format!("PSYNC {} {}", id.to_uppercase(), end + 1));
    plain.expect_bytes(b"+CONTINUE\r\n");
    assert_reply!(conn, "CONFIG RESETSTAT", "OK");
    assert_eq!(server.info("sync_partial_ok"), "0");
}

/// The stream continues without replicas. Otherwise its offsets could later refer to different changes.
#[test]
fn changes_without_a_replica_are_in_the_backlog() {
    let server = with_workers(2).set("repl-ping-replica-period", "10000").start();
    let mut conn = server.connect();
    let (id, place, connection) = follow(&server);
    drop(connection);
    server.wait_for_info("connected_slaves", |count| count == "0");
    assert_reply!(conn, "SET a 1", "OK");
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "INCR a", "QUEUED");
    assert_reply!(conn, "INCR b", "QUEUED");
    conn.cmd("EXEC");
    let (reply, mut replica) = psync(&server, &id, place + 1);
    assert_eq!(reply, format!("+CONTINUE {id}"));
    let mut next = || match replica.reply() {
        Reply::Array(words) => words.iter().map(Reply::text).collect::<Vec<_>>().join(" "),
        other => panic!("no command: {other:?}"),
    };
    for expected in ["select 0", "set a 1", "multi", "incr a", "incr b", "exec"] {
        assert_eq!(next().to_lowercase(), expected);
    }
    // A reconnecting replica knows the selected database, so SELECT is not sent again.
    let end = number(&server, "master_repl_offset") as i64;
    let (_, mut again) = psync(&server, &id, end + 1);
    assert_reply!(conn, "SET c 1", "OK");
    again.expect_bytes(b"*3\r\n");
}

#[test]
fn freeing_the_backlog_changes_the_replication_id() {
    let server = with_workers(2).set("repl-backlog-ttl", "1").start();
    let mut conn = server.connect();
    let (id, place, connection) = follow(&server);
    assert_eq!(conn.info("repl_backlog_active"), "1");
    drop(connection);
    server.wait_for_info("repl_backlog_active", |active| active == "0");
    let other = conn.info("master_replid");
    assert_ne!(id, other);
    assert_eq!(conn.info("master_replid2"), "0".repeat(40));
    assert_eq!(conn.info("second_repl_offset"), "-1");
    assert_eq!(conn.info("repl_backlog_histlen"), "0");
    assert_reply!(conn, "SET lost 1", "OK");
    assert!(psync(&server, &id, place + 1).0.starts_with("+FULLRESYNC "));
    assert!(server.log().contains("Replication backlog freed after 1 seconds"));
}

/// A primary that saves at shutdown, with a real Redis as its replica, and keys that expire while the primary is down.
fn after_a_night(backlog: &str, keys: usize) -> (Server, Server) {
    let launch = with_workers(2)
        .set("save", "3600 1")
        .set("repl-backlog-size", backlog)
        .set("repl-ping-replica-period", "3600")
        .set("repl-timeout", "3600")
        .set("enable-debug-command", "yes");
    let mut server = launch.clone().start();
    let replica = follower(&server);
    let mut conn = server.connect();
    assert_reply!(conn, "DEBUG SET-ACTIVE-EXPIRE 0", "OK");
    assert_reply!(conn, "SET stays 1", "OK");
    assert_reply!(conn, "SELECT 3", "OK");
    for key in 0..keys {
        assert_reply!(conn, &format!("SET key:{key} 1 PX 1"), "OK");
    }
    assert_reply!(conn, "WAIT 1 60000", "(integer) 1");
    let last = format!("EXISTS key:{}", keys - 1);
    let mut at_replica = replica.connect();
    at_replica.cmd("SELECT 3");
    wait_until("the last has expired", || at_replica.cmd(&last).to_string() == "(integer) 0");
    conn.send("SHUTDOWN");
    wait_until("it ends", || !server.is_running());
    launch.start_again(&mut server);
    replica.wait_for_info("master_link_status", |status| status == "up");
    assert_eq!(number(&server, "rdb_last_load_keys_expired"), keys as u64);
    wait_until("the replica has what is left", || {
        at_replica.cmd("DBSIZE").to_string() == "(integer) 0"
    });
    assert_eq!(replica.connect().cmd("DBSIZE").to_string(), "(integer) 1");
    (server, replica)
}

#[test]
fn expiries_during_downtime_reach_a_replica_that_resumes() {
    let (server, replica) = after_a_night("1mb", 100);
    assert_eq!((number(&server, "sync_full"), number(&server, "sync_partial_ok")), (0, 1));
    assert_eq!(replica.info("slave_repl_offset"), server.info("master_repl_offset"));
    let history_end =
        number(&server, "second_repl_offset") + number(&server, "repl_backlog_histlen");
    assert_eq!(history_end, number(&server, "master_repl_offset") + 1);
    assert!(number(&server, "repl_backlog_histlen") > 100);
}

#[test]
fn no_replica_resumes_if_expiries_exceed_the_backlog() {
    for keys in [2000, 5000] {
        let (server, _replica) = after_a_night("16kb", keys);
        assert_eq!((number(&server, "sync_full"), number(&server, "sync_partial_ok")), (1, 0));
    }
}

#[test]
fn a_replica_that_does_not_read_is_closed_at_its_limit_but_not_within_the_backlog() {
    let server = with_workers(2)
        .set("client-output-buffer-limit", "replica 100kb 0 0")
        .set("repl-backlog-size", "10mb")
        .start();
    let mut conn = server.connect();
    let (_, _, mut stalled) = follow(&server);
    let value = "x".repeat(100_000);
    for _ in 0..80 {
        conn.call(&["SET", "key", &value]);
    }
    // Bytes that the kernel has accepted do not count, and the replica may lag by the size of the backlog.
    assert_eq!(conn.info("connected_slaves"), "1");
    while conn.info("connected_slaves") == "1" {
        conn.call(&["SET", "key", &value]);
        assert!(number(&server, "master_repl_offset") < 60_000_000);
    }
    stalled.read_to_end();
    server.wait_for_info("mem_not_counted_for_evict", |bytes| bytes == "0");
    if !subject_is_redis() {
        assert_eq!(conn.info("client_output_buffer_limit_disconnections"), "1"); // 7.0 has no such count
    }
}

/// The memory that a stalled 20 MB stream takes with this number of replicas.
fn cost_of(replicas: usize, value: &str, count: usize) -> u64 {
    let server = with_workers(2)
        .set("client-output-buffer-limit", "replica 0 0 0")
        .set("repl-backlog-size", "1mb")
        .start();
    let mut conn = server.connect();
    let _stalled: Vec<_> = (0..replicas).map(|_| follow(&server)).collect();
    let before = number(&server, "used_memory");
    for _ in 0..count / 100 {
        conn.pipeline(&vec![format!("SET key {value}").as_str(); 100]);
    }
    assert_eq!(conn.info("connected_slaves"), replicas.to_string());
    number(&server, "used_memory") - before
}

#[test]
fn ten_replicas_that_do_not_read_cost_what_one_does() {
    for (value, count) in [("x".repeat(10_000), 2000), ("x".repeat(100), 150_000)] {
        let (one, ten) = (cost_of(1, &value, count), cost_of(10, &value, count));
        // Each replica has about 256 KiB of output, to which small changes are copied.
        assert!(one > 8_000_000 && ten < one + one / 5 + 5_000_000, "{one} {ten}");
    }
}

#[test]
fn a_lowered_size_is_in_force_at_once() {
    let server = with_workers(2).set("repl-backlog-size", "10mb").start();
    let mut conn = server.connect();
    let (_, _, connection) = follow(&server);
    drop(connection);
    for _ in 0..50 {
        conn.call(&["SET", "key", &"x".repeat(100_000)]);
    }
    assert!(number(&server, "repl_backlog_histlen") > 5_000_000);
    assert!(number(&server, "mem_replication_backlog") > 5_000_000);
    assert_reply!(conn, "CONFIG SET repl-backlog-size 100000", "OK");
    assert_reply!(conn, "SET key 1", "OK");
    wait_until("it shrinks", || {
        conn.cmd("SET key 1");
        let len = number(&server, "repl_backlog_histlen");
        (100_000..200_000).contains(&len)
    });
}

#[test]
fn replicas_without_lag_are_counted() {
    let server = with_workers(2).set("min-replicas-to-write", "1").start();
    let mut conn = server.connect();
    assert_eq!(conn.info("min_slaves_good_slaves"), "0");
    let replica = follower(&server);
    server.wait_for_info("min_slaves_good_slaves", |good| good == "1");
    assert_reply!(conn, "CONFIG SET min-replicas-max-lag 1", "OK");
    replica.signal("STOP");
    server.wait_for_info("min_slaves_good_slaves", |good| good == "0");
    replica.signal("CONT");
    server.wait_for_info("min_slaves_good_slaves", |good| good == "1");
}

#[test]
fn snapshots_wait_for_further_replicas_that_can_share_them() {
    let server = with_workers(2)
        .set("repl-diskless-sync-delay", "1000")
        .set("repl-diskless-sync-max-replicas", "2")
        .start();
    let attach = || {
        let mut conn = server.connect();
        assert_reply!(conn, "REPLCONF capa eof", "OK");
        conn.send("PSYNC ? -1");
        conn
    };
    let mut one = attach();
    server.wait_for_info("connected_slaves", |count| count == "1");
    server.wait_for_info("slave0", |line| line.contains("state=wait_bgsave"));
    let mut two = attach();
    let places = [line(&mut one), line(&mut two)];
    assert!(places[0].starts_with("+FULLRESYNC ") && places[0] == places[1], "{places:?}");
    assert_eq!(server.log().matches("Starting BGSAVE for SYNC").count(), 1);
}
