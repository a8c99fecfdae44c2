//! Replicas: a connection receives the dataset and then every change to it, in one order.

use brisk_testkit::reply::Reply;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::{changes, with_workers};
use std::io::Write;
use std::net::TcpStream;

/// A connection that receives the stream, and the first bytes of the snapshot with which it began.
struct Stream(Conn, String);

impl Stream {
    fn attach(server: &Server) -> Stream {
        let mut conn = server.connect();
        conn.send("SYNC");
        // The server sends occasional newlines until the snapshot begins.
        let head = loop {
            let line = line_of(&mut conn);
            if !line.is_empty() {
                break line;
            }
        };
        let len: usize = head.strip_prefix('$').expect("a length").parse().expect("a number");
        let magic = String::from_utf8_lossy(&conn.bytes(len)[..9]).into_owned();
        Stream(conn, magic)
    }

    /// The next command except PING, as one line. SELECT is returned without its number, which depends on earlier
    /// commands.
    fn next(&mut self) -> String {
        loop {
            let line = match self.0.reply() {
                Reply::Array(words) => words.iter().map(Reply::text).collect::<Vec<_>>().join(" "),
                other => panic!("no command: {other:?}"),
            };
            if !line.eq_ignore_ascii_case("PING") {
                return line;
            }
        }
    }

    #[track_caller]
    fn expect(&mut self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.next().to_lowercase(), line.to_lowercase());
        }
    }
}

fn line_of(conn: &mut Conn) -> String {
    let mut line = Vec::new();
    loop {
        match conn.bytes(1)[0] {
            b'\n' => return String::from_utf8_lossy(&line).trim_end().to_owned(),
            byte => line.push(byte),
        }
    }
}

#[test]
fn changes_arrive_as_commands_that_repeat_them() {
    let server = with_workers(2).set("lazyfree-lazy-expire", "no").start();
    let [mut one, mut two] = server.connections();
    one.cmd("SET before 1");
    let mut stream = Stream::attach(&server);
    one.cmd("SET a 1");
    one.cmd("GET a");
    one.cmd("DEL none");
    stream.expect(&["select 0", "set a 1"]);
    two.cmd("SELECT 3");
    two.cmd("INCRBYFLOAT b 0.5");
    stream.expect(&["select 3", "set b 0.5 keepttl"]);
    one.cmd("MULTI");
    one.cmd("INCR a");
    one.cmd("GET a");
    one.cmd("RPUSH l x");
    one.cmd("EXEC");
    stream.expect(&["multi", "select 0", "incr a", "rpush l x", "exec"]);
    one.cmd("SET a 1 PX 1");
    let set = stream.next();
    assert!(set.to_lowercase().starts_with("set a 1 pxat "), "{set}");
    wait_until("the key to expire", || one.cmd("GET a") == Reply::Null);
    stream.expect(&["del a"]);
    one.cmd("PUBLISH channel message");
    stream.expect(&["publish channel message"]);
    one.cmd("FLUSHALL");
    stream.expect(&["flushall"]);
}

#[test]
fn a_replica_is_not_an_ordinary_client() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let mut stream = Stream::attach(&server);
    // The connection that saw the server start may still be closing.
    wait_until("only one client counts", || conn.info("connected_clients") == "1");
    // These commands are rejected, because a reply would be taken for a part of the stream.
    for (line, name) in [("GET key", "get"), ("PING", "ping"), ("SLOWLOG GET", "slowlog|get")] {
        let mut rogue = Stream::attach(&server);
        rogue.0.send(line);
        assert_eq!(rogue.0.read_to_end(), b"");
        let expected =
            format!("Replica generated a reply to command '{name}', disconnecting it: id=");
        assert!(server.log().contains(&expected), "{line}");
    }
    server.wait_for_info("connected_slaves", |count| count == "1");
    // A replica that is idle stays connected, but an idle ordinary client is closed.
    let mut idle = server.connect();
    conn.cmd("CONFIG SET timeout 1");
    assert_eq!(idle.read_to_end(), b"");
    let mut conn = server.connect();
    conn.cmd("SET after 1");
    stream.expect(&["select 0", "set after 1"]);
    assert_eq!(conn.info("connected_slaves"), "1");
    assert_eq!(conn.info("sync_full"), "4");
}

#[test]
fn debug_replicate_sends_commands_that_are_not_executed() {
    let server = with_workers(2).set("enable-debug-command", "yes").start();
    let mut conn = server.connect();
    // Without replicas, the command has no effect.
    assert_reply!(conn, "DEBUG REPLICATE nonsense 1", "OK");
    let mut stream = Stream::attach(&server);
    conn.cmd("SET a 1");
    assert_reply!(conn, "DEBUG REPLICATE nonsense 2", "OK");
    stream.expect(&["select 0", "set a 1", "nonsense 2"]);
}

#[test]
fn bytes_of_the_stream_sent_to_a_replica_are_counted() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let mut stream = Stream::attach(&server);
    conn.call(&["SET", "a", &"x".repeat(10_000)]);
    stream.expect(&["select 0"]);
    stream.next();
    wait_until("it is shown", || {
        let line = conn.cmd("CLIENT LIST TYPE replica").text();
        let sent = line.split_once("tot-net-out=").and_then(|(_, rest)| rest.split(' ').next());
        sent.is_none_or(|sent| sent.parse::<u64>().is_ok_and(|sent| sent > 10_000))
    });
}

#[test]
fn a_shorter_time_between_pings_is_in_force_at_once() {
    let server = with_workers(2).set("repl-ping-replica-period", "3600").start();
    let mut conn = server.connect();
    let mut stream = Stream::attach(&server);
    conn.cmd("SET a 1");
    stream.expect(&["select 0", "set a 1"]);
    conn.cmd("CONFIG SET repl-ping-replica-period 1");
    assert_eq!(stream.0.reply().elements()[0].text(), "PING");
}

#[test]
fn psync_without_a_number_is_rejected() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let refused = "(error) ERR value is not an integer or out of range";
    assert_reply!(conn, "PSYNC ? first", refused);
    assert!(server.log().contains(" asks for synchronization but with a wrong offset"));
    assert_reply!(conn, "PING", "PONG");
}

/// This is a regression test: a worker used to wait forever for a slot that it held itself.
#[test]
fn after_a_reload_changes_still_reach_replicas() {
    let server = with_workers(1).set("enable-debug-command", "yes").start();
    let mut conn = server.connect();
    let mut stream = Stream::attach(&server);
    for round in 1..4 {
        conn.cmd(&format!("SET a {round}"));
        assert_reply!(conn, "DEBUG RELOAD", "OK");
        assert_reply!(conn, "DEL a", "(integer) 1");
        if round == 1 {
            stream.expect(&["select 0"]);
        }
        stream.expect(&[&format!("set a {round}"), "del a"]);
    }
    assert_eq!(conn.info("connected_slaves"), "1");
}

#[test]
fn a_replica_that_is_silent_is_closed() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    conn.cmd("CONFIG SET repl-timeout 1");
    let mut replica = server.connect();
    replica.send("PSYNC ? -1");
    // The server closes the stream instead of waiting for the replica forever.
    assert!(replica.read_to_end().starts_with(b"+FULLRESYNC "));
    server.wait_for_info("connected_slaves", |count| count == "0");
}

#[test]
fn a_snapshot_has_the_version_that_its_values_need() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).start();
    let mut conn = server.connect();
    conn.cmd("HSET h f v g w");
    assert_eq!(Stream::attach(&server).1, "REDIS0010");
    conn.cmd("HEXPIRE h 1000 FIELDS 1 f");
    assert_eq!(Stream::attach(&server).1, "REDIS0012");
    conn.cmd("HPERSIST h FIELDS 1 f");
    assert_eq!(Stream::attach(&server).1, "REDIS0010");
}

#[test]
fn output_that_waits_for_a_replica_evicts_no_keys() {
    let server = with_workers(2).set("maxmemory-policy", "allkeys-lru").start();
    let mut conn = server.connect();
    for n in 0..2000 {
        conn.call(&["SET", &format!("key:{n}"), &"x".repeat(10_000)]);
    }
    let used: u64 = conn.info("used_memory").parse().expect("a number");
    conn.cmd(&format!("CONFIG SET maxmemory {}", used + 4_000_000));
    // The replica does not read its 20 MB snapshot.
    let mut replica = server.connect();
    replica.send("SYNC");
    server.wait_for_info("connected_slaves", |count| count == "1");
    conn.cmd("SET one 1");
    assert_reply!(conn, "DBSIZE", "(integer) 2001");
    assert_eq!(conn.info("evicted_keys"), "0");
    // The replica itself is not evicted either, but an ordinary client of this size is.
    conn.cmd("CONFIG SET maxmemory-clients 1mb");
    let mut greedy = TcpStream::connect(server.address()).expect("it has places left");
    let _may_be_cut_short = greedy
        .write_all(b"*2\r\n$4\r\nECHO\r\n$3000000\r\n")
        .and_then(|()| greedy.write_all(&[b'x'; 2_000_000]));
    wait_until("the client to be evicted", || conn.info("evicted_clients") == "1");
    assert_eq!(conn.info("connected_slaves"), "1");
}

#[test]
fn a_blocked_client_is_served_after_the_command_that_unblocks_it() {
    let server = with_workers(2).start();
    let [mut one, mut two] = server.connections();
    let mut stream = Stream::attach(&server);
    two.send("BLMOVE l m LEFT RIGHT 0");
    server.wait_for_info("blocked_clients", |count| count == "1");
    one.cmd("RPUSH l x");
    two.reply();
    stream.expect(&["select 0", "rpush l x", "lmove l m left right"]);
}

#[test]
fn scripts_are_replicated_as_effects_and_functions_as_libraries() {
    let server = with_workers(2).start();
    let mut conn = server.connect();
    let mut stream = Stream::attach(&server);
    conn.cmd("EVAL \"return redis.call('get', KEYS[1])\" 1 a");
    conn.cmd("EVAL \"return redis.call('incr', KEYS[1])\" 1 a");
    stream.expect(&["select 0", "incr a"]);
    let two = "redis.call('set', 'undeclared', 'x') redis.call('del', KEYS[1]) return 1";
    conn.call(&["EVAL", two, "1", "a"]);
    stream.expect(&["multi", "set undeclared x", "del a", "exec"]);
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    conn.call(&["FUNCTION", "LOAD", code]);
    stream.expect(&[&format!("function load {code}")]);
    assert_reply!(conn, "FCALL f 0", "(integer) 1");
    conn.call(&["FUNCTION", "LOAD", code]);
    conn.cmd("FUNCTION DELETE nothing");
    conn.cmd("FUNCTION DELETE lib");
    conn.cmd("FUNCTION FLUSH");
    stream.expect(&["function delete lib", "function flush"]);
    conn.cmd("MULTI");
    conn.cmd("SET b 1");
    conn.call(&["FUNCTION", "LOAD", code]);
    conn.cmd("EXEC");
    stream.expect(&["multi", "set b 1", &format!("function load {code}"), "exec"]);
}

/// The replica gets the libraries in the snapshot, and later changes to them.
#[test]
fn a_real_redis_follows_functions() {
    let server = with_workers(2).start();
    let [mut conn, mut other] = server.connections();
    let code = |library: &str, name: &str, result: u32| {
        format!(
            "#!lua name={library}\nredis.register_function('{name}', function() return {result} end)"
        )
    };
    conn.call(&["FUNCTION", "LOAD", &code("kept", "k", 1)]);
    conn.call(&["FUNCTION", "LOAD", &code("gone", "g", 1)]);
    let replica = Launch::redis().set("replicaof", &format!("127.0.0.1 {}", server.port())).start();
    replica.wait_for_info("master_link_status", |status| status == "up");
    conn.cmd("FUNCTION DELETE gone");
    other.call(&["FUNCTION", "LOAD", "REPLACE", &code("kept", "k", 2)]);
    conn.call(&["FUNCTION", "LOAD", &code("new", "n", 3)]);
    let Reply::Bulk(payload) = conn.cmd("FUNCTION DUMP") else { panic!("a payload") };
    let offset = || server.info("master_repl_offset");
    let caught_up = || replica.info("slave_repl_offset") == offset();
    wait_until("the replica to have all", caught_up);
    let mut follower = replica.connect();
    let names = |conn: &mut Conn| {
        let listed = conn.cmd("FUNCTION LIST");
        let name = |library: &Reply| library.elements()[1].text();
        let mut names: Vec<String> = listed.elements().into_iter().map(name).collect();
        names.sort();
        names
    };
    assert_eq!(names(&mut follower), ["kept", "new"]);
    let listed = follower.cmd("FUNCTION LIST LIBRARYNAME kept WITHCODE").to_string();
    assert!(listed.contains("return 2"), "{listed}");
    conn.cmd("FUNCTION FLUSH ASYNC");
    wait_until("the replica to have all", caught_up);
    assert_eq!(names(&mut follower), [""; 0]);
    assert_eq!(other.call(&[b"FUNCTION".as_slice(), b"RESTORE", &payload]).to_string(), "OK");
    wait_until("the replica to have all", caught_up);
    assert_eq!(names(&mut follower), ["kept", "new"]);
}

#[test]
fn a_snapshot_and_what_follows_do_not_overlap() {
    let server = with_workers(2).start();
    let [mut one, mut two] = server.connections();
    let mut first = Stream::attach(&server);
    for n in 0..50 {
        one.send(&format!("SET one:{n} x"));
        two.send(&format!("SET two:{n} x"));
    }
    (0..50).for_each(|_| drop((one.reply(), two.reply())));
    let mut second = Stream::attach(&server);
    one.cmd("SET last 1");
    second.expect(&["select 0", "set last 1"]);
    let mut seen = 0;
    loop {
        let line = first.next().to_lowercase();
        if line == "set last 1" {
            break;
        }
        seen += usize::from(line.starts_with("set "));
    }
    assert_eq!(seen, 100);
}

#[test]
fn no_client_can_become_a_replica_within_a_transaction() {
    let server = Launch::subject().start();
    let mut conn = server.connect();
    conn.cmd("MULTI");
    assert_reply!(conn, "SYNC", "(error) ERR Command not allowed inside a transaction");
    conn.cmd("DISCARD");
    assert_reply!(conn, "REPLCONF listening-port", "(error) ERR syntax error");
    assert_reply!(conn, "REPLCONF nothing x", "(error) ERR Unrecognized REPLCONF option: nothing");
    assert_reply!(conn, "REPLCONF listening-port 7000 capa eof", "OK");
    assert_reply!(conn, "PSYNC ? x", "(error) ERR value is not an integer or out of range");
}

#[test]
fn a_real_redis_follows() {
    let server = with_workers(2).set("enable-debug-command", "yes").start();
    let mut conn = server.connect();
    for n in 0..1000 {
        conn.cmd(&format!("SET first:{n} {n}"));
    }
    let replica = Launch::redis()
        .set("replicaof", &format!("127.0.0.1 {}", server.port()))
        .set("enable-debug-command", "yes")
        .start();
    replica.wait_for_info("master_link_status", |status| status == "up");
    std::thread::scope(|scope| {
        for client in 0..4 {
            let server = &server;
            scope.spawn(move || changes::make(server, client, |done| done < 2000));
        }
    });
    let offset = || server.info("master_repl_offset");
    wait_until("the replica to have all", || replica.info("slave_repl_offset") == offset());
    let digest = conn.cmd("DEBUG DIGEST").text();
    assert_eq!(replica.connect().cmd("DEBUG DIGEST").text(), digest);
    assert_eq!(replica.connect().cmd("DBSIZE"), conn.cmd("DBSIZE"));
    if !subject_is_redis() {
        let role = conn.cmd("ROLE");
        let listed = role.elements()[2].elements()[0].elements()[1].text();
        assert!(listed.contains(&replica.port().to_string()), "{listed}");
        // The replica reports its offset once per second.
        wait_until("its word", || conn.info("slave0").contains("state=online"));
    }
    // When the replica is gone, the server still accepts writes.
    replica.terminate();
    server.wait_for_info("connected_slaves", |count| count == "0");
    assert_reply!(conn, "SET after 1", "OK");
}

/// Replicas do not receive data that is not in the append-only file yet, because the primary could lose it.
#[test]
fn a_replica_gets_only_data_that_the_append_only_file_has() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).set("appendonly", "yes").set("appendfsync", "always").start();
    let mut stream = Stream::attach(&server);
    let mut conn = server.connect();
    assert_reply!(conn, "CLIENT DURABILITY MEMORY", "OK");
    assert_reply!(conn, "DEBUG AOF-FLUSH-SLEEP 200000", "OK");
    for n in 0..5 {
        let value = format!("value:{n}");
        assert_reply!(conn, &format!("SET key {value}"), "OK");
        while !stream.next().contains(&value) {}
        let files = std::fs::read_dir(server.dir().join("appendonlydir")).expect("a directory");
        let holds = |path: &std::path::Path| {
            let bytes = std::fs::read(path).expect("a file");
            String::from_utf8_lossy(&bytes).contains(&value)
        };
        let found = files.filter_map(Result::ok).any(|file| holds(&file.path()));
        assert!(found, "{value}");
    }
}
