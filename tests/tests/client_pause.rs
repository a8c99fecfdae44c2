//! CLIENT PAUSE: which commands wait and which do not, and that all continue in order.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, each_backend, wait_until};
use brisk_tests::with_workers;
use std::time::Duration;

/// A pause that is longer than any test takes.
const LONG: &str = "CLIENT PAUSE 100000";

/// Runs the body with one and with two workers, on each back end.
fn each_server(body: impl Fn(&mut Server)) {
    for workers in if subject_is_redis() { 1..=1 } else { 1..=2 } {
        eprintln!("with {workers} workers:");
        each_backend(|| with_workers(workers), &body);
    }
}

/// The number of clients that are paused.
fn waiting(conn: &mut Conn) -> usize {
    let list = conn.cmd("CLIENT LIST").text();
    list.lines().filter(|line| line.contains(" flags=b ")).count()
}

#[track_caller]
fn wait_for_waiting(conn: &mut Conn, count: usize) {
    wait_until(&format!("{count} clients wait"), || waiting(conn) == count);
}

#[test]
fn a_paused_pipeline_continues_where_it_stopped() {
    each_server(|server| {
        let mut control = server.connect();
        let mut writers: [Conn; 6] = server.connections();
        assert_reply!(control, &format!("{LONG} WRITE"), "OK");
        for (at, writer) in writers.iter_mut().enumerate() {
            let key = format!("k{at}");
            writer.send_raw(
                format!("GET {key}\r\nSET {key} 1\r\nINCR {key}\r\nGET {key}\r\n").as_bytes(),
            );
            // Commands before the first write get their replies.
            assert_eq!(writer.reply().to_string(), "(nil)");
        }
        wait_for_waiting(&mut control, 6);
        // Commands that arrive during the pause are queued.
        for (at, writer) in writers.iter_mut().enumerate() {
            writer.send(&format!("INCR k{at}"));
        }
        assert_reply!(control, "GET k0", "(nil)");
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        for writer in &mut writers {
            let replies: Vec<String> = (0..4).map(|_| writer.reply().to_string()).collect();
            assert_eq!(replies, ["OK", "(integer) 2", "\"2\"", "(integer) 3"]);
            writer.assert_in_step();
        }
        assert_eq!(waiting(&mut control), 0);
    });
}

#[test]
fn a_pause_ends_by_itself_for_all_that_wait() {
    each_server(|server| {
        let mut control = server.connect();
        let mut others: [Conn; 6] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 200 ALL", "OK");
        for other in &mut others {
            other.send_raw(b"SET k v\r\nGET k\r\nPING\r\n");
        }
        // The client that sent CLIENT PAUSE waits too.
        assert_reply!(control, "PING", "PONG");
        for other in &mut others {
            let replies: Vec<String> = (0..3).map(|_| other.reply().to_string()).collect();
            assert_eq!(replies, ["OK", "\"v\"", "PONG"]);
        }
    });
}

#[test]
fn everything_waits_for_the_end_of_a_pause_of_all_even_unpause() {
    each_server(|server| {
        let [mut control, mut other] = server.connections();
        assert_reply!(control, "CLIENT PAUSE 300", "OK");
        other.send("CLIENT UNPAUSE");
        assert!(!other.has_reply_within(Duration::from_millis(50)));
        assert_eq!(other.reply().to_string(), "OK");
    });
}

#[test]
fn a_second_pause_does_not_weaken_or_shorten_the_first() {
    each_server(|server| {
        let [mut control, mut writer] = server.connections();
        assert_reply!(control, &format!("{LONG} WRITE"), "OK");
        assert_reply!(control, "CLIENT PAUSE 0 WRITE", "OK");
        writer.send("SET k v");
        wait_for_waiting(&mut control, 1);
        assert!(!writer.has_reply_within(Duration::from_millis(20)));
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        assert_eq!(writer.reply().to_string(), "OK");

        // A pause of all commands that has ended does not affect a later pause of writes.
        assert_reply!(control, "CLIENT PAUSE 1 ALL", "OK");
        assert_reply!(control, "PING", "PONG");
        assert_reply!(control, &format!("{LONG} WRITE"), "OK");
        assert_reply!(writer, "GET k", "\"v\"");
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
    });
}

#[test]
fn paused_clients_can_be_killed_or_disconnect() {
    each_server(|server| {
        let [mut control, mut victim, mut deserter] = server.connections();
        let id = victim.id();
        deserter.assert_in_step();
        assert_reply!(control, &format!("{LONG} WRITE"), "OK");
        victim.send("SET victim 1");
        deserter.send("SET deserter 1");
        wait_for_waiting(&mut control, 2);
        if !subject_is_redis() {
            // Redis 7.0 unblocks the client. Later versions do not, because it is not blocked in a command.
            assert_reply!(control, &format!("CLIENT UNBLOCK {id}"), "(integer) 0");
        }
        assert_reply!(control, &format!("CLIENT KILL ID {id}"), "(integer) 1");
        assert_eq!(victim.read_to_end(), b"");
        drop(deserter);
        wait_until("both are gone", || control.cmd("CLIENT LIST").text().lines().count() == 1);
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        assert_reply!(control, "EXISTS victim deserter", "(integer) 0");
    });
}

#[test]
fn monitors_are_not_paused() {
    each_server(|server| {
        let [mut control, mut monitor] = server.connections();
        assert_reply!(monitor, "MONITOR", "OK");
        assert_reply!(control, "CLIENT PAUSE 300", "OK");
        assert_reply!(monitor, "PING", "PONG");
        assert!(monitor.reply().text().ends_with("\"PING\""));
        assert_reply!(control, "PING", "PONG");
    });
}

#[test]
fn bad_arguments_are_rejected() {
    each_server(|server| {
        let mut conn = server.connect();
        for (words, error) in [
            ("x", "ERR timeout is not an integer or out of range"),
            ("1.5", "ERR timeout is not an integer or out of range"),
            ("-1", "ERR timeout is negative"),
            ("10 x", "ERR CLIENT PAUSE mode must be WRITE or ALL"),
            (
                "10 WRITE x",
                "ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.",
            ),
        ] {
            assert_reply!(conn, &format!("CLIENT PAUSE {words}"), format!("(error) {error}"));
        }
        conn.assert_in_step();
        if !subject_is_redis() {
            // In Redis 7.0 this overflows. Later versions reject it.
            let error = "(error) ERR timeout is out of range";
            assert_reply!(conn, "CLIENT PAUSE 9223372036854775807", error);
        }
    });
}

#[test]
fn keys_that_expire_during_a_pause_stay_and_are_not_seen() {
    each_server(|server| {
        let [mut control, mut reader] = server.connections();
        let before = control.info("expired_keys");
        // Within the transaction, the pause applies to later commands.
        for line in ["MULTI", "SET a{t} 1 PX 1", "SET b{t} 1 PX 1", "SET c{t} 1"] {
            control.cmd(line);
        }
        control.cmd(&format!("{LONG} WRITE"));
        control.cmd("EXEC");
        wait_until("both are gone to readers", || {
            reader.cmd("EXISTS a{t} b{t} c{t}").integer() == 1
        });
        assert_reply!(reader, "MGET a{t} c{t}", "1) (nil)\n2) \"1\"");
        assert_reply!(reader, "TTL b{t}", "(integer) -2");
        assert_reply!(reader, "KEYS [ab]*", "(empty array)");
        assert_reply!(control, "DBSIZE", "(integer) 3");
        assert_eq!(control.info("expired_keys"), before);
        assert_reply!(control, "CLIENT UNPAUSE", "OK");
        assert_reply!(reader, "EXISTS a{t} b{t} c{t}", "(integer) 1");
        assert_reply!(control, "DBSIZE", "(integer) 1");
        let expired = |text: &str| text.parse::<u64>().unwrap();
        assert_eq!(expired(&control.info("expired_keys")), expired(&before) + 2);
    });
}
