//! The reports of the nodes of a cluster. `problems.rs` draws conclusions from them.

use super::etcd::{self, EtcdEndpoint};
use crate::cluster::SLOTS;
use crate::cluster::node::{Line, Node};
use crate::info::InfoFields;
use crate::session::{AlreadyReported, ConnectFailure, Session};
use brisk_cluster::document::CoordinatorReport;
use brisk_cluster::map::client_port;
use brisk_resp::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of nodes to query.
const NODES_MAX: usize = 4096;
/// A node that does not reply within this time is considered unreachable.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// The nodes that one node of the cluster lists.
#[derive(Debug, Default)]
pub(super) struct ClusterFacts {
    pub(super) nodes: Vec<NodeFacts>,
    /// The facts that this node has from its coordinator; `None` for servers other than Brisk.
    pub(super) known: Option<CoordinatorReport>,
    /// The endpoints of etcd in the settings of the nodes; empty for other coordinators.
    pub(super) etcd: Vec<EtcdEndpoint>,
}

/// A node: its line in the cluster's list, and its own report.
#[derive(Debug)]
pub(super) struct NodeFacts {
    pub(super) line: Line,
    /// The error describes the node's reaction, for example `cannot be reached: …`.
    pub(super) report: Result<NodeReport, String>,
}

/// The report of a node about itself.
#[derive(Debug, Default)]
pub(super) struct NodeReport {
    pub(super) cluster: InfoFields,
    /// INFO: replication and persistence.
    pub(super) server: InfoFields,
    pub(super) known: Option<CoordinatorReport>,
}

impl ClusterFacts {
    /// Queries all nodes that the node at this address lists. If that node is in no shard, queries the nodes that a
    /// member lists.
    ///
    /// # Errors
    /// If that node cannot be reached, or is not a cluster node. A message has been printed.
    pub(super) fn load(
        host: &str,
        port: i64,
        session: &Session,
    ) -> Result<ClusterFacts, AlreadyReported> {
        let mut entry = Node::connect(host, port, session)?;
        let mut others = entry.load()?;
        if let Some(mut member) = member_for(&mut entry, session) {
            others = member.load()?;
            entry = member;
        }
        let own = NodeFacts { line: entry.is.clone(), report: report(&mut entry) };
        let known = own.report.as_ref().ok().and_then(|report| report.known.clone());
        let mut nodes = vec![own];
        for line in others.into_iter().take(NODES_MAX) {
            let reached = Node::reach(&line.host, line.port, session, REPLY_TIMEOUT);
            let report = match reached {
                Ok(mut node) => report(&mut node),
                Err(failure) => Err(describe(&failure)),
            };
            nodes.push(NodeFacts { line, report });
        }
        // Sort, so that the order does not depend on the node on the command line.
        nodes.sort_by_key(|node| {
            (node.line.slots.first().copied().unwrap_or(SLOTS), node.place_key())
        });
        let mut facts = ClusterFacts { nodes, known, etcd: Vec::new() };
        let settings = facts.reports().filter_map(|report| report.known.as_ref());
        let settings: BTreeSet<&str> = settings.map(|known| &*known.coordinator).collect();
        facts.etcd = etcd::probe(&settings);
        Ok(facts)
    }

    /// The reports of the nodes that sent one.
    pub(super) fn reports(&self) -> impl Iterator<Item = &NodeReport> {
        self.nodes.iter().filter_map(|node| node.report.as_ref().ok())
    }

    /// The primaries, in the order of their first slots.
    pub(super) fn primaries(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.iter().filter(|node| node.line.replicates.is_none())
    }

    /// The replicas of a primary.
    pub(super) fn replicas_of(&self, id: &str) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.iter().filter(move |node| node.line.replicates.as_deref() == Some(id))
    }

    pub(super) fn find(&self, id: &str) -> Option<&NodeFacts> {
        self.nodes.iter().find(|node| node.line.id == id)
    }

    pub(super) fn reached_count(&self) -> usize {
        self.reports().count()
    }

    pub(super) fn assigned_slots(&self) -> usize {
        let slots: BTreeSet<u16> =
            self.nodes.iter().flat_map(|node| node.line.slots.iter().copied()).collect();
        slots.len()
    }

    /// The distinct values that the nodes report for a field of CLUSTER INFO, in order.
    pub(super) fn values(&self, field: &str) -> BTreeSet<&str> {
        self.reports().filter_map(|report| report.cluster.get(field)).collect()
    }

    /// The largest number that any node reports for a field of CLUSTER INFO.
    pub(super) fn max_value(&self, field: &str) -> Option<i64> {
        self.reports().filter_map(|report| report.cluster.number(field)).max()
    }
}

impl NodeFacts {
    /// `host:port`
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.line.host, self.line.port)
    }

    fn place_key(&self) -> (String, i64) {
        (self.line.host.clone(), self.line.port)
    }

    pub(super) const fn is_replica(&self) -> bool {
        self.line.replicates.is_some()
    }

    /// The number of bytes that this replica lags behind its primary; `None` if one of the offsets is unknown.
    pub(super) fn lag(&self, primary: &NodeFacts) -> Option<i64> {
        let written = primary.report.as_ref().ok()?.server.number("master_repl_offset")?;
        let listed = primary.report.as_ref().ok()?.server.replicas();
        let listed = listed.iter().find(|replica| replica.port == self.line.port);
        let received = match listed {
            Some(replica) => replica.offset,
            None => self.report.as_ref().ok()?.server.number("slave_repl_offset")?,
        };
        Some((written - received).max(0))
    }
}

/// A member of the cluster, if this node is registered but the topology does not contain it.
fn member_for(entry: &mut Node, session: &Session) -> Option<Node> {
    let known = entry.coordinator_report()?;
    let member = known.contact.filter(|_| known.has_topology && !known.is_member)?;
    let port = client_port(&member, session.options.tls);
    Node::reach(&member.ip, i64::from(port), session, REPLY_TIMEOUT).ok()
}

/// The report of a node.
fn report(node: &mut Node) -> Result<NodeReport, String> {
    let server = fields(node, &["INFO"])?;
    let cluster = fields(node, &["CLUSTER", "INFO"])?;
    Ok(NodeReport { cluster, server, known: node.coordinator_report() })
}

fn fields(node: &mut Node, words: &[&str]) -> Result<InfoFields, String> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let reply = node.raw(&words).ok_or("does not reply")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match reply.as_error() {
        Some(error) => Err(format!("replied with error: {}", text(error))),
        None => Ok(InfoFields::parse(&text(Value::as_bytes(&reply).unwrap_or_default()))),
    }
}

/// Describes the reaction of a node that does not accept a connection.
fn describe(failure: &ConnectFailure) -> String {
    match failure {
        ConnectFailure::Unreachable(text) | ConnectFailure::Tls(text) => {
            format!("cannot be reached: {text}")
        }
        ConnectFailure::Rejected(text) => format!("rejects the connection: {text}"),
        ConnectFailure::Lost => "does not reply".to_owned(),
    }
}
