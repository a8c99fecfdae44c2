//! How long the client keeps a connection on which no bytes arrive, and how a node that hangs affects requests to other
//! nodes.
//!
//! `cargo bench -p brisk --bench faults`. The benchmark starts real `redis-server` processes. The machine should be
//! otherwise idle.
#![expect(clippy::print_stdout, reason = "the numbers are the output of the program")]

use brisk::{Builder, Client, Lanes};
use brisk_testkit::Launch;
use brisk_testkit::cluster::Cluster;
use brisk_testkit::proxy::Proxy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
/// How long `one_bad_node` measures latencies before and after the node hangs, in each round.
const MEASURED: Duration = Duration::from_secs(2);
/// A time limit that no call reaches.
const LONG: Duration = Duration::from_secs(60);
/// The polling interval for conditions without an event.
const LOOK: Duration = Duration::from_millis(1);

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        println!("| case | median | worst of {ROUNDS} | at most |");
        println!("|---|--:|--:|--:|");
        blackhole("blackhole, default", |builder| builder, "5 s").await;
        let tuned = |builder: Builder| {
            let limit = Duration::from_millis(800);
            builder.silence(limit).connect_timeout(limit).timeout(limit)
        };
        blackhole("blackhole, tuned to 0.8 s", tuned, "1 s").await;
        one_bad_node().await;
    });
}

fn row(what: &str, mut values: Vec<f64>, unit: &str, most: &str) {
    values.sort_by(f64::total_cmp);
    let (median, worst) = (values[values.len() / 2], values[values.len() - 1]);
    println!("| {what} | {median:.2}{unit} | {worst:.2}{unit} | {most} |");
}

/// The link drops all bytes without an error. Measures the time until the client tries another connection. After that,
/// the link works again, and the benchmark measures the time until a command gets its reply.
async fn blackhole(name: &str, settings: impl Fn(Builder) -> Builder, most: &str) {
    let server = Launch::redis().start();
    let (mut detected, mut recovered) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let link = Proxy::to(&server.address());
        let builder = settings(Client::builder(&format!("redis://{}", link.address())));
        let db = builder.lanes(Lanes::Count(1)).connect().await.expect("a server");
        let (replies, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (db, replies, over) = (db.clone(), Arc::clone(&replies), Arc::clone(&over));
                tokio::spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        // Failures are expected while the link drops bytes.
                        if db.get::<String>("key").await.is_ok() {
                            replies.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        until(|| replies.load(Ordering::Relaxed) > 100).await;
        let before = link.accepted();
        link.part();
        let begun = Instant::now();
        until(|| link.accepted() > before).await;
        detected.push(begun.elapsed().as_secs_f64());
        // In each round, the link works again at a different moment in the series of attempts.
        tokio::time::sleep(Duration::from_millis(370 * round as u64)).await;
        let before = replies.load(Ordering::Relaxed);
        link.heal();
        let begun = Instant::now();
        until(|| replies.load(Ordering::Relaxed) > before).await;
        recovered.push(begun.elapsed().as_secs_f64() * 1000.0);
        over.store(true, Ordering::Relaxed);
        for caller in callers {
            caller.await.expect("the task does not panic");
        }
    }
    row(&format!("{name}: noticed"), detected, " s", most);
    row(&format!("{name}: answered again after"), recovered, " ms", "200 ms");
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Six primaries, of which one hangs: the latency of requests to the others, compared with the latency before.
async fn one_bad_node() {
    let cluster = Cluster::start_with(6, 0, &[("cluster-require-full-coverage", "no")]);
    let url = format!("redis-cluster://{}", cluster.addresses(&[0, 1, 2]));
    let db = Client::builder(&url).timeout(LONG).connect().await.expect("a cluster");
    let keys: Vec<String> = (0..6).map(|node| cluster.key_of(node, 0)).collect();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let before = latencies(&db, &keys[1..]).await;
        cluster.node(0).signal("STOP");
        let stuck: Vec<_> = (0..64)
            .map(|_| {
                let (db, key) = (db.clone(), keys[0].clone());
                tokio::spawn(async move { db.get::<String>(key).timeout(2 * MEASURED).await })
            })
            .collect();
        let during = latencies(&db, &keys[1..]).await;
        cluster.node(0).signal("CONT");
        for call in stuck {
            // These calls may or may not have hung. Only the other requests are measured.
            let _ = call.await.expect("the task does not panic");
        }
        ratios.push(during / before);
    }
    row("one_bad_node: p99 of requests to the others compared with before", ratios, "", "1.2");
}

/// The 99th percentile of the latency of 16 callers, in seconds.
async fn latencies(db: &Client, keys: &[String]) -> f64 {
    let end = Instant::now() + MEASURED;
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (db, key) = (db.clone(), keys[caller % keys.len()].clone());
            tokio::spawn(async move {
                let mut took = Vec::new();
                while Instant::now() < end {
                    let begun = Instant::now();
                    db.get::<String>(&key).await.expect("a healthy node replies");
                    took.push(begun.elapsed().as_secs_f64());
                }
                took
            })
        })
        .collect();
    let mut all = Vec::new();
    for caller in callers {
        all.extend(caller.await.expect("the task does not panic"));
    }
    all.sort_by(f64::total_cmp);
    all[all.len() * 99 / 100]
}
