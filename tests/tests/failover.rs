//! FAILOVER: the primary hands over to a replica that has all data, so nothing is lost.
//!
//! The expected texts are those of a real Redis 7.0, with which the tests also run.

use brisk_testkit::kind::{Kind, are_there, named};
use brisk_testkit::proxy::Direction;
use brisk_testkit::{Conn, Proxy, Server, assert_reply, wait_until};
use brisk_tests::links::{Node, wait_until_caught_up};
use brisk_tests::records::{Promise, Records};

use Kind::{Brisk, Redis, Valkey};

/// Kinds of the primary and the two replicas.
const OF_REDIS: &[[Kind; 3]] = &[[Redis; 3]];
const OF_VALKEY: &[[Kind; 3]] = &[[Valkey; 3]];
const OF_OURS: &[[Kind; 3]] = &[[Brisk; 3]];
/// Groups of Brisk and one other kind. Redis and Valkey are not combined, because Redis cannot read the snapshots of
/// Valkey.
const MIXED: &[[Kind; 3]] =
    &[[Brisk, Redis, Brisk], [Redis, Brisk, Brisk], [Brisk, Valkey, Brisk], [Valkey, Brisk, Brisk]];

const CLIENTS: usize = 3;
const RECORDS: usize = 20;

/// A primary and two replicas. The first replica announces the address of a proxy in front of it, and reaches the
/// primary through another proxy.
struct Group {
    nodes: Vec<Node>,
    door: Proxy,
    link: Proxy,
}

impl Group {
    #[track_caller]
    fn start(kinds: [Kind; 3]) -> Group {
        let start = |kind| Node::start(kind, |launch| launch.set("repl-backlog-size", "64mb"));
        let nodes: Vec<Node> = kinds.into_iter().map(start).collect();
        let [door, link] = [1, 0].map(|node: usize| Proxy::to(&nodes[node].server.address()));
        let mut target = nodes[1].server.connect();
        for line in [
            "CONFIG SET replica-announce-ip 127.0.0.1".to_owned(),
            format!("CONFIG SET replica-announce-port {}", door.port()),
        ] {
            assert_reply!(target, &line, "OK");
        }
        nodes[1].follow(link.port());
        nodes[2].follow(nodes[0].server.port());
        for node in &nodes[1..] {
            node.wait_until_it_follows();
        }
        let group = Group { nodes, door, link };
        wait_until("both to be online", || group.online(0) == 2);
        group
    }

    fn server(&self, node: usize) -> &Server {
        &self.nodes[node].server
    }

    fn online(&self, node: usize) -> usize {
        let text = self.server(node).connect().cmd("INFO replication").text();
        text.matches("state=online").count()
    }

    /// A function with which clients find the primary: the node that reports this role.
    fn finder(&self) -> impl Fn() -> Option<String> + Send + use<> {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.server.address()).collect();
        move || addresses.iter().find(|address| is_primary(address)).cloned()
    }

    /// Waits until this node is the only primary, and no failover is in progress.
    #[track_caller]
    fn wait_until_primary_is(&self, node: usize) {
        wait_until("one primary", || {
            (0..self.nodes.len()).all(|at| {
                let address = self.server(at).address();
                is_primary(&address) == (at == node) && state(self.server(at)) == "no-failover"
            })
        });
    }

    /// Asserts that all nodes have the data of the primary. No client may write during the call.
    #[track_caller]
    fn assert_agrees(&self, primary: usize) {
        let first = &self.nodes[primary];
        for (at, node) in self.nodes.iter().enumerate() {
            if at != primary {
                wait_until_caught_up(&first.server, &node.server);
                brisk_testkit::digest::assert_same(&first.holder(), &node.holder());
            }
        }
    }
}

fn is_primary(address: &str) -> bool {
    let role = Conn::try_tcp(address).and_then(|mut conn| conn.try_cmd("ROLE"));
    role.is_ok_and(|role| role.elements().first().is_some_and(|role| role.text() == "master"))
}

fn state(server: &Server) -> String {
    server.info("master_failover_state")
}

#[track_caller]
fn wait_for_state(server: &Server, wanted: &str) {
    server.wait_for_info("master_failover_state", |state| state == wanted);
}

/// Runs `body` for all groups that this machine can run.
fn each_group(body: impl Fn([Kind; 3])) {
    for kinds in [OF_REDIS, OF_VALKEY, OF_OURS, MIXED].into_iter().flatten() {
        if are_there(kinds) {
            eprintln!("{}", named(kinds));
            body(*kinds);
        }
    }
}

/// Runs `body` while clients write. Asserts that afterwards all nodes have every acknowledged record.
fn while_clients_write(group: &Group, primary_then: usize, body: impl FnOnce(&Records)) {
    let records = Records::new(CLIENTS, 1, Promise::Wait);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (records, find) = (&records, group.finder());
            scope.spawn(move || records.write(client, find));
        }
        let end = EndAtExit(&records);
        records.wait_until_they_go_on(RECORDS);
        body(&records);
        records.wait_until_they_go_on(RECORDS);
        drop(end);
    });
    group.wait_until_primary_is(primary_then);
    group.assert_agrees(primary_then);
    for node in &group.nodes {
        let fate = records.check(&node.server, &[]);
        assert_eq!(fate.lost, 0, "{fate:?}");
    }
}

struct EndAtExit<'a>(&'a Records);

impl Drop for EndAtExit<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[test]
fn arguments_are_checked() {
    let negative = "(error) ERR FAILOVER timeout must be greater than 0";
    let alone = "(error) ERR FAILOVER requires connected replicas.";
    let syntax = "(error) ERR syntax error";
    let integer = "(error) ERR value is not an integer or out of range";
    let idle = "(error) ERR No failover in progress.";
    let both =
        "(error) ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    each_group(|kinds| {
        let group = Group::start(kinds);
        let lonely = Node::start(kinds[0], |launch| launch);
        let mut conn = lonely.server.connect();
        for (line, want) in [
            ("FAILOVER", alone),
            ("FAILOVER TO 127.0.0.1 1", alone),
            ("FAILOVER TO 127.0.0.1 1 FORCE TIMEOUT 100", alone),
            ("FAILOVER ABORT", idle),
            ("FAILOVER TIMEOUT 0", negative),
            ("FAILOVER TIMEOUT -1", negative),
            ("FAILOVER TIMEOUT x", integer),
            ("FAILOVER TO 127.0.0.1 x", integer),
            ("FAILOVER ABORT ABORT", syntax),
            ("FAILOVER TIMEOUT 10 ABORT", syntax),
            ("FAILOVER TO 127.0.0.1", syntax),
            ("FAILOVER nonsense", syntax),
        ] {
            assert_reply!(conn, line, want);
        }
        let mut primary = group.server(0).connect();
        let unknown = "(error) ERR FAILOVER target HOST and PORT is not a replica.";
        let to = format!("FAILOVER TO 127.0.0.1 {}", group.door.port());
        for (line, want) in [
            ("FAILOVER FORCE", both),
            ("FAILOVER FORCE TIMEOUT 100", both),
            (&format!("{to} FORCE"), both),
            ("FAILOVER TO 127.0.0.1 1", unknown),
            // The primary knows the replica by its announced address.
            (&format!("FAILOVER TO 127.0.0.1 {}", group.server(1).port()), unknown),
        ] {
            assert_reply!(primary, line, want);
        }
        let mut replica = group.server(1).connect();
        let not_here = "(error) ERR FAILOVER is not valid when server is a replica.";
        assert_reply!(replica, "FAILOVER", not_here);
        assert_reply!(replica, "FAILOVER ABORT", idle);
        assert_eq!(state(group.server(0)), "no-failover");
        assert_eq!(state(group.server(1)), "no-failover");
    });
}

#[test]
fn a_named_replica_takes_over_and_nothing_is_lost() {
    each_group(|kinds| {
        let group = Group::start(kinds);
        let before = group.nodes[1].served();
        while_clients_write(&group, 1, |_| {
            let mut conn = group.server(0).connect();
            assert_reply!(conn, &format!("FAILOVER TO 127.0.0.1 {}", group.door.port()), "OK");
            group.wait_until_primary_is(1);
        });
        // The former primary continues with a partial synchronization, and so does the other replica, which still
        // replicates from it.
        assert_eq!(group.server(0).info("role"), "slave");
        assert_eq!(group.nodes[1].served(), [before[0], before[1] + 1]);
        assert_eq!(group.server(2).info("master_port"), group.server(0).port().to_string());
        let full = group.nodes[1].served()[0];
        group.nodes[2].follow(group.door.port());
        group.nodes[2].wait_until_it_follows();
        wait_until("both to be online", || group.online(1) == 2);
        assert_eq!(group.nodes[1].served()[0], full, "it has the history");
        group.assert_agrees(1);
    });
}

#[test]
fn any_replica_takes_over_that_has_everything() {
    each_group(|kinds| {
        let group = Group::start(kinds);
        // The first replica does not have all data.
        group.link.part();
        while_clients_write(&group, 2, |_| {
            assert_reply!(group.server(0).connect(), "FAILOVER TIMEOUT 60000", "OK");
            wait_until("the other to take over", || is_primary(&group.server(2).address()));
            group.link.heal();
        });
    });
}

#[test]
fn writes_wait_while_a_replica_lags_and_continue_after_an_abort() {
    each_group(|kinds| {
        for ends_by_itself in [false, true] {
            let group = Group::start(kinds);
            let to = format!("FAILOVER TO 127.0.0.1 {}", group.door.port());
            while_clients_write(&group, 0, |records| {
                group.link.stall(Direction::ToClient, true);
                records.wait_until_they_go_on(1);
                let mut conn = group.server(0).connect();
                let mut paused = group.server(0).connect();
                let limit = if ends_by_itself { " TIMEOUT 500" } else { "" };
                assert_reply!(conn, &format!("{to}{limit}"), "OK");
                if !ends_by_itself {
                    assert_eq!(state(group.server(0)), "waiting-for-sync");
                    let again = "(error) ERR FAILOVER already in progress.";
                    assert_reply!(conn, "FAILOVER", again);
                    let busy = "(error) NOMASTERLINK Can't SYNC while failing over";
                    assert_reply!(conn, "PSYNC ? -1", busy);
                    // Writers wait, but readers do not.
                    paused.send("INCR paused");
                    group.server(0).wait_for_info("blocked_clients", |count| count != "0");
                    assert!(!conn.cmd("GET record:0:1").is_error());
                    assert_reply!(conn, "GET paused", "(nil)");
                    assert_reply!(conn, "FAILOVER ABORT", "OK");
                    assert_eq!(paused.reply().integer(), 1);
                }
                wait_for_state(group.server(0), "no-failover");
                group.link.stall(Direction::ToClient, false);
            });
        }
    });
}

#[test]
fn a_target_that_does_not_reply_is_retried_until_an_abort() {
    each_group(|kinds| {
        let group = Group::start(kinds);
        while_clients_write(&group, 0, |_| {
            // The replica has everything, but is unreachable.
            group.door.part();
            let mut conn = group.server(0).connect();
            assert_reply!(conn, &format!("FAILOVER TO 127.0.0.1 {}", group.door.port()), "OK");
            wait_for_state(group.server(0), "failover-in-progress");
            assert_reply!(conn, "FAILOVER ABORT", "OK");
            wait_for_state(group.server(0), "no-failover");
            assert!(is_primary(&group.server(0).address()));
            group.door.cut(brisk_testkit::proxy::Disconnect::Reset);
            group.door.heal();
        });
    });
}

#[test]
fn by_force_a_replica_takes_over_that_lacks_something() {
    each_group(|kinds| {
        let group = Group::start(kinds);
        let mut conn = group.server(0).connect();
        assert_reply!(conn, "SET kept 1", "OK");
        wait_until_caught_up(group.server(0), group.server(1));
        group.link.stall(Direction::ToClient, true);
        assert_reply!(conn, "SET lost 1", "OK");
        let to = format!("FAILOVER TO 127.0.0.1 {} FORCE TIMEOUT 100", group.door.port());
        assert_reply!(conn, &to, "OK");
        group.wait_until_primary_is(1);
        group.link.heal();
        group.assert_agrees(1);
        for node in &group.nodes {
            assert_reply!(node.server.connect(), "EXISTS kept lost", "(integer) 1");
        }
    });
}
