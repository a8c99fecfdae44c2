//! Nodes of our server in cluster mode. They share a coordinator, which is a directory or etcd.
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
    /// True while the process is running.
    is_up: bool,
}

/// Nodes that share a coordinator. Their processes end when this value is dropped.
#[derive(Debug)]
pub struct BriskCluster {
    nodes: Vec<BriskNode>,
    /// The directory of the `local:` coordinator. It is dropped after the nodes.
    store: TempDir,
}

impl BriskCluster {
    /// Starts nodes that form a cluster with this number of shards on their own. Waits until all of them serve their
    /// slots. [`BriskCluster::primaries`] names the primaries.
    ///
    /// # Panics
    /// If the cluster does not start.
    #[must_use]
    #[track_caller]
    pub fn start(shards: usize, replicas_each: usize) -> BriskCluster {
        BriskCluster::start_with(shards, replicas_each, &[])
    }

    /// Like [`BriskCluster::start`], with more directives for each node. `cluster-coordinator` replaces the directory.
    ///
    /// # Panics
    /// If the cluster does not start.
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

    /// Starts nodes that do not belong to a cluster.
    ///
    /// # Panics
    /// If a node does not start.
    #[must_use]
    #[track_caller]
    pub fn start_apart(nodes: usize, directives: &[(&str, &str)]) -> BriskCluster {
        let mut cluster = BriskCluster { nodes: Vec::new(), store: TempDir::new() };
        for _ in 0..nodes {
            cluster.add(directives);
        }
        cluster
    }

    /// Starts another node, which does not belong to a cluster. Returns its position.
    ///
    /// # Panics
    /// If the node does not start.
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
    /// If no node serves the key.
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
    /// If a node does not reach this state in time.
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

    /// Kills a node, as a crash would. Its files stay.
    ///
    /// # Panics
    /// If the node is not running.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        assert!(self.nodes[at].is_up, "the node runs");
        self.nodes[at].is_up = false;
        self.nodes[at].server.kill_for_now();
    }

    /// Sends SIGTERM to a node and waits until it exits. Its files stay.
    ///
    /// # Panics
    /// If the node is not running, or does not exit.
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
    /// If the node does not start.
    #[track_caller]
    pub fn restart(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.launch.start_again(&mut node.server);
        node.is_up = true;
    }

    /// Starts a killed node with its files, on another port.
    ///
    /// # Panics
    /// If the node does not start.
    #[track_caller]
    pub fn restart_elsewhere(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.launch.start_elsewhere(&mut node.server);
        node.is_up = true;
    }
}
