//! Tests with a real cluster: commands find their nodes, even while slots are moving. For nodes that fail, see
//! `cluster_faults.rs`.

use brisk::{Client, Code, Kind, ReadFrom, Script, Step, commands};
use brisk_testkit::cluster::{Cluster, slot};
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// Longer than moving a slot takes on a loaded machine.
const LONG: Duration = Duration::from_secs(20);

async fn connect(cluster: &Cluster, protocol: u8) -> Client {
    // One address is enough: the node knows the others.
    let url = format!("redis-cluster://{}", cluster.addresses(&[1]));
    let db = Client::builder(&url).protocol(protocol).timeout(LONG);
    db.connect().await.expect("the cluster replies")
}

/// A number in a field of INFO, such as `calls` of `cmdstat_get`; 0 if the field does not exist.
fn stat(cluster: &Cluster, node: usize, line: &str, field: &str) -> u64 {
    let info = cluster.node(node).connect().cmd("INFO everything").text();
    let line = info.lines().find_map(|found| found.strip_prefix(&format!("{line}:")));
    let field = format!("{field}=");
    let value = line.and_then(|line| line.split(',').find_map(|pair| pair.strip_prefix(&field)));
    value.map_or(0, |value| value.parse().expect("a number"))
}

#[test]
fn commands_of_every_group_are_sent_to_the_node_of_their_keys() {
    static ADD: Script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    for cluster in Cluster::start_each(3, 0, &[]) {
        for protocol in [2, 3] {
            run(async {
                let db = connect(&cluster, protocol).await;
                for primary in 0..3 {
                    let tag = cluster.key_of(primary, usize::from(protocol));
                    let key = |name: &str| format!("{{{tag}}}:{name}");
                    db.set(key("string"), "x").await.unwrap();
                    assert_eq!(db.get(key("string")).await.unwrap(), Some("x".to_owned()));
                    assert_eq!(db.incr(key("number")).await.unwrap(), 1);
                    assert_eq!(db.setbit(key("bits"), 7, 1).await.unwrap(), 0);
                    assert_eq!(db.rpush(key("list"), ["a", "b"]).await.unwrap(), 2);
                    db.hset(key("hash"), [("f", 1)]).await.unwrap();
                    db.sadd(key("set"), ["a", "b"]).await.unwrap();
                    db.zadd(key("zset"), [(1.0, "a")]).await.unwrap();
                    db.pfadd(key("hll"), ["a"]).await.unwrap();
                    let id: String =
                        db.raw("XADD").key(key("stream")).args(["*", "f", "v"]).await.unwrap();
                    assert!(id.contains('-'));
                    let union: i64 =
                        db.sunionstore(key("union"), [key("set"), key("none")]).await.unwrap();
                    assert_eq!(union, 2);
                    assert_eq!(ADD.run::<i64>(&db, [key("number")], [5]).await.unwrap(), 6);
                    let mut node = cluster.node(primary).connect();
                    let names = "string number bits list hash set zset hll stream union";
                    for name in names.split(' ') {
                        assert_eq!(
                            node.cmd(&format!("EXISTS {}", key(name))).integer(),
                            1,
                            "{name}"
                        );
                    }
                }
                // Commands without a key go to the primary of the first slot. With the handles, they reach each
                // primary.
                assert!(db.ping().await.is_ok());
                let first = cluster.node(0).connect().cmd("DBSIZE").integer();
                assert_eq!(db.dbsize().await.unwrap(), first);
                let primaries = db.primaries();
                assert_eq!(primaries.len(), 3);
                for (at, node) in primaries.iter().enumerate() {
                    let size = cluster.node(at).connect().cmd("DBSIZE").integer();
                    assert_eq!(node.dbsize().await.unwrap(), size);
                }
                let key = cluster.key_of(2, 0);
                db.node_for(&key).set(&key, 1).await.unwrap();
                let elsewhere = primaries[0].set(&key, 1).await.unwrap_err();
                assert_eq!(elsewhere.code(), Some(Code::Moved));
                // Node 1 received no command for a slot of another node.
                let moved = stat(&cluster, 1, "errorstat_MOVED", "count");
                assert_eq!(moved, 0, "the map was known from the beginning");
            });
        }
    }
}

#[test]
fn replies_to_commands_and_batches_over_several_nodes_are_in_order() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        for protocol in [2, 3] {
            run(async {
                let db = connect(&cluster, protocol).await;
                let keys: Vec<String> = (0..100).map(|n| format!("{protocol}:{n}")).collect();
                db.mset(keys.iter().zip(0..).collect::<Vec<_>>()).await.unwrap();
                let mut requested = keys.clone();
                requested.insert(50, "none".to_owned());
                let values: Vec<Option<i64>> = db.mget(&requested).await.unwrap();
                let wanted = (0..50).map(Some).chain([None]).chain((50..100).map(Some));
                assert_eq!(values, wanted.collect::<Vec<_>>());
                assert_eq!(db.exists(&requested).await.unwrap(), 100);
                assert_eq!(db.touch(&keys).await.unwrap(), 100);
                assert_eq!(db.del(&keys[..60]).await.unwrap(), 60);
                assert_eq!(db.unlink(&keys).await.unwrap(), 40);
                // The same applies to commands that are built by name.
                db.raw::<()>("mset").key("a").arg(1).key("b").arg(2).key("c").arg(3).await.unwrap();
                let values: Vec<i64> = db.raw("mget").key("c").key("a").key("b").await.unwrap();
                assert_eq!(values, [3, 1, 2]);

                let counts: Vec<_> = keys.iter().map(commands::incr).collect();
                assert_eq!(db.batch(counts).await.unwrap(), vec![1; 100]);
                let twice = keys.iter().chain(&keys).map(|key| commands::append(key, "x"));
                let lengths = db.batch(twice.collect::<Vec<_>>()).await.unwrap();
                assert_eq!(lengths, [vec![2; 100], vec![3; 100]].concat());
                let large = "x".repeat(100_000);
                let (a, sum, wrong, b, ()) = db
                    .batch((
                        commands::get::<i64>("a"),
                        commands::exists(["a", "b", "c", "none"]),
                        commands::sinter::<String>(["a", "b"]).reply_as::<brisk::Result<()>>(),
                        commands::mget::<i64>(["b", "a"]),
                        commands::set("large", &large).reply_as::<()>(),
                    ))
                    .await
                    .unwrap();
                assert_eq!((a, sum, b), (Some(1), 3, vec![Some(2), Some(1)]));
                assert_eq!(wrong.unwrap_err().code(), Some(Code::CrossSlot));
                let read = db.batch((commands::get::<String>("large"), commands::get::<i64>("a")));
                assert_eq!(read.await.unwrap(), (Some(large), Some(1)));
                // No command was sent to a node that had to reject it.
                for node in 0..3 {
                    assert_eq!(stat(&cluster, node, "errorstat_CROSSSLOT", "count"), 0);
                    assert_eq!(stat(&cluster, node, "errorstat_MOVED", "count"), 0);
                }
            });
        }
    }
}

#[test]
fn a_request_that_needs_one_slot_but_has_several_fails_before_anything_is_sent() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster, 3).await;
            let error = db.sinter::<String>(["a", "b"]).await.unwrap_err();
            assert_eq!(error.message(), "CROSSSLOT Keys in request don't hash to the same slot");
            assert!(!error.maybe_applied());
            let calls = (commands::set("a", 1).reply_as::<()>(), commands::incr("b"));
            let error = db.transaction(calls).await.unwrap_err();
            assert_eq!(error.code(), Some(Code::CrossSlot));
            assert!(error.message().contains("transaction"), "{error}");
            for node in 0..3 {
                assert_eq!(stat(&cluster, node, "errorstat_CROSSSLOT", "count"), 0);
                assert_eq!(stat(&cluster, node, "cmdstat_multi", "calls"), 0);
            }
            let calls = (commands::incr("{a}1"), commands::incr("{a}1"));
            assert_eq!(db.transaction(calls).await.unwrap(), (1, 2));
            let error = Client::builder(&format!("redis-cluster://{}/1", cluster.addresses(&[0])));
            assert_eq!(error.connect().await.unwrap_err().kind(), Kind::Invalid);
        });
    }
}

#[test]
fn keys_are_found_while_their_slot_moves_and_afterwards() {
    let cluster = Cluster::start(3, 0);
    for protocol in [2, 3] {
        run(async {
            let db = connect(&cluster, protocol).await;
            let tag = cluster.key_of(0, usize::from(protocol));
            let key = |name: &str| format!("{{{tag}}}:{name}");
            db.mset([(key("there"), 1), (key("here"), 2)]).await.unwrap();
            cluster.begin_move(slot(&tag), 0, 1);
            cluster.move_key(&key("there"), 0, 1);
            // ASK for a single command, in a batch with other commands, and for a transaction.
            assert_eq!(db.get(key("there")).await.unwrap(), Some(1));
            assert_eq!(db.get(key("here")).await.unwrap(), Some(2));
            db.set(key("new"), 3).await.unwrap();
            let names = ["here", "there", "new", "here", "none"];
            let reads: Vec<_> = names.iter().map(|name| commands::get::<i64>(key(name))).collect();
            let read = db.batch(reads).await.unwrap();
            assert_eq!(read, [Some(2), Some(1), Some(3), Some(2), None]);
            let calls = (commands::incr(key("there")), commands::incr(key("new")));
            assert_eq!(db.transaction(calls).await.unwrap(), (2, 4));
            let mut target = cluster.node(1).connect();
            target.cmd("ASKING");
            assert_eq!(target.cmd(&format!("GET {}", key("new"))).text(), "4");
            // TRYAGAIN: the command is sent again until the move is complete.
            let reads = tokio::spawn({
                let db = db.clone();
                let keys = [key("here"), key("there"), key("new")];
                async move { db.mget::<i64>(keys).await }
            });
            let refused = || stat(&cluster, 0, "errorstat_TRYAGAIN", "count") > 0;
            tokio::task::block_in_place(|| wait_until("TRYAGAIN as the reply", refused));
            assert!(!reads.is_finished());
            cluster.end_move(slot(&tag), 0, 1);
            assert_eq!(reads.await.unwrap().unwrap(), [Some(2), Some(2), Some(4)]);
            // MOVED: it occurs once, and then the client knows the node.
            assert_eq!(db.get(key("here")).await.unwrap(), Some(2));
            let moved = stat(&cluster, 0, "errorstat_MOVED", "count");
            for _ in 0..50 {
                assert_eq!(db.get(key("here")).await.unwrap(), Some(2));
            }
            assert_eq!(stat(&cluster, 0, "errorstat_MOVED", "count"), moved);
        });
    }
}

#[test]
fn increments_are_neither_lost_nor_applied_twice_while_slots_move() {
    const TASKS: usize = 50;
    const MOVES: usize = 12;
    let cluster = Cluster::start(3, 0);
    run(async {
        let db = connect(&cluster, 3).await;
        let keys: Vec<String> = (0..4).map(|n| cluster.key_of(0, n)).collect();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let rounds = Arc::new(AtomicUsize::new(0));
        let tasks = (0..TASKS).map(|task| {
            let (db, keys, stopped) = (db.clone(), keys.clone(), stopped.clone());
            let rounds = Arc::clone(&rounds);
            tokio::spawn(async move {
                let mut counted = 0;
                for round in task.. {
                    let key = &keys[round % keys.len()];
                    if round % 3 == 0 {
                        let calls = (commands::incr(key), commands::incr(&keys[task % keys.len()]));
                        let (_, _) = db.batch(calls).await.unwrap();
                        counted += 2;
                    } else {
                        db.incr(key).await.unwrap();
                        counted += 1;
                    }
                    rounds.fetch_add(1, Ordering::SeqCst);
                    if *stopped.borrow() {
                        break;
                    }
                }
                counted
            })
        });
        let tasks: Vec<_> = tasks.collect();
        tokio::task::block_in_place(|| {
            let mut at = [0; 4];
            for turn in 0..MOVES {
                // Slots move while the tasks increment, however slow the machine is.
                let before = rounds.load(Ordering::SeqCst);
                let goes_on = || rounds.load(Ordering::SeqCst) > before + TASKS;
                wait_until("the tasks to increment", goes_on);
                let (key, from) = (turn % 4, at[turn % 4]);
                let to = (from + 1) % 3;
                cluster.begin_move(slot(&keys[key]), from, to);
                cluster.move_key(&keys[key], from, to);
                cluster.end_move(slot(&keys[key]), from, to);
                at[key] = to;
            }
        });
        stop.send(true).expect("tasks still run");
        let counted: Vec<i64> = join_all(tasks).await.into_iter().map(Result::unwrap).collect();
        let values: Vec<Option<i64>> = db.mget(&keys).await.unwrap();
        let sum: i64 = values.into_iter().flatten().sum();
        assert_eq!(sum, counted.iter().sum::<i64>());
    });
}

#[test]
fn reads_go_to_replicas_if_configured() {
    for cluster in Cluster::start_each(3, 1, &[]) {
        let url = format!("redis://{}", cluster.addresses(&[0]));
        run(async {
            let builder = Client::builder(&url).cluster().timeout(LONG);
            let db = builder.clone().read_from(ReadFrom::PreferReplica).connect().await.unwrap();
            let calls = |node: usize, command: &str| {
                stat(&cluster, node, &format!("cmdstat_{command}"), "calls")
            };
            let keys: Vec<String> = (0..3).map(|primary| cluster.key_of(primary, 0)).collect();
            for (primary, key) in keys.iter().enumerate() {
                db.set(key, primary).await.unwrap();
                // A replica may lack the last write.
                let replica = || cluster.node(primary + 3).connect().cmd("DBSIZE").integer() == 1;
                tokio::task::block_in_place(|| wait_until("the replica to have it", replica));
            }
            for _ in 0..20 {
                for (primary, key) in keys.iter().enumerate() {
                    assert_eq!(db.get(key).await.unwrap(), Some(primary));
                }
                let values: Vec<Option<usize>> = db.mget(&keys).await.unwrap();
                assert_eq!(values, [Some(0), Some(1), Some(2)]);
            }
            for primary in 0..3 {
                assert_eq!((calls(primary, "get"), calls(primary, "mget")), (0, 0));
                assert_eq!((calls(primary + 3, "get"), calls(primary + 3, "mget")), (20, 20));
            }
            // A batch with writes sees its own writes.
            let (_, value) =
                db.batch((commands::incr(&keys[0]), commands::get::<i64>(&keys[0]))).await.unwrap();
            assert_eq!(value, Some(1));
            let plain = builder.connect().await.unwrap();
            assert_eq!(plain.get(&keys[1]).await.unwrap(), Some(1));
            assert_eq!((calls(1, "get"), calls(4, "get")), (1, 20));
        });
    }
}

#[test]
fn sessions_and_watches_go_to_the_node_of_their_keys() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster, 3).await;
            for primary in 0..3 {
                let list = cluster.key_of(primary, 0);
                let session = db.session_for(&list).await.unwrap();
                db.rpush(&list, ["x"]).await.unwrap();
                let popped: Option<(String, String)> =
                    session.raw("BLPOP").key(&list).arg(5).await.unwrap();
                assert_eq!(popped, Some((list, "x".to_owned())));
                let stock = cluster.key_of(primary, 1);
                db.set(&stock, 5).await.unwrap();
                let take = async |session: &brisk::Session| {
                    let left: Option<i64> = session.raw("GET").key(&stock).await?;
                    assert_eq!(left, Some(5));
                    Ok(Step::Commit((commands::decr(&stock),)))
                };
                assert_eq!(db.watch([&stock], take).await.unwrap(), Some((4,)));
            }
            if !cluster.moves_slots() {
                return;
            }
            // The same after the slot has moved.
            let stock = cluster.key_of(0, 1);
            cluster.begin_move(slot(&stock), 0, 2);
            cluster.end_move(slot(&stock), 0, 2);
            let take = async |_: &brisk::Session| Ok(Step::Commit((commands::decr(&stock),)));
            assert_eq!(db.watch([&stock], take).await.unwrap(), Some((3,)));
        });
    }
}

#[test]
fn a_program_without_a_runtime_waits_for_a_cluster_too() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        // The first seed cannot be reached.
        let url = format!("redis-cluster://127.0.0.1:1,{}", cluster.addresses(&[2]));
        let db = Client::builder(&url).timeout(LONG).connect_blocking().unwrap();
        db.mset([("a", 1), ("b", 2), ("c", 3)]).wait().unwrap();
        let tag = cluster.key_of(0, 0);
        db.set(&tag, 1).wait().unwrap();
        if cluster.moves_slots() {
            cluster.begin_move(slot(&tag), 0, 1);
            cluster.end_move(slot(&tag), 0, 1);
        }
        assert_eq!(db.incr(&tag).wait().unwrap(), 2);
        assert_eq!(db.mget::<i64>(["c", "b", "a"]).wait().unwrap(), [Some(3), Some(2), Some(1)]);
        db.close();
        assert_eq!(db.incr(&tag).wait().unwrap_err().kind(), Kind::Closed);
    }
}

/// The next message, if one arrives within 50 ms, and whether a gap was reported before it.
async fn heard(listener: &mut brisk::Subscriber) -> (Option<String>, bool) {
    let mut has_gap = false;
    loop {
        match tokio::time::timeout(Duration::from_millis(50), listener.next()).await {
            Ok(Some(brisk::Event::Message(message))) => {
                return (Some(String::from_utf8_lossy(&message.payload).into_owned()), has_gap);
            }
            Ok(Some(brisk::Event::Gap)) => has_gap = true,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return (None, has_gap),
        }
    }
}

#[test]
fn subscribers_to_sharded_channels_follow_them_to_other_nodes() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        for protocol in [2, 3] {
            run(async {
                let db = connect(&cluster, protocol).await;
                let channel = cluster.key_of(0, usize::from(protocol));
                let mut listener = db.subscriber_for(channel.clone()).await.unwrap();
                listener.ssubscribe([channel.clone()]).await.unwrap();
                assert_eq!(db.spublish(&channel, "first").await.unwrap(), 1);
                while heard(&mut listener).await.0.as_deref() != Some("first") {}
                let other = cluster.key_of(1, 0);
                let error = listener.ssubscribe([other]).await.unwrap_err();
                assert_eq!(error.code(), Some(Code::Moved));
                assert!(error.message().contains("subscriber_for"), "{error}");
                if cluster.moves_slots() {
                    cluster.begin_move(slot(&channel), 0, 1);
                    cluster.end_move(slot(&channel), 0, 1);
                    let mut has_gap = false;
                    loop {
                        db.spublish(&channel, "second").await.unwrap();
                        let (message, gap) = heard(&mut listener).await;
                        has_gap |= gap;
                        if message.as_deref() == Some("second") {
                            break;
                        }
                    }
                    assert!(has_gap);
                }
                // Any node delivers the messages of ordinary channels.
                let mut listener = db.subscriber().await.unwrap();
                listener.subscribe(["news"]).await.unwrap();
                db.publish("news", "third").await.unwrap();
                while heard(&mut listener).await.0.as_deref() != Some("third") {}
            });
        }
    }
}

#[test]
fn consumers_connect_to_the_node_of_their_stream() {
    use brisk::consumer::{Begin, Message};
    for cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster, 3).await;
            for primary in 0..3 {
                let stream = cluster.key_of(primary, 0);
                let (sender, mut handled) = tokio::sync::mpsc::unbounded_channel::<i64>();
                let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
                let consumer =
                    db.consumer(stream.clone()).group("g").member("m").begin(Begin::Oldest);
                let consumer = consumer.until(async {
                    let _ = stopped.await;
                });
                let work = tokio::spawn(consumer.run(move |m: Message| {
                    let sender = sender.clone();
                    async move {
                        let n = m.field("n").map_err(|error| error.to_string())?;
                        sender.send(n).map_err(|error| error.to_string())
                    }
                }));
                for n in 0..3_i64 {
                    db.xadd(&stream, "*", [("n", n)]).await.unwrap();
                    let next = tokio::time::timeout(LONG, handled.recv()).await;
                    assert_eq!(next.expect("in time"), Some(n), "at primary {primary}");
                }
                stop.send(()).unwrap();
                assert_eq!(work.await.unwrap().unwrap().handled, 3);
            }
        });
    }
}

#[test]
fn a_scan_of_all_keys_is_one_scan_per_primary() {
    for cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster, 3).await;
            for n in 0..300 {
                db.set(n, n).await.unwrap();
            }
            // The scan fails, instead of silently returning a third of the keys.
            let error = db.scan_keys::<i64>().next().await.unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.message().contains("primaries"), "{error}");
            let mut found = std::collections::BTreeSet::new();
            for node in db.primaries() {
                let mut walk = node.scan_keys::<i64>().count(100);
                while let Some(key) = walk.next().await.unwrap() {
                    assert!(found.insert(key));
                }
            }
            assert!(found.into_iter().eq(0..300));
        });
    }
}

#[test]
fn a_streamed_reply_is_requested_from_the_node_to_which_its_key_moved() {
    let cluster = Cluster::start(3, 0);
    run(async {
        let db = connect(&cluster, 3).await;
        let key = cluster.key_of(0, 0);
        db.set(&key, "value").await.unwrap();
        cluster.begin_move(slot(&key), 0, 1);
        cluster.end_move(slot(&key), 0, 1);
        // The client does not know of the move yet.
        let streamed = db.stream(commands::get::<()>(&key)).await.unwrap();
        let chunk = streamed.expect("a value").chunk().await.unwrap();
        assert_eq!(chunk.as_deref(), Some(&b"value"[..]));
    });
}
