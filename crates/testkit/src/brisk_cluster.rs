//! Nodes of our server in cluster mode, with a coordinator that they share: a directory, or etcd.
//!
//! [`crate::cluster`] starts a cluster of real Redis nodes.

use crate::conn::Conn;
use crate::etcd::Etcd;
use crate::server::{Launch, Program, Server};
use crate::temp_dir::TempDir;
use crate::wait::wait_until;
use std::path::PathBuf;

/// A node: its process, and how to start it again.
#[derive(Debug)]
pub struct BriskNode {
    launch: Launch,
    server: Server,
    /// The process runs.
    is_up: bool,
}

/// Nodes that share a coordinator. The processes end with it.
#[derive(Debug)]
pub struct BriskCluster {
    nodes: Vec<BriskNode>,
    /// The directory of `local:`. Dropped after the nodes.
    store: TempDir,
}

impl BriskCluster {
    /// Starts nodes that form a cluster of this many shards by themselves, and waits until all of them serve.
    /// [`BriskCluster::primaries`] names the primaries.
    ///
    /// # Panics
    /// The cluster does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(shards: usize, replicas_each: usize) -> BriskCluster {
        BriskCluster::start_with(shards, replicas_each, &[])
    }

    /// The same, with more directives for each node. `cluster-coordinator` replaces the directory.
    ///
    /// # Panics
    /// The cluster does not come up.
    #[must_use]
    #[track_caller]
    pub fn start_with(
        shards: usize,
        replicas_each: usize,
        directives: &[(&str, &str)],
    ) -> BriskCluster {
        let (count, replicas) = (shards.to_string(), replicas_each.to_string());
        let forming = [("cluster-init-shards", &*count), ("cluster-init-replicas", &*replicas)];
        let directives = [&forming, directives].concat();
        let cluster = BriskCluster::start_apart(shards * (1 + replicas_each), &directives);
        cluster.wait_until_ok();
        cluster
    }

    /// Starts nodes that are members of no cluster.
    ///
    /// # Panics
    /// A node does not start.
    #[must_use]
    #[track_caller]
    pub fn start_apart(nodes: usize, directives: &[(&str, &str)]) -> BriskCluster {
        let mut cluster = BriskCluster { nodes: Vec::new(), store: TempDir::new() };
        for _ in 0..nodes {
            cluster.add(directives);
        }
        cluster
    }

    /// Starts one more node, which is a member of no cluster. Returns its position.
    ///
    /// # Panics
    /// The node does not start.
    #[track_caller]
    pub fn add(&mut self, directives: &[(&str, &str)]) -> usize {
        let launch = Launch::new(Program::Brisk)
            .set("cluster-enabled", "yes")
            .set("cluster-coordinator", &self.coordinator());
        let set = |launch: Launch, (name, value): &(&str, &str)| launch.set(name, value);
        let launch = directives.iter().fold(launch, set);
        let server = launch.clone().start();
        self.nodes.push(BriskNode { launch, server, is_up: true });
        self.nodes.len() - 1
    }

    /// The value of `cluster-coordinator` for the shared directory.
    #[must_use]
    pub fn coordinator(&self) -> String {
        format!("local:{}", self.directory().display())
    }

    /// The value of `cluster-coordinator` for these members of etcd.
    #[must_use]
    pub fn coordinator_of(etcd: &Etcd) -> String {
        format!("etcd://{}", etcd.endpoints().join(","))
    }

    /// The shared directory.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.store.path("coordinator")
    }

    /// The number of nodes, running or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The process of a node.
    #[must_use]
    pub fn node(&self, at: usize) -> &Server {
        &self.nodes[at].server
    }

    /// A connection to a node.
    #[must_use]
    #[track_caller]
    pub fn connect(&self, at: usize) -> Conn {
        self.nodes[at].server.connect()
    }

    /// The positions of the running nodes.
    pub fn running(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].is_up)
    }

    /// The positions of the running nodes that are primaries.
    #[must_use]
    #[track_caller]
    pub fn primaries(&self) -> Vec<usize> {
        let is_primary = |at: &usize| self.node(*at).info("role") == "master";
        self.running().filter(is_primary).collect()
    }

    /// The position of the node that serves a key.
    ///
    /// # Panics
    /// No node serves it.
    #[must_use]
    #[track_caller]
    pub fn owner(&self, key: &str) -> usize {
        let mut owner = None;
        wait_until("a node to serve the key", || {
            let serves = |at: &usize| !self.connect(*at).cmd(&format!("TYPE {key}")).is_error();
            owner = self.running().find(serves);
            owner.is_some()
        });
        owner.unwrap_or_default()
    }

    /// Waits until every running node serves its slots and redirects to the owners of all others.
    ///
    /// # Panics
    /// A node does not get there.
    #[track_caller]
    pub fn wait_until_ok(&self) {
        for at in self.running() {
            let mut conn = self.connect(at);
            wait_until("a node of the cluster to be ok", || {
                let reply = conn.cmd("TYPE key").to_string();
                let is_down = ["CLUSTERDOWN", "LOADING"].iter().any(|error| reply.contains(error));
                !is_down && (reply.contains("MOVED") || !reply.contains("(error)"))
            });
        }
        for at in self.running() {
            let mut conn = self.connect(at);
            wait_until("every replica to follow its primary", || {
                conn.info("role") == "master" || conn.info("master_link_status") == "up"
            });
        }
    }

    /// Ends a node at once, as a crash would. Its files stay.
    ///
    /// # Panics
    /// It does not run.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        assert!(self.nodes[at].is_up, "the node runs");
        self.nodes[at].is_up = false;
        self.nodes[at].server.kill_for_now();
    }

    /// Ends a node by SIGTERM, and waits for its end. Its files stay.
    ///
    /// # Panics
    /// It does not run, or does not end.
    #[track_caller]
    pub fn terminate(&mut self, at: usize) {
        assert!(self.nodes[at].is_up, "the node runs");
        self.nodes[at].is_up = false;
        let server = &mut self.nodes[at].server;
        server.signal("TERM");
        wait_until("the node to end", || !server.is_running());
        server.kill_for_now();
    }

    /// Starts a killed node with its files, on its port.
    ///
    /// # Panics
    /// It does not start.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.launch.start_again(&mut node.server);
        node.is_up = true;
    }

    /// Starts a killed node with its files, on another port.
    ///
    /// # Panics
    /// It does not start.
    #[track_caller]
    pub fn restart_elsewhere(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.launch.start_elsewhere(&mut node.server);
        node.is_up = true;
    }
}
