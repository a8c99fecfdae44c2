//! `repl-diskless-sync`: the snapshot is sent while it is being written, without a file.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::digest::assert_same;
use brisk_testkit::server::{redis_tool, subject_is_redis};
use brisk_testkit::writers::wait_until_nothing_expires;
use brisk_testkit::{Conn, Kind, Launch, Server, assert_reply, wait_until};
use brisk_tests::links::{Node, wait_until_caught_up, while_written_to};
use brisk_tests::snapshots::{make_endless, take_disk_away};
use brisk_tests::with_workers;
use std::process::{Command, Stdio};
use std::time::Duration;

const MARK_LEN: usize = 40;

/// A connection that has sent PSYNC, and reads a snapshot of unknown length.
struct Replica {
    conn: Conn,
    mark: Vec<u8>,
}

impl Replica {
    /// Waits until its snapshot begins.
    fn request_sync(server: &Server) -> Replica {
        Replica::request_sync_on(server.connect())
    }

    /// Like [`Replica::request_sync`], for a replica that requests no keys and only these other parts of the
    /// dataset.
    fn request_sync_of(server: &Server, parts: &str) -> Replica {
        let mut conn = server.connect();
        assert_eq!(conn.call(&["REPLCONF", "rdb-filter-only", parts]).to_string(), "OK");
        Replica::request_sync_on(conn)
    }

    fn request_sync_on(mut conn: Conn) -> Replica {
        assert_reply!(conn, "REPLCONF capa eof capa psync2", "OK");
        conn.send("PSYNC ? -1");
        let mut replica = Replica { conn, mark: Vec::new() };
        let line = replica.line();
        assert!(line.starts_with("+FULLRESYNC "), "{line}");
        let line = replica.line();
        let mark = line.strip_prefix("$EOF:").unwrap_or_else(|| panic!("{line}"));
        assert_eq!(mark.len(), MARK_LEN);
        replica.mark = mark.as_bytes().to_vec();
        replica
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            match self.conn.bytes(1)[0] {
                b'\n' if line.is_empty() => {}
                b'\n' => return String::from_utf8(line).unwrap().trim_end().to_owned(),
                byte => line.push(byte),
            }
        }
    }

    /// The snapshot, without the mark after it.
    fn snapshot(&mut self) -> Vec<u8> {
        let mut bytes = self.conn.bytes(MARK_LEN);
        while !bytes.ends_with(&self.mark) {
            bytes.extend(self.conn.bytes(1));
        }
        bytes.truncate(bytes.len() - MARK_LEN);
        bytes
    }
}

/// A primary that has no disk.
fn diskless(launch: Launch) -> Server {
    // Without save points, because otherwise the server would reject writes after a failed save.
    let server = launch.set("repl-diskless-sync", "yes").set("save", "").start();
    take_disk_away(&server);
    server
}

fn state(conn: &mut Conn, replica: usize) -> String {
    let line = conn.info(&format!("slave{replica}"));
    let state = line.split(',').find_map(|part| part.strip_prefix("state="));
    state.unwrap_or(&line).to_owned()
}

#[test]
fn replicas_of_all_kinds_get_it_from_a_primary_without_a_disk() {
    if subject_is_redis() {
        return;
    }
    let primary = diskless(Kind::Brisk.launch());
    let primary = Node { kind: Kind::Brisk, server: primary };
    let kinds = [Kind::Brisk, Kind::Brisk, Kind::Brisk, Kind::Redis, Kind::Redis, Kind::Valkey];
    let forms = ["disabled", "on-empty-db", "swapdb"].into_iter().cycle();
    let replicas: Vec<Node> = kinds
        .into_iter()
        .zip(forms)
        .filter(|(kind, _)| kind.is_there())
        .map(|(kind, form)| Node::start(kind, |launch| launch.set("repl-diskless-load", form)))
        .collect();
    while_written_to(&primary.server, || {
        replicas.iter().for_each(|replica| replica.follow(primary.server.port()));
        replicas.iter().for_each(Node::wait_until_it_follows);
    });
    wait_until_nothing_expires(&primary.server.address());
    for replica in &replicas {
        wait_until_caught_up(&primary.server, &replica.server);
        if replica.kind.has_digest_of(Kind::Brisk) {
            assert_same(&primary.holder(), &replica.holder());
        }
    }
    let log = primary.server.log();
    assert!(log.contains("Starting BGSAVE for SYNC with target: replicas sockets"), "{log}");
    assert!(!log.contains("target: disk"), "{log}");
}

#[test]
fn the_stream_follows_when_the_replica_has_acknowledged_the_mark() {
    let server = match subject_is_redis() {
        true => with_workers(2).start(),
        false => diskless(with_workers(2)),
    };
    let mut conn = server.connect();
    for n in 0..100 {
        conn.cmd(&format!("SET key:{n} {n}"));
    }
    let mut replica = Replica::request_sync(&server);
    let snapshot = replica.snapshot();
    assert!(snapshot.starts_with(b"REDIS") && snapshot.len() < 5000);
    wait_until("it to be online", || state(&mut conn, 0) == "online");
    assert_reply!(conn, "SET behind 1", "OK");
    let mut pinged = server.connect();
    assert_reply!(pinged, "PING", "PONG");
    assert!(replica.conn.unread().is_empty());
    assert!(!replica.conn.has_reply_within(Duration::from_millis(200)));
    replica.conn.send("REPLCONF ACK 0");
    assert_eq!(replica.conn.reply().to_string().to_lowercase(), "1) \"select\"\n2) \"0\"");
    let next = replica.conn.reply().to_string().to_lowercase();
    assert_eq!(next, "1) \"set\"\n2) \"behind\"\n3) \"1\"");
}

/// A replica that does not support EOF marks needs the length in advance, so the primary writes a file.
#[test]
fn a_replica_that_knows_no_marks_gets_a_length() {
    let server = with_workers(2).set("repl-diskless-sync", "yes").start();
    let mut conn = server.connect();
    conn.send("PSYNC ? -1");
    let mut replica = Replica { conn, mark: Vec::new() };
    assert!(replica.line().starts_with("+FULLRESYNC "));
    let line = replica.line();
    let len: usize = line.strip_prefix('$').unwrap().parse().unwrap();
    assert!(replica.conn.bytes(len).starts_with(b"REDIS"));
}

/// Writes more data than the pipe and all sockets can buffer.
fn fill_much(conn: &mut Conn) {
    assert_reply!(conn, "CONFIG SET rdbcompression no", "OK");
    assert_reply!(conn, "DEBUG POPULATE 6000 key 10000", "OK");
}

#[test]
fn a_replica_that_does_not_read_holds_up_the_others_until_it_is_dropped() {
    if subject_is_redis() {
        return; // its pipes hold more
    }
    let server = diskless(Kind::Brisk.launch());
    let mut conn = server.connect();
    fill_much(&mut conn);
    // Both replicas share a snapshot.
    assert_reply!(conn, "CONFIG SET repl-diskless-sync-delay 60", "OK");
    assert_reply!(conn, "CONFIG SET repl-diskless-sync-max-replicas 2", "OK");
    let follower = Node::start(Kind::Redis, |launch| launch);
    follower.follow(server.port());
    wait_until("it to ask", || conn.info("connected_slaves") == "1");
    let _stalled = Replica::request_sync(&server);
    // The replica is stalled, so the written part of the snapshot is kept in memory, up to the limit.
    wait_until("the writer to wait", || {
        let bytes: u64 = conn.info("current_cow_size").parse().unwrap();
        assert!(bytes < 100 << 20, "{bytes}");
        bytes >= 8 << 20
    });
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
    assert_reply!(conn, "SET k v", "OK");
    assert_eq!(state(&mut conn, 0), "wait_bgsave");
    assert_eq!(follower.server.info("master_link_status"), "down");
    assert_reply!(conn, "CONFIG SET repl-timeout 2", "OK");
    wait_until("it to be dropped", || conn.info("connected_slaves") == "1");
    assert_reply!(conn, "CONFIG SET repl-timeout 60", "OK");
    follower.wait_until_it_follows();
    wait_until_caught_up(&server, &follower.server);
    let log = server.log();
    assert!(log.contains("Disconnecting timedout replica (full sync)"), "{log}");
    assert!(log.contains("Background RDB transfer terminated with success"), "{log}");
    assert_same(&Node { kind: Kind::Brisk, server }.holder(), &follower.holder());
}

/// Compression takes longer than sending, so strings are compressed only while data waits for the replica.
#[test]
fn strings_are_compressed_only_for_a_replica_that_reads_slowly() {
    if subject_is_redis() {
        return; // compresses all strings
    }
    let server = diskless(Kind::Brisk.launch());
    let mut conn = server.connect();
    // Much less than the pipe can buffer.
    assert_reply!(conn, "DEBUG POPULATE 100 key 10000", "OK");
    let snapshot = Replica::request_sync(&server).snapshot();
    assert!(has(&snapshot, &"\0".repeat(5000)), "compressed although no data waited");
    wait_until("the replica to be gone", || conn.info("connected_slaves") == "0");
    // 100 MB, which fit into the pipe and the buffers of the sockets only if they are compressed.
    assert_reply!(conn, "DEBUG POPULATE 10000 key 10000", "OK");
    let _stalled = Replica::request_sync(&server);
    let is_written = "Background RDB transfer terminated with success";
    wait_until("all keys to be written", || server.log().matches(is_written).count() == 2);
    assert_eq!(conn.info("connected_slaves"), "1");
}

#[test]
fn a_replica_that_disconnects_during_a_diskless_sync_leaves_nothing() {
    if subject_is_redis() {
        return;
    }
    let server = diskless(with_workers(2));
    let mut conn = server.connect();
    fill_much(&mut conn);
    let replica = Replica::request_sync(&server);
    wait_until("the writer to wait", || {
        conn.info("current_cow_size").parse::<u64>().unwrap() >= 8 << 20
    });
    drop(replica);
    wait_until("its end", || conn.info("rdb_bgsave_in_progress") == "0");
    assert_eq!(conn.info("connected_slaves"), "0");
    assert!(server.log().contains("Background RDB transfer was canceled"));
    // The next snapshot succeeds.
    let mut replica = Replica::request_sync(&server);
    assert!(replica.snapshot().len() > 60_000_000);
}

/// The tools of Redis support both forms.
#[test]
fn redis_cli_receives_a_diskless_snapshot() {
    for streams in ["yes", "no"] {
        let launch = with_workers(2).set("repl-diskless-sync", streams);
        let server = launch.start();
        let mut conn = server.connect();
        conn.cmd("SET k v");
        let file = server.dir().join("copy.rdb");
        let port = server.port().to_string();
        let cli = redis_tool("redis-cli");
        let copied = Command::new(&cli).args(["-p", &port, "--rdb"]).arg(&file).output().unwrap();
        assert!(copied.status.success(), "{copied:?}");
        let checked = Command::new(redis_tool("redis-check-rdb")).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success() && said.contains("1 keys read"), "{said}");
        let shown = server.dir().join("shown");
        let mut following = Command::new(&cli)
            .args(["-p", &port, "--replica"])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(&shown).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("it to follow", || conn.info("connected_slaves") == "1");
        wait_until("what is changed", || {
            conn.cmd("SET shown 1");
            std::fs::read_to_string(&shown).unwrap().contains("shown")
        });
        following.kill().unwrap();
        following.wait().unwrap();
    }
}

const LIBRARY: &str = "#!lua name=kept\nredis.register_function('one', function() return 1 end)";

/// A key and a library of functions.
fn with_library(launch: Launch) -> Server {
    let server = launch.start();
    let mut conn = server.connect();
    assert_reply!(conn, "SET stays_here 1", "OK");
    assert_eq!(conn.call(&["FUNCTION", "LOAD", LIBRARY]).text(), "kept");
    server
}

fn has(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

/// The output file of `redis-cli --functions-rdb` can be loaded by a server.
#[test]
fn redis_cli_takes_the_functions_alone() {
    for streams in ["yes", "no"] {
        let server = with_library(with_workers(2).set("repl-diskless-sync", streams));
        let file = server.dir().join("functions.rdb");
        let port = server.port().to_string();
        let mut fetch = Command::new(redis_tool("redis-cli"));
        let fetched = fetch.args(["-p", &port, "--functions-rdb"]).arg(&file).output().unwrap();
        assert!(fetched.status.success(), "{fetched:?}");
        let checked = Command::new(redis_tool("redis-check-rdb")).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success() && said.contains("0 keys read"), "{said}");
        let launch = with_workers(2).set("save", "3600 1");
        let mut other = launch.clone().start();
        other.kill_for_now();
        std::fs::copy(&file, other.dir().join("dump.rdb")).unwrap();
        launch.start_again(&mut other);
        let mut conn = other.connect();
        assert_reply!(conn, "FCALL one 0", "(integer) 1");
        assert_reply!(conn, "DBSIZE", "(integer) 0");
    }
}

#[test]
fn a_replica_gets_the_requested_parts_and_then_the_stream() {
    let server = with_library(with_workers(2));
    let mut conn = server.connect();
    for (parts, library) in [("", false), ("functions", true), ("'FUNCTIONS' functions", true)] {
        let mut replica = Replica::request_sync_of(&server, parts);
        let bytes = replica.snapshot();
        assert!(bytes.starts_with(b"REDIS0010"), "{parts}");
        assert_eq!(has(&bytes, "register_function"), library, "{parts}");
        assert!(!has(&bytes, "stays_here"), "{parts}");
        assert_reply!(conn, "SET behind 1", "OK");
        // Wait, because acknowledgements are only accepted once the replica is online. The previous replica is gone.
        wait_until("it is online", || {
            conn.info("connected_slaves") == "1" && state(&mut conn, 0) == "online"
        });
        replica.conn.send("REPLCONF ACK 0");
        let mut next = || replica.conn.reply().to_string().to_lowercase();
        while next() != "1) \"set\"\n2) \"behind\"\n3) \"1\"" {}
    }
    // Other replicas get the whole dataset.
    let bytes = Replica::request_sync(&server).snapshot();
    assert!(has(&bytes, "register_function") && has(&bytes, "stays_here"));
}

#[test]
fn parts_that_are_not_known_are_rejected() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    for (words, want) in [
        (&["rdb-filter-only"][..], "ERR syntax error"),
        (&["rdb-filter-only", "keys"], "ERR Unsupported rdb-filter-only option: keys"),
        (&["rdb-filter-only", "functions x y"], "ERR Unsupported rdb-filter-only option: x"),
        (&["rdb-filter-only", "\"functions"], "ERR Missing rdb-filter-only values"),
        (
            &["rdb-filter-only", "functions", "nothing", "x"],
            "ERR Unrecognized REPLCONF option: nothing",
        ),
    ] {
        let words = [&["REPLCONF"], words].concat();
        assert_eq!(conn.call(&words).to_string(), format!("(error) {want}"), "{words:?}");
    }
    // Parts before the unknown part are accepted.
    for line in ["SYNC", "PSYNC ? -1"] {
        assert_reply!(conn, line, "(error) ERR Filtered replica requires EOF capability");
    }
}

#[test]
fn a_replica_that_requests_no_keys_waits_for_no_other_snapshot() {
    if subject_is_redis() {
        return; // it writes one snapshot after the other
    }
    let server = with_library(with_workers(2));
    let mut conn = server.connect();
    make_endless(&mut conn);
    assert_reply!(conn, "BGSAVE", "Background saving started");
    wait_until("it is begun", || conn.info("rdb_bgsave_in_progress") == "1");
    let mut waiting = server.connect();
    waiting.send("PSYNC ? -1");
    wait_until("it waits", || conn.info("connected_slaves") == "1");
    assert!(has(&Replica::request_sync_of(&server, "functions").snapshot(), "register_function"));
    assert_eq!(state(&mut conn, 0), "wait_bgsave");
    assert_eq!(conn.info("rdb_bgsave_in_progress"), "1");
}
