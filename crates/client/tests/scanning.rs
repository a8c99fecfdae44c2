//! Iterations over keys, hashes, sets and sorted sets, with a Redis server and a Brisk server.

use brisk::{Client, Code, Lanes};
use brisk_testkit::proxy::{Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

/// A Redis server and a Brisk server.
fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A client of a server with 2,000 strings, 1,000 hashes, and a large value of each other type.
async fn filled(address: &str) -> Client {
    let db = Client::builder(address).lanes(Lanes::Count(1)).connect().await.expect("a server");
    let strings: Vec<_> = (0..2000).map(|n| (format!("s:{n}"), n)).collect();
    db.mset(strings).await.expect("room");
    let hashes = (0..1000).map(|n| brisk::commands::hset(format!("h:{n}"), [("f", n)]));
    db.batch(hashes.collect::<Vec<_>>()).await.expect("room");
    let names = |letter: char| (0..1000).map(move |n| format!("{letter}{n}"));
    let _ = db.hset("hash", names('f').zip(0..).collect::<Vec<_>>()).await.expect("room");
    let _ = db.sadd("set", names('m').collect::<Vec<_>>()).await.expect("room");
    let scores = (0..1000).map(|n| f64::from(n) / 2.0).zip(names('m'));
    let _ = db.zadd("zset", scores.collect::<Vec<_>>()).await.expect("room");
    db
}

#[test]
fn scans_return_all_elements() {
    for server in servers() {
        for protocol in [2, 3] {
            run(async {
                let db = filled(&format!("redis://{}?protocol={protocol}", server.address())).await;
                let mut keys = db.scan_keys::<String>().count(100);
                let mut seen = BTreeSet::new();
                while let Some(key) = keys.next().await.unwrap() {
                    seen.insert(key);
                }
                assert_eq!(seen.len(), 3003);
                assert_eq!((keys.cursor(), keys.next().await.unwrap()), (None, None));

                let mut hashes = db.scan_keys::<String>().pattern("h:1*").kind("hash").count(500);
                let mut seen = BTreeSet::new();
                while let Some(page) = hashes.page().await.unwrap() {
                    assert!(page.iter().all(|key| key.starts_with("h:1")), "{page:?}");
                    seen.extend(page);
                }
                assert_eq!(seen.len(), 111);

                let mut fields = db.scan_hash::<String, i64>("hash").count(100);
                let mut seen = BTreeMap::new();
                while let Some((field, value)) = fields.next().await.unwrap() {
                    assert_eq!(field, format!("f{value}"));
                    seen.insert(field, value);
                }
                assert_eq!(seen.len(), 1000);

                let mut members = db.scan_set::<String>("set").pattern("m99*");
                let mut seen = BTreeSet::new();
                while let Some(member) = members.next().await.unwrap() {
                    seen.insert(member);
                }
                assert_eq!(seen.len(), 11);

                let mut scores = db.scan_sorted_set::<String>("zset");
                let mut sum = BTreeMap::new();
                while let Some((member, score)) = scores.next().await.unwrap() {
                    assert_eq!(member, format!("m{}", score * 2.0));
                    sum.insert(member, score);
                }
                assert_eq!(sum.values().sum::<f64>(), 999.0 * 1000.0 / 4.0);
            });
        }
    }
}

#[test]
fn a_scan_continues_from_its_cursor_with_the_remaining_elements() {
    for server in servers() {
        run(async {
            let db = filled(&server.address()).await;
            let mut seen = BTreeSet::new();
            let mut cursor = 0;
            let mut walks = 0;
            loop {
                let session = db.session().await.unwrap();
                let mut keys = session.scan_keys::<String>().count(50).from_cursor(cursor);
                // The walk stops in the middle of a page, at the end of a page, or after several pages.
                for _ in 0..(1 + walks * 7 % 120) {
                    seen.extend(keys.next().await.unwrap());
                }
                if walks % 2 == 0 {
                    seen.extend(keys.page().await.unwrap().unwrap_or_default());
                }
                walks += 1;
                match keys.cursor() {
                    Some(next) => cursor = next,
                    None => break,
                }
                assert!(walks < 10_000, "it does not come to an end");
            }
            assert_eq!(seen.len(), 3003);
            assert!(walks > 10, "{walks}");
        });
    }
}

#[test]
fn a_page_whose_future_was_dropped_or_whose_connection_was_lost_is_requested_again() {
    let server = Launch::subject().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = filled(&link.address()).await;
        let mut keys = db.scan_keys::<String>().count(100);
        let mut seen = BTreeSet::new();
        loop {
            {
                let mut dropped = pin!(keys.page());
                let _ = dropped.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            if seen.len() % 7 == 0 {
                link.cut(Disconnect::Reset);
            }
            match keys.page().await.unwrap() {
                Some(page) => seen.extend(page),
                None => break,
            }
        }
        assert_eq!(seen.len(), 3003);
    });
}

#[test]
fn a_scan_works_without_a_runtime_and_returns_the_servers_errors() {
    for server in servers() {
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        let _ = db.sadd("set", (0..500).collect::<Vec<i64>>()).wait().unwrap();
        let mut seen = BTreeSet::new();
        let mut members = db.scan_set::<u64>("set");
        while let Some(member) = members.wait_next().unwrap() {
            seen.insert(member);
        }
        assert!(seen.into_iter().eq(0..500));
        let mut pages = db.scan_set::<u64>("set").count(100);
        let mut count = 0;
        while let Some(page) = pages.wait_page().unwrap() {
            count += page.len();
        }
        assert!(count >= 500);
        let error = db.scan_hash::<String, String>("set").wait_next().unwrap_err();
        assert_eq!(error.code(), Some(Code::WrongType));
        assert_eq!(db.scan_set::<String>("none").wait_next().unwrap(), None);
    }
}
