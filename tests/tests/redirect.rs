//! CLIENT CAPA redirect: a replica redirects clients with this capability to its primary.
//!
//! The expected replies are those of Valkey 8.0.1. If it is installed, the tests also run with it.

use brisk_testkit::kind::Kind;
use brisk_testkit::{Conn, Launch, Server, assert_reply, wait_until};

/// Runs the test with each kind of redirecting replica: Brisk in both dialects, and real Valkey.
fn each_kind(test: impl Fn(&dyn Fn() -> Launch)) {
    test(&|| Kind::Brisk.launch());
    test(&|| Kind::Brisk.launch().set("dialect", "valkey"));
    if Kind::Valkey.is_there() {
        test(&|| Kind::Valkey.launch());
    }
}

fn follow(replica: &Server, primary: &Server) {
    let line = format!("REPLICAOF 127.0.0.1 {}", primary.port());
    assert_reply!(replica.connect(), &line, "OK");
    replica.wait_for_info("master_link_status", |status| status == "up");
    primary.wait_for_info("slave0", |line| line.contains("state=online"));
}

fn redirected(server: &Server) -> Conn {
    let mut conn = server.connect();
    assert_reply!(conn, "CLIENT CAPA unknown redirect", "OK");
    conn
}

#[test]
fn clients_with_the_redirect_capability_are_sent_to_the_primary() {
    each_kind(|launch| {
        let (primary, replica) = (launch().start(), launch().start());
        let redirect = format!("(error) REDIRECT 127.0.0.1:{}", primary.port());
        let mut conn = redirected(&replica);
        assert_reply!(conn, "SET k 1", "OK");
        assert_reply!(conn, "MULTI", "OK");
        assert_reply!(conn, "SET k 2", "QUEUED");
        follow(&replica, &primary);
        // The transaction is discarded. The client must repeat it on the primary.
        assert_reply!(conn, "EXEC", redirect);
        assert_reply!(conn, "EXEC", "(error) ERR EXEC without MULTI");
        assert_reply!(conn, "SET k 1", redirect);
        assert_reply!(conn, "GET k", redirect);
        assert_reply!(conn, "EVAL \"return redis.call('GET', KEYS[1])\" 1 k", "(nil)");
        assert_reply!(conn, "PING", "PONG");
        assert_reply!(conn, "MULTI", "OK");
        assert_reply!(conn, "GET k", redirect);
        let refused = "(error) EXECABORT Transaction discarded because of previous errors.";
        assert_reply!(conn, "EXEC", refused);
        // Other clients get the usual replies.
        let mut other = replica.connect();
        assert_reply!(other, "GET k", "(nil)");
        let read_only = "(error) READONLY You can't write against a read only replica.";
        assert_reply!(other, "SET k 1", read_only);
        // The client can read from the replica, but still cannot write.
        assert_reply!(conn, "READONLY", "OK");
        assert_reply!(conn, "GET k", "(nil)");
        assert_reply!(conn, "SET k 1", redirect);
        assert!(conn.cmd("CLIENT INFO").text().contains(" flags=r "));
        assert_reply!(conn, "READWRITE", "OK");
        assert_reply!(conn, "GET k", redirect);
        assert_reply!(conn, "READONLY", "OK");
        assert_reply!(conn, "RESET", "RESET");
        assert_reply!(conn, "GET k", redirect);
        assert_reply!(replica.connect(), "REPLICAOF NO ONE", "OK");
        assert_reply!(conn, "SET k 1", "OK");
    });
}

#[test]
fn without_a_cluster_readonly_needs_the_redirect_capability() {
    let server = Kind::Brisk.launch().start();
    let mut conn = server.connect();
    let refused = "(error) ERR This instance has cluster support disabled";
    assert_reply!(conn, "READONLY", refused);
    assert_reply!(conn, "CLIENT CAPA redirect", "OK");
    assert_reply!(conn, "READONLY", "OK");
    assert_reply!(Launch::redis().start().connect(), "READONLY", refused);
}

#[test]
fn redirected_clients_wait_for_the_end_of_a_failover() {
    each_kind(|launch| {
        let (primary, replica) = (launch().start(), launch().start());
        follow(&replica, &primary);
        let mut conn = redirected(&primary);
        replica.signal("STOP");
        let mut admin = primary.connect();
        assert_reply!(admin, "SET k 1", "OK");
        let target = format!("FAILOVER TO 127.0.0.1 {} TIMEOUT 100 FORCE", replica.port());
        assert_reply!(admin, &target, "OK");
        primary.wait_for_info("master_failover_state", |state| state == "failover-in-progress");
        // Both writes and reads wait, because the other node might redirect either back.
        let mut reader = redirected(&primary);
        conn.send("SET k 2");
        reader.send("GET k");
        wait_until("both wait", || admin.info("blocked_clients") == "2");
        replica.signal("CONT");
        primary.wait_for_info("master_failover_state", |state| state == "no-failover");
        let redirect = format!("(error) REDIRECT 127.0.0.1:{}", replica.port());
        assert_eq!(conn.reply().to_string(), redirect);
        assert_eq!(reader.reply().to_string(), redirect);
        assert_eq!(replica.info("role"), "master");
    });
}
