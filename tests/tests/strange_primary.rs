//! A primary that sends what is no stream of commands: the replica closes the connection, keeps what came
//! before, and asks for what follows it.

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::acted::{ID, asked, asked_with_answer, listen, request};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// A dataset without keys, of version 9, whose checksum is not looked at.
const EMPTY: &[u8] = b"REDIS0009\xff\0\0\0\0\0\0\0\0";
/// The hash slot of the key `kept`.
const KEPT_SLOT: &str = "284";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$1\r\n1\r\n";

/// A replica, who listens as its primary, and the connection by which it was sent an empty dataset and
/// [`SET`].
fn follower() -> (Server, TcpListener, TcpStream) {
    follower_that_hears("+OK\r\n")
}

/// The same, which is answered so to what it tells of itself.
fn follower_that_hears(answer: &str) -> (Server, TcpListener, TcpStream) {
    let (listener, port) = listen();
    let server = Launch::subject().start();
    assert_reply!(server.connect(), &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    let (mut stream, _) = asked_with_answer(&listener, answer);
    let head = format!("+FULLRESYNC {ID} 100\r\n${}\r\n", EMPTY.len());
    stream.write_all(&[head.as_bytes(), EMPTY, SET].concat()).expect("it reads");
    (server, listener, stream)
}

fn encoded(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let words: Vec<String> = words.collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

/// What a comparison that heals says of the slot of the key `kept` if the primary has no keys there.
fn nothing_is_kept() -> String {
    format!("brisk-compare/1 keep {} 0 {KEPT_SLOT}", "0".repeat(32))
}

#[test]
fn what_is_no_command_ends_the_connection_and_what_came_before_is_kept() {
    if subject_is_redis() {
        return;
    }
    let (server, listener, mut stream) = follower();
    let mut conn = server.connect();
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    // Nothing of this is a command, nor what comes behind it.
    for nonsense in [&b"*1\r\n$x\r\n"[..], b"PING\r\n", SET] {
        // It may have closed the connection by now.
        let _ = stream.write_all(nonsense);
    }
    let next = 100 + SET.len() + 1;
    let (mut stream, psync) = asked(&listener);
    assert_eq!(psync, format!("PSYNC {ID} {next}"));
    stream.write_all(b"+CONTINUE\r\n*2\r\n$4\r\nINCR\r\n$4\r\nkept\r\n").expect("it reads");
    wait_until("it goes on", || conn.cmd("GET kept").to_string() == "\"2\"");
    assert_eq!(server.info("master_link_status"), "up");
}

/// Primaries before Redis 7 send scripts as clients sent them. What such a script says is not the primary's.
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
fn while_writes_are_paused_nothing_is_healed() {
    if subject_is_redis() {
        return;
    }
    let (server, _listener, mut stream) = follower();
    let mut conn = server.connect();
    wait_until("the command has come", || conn.cmd("GET kept").to_string() == "\"1\"");
    let before = conn.info("slave_repl_offset").parse::<usize>().expect("a number");
    assert_reply!(conn, "CLIENT PAUSE 100000 WRITE", "OK");
    // What stands before it is no write, and shows that its turn has come.
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

/// What it finds in comparisons is more than the kernel takes of it while its primary does not read.
#[test]
fn a_primary_that_does_not_read_is_told_later_or_not_and_the_link_stays() {
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
        server.log().contains("The primary is not told")
    };
    let before = (1..ROUNDS_MAX).find(is_refused).expect("there is an end to what is kept");
    let mut reader = BufReader::new(&stream);
    let (mut next, mut told) = (before, 0);
    // Everything comes that was not refused, whole and in order, and what is found from then on.
    while told <= before {
        let words = request(&mut reader);
        if words[1] == "ACK" {
            next += 1;
            compare(next);
            continue;
        }
        assert_eq!(words[..2], ["REPLCONF", "brisk-compared"]);
        let report: Vec<&str> = words[2].split(' ').collect();
        let round: u64 = report[0].parse().expect("a number");
        assert_eq!((report.len(), round > told), (8 + 1024, true), "{round} behind {told}");
        told = round;
    }
    assert_eq!(server.info("master_link_status"), "up");
}
