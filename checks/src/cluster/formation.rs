//! `cargo xtask cluster formation`: measures the time until nodes form a cluster, and until all of them see a change.

use super::nodes::{SETTLED_WITHIN, Store, borrowed};
use super::quantiles;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Result, ensure};
use brisk_testkit::wait::holds_within;
use brisk_testkit::{BriskCluster, Conn};
use std::time::{Duration, Instant};

/// Numbers of shards, and of replicas per shard.
const SIZES: [(usize, usize); 2] = [(3, 0), (3, 1)];
const SLOTS: usize = 16_384;

pub(super) fn main(options: &Options) -> Result<Outcome> {
    let rounds: usize = options.number("rounds", 5)?;
    let changes: usize = options.number("changes", 200)?;
    let ttl: u64 = options.number("ttl", 5)?;
    let Some(store) = Store::start(options)? else { return Ok(Outcome::Skipped) };
    println!("\n{rounds} formations, TTL {ttl} s, {}; times in ms\n", store.describe());
    println!("| from | until | p50 | p95 | p99 | max |");
    println!("|---|---|--:|--:|--:|--:|");
    for (shards, replicas) in SIZES {
        let nodes = shards * (1 + replicas);
        let (mut all_ok, mut all_linked) = (Vec::new(), Vec::new());
        let mut last = None;
        for round in 0..rounds {
            // Stop the nodes of the previous cluster first.
            drop(last.take());
            let name = format!("of{nodes}-{round}");
            let mut directives = store.directives(&name, ttl);
            directives.push(("cluster-init-shards", shards.to_string()));
            directives.push(("cluster-init-replicas", replicas.to_string()));
            directives.push(("cluster-require-full-coverage", "no".to_owned()));
            let begun = Instant::now();
            let cluster = BriskCluster::start_apart(nodes, &borrowed(&directives));
            wait_until_ok(&cluster)?;
            all_ok.push(begun.elapsed());
            cluster.wait_until_ok();
            all_linked.push(begun.elapsed());
            last = Some(cluster);
        }
        let start = format!("start of the first of {nodes} processes");
        println!("| {start} | all nodes report `ok` | {} |", quantiles(&all_ok));
        if replicas > 0 {
            println!("| {start} | all replicas are online | {} |", quantiles(&all_linked));
        }
        if let Some(cluster) = last {
            let (committed, seen) = change_slots(&cluster, changes)?;
            println!("| change sent, {nodes} nodes | reply | {} |", quantiles(&committed));
            println!("| change sent, {nodes} nodes | all nodes show it | {} |", quantiles(&seen));
        }
    }
    Ok(Outcome::Passed)
}

fn wait_until_ok(cluster: &BriskCluster) -> Result<()> {
    for at in cluster.running() {
        let mut conn = cluster.connect(at);
        let is_ok = || conn.cmd("CLUSTER INFO").text().contains("cluster_state:ok");
        ensure!(holds_within(SETTLED_WITHIN, is_ok), "no cluster:\n{}", cluster.node(at).log());
    }
    Ok(())
}

/// Alternately removes a slot from its owner and adds it again. Returns the times until the reply, and until every node
/// shows the change.
fn change_slots(cluster: &BriskCluster, changes: usize) -> Result<(Vec<Duration>, Vec<Duration>)> {
    // The slot has no keys, and this node must be its owner.
    let mut owner = cluster.connect(cluster.owner("b"));
    let mut all: Vec<Conn> = cluster.running().map(|at| cluster.connect(at)).collect();
    let (mut committed, mut seen) = (Vec::new(), Vec::new());
    for change in 0..changes {
        let (verb, assigned) =
            if change % 2 == 0 { ("DELSLOTS", SLOTS - 1) } else { ("ADDSLOTS", SLOTS) };
        let shown = format!("cluster_slots_assigned:{assigned}\r\n");
        let sent = Instant::now();
        let reply = owner.cmd(&format!("CLUSTER {verb} 3300"));
        ensure!(reply.to_string() == "OK", "{verb}: {reply}");
        committed.push(sent.elapsed());
        for conn in &mut all {
            let is_shown = || conn.cmd("CLUSTER INFO").text().contains(&shown);
            ensure!(holds_within(SETTLED_WITHIN, is_shown), "a node does not show the change");
        }
        seen.push(sent.elapsed());
    }
    Ok((committed, seen))
}
