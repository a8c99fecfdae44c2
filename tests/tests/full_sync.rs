//! The initial snapshot of a replica: it is created and sent while commands run, and the stream follows it without a
//! gap. The contents of the stream are tested in `replication`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_backend;
use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::snapshots::{delay, fill, make_endless, take_disk_away};
use brisk_tests::{changes, with_workers};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const RUNNING: &str = "(error) ERR Background save already in progress";

/// A connection that has sent PSYNC.
struct Replica(Conn);

impl Replica {
    fn request_sync(server: &Server) -> Replica {
        let mut conn = server.connect();
        conn.send("PSYNC ? -1");
        Replica(conn)
    }

    /// The next line, skipping keepalive newlines.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            match self.0.bytes(1)[0] {
                b'\n' if line.is_empty() => {}
                b'\n' => return String::from_utf8(line).unwrap().trim_end().to_owned(),
                byte => line.push(byte),
            }
        }
    }

    /// The offset in the reply to PSYNC.
    fn place(&mut self) -> u64 {
        let line = self.line();
        let place = line.strip_prefix("+FULLRESYNC ").and_then(|rest| rest.split_once(' '));
        place.unwrap_or_else(|| panic!("{line}")).1.parse().unwrap()
    }

    /// Waits for the snapshot, and returns its length.
    fn head(&mut self) -> usize {
        self.line().strip_prefix('$').expect("a length").parse().unwrap()
    }

    fn snapshot(&mut self) -> Vec<u8> {
        let len = self.head();
        self.0.bytes(len)
    }

    /// The next command of the stream except PING, as one line, and its number of bytes.
    fn next(&mut self) -> (String, u64) {
        let mut bytes = 0;
        loop {
            let Reply::Array(words) = self.0.reply() else { panic!("no command") };
            let words: Vec<String> = words.iter().map(Reply::text).collect();
            let word = |word: &String| format!("${}\r\n{word}\r\n", word.len()).len();
            bytes += format!("*{}\r\n", words.len()).len() + words.iter().map(word).sum::<usize>();
            if !words[0].eq_ignore_ascii_case("PING") {
                return (words.join(" "), bytes as u64);
            }
        }
    }
}

fn state(conn: &mut Conn, replica: usize) -> String {
    let line = conn.info(&format!("slave{replica}"));
    let state = line.split(',').find_map(|part| part.strip_prefix("state="));
    state.unwrap_or(&line).to_owned()
}

#[test]
fn real_replicas_that_attach_under_load_have_the_same_data() {
    replicas_have_the_same_data(with_workers(2));
}

/// The output to a replica waits for the file like every reply.
#[test]
fn real_replicas_have_the_same_data_with_an_append_only_file() {
    replicas_have_the_same_data(
        with_workers(2).set("appendonly", "yes").set("appendfsync", "always"),
    );
}

fn replicas_have_the_same_data(primary: Launch) {
    let server = primary.start();
    let mut conn = server.connect();
    fill(&mut conn, 2000, 100);
    let launch = || {
        let primary = format!("127.0.0.1 {}", server.port());
        Launch::redis().set("replicaof", &primary).start()
    };
    let is_over = AtomicBool::new(false);
    let replicas = std::thread::scope(|scope| {
        for client in 0..4 {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || {
                changes::make(server, client, |done| {
                    done < 500 || !is_over.load(Ordering::Relaxed)
                });
            });
        }
        // The other replicas attach while the first one is receiving its snapshot, and during a BGSAVE.
        let replicas = [launch(), launch(), {
            conn.cmd("BGSAVE SCHEDULE");
            launch()
        }];
        for replica in &replicas {
            replica.wait_for_info("master_link_status", |status| status == "up");
        }
        conn.cmd("SWAPDB 0 1");
        is_over.store(true, Ordering::Relaxed);
        replicas
    });
    assert_reply!(conn, "SET last 1", "OK");
    assert_reply!(conn, "WAIT 3 60000", "(integer) 3");
    let digest = conn.cmd("DEBUG DIGEST").text();
    for replica in &replicas {
        assert_eq!(replica.connect().cmd("DEBUG DIGEST").text(), digest);
    }
}

#[test]
fn changes_during_the_snapshot_follow_it_without_a_gap() {
    each_backend(
        || with_workers(2).set("repl-diskless-sync", "no"),
        |server| {
            let [mut conn, mut other] = server.connections();
            fill(&mut conn, 100, 5_000);
            let mut replica = Replica::request_sync(server);
            let place = replica.place();
            assert_eq!(state(&mut conn, 0), "wait_bgsave");
            assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
            assert_eq!(conn.info("sync_full"), "1");
            assert!(conn.cmd("CLIENT LIST TYPE replica").text().contains(" flags=S "));
            // A replica is not listed before it is online.
            assert_eq!(conn.cmd("ROLE").elements()[2].elements().len(), 0);
            for n in 0..200 {
                conn.cmd(&format!("SET one:{n} {n}"));
                other.cmd(&format!("DEL key:{n}"));
            }
            let snapshot = replica.snapshot();
            assert!(snapshot.starts_with(b"REDIS"));
            assert!(!snapshot.windows(4).any(|bytes| bytes == b"one:"));
            let mut end = place;
            let (mut sets, mut deletions) = (0, 0);
            while sets < 200 || deletions < 100 {
                let (line, bytes) = replica.next();
                end += bytes;
                let line = line.to_lowercase();
                if line.starts_with("set ") {
                    assert_eq!(line, format!("set one:{sets} {sets}"));
                    sets += 1;
                } else if line.starts_with("del ") {
                    assert_eq!(line, format!("del key:{deletions}"));
                    deletions += 1;
                } else {
                    assert_eq!((line.as_str(), sets + deletions), ("select 0", 0));
                }
            }
            let offset: u64 = conn.info("master_repl_offset").parse().unwrap();
            // A PING may have been sent since.
            assert!((end..end + 100).contains(&offset), "{end} {offset}");
            assert_eq!(state(&mut conn, 0), "online");
            assert_eq!(conn.cmd("ROLE").elements()[2].elements().len(), 1);
        },
    );
}

#[test]
fn replicas_that_connect_during_a_bgsave_share_the_next_snapshot() {
    if subject_is_redis() {
        return; // what ends its BGSAVE differs
    }
    each_backend(
        || with_workers(2),
        |server| {
            let mut conn = server.connect();
            make_endless(&mut conn);
            assert_reply!(conn, "BGSAVE", "Background saving started");
            let mut replicas = [Replica::request_sync(server), Replica::request_sync(server)];
            server.wait_for_info("connected_slaves", |count| count == "2");
            for number in 0..2 {
                assert_eq!(state(&mut conn, number), "wait_bgsave");
            }
            // The replicas receive newlines as keepalives.
            replicas.iter_mut().for_each(|replica| replica.0.expect_bytes(b"\n"));
            // They do not receive the stream yet.
            assert_reply!(conn, "SET before 1", "OK");
            // DEBUG RELOAD cancels the running snapshot.
            delay(&mut conn, 0);
            assert_reply!(conn, "DEBUG RELOAD", "OK");
            let places = replicas.each_mut().map(Replica::place);
            assert_eq!(places[0], places[1]);
            let snapshots = replicas.each_mut().map(Replica::snapshot);
            assert!(snapshots[0] == snapshots[1]);
            assert!(snapshots[0].windows(6).any(|bytes| bytes == b"before"));
            assert_eq!(server.log().matches("Starting BGSAVE for SYNC").count(), 1);
            assert_reply!(conn, "SET after 1", "OK");
            for replica in &mut replicas {
                assert_eq!(replica.next().0.to_lowercase(), "select 0");
                assert_eq!(replica.next().0.to_lowercase(), "set after 1");
            }
        },
    );
}

/// No worker is blocked: commands get replies between the start of the snapshot and its first byte. The snapshot is not
/// buffered in memory either.
#[test]
fn a_large_dataset_is_sent_while_commands_run_and_is_not_buffered() {
    let server = with_workers(2).set("rdbcompression", "no").start();
    let mut conn = server.connect();
    assert_reply!(conn, "DEBUG POPULATE 10000 key 10000", "OK");
    let (acknowledged, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (server, acknowledged, is_over) = (&server, &acknowledged, &is_over);
            scope.spawn(move || {
                changes::make(server, client, |_| {
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                    !is_over.load(Ordering::SeqCst)
                });
            });
        }
        let mut replica = Replica::request_sync(&server);
        replica.place();
        let before = acknowledged.load(Ordering::SeqCst);
        let len = replica.head();
        let after = acknowledged.load(Ordering::SeqCst);
        is_over.store(true, Ordering::SeqCst);
        assert!(after > before + 2, "{before} {after}");
        assert!(len > 100_000_000, "{len}");
        assert_eq!(state(&mut conn, 0), "send_bulk");
        if !subject_is_redis() {
            // Bytes that the kernel has accepted are not counted.
            wait_until("the sessions have been looked at", || {
                let bytes: u64 = conn.info("mem_clients_slaves").parse().unwrap();
                (1..20_000_000).contains(&bytes)
            });
        }
        assert!(replica.0.bytes(len).starts_with(b"REDIS"));
        wait_until("the end of its snapshot", || state(&mut conn, 0) == "online");
    });
}

#[test]
fn a_disconnected_replica_leaves_nothing() {
    if subject_is_redis() {
        return; // its snapshot continues without replicas
    }
    each_backend(
        || with_workers(2).set("rdbcompression", "no"),
        |server| {
            let mut conn = server.connect();
            // The connection has been accepted when the reply arrives.
            assert_reply!(conn, "PING", "PONG");
            let files = server.open_fds();
            // While the snapshot is being created, the replica closes the connection, or only its sending direction.
            make_endless(&mut conn);
            for half in [false, true] {
                let mut replica = Replica::request_sync(server);
                replica.place();
                if half {
                    replica.0.finish_sending();
                    assert_eq!(replica.0.read_to_end().strip_prefix(b"\n"), None);
                }
                drop(replica);
                server.wait_for_info("connected_slaves", |count| count == "0");
                server.wait_for_info("rdb_bgsave_in_progress", |running| running == "0");
            }
            // A replica disconnects with a request that waits for the end of the snapshot.
            let mut replica = Replica::request_sync(server);
            replica.place();
            replica.0.send("GET key:1");
            drop(replica);
            server.wait_for_info("rdb_bgsave_in_progress", |running| running == "0");
            // Another replica stays connected.
            let mut disconnected = Replica::request_sync(server);
            disconnected.place();
            let kept = Replica::request_sync(server);
            // The next snapshot may begin immediately, so remove the delay before that.
            delay(&mut conn, 0);
            drop(disconnected);
            server.wait_for_info("connected_slaves", |count| count == "1");
            let mut kept = kept;
            kept.place();
            kept.snapshot();
            drop(kept);
            server.wait_for_info("connected_slaves", |count| count == "0");
            // The replica disconnects during the transfer.
            assert_reply!(conn, "DEBUG POPULATE 3000 large 10000", "OK");
            let mut replica = Replica::request_sync(server);
            replica.place();
            let len = replica.head();
            assert!(len > 30_000_000);
            replica.0.bytes(1_000_000);
            assert_eq!(state(&mut conn, 0), "send_bulk");
            drop(replica);
            server.wait_for_info("connected_slaves", |count| count == "0");
            wait_until("its file to be closed", || server.open_fds() <= files);
            server.wait_for_info("mem_not_counted_for_evict", |bytes| bytes == "0");
            assert_reply!(conn, "BGSAVE", "Background saving started");
        },
    );
}

#[test]
fn the_log_names_a_replica_whose_connection_is_lost() {
    let server = with_workers(2).start();
    let mut replica = server.connect();
    assert_reply!(replica, "REPLCONF listening-port 6399", "OK");
    replica.send("PSYNC ? -1");
    server.wait_for_info("connected_slaves", |count| count == "1");
    drop(replica);
    let line = "# Connection with replica 127.0.0.1:6399 lost.";
    wait_until("the line in the log", || server.log().contains(line));
}

/// Messages for a client that is receiving a snapshot follow the snapshot.
#[test]
fn no_message_is_sent_within_the_snapshot() {
    if subject_is_redis() {
        return; // it sends messages that arrive during it with the first part of the stream
    }
    each_backend(
        || with_workers(2),
        |server| {
            let mut conn = server.connect();
            fill(&mut conn, 100, 5_000);
            let mut replica = Replica(server.connect());
            replica.0.send_raw(b"HELLO 3\r\nSUBSCRIBE channel\r\nPSYNC ? -1\r\n");
            replica.0.reply();
            replica.0.reply();
            replica.place();
            conn.cmd("PUBLISH channel message");
            conn.cmd("SET key:1 1");
            replica.snapshot();
            let mut rest = String::new();
            let expected = [">3\r\n$7\r\nmessage\r\n", "key:1\r\n"];
            while expected.iter().any(|text| !rest.contains(text)) {
                rest.push(char::from(replica.0.bytes(1)[0]));
            }
        },
    );
}

#[test]
fn output_held_for_a_replica_is_bounded_by_its_class() {
    each_backend(
        || with_workers(2).set("client-output-buffer-limit", "replica 1mb 0 0"),
        |server| {
            let mut conn = server.connect();
            make_endless(&mut conn);
            let mut replica = Replica::request_sync(server);
            replica.place();
            if !subject_is_redis() {
                // Otherwise the stream would be written to a file in this directory.
                take_disk_away(server);
            }
            for n in 0..30 {
                conn.call(&["SET", &format!("large:{n}"), &"x".repeat(100_000)]);
            }
            server.wait_for_info("connected_slaves", |count| count == "0");
            replica.0.read_to_end();
            if !subject_is_redis() {
                server.wait_for_info("rdb_bgsave_in_progress", |running| running == "0");
                // Wait, because the other worker may still hold the buffer of a reply that was just sent.
                server.wait_for_info("mem_not_counted_for_evict", |bytes| bytes == "0");
            }
        },
    );
}

#[test]
fn a_snapshot_that_cannot_be_written_closes_its_replicas_and_nothing_else() {
    if subject_is_redis() {
        return; // the name of its temporary file is not known in advance
    }
    let server = with_workers(2).set("save", "3600 1000000").start();
    let mut conn = server.connect();
    fill(&mut conn, 100_000, 0);
    let temporary = server.dir().join(format!("temp-repl-{}.rdb", server.pid()));
    std::os::unix::fs::symlink("/dev/full", &temporary).unwrap();
    let mut replica = Replica::request_sync(&server);
    replica.place();
    assert!(replica.0.read_to_end().iter().all(|byte| *byte == b'\n'));
    let log = server.log();
    for line in ["No space left on device", "SYNC failed. BGSAVE child returned an error"] {
        assert!(log.contains(line), "{log}");
    }
    // There is no directory for the snapshot.
    take_disk_away(&server);
    let mut replica = Replica::request_sync(&server);
    replica.place();
    assert!(replica.0.read_to_end().iter().all(|byte| *byte == b'\n'));
    assert!(server.log().contains("Failed opening the temp RDB file temp-repl-"));
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "0");
    assert_eq!(conn.info("rdb_last_bgsave_status"), "ok");
    assert_reply!(conn, "SET k v", "OK");
    conn.call(&["CONFIG", "SET", "dir", server.dir().to_str().unwrap()]);
    let mut replica = Replica::request_sync(&server);
    replica.place();
    assert!(replica.snapshot().starts_with(b"REDIS"));
    assert!(!temporary.exists());
}

#[test]
fn a_snapshot_for_replicas_rejects_other_snapshots_but_not_shutdown() {
    // Otherwise Redis would wait until the replica has caught up.
    let server = with_workers(2).set("shutdown-timeout", "0").start();
    let mut conn = server.connect();
    make_endless(&mut conn);
    let mut replica = Replica::request_sync(&server);
    replica.place();
    // Remove the delay for the next snapshots.
    delay(&mut conn, 0);
    for command in ["SAVE", "BGSAVE", "BGSAVE SCHEDULE"] {
        assert_reply!(conn, command, RUNNING);
    }
    let scheduled = "Background append only file rewriting scheduled";
    assert_reply!(conn, "BGREWRITEAOF", scheduled);
    if !subject_is_redis() {
        assert_reply!(conn, "CONFIG SET appendonly yes", "OK");
        assert_eq!(conn.info("aof_rewrite_scheduled"), "1");
        assert_reply!(conn, "CONFIG SET appendonly no", "OK");
        assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
        // Later changes are in the stream, so the snapshot is still useful.
        assert_reply!(conn, "FLUSHALL", "OK");
        assert_reply!(conn, "SET k v", "OK");
        assert_reply!(conn, "DEBUG RELOAD", "OK");
        assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
        assert_eq!(state(&mut conn, 0), "wait_bgsave");
    }
    conn.send("SHUTDOWN SAVE");
    assert_eq!(replica.0.read_to_end().iter().filter(|byte| **byte != b'\n').count(), 0);
    let log = server.ended();
    assert!(log.contains("There is a child saving an .rdb. Killing it!"), "{log}");
}

#[test]
fn flushall_reaches_a_replica_that_is_receiving_its_snapshot() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    fill(&mut conn, 1000, 500);
    let primary = format!("127.0.0.1 {}", server.port());
    let replica = Launch::redis().set("replicaof", &primary).start();
    server.wait_for_info("rdb_bgsave_in_progress", |running| running == "1");
    assert_reply!(conn, "FLUSHALL", "OK");
    assert_reply!(conn, "SET left 1", "OK");
    assert_reply!(conn, "WAIT 1 60000", "(integer) 1");
    let mut follower = replica.connect();
    assert_reply!(follower, "DBSIZE", "(integer) 1");
    assert_eq!(follower.cmd("DEBUG DIGEST").text(), conn.cmd("DEBUG DIGEST").text());
}
