//! Planned failovers: a primary hands its shard over to a replica, and no acknowledged write is lost.
//!
//! Writers count the increments that a primary has acknowledged. Readers compare each value with the increments that
//! were acknowledged before they sent the request, on every node: a former primary must not show an older value.

use brisk_testkit::etcd::EtcdLaunch;
use brisk_testkit::reply::Reply;
use brisk_testkit::{BriskCluster, Conn, assert_reply, wait_until};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of keys that a writer increments. All slots belong to one shard.
const KEYS: usize = 5;
const WRITERS: usize = 2;

/// The observations of the clients.
#[derive(Debug, Default)]
struct Observed {
    /// The acknowledged increments of each key.
    acknowledged: [AtomicI64; KEYS],
    /// Increments whose connection ended before the reply.
    unknown: [AtomicI64; KEYS],
    /// Unexpected replies.
    errors: Mutex<Vec<String>>,
    /// The longest time between two acknowledged writes of one writer.
    longest_gap: Mutex<Duration>,
    stops: AtomicBool,
}

impl Observed {
    fn total(&self) -> i64 {
        self.acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }

    fn note_error(&self, error: String) {
        self.errors.lock().expect("no thread panics").push(error);
    }
}

/// Clients that run until they are stopped.
struct Clients {
    observed: Arc<Observed>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    fn start(cluster: &BriskCluster) -> Clients {
        let addresses: Vec<String> =
            cluster.running().map(|at| cluster.node(at).address()).collect();
        let observed = Arc::new(Observed::default());
        let mut threads = Vec::new();
        for _ in 0..WRITERS {
            let (addresses, observed) = (addresses.clone(), Arc::clone(&observed));
            threads.push(std::thread::spawn(move || write(&addresses, &observed)));
        }
        for address in addresses {
            let observed = Arc::clone(&observed);
            threads.push(std::thread::spawn(move || read(&address, &observed)));
        }
        let clients = Clients { observed, threads };
        clients.wait_for_writes();
        clients
    }

    /// Waits until more writes have been acknowledged.
    #[track_caller]
    fn wait_for_writes(&self) {
        let before = self.observed.total();
        wait_until("acknowledged writes", || self.observed.total() > before + 100);
    }

    /// Stops the clients. Every acknowledged increment must be in the values that `conn` reads.
    #[track_caller]
    fn stop(self, what: &str, conn: &mut Conn) {
        self.observed.stops.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("a client does not panic");
        }
        let observed = &self.observed;
        for key in 0..KEYS {
            let value = conn.cmd(&format!("GET key:{key}")).text().parse().unwrap_or(0_i64);
            let acknowledged = observed.acknowledged[key].load(Ordering::SeqCst);
            let unknown = observed.unknown[key].load(Ordering::SeqCst);
            let range = acknowledged..=acknowledged + unknown;
            assert!(range.contains(&value), "key {key}: {value} is not in {range:?}");
        }
        let errors = observed.errors.lock().expect("no thread panics");
        assert!(errors.is_empty(), "{errors:?}");
        let gap = observed.longest_gap.lock().expect("no thread panics");
        eprintln!("{what}: {} writes, the longest stop {gap:?}", observed.total());
    }
}

/// Increments keys on the node to which the last redirect pointed.
fn write(addresses: &[String], observed: &Observed) {
    let mut address = addresses[0].clone();
    let (mut conn, mut others) = (None, addresses.iter().cycle());
    let mut last = Instant::now();
    for key in (0..KEYS).cycle() {
        while !observed.stops.load(Ordering::SeqCst) {
            if conn.is_none() {
                conn = Conn::try_tcp(&address).ok();
            }
            let Some(open) = &mut conn else {
                others.next().expect("it is endless").clone_into(&mut address);
                continue;
            };
            match open.try_cmd(&format!("INCR key:{key}")) {
                Ok(Reply::Integer(_)) => {
                    observed.acknowledged[key].fetch_add(1, Ordering::SeqCst);
                    let mut longest = observed.longest_gap.lock().expect("no thread panics");
                    *longest = last.elapsed().max(*longest);
                    last = Instant::now();
                    break;
                }
                Ok(reply) => match redirect(&reply) {
                    Some(to) => (address, conn) = (to, None),
                    None => observed.note_error(format!("INCR at {address}: {reply}")),
                },
                Err(_) => {
                    observed.unknown[key].fetch_add(1, Ordering::SeqCst);
                    conn = None;
                }
            }
        }
        if observed.stops.load(Ordering::SeqCst) {
            return;
        }
    }
}

/// Reads keys on one node while it serves them.
fn read(address: &str, observed: &Observed) {
    let mut conn = None;
    for key in (0..KEYS).cycle() {
        if observed.stops.load(Ordering::SeqCst) {
            return;
        }
        conn = conn.or_else(|| Conn::try_tcp(address).ok());
        let Some(open) = &mut conn else {
            std::thread::yield_now();
            continue;
        };
        let least = observed.acknowledged[key].load(Ordering::SeqCst);
        match open.try_cmd(&format!("GET key:{key}")) {
            Ok(reply) if redirect(&reply).is_some() => {}
            Ok(reply) if reply.is_error() => {
                observed.note_error(format!("GET at {address}: {reply}"));
            }
            Ok(reply) => {
                let value = reply.text().parse().unwrap_or(0_i64);
                if value < least {
                    let stale = format!("{address} shows {value} after {least} were acknowledged");
                    observed.note_error(stale);
                }
            }
            Err(_) => conn = None,
        }
    }
}

/// The address that a MOVED error names.
fn redirect(reply: &Reply) -> Option<String> {
    let text = reply.is_error().then(|| reply.text())?;
    text.contains("MOVED ").then(|| text.rsplit(' ').next().unwrap_or_default().to_owned())
}

/// Makes the primary of the only shard hand over to its replica. Returns the positions of the new and the old primary.
#[track_caller]
fn switch(cluster: &BriskCluster) -> (usize, usize) {
    let [old] = cluster.primaries()[..] else { panic!("one primary") };
    let new = cluster.running().find(|at| *at != old).expect("a replica");
    assert_reply!(cluster.connect(new), "CLUSTER FAILOVER", "OK");
    wait_until("the replica to be the primary", || {
        cluster.node(new).info("role") == "master" && cluster.node(old).info("role") == "slave"
    });
    cluster.wait_until_ok();
    (new, old)
}

/// The request with which a replica requests to become the primary.
#[track_caller]
fn switch_request(cluster: &BriskCluster, replica: usize) -> String {
    let mut conn = cluster.connect(replica);
    let (shard, id) = (conn.cmd("CLUSTER MYSHARDID").text(), conn.cmd("CLUSTER MYID").text());
    let status = conn.cmd("REPLCONF brisk-status ?").text();
    let field = |name: &str| {
        let after = status.split(&format!("\"{name}\":")).nth(1).unwrap_or_default();
        after.split([',', '}']).next().unwrap_or_default().trim_matches('"').to_owned()
    };
    format!("REPLCONF brisk-switch {shard}:{}:{id}@{}", field("term"), field("incarnation"))
}

#[track_caller]
fn wait_for_log(cluster: &BriskCluster, at: usize, text: &str) {
    wait_until(text, || cluster.node(at).log().contains(text));
}

/// Number of full copies that the nodes have sent.
fn full_copies(cluster: &BriskCluster) -> u64 {
    let copies = cluster.running().map(|at| cluster.node(at).info("sync_full"));
    copies.map(|copies| copies.parse::<u64>().expect("a number")).sum()
}

#[test]
fn twenty_switches_lose_no_write_and_need_no_full_copy() {
    let cluster = BriskCluster::start(1, 1);
    let copies = full_copies(&cluster);
    let clients = Clients::start(&cluster);
    let mut primary = 0;
    for _ in 0..20 {
        (primary, _) = switch(&cluster);
        clients.wait_for_writes();
    }
    clients.stop("20 switches", &mut cluster.connect(primary));
    assert_eq!(full_copies(&cluster), copies);
    let log = cluster.node(primary).log();
    assert!(log.contains("this node is now primary (CLUSTER FAILOVER)"), "{log}");
}

#[test]
fn switches_on_etcd_lose_no_write() {
    let Some(etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let cluster = BriskCluster::start_with(1, 1, &[("cluster-coordinator", &coordinator)]);
    let clients = Clients::start(&cluster);
    let mut primary = 0;
    for _ in 0..5 {
        (primary, _) = switch(&cluster);
        clients.wait_for_writes();
    }
    clients.stop("5 switches on etcd", &mut cluster.connect(primary));
}

#[test]
fn a_switch_does_not_wait_for_the_disk() {
    let cluster = BriskCluster::start(1, 1);
    let files: Vec<PathBuf> =
        cluster.running().map(|at| cluster.node(at).dir().join("topology.json.new")).collect();
    // The named pipe has no reader, so a thread that writes the file blocks.
    for path in &files {
        // Retry, because the file exists while a node is writing it.
        wait_until("the pipe to be made", || {
            Command::new("mkfifo").arg(path).output().unwrap().status.success()
        });
    }
    let clients = Clients::start(&cluster);
    let (primary, old) = switch(&cluster);
    clients.wait_for_writes();
    clients.stop("a switch without a disk", &mut cluster.connect(primary));
    let log = cluster.node(old).log();
    assert!(log.contains("ms for the replica, "), "{log}");
    for path in files {
        let other = path.with_extension("pipe");
        std::fs::rename(&path, &other).unwrap();
        // Reading unblocks the writer.
        std::fs::read(&other).unwrap();
    }
}

#[test]
fn a_primary_that_is_terminated_hands_over_first() {
    let mut cluster = BriskCluster::start_with(1, 2, &[("shutdown-timeout", "10")]);
    let clients = Clients::start(&cluster);
    let [old] = cluster.primaries()[..] else { panic!("one primary") };
    cluster.terminate(old);
    clients.wait_for_writes();
    let [new] = cluster.primaries()[..] else { panic!("one primary") };
    clients.stop("SIGTERM", &mut cluster.connect(new));
    wait_for_log(&cluster, new, "this node is now primary (the primary shuts down)");
    assert!(cluster.node(old).log().contains("handed over to"));
    cluster.restart(old);
    cluster.wait_until_ok();
    assert_eq!(cluster.node(old).info("role"), "slave");
}

#[test]
fn shutdown_hands_over_and_shutdown_now_does_not() {
    let mut cluster = BriskCluster::start_with(1, 1, &[("shutdown-timeout", "10")]);
    let [first] = cluster.primaries()[..] else { panic!("one primary") };
    let second = 1 - first;
    assert!(cluster.connect(first).try_cmd("SHUTDOWN NOSAVE").is_err());
    wait_for_log(&cluster, second, "this node is now primary (the primary shuts down)");
    // The process exits by itself; this only waits for it.
    cluster.kill(first);
    cluster.restart(first);
    cluster.wait_until_ok();
    // Stopping a replica with SIGTERM does not change roles.
    cluster.terminate(first);
    cluster.restart(first);
    cluster.wait_until_ok();
    assert_eq!(cluster.primaries(), [second]);
    assert!(cluster.connect(second).try_cmd("SHUTDOWN NOSAVE NOW").is_err());
    wait_until("the replica to be promoted", || cluster.node(first).info("role") == "master");
    let log = cluster.node(first).log();
    assert!(!log.contains("this node is now primary (the primary shuts down)"), "{log}");
}

#[test]
fn a_primary_whose_replica_is_stopped_keeps_serving() {
    let cluster = BriskCluster::start_with(1, 1, &[("cluster-node-timeout", "2000")]);
    let [primary] = cluster.primaries()[..] else { panic!("one primary") };
    let replica = 1 - primary;
    let clients = Clients::start(&cluster);
    let request = switch_request(&cluster, replica);
    cluster.node(replica).signal("STOP");
    assert_reply!(cluster.connect(primary), &request, "OK");
    wait_for_log(&cluster, primary, "the replica does not report that it follows this node");
    clients.wait_for_writes();
    cluster.node(replica).signal("CONT");
    cluster.wait_until_ok();
    let (new, _) = switch(&cluster);
    clients.stop("a stopped replica", &mut cluster.connect(new));
    assert_eq!(new, replica);
}

#[test]
fn a_primary_whose_replica_lags_keeps_accepting_writes() {
    let directives = [("cluster-node-timeout", "2000"), ("busy-reply-threshold", "10")];
    let cluster = BriskCluster::start_with(1, 1, &directives);
    let [primary] = cluster.primaries()[..] else { panic!("one primary") };
    let replica = 1 - primary;
    let clients = Clients::start(&cluster);
    let request = switch_request(&cluster, replica);
    // While the script runs, the replica does not execute the replication stream.
    let mut script = cluster.connect(replica);
    script.send("EVAL 'while true do end' 0");
    let mut other = cluster.connect(replica);
    wait_until("the script to be slow", || other.cmd("PING").to_string().contains("BUSY"));
    clients.wait_for_writes();
    assert_reply!(cluster.connect(primary), &request, "OK");
    wait_for_log(&cluster, primary, "the replica did not get the last writes in time");
    clients.wait_for_writes();
    assert_reply!(other, "SCRIPT KILL", "OK");
    cluster.wait_until_ok();
    let (new, _) = switch(&cluster);
    // The readers on the replica got BUSY errors.
    let is_busy = |error: &String| error.contains("BUSY");
    clients.observed.errors.lock().expect("no thread panics").retain(|error| !is_busy(error));
    clients.stop("a replica that lags", &mut cluster.connect(new));
}

#[test]
fn a_switch_is_requested_at_a_replica_of_a_running_primary() {
    let mut cluster = BriskCluster::start(1, 1);
    let [primary] = cluster.primaries()[..] else { panic!("one primary") };
    let replica = 1 - primary;
    let refused = "(error) ERR You should send CLUSTER FAILOVER to a replica";
    assert_reply!(cluster.connect(primary), "CLUSTER FAILOVER", refused);
    let request = switch_request(&cluster, replica);
    let refused = "(error) ERR This node is not the master of that shard and term";
    assert_reply!(cluster.connect(replica), &request, refused);
    cluster.node(replica).signal("STOP");
    cluster.kill(primary);
    cluster.node(replica).signal("CONT");
    let mut conn = cluster.connect(replica);
    wait_until("the replica to know that its primary is lost, or to replace it", || {
        let reply = conn.cmd("CLUSTER FAILOVER").to_string();
        reply == "(error) ERR Master is down or failed, please use CLUSTER FAILOVER FORCE"
            || reply == "(error) ERR You should send CLUSTER FAILOVER to a replica"
    });
}

#[test]
fn a_forced_primary_serves_only_after_the_lease_of_the_former_one() {
    const LEASE: Duration = Duration::from_secs(3);
    let cluster = BriskCluster::start_with(1, 1, &[("cluster-node-timeout", "3000")]);
    let [old] = cluster.primaries()[..] else { panic!("one primary") };
    let new = 1 - old;
    for (option, new) in [("FORCE", new), ("TAKEOVER", old)] {
        let mut conn = cluster.connect(new);
        let requested = Instant::now();
        assert_reply!(conn, &format!("CLUSTER FAILOVER {option}"), "OK");
        let info = conn.cmd("CLUSTER INFO").text();
        // The test itself may be stopped for longer than the lease.
        assert!(info.contains("cluster_fenced:1") || requested.elapsed() > LEASE, "{info}");
        wait_until("it to serve", || {
            let reply = conn.cmd("INCR key:0").to_string();
            let is_refused = reply == "(error) CLUSTERDOWN The cluster is down";
            assert!(is_refused || reply.contains("(integer)"), "{reply}");
            assert!(is_refused || requested.elapsed() > LEASE, "served within the lease");
            !is_refused
        });
        cluster.wait_until_ok();
        assert_eq!(cluster.primaries(), [new]);
    }
}

#[test]
fn a_forced_primary_that_is_replaced_serves_reads_as_a_replica() {
    // As a primary, it would have to wait for the former primary's lease: longer than the test waits.
    let cluster = BriskCluster::start_with(1, 1, &[("cluster-node-timeout", "600000")]);
    let [first] = cluster.primaries()[..] else { panic!("one primary") };
    assert_reply!(cluster.connect(first), "SET key:0 1", "OK");
    let mut conn = cluster.connect(1 - first);
    wait_until("the replica to have the key", || conn.cmd("DBSIZE").integer() == 1);
    for new in [1 - first, first] {
        assert_reply!(cluster.connect(new), "CLUSTER FAILOVER FORCE", "OK");
        let mut replica = cluster.connect(1 - new);
        wait_until("the former primary to be a replica", || {
            replica.cmd("ROLE").to_string().contains("connected")
        });
    }
    assert_reply!(conn, "READONLY", "OK");
    assert_reply!(conn, "GET key:0", "\"1\"");
}

/// The promotion could not be committed, so OK would be wrong.
#[test]
fn a_switch_without_the_coordinator_is_an_error() {
    let Some(mut etcd) = EtcdLaunch::new(1).start() else { return };
    let coordinator = BriskCluster::coordinator_of(&etcd);
    let cluster = BriskCluster::start_with(1, 1, &[("cluster-coordinator", &coordinator)]);
    let [primary] = cluster.primaries()[..] else { panic!("one primary") };
    let replica = 1 - primary;
    let request = switch_request(&cluster, replica);
    etcd.kill(0);
    let mut conn = cluster.connect(replica);
    let error = conn.cmd("CLUSTER FAILOVER").to_string();
    let prefix = format!("(error) ERR the coordinator is unreachable: {}: ", etcd.endpoints()[0]);
    assert!(error.starts_with(&prefix), "{error}");
    assert_reply!(conn, "CLUSTER FAILOVER FORCE", error);
    // A transaction cannot wait, so the last renewal of the lease counts. The primary rejects requests likewise.
    for at in [primary, replica] {
        wait_until("the node to notice the outage", || {
            let info = cluster.connect(at).cmd("CLUSTER INFO").text();
            info.contains("cluster_coordinator_state:unreachable")
        });
    }
    assert_reply!(conn, "MULTI", "OK");
    assert_reply!(conn, "CLUSTER FAILOVER", "QUEUED");
    let results = conn.cmd("EXEC");
    let error = "(error) ERR the coordinator is unreachable";
    assert_eq!(results.elements()[0].to_string(), error);
    let refused = "(error) ERR The coordinator accepts no changes from this node at the moment";
    assert_reply!(cluster.connect(primary), &request, refused);
    assert_eq!(cluster.primaries(), [primary]);
    etcd.restart(0);
    cluster.wait_until_ok();
    wait_until("the replica to become the primary", || {
        conn.cmd("CLUSTER FAILOVER");
        conn.info("role") == "master"
    });
}
