//! Data structures built from simpler ones: sharded maps and sets (M4), Bloom filters (C5).

use brisk::recipes::{Bloom, ShardedMap, ShardedSet, shard_key};
use brisk::{Client, Kind, commands};
use brisk_testkit::random::Random;
use brisk_testkit::server::{Launch, Server};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

const USERS: u64 = 20_000;
const SHARD: u64 = 1000;

/// A Redis server and a Brisk server, configured for shards of a thousand elements.
fn servers() -> [Server; 2] {
    [Launch::redis(), Launch::subject()]
        .map(|launch| launch.set("hash-max-listpack-entries", "1024").start())
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// The value stored for a user.
fn number(user: u64) -> u64 {
    user * 7919 % 1_000_000
}

/// A client with a long time limit, because recipes send thousands of commands at the same time.
async fn client(server: &Server) -> Client {
    let db = Client::builder(&server.address()).timeout(Duration::from_secs(120));
    db.connect().await.expect("a server")
}

async fn memory(db: &Client, keys: impl Iterator<Item = String>) -> i64 {
    let requests = keys.map(commands::memory_usage);
    let sizes = db.batch(requests.collect::<Vec<_>>()).await.expect("sizes");
    sizes.into_iter().map(|size| size.unwrap_or(0)).sum()
}

#[test]
fn shards_stay_compact_and_take_a_fraction_of_the_memory_of_plain_keys() {
    for server in servers() {
        run(async {
            let db = client(&server).await;
            let plain = (0..USERS).map(|user| commands::set(format!("user:{user}"), number(user)));
            db.batch(plain.map(|set| set.reply_as::<()>()).collect::<Vec<_>>()).await.unwrap();
            let plain = memory(&db, (0..USERS).map(|user| format!("user:{user}"))).await;
            let mut sizes = Vec::new();
            for (base, prefix) in [("by-number", ""), ("by-crc", "u")] {
                let map = ShardedMap::new(&db, base, USERS, SHARD).unwrap();
                assert!(map.is_empty().await.unwrap());
                let pairs = (0..USERS).map(|user| (format!("{prefix}{user}"), number(user)));
                map.mset(pairs).await.unwrap();
                assert_eq!(map.len().await.unwrap(), USERS);
                let shards = || (0..map.shards()).map(|shard| format!("{base}:{shard}"));
                for shard in shards() {
                    let encoding: Option<String> = db.object_encoding(&shard).await.unwrap();
                    let len = db.hlen(&shard).await.unwrap();
                    assert!(len == 0 || encoding.as_deref() == Some("listpack"), "{shard}: {len}");
                }
                sizes.push(memory(&db, shards()).await);
                // The element is at the key and field at which another program would look for it.
                let (key, field) = (format!("{prefix}4711"), format!("{prefix}4711"));
                let shard = shard_key(base, &key, USERS, SHARD);
                assert_eq!(db.hget(shard, field).await.unwrap(), Some(number(4711)));
            }
            eprintln!(
                "note: {USERS} plain keys {plain} bytes, by number {}, by CRC32 {}",
                sizes[0], sizes[1]
            );
            assert!(sizes.iter().all(|size| size * 2 < plain));
        });
    }
}

#[test]
fn a_sharded_map_is_a_map() {
    for server in servers() {
        run(async {
            let db = client(&server).await;
            let map = ShardedMap::new(&db, "m", 500, 20).unwrap();
            let mut model: BTreeMap<String, i64> = BTreeMap::new();
            let mut random = Random::new(4);
            for _ in 0..2000 {
                let key = match random.below(2) {
                    0 => random.below(900).to_string(),
                    _ => format!("key {}", random.below(300)),
                };
                match random.below(4) {
                    0 | 1 => {
                        let value = random.below(1000) as i64;
                        let is_new = map.set(&key, value).await.unwrap();
                        assert_eq!(is_new, model.insert(key, value).is_none());
                    }
                    2 => {
                        let was_there = map.remove(&key).await.unwrap();
                        assert_eq!(was_there, model.remove(&key).is_some());
                    }
                    _ => {
                        let value = map.incr(&key, 3).await.unwrap();
                        let expected = model.entry(key).or_default();
                        *expected += 3;
                        assert_eq!(value, *expected);
                    }
                }
            }
            assert_eq!(map.len().await.unwrap(), model.len() as u64);
            let keys: Vec<String> = model.keys().cloned().chain(["none".to_owned()]).collect();
            let values: Vec<Option<i64>> = map.mget(&keys).await.unwrap();
            assert!(keys.iter().map(|key| model.get(key).copied()).eq(values));
            assert_eq!(map.get(&keys[0]).await.unwrap(), model.get(&keys[0]).copied());
            let (mut pages, mut read) = (map.scan::<String, i64>(), BTreeMap::new());
            while let Some(page) = pages.next().await.unwrap() {
                assert!(!page.is_empty());
                for (key, value) in page {
                    assert_eq!(read.insert(key, value), None);
                }
            }
            assert_eq!(read, model);
            // The element would be in a shard that iterations do not read.
            assert_eq!(map.set(1000, 1).await.unwrap_err().kind(), Kind::Invalid);
            let pairs = [("1", 1), ("1000", 1)];
            assert_eq!(map.mset(pairs).await.unwrap_err().kind(), Kind::Invalid);
            assert!(map.mget::<i64>([""; 0]).await.unwrap().is_empty());
        });
    }
}

#[test]
fn a_sharded_set_is_a_set_of_small_ones() {
    for server in servers() {
        run(async {
            let db = client(&server).await;
            let set = ShardedSet::new(&db, "s", 5000, 512).unwrap();
            for member in (0..5000).step_by(10) {
                assert!(set.insert(member).await.unwrap());
                assert!(!set.insert(member).await.unwrap());
            }
            assert!(set.contains(40).await.unwrap() && !set.contains(41).await.unwrap());
            assert!(set.remove(40).await.unwrap() && !set.remove(40).await.unwrap());
            assert_eq!(set.len().await.unwrap(), 499);
            for shard in 0..19 {
                let encoding: Option<String> =
                    db.object_encoding(format!("s:{shard}")).await.unwrap();
                assert_eq!(encoding.as_deref(), Some("intset"), "{shard}");
            }
            // The rule gives this shard for an X followed by the digits.
            assert_eq!(
                ShardedSet::new(&db, "user", 1_000_000, 1000).unwrap().shard_key(1),
                "user:889"
            );
        });
    }
}

#[test]
fn a_bloom_filter_has_no_false_negatives_and_the_stated_false_positive_rate() {
    for server in servers() {
        run(async {
            let db = client(&server).await;
            // As computed by hand from m = -n ln p / (ln 2)^2 and k = m/n ln 2.
            let large = Bloom::new(&db, "large", 1_000_000, 0.01).unwrap();
            assert_eq!((large.bits(), large.hashes()), (9_585_059, 7));
            for (p, most, least) in [(0.01, 0.0125, 0.0075), (0.001, 0.002, 0.0002)] {
                let filter = Bloom::new(&db, "f", 10_000, p).unwrap();
                filter.clear().await.unwrap();
                let mut random = Random::new(5);
                let mut items = |count: usize, of: &str| -> Vec<String> {
                    (0..count).map(|n| format!("{of}{n}:{}", random.bits())).collect()
                };
                let (inside, outside) = (items(10_000, "in"), items(20_000, "out"));
                let added = filter.add_all(&inside).await.unwrap();
                let new = added.iter().filter(|is_new| **is_new).count();
                assert!(new > 9_900, "{new}: the filter is not full before the end");
                assert!(filter.contains_all(&inside).await.unwrap().iter().all(|found| *found));
                assert!(!filter.add(&inside[0]).await.unwrap());
                let found = filter.contains_all(&outside).await.unwrap();
                let rate = found.iter().filter(|found| **found).count() as f64 / 20_000.0;
                let len = filter.estimated_len().await.unwrap();
                eprintln!("note: {p}: {rate} of the others seem to be there; {len} items, it says");
                assert!((least..=most).contains(&rate), "{rate}");
                assert!((9_800..=10_200).contains(&len), "{len}");
                // The string is no larger than the filter reported.
                assert!(db.strlen("f").await.unwrap() as u64 <= filter.bits() / 8 + 1);
                filter.clear().await.unwrap();
                assert!(!filter.contains(&inside[0]).await.unwrap());
                assert_eq!(filter.estimated_len().await.unwrap(), 0);
            }
            for (items, p) in [(0, 0.1), (10, 0.0), (10, 1.0), (10, f64::NAN), (1 << 40, 0.01)] {
                assert_eq!(Bloom::new(&db, "f", items, p).unwrap_err().kind(), Kind::Invalid);
            }
        });
    }
}

#[test]
fn a_call_of_a_bloom_filter_takes_one_round_trip() {
    let server = Launch::subject().start();
    let link = brisk_testkit::proxy::Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).lanes(brisk::Lanes::Count(1));
        let db = db.connect().await.unwrap();
        let filter = Bloom::new(&db, "f", 1000, 0.01).unwrap();
        // If the call took several round trips, later commands would not be sent before the first replies arrive.
        link.stall(brisk_testkit::proxy::Direction::ToClient, true);
        let adds = tokio::spawn({
            let filter = filter.clone();
            async move { filter.add_all(0..1000).await }
        });
        let mut conn = server.connect();
        brisk_testkit::wait::wait_until("all to be there before anything was replied to", || {
            conn.cmd("BITCOUNT f").integer() > 4000
        });
        link.stall(brisk_testkit::proxy::Direction::ToClient, false);
        assert_eq!(adds.await.unwrap().unwrap().len(), 1000);
        assert_eq!(filter.contains_all(0..1000).await.unwrap(), vec![true; 1000]);
    });
}
