//! MIGRATE between our server and a real Redis, in both directions, and to misbehaving servers.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::with_workers;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long the scripted server waits for more of a request.
const DEADLINE: Duration = Duration::from_secs(20);

/// Commands that create keys of every type.
const KEYS: &[&str] = &[
    "SET string hello",
    "SET number 12345",
    "RPUSH list a b c",
    "SADD set a b c",
    "SADD ints 1 2 3",
    "HSET hash a 1 b 2",
    "ZADD zset 1 a 2 b",
    "XADD stream 1-1 a 1",
    "PFADD hll a b c",
];

fn names() -> Vec<&'static str> {
    KEYS.iter().map(|line| line.split(' ').nth(1).unwrap()).collect()
}

fn to(server: &Server) -> String {
    format!("MIGRATE 127.0.0.1 {}", server.port())
}

#[test]
fn keys_of_all_types_move_to_a_real_server_and_back() {
    let servers = [Launch::subject().start(), Launch::redis().start()];
    for (from, into) in [(&servers[0], &servers[1]), (&servers[1], &servers[0])] {
        let [mut source_conn, mut target_conn] = [from.connect(), into.connect()];
        target_conn.cmd("FLUSHALL");
        KEYS.iter().for_each(|line| assert!(!source_conn.cmd(line).is_error(), "{line}"));
        source_conn.cmd("PEXPIRE string 100000");
        let digests: Vec<String> = names()
            .iter()
            .map(|name| source_conn.cmd(&format!("DEBUG DIGEST-VALUE {name}")).to_string())
            .collect();
        assert_reply!(source_conn, &format!("{} string 3 5000", to(into)), "OK");
        let rest = names()[1..].join(" ");
        assert_reply!(source_conn, &format!("{} '' 3 5000 KEYS missing {rest}", to(into)), "OK");
        assert_reply!(source_conn, "DBSIZE", "(integer) 0");
        target_conn.cmd("SELECT 3");
        for (name, digest) in names().iter().zip(digests) {
            let moved = target_conn.cmd(&format!("DEBUG DIGEST-VALUE {name}")).to_string();
            assert_eq!(moved, digest, "{name}");
        }
        let ttl = target_conn.cmd("PTTL string").integer();
        assert!((1..=100_000).contains(&ttl), "{ttl}");
        assert_reply!(target_conn, "TTL list", "(integer) -1");
    }
}

#[test]
fn existing_keys_stay_unless_replace_is_given() {
    let (source, target) = (Launch::subject().start(), Launch::redis().start());
    let [mut source_conn, mut target_conn] = [source.connect(), target.connect()];
    let to = to(&target);
    assert_reply!(source_conn, &format!("{to} k 0 5000"), "NOKEY");
    assert_reply!(source_conn, &format!("{to} '' 0 5000 KEYS a b"), "NOKEY");
    assert_reply!(source_conn, &format!("{to} '' 0 5000 KEYS"), "NOKEY");
    source_conn.pipeline(&["SET k new", "SET other 1", "SET last 2"]);
    target_conn.cmd("SET k old");
    let busy = "(error) ERR Target instance replied with error: BUSYKEY Target key name already \
                exists.";
    assert_reply!(source_conn, &format!("{to} k 0 5000"), busy);
    // The other keys are migrated anyway.
    assert_reply!(source_conn, &format!("{to} '' 0 5000 KEYS other k last"), busy);
    assert_reply!(source_conn, "EXISTS k other last", "(integer) 1");
    assert_reply!(target_conn, "MGET k other last", "1) \"old\"\n2) \"1\"\n3) \"2\"");
    assert_reply!(source_conn, &format!("{to} k 0 5000 copy replace"), "OK");
    assert_reply!(source_conn, "GET k", "\"new\"");
    assert_reply!(target_conn, "GET k", "\"new\"");
    assert_reply!(source_conn, &format!("{to} k 0 -1 REPLACE"), "OK");
    assert_reply!(source_conn, "GET k", "(nil)");
}

#[test]
fn wrong_options_are_rejected_before_anything_is_sent() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    conn.cmd("SET k v");
    let syntax = "(error) ERR syntax error";
    let number = "(error) ERR value is not an integer or out of range";
    for (options, error) in [
        ("k 0 10 WRONG", syntax),
        ("k 0 10 AUTH", syntax),
        ("k 0 10 AUTH2 user", syntax),
        ("k x 10", number),
        ("k 0 x", number),
        ("k 0 x WRONG", syntax),
        (
            "k 0 10 KEYS k",
            "(error) ERR When using MIGRATE KEYS option, the key argument must be set to the empty \
             string",
        ),
    ] {
        assert_reply!(conn, &format!("MIGRATE 127.0.0.1 1 {options}"), error);
    }
    // Ports without a listener.
    let refused = "(error) IOERR error or timeout writing to target instance";
    for port in ["1", "nonsense"] {
        assert_reply!(conn, &format!("MIGRATE 127.0.0.1 {port} k 0 5000"), refused);
    }
    let unknown = "(error) IOERR error or timeout connecting to the client";
    assert_reply!(conn, "MIGRATE '' 1 k 0 5000", unknown);
    assert_reply!(conn, "GET k", "\"v\"");
}

#[test]
fn passwords_of_migrate_are_sent_but_never_shown() {
    let source = Launch::subject().start();
    let target = Launch::redis().start();
    let [mut source_conn, mut target_conn, mut monitor] =
        [source.connect(), target.connect(), source.connect()];
    target_conn.cmd("CONFIG SET requirepass secret");
    target_conn.cmd("ACL SETUSER mover on >word +@all ~*");
    source_conn.pipeline(&["SET a 1", "SET b 2", "CONFIG SET slowlog-log-slower-than 0"]);
    assert_reply!(monitor, "MONITOR", "OK");
    let to = to(&target);
    let refused = source_conn.cmd(&format!("{to} a 0 5000")).to_string();
    assert!(refused.contains("replied with error: NOAUTH"), "{refused}");
    let refused = source_conn.cmd(&format!("{to} a 0 5000 AUTH wrong")).to_string();
    assert!(refused.contains("replied with error: WRONGPASS"), "{refused}");
    assert_reply!(source_conn, &format!("{to} a 0 5000 AUTH secret"), "OK");
    assert_reply!(source_conn, &format!("{to} '' 0 5000 AUTH2 mover word KEYS b"), "OK");
    source_conn.cmd("PING");
    let mut lines = String::new();
    while !lines.contains("PING") {
        lines += &monitor.reply().text();
    }
    let logged = source_conn.cmd("SLOWLOG GET -1").to_string();
    for shown in [lines, logged] {
        for secret in ["secret", "wrong", "mover", "word"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
        assert!(shown.contains("(redacted)"), "{shown}");
    }
}

#[test]
fn a_transaction_and_a_script_hand_keys_over_too() {
    let (source, target) = (Launch::subject().start(), Launch::redis().start());
    let [mut source_conn, mut target_conn] = [source.connect(), target.connect()];
    let to = to(&target);
    source_conn.pipeline(&["SET a 1", "SET b 2", "MULTI", "APPEND a 0"]);
    source_conn.cmd(&format!("{to} a 0 5000"));
    source_conn.cmd("EXISTS a");
    assert_reply!(source_conn, "EXEC", "1) (integer) 2\n2) OK\n3) (integer) 0");
    let script = "return redis.call('MIGRATE','127.0.0.1',ARGV[1],KEYS[1],0,5000)";
    assert_reply!(source_conn, &format!("EVAL \"{script}\" 1 b {}", target.port()), "OK");
    assert_reply!(target_conn, "MGET a b", "1) \"10\"\n2) \"2\"");
    assert_reply!(source_conn, "DBSIZE", "(integer) 0");
}

/// A scripted server: it reads until a request is complete, and replies when the test lets it.
struct Scripted {
    listener: TcpListener,
}

impl Scripted {
    fn new() -> Scripted {
        Scripted { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn request(&self, rest: &str) -> String {
        format!("MIGRATE 127.0.0.1 {} {rest}", self.listener.local_addr().unwrap().port())
    }

    /// The next connection, and the data received on it up to the end of the first RESTORE of `key`.
    fn accept(&self, replaces: bool) -> (TcpStream, String) {
        self.listener.set_nonblocking(true).unwrap();
        let mut accepted = None;
        wait_until("a server connects", || {
            accepted = self.listener.accept().ok();
            accepted.is_some()
        });
        let (mut socket, _) = accepted.unwrap();
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let end = if replaces { "REPLACE\r\n" } else { "\r\n" };
        let mut text = String::new();
        let mut bytes = [0; 4096];
        while !(text.contains("RESTORE") && text.ends_with(end)) {
            let len = socket.read(&mut bytes).unwrap();
            assert!(len > 0, "{text}");
            text += &String::from_utf8_lossy(&bytes[..len]);
        }
        (socket, text)
    }
}

#[test]
fn others_are_served_while_a_server_does_not_reply() {
    if subject_is_redis() {
        return; // It serves no other client during MIGRATE.
    }
    let other = Scripted::new();
    let server = with_workers(1).start();
    let [mut mover, mut reader, mut writer] = server.connections();
    mover.cmd("SET k v");
    mover.send(&other.request("k 0 100000"));
    let (socket, _) = other.accept(false);
    // The key exists until the other server has it, and does not change.
    assert_reply!(reader, "GET k", "\"v\"");
    assert_reply!(reader, "SET elsewhere 1", "OK");
    writer.send("APPEND k w");
    reader.assert_in_step();
    assert_reply!(reader, "GET k", "\"v\"");
    drop(socket);
    assert_eq!(
        mover.reply().to_string(),
        "(error) IOERR error or timeout reading to target instance"
    );
    assert_eq!(writer.reply().to_string(), "(integer) 2");
    assert_reply!(mover, "GET k", "\"vw\"");
}

#[test]
fn a_server_that_never_replies_times_out() {
    if subject_is_redis() {
        return; // It tries twice.
    }
    let other = Scripted::new();
    let server = Launch::subject().start();
    let mut conn = server.connect();
    conn.cmd("SET k v");
    let error = "(error) IOERR error or timeout reading to target instance";
    assert_reply!(conn, &other.request("k 0 50"), error);
    assert_reply!(conn, "GET k", "\"v\"");
}

#[test]
fn keys_changed_during_migrate_are_sent_again() {
    if subject_is_redis() {
        return; // No client can change a key during MIGRATE.
    }
    for kind in ["HSET k f 1", "XADD k 1-1 f 1", "SET k 1"] {
        let other = Scripted::new();
        let server = with_workers(2).start();
        let [mut mover, mut changer] = server.connections();
        mover.cmd(kind);
        mover.send(&other.request("k 0 100000"));
        let (mut socket, _) = other.accept(false);
        changer.pipeline(&["MULTI", "PEXPIRE k 1000000"]);
        assert_reply!(changer, "EXEC", "1) (integer) 1");
        socket.write_all(b"+OK\r\n+OK\r\n").unwrap();
        let (mut socket, again) = other.accept(true);
        assert!(again.contains("REPLACE"), "{again}");
        assert_reply!(changer, "EXISTS k", "(integer) 1");
        socket.write_all(b"+OK\r\n+OK\r\n").unwrap();
        assert_eq!(mover.reply().to_string(), "OK");
        assert_reply!(mover, "EXISTS k", "(integer) 0");
        assert_reply!(mover, "SET k writable", "OK");
    }
}

#[test]
fn a_key_deleted_during_migrate_is_not_an_error() {
    if subject_is_redis() {
        return;
    }
    let other = Scripted::new();
    let server = Launch::subject().start();
    let [mut mover, mut changer] = server.connections();
    mover.cmd("SET k v");
    mover.send(&other.request("k 0 100000"));
    let (mut socket, _) = other.accept(false);
    changer.pipeline(&["MULTI", "DEL k"]);
    assert_reply!(changer, "EXEC", "1) (integer) 1");
    socket.write_all(b"+OK\r\n+OK\r\n").unwrap();
    assert_eq!(mover.reply().to_string(), "OK");
}

#[test]
fn a_client_that_disconnects_during_migrate_leaves_nothing() {
    if subject_is_redis() {
        return;
    }
    let other = Scripted::new();
    let server = Launch::subject().start();
    let [mut mover, mut watcher] = server.connections();
    mover.cmd("SET k v");
    mover.send(&other.request("k 0 100000"));
    let (mut socket, _) = other.accept(false);
    drop(mover);
    socket.write_all(b"+OK\r\n+OK\r\n").unwrap();
    wait_until("the key is gone", || watcher.cmd("EXISTS k").integer() == 0);
    let free = |conn: &mut Conn| conn.info("watching_clients") == "0";
    wait_until("nothing is watched", || free(&mut watcher));
    assert_reply!(watcher, "SET k again", "OK");
}
