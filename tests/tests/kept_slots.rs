//! Slots that a script holds for a long time: clients that need them wait, other clients are served, and there is no
//! deadlock.
//!
//! The assignment of clients to workers matters here, so these tests only run with our server.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Server, assert_reply, wait_until};
use brisk_tests::{one_of_each_worker, with_workers};
use std::time::Duration;

/// A threshold longer than any of these scripts takes.
const NEVER_BUSY: &str = "60000";
/// Time for other clients to get as far as they can. The assertions do not depend on it.
const MEANWHILE: Duration = Duration::from_millis(200);

fn start(workers: usize, busy_threshold_ms: &str) -> Option<Server> {
    let launch = with_workers(workers).set("busy-reply-threshold", busy_threshold_ms);
    (!subject_is_redis()).then(|| launch.start())
}

/// Starts a script that holds the slot of `key` for about `seconds` of CPU time, and then returns `value`.
fn keep(server: &Server, conn: &mut Conn, key: &str, seconds: f64, value: &str) {
    let source = format!(
        "redis.log(redis.LOG_WARNING, 'keeps ' .. KEYS[1]) local began = os.clock() \
         while os.clock() - began < {seconds} do end return {value}"
    );
    let begun = format!("keeps {key}");
    let before = server.log().matches(&begun).count();
    conn.send(&format!("EVAL \"{source}\" 1 {key}"));
    wait_until("the script runs", || server.log().matches(&begun).count() > before);
}

/// A client waits to move an element to `held`, whose slot a script on worker 1 holds. Worker 0 gets the element, so it
/// serves the waiting client as soon as it has the slot. Then worker 2 runs `meanwhile`.
#[track_caller]
fn while_a_waiter_is_being_served(
    server: &Server,
    prepare: impl FnOnce(&mut Conn),
    meanwhile: impl FnOnce(&mut Conn, i64) -> String,
) -> String {
    let mut clients = one_of_each_worker(server, 3);
    let mut waiter = server.connect();
    prepare(&mut waiter);
    let id = waiter.id();
    waiter.send("BLMOVE source held LEFT RIGHT 0");
    let mut probe = server.connect();
    wait_until("it waits", || probe.info("blocked_clients") == "1");
    keep(server, &mut clients[1], "held", 0.5, "'done'");
    clients[0].send("RPUSH source element");
    assert!(!clients[0].has_reply_within(MEANWHILE), "the slot is kept");
    let reported = meanwhile(&mut clients[2], id);
    assert_eq!(clients[1].reply().to_string(), "\"done\"");
    assert_eq!(clients[0].reply().to_string(), "(integer) 1");
    assert_reply!(server.connect(), "PING", "PONG");
    assert_eq!(waiter.reply().to_string(), reported);
    let left = if reported == "\"element\"" { ("0", "1") } else { ("1", "0") };
    assert_reply!(probe, "LLEN source", format!("(integer) {}", left.0));
    assert_reply!(probe, "LLEN held", format!("(integer) {}", left.1));
    reported
}

#[test]
fn a_waiter_is_served_or_unblocked_but_not_both() {
    let Some(server) = start(3, NEVER_BUSY) else { return };
    while_a_waiter_is_being_served(
        &server,
        |_| {},
        |other, id| match other.cmd(&format!("CLIENT UNBLOCK {id}")).integer() {
            0 => "\"element\"".to_owned(),
            _ => "(nil)".to_owned(),
        },
    );
}

#[test]
fn a_user_can_be_changed_while_its_blocked_client_is_served() {
    let Some(server) = start(3, NEVER_BUSY) else { return };
    server.connect().cmd("ACL SETUSER somebody on nopass ~* +@all");
    while_a_waiter_is_being_served(
        &server,
        |waiter| assert_reply!(waiter, "AUTH somebody x", "OK"),
        |other, _| {
            // As in Redis 7.2, permissions are checked again after a command has waited.
            assert_reply!(other, "ACL SETUSER somebody -blmove", "OK");
            "(error) NOPERM User somebody has no permissions to run the 'blmove' command".to_owned()
        },
    );
}

#[test]
fn a_replica_begins_while_a_waiter_is_being_served() {
    let Some(server) = start(3, NEVER_BUSY) else { return };
    let mut replica = None;
    while_a_waiter_is_being_served(
        &server,
        |_| {},
        |other, _| {
            other.cmd("PING");
            let mut conn = server.connect();
            conn.send("SYNC");
            replica = Some(conn);
            "\"element\"".to_owned()
        },
    );
    // The primary sends newlines as keepalives until the snapshot begins.
    let mut replica = replica.unwrap();
    let first = std::iter::repeat_with(|| replica.bytes(1)).find(|byte| byte != b"\n");
    assert_eq!(first.unwrap(), b"$");
}

/// When the script becomes slow, no waiting client gets access to its keys.
#[test]
fn a_script_sees_the_same_at_its_beginning_and_its_end() {
    let Some(server) = start(2, "100") else { return };
    let mut clients = one_of_each_worker(&server, 2);
    let mut waiter = server.connect();
    waiter.send("BLMOVE source held LEFT RIGHT 0");
    let mut probe = server.connect();
    wait_until("it waits", || probe.info("blocked_clients") == "1");
    let source = "local before = redis.call('LLEN', KEYS[1]) local began = os.clock() \
                  redis.log(redis.LOG_WARNING, 'it has begun') \
                  while os.clock() - began < 0.5 do end return {before, redis.call('LLEN', KEYS[1])}";
    clients[1].send(&format!("EVAL \"{source}\" 1 held"));
    wait_until("the script runs", || server.log().contains("it has begun"));
    clients[0].send("RPUSH source element");
    assert_eq!(clients[1].reply().to_string(), "1) (integer) 0\n2) (integer) 0");
    assert_eq!(clients[0].reply().to_string(), "(integer) 1");
    assert_eq!(waiter.reply().to_string(), "\"element\"");
}

#[test]
fn a_script_uses_undeclared_keys_while_another_is_slow() {
    let Some(server) = start(2, "50") else { return };
    let mut clients = one_of_each_worker(&server, 2);
    for seconds in [0.2, 0.0] {
        keep(&server, &mut clients[1], "kept", 0.5, "'done'");
        keep(&server, &mut clients[0], "own", seconds, "redis.call('GET', 'undeclared')");
        assert_eq!(clients[0].reply().to_string(), "(nil)");
        assert_eq!(clients[1].reply().to_string(), "\"done\"");
    }
    assert_reply!(server.connect(), "PING", "PONG");
}

/// A command that is computed by another thread ends while an endless script holds the slot of its destination.
#[test]
fn a_long_command_ends_after_the_script_that_keeps_its_destination() {
    const MEMBERS: usize = 100_000;
    /// Maximum number of attempts. In an attempt, the command may end before the script begins.
    const ATTEMPTS: usize = 50;
    let Some(server) = start(2, "200") else { return };
    let mut clients = one_of_each_worker(&server, 2);
    for key in ["a", "b"] {
        for from in (0..MEMBERS).step_by(1000) {
            let members: Vec<String> = (from..from + 1000).map(|i| format!("{key}{i}")).collect();
            clients[0].cmd(&format!("SADD {key} {}", members.join(" ")));
        }
    }
    let (mut probe, id) = (server.connect(), clients[1].id());
    let begun = "keeps the destination";
    let script = format!("redis.log(redis.LOG_WARNING, '{begun}') while true do end");
    let was_kept = (0..ATTEMPTS).any(|attempt| {
        assert_reply!(clients[1], "PING", "PONG");
        clients[1].send("SUNIONSTORE destination a b");
        // The server would reject the command if it arrived when the script is already slow.
        wait_until("the command is computed", || {
            probe.cmd(&format!("CLIENT LIST ID {id}")).text().contains(" cmd=sunionstore ")
        });
        clients[0].send(&format!("EVAL \"{script}\" 1 destination"));
        wait_until("the script runs", || server.log().matches(begun).count() > attempt);
        let was_kept = !clients[1].has_reply_within(Duration::from_millis(1));
        wait_until("both have ended", || {
            probe.cmd("SCRIPT KILL");
            clients.iter_mut().all(|conn| conn.has_reply_within(Duration::from_millis(10)))
        });
        assert_eq!(clients[1].reply().to_string(), format!("(integer) {}", 2 * MEMBERS));
        assert!(clients[0].reply().to_string().contains("killed by user"));
        assert_reply!(probe, "SCARD destination", format!("(integer) {}", 2 * MEMBERS));
        was_kept
    });
    assert!(was_kept, "the command ended before the script in {ATTEMPTS} attempts");
}
