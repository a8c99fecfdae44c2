//! WAIT and WAITAOF, with real replicas and a real disk. (S2, D4)

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::with_workers;

/// A real Redis that replicates from `of`.
fn replica(of: &Server) -> Server {
    let server = Launch::redis().start();
    assert_reply!(server.connect(), &format!("REPLICAOF 127.0.0.1 {}", of.port()), "OK");
    let mut conn = server.connect();
    wait_until("it follows", || conn.info("master_link_status") == "up");
    server
}

/// Reports whether a client of the server is waiting.
fn is_waiting(control: &mut Conn) -> bool {
    control.info("blocked_clients") != "0"
}

#[test]
fn arguments_are_checked_as_by_the_reference() {
    let (ours, theirs) = (with_workers(2).start(), Launch::redis().start());
    let (mut ours, mut theirs) = (ours.connect(), theirs.connect());
    for line in [
        "WAIT",
        "WAIT 1",
        "WAIT a 0",
        "WAIT 0 a",
        "WAIT 0 -1",
        "WAIT 0 0",
        "WAIT -1 0",
        "WAIT 1 10",
        "SET a 1",
        "WAIT 1 10",
        "WAIT 2 10",
        "MULTI",
        "WAIT 1 0",
        "EXEC",
    ] {
        assert_eq!(ours.cmd(line).to_string(), theirs.cmd(line).to_string(), "{line}");
    }
    if subject_is_redis() {
        return; // 7.0 has no WAITAOF.
    }
    // The error text of Redis 7.2.
    let range = "(error) ERR value is out of range, value must between 0 and 1";
    for (line, want) in [
        // The error of Valkey 8. In Redis 7.0, the time overflows.
        ("WAIT 1 9223372036854775807", "(error) ERR timeout is out of range"),
        ("WAITAOF 0 1 9223372036854775807", "(error) ERR timeout is out of range"),
        ("WAITAOF a 0 0", "(error) ERR value is not an integer or out of range"),
        ("WAITAOF 2 0 0", range),
        ("WAITAOF -1 0 0", range),
        ("WAITAOF 0 -1 0", "(error) ERR value is out of range, must be positive"),
        ("WAITAOF 0 0 a", "(error) ERR timeout is not an integer or out of range"),
        ("WAITAOF 0 0 -1", "(error) ERR timeout is negative"),
        (
            "WAITAOF 1 0 0",
            "(error) ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ),
    ] {
        assert_reply!(ours, line, want);
    }
    for (line, want) in [("WAITAOF 0 0 0", [0, 0]), ("WAITAOF 0 1 10", [0, 0])] {
        assert_eq!(numbers(&mut ours, line), want, "{line}");
    }
}

/// The reply of WAITAOF.
fn numbers(conn: &mut Conn, line: &str) -> [i64; 2] {
    let reply = conn.cmd(line);
    let numbers: Vec<i64> = reply.elements().iter().map(|number| number.integer()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{reply}"))
}

#[test]
fn replicas_acknowledge_what_was_written_before() {
    let server = with_workers(2).start();
    let (first, second) = (replica(&server), replica(&server));
    let mut conns: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    for round in 0..50 {
        for (at, conn) in conns.iter_mut().enumerate() {
            conn.send_raw(format!("SET key:{at} {round}\r\nWAIT 2 0\r\n").as_bytes());
        }
        for (at, conn) in conns.iter_mut().enumerate() {
            assert_eq!(conn.reply().to_string(), "OK");
            assert_eq!(conn.reply().integer(), 2);
            for replica in [&first, &second] {
                let got: u32 =
                    replica.connect().cmd(&format!("GET key:{at}")).text().parse().unwrap_or(0);
                assert!(got >= round, "{got} {round}");
            }
        }
    }
    let conn = &mut conns[0];
    // One replica is stopped, but the other one still acknowledges.
    let mut stopped = second.connect();
    assert_reply!(stopped, "CLIENT SETNAME stopped", "OK");
    drop(first);
    wait_until("it is gone", || conn.info("connected_slaves") == "1");
    assert_reply!(conn, "SET more 1", "OK");
    assert_eq!(conn.cmd("WAIT 2 50").integer(), 1);
    assert_eq!(conn.cmd("WAIT 1 0").integer(), 1);
}

#[test]
fn a_wait_ends_by_timeout_unblock_and_with_its_client() {
    let server = with_workers(2).start();
    let mut control = server.connect();
    let mut conn = server.connect();
    assert_reply!(conn, "SET a 1", "OK");
    for (how, want) in [
        ("", "(integer) 0"),
        (" TIMEOUT", "(integer) 0"),
        (" ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        let id = conn.id();
        conn.send("WAIT 1 0");
        wait_until("it waits", || is_waiting(&mut control));
        assert_reply!(control, &format!("CLIENT UNBLOCK {id}{how}"), "(integer) 1");
        assert_eq!(conn.reply().to_string(), want);
        assert_eq!(conn.cmd("PING").to_string(), "PONG");
    }
    conn.send("WAIT 1 0");
    wait_until("it waits", || is_waiting(&mut control));
    drop(conn);
    wait_until("it is forgotten", || !is_waiting(&mut control));
    // A replica that connects later completes the wait.
    let mut conn = server.connect();
    conn.send_raw(b"SET b 1\r\nWAIT 1 0\r\n");
    wait_until("it waits", || is_waiting(&mut control));
    let _replica = replica(&server);
    assert_eq!(conn.reply().to_string(), "OK");
    assert_eq!(conn.reply().integer(), 1);
}

#[test]
fn the_disk_acknowledges_with_every_policy() {
    for policy in ["everysec", "always", "no"] {
        let server = with_workers(2).set("appendonly", "yes").set("appendfsync", policy).start();
        let mut conns: Vec<Conn> = (0..3).map(|_| server.connect()).collect();
        for round in 0..20 {
            for conn in &mut conns {
                conn.send_raw(format!("SET key {round}\r\nWAITAOF 1 0 0\r\n").as_bytes());
            }
            for conn in &mut conns {
                assert_eq!(conn.reply().to_string(), "OK");
                assert_eq!(conn.reply().to_string(), "1) (integer) 1\n2) (integer) 0", "{policy}");
            }
        }
    }
}

#[test]
fn waitaof_fails_when_the_append_only_file_is_turned_off() {
    let server = with_workers(2).set("appendonly", "yes").start();
    let (mut conn, mut control) = (server.connect(), server.connect());
    // No replica will acknowledge.
    conn.send_raw(b"SET a 1\r\nWAITAOF 1 1 0\r\n");
    assert_eq!(conn.reply().to_string(), "OK");
    wait_until("it waits", || is_waiting(&mut control));
    assert_reply!(control, "CONFIG SET appendonly no", "OK");
    assert_eq!(
        conn.reply().to_string(),
        "(error) ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
    );
}
