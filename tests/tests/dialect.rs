//! `dialect`: the replies of Valkey 8 where they differ from those of Redis 7.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::{subject_is_redis, workspace_root};
use brisk_testkit::wait::wait_until;
use brisk_testkit::{Launch, assert_reply};
use std::fs;
use std::io::Write;
use std::net::TcpListener;

/// Replies that differ between Redis 7.0 and later versions, or between Brisk and both.
const NOT_AS_REDIS_7_0: &[&str] = &["BITCOUNT missing ", "server.pcall"];

/// The requests, each with the lines of its recorded reply.
fn recorded() -> Vec<(String, String)> {
    let path = workspace_root().join("tests/data/valkey-8.0.1.dialect.txt");
    let mut cases: Vec<(String, String)> = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines().filter(|line| !line.starts_with('#')) {
        if let Some(request) = line.strip_prefix("> ") {
            cases.push((request.to_owned(), String::new()));
        } else {
            let (_, reply) = cases.last_mut().unwrap();
            if !reply.is_empty() {
                reply.push('\n');
            }
            reply.push_str(line);
        }
    }
    assert!(cases.len() > 60, "{} cases", cases.len());
    cases
}

#[test]
fn the_valkey_dialect_replies_as_valkey() {
    if subject_is_redis() {
        return;
    }
    for threads in ["1", "2"] {
        let launch = Launch::subject().set("dialect", "valkey").set("threads", threads);
        let server = launch.start();
        let mut conn = server.connect();
        for (request, reply) in recorded() {
            assert_eq!(conn.cmd(&request).to_string(), reply, "{request}");
        }
    }
}

#[test]
fn the_redis_dialect_replies_as_redis() {
    let (server, real) = (Launch::subject().start(), Launch::redis().start());
    let (mut ours, mut theirs) = (server.connect(), real.connect());
    let mut differ = 0;
    for (request, as_valkey) in recorded() {
        let (our_reply, their_reply) = (ours.cmd(&request), theirs.cmd(&request));
        if NOT_AS_REDIS_7_0.iter().any(|part| request.contains(part)) {
            continue;
        }
        assert_eq!(our_reply.to_string(), their_reply.to_string(), "{request}");
        differ += usize::from(our_reply.to_string() != as_valkey);
    }
    assert!(differ > 30, "only {differ} requests whose replies differ");
}

#[test]
fn a_busy_server_is_called_by_the_name_of_its_dialect() {
    if subject_is_redis() {
        return;
    }
    let launch = Launch::subject().set("dialect", "valkey").set("busy-reply-threshold", "1");
    let server = launch.set("threads", "1").start();
    let [mut busy, mut other] = server.connections();
    busy.send("EVAL 'while true do end' 0");
    let text = "(error) BUSY Valkey is busy running a script. You can only call SCRIPT KILL or \
                SHUTDOWN NOSAVE.";
    wait_until("the script is slow", || other.cmd("PING").to_string() == text);
    assert_reply!(other, "SCRIPT KILL", "OK");
    assert!(busy.reply().is_error());
}

#[test]
fn the_dialect_is_chosen_at_start() {
    if subject_is_redis() {
        return;
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    assert_reply!(conn, "CONFIG GET dialect", "1) \"dialect\"\n2) \"redis\"");
    let text = "(error) ERR CONFIG SET failed (possibly related to argument 'dialect') - can't set \
                immutable config";
    assert_reply!(conn, "CONFIG SET dialect valkey", text);
    // Setting the current value is accepted, for programs that set all directives that they have read.
    assert_reply!(conn, "CONFIG SET dialect redis", "OK");
    let refused = Launch::subject().set("dialect", "klingon").try_start();
    assert!(refused.is_err_and(|log| log.contains("must be one of the following")));
}

#[test]
fn names_of_valkey_are_other_names_of_directives() {
    if subject_is_redis() {
        return;
    }
    let dir = std::env::temp_dir().join(format!("brisk-dialect-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("brisk.conf");
    fs::write(&file, "dialect valkey\nprimaryuser someone\nprimaryauth secret\n").unwrap();
    let server = Launch::subject().set("include", file.to_str().unwrap()).start();
    let mut conn = server.connect();
    for name in ["primaryuser", "masteruser"] {
        assert_eq!(conn.cmd(&format!("CONFIG GET {name}")).field(name).unwrap().text(), "someone");
    }
    assert_eq!(conn.cmd("CONFIG GET masterauth").field("masterauth").unwrap().text(), "secret");
    assert_reply!(conn, "CONFIG SET primaryuser other", "OK");
    assert_eq!(conn.cmd("CONFIG GET masteruser").field("masteruser").unwrap().text(), "other");
    assert_eq!(conn.cmd("CONFIG GET dialect").field("dialect").unwrap().text(), "valkey");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn log_lines_of_replication_name_the_primary_as_the_dialect_does() {
    if subject_is_redis() {
        return;
    }
    for (dialect, upper, lower, other) in
        [("redis", "MASTER", "master", "primary"), ("valkey", "PRIMARY", "primary", "master")]
    {
        let launch = Launch::subject().set("dialect", dialect).set("repl-diskless-sync-delay", "0");
        let primary = launch.clone().start();
        let replica = launch.set("replicaof", &format!("127.0.0.1 {}", primary.port())).start();
        replica.wait_for_info("master_link_status", |status| status == "up");
        primary.terminate();
        let said = |text: &str| wait_until(text, || replica.log().contains(text));
        said(&format!("Connecting to {upper} 127.0.0.1:"));
        said(&format!("{upper} <-> REPLICA sync started"));
        said(&format!("Full resync from {lower}: "));
        said(&format!("{upper} <-> REPLICA sync: Finished with success"));
        said(&format!("Connection with {lower} lost: "));
        assert_reply!(replica.connect(), "REPLICAOF NO ONE", "OK");
        said(&format!("{upper} MODE enabled (user request from 'id="));
        let not_a_primary = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = not_a_primary.local_addr().unwrap().port();
        assert_reply!(replica.connect(), &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
        let (mut link, _) = not_a_primary.accept().unwrap();
        link.write_all(b"-ERR go away\r\n").unwrap();
        said(&format!("Error reply to PING from {lower}: '-ERR go away'"));
        let log = replica.log();
        assert!(!log.to_lowercase().contains(other), "{dialect}: {log}");
    }
}

#[test]
fn a_slow_log_without_room_gives_out_ids_in_redis_and_none_in_valkey() {
    let oldest_id = |launch: Launch| {
        let launch = launch.set("slowlog-max-len", "0").set("slowlog-log-slower-than", "0");
        let server = launch.start();
        let mut conn = server.connect();
        conn.pipeline(&["PING", "PING", "PING"]);
        assert_reply!(conn, "SLOWLOG LEN", "(integer) 0");
        assert_reply!(conn, "CONFIG SET slowlog-max-len 10", "OK");
        let entries = conn.cmd("SLOWLOG GET -1");
        entries.elements().last().unwrap().elements()[0].integer()
    };
    let redis = oldest_id(Launch::redis());
    assert_eq!(oldest_id(Launch::subject()), redis);
    assert!(redis > 0);
    if !subject_is_redis() {
        // As in Valkey 8, where this log is off.
        assert_eq!(oldest_id(Launch::subject().set("dialect", "valkey")), 0);
    }
}

#[test]
fn the_directives_that_only_valkey_has_are_accepted() {
    if subject_is_redis() {
        return;
    }
    let launch = Launch::subject().set("dialect", "valkey");
    let launch = launch.set("enable-debug-assert", "yes").set("hide-user-data-from-log", "yes");
    let server = launch.start();
    let mut conn = server.connect();
    for name in ["enable-debug-assert", "hide-user-data-from-log"] {
        assert_eq!(conn.cmd(&format!("CONFIG GET {name}")).field(name).unwrap().text(), "yes");
    }
}
