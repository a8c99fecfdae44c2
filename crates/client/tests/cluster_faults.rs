//! Cluster nodes that fail: the other nodes continue, and a replica takes over the slots.

use crate::scripted::serve;
use brisk::{Client, Kind, Lanes, ReadFrom, commands};
use brisk_testkit::BriskCluster;
use brisk_testkit::cluster::Cluster;
use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::kind::Kind as Of;
use brisk_testkit::wait::wait_until;
use futures_util::future::join_all;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A time limit that is longer than a failover takes on a loaded machine.
const LONG: Duration = Duration::from_secs(30);
/// A time limit that is shorter than a failover, so that a command that waits for a failover times out first.
const SHORT: Duration = Duration::from_millis(1000);

/// The remaining nodes of a cluster continue to serve their slots.
const IN_PART: &[(&str, &str)] = &[("cluster-require-full-coverage", "no")];

async fn connect(cluster: &Cluster) -> Client {
    let url = format!("redis-cluster://{}", cluster.addresses(&[0, 1, 2]));
    let db = Client::builder(&url).lanes(Lanes::Count(2)).timeout(LONG);
    db.connect().await.expect("the cluster replies")
}

/// Queries the primaries 1 and 2 until the slots of the first one are served again; each reply must arrive in time.
async fn others_reply_until(db: &Client, cluster: &Cluster, is_back: impl Fn() -> bool) {
    let keys: Vec<String> =
        [1, 2].iter().flat_map(|node| (0..8).map(|n| cluster.key_of(*node, n))).collect();
    let mut rounds = 0;
    while rounds < 100 || !is_back() {
        let counts = keys.iter().map(|key| db.incr(key).timeout(SHORT));
        for count in join_all(counts).await {
            count.expect("a healthy node replies in time");
        }
        let batch = keys.iter().map(commands::incr).collect::<Vec<_>>();
        db.batch(batch).timeout(SHORT).await.expect("so does a batch");
        rounds += 1;
    }
}

#[test]
fn slots_of_a_killed_primary_recover_and_other_slots_are_not_delayed() {
    for mut cluster in Cluster::start_each(3, 1, IN_PART) {
        run(async {
            let db = connect(&cluster).await;
            let keys: Vec<String> = (0..20).map(|n| cluster.key_of(0, n)).collect();
            for key in &keys {
                db.set(key, 1).await.unwrap();
            }
            cluster.kill(0);
            // The first calls see the loss of the connection. The others wait for a new connection.
            let waiting: Vec<_> = keys
                .iter()
                .map(|key| {
                    let (db, key) = (db.clone(), key.clone());
                    tokio::spawn(async move {
                        loop {
                            match db.incr(&key).await {
                                Err(error) if error.maybe_applied() => {}
                                done => return done,
                            }
                        }
                    })
                })
                .collect();
            let is_back = || waiting.iter().all(tokio::task::JoinHandle::is_finished);
            others_reply_until(&db, &cluster, is_back).await;
            for (key, count) in keys.iter().zip(join_all(waiting).await) {
                // An increment whose reply was lost may have been executed and replicated, so the count may be larger
                // than 1.
                assert!(count.unwrap().unwrap() >= 1, "{key}");
            }
            // Reads are sent again automatically.
            assert!(db.get::<i64>(&keys[0]).await.unwrap() >= Some(1));
        });
    }
}

/// Runs a test with clusters whose failover takes longer than [`SHORT`]: one of Redis, and one of Brisk on etcd. A
/// coordinator that is a directory notices immediately that a process has ended, but never that a process hangs.
fn with_slow_failover(directives: &[(&str, &str)], test: impl Fn(Cluster)) {
    test(Cluster::start_with(3, 1, directives));
    if let Some(etcd) = EtcdLaunch::new(1).start() {
        let coordinator = BriskCluster::coordinator_of(&etcd);
        let directives = [directives, &[("cluster-coordinator", &*coordinator)]].concat();
        test(Cluster::start_of(Of::Brisk, 3, 1, &directives));
    }
}

#[test]
fn commands_waiting_for_a_dead_node_go_to_the_new_owner_of_its_slots() {
    with_slow_failover(&[], |mut cluster| {
        run(async {
            let db = connect(&cluster).await;
            let key = cluster.key_of(0, 0);
            db.set(&key, 1).await.unwrap();
            cluster.kill(0);
            // From here on nothing is sent before the failover, so each of these commands is executed once. One may
            // overtake another, because the slot moves while they wait.
            while db.get::<i64>(&key).timeout(SHORT).await.is_ok() {}
            let counts = join_all((0..500).map(|_| db.incr(&key))).await;
            let mut counts: Vec<i64> = counts.into_iter().map(Result::unwrap).collect();
            counts.sort_unstable();
            assert!(counts.iter().copied().eq(counts[0]..counts[0] + 500), "{counts:?}");
            assert_eq!(db.get(&key).await.unwrap(), Some(counts[499]));
        });
    });
}

#[test]
fn a_node_that_hangs_delays_no_other_node() {
    with_slow_failover(IN_PART, |cluster| {
        run(async {
            let db = connect(&cluster).await;
            let key = cluster.key_of(0, 0);
            // The replica must have the value, because the primary will be replaced.
            let mut primary = cluster.node(0).connect();
            assert_eq!(primary.cmd(&format!("SET {key} 1")).text(), "OK");
            assert_eq!(primary.cmd("WAIT 1 0").integer(), 1);
            cluster.node(0).signal("STOP");
            let (hung, waiting) = (db.clone(), key.clone());
            let waiting = tokio::spawn(async move {
                loop {
                    match hung.get::<i64>(&waiting).timeout(SHORT).await {
                        Err(error) if matches!(error.kind(), Kind::Timeout(_)) => {}
                        done => return done,
                    }
                }
            });
            others_reply_until(&db, &cluster, || waiting.is_finished()).await;
            assert_eq!(waiting.await.unwrap().unwrap(), Some(1));
            db.incr(&key).await.unwrap();
            // The node comes back as a replica of the new primary of its slots, and its outdated value is not read.
            cluster.node(0).signal("CONT");
            assert_eq!(db.get(&key).await.unwrap(), Some(2));
            assert_eq!(db.incr(&key).await.unwrap(), 3);
        });
    });
}

/// The addresses of the nodes of a scripted cluster, and whether the last one has become the primary.
#[derive(Default)]
struct Failover {
    nodes: OnceLock<[SocketAddr; 3]>,
    is_over: AtomicBool,
}

impl Failover {
    /// The reply of the node at this position. The first one, the primary before the failover, does not reply to any
    /// command. The second one never learns of the failover.
    fn reply(&self, at: usize, request: &[String]) -> Option<String> {
        let nodes = self.nodes.get()?;
        let knows = at == 2 && self.is_over.load(Ordering::SeqCst);
        match request.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["CLUSTER", _] if at == 0 => None,
            ["CLUSTER", "SLOTS"] => {
                let node =
                    |at: usize| format!("*2\r\n$9\r\n127.0.0.1\r\n:{}\r\n", nodes[at].port());
                let (primary, replicas) = if knows { (2, [1, 1]) } else { (0, [1, 2]) };
                let nodes = [primary, replicas[0], replicas[1]].map(node).concat();
                Some(format!("*1\r\n*5\r\n:0\r\n:16383\r\n{nodes}"))
            }
            ["CLUSTER", _] => Some(format!("$23\r\ncluster_current_epoch:{}\r\n", u8::from(knows))),
            ["GET", _] if at == 0 => None,
            ["GET", _] => Some("$1\r\n1\r\n".to_owned()),
            _ => Some("+OK\r\n".to_owned()),
        }
    }
}

#[test]
fn a_node_that_never_learns_of_a_failover_is_not_the_only_one_queried() {
    let failover = Arc::new(Failover::default());
    let nodes = [0, 1, 2].map(|at| {
        let failover = Arc::clone(&failover);
        serve(move |request, _| failover.reply(at, request))
    });
    failover.nodes.set(nodes).expect("set once");
    run(async {
        let url = format!("redis-cluster://{}", nodes[1]);
        let db = Client::builder(&url).protocol(2).connect().await.unwrap();
        assert!(db.get::<i64>("k").timeout(SHORT / 10).await.is_err());
        failover.is_over.store(true, Ordering::SeqCst);
        let is_served = async { while db.get::<i64>("k").timeout(SHORT / 10).await.is_err() {} };
        tokio::time::timeout(LONG, is_served).await.expect("the new primary is found");
    });
}

#[test]
fn a_lost_replica_is_skipped() {
    for mut cluster in Cluster::start_each(3, 1, &[]) {
        run(async {
            let url = format!("redis-cluster://{}", cluster.addresses(&[2]));
            let db = Client::builder(&url).read_from(ReadFrom::PreferReplica).timeout(LONG);
            let db = db.connect().await.unwrap();
            let keys: Vec<String> = (0..3).map(|primary| cluster.key_of(primary, 0)).collect();
            for key in &keys {
                db.set(key, 1).await.unwrap();
                while db.get::<i64>(key).await.unwrap().is_none() {}
            }
            cluster.kill(3);
            for _ in 0..50 {
                for key in &keys {
                    assert_eq!(db.get(key).await.unwrap(), Some(1));
                }
            }
            let served = cluster.node(0).connect().cmd("INFO commandstats").text();
            assert!(served.contains("cmdstat_get:calls=5"), "{served}");
        });
    }
}

#[test]
fn the_loss_of_all_nodes_of_a_slot_is_an_error_within_the_time_limit() {
    for mut cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster).await;
            let key = cluster.key_of(1, 0);
            db.set(&key, 1).await.unwrap();
            cluster.kill(0);
            // By default, a cluster is down unless all slots are served.
            let down = || cluster.node(1).connect().cmd(&format!("GET {key}")).is_error();
            tokio::task::block_in_place(|| wait_until("the cluster to be down", down));
            let error = db.incr(&key).timeout(SHORT).await.unwrap_err();
            assert!(matches!(error.kind(), Kind::Timeout(brisk::Phase::Queued)), "{error:?}");
            assert!(error.to_string().contains("CLUSTERDOWN"), "{error}");
            assert!(!error.maybe_applied());
            let timed_out = db.incr(cluster.key_of(0, 0)).timeout(SHORT).await.unwrap_err();
            assert!(matches!(timed_out.kind(), Kind::Timeout(_)), "{timed_out:?}");
        });
    }
}

#[test]
fn a_subscriber_continues_on_another_node() {
    for mut cluster in Cluster::start_each(3, 0, &[]) {
        run(async {
            let db = connect(&cluster).await;
            let mut listener = db.subscriber().await.unwrap();
            listener.subscribe(["news"]).await.unwrap();
            let hears = |at: usize| {
                let clients = cluster.node(at).connect().cmd("CLIENT LIST TYPE pubsub").text();
                clients.contains("sub=1")
            };
            let at = (0..3).find(|at| hears(*at)).expect("one of them has the listener");
            cluster.kill(at);
            let mut others: Vec<_> = (0..3)
                .filter(|node| *node != at)
                .map(|node| cluster.node(node).connect())
                .collect();
            loop {
                others.iter_mut().for_each(|node| drop(node.cmd("PUBLISH news hello")));
                let next = tokio::time::timeout(Duration::from_millis(50), listener.next());
                if let Ok(Some(brisk::Event::Message(message))) = next.await {
                    assert_eq!(message.payload, "hello");
                    break;
                }
            }
        });
    }
}
