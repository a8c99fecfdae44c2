//! The admin lane: connections of operators are served no matter what other clients do.
//!
//! A real Redis has no admin lane, so these tests only run with our server.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::port::Port;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};
use brisk_tests::{one_of_each_worker, with_workers};
use std::time::Duration;

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// A server with an admin lane, and its port.
struct Laned {
    server: Server,
    port: Port,
}

impl Laned {
    fn connect(&self) -> Conn {
        Conn::tcp(&format!("127.0.0.1:{}", self.port.number()))
    }
}

fn start(launch: Launch) -> Laned {
    let port = Port::claim();
    let server = launch.set("admin-port", &port.number().to_string()).start();
    Laned { server, port }
}

/// Waits until this number of ordinary clients is connected: the connection that checked the start of the server may
/// not be closed yet.
fn wait_for_clients(admin: &mut Conn, count: &str) {
    wait_until("the clients are connected", || admin.info("connected_clients") == count);
}

#[test]
fn the_admin_lane_accepts_clients_beyond_maxclients() {
    if subject_is_redis() {
        return;
    }
    let lane = start(with_workers(2).set("maxclients", "4").set("admin-maxclients", "2"));
    let mut one = lane.connect();
    wait_for_clients(&mut one, "0");
    let mut others: Vec<Conn> = (0..4).map(|_| lane.server.connect()).collect();
    others.iter_mut().for_each(|conn| assert_reply!(conn, "PING", "PONG"));
    assert_eq!(lane.server.connect().read_to_end(), TOO_MANY);

    let mut two = lane.connect();
    assert_reply!(one, "PING", "PONG");
    assert_reply!(two, "PING", "PONG");
    assert_eq!(one.info("connected_clients"), "4");
    assert_eq!((one.info("admin_clients"), one.info("admin_maxclients")), ("2".into(), "2".into()));
    assert_eq!(one.cmd("CLIENT LIST").text().lines().count(), 6);
    // The number of connections of the lane is limited too.
    assert_eq!(lane.connect().read_to_end(), TOO_MANY);
    drop(two);
    wait_until("the place is free", || one.info("admin_clients") == "1");
    assert_reply!(lane.connect(), "PING", "PONG");

    let id = others[0].id();
    assert_reply!(one, &format!("CLIENT KILL ID {id}"), "(integer) 1");
    others[0].read_to_end();
    assert_reply!(one, "CONFIG SET maxclients 100", "OK");
    assert_reply!(lane.server.connect(), "PING", "PONG");
}

#[test]
fn the_admin_lane_replies_while_all_workers_are_blocked() {
    if subject_is_redis() {
        return;
    }
    let lane = start(with_workers(2));
    let mut waiting = one_of_each_worker(&lane.server, 2);
    let id = waiting[0].id();
    let mut sleeper = lane.server.connect();
    let mut admin = lane.connect();
    wait_for_clients(&mut admin, "3");
    sleeper.send("DEBUG SLEEP 4");
    for conn in &mut waiting {
        wait_until("its worker is held up", || {
            conn.send("PING");
            let has_reply = conn.has_reply_within(Duration::from_millis(200));
            if has_reply {
                conn.reply();
            }
            !has_reply
        });
    }
    for _ in 0..50 {
        assert_reply!(admin, "PING", "PONG");
    }
    assert!(admin.cmd("INFO").text().contains("admin_clients:1"));
    assert_eq!(admin.cmd("CLIENT LIST").text().lines().count(), 4);
    assert_reply!(admin, &format!("CLIENT KILL ID {id}"), "(integer) 1");
    assert!(!sleeper.has_reply_within(Duration::from_millis(1)), "it should still sleep");
    assert_reply!(admin, "SHUTDOWN NOSAVE NOW ABORT", "(error) ERR syntax error");
    assert_eq!(sleeper.reply().to_string(), "OK");
}

#[test]
fn the_admin_lane_replies_while_pipelines_keep_all_workers_busy() {
    if subject_is_redis() {
        return;
    }
    const CLIENTS: usize = 60;
    const COMMANDS: usize = 2_000;
    let lane = start(with_workers(2));
    let mut admin = lane.connect();
    let mut conn = lane.server.connect();
    let members: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    conn.cmd(&format!("SADD s {}", members.join(" ")));
    let mut busy: Vec<Conn> = (0..CLIENTS).map(|_| lane.server.connect()).collect();
    let pipeline = "SORT s BY nosort LIMIT 0 1\r\nSINTERCARD 2 s s\r\n".repeat(COMMANDS / 2);
    wait_for_clients(&mut admin, &(CLIENTS + 1).to_string());
    busy.iter_mut().for_each(|conn| conn.send_raw(pipeline.as_bytes()));
    assert_reply!(admin, "PING", "PONG");
    assert!(admin.cmd("INFO everything").text().contains("admin_worker:commands="));
    assert_eq!(admin.cmd("CLIENT LIST").text().lines().count(), CLIENTS + 2);
    assert_reply!(admin, "CONFIG SET maxclients 5000", "OK");
    let id = id_of(&busy[0], &mut admin);
    assert_reply!(admin, &format!("CLIENT KILL ID {id}"), "(integer) 1");
    for conn in &mut busy[1..] {
        for _ in 0..COMMANDS {
            assert!(!conn.reply().is_error());
        }
    }
}

/// The ID of a connection that cannot execute CLIENT ID itself.
fn id_of(conn: &Conn, admin: &mut Conn) -> String {
    let list = admin.cmd("CLIENT LIST").text();
    let address = format!(" addr={} ", conn.local_addr());
    let line = list.lines().find(|line| line.contains(&address)).unwrap();
    line.split(' ').next().unwrap().trim_start_matches("id=").to_owned()
}

#[test]
fn the_admin_lane_replies_during_a_slow_script() {
    if subject_is_redis() {
        return;
    }
    let lane = start(with_workers(2).set("busy-reply-threshold", "20"));
    let [mut scripting, mut other] = lane.server.connections();
    let mut admin = lane.connect();
    wait_for_clients(&mut admin, "2");
    scripting.send("EVAL 'while true do end' 0");
    wait_until("others get BUSY", || other.cmd("GET k").to_string().contains("BUSY"));
    let busy = "(error) BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                SHUTDOWN NOSAVE.";
    assert_reply!(other, "PING", busy);
    assert_reply!(admin, "PING", "PONG");
    assert!(admin.cmd("INFO").text().contains("admin_clients:1"));
    assert_eq!(admin.cmd("CLIENT LIST").text().lines().count(), 3);
    assert_reply!(admin, "CONFIG SET maxmemory-policy allkeys-lru", "OK");
    assert_reply!(other, "CONFIG SET maxmemory-policy noeviction", busy);
    assert_reply!(
        admin,
        "CONFIG GET maxmemory-policy",
        "1) \"maxmemory-policy\"\n2) \"allkeys-lru\""
    );
    // Commands with keys cannot run here either.
    assert_reply!(admin, "GET k", busy);
    assert_reply!(admin, "FLUSHALL", busy);
    assert_reply!(admin, "PUBLISH channel message", busy);
    assert_reply!(admin, "SCRIPT KILL", "OK");
    assert!(scripting.reply().is_error());
    assert_reply!(other, "PING", "PONG");
}

#[test]
fn the_admin_lane_replies_while_memory_is_full_and_during_a_pause() {
    if subject_is_redis() {
        return;
    }
    let lane = start(with_workers(2).set("maxmemory", "1"));
    let mut other = lane.server.connect();
    let mut admin = lane.connect();
    let full = "(error) OOM command not allowed when used memory > 'maxmemory'.";
    assert_reply!(other, "SET k v", full);
    assert_reply!(admin, "SET k v", full);
    assert_reply!(admin, "PING", "PONG");
    assert_reply!(admin, "CONFIG SET maxmemory 0", "OK");
    assert_reply!(other, "SET k v", "OK");

    assert_reply!(admin, "CLIENT PAUSE 1000000 ALL", "OK");
    other.send("PING");
    wait_until("it is paused", || admin.info("blocked_clients") == "1");
    assert_reply!(admin, "PING", "PONG");
    assert_reply!(admin, "CLIENT UNPAUSE", "OK");
    assert_eq!(other.reply().to_string(), "PONG");
}

#[test]
fn the_admin_lane_requires_authentication() {
    if subject_is_redis() {
        return;
    }
    let lane = start(with_workers(1).set("requirepass", "secret"));
    let mut admin = lane.connect();
    assert_reply!(admin, "CONFIG GET port", "(error) NOAUTH Authentication required.");
    assert_reply!(admin, "AUTH secret", "OK");
    assert_reply!(admin, "ACL SETUSER watcher on >pw +ping", "OK");
    assert_reply!(admin, "AUTH watcher pw", "OK");
    assert_reply!(admin, "PING", "PONG");
    assert!(admin.cmd("CONFIG SET maxclients 7").to_string().starts_with("(error) NOPERM"));
}

#[test]
fn the_admin_lane_can_be_a_unix_socket() {
    if subject_is_redis() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("brisk-admin-{}", std::process::id()));
    let text = path.to_string_lossy().into_owned();
    let server = with_workers(2).set("admin-unixsocket", &text).start();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut admin = Conn::unix(&path);
    assert_reply!(admin, "PING", "PONG");
    assert_eq!((admin.info("admin_clients"), admin.info("workers")), ("1".into(), "2".into()));
    assert!(admin.cmd("CLIENT INFO").text().contains(&format!("addr={text}:0")));
    assert_eq!(server.terminate(), Some(0));
    assert!(!path.exists());
}

#[test]
fn without_its_directives_there_is_no_lane() {
    if subject_is_redis() {
        return;
    }
    let server = with_workers(2).start();
    let text = server.connect().cmd("INFO brisk").text();
    assert!(text.contains("workers:2") && !text.contains("admin_worker"), "{text}");
    let refusal = "(error) ERR CONFIG SET failed (possibly related to argument 'admin-port') - \
                   can't set immutable config";
    assert_reply!(server.connect(), "CONFIG SET admin-port 1234", refusal);
}
