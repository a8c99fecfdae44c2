//! The end of a server that is called off, insisted upon or refused. What is saved at the end is in
//! `persistence`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;

/// Far more than a test takes.
const ENDLESS_US: &str = "100000000";

fn launch() -> Launch {
    Launch::subject().set("save", "3600 1")
}

/// Names of the files in its directory that are no whole snapshots.
fn unfinished(server: &Server) -> Vec<String> {
    let entries = fs::read_dir(server.dir()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("temp-")).collect()
}

fn fill(conn: &mut Conn) {
    assert_reply!(conn, "MSET a 1 b 2 c 3", "OK");
}

#[test]
fn the_end_that_a_signal_asked_for_can_be_called_off() {
    let server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn);
    assert_reply!(conn, "SHUTDOWN ABORT", "(error) ERR No shutdown in progress.");
    // The timers see to it, and rest.
    assert_reply!(conn, "DEBUG PAUSE-CRON 1", "OK");
    server.signal("TERM");
    wait_until("it is told", || server.log().contains("Received SIGTERM scheduling shutdown..."));
    assert_reply!(conn, "SHUTDOWN ABORT", "OK");
    assert!(server.log().contains("Shutdown manually aborted."), "{}", server.log());
    assert_reply!(conn, "SHUTDOWN ABORT", "(error) ERR No shutdown in progress.");
    assert_reply!(conn, "DEBUG PAUSE-CRON 0", "OK");
    assert_reply!(conn, "SET short 1 PX 1", "OK");
    server.wait_for_info("expired_keys", |count| count == "1");
    assert_reply!(conn, "PING", "PONG");
    server.signal("TERM");
    let log = server.ended();
    assert!(log.contains("DB saved on disk"), "{log}");
}

#[test]
fn who_insists_does_not_wait_for_the_last_snapshot() {
    let mut server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn);
    assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {ENDLESS_US}"), "OK");
    server.signal("INT");
    let name = format!("temp-{}.rdb", server.pid());
    wait_until("it is being saved", || unfinished(&server).contains(&name));
    server.signal("INT");
    wait_until("the server has ended", || !server.is_running());
    assert!(unfinished(&server).is_empty(), "{:?}", unfinished(&server));
    assert!(!server.dir().join("dump.rdb").exists());
    let log = server.log();
    assert!(log.contains("You insist... exiting now."), "{log}");
}

/// What is in no snapshot either would be lost.
#[test]
fn a_server_does_not_end_before_its_append_only_file_has_a_base() {
    let server = launch().set("save", "").set("shutdown-on-sigterm", "default").start();
    let mut conn = server.connect();
    fill(&mut conn);
    assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {ENDLESS_US}"), "OK");
    assert_reply!(conn, "CONFIG SET appendonly yes", "OK");
    server.signal("TERM");
    let said = "Writing initial AOF, can't exit";
    wait_until("it is refused", || server.log().contains(said));
    wait_until("it is being written", || conn.info("aof_rewrite_in_progress") == "1");
    assert_reply!(conn, "SHUTDOWN", "(error) ERR Errors trying to SHUTDOWN. Check logs.");
    assert_reply!(conn, "GET a", "\"1\"");
    conn.send("SHUTDOWN FORCE");
    let dir = server.dir().join("appendonlydir");
    let names = |dir: &std::path::Path| {
        let entries = fs::read_dir(dir).map(|entries| entries.flatten().collect::<Vec<_>>());
        entries.unwrap_or_default().into_iter().map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    let mut server = server;
    wait_until("the server has ended", || !server.is_running());
    let left = names(&dir);
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("temp-rewriteaof")),
        "{left:?}"
    );
    assert!(unfinished(&server).is_empty());
    let log = server.ended();
    assert!(log.contains("Writing initial AOF. Exit anyway."), "{log}");
    assert!(log.contains("There is a child rewriting the AOF. Killing it!"), "{log}");
}

#[test]
fn a_rewrite_does_not_hold_up_the_end() {
    let mut server = launch().set("save", "").set("appendonly", "yes").start();
    let mut conn = server.connect();
    fill(&mut conn);
    assert_reply!(conn, &format!("CONFIG SET rdb-key-save-delay {ENDLESS_US}"), "OK");
    conn.cmd("BGREWRITEAOF");
    wait_until("it is being written", || conn.info("aof_rewrite_in_progress") == "1");
    if subject_is_redis() {
        // Its child waits for each key before it looks for signals.
        assert_reply!(conn, "CONFIG SET rdb-key-save-delay 0", "OK");
    }
    conn.send("SHUTDOWN");
    wait_until("the server has ended", || !server.is_running());
    let files: Vec<String> = fs::read_dir(server.dir().join("appendonlydir"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.iter().all(|name| name.starts_with("appendonly.aof.")), "{files:?}");
    let log = server.ended();
    assert!(log.contains("There is a child rewriting the AOF. Killing it!"), "{log}");
}

/// A script that has written and does not end: neither killed nor waited for.
#[test]
fn a_script_that_does_not_end_keeps_nobody_from_ending_the_server_without_saving() {
    let server = Launch::subject()
        .set("save", "")
        .set("appendonly", "yes")
        .set("busy-reply-threshold", "10")
        .start();
    let (mut script, mut conn) = (server.connect(), server.connect());
    fill(&mut conn);
    script.send("EVAL 'redis.call(\"set\",\"s\",1) while true do end' 0");
    wait_until("it takes long", || conn.cmd("PING").to_string().contains("BUSY"));
    conn.send("SHUTDOWN NOSAVE");
    let log = server.ended();
    assert_eq!(log.matches("User requested shutdown...").count(), 1, "{log}");
}

/// Whoever comes first ends the server; the others must not keep it.
#[test]
fn ends_that_are_asked_for_together_are_one_end() {
    for round in 0..10 {
        let server = launch().set("threads", "3").start();
        let mut conns: Vec<Conn> = (0..6).map(|_| server.connect()).collect();
        fill(&mut conns[0]);
        if round % 2 == 0 {
            server.signal("TERM");
        }
        for (at, conn) in conns.iter_mut().enumerate() {
            let how = if at % 2 == 0 { "SAVE" } else { "NOSAVE" };
            // It may have ended by then.
            let _ = conn.try_send_raw(format!("SHUTDOWN {how}\r\n").as_bytes());
        }
        server.ended();
    }
}

/// Another server can take its place at once.
#[test]
fn nobody_listens_any_more_when_the_connection_of_shutdown_ends() {
    for how in ["NOSAVE", "SAVE"] {
        each_config_of(launch, |server| {
            let mut conn = server.connect();
            fill(&mut conn);
            let address = server.address();
            conn.send(&format!("SHUTDOWN {how}"));
            conn.read_to_end();
            let refused = TcpStream::connect(&address).map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        });
    }
}
