//! `cargo xtask cluster failover`: a client writes to each of three shards, and in each round the primary of one shard
//! is killed.
//!
//! A round ends when the killed node is a replica in sync. Then the writers pause, and primaries and replicas are
//! compared. With `--peer redis`, rounds alternate with a cluster of redis-server, so that both run under the same
//! conditions. If a failover takes longer than two timeouts, the logs of the nodes and the elections of etcd are
//! printed.

use super::nodes::{Nodes, SETTLED_WITHIN, Store};
use super::quantiles;
use super::writer::{PrimarySwitch, Writer, pass};
use crate::bench::load::percentile_ms;
use crate::options::Options;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail, ensure};
use brisk_testkit::random::Random;
use brisk_testkit::wait::holds_within;
use std::time::{Duration, Instant};

/// Keys in the first, the second and the last third of the slots.
const KEYS: [&str; 3] = ["b", "c", "a"];
/// Number of keys per shard that are written only once, so that a full copy has data to copy.
const FILLING_KEYS: usize = 1000;
/// The range of the random time for which clients write before a kill, so that leases have every age at the kill.
const WRITING_MS: std::ops::Range<usize> = 500..2500;

/// A cluster with its clients, and the results of its rounds.
struct Side {
    nodes: Nodes,
    writers: Vec<Writer>,
    failovers: Vec<FailoverRound>,
    /// The ends of the nodes' logs right after the last failover.
    logs: String,
}

struct FailoverRound {
    /// The time from the kill to the first write that the new primary acknowledged.
    took: Duration,
    /// Number of acknowledged writes that were lost, in all shards.
    lost: u64,
    /// Writes per second to the shard before the kill.
    rate: f64,
    /// Number of shards whose replica differs.
    different: usize,
}

pub(super) fn main(options: &Options) -> Result<Outcome> {
    let rounds: usize = options.number("rounds", 20)?;
    let ttl: u64 = options.number("ttl", 5)?;
    let seed: u64 = options.number("seed", 1)?;
    let Some(store) = Store::start(options)? else { return Ok(Outcome::Skipped) };
    let slow = Duration::from_secs(2 * ttl);
    let mut sides = vec![Side::start(Nodes::brisk(&store, KEYS.len(), ttl))?];
    match options.text("peer") {
        None => {}
        Some("redis") => sides.push(Side::start(Nodes::redis(KEYS.len(), ttl))?),
        Some(other) => bail!("--peer {other}: it is `redis`"),
    }
    let mut random = Random::new(seed);
    for round in 0..rounds {
        let shard = random.below(KEYS.len());
        let writing = WRITING_MS.start + random.below(WRITING_MS.len());
        for side in &mut sides {
            let done = side.round(shard, Duration::from_millis(writing as u64));
            done.with_context(|| format!("round {round}, seed {seed}, {}", side.nodes.name()))?;
            side.report(round);
            if side.failovers.last().is_some_and(|last| last.took > slow) {
                println!("{}{}", side.logs, store.elections());
            }
        }
    }
    println!("\n{rounds} failovers, TTL {ttl} s, {}; times in ms\n", store.describe());
    println!(
        "| nodes | p50 | p95 | p99 | max | lost writes: p50, p95, max | lost writing time, ms: p50, p95, max | different digests |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    sides.iter().for_each(|side| println!("{}", side.row()));
    let all_equal = sides[0].failovers.iter().all(|round| round.different == 0);
    Ok(all_equal.into())
}

impl Side {
    fn start(mut nodes: Nodes) -> Result<Side> {
        let mut writers = Vec::new();
        for key in KEYS {
            let mut conn = nodes.node(nodes.owner(key)?).connect();
            let value = "x".repeat(100);
            for n in 0..FILLING_KEYS {
                let reply = conn.cmd(&format!("SET {{{key}}}:{n} {value}"));
                ensure!(reply.to_string() == "OK", "SET: {reply}");
            }
            writers.push(Writer::start(nodes.addresses(), key));
        }
        nodes.check_roles(KEYS.len())?;
        Ok(Side { nodes, writers, failovers: Vec::new(), logs: String::new() })
    }

    /// Runs one failover of a shard. All nodes are healthy before and after it.
    fn round(&mut self, shard: usize, writing: Duration) -> Result<()> {
        let primary = self.nodes.owner(KEYS[shard])?;
        self.nodes.replica_of(primary)?;
        let address = self.nodes.node(primary).address();
        self.writers.iter().for_each(Writer::resume);
        let (before, begun) = (self.writers[shard].acknowledged(), Instant::now());
        pass(writing);
        let rate = (self.writers[shard].acknowledged() - before) as f64;
        let rate = rate / begun.elapsed().as_secs_f64();
        // Discard earlier losses. In the first round, writers have just found their primaries.
        let mut lost = self.take_lost();
        let killed = Instant::now();
        self.nodes.kill(primary);
        let mut switched: Option<PrimarySwitch> = None;
        holds_within(SETTLED_WITHIN, || {
            let switches = self.writers[shard].take_switches();
            lost += switches.iter().map(|switch| switch.lost).sum::<u64>();
            switched = switches.into_iter().find(|switch| switch.address != address);
            switched.is_some()
        });
        let Some(switch) = switched else { bail!("no failover\n{}", self.nodes.logs()) };
        self.logs = self.nodes.logs();
        self.nodes.restart(primary);
        let owner = self.nodes.owner(KEYS[shard])?;
        let replica = self.nodes.replica_of(owner)?;
        ensure!(replica == primary, "another node than the killed one follows");
        self.writers.iter().for_each(Writer::pause);
        lost += self.take_lost();
        let mut different = 0;
        for key in KEYS {
            let owner = self.nodes.owner(key)?;
            if !self.nodes.has_equal_replica(owner)? {
                different += 1;
                println!("the digests of {key}'s shard differ\n{}", self.nodes.logs());
            }
        }
        self.nodes.check_roles(KEYS.len())?;
        let took = switch.at.duration_since(killed);
        self.failovers.push(FailoverRound { took, lost, rate, different });
        Ok(())
    }

    /// The number of lost writes that the clients have noticed since the last call.
    fn take_lost(&self) -> u64 {
        self.writers.iter().flat_map(Writer::take_switches).map(|switch| switch.lost).sum()
    }

    /// A line about the last round.
    fn report(&self, round: usize) {
        let Some(last) = self.failovers.last() else { return };
        let (took, FailoverRound { lost, rate, .. }) = (last.took.as_millis(), last);
        eprintln!("{round}: {} {took} ms, {lost} lost of {rate:.0} per second", self.nodes.name());
    }

    /// The row of the table.
    fn row(&self) -> String {
        let took: Vec<Duration> = self.failovers.iter().map(|round| round.took).collect();
        let mut lost: Vec<u64> = self.failovers.iter().map(|round| round.lost).collect();
        lost.sort_unstable();
        let lost_at = |percent: usize| {
            let at = (lost.len() * percent / 100).min(lost.len().saturating_sub(1));
            lost.get(at).copied().unwrap_or_default()
        };
        let span = |round: &FailoverRound| {
            let seconds = round.lost as f64 / round.rate.max(1.0);
            Duration::from_secs_f64(seconds)
        };
        let mut spans: Vec<Duration> = self.failovers.iter().map(span).collect();
        spans.sort();
        let spans = [50, 95, 100].map(|percent| format!("{:.1}", percentile_ms(&spans, percent)));
        let different: usize = self.failovers.iter().map(|round| round.different).sum();
        format!(
            "| {} | {} | {}, {}, {} | {} | {different} |",
            self.nodes.name(),
            quantiles(&took),
            lost_at(50),
            lost_at(95),
            lost_at(100),
            spans.join(", "),
        )
    }
}
