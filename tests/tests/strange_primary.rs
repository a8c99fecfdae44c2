//! A primary that sends bytes that are not a stream of commands: the replica closes the connection, keeps the earlier
//! data, and requests the stream from that point on.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::acted::{
    ID, accept_psync, accept_psync_with_replies, accept_psync_with_reply, listen, request,
};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// A dataset without keys, of RDB version 9, whose checksum is not checked.
const EMPTY: &[u8] = b"REDIS0009\xff\0\0\0\0\0\0\0\0";
/// The hash slot of the key `kept`.
const KEPT_SLOT: &str = "284";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$1\r\n1\r\n";

/// A replica, the listener of its fake primary, and the connection over which the replica has received an empty dataset
/// and [`SET`].
fn follower() -> (Server, TcpListener, TcpStream) {
    follower_that_hears("+OK\r\n")
}

/// Like [`follower`], with this reply to everything that the replica reports about itself.
fn follower_that_hears(reply: &str) -> (Server, TcpListener, TcpStream) {
    let (listener, port) = listen();
    let server = Launch::subject().start();
    assert_reply!(server.connect(), &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    let (mut stream, _) = accept_psync_with_reply(&listener, reply);
    let head = format!("+FULLRESYNC {ID} 100\r\n${}\r\n", EMPTY.len());
    stream.write_all(&[head.as_bytes(), EMPTY, SET].concat()).expect("it reads");
    (server, listener, stream)
}

fn encoded(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

/// A dataset with auxiliary fields, and with the key `held` in database `db` if one is given.
fn dataset(fields: &[(&str, &str)], database: Option<u8>) -> Vec<u8> {
    let string = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let mut bytes = b"REDIS0009".to_vec();
    for (name, value) in fields {
        bytes.push(0xfa);
        bytes.extend([string(name), string(value)].concat());
    }
    if let Some(database) = database {
        bytes.extend([0xfe, database, 0]);
        bytes.extend([string("held"), string("1")].concat());
    }
    bytes.push(0xff);
    bytes.extend([0; 8]);
    bytes
}

/// Sends a dataset for offset 100, and the stream after it.
fn send_all(stream: &mut TcpStream, dataset: &[u8], rest: &[u8]) {
    let head = format!("+FULLRESYNC {ID} 100\r\n${}\r\n", dataset.len());
    stream.write_all(&[head.as_bytes(), dataset, rest].concat()).expect("it reads");
}

fn commands(all: &[&[&str]]) -> Vec<u8> {
    all.iter().flat_map(|words| encoded(words)).collect()
}

/// The marker of a healing comparison for the slot of the key `kept` if the primary has no keys there.
fn nothing_is_kept() -> String {
    format!("brisk-compare/1 keep {} 0 {KEPT_SLOT}", "0".repeat(32))
}

#[test]
fn malformed_input_ends_the_link_and_keeps_earlier_commands() {
    if subject_is_redis() {
        return;
    }
    let (server, listener, mut stream) = follower();
    let mut conn = server.connect();
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    // None of this is executed as a command, nor the bytes after it.
    for nonsense in [&b"*1\r\n$x\r\n"[..], b"PING\r\n", SET] {
        // The replica may already have closed the connection.
        let _ = stream.write_all(nonsense);
    }
    let next = 100 + SET.len() + 1;
    let (mut stream, psync) = accept_psync(&listener);
    assert_eq!(psync, format!("PSYNC {ID} {next}"));
    stream.write_all(b"+CONTINUE\r\n*2\r\n$4\r\nINCR\r\n$4\r\nkept\r\n").expect("it reads");
    wait_until("it goes on", || conn.cmd("GET kept").to_string() == "\"2\"");
    assert_eq!(server.info("master_link_status"), "up");
}

/// Primaries before Redis 7 replicate scripts as sent by clients. A script must not be able to imitate messages of the
/// primary.
#[test]
fn a_script_cannot_say_what_only_a_primary_says() {
    if subject_is_redis() {
        return;
    }
    let (server, _listener, mut stream) = follower();
    let mut conn = server.connect();
    let mut send = |words: &[&str]| stream.write_all(&encoded(words)).expect("it reads");
    let marker = nothing_is_kept();
    send(&["EVAL", "return redis.call('PING', ARGV[1])", "0", &marker]);
    send(&["SET", "behind", "1"]);
    wait_until("it to be executed", || conn.cmd("EXISTS behind").to_string() == "(integer) 1");
    assert_reply!(conn, "GET kept", "\"1\"");
    send(&["PING", &marker]);
    send(&["SET", "behind", "2"]);
    wait_until("it to be executed", || conn.cmd("GET behind").to_string() == "\"2\"");
    assert_reply!(conn, "EXISTS kept", "(integer) 0");
}

#[test]
fn while_writes_are_paused_nothing_is_repaired() {
    if subject_is_redis() {
        return;
    }
    let (server, _listener, mut stream) = follower();
    let mut conn = server.connect();
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    let before = conn.info("slave_repl_offset").parse::<usize>().expect("a number");
    assert_reply!(conn, "CLIENT PAUSE 100000 WRITE", "OK");
    // The first PING is executed during the pause. The offset after it shows that the second PING, which changes data,
    // is the next command.
    let ping = encoded(&["PING"]);
    stream
        .write_all(&[&*ping, &encoded(&["PING", &nothing_is_kept()])].concat())
        .expect("it reads");
    let applied = |conn: &mut Conn| conn.info("slave_repl_offset").parse::<usize>();
    wait_until("what is no write", || applied(&mut conn).is_ok_and(|at| at >= before + ping.len()));
    assert_reply!(conn, "GET kept", "\"1\"");
    assert_eq!(applied(&mut conn), Ok(before + ping.len()));
    assert_reply!(conn, "CLIENT UNPAUSE", "OK");
    wait_until("it to be healed", || conn.cmd("EXISTS kept").to_string() == "(integer) 0");
}

/// The replica sends more comparison reports than the kernel buffers while its primary does not read.
#[test]
fn reports_to_a_primary_that_does_not_read_are_delayed_or_dropped() {
    const ROUNDS_MAX: u64 = 5000;
    if subject_is_redis() {
        return;
    }
    let (server, _listener, stream) = follower_that_hears("+OK brisk-compare/1\r\n");
    let digests = " 1".repeat(1024);
    let compare = |round: u64| {
        let secret = "0".repeat(32);
        let slots = format!("brisk-compare/1 slots {round} {secret} 1 0 0{digests}");
        let end = format!("brisk-compare/1 end {round} 0");
        let both = [encoded(&["PING", &slots]), encoded(&["PING", &end])].concat();
        (&stream).write_all(&both).expect("it reads");
        both.len()
    };
    let mut conn = server.connect();
    let executed = |conn: &mut Conn, sent: usize| {
        conn.info("slave_repl_offset") == (100 + SET.len() + sent).to_string()
    };
    let mut sent = 0;
    let is_refused = |round: &u64| {
        sent += compare(*round);
        if !round.is_multiple_of(100) {
            return false;
        }
        wait_until("it to be executed", || executed(&mut conn, sent));
        server.log().contains("cannot be reported to the primary")
    };
    let before = (1..ROUNDS_MAX).find(is_refused).expect("there is an end to what is kept");
    let mut reader = BufReader::new(&stream);
    let (mut next, mut reported) = (before, 0);
    // All reports that were not dropped arrive complete and in order, followed by later reports.
    while reported <= before {
        let words = request(&mut reader);
        if words[1] == "ACK" {
            next += 1;
            compare(next);
            continue;
        }
        assert_eq!(words[..2], ["REPLCONF", "brisk-compared"]);
        let report: Vec<&str> = words[2].split(' ').collect();
        let round: u64 = report[0].parse().expect("a number");
        assert_eq!((report.len(), round > reported), (8 + 1024, true), "{round} behind {reported}");
        reported = round;
    }
    assert_eq!(server.info("master_link_status"), "up");
}

/// A primary may have more databases than its replica. In this case, a Redis replica executes the commands on the
/// previously selected database.
#[test]
fn commands_for_a_missing_database_change_no_other() {
    if subject_is_redis() {
        return;
    }
    /// Auxiliary fields of the dataset, and the commands that follow the dataset.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a [&'a str]]);
    let about_20: &[(&str, &str)] = &[("repl-stream-db", "20")];
    let cases: [Case<'_>; 6] = [
        (about_20, &[&["SET", "a", "1"]]),
        (&[("repl-stream-db", "4294967296")], &[&["SELECT", "20"], &["SET", "a", "1"]]),
        (
            &[],
            &[&["SELECT", "20"], &["SET", "a", "1"], &["EVAL", "redis.call('SET','a','1')", "0"]],
        ),
        (&[], &[&["SELECT", "16"], &["MULTI"], &["SET", "a", "1"], &["FLUSHDB"], &["EXEC"]]),
        (&[], &[&["MULTI"], &["SELECT", "20"], &["SET", "a", "1"], &["EXEC"], &["SET", "a", "2"]]),
        (&[], &[&["SELECT", "-1"], &["SET", "a", "1"], &["SELECT", "x"], &["SET", "a", "2"]]),
    ];
    for (fields, lines) in cases {
        let (listener, port) = listen();
        let server = Launch::subject().start();
        let mut conn = server.connect();
        assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
        let (mut stream, _) = accept_psync(&listener);
        let rest: &[&[&str]] = &[&["SELECT", "3"], &["SET", "b", "1"]];
        let rest = [commands(lines), commands(rest)].concat();
        send_all(&mut stream, &dataset(fields, Some(0)), &rest);
        assert_reply!(conn, "SELECT 3", "OK");
        wait_until("what is for a database that is there", || {
            conn.cmd("GET b").to_string() == "\"1\""
        });
        assert_reply!(conn, "SELECT 0", "OK");
        assert_reply!(conn, "KEYS *", "1) \"held\"");
        assert_eq!(conn.info("master_link_status"), "up");
        assert_eq!(conn.info("slave_repl_offset"), (100 + rest.len()).to_string(), "{lines:?}");
        assert!(server.log().contains("'databases'"), "{}", server.log());
        // The selected database is kept if the connection is lost.
        drop(stream);
        let (mut stream, psync) = accept_psync(&listener);
        assert_eq!(psync, format!("PSYNC {ID} {}", 101 + rest.len()));
        let rest = commands(&[&["SET", "c", "1"], &["SELECT", "20"]]);
        stream.write_all(&[b"+CONTINUE\r\n", &*rest].concat()).expect("it reads");
        assert_reply!(conn, "SELECT 3", "OK");
        wait_until("the stream to go on", || conn.cmd("GET c").to_string() == "\"1\"");
        drop(stream);
        let (mut stream, _) = accept_psync(&listener);
        let rest = commands(&[&["SET", "a", "1"], &["SELECT", "3"], &["SET", "d", "1"]]);
        stream.write_all(&[b"+CONTINUE\r\n", &*rest].concat()).expect("it reads");
        wait_until("the stream to go on", || conn.cmd("GET d").to_string() == "\"1\"");
        assert_reply!(conn, "SELECT 0", "OK");
        assert_reply!(conn, "EXISTS a", "(integer) 0");
    }
}

#[test]
fn a_dataset_with_a_missing_database_is_rejected_and_the_replica_keeps_running() {
    if subject_is_redis() {
        return;
    }
    for load in ["disabled", "on-empty-db", "swapdb"] {
        let (listener, port) = listen();
        let mut server = Launch::subject().set("repl-diskless-load", load).start();
        let mut conn = server.connect();
        assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
        let (mut stream, _) = accept_psync(&listener);
        send_all(&mut stream, &dataset(&[], Some(20)), b"");
        wait_until("the refusal", || server.log().contains("raise `databases`"));
        // The replica reconnects.
        let (mut stream, _) = accept_psync(&listener);
        send_all(&mut stream, &dataset(&[], Some(3)), b"");
        wait_until("what it can hold", || {
            conn.cmd("SELECT 3").to_string() == "OK" && conn.cmd("GET held").to_string() == "\"1\""
        });
        assert!(server.is_running());
    }
}

/// State that the primary's commands registered ends with its connection, not with the next connection.
#[test]
fn state_registered_by_a_primary_ends_with_its_connection() {
    if subject_is_redis() {
        return;
    }
    let (server, listener, mut stream) = follower();
    let mut conn = server.connect();
    let registers = commands(&[
        &["SUBSCRIBE", "c"],
        &["PSUBSCRIBE", "p*"],
        &["SSUBSCRIBE", "s"],
        &["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x"],
        &["CLIENT", "REPLY", "OFF"],
        &["WATCH", "kept"],
        &["MONITOR"],
    ]);
    let unfinished = commands(&[&["MULTI"], &["SET", "unfinished", "1"]]);
    stream.write_all(&[registers.clone(), unfinished].concat()).expect("it reads");
    wait_until("the subscription", || conn.info("pubsub_channels") == "1");
    wait_until("the watch", || conn.info("watching_clients") == "1");
    let rest = |conn: &mut Conn| {
        let fields =
            ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels", "pubsub_clients"];
        let others = ["tracking_clients", "watching_clients", "total_watched_keys"];
        fields.iter().chain(&others).map(|name| conn.info(name)).collect::<Vec<String>>()
    };
    drop(stream);
    wait_until("all of it to end", || rest(&mut conn).iter().all(|count| count == "0"));
    let mut at = 100 + SET.len() + registers.len();
    for round in 0..3 {
        let (mut stream, psync) = accept_psync(&listener);
        assert_eq!(psync, format!("PSYNC {ID} {}", at + 1), "round {round}");
        let again = commands(&[
            &["SUBSCRIBE", "c"],
            &["UNSUBSCRIBE", "c"],
            &["SUBSCRIBE", "c", "d"],
            &["UNSUBSCRIBE"],
            &["UNSUBSCRIBE", "c"],
            &["SUBSCRIBE", "c"],
            &["RESET"],
            &["PSYNC", "?", "-1"],
            &["INCR", "kept"],
        ]);
        stream.write_all(&[b"+CONTINUE\r\n", &*again].concat()).expect("it reads");
        at += again.len();
        let kept = format!("\"{}\"", round + 2);
        wait_until("it to be executed", || conn.cmd("GET kept").to_string() == kept);
        assert_reply!(
            conn,
            "PUBSUB NUMSUB c d",
            "1) \"c\"\n2) (integer) 1\n3) \"d\"\n4) (integer) 0"
        );
        drop(stream);
        wait_until("all of it to end", || rest(&mut conn).iter().all(|count| count == "0"));
    }
    assert_reply!(conn, "EXISTS unfinished", "(integer) 0");
}

/// The values of the test's keys, and the key counts of all databases.
fn held(conn: &mut Conn) -> String {
    let keys = ["after", "x", "inl", "s", "part", "a"]
        .map(|key| conn.cmd(&format!("GET {key}")).to_string());
    format!("{} {}", keys.join(" "), conn.cmd("INFO keyspace").text())
}

/// A newer primary, or one with modules, sends commands that this server does not support. The file must not contain
/// them. A Redis replica restarts with the same values in all these cases, except that it rejects inline requests.
#[test]
fn commands_that_were_not_executed_are_not_in_the_append_only_file_of_the_replica() {
    if subject_is_redis() {
        return;
    }
    let one = |words: &[&[&str]]| commands(words);
    let script = "redis.call('SET', 'part', '1') return redis.call('NOSUCH')";
    let set = &["SET", "x", "1"][..];
    let cases: [(Vec<u8>, &str); 24] = [
        (one(&[&["EXEC"]]), "-"),
        (one(&[&["MULTI"], &["EXEC"], &["EXEC"]]), "-"),
        (one(&[&["MULTI"], set, &["DISCARD"], &["EXEC"]]), "-"),
        (one(&[&["MULTI"], &["NOSUCH"], set, &["EXEC"]]), "-"),
        (one(&[&["MULTI"], &["SET", "x"], &["EXEC"]]), "-"),
        (one(&[&["MULTI"], set, &["RESET"], &["EXEC"]]), "x"),
        (one(&[&["MULTI"], &["MULTI"], set, &["EXEC"]]), "x"),
        (one(&[&["MULTI"], set, &["MULTI"], &["MULTI"], &["SET", "x", "2"], &["EXEC"]]), "x"),
        (one(&[&["MULTI"], &["WATCH", "a"], set, &["EXEC"]]), "x"),
        (one(&[&["MULTI"], &["MULTI"], &["MULTI"], set, &["DISCARD"], &["EXEC"]]), "-"),
        (one(&[&["NOSUCH", "a"]]), "-"),
        (one(&[&["SET", "a"]]), "-"),
        (b"SET inl 1\r\n".to_vec(), "inl"),
        (b"MULTI\r\nSET inl \"a b\"\r\nEXEC\r\n".to_vec(), "inl"),
        ([b"MULTI\r\n".to_vec(), one(&[set, &["EXEC"]])].concat(), "x"),
        ([b"\r\n\r\n".to_vec(), one(&[set])].concat(), "x"),
        ([b"*0\r\n".to_vec(), one(&[set])].concat(), "x"),
        (one(&[&["SET", "s", "1"], &["LPUSH", "s", "1"]]), "s"),
        (one(&[&["EVAL", script, "0"]]), "part"),
        (one(&[&["WATCH", "a"], &["SET", "a", "1"], &["MULTI"], set, &["EXEC"]]), "a"),
        (one(&[&["SELECT", "20"], set, &["SELECT", "0"], &["JSON.SET", "k", "$", "1"]]), "-"),
        (
            one(&[&["SELECT", "20"], &["MULTI"], set, &["FLUSHDB"], &["EXEC"], &["SELECT", "0"]]),
            "-",
        ),
        (one(&[&["MULTI"], &["SELECT", "20"], set, &["EXEC"], &["SELECT", "0"]]), "-"),
        (
            one(&[
                &["MULTI"],
                &["SELECT", "20"],
                set,
                &["SELECT", "0"],
                &["SET", "a", "1"],
                &["EXEC"],
            ]),
            "a",
        ),
    ];
    for (sent, key) in cases {
        let shown = String::from_utf8_lossy(&sent).into_owned();
        let (listener, port) = listen();
        let launch = || Launch::subject().set("appendonly", "yes");
        let mut server = launch().start();
        let mut conn = server.connect();
        assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
        let (mut stream, _) = accept_psync(&listener);
        send_all(&mut stream, EMPTY, SET);
        wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
        wait_until("the file to have its base", || {
            conn.info("aof_rewrite_in_progress") == "0" && conn.info("aof_rewrite_scheduled") == "0"
        });
        // Bytes that are not a request may arrive separately.
        stream.write_all(b"\r\n").expect("it reads");
        let received = (100 + SET.len() + 2).to_string();
        wait_until("the empty line", || conn.info("slave_read_repl_offset") == received);
        let rest = [&b"\r\n"[..], &sent, &one(&[&["SET", "after", "1"]])].concat();
        stream.write_all(&rest[2..]).expect("it reads");
        wait_until("what stands behind it", || conn.cmd("GET after").to_string() == "\"1\"");
        let has = |conn: &mut Conn, key: &str| conn.cmd(&format!("EXISTS {key}")).integer() == 1;
        for other in ["x", "inl", "s", "part", "a"] {
            assert_eq!(has(&mut conn, other), other == key, "{other} {shown}");
        }
        // Each byte counts toward the offset, whether or not its command is executed.
        let offset = (100 + SET.len() + rest.len()).to_string();
        wait_until("the offset", || conn.info("slave_repl_offset") == offset);
        assert_eq!(conn.info("master_link_status"), "up", "{shown}");
        let before = held(&mut conn);
        drop(conn);
        server.kill_for_now();
        launch().start_again(&mut server);
        assert_eq!(held(&mut server.connect()), before, "{shown}");
        // No command in the file fails, except a script, which fails after its writes.
        assert!(key == "part" || !server.log().contains("AOF-loading-client"), "{shown}");
    }
}

#[test]
fn a_transaction_that_is_not_complete_is_held_once() {
    const VALUES: usize = 40;
    const VALUE_BYTES: usize = 2 << 20;
    if subject_is_redis() {
        return;
    }
    let (server, listener, mut stream) = follower();
    let mut conn = server.connect();
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    let before = server.rss();
    let value = "x".repeat(VALUE_BYTES);
    stream.write_all(&encoded(&["MULTI"])).expect("it reads");
    let mut sent = encoded(&["MULTI"]).len();
    for n in 0..VALUES {
        let set = encoded(&["SET", &format!("large:{n}"), &value]);
        stream.write_all(&set).expect("it reads");
        sent += set.len();
    }
    let came = (100 + SET.len() + sent).to_string();
    wait_until("it to be received", || conn.info("slave_read_repl_offset") == came);
    wait_until("it to be taken", || server.log().contains("is not complete"));
    // A real Redis needs 1.8 times the bytes that it received.
    let taken = server.rss().saturating_sub(before);
    assert!(taken < sent as u64 * 18 / 10, "{taken} bytes for {sent}");
    assert_reply!(conn, "EXISTS large:0", "(integer) 0");
    // The link breaks. The transaction is sent again from MULTI on, and its end arrives in pieces.
    drop(stream);
    let (mut stream, psync) = accept_psync(&listener);
    assert_eq!(psync, format!("PSYNC {ID} {}", 101 + SET.len()));
    stream.write_all(b"+CONTINUE\r\n").expect("it reads");
    let mut rest = [commands(&[&["MULTI"], &["INCR", "kept"]]), encoded(&["EXEC"])].concat();
    rest.extend(commands(&[&["MULTI"], &["INCR", "kept"], &["DISCARD"], &["INCR", "kept"]]));
    for piece in rest.chunks(5) {
        stream.write_all(piece).expect("it reads");
    }
    wait_until("it to be executed", || conn.cmd("GET kept").to_string() == "\"3\"");
    let offset = (100 + SET.len() + rest.len()).to_string();
    wait_until("the offset", || conn.info("slave_repl_offset") == offset);
    assert_reply!(conn, "EXISTS large:0", "(integer) 0");
}

/// A Redis replica rejects such a primary. But a primary that cannot save is the one that needs replicas most.
#[test]
fn a_primary_that_cannot_save_is_followed() {
    if subject_is_redis() {
        return;
    }
    let (listener, port) = listen();
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    let misconf = "-MISCONF Errors writing to the AOF file: No space left on device\r\n";
    let (mut stream, _) = accept_psync_with_replies(&listener, misconf, "+OK\r\n");
    send_all(&mut stream, EMPTY, SET);
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    // For other errors, the log still says that the server cannot be used as a primary.
    assert_reply!(conn, "REPLICAOF NO ONE", "OK");
    assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    let (refused, _) = listener.accept().expect("it comes");
    (&refused).write_all(b"-ERR no\r\n").expect("it reads");
    wait_until("it to give up", || {
        server.log().contains("Error reply to PING from master: '-ERR no'")
    });
}

/// Other servers read offsets as signed 64-bit integers. A Redis replica accepts these offsets and overflows.
#[test]
fn an_offset_above_the_maximum_is_rejected() {
    if subject_is_redis() {
        return;
    }
    let (listener, port) = listen();
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_reply!(conn, "SET own 1", "OK");
    assert_reply!(conn, &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    for offset in ["9223372036854775807", "9223372036854775806", "4611686018427387905"] {
        let (mut stream, _) = accept_psync(&listener);
        let head = format!("+FULLRESYNC {ID} {offset}\r\n${}\r\n", EMPTY.len());
        stream.write_all(&[head.as_bytes(), EMPTY].concat()).expect("it reads");
        wait_until("the refusal", || server.log().contains(&format!("{ID} {offset}'")));
        assert_reply!(conn, "GET own", "\"1\"");
    }
    let (mut stream, _) = accept_psync(&listener);
    let head = format!("+FULLRESYNC {ID} 4611686018427387904\r\n${}\r\n", EMPTY.len());
    stream.write_all(&[head.as_bytes(), EMPTY, SET].concat()).expect("it reads");
    wait_until("the largest is followed", || conn.cmd("GET kept").to_string() == "\"1\"");
    let offset = ((1_u64 << 62) + SET.len() as u64).to_string();
    wait_until("the offset", || conn.info("slave_repl_offset") == offset);
    assert_eq!(conn.info("master_link_status"), "up");
    // Replicas of this server may request and acknowledge any offset.
    for next in ["-9223372036854775808", "0", "9223372036854775807"] {
        let mut replica = server.connect();
        replica.send(&format!("PSYNC {ID} {next}"));
        let reply = String::from_utf8_lossy(&replica.bytes(12)).into_owned();
        assert!(
            reply.trim_start().starts_with("+FULLRESYNC") || reply.starts_with("\n"),
            "{reply}"
        );
        replica.send("REPLCONF ACK 9223372036854775807 FACK 9223372036854775807");
        replica.send("REPLCONF ACK -9223372036854775808");
    }
    assert_reply!(conn, "GET kept", "\"1\"");
}
