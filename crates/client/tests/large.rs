//! Large values and full budgets: which callers have to wait, and which do not.

use brisk::commands::{get, set};
use brisk::{Budget, Bytes, Client, Lanes};
use brisk_testkit::proxy::{Direction, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// A time limit that no command in these tests reaches.
const LONG: Duration = Duration::from_secs(120);

fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

async fn one_lane(address: &str) -> Client {
    let db = Client::builder(address).lanes(Lanes::Count(1)).timeout(LONG);
    db.connect().await.expect("a server")
}

#[test]
fn small_commands_do_not_wait_for_a_large_value_on_the_bulk_lane() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let direct = one_lane(&server.address()).await;
        direct.set("large", vec![b'x'; 64 * MIB]).await.unwrap();
        let db = one_lane(&link.address()).await;
        db.set("n", 0).await.unwrap();
        // Each connection is throttled separately.
        link.throttle(Some(4 * MIB as u64));
        let large = tokio::spawn({
            let bulk = db.bulk();
            async move { bulk.get::<Bytes>("large").await }
        });
        wait_until("it to be under way", || link.written_bytes(Direction::ToClient) > MIB as u64);
        for n in 1..=1000 {
            assert_eq!(db.incr("n").await.unwrap(), n);
        }
        assert!(!large.is_finished());
        link.throttle(None);
        assert_eq!(large.await.unwrap().unwrap().map(|value| value.len()), Some(64 * MIB));

        // The same with a large request.
        link.throttle(Some(4 * MIB as u64));
        let before = link.written_bytes(Direction::ToServer);
        let large = tokio::spawn({
            let bulk = db.bulk();
            async move { bulk.set("large", vec![b'y'; 64 * MIB]).await }
        });
        wait_until("it to be under way", || {
            link.written_bytes(Direction::ToServer) > before + MIB as u64
        });
        for n in 1001..=2000 {
            assert_eq!(db.incr("n").await.unwrap(), n);
        }
        assert!(!large.is_finished());
        link.throttle(None);
        assert!(large.await.unwrap().unwrap());
        assert_eq!(link.accepted(), 2, "one for small ones, one for large ones");
    });
}

/// A new connection is tried early only if closing the old one would lose nothing.
#[test]
fn a_large_write_that_was_sent_in_part_keeps_its_connection() {
    const SILENCE: Duration = Duration::from_millis(400);
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(Lanes::Count(1)).timeout(LONG);
        // The budget has room for both requests at the same time.
        let db = db.silence(SILENCE).budget(Budget::bytes(256 * MIB));
        let db = db.connect().await.unwrap();
        db.set("k", "v").await.unwrap();
        link.stall(Direction::ToServer, true);
        let both = tokio::spawn({
            let db = db.clone();
            async move { tokio::join!(db.get::<String>("k"), db.set("large", vec![b'x'; 64 * MIB])) }
        });
        let begun = Instant::now();
        wait_until("the silence has its full length", || begun.elapsed() > 2 * SILENCE);
        assert_eq!(link.accepted(), 1);
        link.stall(Direction::ToServer, false);
        let (read, written) = both.await.unwrap();
        assert_eq!(read.unwrap().as_deref(), Some("v"));
        assert!(written.unwrap());
        assert_eq!(link.accepted(), 1);
    });
}

#[test]
fn large_values_both_ways_on_one_lane_do_not_block_each_other() {
    for server in servers() {
        // The proxy buffers at most one megabyte per direction.
        let link = Proxy::to(&server.address());
        run(async {
            let db = one_lane(&link.address()).await;
            let value = vec![b'x'; 64 * MIB];
            db.set("there", &value).await.unwrap();
            for _ in 0..2 {
                let (read, written, small) =
                    tokio::join!(db.get::<Bytes>("there"), db.set("new", &value), db.incr("n"));
                assert_eq!(read.unwrap().map(|read| read.len()), Some(value.len()));
                assert!(written.unwrap() && small.unwrap() > 0);
            }
            assert_eq!(db.strlen("new").await.unwrap() as usize, value.len());
            assert_eq!(link.accepted(), 1);
        });
    }
}

#[test]
fn replies_to_a_batch_may_arrive_before_all_of_it_is_sent() {
    for server in servers() {
        run(async {
            let db = one_lane(&server.address()).await;
            db.set("small", 1).await.unwrap();
            let value = vec![b'x'; 8 * MIB];
            let before = server.info("total_connections_received");
            for _ in 0..20 {
                // The caller sends as much as the operating system accepts. The first reply arrives while it is still
                // sending.
                let (small, large, again) = db
                    .batch((get::<i64>("small"), set("large", &value), get("small")))
                    .await
                    .unwrap();
                assert_eq!((small, large, again), (Some(1), true, Some(1)));
            }
            let after = server.info("total_connections_received");
            let opened = after.parse::<u64>().unwrap() - before.parse::<u64>().unwrap();
            assert_eq!(opened, 1, "that of INFO itself");
        });
    }
}
