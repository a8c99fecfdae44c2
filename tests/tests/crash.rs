//! The report of a server when a signal ends it, and when a signal requests a report of its state.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Launch, Server, assert_reply, wait_until};
use std::fs;

const LOG: &str = "mine.log";

/// The messages of the server, in its log and in a separate file, after a signal has ended it.
fn ended(mut server: Server) -> String {
    wait_until("the server has ended", || !server.is_running());
    let log = server.log() + &fs::read_to_string(server.dir().join(LOG)).unwrap_or_default();
    // The process has already ended as expected, so do not check its exit.
    server.kill();
    log
}

#[test]
fn a_fatal_signal_is_logged() {
    for signal in [
        "ABRT", "SEGV", "BUS", "FPE", "ILL", "SYS", "TRAP", "QUIT", "XCPU", "VTALRM", "PROF",
        "USR1", "USR2",
    ] {
        let server = Launch::subject().start();
        server.signal(signal);
        let log = ended(server);
        let count = log.matches("crashed by signal: ").count();
        assert_eq!(count, 1, "{signal}: {log}");
        assert!(log.contains("Killed by PID: "), "{signal}: {log}");
    }
}

#[test]
fn a_crash_on_demand_is_logged() {
    let server = Launch::subject().set("logfile", LOG).start();
    server.connect().send("DEBUG SEGFAULT");
    let log = ended(server);
    assert!(log.contains("crashed by signal: 11"), "{log}");
}

#[test]
fn a_crash_is_not_logged_if_crash_log_enabled_is_no() {
    for at_start in [true, false] {
        let launch = Launch::subject();
        let launch = if at_start { launch.set("crash-log-enabled", "no") } else { launch };
        let server = launch.start();
        assert_reply!(server.connect(), "CONFIG SET crash-log-enabled no", "OK");
        server.signal("SEGV");
        let log = ended(server);
        assert!(!log.contains("crashed by signal"), "{log}");
    }
}

#[test]
fn sigalrm_logs_the_threads_and_the_server_continues() {
    if subject_is_redis() {
        return; // logs this only since 7.2
    }
    let server = Launch::subject().start();
    let mut conn = server.connect();
    server.signal("ALRM");
    wait_until("it tells", || server.log().contains("Received SIGALRM"));
    wait_until("it names its threads", || {
        ["brisk-worker-0: state ", "brisk-signals: state "]
            .iter()
            .all(|line| server.log().contains(line))
    });
    assert_reply!(conn, "PING", "PONG");
}
