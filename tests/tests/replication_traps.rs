//! Cases in which replicas of other implementations have failed: huge commands, less memory than the primary, a
//! restart, and a new REPLICAOF during a synchronization. (D2)
//!
//! Each test first runs with a real Redis as the replica, which shows that it tests the correct behavior. Then it runs
//! with Brisk as a replica of a real Redis and of Brisk.

use brisk_testkit::digest::assert_same;
use brisk_testkit::proxy::Direction;
use brisk_testkit::{Conn, Kind, Proxy, assert_reply, wait_until};
use brisk_tests::links::{Node, wait_until_caught_up};

/// The pairs: replica and primary.
const PAIRS: &[[Kind; 2]] =
    &[[Kind::Redis, Kind::Redis], [Kind::Brisk, Kind::Redis], [Kind::Brisk, Kind::Brisk]];

/// Runs the test for each pair, with a replica that has caught up with its primary.
fn each_pair(directives: &[(&str, &str)], test: impl Fn(&Node, &Node)) {
    for [replica, primary] in PAIRS {
        eprintln!("note: {replica} follows {primary}");
        let primary = Node::start(*primary, |launch| launch);
        let replica = Node::start(*replica, |launch| {
            directives.iter().fold(launch, |launch, (name, value)| launch.set(name, value))
        });
        replica.follow(primary.server.port());
        wait_until_caught_up(&primary.server, &replica.server);
        test(&replica, &primary);
    }
}

fn number(conn: &mut Conn, field: &str) -> u64 {
    conn.info(field).parse().expect("INFO counts")
}

#[test]
fn requests_of_a_primary_can_exceed_the_limits_of_clients() {
    let limits = [("client-query-buffer-limit", "1mb"), ("proto-max-bulk-len", "1mb")];
    each_pair(&limits, |replica, primary| {
        let (mut at_primary, mut at_replica) = (primary.server.connect(), replica.server.connect());
        let large = "x".repeat(3 << 20);
        assert_eq!(at_primary.call(&["SET", "large", &large]).text(), "OK");
        // Many arguments that exceed the limit only together.
        let members: Vec<String> = (0..40_000).map(|n| format!("{n:0>64}")).collect();
        let mut words = vec!["RPUSH", "list"];
        words.extend(members.iter().map(String::as_str));
        assert_eq!(at_primary.call(&words).to_string(), "(integer) 40000");
        // Then both in a transaction, which the replica buffers until its end.
        assert_reply!(at_primary, "MULTI", "OK");
        assert_eq!(at_primary.call(&["APPEND", "large", &large]).text(), "QUEUED");
        assert_eq!(at_primary.call(&words).text(), "QUEUED");
        at_primary.cmd("EXEC");
        wait_until_caught_up(&primary.server, &replica.server);
        assert_same(&primary.holder(), &replica.holder());
        assert_eq!(primary.served(), [1, 0], "the link held");
        // The limit applies to clients of the replica.
        at_replica.send_raw(format!("*2\r\n$4\r\nECHO\r\n${}\r\n", large.len()).as_bytes());
        let refused = "(error) ERR Protocol error: invalid bulk length";
        assert_eq!(at_replica.reply().to_string(), refused);
    });
}

#[test]
fn a_replica_with_less_memory_keeps_all_data_until_it_is_promoted() {
    let limits = [("maxmemory", "40mb"), ("maxmemory-policy", "allkeys-lru")];
    each_pair(&limits, |replica, primary| {
        let (mut at_primary, mut at_replica) = (primary.server.connect(), replica.server.connect());
        at_primary.cmd("DEBUG POPULATE 100 before 200000");
        // First data in the stream, and then in a full copy.
        for n in 0..100 {
            assert_eq!(
                at_primary.call(&["SET", &format!("key:{n}"), &"x".repeat(500_000)]).text(),
                "OK"
            );
        }
        wait_until_caught_up(&primary.server, &replica.server);
        assert_eq!(at_replica.info("evicted_keys"), "0");
        assert_reply!(at_replica, "REPLICAOF NO ONE", "OK");
        assert_reply!(at_replica, "FLUSHALL", "OK");
        let before = number(&mut at_replica, "evicted_keys");
        replica.follow(primary.server.port());
        wait_until_caught_up(&primary.server, &replica.server);
        assert_eq!(number(&mut at_replica, "evicted_keys"), before);
        assert_same(&primary.holder(), &replica.holder());
        assert!(number(&mut at_replica, "used_memory") > 40 << 20);
        // After its promotion, the former replica evicts keys.
        assert_reply!(at_replica, "REPLICAOF NO ONE", "OK");
        assert_reply!(at_replica, "SET one 1", "OK");
        wait_until("room to be made", || {
            at_replica.cmd("SET another 1");
            number(&mut at_replica, "used_memory") <= 40 << 20
        });
        assert!(number(&mut at_replica, "evicted_keys") > before);
    });
}

/// Shuts a node down with a snapshot, and restarts it on the same port with its files.
fn restart(node: &mut Node, directives: &[(&str, &str)]) {
    node.server.connect().send("SHUTDOWN SAVE");
    wait_until("it to end", || !node.server.is_running());
    let launch = node.kind.launch();
    let launch = directives.iter().fold(launch, |launch, (name, value)| launch.set(name, value));
    launch.start_again(&mut node.server);
}

#[test]
fn a_restarted_replica_resumes() {
    for [replica, primary] in PAIRS {
        eprintln!("note: {replica} follows {primary}");
        let primary = Node::start(*primary, |launch| launch);
        let mut replica = Node::start(*replica, |launch| launch);
        replica.follow(primary.server.port());
        wait_until_caught_up(&primary.server, &replica.server);
        let mut at_primary = primary.server.connect();
        // The last command before the snapshot is in another database.
        at_primary.cmd("SELECT 5");
        assert_reply!(at_primary, "SET before 1", "OK");
        wait_until_caught_up(&primary.server, &replica.server);
        let address = format!("127.0.0.1 {}", primary.server.port());
        restart(&mut replica, &[("replicaof", &address)]);
        assert_reply!(at_primary, "SET after 1", "OK");
        wait_until_caught_up(&primary.server, &replica.server);
        assert_same(&primary.holder(), &replica.holder());
        assert_eq!(primary.served(), [1, 1], "the second time only what it lacked");
    }
}

#[test]
fn replicas_of_a_restarted_primary_resume() {
    for [replica, primary] in PAIRS {
        eprintln!("note: {replica} follows {primary}");
        let mut primary = Node::start(*primary, |launch| launch);
        let replica = Node::start(*replica, |launch| launch);
        replica.follow(primary.server.port());
        wait_until_caught_up(&primary.server, &replica.server);
        assert_reply!(primary.server.connect(), "SET last 1", "OK");
        wait_until_caught_up(&primary.server, &replica.server);
        restart(&mut primary, &[]);
        replica.wait_until_it_follows();
        assert_eq!(primary.served(), [0, 1], "not everything anew");
        assert_reply!(primary.server.connect(), "SET after 1", "OK");
        wait_until_caught_up(&primary.server, &replica.server);
        assert_same(&primary.holder(), &replica.holder());
    }
}

/// Calls `prepare` on a connection to `replica`, sets another primary, and asserts that the replica then replicates
/// from it.
fn goes_over(replica: &Node, prepare: impl Fn(&mut Conn)) {
    let other = Node::start(Kind::Redis, |launch| launch);
    other.server.connect().cmd("DEBUG POPULATE 300 other 20");
    let mut conn = replica.server.connect();
    prepare(&mut conn);
    wait_until("the order to be taken", || {
        !conn.cmd(&format!("REPLICAOF 127.0.0.1 {}", other.server.port())).is_error()
    });
    wait_until("the other's data", || {
        conn.info("master_link_status") == "up"
            && conn.info("master_port") == other.server.port().to_string()
    });
    wait_until_caught_up(&other.server, &replica.server);
    assert_same(&other.holder(), &replica.holder());
}

#[test]
fn another_primary_may_be_named_at_any_moment() {
    // A real Redis serves its clients each time it has loaded this number of bytes.
    each_pair(&[("loading-process-events-interval-bytes", "1024")], |replica, primary| {
        primary.server.connect().cmd("DEBUG POPULATE 20000 key 500");
        let link = Proxy::to(&primary.server.address());
        let order = format!("REPLICAOF 127.0.0.1 {}", link.port());
        let follow_again = |conn: &mut Conn| {
            conn.cmd("REPLICAOF NO ONE");
            conn.cmd("FLUSHALL");
            assert_reply!(conn, &order, "OK");
        };
        // The primary does not reply.
        goes_over(replica, |conn| {
            link.stall(Direction::ToClient, true);
            follow_again(conn);
            wait_until("it to connect", || link.open() > 0);
        });
        // The data arrives slowly.
        link.stall(Direction::ToClient, false);
        goes_over(replica, |conn| {
            link.throttle(Some(500_000));
            follow_again(conn);
            wait_until("a part of it", || conn.info("master_sync_in_progress") == "1");
            wait_until("some bytes", || link.written_bytes(Direction::ToClient) > 100_000);
        });
        // The data is being loaded.
        link.heal();
        goes_over(replica, |conn| {
            assert_reply!(conn, "CONFIG SET key-load-delay 100", "OK");
            follow_again(conn);
            wait_until("it to load", || conn.info("loading") == "1");
            assert_reply!(conn, "CONFIG SET key-load-delay 0", "OK");
        });
        // A snapshot is being written.
        goes_over(replica, |conn| {
            assert_reply!(conn, "CONFIG SET rdb-key-save-delay 1000", "OK");
            conn.cmd("BGSAVE");
            wait_until("it to be written", || conn.info("rdb_bgsave_in_progress") == "1");
            follow_again(conn);
        });
        assert_reply!(replica.server.connect(), "CONFIG SET rdb-key-save-delay 0", "OK");
    });
}
