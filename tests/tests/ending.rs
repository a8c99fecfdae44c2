//! The shutdown of a server: canceling, repeating and rejecting it, and the events that the server waits for. The data
//! saved at shutdown is tested in `persistence`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::matrix::each_config_of;
use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Kind, Launch, Server, assert_reply, wait_until};
use brisk_tests::links::{Node, wait_until_caught_up};
use brisk_tests::with_workers;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;

/// A delay in µs that is far longer than a test takes.
const ENDLESS_US: &str = "100000000";

fn launch() -> Launch {
    Launch::subject().set("save", "3600 1")
}

/// Names of the files in the server's directory that are not complete snapshots.
fn unfinished(server: &Server) -> Vec<String> {
    let entries = fs::read_dir(server.dir()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("temp-")).collect()
}

fn fill(conn: &mut Conn) {
    assert_reply!(conn, "MSET a 1 b 2 c 3", "OK");
}

#[test]
fn a_shutdown_by_signal_can_be_aborted() {
    let server = launch().start();
    let mut conn = server.connect();
    fill(&mut conn);
    assert_reply!(conn, "SHUTDOWN ABORT", "(error) ERR No shutdown in progress.");
    // Timers execute the shutdown. They are paused, so that it can be canceled.
    assert_reply!(conn, "DEBUG PAUSE-CRON 1", "OK");
    server.signal("TERM");
    wait_until("it is logged", || server.log().contains("Received SIGTERM scheduling shutdown..."));
    // Retry, because the line is logged just before the shutdown is scheduled.
    wait_until("it to be called off", || conn.cmd("SHUTDOWN ABORT").to_string() == "OK");
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
fn a_second_sigint_does_not_wait_for_the_last_snapshot() {
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

/// Otherwise data that is in no snapshot would be lost.
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
        // Redis's child process delays each key before it checks for signals.
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

/// A script that has written and does not end cannot be killed, and SHUTDOWN NOSAVE does not wait for it.
#[test]
fn an_endless_script_does_not_prevent_shutdown_nosave() {
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

/// The first request shuts the server down. The others must not prevent it.
#[test]
fn concurrent_shutdown_requests_are_one_shutdown() {
    for round in 0..10 {
        let server = launch().set("threads", "3").start();
        let mut conns: Vec<Conn> = (0..6).map(|_| server.connect()).collect();
        fill(&mut conns[0]);
        if round % 2 == 0 {
            server.signal("TERM");
        }
        for (at, conn) in conns.iter_mut().enumerate() {
            let how = if at % 2 == 0 { "SAVE" } else { "NOSAVE" };
            // The server may already have exited.
            let _ = conn.try_send_raw(format!("SHUTDOWN {how}\r\n").as_bytes());
        }
        server.ended();
    }
}

/// Another server can use the port immediately.
#[test]
fn the_port_is_free_when_the_connection_of_shutdown_closes() {
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

const GIVEN_UP: &str = "(error) ERR Errors trying to SHUTDOWN. Check logs.";
const WAITS: &str = "Waiting for replicas before shutting down.";

/// A primary that waits for its replicas without a time limit, and a replica that has caught up.
struct Pair {
    primary: Server,
    replica: Node,
}

impl Pair {
    fn start(kind: Kind) -> Pair {
        Pair::of(kind, |launch| launch)
    }

    fn of(kind: Kind, launch: impl Fn(Launch) -> Launch) -> Pair {
        let primary = launch(with_workers(2).set("shutdown-timeout", "3600")).start();
        let replica = follower(kind, &primary);
        Pair { primary, replica }
    }

    /// Stops the replica, and writes a key to the primary, which the replica then lacks.
    fn hold_replica(&self) -> Conn {
        let mut conn = self.primary.connect();
        self.replica.server.signal("STOP");
        assert_reply!(conn, "SET held 1", "OK");
        conn
    }

    fn let_replica_go_on(&self) {
        self.replica.server.signal("CONT");
    }
}

fn follower(kind: Kind, primary: &Server) -> Node {
    let replica = Node::start(kind, |launch| launch);
    replica.follow(primary.address().rsplit_once(':').unwrap().1.parse().unwrap());
    wait_until_caught_up(primary, &replica.server);
    replica
}

#[track_caller]
fn wait_for_the_wait(server: &Server) {
    wait_until("the server waits for its replicas", || server.log().contains(WAITS));
}

fn left_ms(conn: &mut Conn) -> Option<i64> {
    let info = conn.cmd("INFO server").text();
    let line = info.lines().find_map(|line| line.strip_prefix("shutdown_in_milliseconds:"))?;
    Some(line.parse().unwrap())
}

#[test]
fn a_replica_has_every_acknowledged_write_before_the_primary_ends() {
    const WRITES: usize = 21;
    let kinds = if subject_is_redis() { [Kind::Redis; 2] } else { [Kind::Redis, Kind::Brisk] };
    for (kind, by_signal) in [(kinds[0], true), (kinds[1], true), (kinds[1], false)] {
        let Pair { primary, replica } = Pair::start(kind);
        let mut conn = primary.connect();
        replica.server.signal("STOP");
        let value = "x".repeat(1_000_000);
        for at in 0..WRITES {
            assert_reply!(conn, &format!("SET k{at} {value}"), "OK");
        }
        assert_eq!(left_ms(&mut conn), None);
        let mut caller = primary.connect();
        if by_signal {
            primary.signal("TERM");
        } else {
            caller.send("SHUTDOWN");
        }
        wait_for_the_wait(&primary);
        assert!(left_ms(&mut conn).is_some_and(|left| left > 0 && left <= 3_600_000));
        replica.server.signal("CONT");
        let log = primary.ended();
        assert!(log.contains("User requested shutdown..."), "{log}");
        assert!(log.contains("1 of 1 replicas are in sync when shutting down."), "{log}");
        assert!(!log.contains("Lagging replica"), "{log}");
        assert_reply!(replica.server.connect(), "DBSIZE", "(integer) 21");
    }
}

#[test]
fn while_replicas_catch_up_writes_wait_until_shutdown_abort() {
    let pair = Pair::start(Kind::Redis);
    let mut conn = pair.hold_replica();
    let [mut first, mut second, mut set, mut eval, mut exec, mut paused] =
        pair.primary.connections();
    first.send("SHUTDOWN NOSAVE");
    wait_for_the_wait(&pair.primary);
    // The options of the first request apply.
    second.send("SHUTDOWN NOW");
    wait_until("both wait", || conn.info("blocked_clients") == "2");
    set.send("SET a 1");
    eval.send("EVAL 'return redis.call(\"set\",\"b\",1)' 0");
    exec.send_raw(b"MULTI\r\nSET c 1\r\nEXEC\r\n");
    assert_eq!(exec.reply().to_string(), "OK");
    // In a transaction, write commands are not even queued.
    wait_until("they wait, too", || {
        let list = conn.cmd("CLIENT LIST").text();
        let flags = |line: &str| {
            line.split(" flags=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
        };
        list.lines().filter(|line| flags(line).contains('b')).count() == 5
    });
    assert_reply!(conn, "GET held", "\"1\"");
    assert_reply!(conn, "SHUTDOWN NONSENSE", "(error) ERR syntax error");
    // The pause requested by clients is independent of the shutdown.
    assert_reply!(conn, "CLIENT UNPAUSE", "OK");
    if !subject_is_redis() {
        // Redis 7.0 crashes here. Later versions send this reply.
        let id = conn.cmd("CLIENT LIST").text();
        let id = id.lines().find(|line| line.contains("cmd=shutdown")).unwrap().to_owned();
        let id = id.split(' ').next().unwrap().trim_start_matches("id=").to_owned();
        assert_reply!(conn, &format!("CLIENT UNBLOCK {id} ERROR"), "(integer) 0");
    }
    assert_reply!(conn, "CLIENT PAUSE 3600000 WRITE", "OK");
    assert!(left_ms(&mut conn).is_some());
    assert_reply!(conn, "SHUTDOWN ABORT", "OK");
    assert_eq!([&mut first, &mut second].map(|one| one.reply().to_string()), [GIVEN_UP; 2]);
    assert_eq!(left_ms(&mut conn), None);
    assert_reply!(conn, "SHUTDOWN ABORT", "(error) ERR No shutdown in progress.");
    paused.send("SET d 1");
    assert_reply!(conn, "MGET a b c d", "1) (nil)\n2) (nil)\n3) (nil)\n4) (nil)");
    assert_reply!(conn, "CLIENT UNPAUSE", "OK");
    for conn in [&mut set, &mut paused, &mut eval] {
        assert_eq!(conn.reply().to_string(), "OK");
    }
    assert_eq!(exec.reply().to_string(), "QUEUED");
    assert_eq!(exec.reply().to_string(), "1) OK");
    assert_reply!(first, "PING", "PONG");
    assert!(pair.primary.log().contains("Shutdown manually aborted."));
    pair.let_replica_go_on();
    wait_until_caught_up(&pair.primary, &pair.replica.server);
    // A shutdown can be requested again.
    first.send("SHUTDOWN");
    assert!(pair.primary.ended().contains("1 of 1 replicas are in sync"));
}

#[test]
fn replicas_are_waited_for_no_longer_than_the_timeout_says() {
    let pair = Pair::of(Kind::Redis, |launch| launch.set("shutdown-timeout", "1"));
    pair.hold_replica();
    pair.primary.signal("TERM");
    let log = pair.primary.ended();
    assert!(log.contains(WAITS), "{log}");
    let said = format!("Lagging replica {} reported offset ", pair.replica.server.address());
    let line = log.lines().find(|line| line.contains(&said)).unwrap_or_else(|| panic!("{log}"));
    let rest = line.split_once(&said).unwrap().1;
    let (lag_bytes, rest) = rest.split_once(" behind master, lag=").unwrap();
    assert!(lag_bytes.parse::<i64>().unwrap() > 0, "{line}");
    assert!(rest.trim_end().ends_with(", state=online."), "{line}");
    assert!(log.contains("0 of 1 replicas are in sync when shutting down."), "{log}");
    pair.replica.server.signal("CONT");
}

#[test]
fn now_and_a_timeout_of_zero_wait_for_no_replica() {
    for case in ["NOW", "signal", "timeout"] {
        let pair = Pair::start(Kind::Redis);
        let mut conn = pair.hold_replica();
        match case {
            "NOW" => conn.send("SHUTDOWN NOW NOSAVE"),
            "signal" => {
                assert_reply!(conn, "CONFIG SET shutdown-on-sigterm 'nosave now'", "OK");
                pair.primary.signal("TERM");
            }
            _ => {
                assert_reply!(conn, "CONFIG SET shutdown-timeout 0", "OK");
                conn.send("SHUTDOWN");
            }
        }
        let log = pair.primary.ended();
        assert!(!log.contains(WAITS), "{case}: {log}");
        assert!(log.contains("0 of 1 replicas are in sync"), "{case}: {log}");
        pair.replica.server.signal("CONT");
    }
    let server = with_workers(2).set("shutdown-timeout", "3600").start();
    server.signal("TERM");
    let log = server.ended();
    assert!(!log.contains(WAITS) && !log.contains("in sync"), "{log}");
}

#[test]
fn shutdown_waits_for_new_replicas_but_not_for_lost_ones() {
    let pair = Pair::start(Kind::Redis);
    pair.hold_replica();
    pair.primary.signal("TERM");
    wait_for_the_wait(&pair.primary);
    let Pair { primary, replica } = pair;
    let other = follower(Kind::Redis, &primary);
    assert_reply!(other.server.connect(), "GET held", "\"1\"");
    // The new replica is in sync, but the first one is not.
    assert_eq!(primary.info("connected_slaves"), "2");
    replica.server.kill();
    let log = primary.ended();
    assert!(log.contains("1 of 1 replicas are in sync"), "{log}");

    let pair = Pair::start(Kind::Redis);
    pair.hold_replica();
    pair.primary.signal("TERM");
    wait_for_the_wait(&pair.primary);
    let Pair { primary, replica } = pair;
    replica.server.kill();
    let log = primary.ended();
    assert!(!log.contains("in sync"), "{log}");
}

#[test]
fn a_second_shutdown_by_sigint_does_not_wait_for_replicas() {
    let mut pair = Pair::start(Kind::Redis);
    let mut conn = pair.hold_replica();
    conn.send("SHUTDOWN");
    wait_for_the_wait(&pair.primary);
    let logged = |what: &str| pair.primary.log().matches(what).count();
    // The shutdown was not requested by a signal, and SIGTERM may arrive any number of times.
    for count in 1..=2 {
        pair.primary.signal("TERM");
        wait_until("it is logged", || logged("Received SIGTERM scheduling shutdown...") == count);
    }
    assert!(left_ms(&mut pair.primary.connect()).is_some());
    pair.primary.signal("INT");
    wait_until("it has ended", || !pair.primary.is_running());
    assert!(pair.primary.log().contains("You insist... exiting now."));
    assert_eq!(pair.primary.terminate(), Some(1));
    pair.replica.server.signal("CONT");
}

#[test]
fn callers_of_shutdown_get_an_error_if_the_server_cannot_end() {
    let pair = Pair::of(Kind::Redis, |launch| launch.set("rdb-key-save-delay", ENDLESS_US));
    let mut conn = pair.hold_replica();
    let [mut first, mut second, mut writer] = pair.primary.connections();
    first.send("SHUTDOWN");
    second.send("SHUTDOWN");
    wait_until("both wait", || conn.info("blocked_clients") == "2");
    writer.send("SET a 1");
    assert_reply!(conn, "CONFIG SET appendonly yes", "OK");
    pair.let_replica_go_on();
    assert_eq!([&mut first, &mut second].map(|one| one.reply().to_string()), [GIVEN_UP; 2]);
    assert_eq!(writer.reply().to_string(), "OK");
    assert_reply!(first, "PING", "PONG");
    let log = pair.primary.log();
    assert!(log.contains("1 of 1 replicas are in sync"), "{log}");
    assert!(log.contains("Writing initial AOF, can't exit"), "{log}");
    assert!(log.contains("Errors trying to shut down the server."), "{log}");
    wait_until_caught_up(&pair.primary, &pair.replica.server);
    conn.send("SHUTDOWN NOSAVE FORCE");
    pair.primary.ended();
}

#[test]
fn a_replica_waits_for_its_own_replicas() {
    let Pair { primary: middle, replica: last } = Pair::start(Kind::Redis);
    let first = Node::start(Kind::Redis, |launch| launch);
    let port = first.server.address().rsplit_once(':').unwrap().1.to_owned();
    assert_reply!(middle.connect(), &format!("REPLICAOF 127.0.0.1 {port}"), "OK");
    wait_until_caught_up(&first.server, &middle);
    wait_until_caught_up(&middle, &last.server);
    last.server.signal("STOP");
    assert_reply!(first.server.connect(), "SET k 1", "OK");
    wait_until("it has come", || middle.connect().cmd("EXISTS k").integer() == 1);
    middle.signal("TERM");
    wait_for_the_wait(&middle);
    last.server.signal("CONT");
    assert!(middle.ended().contains("1 of 1 replicas are in sync"));
    assert_reply!(last.server.connect(), "EXISTS k", "(integer) 1");
}

/// A script that does not end prevents a real Redis from ever shutting down.
#[test]
fn replicas_catch_up_while_a_script_does_not_end() {
    if subject_is_redis() {
        return;
    }
    let pair = Pair::of(Kind::Redis, |launch| launch.set("busy-reply-threshold", "10"));
    let mut conn = pair.hold_replica();
    let mut script = pair.primary.connect();
    script.send("EVAL 'while true do end' 0");
    wait_until("it takes long", || conn.cmd("PING").to_string().contains("BUSY"));
    conn.send("SHUTDOWN NOSAVE");
    wait_for_the_wait(&pair.primary);
    pair.let_replica_go_on();
    assert!(pair.primary.ended().contains("1 of 1 replicas are in sync"));
    assert_reply!(pair.replica.server.connect(), "EXISTS held", "(integer) 1");
}

/// As with other repeated requests, the options of the first one apply.
#[test]
fn shutdown_now_joins_a_wait_for_replicas_that_a_script_holds_up() {
    let pair = Pair::of(Kind::Redis, |launch| launch.set("busy-reply-threshold", "10"));
    let mut conn = pair.hold_replica();
    let [mut script, mut first, mut second] = pair.primary.connections();
    script.send("EVAL 'while true do end' 0");
    wait_until("it takes long", || conn.cmd("PING").to_string().contains("BUSY"));
    first.send("SHUTDOWN NOSAVE");
    wait_for_the_wait(&pair.primary);
    for how in ["", " NOW", " SAVE NOW FORCE"] {
        let refused = conn.cmd(&format!("SHUTDOWN{how}")).to_string();
        assert!(refused.starts_with("(error) BUSY "), "{how}: {refused}");
    }
    second.send("SHUTDOWN NOSAVE NOW FORCE");
    assert_reply!(conn, "SCRIPT KILL", "OK");
    assert!(script.reply().to_string().contains("killed"));
    wait_until("both wait", || conn.info("blocked_clients") == "2");
    assert_reply!(conn, "SHUTDOWN ABORT", "OK");
    assert_eq!([&mut first, &mut second].map(|one| one.reply().to_string()), [GIVEN_UP; 2]);
    pair.let_replica_go_on();
}

#[test]
fn an_operator_sees_the_wait_and_calls_it_off_while_clients_are_paused() {
    if subject_is_redis() {
        return;
    }
    let lane = Port::claim();
    let port = lane.number().to_string();
    let pair = Pair::of(Kind::Redis, |launch| launch.set("admin-port", &port));
    let mut conn = pair.hold_replica();
    assert_reply!(conn, "CLIENT PAUSE 3600000 ALL", "OK");
    pair.primary.signal("TERM");
    wait_for_the_wait(&pair.primary);
    let mut admin = Conn::tcp(&format!("127.0.0.1:{port}"));
    assert!(left_ms(&mut admin).is_some());
    assert_reply!(admin, "SHUTDOWN ABORT", "OK");
    assert_eq!(left_ms(&mut admin), None);
    assert_reply!(admin, "CLIENT UNPAUSE", "OK");
    admin.send("SHUTDOWN");
    wait_until("it waits again", || pair.primary.log().matches(WAITS).count() == 2);
    pair.let_replica_go_on();
    pair.primary.ended();
}

#[test]
fn options_of_shutdown_that_exclude_each_other_are_rejected() {
    let server = launch().start();
    let mut conn = server.connect();
    let options =
        ["SAVE NOSAVE", "ABORT NOW", "NOSAVE ABORT", "FORCE NOW ABORT", "LATER", "NOW LATER"];
    for options in options {
        assert_reply!(conn, &format!("SHUTDOWN {options}"), "(error) ERR syntax error");
    }
    assert_reply!(conn, "SHUTDOWN abort ABORT", "(error) ERR No shutdown in progress.");
}
