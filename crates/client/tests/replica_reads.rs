//! A primary and its replicas without a cluster: which server executes which commands, and what happens if one of them
//! fails.

use brisk::{Builder, Client, Kind, Lanes, ReadFrom, commands};
use brisk_testkit::kind::Kind as Of;
use brisk_testkit::server::Server;
use brisk_testkit::wait::wait_until;
use std::future::Future;
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Starts a primary and two replicas, the primary first.
fn start(of: Of) -> Vec<Server> {
    let servers: Vec<Server> = (0..3).map(|_| of.launch().start()).collect();
    for replica in &servers[1..] {
        follow(replica, &servers[0]);
    }
    let info = || servers[0].connect().cmd("INFO replication").text();
    wait_until("two replicas", || info().matches("state=online").count() == 2);
    servers
}

fn follow(replica: &Server, primary: &Server) {
    let follow = format!("REPLICAOF 127.0.0.1 {}", primary.port());
    assert_eq!(replica.connect().cmd(&follow).to_string(), "OK");
    replica.wait_for_info("master_link_status", |status| status == "up");
}

/// A client that knows all servers, a replica first.
fn client(servers: &[Server]) -> Builder {
    let url = format!("redis://{}/3", servers[1].address());
    let client = Client::builder(&url).seed(&servers[0].address()).seed(&servers[2].address());
    client.lanes(Lanes::Count(2)).timeout(Duration::from_secs(20))
}

/// How many times a server has executed a command, by its own count.
fn calls(server: &Server, command: &str) -> u64 {
    let info = server.connect().cmd("INFO commandstats").text();
    let name = format!("cmdstat_{command}:calls=");
    let calls = info.lines().find_map(|line| line.strip_prefix(name.as_str()));
    calls.map_or(0, |rest| rest.split(',').next().expect("a number").parse().expect("a number"))
}

#[test]
fn reads_go_to_the_replicas_in_turn_and_other_commands_to_the_primary() {
    for of in [Of::Redis, Of::Brisk] {
        let servers = start(of);
        run(async {
            let db = client(&servers).read_from(ReadFrom::PreferReplica).connect().await.unwrap();
            for number in 0..40 {
                db.set(format!("k:{number}"), number).await.unwrap();
            }
            // A transaction may use any keys, because there are no slots without a cluster.
            let (one, two): (i64, i64) =
                db.transaction((commands::incr("n:1"), commands::incr("n:2"))).await.unwrap();
            assert_eq!((one, two), (1, 1));
            let session = db.session().await.unwrap();
            session.raw::<()>("SET").key("last").arg(1).await.unwrap();
            let acknowledged: usize =
                session.raw("WAIT").arg(2).arg(10_000).await.expect("a reply");
            assert_eq!(acknowledged, 2);
            for number in 0..40 {
                let value: Option<u64> = db.get(format!("k:{number}")).await.unwrap();
                assert_eq!(value, Some(number));
            }
            let keys: Vec<String> = (0..40).map(|number| format!("k:{number}")).collect();
            let all: Vec<Option<u64>> = db.mget(&keys).await.unwrap();
            assert_eq!(all, (0..40).map(Some).collect::<Vec<_>>());
            assert_eq!(db.dbsize().await.unwrap(), 43);
        });
        let counted =
            |command| servers.iter().map(|server| calls(server, command)).collect::<Vec<_>>();
        assert_eq!(counted("get"), [0, 20, 20], "{of:?}");
        let mget = counted("mget");
        assert_eq!((mget[0], mget[1] + mget[2]), (0, 1), "{of:?}");
        // Replicas execute what the primary sends them.
        assert_eq!((counted("set")[0], counted("dbsize")), (41, vec![1, 0, 0]), "{of:?}");
    }
}

#[test]
fn reads_that_a_replica_rejects_go_to_the_primary_if_allowed() {
    let mut servers = start(Of::Redis);
    run(async {
        let db = client(&servers).read_from(ReadFrom::PreferReplica).connect().await.unwrap();
        let only = client(&servers).read_from(ReadFrom::Replica).connect().await.unwrap();
        db.set("k", "v").await.unwrap();
        let session = db.session().await.unwrap();
        session.raw::<()>("SET").key("k").arg("v").await.unwrap();
        assert_eq!(session.raw::<usize>("WAIT").arg(2).arg(10_000).await.unwrap(), 2);
        // The replicas report that they have lost their primary.
        for replica in &servers[1..] {
            assert_eq!(
                replica.connect().cmd("CONFIG SET replica-serve-stale-data no").to_string(),
                "OK"
            );
            assert_eq!(replica.connect().cmd("REPLICAOF 127.0.0.1 1").to_string(), "OK");
        }
        let both = (commands::get::<String>("k"), commands::exists("k"));
        assert_eq!(db.batch(both).await.unwrap(), (Some("v".to_owned()), 1));
        let read: Option<String> = db.get("k").await.unwrap();
        assert_eq!(read.as_deref(), Some("v"));
        let stopped: Vec<Server> = servers.drain(1..).collect();
        drop(stopped);
        for _ in 0..10 {
            let read: Option<String> = db.get("k").await.unwrap();
            assert_eq!(read.as_deref(), Some("v"));
        }
        let alone = only.get::<String>("k").timeout(Duration::from_millis(300)).await.unwrap_err();
        assert!(matches!(alone.kind(), Kind::Timeout(_) | Kind::Disconnected), "{alone}");
    });
}

#[test]
fn a_new_primary_is_found_by_querying_the_other_servers() {
    for of in [Of::Redis, Of::Brisk] {
        let mut servers = start(of);
        run(async {
            let db = client(&servers).read_from(ReadFrom::PreferReplica).connect().await.unwrap();
            db.set("k", 1).await.unwrap();
            let news = db.subscriber().await.unwrap();
            news.subscribe(["news"]).await.unwrap();
            assert_eq!(servers[1].connect().cmd("REPLICAOF NO ONE").to_string(), "OK");
            follow(&servers[2], &servers[1]);
            // At first, the former primary continues as a replica, which rejects writes. Then it stops.
            follow(&servers[0], &servers[1]);
            db.set("k", 2).await.unwrap();
            let mut inside = servers[1].connect();
            inside.cmd("SELECT 3");
            assert_eq!(inside.cmd("GET k").text(), "2", "{of:?}");
            drop(servers.remove(0));
            db.set("k", 3).await.unwrap();
            assert_eq!(inside.cmd("GET k").text(), "3", "{of:?}");
            let runtime = tokio::runtime::Handle::current();
            wait_until("the listener to be at the new one, too", || {
                let published = async { db.publish("news", "x").await.unwrap() };
                tokio::task::block_in_place(|| runtime.block_on(published)) == 1
            });
            // The replica may lag for a while, because a primary sends data to a new replica only after an
            // acknowledgment.
            wait_until("the replica that is left to be read", || {
                let read = async { db.get::<u64>("k").await };
                let read = tokio::task::block_in_place(|| runtime.block_on(read));
                read.unwrap() == Some(3) && calls(&servers[1], "get") > 0
            });
        });
    }
}

#[test]
fn an_invalid_combination_of_options_is_an_error() {
    let primary = Of::Redis.launch().start();
    let url = format!("redis://{}", primary.address());
    run(async {
        let cached = Client::builder(&url).read_from(ReadFrom::Replica).connect().await.unwrap();
        let error = cached.cache(brisk::CacheOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains("one server"), "{error}");
        let error = Client::builder(&url).map_addresses(|host, port| (host.to_owned(), port));
        assert_eq!(error.connect().await.unwrap_err().kind(), Kind::Invalid);
        let error = Builder::sentinel(["127.0.0.1:1"], "name").seed(&primary.address());
        assert_eq!(error.connect().await.unwrap_err().kind(), Kind::Invalid);
    });
}

#[test]
fn a_scan_of_a_key_stays_on_one_server_and_misses_nothing() {
    let servers = start(Of::Redis);
    run(async {
        let db = client(&servers).read_from(ReadFrom::PreferReplica).connect().await.unwrap();
        let fields: Vec<(u32, u32)> = (0..2000).map(|field| (field, field)).collect();
        db.hset("h", &fields).await.unwrap();
        let session = db.session().await.unwrap();
        session.raw::<()>("SET").key("last").arg(1).await.unwrap();
        assert_eq!(session.raw::<usize>("WAIT").arg(2).arg(10_000).await.unwrap(), 2);
        let mut walk = db.scan_hash::<u32, u32>("h").count(50);
        let mut found = std::collections::BTreeSet::new();
        while let Some((field, _)) = walk.next().await.unwrap() {
            found.insert(field);
        }
        assert_eq!(found.len(), fields.len());
    });
}
