//! The nodes of a cluster, Brisk or Redis, with a common interface.

use crate::options::Options;
use anyhow::{Context, Result, bail, ensure};
use brisk_testkit::etcd::{Etcd, EtcdLaunch};
use brisk_testkit::reply::Reply;
use brisk_testkit::server::Server;
use brisk_testkit::wait::holds_within;
use brisk_testkit::{BriskCluster, Cluster, Conn};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The time within which every healthy cluster meets a condition, even on a busy machine.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(120);
/// Number of lines of a node's log that are printed on a failure.
const LOG_LINES: usize = 40;

/// The coordinator of Brisk nodes.
pub(super) enum Store {
    Directory,
    Etcd(Etcd),
}

impl Store {
    /// Starts the coordinator that `--coordinator` names. `None` if this machine has no etcd.
    pub(super) fn start(options: &Options) -> Result<Option<Store>> {
        match options.text("coordinator").unwrap_or("local") {
            "local" => Ok(Some(Store::Directory)),
            "etcd" => Ok(EtcdLaunch::new(options.number("members", 3)?).start().map(Store::Etcd)),
            other => bail!("--coordinator {other}: it is `local` or `etcd`"),
        }
    }

    /// The directives of nodes that form the cluster with this name.
    pub(super) fn directives(&self, name: &str, ttl_s: u64) -> Vec<(&'static str, String)> {
        let mut directives = vec![
            ("cluster-name", name.to_owned()),
            ("cluster-node-timeout", (ttl_s * 1000).to_string()),
        ];
        if let Store::Etcd(etcd) = self {
            directives.push(("cluster-coordinator", BriskCluster::coordinator_of(etcd)));
        }
        directives
    }

    /// The leader elections of etcd, each of which extends all leases.
    pub(super) fn elections(&self) -> String {
        match self {
            Store::Directory => String::new(),
            Store::Etcd(etcd) => etcd.log_lines("leader at term"),
        }
    }

    /// The description for the table.
    pub(super) fn describe(&self) -> String {
        match self {
            Store::Directory => "local".to_owned(),
            Store::Etcd(etcd) => format!("etcd, {} members", etcd.endpoints().len()),
        }
    }
}

/// Converts directives for the test kit.
pub(super) fn borrowed<'d>(directives: &'d [(&'static str, String)]) -> Vec<(&'d str, &'d str)> {
    directives.iter().map(|(name, value)| (*name, &**value)).collect()
}

/// A term of a shard, and the node that is its primary.
type Terms = BTreeMap<String, (u64, String)>;

/// A running cluster.
pub(super) enum Nodes {
    Brisk {
        cluster: BriskCluster,
        terms: Terms,
        /// The ports at which other nodes reach each node, if they differ from its own port.
        announced: Vec<u16>,
    },
    Redis(Cluster),
}

impl Nodes {
    /// Starts Brisk nodes that form a cluster with this number of shards, each with one replica.
    pub(super) fn brisk(store: &Store, shards: usize, ttl_s: u64) -> Nodes {
        let directives = store.directives("failover", ttl_s);
        let cluster = BriskCluster::start_with(shards, 1, &borrowed(&directives));
        Nodes::of_brisk(cluster, Vec::new())
    }

    /// Wraps running Brisk nodes, with the ports at which other nodes reach each of them.
    pub(super) fn of_brisk(cluster: BriskCluster, announced: Vec<u16>) -> Nodes {
        Nodes::Brisk { cluster, terms: Terms::new(), announced }
    }

    /// Like [`Nodes::brisk`], with redis-server.
    pub(super) fn redis(shards: usize, ttl_s: u64) -> Nodes {
        let timeout = (ttl_s * 1000).to_string();
        Nodes::Redis(Cluster::start_with(shards, 1, &[("cluster-node-timeout", &timeout)]))
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Nodes::Brisk { .. } => "Brisk",
            Nodes::Redis(_) => "Redis",
        }
    }

    fn running(&self) -> Vec<usize> {
        match self {
            Nodes::Brisk { cluster, .. } => cluster.running().collect(),
            Nodes::Redis(cluster) => cluster.running().collect(),
        }
    }

    pub(super) fn node(&self, at: usize) -> &Server {
        match self {
            Nodes::Brisk { cluster, .. } => cluster.node(at),
            Nodes::Redis(cluster) => cluster.node(at),
        }
    }

    /// The addresses of the running nodes.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.running().into_iter().map(|at| self.node(at).address()).collect()
    }

    /// Kills a node, as a crash would.
    pub(super) fn kill(&mut self, at: usize) {
        match self {
            Nodes::Brisk { cluster, .. } => cluster.kill(at),
            Nodes::Redis(cluster) => cluster.kill_for_now(at),
        }
    }

    /// Restarts a killed node on its port.
    pub(super) fn restart(&mut self, at: usize) {
        match self {
            Nodes::Brisk { cluster, .. } => cluster.restart(at),
            Nodes::Redis(cluster) => cluster.restart(at),
        }
    }

    /// The reply of a node. `None` if the connection is closed, for example because the node's lease has expired.
    fn reply(&self, at: usize, line: &str) -> Option<Reply> {
        Conn::try_tcp(&self.node(at).address()).ok()?.try_cmd(line).ok()
    }

    /// The position of the node that serves a key.
    pub(super) fn owner(&self, key: &str) -> Result<usize> {
        let owner = soon(|| self.owner_now(key));
        owner.with_context(|| format!("no node serves {key}\n{}", self.logs()))
    }

    /// The position of the replica of a primary, once its link is up.
    pub(super) fn replica_of(&self, primary: usize) -> Result<usize> {
        let replica = soon(|| self.replica_now(primary));
        let port = self.node(primary).port();
        replica.with_context(|| format!("no replica follows port {port}\n{}", self.logs()))
    }

    /// The positions of the node that serves a key and of its replica, once the link is up. The roles may change
    /// during the wait.
    pub(super) fn shard_of(&self, key: &str) -> Result<(usize, usize)> {
        let shard = soon(|| {
            let primary = self.owner_now(key)?;
            Some((primary, self.replica_now(primary)?))
        });
        shard.with_context(|| format!("no primary with a replica serves {key}\n{}", self.logs()))
    }

    fn owner_now(&self, key: &str) -> Option<usize> {
        let type_of = format!("TYPE {key}");
        let serves = |at: &usize| self.reply(*at, &type_of).is_some_and(|one| !one.is_error());
        self.running().into_iter().find(serves)
    }

    fn replica_now(&self, primary: usize) -> Option<usize> {
        let own = self.node(primary).port();
        let port = match self {
            Nodes::Brisk { announced, .. } => announced.get(primary).copied().unwrap_or(own),
            Nodes::Redis(_) => own,
        };
        let of_primary = format!("master_port:{port}");
        let follows = |at: &usize| {
            let Some(info) = self.reply(*at, "INFO replication") else { return false };
            let info = info.text();
            let has = |wanted: &str| info.lines().any(|line| line == wanted);
            has("role:slave") && has(&of_primary) && has("master_link_status:up")
        };
        self.running().into_iter().find(follows)
    }

    /// Reports whether a primary and its replica have the same digest, or get the same digest soon. No client may write
    /// during the call. A node whose lease expires during a command closes the connection, so each attempt connects
    /// again.
    pub(super) fn has_equal_replica(&self, primary: usize) -> Result<bool> {
        let replica = self.replica_of(primary)?;
        let digest = |at: usize| self.reply(at, "DEBUG DIGEST").map(|reply| reply.to_string());
        Ok(holds_within(Duration::from_secs(10), || {
            digest(primary)
                .is_some_and(|digest_of_primary| digest(replica) == Some(digest_of_primary))
        }))
    }

    /// Checks that there are as many primaries as shards. For Brisk nodes, it also checks that no shard's term has
    /// decreased since the last call, and that no shard has a different primary in the same term.
    pub(super) fn check_roles(&mut self, shards: usize) -> Result<()> {
        let one_each = holds_within(SETTLED_WITHIN, || self.primaries() == shards);
        ensure!(one_each, "{} primaries of {shards} shards\n{}", self.primaries(), self.logs());
        let next = self.read_terms()?;
        let Nodes::Brisk { terms, .. } = self else { return Ok(()) };
        for (shard, (term, primary)) in &next {
            let Some((before, primary_before)) = terms.get(shard) else { continue };
            ensure!(term >= before, "the term of shard {shard} fell from {before} to {term}");
            ensure!(
                term > before || primary == primary_before,
                "shard {shard} has two primaries of term {term}: {primary_before} and {primary}"
            );
        }
        *terms = next;
        Ok(())
    }

    fn primaries(&self) -> usize {
        let is_primary = |at: &usize| {
            let info = self.reply(*at, "INFO replication");
            info.is_some_and(|info| info.text().contains("role:master"))
        };
        self.running().iter().filter(|at| is_primary(at)).count()
    }

    /// The terms in the topology that all Brisk nodes have. Empty for Redis.
    fn read_terms(&self) -> Result<Terms> {
        let Nodes::Brisk { cluster, .. } = self else { return Ok(Terms::new()) };
        let mut terms = Err(anyhow::anyhow!("no topology"));
        holds_within(SETTLED_WITHIN, || {
            let mut read = cluster.running().map(|at| terms_of(cluster.node(at)));
            terms = read.next().unwrap_or_else(|| bail!("no node runs"));
            read.all(|other| matches!((&terms, &other), (Ok(one), Ok(other)) if one == other))
        });
        terms
    }

    /// The end of each node's log.
    pub(super) fn logs(&self) -> String {
        let mut text = String::new();
        for at in self.running() {
            let log = self.node(at).log();
            let lines: Vec<&str> = log.lines().collect();
            text += &format!("--- log of {}\n", self.node(at).address());
            text += &lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            text.push('\n');
        }
        text
    }
}

/// The first value that `find` returns within [`SETTLED_WITHIN`].
fn soon<T>(find: impl Fn() -> Option<T>) -> Option<T> {
    let mut found = None;
    holds_within(SETTLED_WITHIN, || {
        found = find();
        found.is_some()
    });
    found
}

/// The terms in the topology that a node has on disk.
fn terms_of(server: &Server) -> Result<Terms> {
    let path = server.dir().join("topology.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let document: Value = serde_json::from_str(&text)?;
    let shards = document["shards"].as_array().context("no shards")?;
    let term = |shard: &Value| {
        let term = shard["term"].as_u64().context("a shard without a term")?;
        Ok((shard["id"].to_string(), (term, shard["primary"].to_string())))
    };
    shards.iter().map(term).collect()
}
