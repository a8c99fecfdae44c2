//! Client-side caching: which reads need no request, and that no value is returned after the server has invalidated it.
//! The tests use a Redis server and a Brisk server.

use brisk::commands::{self, get};
use brisk::{Cache, CacheOptions, Client, Code, Kind, Lanes};
use brisk_testkit::proxy::{Direction, Disconnect, Proxy};
use brisk_testkit::server::{Launch, Server};
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A Redis server and a Brisk server.
fn servers() -> [Server; 2] {
    [Launch::redis().start(), Launch::subject().start()]
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

async fn client(address: &str) -> Client {
    Client::builder(address).lanes(Lanes::Count(1)).connect().await.expect("a server")
}

async fn cached(address: &str) -> (Client, Cache) {
    let db = client(address).await;
    let cache = db.cache(CacheOptions::default()).await.expect("a cache");
    (db, cache)
}

/// How many times the server has executed a command.
fn calls(server: &Server, name: &str) -> u64 {
    let stats = server.connect().cmd("INFO commandstats").to_string();
    let start = format!("cmdstat_{name}:calls=");
    let line = stats.split(&start).nth(1).map(|rest| rest.split(',').next().unwrap_or_default());
    line.map_or(0, |count| count.parse().expect("a number"))
}

/// Makes a round trip on the cache's connection. Afterwards, the messages about all writes that were acknowledged
/// before the call have arrived.
async fn fence(cache: &Cache) {
    let fence: Text =
        get("user:fence").on(&cache.no_older_than(Duration::ZERO)).await.expect("a reply");
    assert_eq!(fence, None);
    cache.forget("user:fence");
}

/// Waits until the server's invalidation messages have dropped this number of entries.
fn wait_for_message(cache: &Cache, invalidations: u64) {
    wait_until("the server's message", || cache.stats().invalidations >= invalidations);
}

/// Reports whether `k` has this value now.
fn reads(cache: &Cache, value: Option<u64>) -> bool {
    get::<u64>("k").on(cache).wait().is_ok_and(|read| read == value)
}

type Text = Option<String>;

#[test]
fn a_cached_value_is_returned_without_a_request_until_another_client_changes_it() {
    for server in servers() {
        run(async {
            let (db, cache) = cached(&server.address()).await;
            let mut other = server.connect();
            db.set("k", "1").await.unwrap();
            for _ in 0..100 {
                assert_eq!(get("k").on(&cache).await.unwrap(), Some("1".to_owned()));
                assert_eq!(get::<String>("none").on(&cache).await.unwrap(), None);
            }
            assert_eq!(calls(&server, "get"), 2);
            let stats = cache.stats();
            assert_eq!((stats.hits, stats.misses, stats.entries), (198, 2, 2));
            for (count, command) in (1..).zip(["SET k 2", "APPEND k 3", "DEL k", "LPUSH k x"]) {
                other.cmd(command);
                wait_for_message(&cache, count);
                let read: brisk::Result<Text> = get("k").on(&cache).await;
                let expected = match count {
                    1 => Ok(Some("2")),
                    2 => Ok(Some("23")),
                    3 => Ok(None),
                    _ => Err(Code::WrongType),
                };
                let read = read.as_ref().map(Option::as_deref).map_err(|error| error.code());
                assert_eq!(read, expected.map_err(Some));
            }
            other.cmd("SET none there");
            fence(&cache).await;
            assert_eq!(get("none").on(&cache).await.unwrap(), Some("there".to_owned()));
            // An error is not cached.
            let before = calls(&server, "get");
            let _ = get::<String>("k").on(&cache).await.unwrap_err();
            assert_eq!(calls(&server, "get"), before + 1);
        });
    }
}

#[test]
fn cacheable_reads_are_kept_until_any_of_their_keys_changes() {
    for server in servers() {
        run(async {
            let (_db, cache) = cached(&server.address()).await;
            let mut other = server.connect();
            other.pipeline(&["HSET h a 1 b 2", "ZADD z 1 x 2 y", "MSET s 1 t 2", "SADD m a"]);
            let round = async || {
                let hash: BTreeMap<String, i64> = commands::hgetall("h").on(&cache).await.unwrap();
                let texts: Vec<Text> = commands::mget(["s", "none", "t"]).on(&cache).await.unwrap();
                let range = commands::zrange("z", 0, -1).with_scores().on(&cache);
                let range: Vec<(String, f64)> = range.await.unwrap();
                let members: Vec<String> =
                    commands::sunion(["m", "none"]).on(&cache).await.unwrap();
                let field: Text = commands::hget("h", "a").on(&cache).await.unwrap();
                (hash, texts.concat_all(), range, members.len(), field)
            };
            let first = round().await;
            assert_eq!(first.1, "1-2");
            assert_eq!(first.2, [("x".to_owned(), 1.0), ("y".to_owned(), 2.0)]);
            assert_eq!(round().await, first);
            let stats = cache.stats();
            assert_eq!((stats.hits, stats.misses), (5, 5));
            other.cmd("SET none 3");
            // Both entries that read `none` are gone: MGET and SUNION.
            wait_for_message(&cache, 2);
            assert_eq!(cache.stats().entries, 3);
            other.cmd("DEL none");
            other.cmd("HSET h a 9");
            wait_for_message(&cache, 4);
            let last = round().await;
            assert_eq!((last.0["a"], last.4.as_deref()), (9, Some("9")));
            assert_eq!(cache.stats().hits, 5 + 1);
        });
    }
}

trait Concat {
    fn concat_all(&self) -> String;
}

impl Concat for Vec<Text> {
    fn concat_all(&self) -> String {
        self.iter().map(|text| text.as_deref().unwrap_or("-")).collect()
    }
}

#[test]
fn commands_that_cannot_be_cached_are_rejected() {
    let server = Launch::subject().start();
    run(async {
        let (_db, cache) = cached(&server.address()).await;
        for (error, name) in [
            (commands::set("k", 1).on(&cache).await.unwrap_err(), "SET"),
            (commands::ttl("k").on(&cache).await.map(drop).unwrap_err(), "TTL"),
            (commands::ping().on(&cache).await.map(drop).unwrap_err(), "PING"),
            (commands::randomkey::<String>().on(&cache).await.map(drop).unwrap_err(), "RANDOMKEY"),
        ] {
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.message().starts_with(name), "{error}");
        }
        assert_eq!(cache.stats().entries, 0);
    });
}

#[test]
fn flushing_the_database_drops_all_entries() {
    for server in servers() {
        run(async {
            let (db, cache) = cached(&server.address()).await;
            let mut other = server.connect();
            for (round, flush) in (1..).zip(["FLUSHALL", "FLUSHDB"]) {
                db.mset([("a", 1), ("b", 2)]).await.unwrap();
                // Wait for the server's messages about the two keys, which were read before.
                fence(&cache).await;
                assert_eq!(get::<i64>("a").on(&cache).await.unwrap(), Some(1));
                assert_eq!(get::<i64>("b").on(&cache).await.unwrap(), Some(2));
                assert_eq!(cache.stats().entries, 2);
                other.cmd(flush);
                wait_for_message(&cache, 2 * round);
                assert_eq!(get::<i64>("a").on(&cache).await.unwrap(), None);
                assert_eq!(get::<i64>("b").on(&cache).await.unwrap(), None);
                cache.clear();
            }
        });
    }
}

#[test]
fn no_value_is_served_after_its_key_expires_or_past_the_maximum_age() {
    for server in servers() {
        run(async {
            let (db, cache) = cached(&server.address()).await;
            let mut other = server.connect();
            // Keep the server from searching for expired keys.
            other.cmd("DEBUG SET-ACTIVE-EXPIRE 0");
            other.pipeline(&["SET k 1 PX 300", "SET forever 1", "MSET a 1 b 2"]);
            other.cmd("PEXPIRE b 300");
            assert_eq!(get::<i64>("k").on(&cache).await.unwrap(), Some(1));
            assert_eq!(
                commands::mget(["a", "b"]).on(&cache).await.unwrap(),
                vec![Some(1), Some(2)]
            );
            assert_eq!(cache.stats().entries, 2);
            // Do not read the key with another client, because the server would then notice the expiry.
            wait_until("the key to expire", || {
                commands::get::<i64>("k").on(&cache).wait().expect("a reply").is_none()
            });
            wait_until("the other one to expire", || {
                let read = commands::mget::<i64>(["a", "b"]).on(&cache).wait();
                read.expect("a reply") == [Some(1), None]
            });
            let sent = cache.stats().misses;
            let young = cache.no_older_than(Duration::ZERO);
            for _ in 0..3 {
                assert_eq!(get::<i64>("forever").on(&young).await.unwrap(), Some(1));
            }
            assert_eq!(cache.stats().misses, sent + 3);
            assert_eq!(get::<i64>("forever").on(&cache).await.unwrap(), Some(1));
            assert_eq!(cache.stats().misses, sent + 3);
            // This cache does not request the TTL, and keeps expired values until the server notices the expiry.
            let lax = db.cache(CacheOptions::default().ignore_expiry()).await.unwrap();
            let before = calls(&server, "pttl");
            assert_eq!(get::<i64>("forever").on(&lax).await.unwrap(), Some(1));
            assert_eq!(calls(&server, "pttl"), before);
        });
    }
}

#[test]
fn concurrent_callers_of_one_command_share_a_request() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let (db, cache) = cached(&link.address()).await;
            db.set("k", "value").await.unwrap();
            link.stall(Direction::ToClient, true);
            let callers: Vec<_> = (0..200)
                .map(|_| {
                    let cache = cache.clone();
                    tokio::spawn(async move { get::<String>("k").on(&cache).await })
                })
                .collect();
            wait_until("all to wait", || cache.stats().misses + cache.stats().shared == 200);
            // Some callers give up, possibly including the one that sent the request.
            callers.iter().take(20).for_each(|caller| caller.abort());
            link.stall(Direction::ToClient, false);
            for done in join_all(callers).await.into_iter().skip(20) {
                assert_eq!(done.unwrap().unwrap().as_deref(), Some("value"));
            }
            assert_eq!(calls(&server, "get"), 1);
            assert_eq!(cache.stats().shared, 199);
            assert_eq!(get("k").on(&cache).await.unwrap(), Some("value".to_owned()));
            assert_eq!(calls(&server, "get"), 1);
        });
    }
}

#[test]
fn the_cache_stays_within_its_size_limit_and_keeps_used_entries() {
    const BYTES: usize = 100_000;
    let server = Launch::subject().start();
    run(async {
        let db = client(&server.address()).await;
        let cache = db.cache(CacheOptions::default().bytes(BYTES)).await.unwrap();
        let value = "x".repeat(1000);
        for n in 0..1000 {
            db.set(format!("k{n}"), &value).await.unwrap();
        }
        db.set("huge", "x".repeat(BYTES)).await.unwrap();
        for n in 0..1000 {
            let _: Text = get("k0").on(&cache).await.unwrap();
            let read: Text = get(format!("k{n}")).on(&cache).await.unwrap();
            assert_eq!(read.as_deref(), Some(&*value));
            assert!(cache.stats().bytes <= BYTES);
        }
        let stats = cache.stats();
        assert!(stats.bytes > BYTES / 2 && stats.evictions > 800, "{stats:?}");
        // The value that is read repeatedly was not evicted.
        assert_eq!(stats.hits, 1000);
        let read: Text = get("huge").on(&cache).await.unwrap();
        assert_eq!(read.map(|text| text.len()), Some(BYTES));
        assert_eq!(cache.stats().entries, stats.entries);
        assert_eq!(cache.stats().evictions, stats.evictions);
    });
}

#[test]
fn no_value_is_served_after_the_connection_was_lost() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let (_db, cache) = cached(&link.address()).await;
            let mut other = server.connect();
            for round in 1..=30 {
                other.cmd(&format!("SET k {round}"));
                wait_until("the value to be read", || {
                    get::<i64>("k").on(&cache).wait().expect("a reply") == Some(round)
                });
                link.refuse(true);
                let cut = if round % 2 == 0 { Disconnect::Reset } else { Disconnect::End };
                link.cut(cut);
                // The invalidation message for this write cannot arrive.
                other.cmd(&format!("SET k -{round}"));
                wait_until("the loss to be noticed", || cache.stats().losses >= round as u64);
                assert_eq!(cache.stats().entries, 0);
                let waits = tokio::spawn({
                    let cache = cache.clone();
                    async move { get::<i64>("k").on(&cache).await }
                });
                link.refuse(false);
                assert_eq!(waits.await.unwrap().unwrap(), Some(-round));
                let hits = cache.stats().hits;
                assert_eq!(get::<i64>("k").on(&cache).await.unwrap(), Some(-round));
                assert_eq!(cache.stats().hits, hits + 1);
            }
        });
    }
}

#[test]
fn a_dead_connection_is_noticed_even_if_no_request_is_sent() {
    let server = Launch::redis().start();
    let link = Proxy::to(&server.address());
    run(async {
        let db = Client::builder(&link.address()).silence(Duration::from_millis(300));
        let db = db.timeout(Duration::from_millis(200)).lanes(Lanes::Count(1));
        let db = db.connect().await.unwrap();
        let cache = db.cache(CacheOptions::default()).await.unwrap();
        let mut other = server.connect();
        other.cmd("SET k 1");
        assert_eq!(get::<i64>("k").on(&cache).await.unwrap(), Some(1));
        link.part();
        other.cmd("SET k 2");
        let misses = cache.stats().misses;
        wait_until("a value not to be served any more", || {
            get::<i64>("k").on(&cache).wait().is_err() || cache.stats().misses > misses
        });
        assert_eq!(cache.stats().losses, 1);
        link.heal();
        link.cut(Disconnect::Reset);
        wait_until("the next value", || reads(&cache, Some(2)));
    });
}

#[test]
fn a_reply_that_crosses_an_invalidation_is_returned_but_not_cached() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let (_db, cache) = cached(&link.address()).await;
            let mut other = server.connect();
            for round in 0..50_u64 {
                other.cmd(&format!("SET k {round}"));
                fence(&cache).await;
                let before = cache.stats();
                // The key changes while the reply is on its way.
                link.stall(Direction::ToClient, true);
                let reads = calls(&server, "get");
                let first = tokio::spawn({
                    let cache = cache.clone();
                    async move { get::<u64>("k").on(&cache).await }
                });
                wait_until("the read to be executed", || calls(&server, "get") > reads);
                other.cmd(&format!("SET k {}", round + 1000));
                link.stall(Direction::ToClient, false);
                assert_eq!(first.await.unwrap().unwrap(), Some(round));
                // The message arrives with the reply, or right after it.
                wait_for_message(&cache, before.invalidations + 1);
                assert_eq!(cache.stats().entries, 0);
                assert_eq!(get("k").on(&cache).await.unwrap(), Some(round + 1000));
                // The next request is delayed on its way to the server, and the key changes before the request arrives.
                let sent = link.written_bytes(Direction::ToServer);
                link.stall(Direction::ToServer, true);
                let young = cache.no_older_than(Duration::ZERO);
                let second = tokio::spawn(async move { get::<u64>("k").on(&young).await });
                wait_until("the request to be made", || cache.stats().misses == before.misses + 3);
                other.cmd(&format!("SET k {}", round + 2000));
                wait_for_message(&cache, before.invalidations + 2);
                assert_eq!(link.written_bytes(Direction::ToServer), sent);
                let third = tokio::spawn({
                    let cache = cache.clone();
                    async move { get::<u64>("k").on(&cache).await }
                });
                link.stall(Direction::ToServer, false);
                assert_eq!(second.await.unwrap().unwrap(), Some(round + 2000));
                assert_eq!(third.await.unwrap().unwrap(), Some(round + 2000));
                assert_eq!(cache.stats().misses, before.misses + 4);
                cache.clear();
            }
        });
    }
}

/// Once a write has been acknowledged and a later reply has arrived on the cache's connection, the cache returns no
/// older values.
#[test]
fn no_value_is_older_than_a_write_acknowledged_one_round_trip_before() {
    const KEYS: usize = 4;
    const ROUNDS: u64 = 400;
    for server in servers() {
        run(async {
            let (_db, cache) = cached(&server.address()).await;
            let writers = (0..KEYS).map(|key| {
                let (address, cache) = (server.address(), cache.clone());
                tokio::spawn(async move {
                    let db = client(&address).await;
                    for version in 1..=ROUNDS {
                        match version % 3 {
                            0 => db.raw("INCR").key(format!("k{key}")).await.map(|_: i64| true),
                            _ => db.set(format!("k{key}"), version).await,
                        }
                        .unwrap();
                        fence(&cache).await;
                        let read: Option<u64> = get(format!("k{key}")).on(&cache).await.unwrap();
                        assert_eq!(read, Some(version), "an old value");
                        let both: Vec<Option<u64>> =
                            commands::mget([format!("k{key}"), "k0".to_owned()])
                                .on(&cache)
                                .await
                                .unwrap();
                        assert_eq!(both[0], Some(version), "an old value");
                    }
                })
            });
            let stop = Arc::new(AtomicBool::new(false));
            let readers: Vec<_> = (0..6)
                .map(|reader| {
                    let (cache, stop) = (cache.clone(), Arc::clone(&stop));
                    tokio::spawn(async move {
                        let mut seen = [0; KEYS];
                        let mut reads = reader;
                        while !stop.load(Ordering::Relaxed) {
                            let key = reads % KEYS;
                            let read = get::<u64>(format!("k{key}")).on(&cache).await.unwrap();
                            let read = read.unwrap_or(0);
                            assert!(read >= seen[key], "time went back: {read}, {}", seen[key]);
                            seen[key] = read;
                            reads += 1;
                            if reads.is_multiple_of(64) {
                                tokio::task::yield_now().await;
                            }
                        }
                    })
                })
                .collect();
            let written = join_all(writers.collect::<Vec<_>>()).await;
            stop.store(true, Ordering::Relaxed);
            for done in join_all(readers).await.into_iter().chain(written) {
                done.unwrap();
            }
            let stats = cache.stats();
            assert!(stats.hits > 0 && stats.invalidations > ROUNDS, "{stats:?}");
        });
    }
}

#[test]
fn a_storm_of_cuts_never_leaves_an_old_value() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let db = client(&link.address()).await;
            let cache = db.cache(CacheOptions::default()).await.unwrap();
            let mut other = server.connect();
            let stop = Arc::new(AtomicBool::new(false));
            let readers: Vec<_> = (0..8)
                .map(|_| {
                    let (cache, stop) = (cache.clone(), stop.clone());
                    tokio::spawn(async move {
                        let mut last = 0;
                        while !stop.load(Ordering::Relaxed) {
                            // If the connection is lost repeatedly, the read fails eventually.
                            if let Ok(Some(read)) = get::<u64>("k").on(&cache).await {
                                assert!(read >= last, "time went back");
                                last = read;
                            }
                            tokio::task::yield_now().await;
                        }
                    })
                })
                .collect();
            for version in 1..=150_u64 {
                other.cmd(&format!("SET k {version}"));
                if version % 3 == 0 {
                    link.cut(if version % 2 == 0 { Disconnect::Reset } else { Disconnect::End });
                    other.cmd(&format!("SET k {version}"));
                }
                wait_until("the newest value", || reads(&cache, Some(version)));
            }
            stop.store(true, Ordering::Relaxed);
            for done in join_all(readers).await {
                done.unwrap();
            }
            assert!(cache.stats().losses > 0);
        });
    }
}

#[test]
fn a_writer_reads_its_own_write_after_forgetting_the_key() {
    for server in servers() {
        let link = Proxy::to(&server.address());
        run(async {
            let db = client(&server.address()).await;
            // The messages to this cache are delayed.
            let (_slow, cache) = cached(&link.address()).await;
            for round in 0..20_u64 {
                db.set("k", round).await.unwrap();
                cache.forget("k");
                assert_eq!(get("k").on(&cache).await.unwrap(), Some(round));
                link.delay(Duration::from_millis(5));
            }
        });
    }
}

#[test]
fn with_prefixes_the_server_reports_all_their_changes_and_other_keys_are_rejected() {
    for server in servers() {
        run(async {
            let db = client(&server.address()).await;
            let options = CacheOptions::default().prefix("user:").prefix("item:");
            let cache = db.cache(options).await.unwrap();
            let mut other = server.connect();
            other.cmd("SET user:1 ana");
            fence(&cache).await;
            for _ in 0..10 {
                assert_eq!(get("user:1").on(&cache).await.unwrap(), Some("ana".to_owned()));
                assert_eq!(get::<i64>("item:1").on(&cache).await.unwrap(), None);
            }
            assert_eq!(calls(&server, "get"), 2 + 1);
            assert_eq!(server.info("tracking_total_keys"), "0");
            other.cmd("SET item:1 5");
            wait_for_message(&cache, 1);
            assert_eq!(get("item:1").on(&cache).await.unwrap(), Some(5));
            let error = get::<i64>("other").on(&cache).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            let error = commands::mget::<String>(["user:1", "x"]).on(&cache).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            let overlapping = CacheOptions::default().prefix("a").prefix("ab");
            assert_eq!(db.cache(overlapping).await.unwrap_err().code(), Some(Code::Err));
        });
    }
}

#[test]
fn an_error_says_why_a_cache_cannot_be_opened() {
    for server in servers() {
        run(async {
            let old = Client::builder(&server.address()).protocol(2).connect().await.unwrap();
            let error = old.cache(CacheOptions::default()).await.unwrap_err();
            assert!(error.kind() == Kind::Invalid && error.message().contains("RESP3"), "{error}");
            let mut admin = server.connect();
            admin.cmd("ACL SETUSER reader on >secret ~* +@all -client|tracking");
            admin.cmd("ACL SETUSER timeless on >secret ~* +@all -pttl");
            let login = |user: &str| Client::builder(&server.address()).login(user, "secret");
            let db = login("reader").connect().await.unwrap();
            let error = db.cache(CacheOptions::default()).await.unwrap_err();
            assert_eq!(error.code(), Some(Code::NoPerm));
            assert!(error.message().contains("tracking"), "{error}");
            let db = login("timeless").connect().await.unwrap();
            let cache = db.cache(CacheOptions::default()).await.unwrap();
            let error = get::<String>("k").on(&cache).await.unwrap_err();
            assert_eq!(error.code(), Some(Code::NoPerm));
            assert!(error.message().contains("ignore_expiry"), "{error}");
            let cache = db.cache(CacheOptions::default().ignore_expiry()).await.unwrap();
            assert_eq!(get::<String>("k").on(&cache).await.unwrap(), None);
        });
    }
}

#[test]
fn a_cache_closes_with_its_client_and_works_without_a_runtime() {
    for server in servers() {
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        let cache = db.cache_blocking(CacheOptions::default()).unwrap();
        db.set("k", 1).wait().unwrap();
        for _ in 0..10 {
            assert_eq!(get::<i64>("k").on(&cache).wait().unwrap(), Some(1));
        }
        assert_eq!(calls(&server, "get"), 1);
        db.close();
        assert_eq!(get::<i64>("k").on(&cache).wait().unwrap_err().kind(), Kind::Closed);
        let error = db.cache_blocking(CacheOptions::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Closed);
        // The cache's connection is closed when the last handle is dropped.
        let db = Client::builder(&server.address()).connect_blocking().unwrap();
        let cache = db.cache_blocking(CacheOptions::default()).unwrap();
        wait_until("the connection", || server.info("tracking_clients") == "1");
        drop(db);
        assert_eq!(get::<i64>("k").on(&cache).wait().unwrap(), Some(1));
        drop(cache);
        wait_until("the connection to end", || server.info("tracking_clients") == "0");
    }
}

#[test]
fn cached_commands_only_read_and_have_their_keys_at_the_expected_positions() {
    for server in servers() {
        let mut conn = server.connect();
        for (name, shape) in brisk::Cache::kept() {
            let reply = conn.cmd(&format!("COMMAND INFO {name}")).to_string();
            assert!(reply.contains("readonly"), "{name}: {reply}");
            let (words, keys) = match shape {
                "one" => ("a b c d e f g h", vec!["a"]),
                "two" => ("a b", vec!["a", "b"]),
                "all" => ("a b c d", vec!["a", "b", "c", "d"]),
                _ => ("2 a b", vec!["a", "b"]),
            };
            // A command with a fixed arity needs exactly that number of arguments.
            let arity: i64 = reply
                .lines()
                .nth(1)
                .and_then(|line| line.rsplit(' ').next()?.parse().ok())
                .expect("an arity");
            let most = if arity > 0 { arity as usize - 1 } else { usize::MAX };
            let words: Vec<&str> = words.split(' ').take(most).collect();
            let reply = conn.cmd(&format!("COMMAND GETKEYS {name} {}", words.join(" ")));
            let found: Vec<_> =
                keys.iter().enumerate().map(|(at, key)| format!("{}) \"{key}\"", at + 1)).collect();
            assert_eq!(reply.to_string(), found.join("\n"), "{name}");
        }
    }
}
