//! Keyspace notifications: the events that each command publishes, and when.
//!
//! `data/keyspace-events.txt` contains the events that Redis 7.0.15 published for each command.

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, wait_until, words};
use brisk_tests::with_workers;
use std::path::Path;

/// A client that receives every message, and one that marks the end of a command's messages.
struct Listener {
    conn: Conn,
    marker: Conn,
    marks: u64,
}

impl Listener {
    fn new(server: &Server) -> Listener {
        let mut conn = server.connect();
        conn.cmd("PSUBSCRIBE *");
        Listener { conn, marker: server.connect(), marks: 0 }
    }

    /// The channel and the payload of the next message.
    fn next(&mut self) -> (String, String) {
        let message = self.conn.reply();
        let words: Vec<String> = message.elements().iter().map(|word| word.text()).collect();
        assert_eq!(words[..2], ["pmessage", "*"]);
        (words[2].clone(), words[3].clone())
    }

    /// The events since the last call, as `EVENT KEY`. Each event has two messages.
    #[track_caller]
    fn events(&mut self) -> Vec<String> {
        self.marks += 1;
        let mark = self.marks.to_string();
        self.marker.call(&["PUBLISH", "mark", &mark]);
        let mut events = Vec::new();
        loop {
            let (channel, payload) = self.next();
            if channel == "mark" {
                assert_eq!(payload, mark);
                return events;
            }
            let of_key =
                channel.strip_prefix("__keyspace@").and_then(|rest| rest.split_once("__:"));
            let (db, key) = of_key.unwrap_or_else(|| panic!("{channel} comes without its key"));
            let second = (format!("__keyevent@{db}__:{payload}"), key.to_owned());
            assert_eq!(self.next(), second);
            let place = if db == "0" { String::new() } else { format!("{db} ") };
            events.push(format!("{place}{payload} {key}"));
        }
    }
}

fn listen_to(conn: &mut Conn, classes: &str) {
    assert_reply!(conn, &format!("CONFIG SET notify-keyspace-events {classes}"), "OK");
}

fn recorded() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/keyspace-events.txt");
    std::fs::read_to_string(path).expect("the record lies beside the tests")
}

#[test]
fn every_command_publishes_the_events_that_redis_publishes() {
    let record = recorded();
    each_config_of(
        || with_workers(2),
        |server| {
            let mut listener = Listener::new(server);
            let mut conn = server.connect();
            let mut waiting: Option<Conn> = None;
            listen_to(&mut conn, "KEAmn");
            for line in record.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let (command, events) = line.split_once(" =>").expect("a command and its events");
                if let Some(command) = command.strip_prefix('@') {
                    let mut waiter = server.connect();
                    waiter.send(command);
                    wait_until("it waits", || conn.info("blocked_clients") == "1");
                    waiting = Some(waiter);
                } else {
                    conn.call(&words::split(command).expect("words"));
                    if let Some(mut waiter) = waiting.take() {
                        waiter.reply();
                        wait_until("it is served", || conn.info("blocked_clients") == "0");
                    }
                }
                // Events of a blocked client may come from another worker, after the reply to the command.
                let expected: Vec<&str> = events.trim_start().split_terminator(", ").collect();
                let mut got = Vec::new();
                wait_until(&format!("the events of {command}"), || {
                    got.extend(listener.events());
                    got.len() >= expected.len()
                });
                assert_eq!(got, expected, "{command}");
            }
        },
    );
}

#[test]
fn only_the_configured_classes_and_channels_are_published() {
    each_config_of(
        || with_workers(2),
        |server| {
            let [mut conn, mut sub] = server.connections();
            let mut marker = server.connect();
            sub.cmd("PSUBSCRIBE *");
            let mut hears = |classes: &str, expected: &[&str]| {
                listen_to(&mut conn, classes);
                for line in ["SET s v", "LPUSH l a", "EXPIRE l 100", "DEL s l", "GET absent"] {
                    conn.cmd(line);
                }
                marker.cmd("PUBLISH mark end");
                let mut channels = Vec::new();
                loop {
                    let channel = sub.reply().elements()[2].text();
                    if channel == "mark" {
                        break;
                    }
                    channels.push(channel);
                }
                assert_eq!(channels, expected, "{classes}");
            };
            hears("K$", &["__keyspace@0__:s"]);
            hears("E$", &["__keyevent@0__:set"]);
            hears("Eg", &["__keyevent@0__:expire", "__keyevent@0__:del", "__keyevent@0__:del"]);
            hears("KEl", &["__keyspace@0__:l", "__keyevent@0__:lpush"]);
            hears("Em", &["__keyevent@0__:keymiss"]);
            hears("En", &["__keyevent@0__:new", "__keyevent@0__:new"]);
            hears("K", &[]);
            hears("A", &[]);
            hears("\"\"", &[]);
        },
    );
}

#[test]
fn an_unread_key_causes_an_event_when_it_expires() {
    each_config_of(
        || with_workers(2),
        |server| {
            let [mut conn, mut sub] = server.connections();
            listen_to(&mut conn, "Ex");
            sub.cmd("PSUBSCRIBE *");
            conn.cmd("SELECT 3");
            for at in 0..20 {
                conn.cmd(&format!("SET k{at} v PX 5"));
            }
            let mut keys: Vec<String> = (0..20)
                .map(|_| {
                    let message = sub.reply();
                    assert_eq!(message.elements()[2].text(), "__keyevent@3__:expired");
                    message.elements()[3].text()
                })
                .collect();
            keys.sort();
            let mut expected: Vec<String> = (0..20).map(|at| format!("k{at}")).collect();
            expected.sort();
            assert_eq!(keys, expected);
        },
    );
}

#[test]
fn evicted_keys_cause_events() {
    each_config_of(
        || with_workers(2),
        |server| {
            let [mut conn, mut sub] = server.connections();
            listen_to(&mut conn, "Ee");
            sub.cmd("SUBSCRIBE __keyevent@0__:evicted");
            let value = "x".repeat(10_000);
            for at in 0..50 {
                conn.cmd(&format!("SET k{at} {value}"));
            }
            conn.cmd("CONFIG SET maxmemory-policy allkeys-random");
            let used: u64 = conn.info("used_memory").parse().expect("a number");
            conn.cmd(&format!("CONFIG SET maxmemory {}", used - 200_000));
            wait_until("some are evicted", || conn.info("evicted_keys") != "0");
            let key = sub.reply().elements()[2].text();
            assert!(key.starts_with('k'), "{key}");
            wait_until("it is gone", || conn.cmd(&format!("EXISTS {key}")).integer() == 0);
        },
    );
}

#[test]
fn a_client_gets_the_event_of_its_own_command_after_the_reply() {
    if subject_is_redis() {
        return; // Before 7.2, Redis sent the events of some commands before their replies.
    }
    each_config_of(
        || with_workers(2),
        |server| {
            let mut conn = server.connect();
            conn.hello(3);
            listen_to(&mut conn, "KEA");
            conn.cmd("SUBSCRIBE __keyevent@0__:set __keyspace@0__:a");
            conn.reply();
            conn.send_raw(b"SET a 1\r\nGET a\r\nDEL a\r\n");
            conn.expect_bytes(b"+OK\r\n");
            conn.expect_bytes(b">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:a\r\n$3\r\nset\r\n");
            conn.expect_bytes(b">3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$1\r\na\r\n");
            conn.expect_bytes(b"$1\r\n1\r\n:1\r\n");
            conn.expect_bytes(b">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:a\r\n$3\r\ndel\r\n");
        },
    );
}

#[test]
fn expiring_fields_cause_events() {
    if subject_is_redis() {
        return; // Fields can expire only since 7.4.
    }
    each_config_of(
        || with_workers(2),
        |server| {
            let mut listener = Listener::new(server);
            let mut conn = server.connect();
            listen_to(&mut conn, "KEA");
            let mut expect_events = |command: &str, events: &[&str]| {
                conn.cmd(command);
                assert_eq!(listener.events(), events, "{command}");
            };
            expect_events("HSET h a 1 b 2 c 3", &["hset h"]);
            expect_events("HEXPIRE h 100 FIELDS 1 a", &["hexpire h"]);
            expect_events("HPERSIST h FIELDS 1 a", &["hpersist h"]);
            expect_events("HPEXPIRE h 100000 FIELDS 1 a", &["hexpire h"]);
            expect_events("HEXPIREAT h 1 FIELDS 1 a", &["hdel h"]);
            expect_events("HEXPIRE h 0 FIELDS 2 b c", &["hdel h", "del h"]);
            expect_events("HSET e a 1 b 2", &["hset e"]);
            conn.cmd("HPEXPIRE e 5 FIELDS 2 a b");
            wait_until("the fields are gone", || conn.cmd("EXISTS e").integer() == 0);
            assert_eq!(listener.events(), ["hexpire e", "hexpired e", "del e"]);
        },
    );
}

#[test]
fn events_of_a_script_that_changes_much_all_arrive() {
    const CHANGES: usize = 10_000;
    let server = with_workers(2).set("notify-keyspace-events", "K$").start();
    let [mut sub, mut conn] = server.connections();
    sub.cmd("SUBSCRIBE __keyspace@0__:k");
    let source = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', KEYS[1], i) end return 1";
    assert_eq!(conn.call(&["EVAL", source, "1", "k", &CHANGES.to_string()]).integer(), 1);
    conn.cmd("PUBLISH __keyspace@0__:k end");
    for _ in 0..CHANGES {
        assert_eq!(sub.reply().elements()[2].text(), "set");
    }
    assert_eq!(sub.reply().elements()[2].text(), "end");
}
