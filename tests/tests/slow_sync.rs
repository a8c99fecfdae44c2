//! A full synchronization over a link that is slower than the concurrent writes: the stream after the snapshot is
//! written to a file, so memory is bounded and the replica need not start over.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that goes wrong")]

use brisk_testkit::digest::assert_same;
use brisk_testkit::proxy::Disconnect;
use brisk_testkit::server::subject_is_redis;
use brisk_testkit::{Conn, Kind, Proxy, assert_reply, wait_until};
use brisk_tests::links::{Node, wait_until_caught_up};
use brisk_tests::snapshots::take_disk_away;

const HARD: u64 = 16 << 20;
const BACKLOG: u64 = 1 << 20;
/// The maximum memory for the stream. The stream is moved to the file when its memory beyond the backlog reaches half
/// of the limit; the bound leaves time for that.
const MOST_IN_MEMORY: u64 = BACKLOG + HARD * 3 / 4;
/// Bytes written while the snapshot is being sent.
const WRITTEN: u64 = 60 << 20;
/// The speed of the link. The 30 MB snapshot then takes minutes on any machine. No test waits for its end.
const BYTES_PER_S: u64 = 100_000;

struct Slow {
    primary: Node,
    link: Proxy,
    replica: Node,
}

/// A primary with small limits and a large snapshot.
fn primary(streams: &str) -> Node {
    let limit = format!("replica {HARD} 0 0");
    let primary = Node::start(Kind::Brisk, |launch| {
        launch
            .set("client-output-buffer-limit", &limit)
            .set("repl-backlog-size", &BACKLOG.to_string())
            .set("repl-diskless-sync", streams)
            .set("rdbcompression", "no")
            // The stream contains only the writes of this test.
            .set("repl-ping-replica-period", "3600")
    });
    let mut conn = primary.server.connect();
    assert_reply!(conn, "DEBUG POPULATE 3000 key 10000", "OK");
    primary
}

impl Slow {
    /// Starts a replica of this kind, which slowly receives its snapshot.
    fn begin(primary: Node, kind: Kind) -> Slow {
        let link = Proxy::to(&primary.server.address());
        link.throttle(Some(BYTES_PER_S));
        let replica = Node::start(kind, |launch| launch);
        replica.follow(link.port());
        let is_begun = || replica.server.info("master_sync_in_progress") == "1";
        wait_until("the snapshot to come", is_begun);
        Slow { primary, link, replica }
    }

    /// Writes, and waits whenever the thread that moves the stream to the file lags. Otherwise memory could exceed the
    /// limit if the disk is slow. In the end, most of the stream is in the file.
    fn write(&self) {
        self.write_and(|conn| {
            wait_until("the file to take what memory should not hold", || {
                metric(conn, "mem_total_replication_buffers") <= MOST_IN_MEMORY
            });
        });
        let mut conn = self.primary.server.connect();
        wait_until("most to be in the file", || {
            metric(&mut conn, "repl_stream_on_disk") > WRITTEN / 2
        });
    }

    /// Writes, and calls `meanwhile` after every few commands.
    fn write_and(&self, mut meanwhile: impl FnMut(&mut Conn)) {
        let mut conn = self.primary.server.connect();
        let value = "x".repeat(20_000);
        for n in 0..WRITTEN / 20_000 {
            conn.call(&["SET", &format!("key:{}", n % 4000), &value]);
            if n.is_multiple_of(20) {
                meanwhile(&mut conn);
            }
        }
    }
}

fn metric(conn: &mut Conn, field: &str) -> u64 {
    conn.info(field).parse().unwrap()
}

#[test]
fn writes_during_a_slow_sync_go_through_a_file_to_the_replica() {
    if subject_is_redis() {
        return;
    }
    for (kind, streams) in [(Kind::Brisk, "yes"), (Kind::Redis, "no")] {
        let slow = Slow::begin(primary(streams), kind);
        eprintln!("{kind}:");
        slow.write();
        slow.link.throttle(None);
        slow.replica.wait_until_it_follows();
        wait_until_caught_up(&slow.primary.server, &slow.replica.server);
        assert_same(&slow.primary.holder(), &slow.replica.holder());
        let mut conn = slow.primary.server.connect();
        assert_eq!(conn.info("sync_full"), "1");
        assert_eq!(conn.info("client_output_buffer_limit_disconnections"), "0");
        wait_until("the file to be gone", || metric(&mut conn, "repl_stream_on_disk") == 0);
        // From now on, it is a normal replica.
        wait_until("the thread to end", || {
            !slow.primary.server.thread_names().iter().any(|name| name == "brisk-spill")
        });
    }
}

/// The stream continues as if it were in memory, as in other servers.
#[test]
fn a_replica_that_reconnects_during_a_slow_sync_continues_from_the_file() {
    if subject_is_redis() {
        return;
    }
    for kind in [Kind::Brisk, Kind::Redis] {
        let primary = primary("yes");
        let (other, way) =
            (Node::start(kind, |launch| launch), Proxy::to(&primary.server.address()));
        other.follow(way.port());
        other.wait_until_it_follows();
        wait_until_caught_up(&primary.server, &other.server);
        way.refuse(true);
        way.cut(Disconnect::Reset);
        let slow = Slow::begin(primary, Kind::Brisk);
        let mut conn = slow.primary.server.connect();
        slow.write();
        // The whole stream is kept, although memory contains less than a third of it.
        assert!(metric(&mut conn, "repl_backlog_histlen") >= WRITTEN);
        way.refuse(false);
        other.wait_until_it_follows();
        wait_until_caught_up(&slow.primary.server, &other.server);
        assert!(metric(&mut conn, "repl_stream_on_disk") > WRITTEN / 2);
        slow.link.throttle(None);
        slow.replica.wait_until_it_follows();
        wait_until_caught_up(&slow.primary.server, &slow.replica.server);
        for replica in [&other, &slow.replica] {
            assert_same(&slow.primary.holder(), &replica.holder());
        }
        // If the machine pauses, a connection may be lost, but there is never another full synchronization.
        assert_eq!(conn.info("sync_full"), "2");
        assert!(metric(&mut conn, "sync_partial_ok") >= 1);
        assert_eq!(conn.info("client_output_buffer_limit_disconnections"), "0");
        wait_until("the file to be gone", || metric(&mut conn, "repl_stream_on_disk") == 0);
    }
}

/// If the file cannot be written, the output buffer limit applies.
#[test]
fn without_a_disk_the_limit_holds() {
    if subject_is_redis() {
        return;
    }
    let slow = Slow::begin(primary("yes"), Kind::Brisk);
    take_disk_away(&slow.primary.server);
    let log = || slow.primary.server.log();
    let failed = "Can't write the replication stream to a file: No such file";
    slow.write_and(|conn| {
        // Wait for the attempt to use the file. Otherwise the limit could be exceeded before the attempt.
        if metric(conn, "mem_total_replication_buffers") > MOST_IN_MEMORY {
            wait_until("the file to be tried", || log().contains(failed));
        }
    });
    wait_until("the replica to be closed", || log().contains("Closing replica 127.0.0.1"));
    assert!(log().contains(failed), "{}", log());
}
