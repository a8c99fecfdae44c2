//! The reports of the nodes of a cluster, and the problems that follow from them.

use crate::cluster::SLOTS;
use crate::cluster::fields::InfoFields;
use crate::cluster::node::{Line, Node};
use crate::session::{Session, Told};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of nodes to query.
const NODES_MAX: usize = 4096;
/// A node that does not reply within this time is considered unreachable.
const PATIENCE: Duration = Duration::from_secs(3);

/// The nodes that one node of the cluster lists.
#[derive(Debug)]
pub(super) struct ClusterFacts {
    pub(super) nodes: Vec<NodeFacts>,
}

/// A node: its line in the cluster's list, and its own report.
#[derive(Debug)]
pub(super) struct NodeFacts {
    pub(super) line: Line,
    /// `None` if the node cannot be reached.
    pub(super) report: Option<NodeReport>,
}

/// The report of a node about itself.
#[derive(Debug, Default)]
pub(super) struct NodeReport {
    pub(super) cluster: InfoFields,
    /// INFO: replication and persistence.
    pub(super) server: InfoFields,
}

impl ClusterFacts {
    /// Queries all nodes that the node at this address lists.
    ///
    /// # Errors
    /// If that node cannot be reached, or is not a cluster node. A message has been printed.
    pub(super) fn load(host: &str, port: i64, session: &Session) -> Result<ClusterFacts, Told> {
        let mut entry = Node::connect(host, port, session)?;
        let others = entry.load()?;
        let own = NodeFacts { line: entry.is.clone(), report: report(&mut entry) };
        let mut nodes = vec![own];
        for line in others.into_iter().take(NODES_MAX) {
            let reached = Node::reach(&line.host, line.port, session, PATIENCE);
            let report = reached.and_then(|mut node| report(&mut node));
            nodes.push(NodeFacts { line, report });
        }
        // Sort, so that the order does not depend on the node on the command line.
        nodes.sort_by_key(|node| {
            (node.line.slots.first().copied().unwrap_or(SLOTS), node.place_key())
        });
        Ok(ClusterFacts { nodes })
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

    pub(super) fn reached(&self) -> usize {
        self.nodes.iter().filter(|node| node.report.is_some()).count()
    }

    pub(super) fn assigned_slots(&self) -> usize {
        let slots: BTreeSet<u16> =
            self.nodes.iter().flat_map(|node| node.line.slots.iter().copied()).collect();
        slots.len()
    }

    /// The distinct values that the nodes report for a field of CLUSTER INFO, in order.
    pub(super) fn values(&self, field: &str) -> BTreeSet<&str> {
        let reports = self.nodes.iter().filter_map(|node| node.report.as_ref());
        reports.filter_map(|report| report.cluster.get(field)).collect()
    }

    /// The largest number that any node reports for a field of CLUSTER INFO.
    pub(super) fn newest(&self, field: &str) -> Option<i64> {
        let reports = self.nodes.iter().filter_map(|node| node.report.as_ref());
        reports.filter_map(|report| report.cluster.number(field)).max()
    }

    /// The problems of the cluster, one line each.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let missing = usize::from(SLOTS) - self.assigned_slots();
        if missing > 0 {
            problems.push(format!("{missing} slots have no owner"));
        }
        for node in &self.nodes {
            let found = node.problems();
            problems.extend(found.into_iter().map(|text| format!("{}: {text}", node.place())));
        }
        problems
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
        let written = primary.report.as_ref()?.server.number("master_repl_offset")?;
        let listed = primary.report.as_ref()?.server.replicas();
        let listed = listed.iter().find(|replica| replica.port == self.line.port);
        let received = match listed {
            Some(replica) => replica.offset,
            None => self.report.as_ref()?.server.number("slave_repl_offset")?,
        };
        Some((written - received).max(0))
    }

    fn problems(&self) -> Vec<String> {
        let Some(NodeReport { cluster, server }) = &self.report else {
            let role = if self.is_replica() { "replica" } else { "primary" };
            return vec![format!("this {role} cannot be reached")];
        };
        let mut problems = Vec::new();
        if !cluster.is("cluster_state", "ok") {
            let state = cluster.get("cluster_state").unwrap_or("unknown");
            problems.push(format!("its cluster_state is {state}"));
        }
        if cluster.is("cluster_fenced", "1") {
            problems
                .push("it is fenced: it serves no requests until it renews its lease".to_owned());
        }
        if let Some(state) = cluster.get("cluster_coordinator_state").filter(|state| *state != "ok")
        {
            problems.push(format!("its coordinator is {state}"));
        }
        if server.is("loading", "1") {
            problems.push("it is loading its data".to_owned());
        }
        let acts_as_replica = server.is("role", "slave");
        if acts_as_replica != self.is_replica() {
            let name = |is_replica: bool| if is_replica { "replica" } else { "primary" };
            let (acts, is) = (name(acts_as_replica), name(self.is_replica()));
            problems.push(format!("it acts as a {acts}, but the topology lists it as a {is}"));
        } else if acts_as_replica && !server.is("master_link_status", "up") {
            problems.push("its link to the primary is down".to_owned());
        }
        problems
    }
}

/// The report of a node; `None` if it does not reply.
fn report(node: &mut Node) -> Option<NodeReport> {
    let server = node.fields(&["INFO"]).ok()?;
    let cluster = node.fields(&["CLUSTER", "INFO"]).ok()?;
    Some(NodeReport { cluster, server })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node::parse_nodes;

    fn facts(reports: &[Option<(&str, &str)>]) -> ClusterFacts {
        let lines = parse_nodes(
            "aa h:1@2 master - 0 0 1 connected 0-16383\nbb h:3@4 slave aa 0 0 1 connected\n",
        );
        let nodes = lines.unwrap().into_iter().zip(reports).map(|(line, report)| NodeFacts {
            line,
            report: report.map(|(cluster, server)| NodeReport {
                cluster: InfoFields::parse(cluster),
                server: InfoFields::parse(server),
            }),
        });
        ClusterFacts { nodes: nodes.collect() }
    }

    const OK: &str = "cluster_state:ok\ncluster_fenced:0\ncluster_coordinator_state:ok";

    #[test]
    fn a_cluster_without_problems_has_none() {
        let primary =
            "role:master\nmaster_repl_offset:100\nslave0:ip=h,port=3,state=online,offset=90,lag=0";
        let facts = facts(&[Some((OK, primary)), Some((OK, "role:slave\nmaster_link_status:up"))]);
        assert_eq!(facts.problems(), Vec::<String>::new());
        assert_eq!(facts.nodes[1].lag(&facts.nodes[0]), Some(10));
    }

    #[test]
    fn each_problem_names_its_node() {
        let fenced = "cluster_state:fail\ncluster_fenced:1\ncluster_coordinator_state:unreachable";
        let facts = facts(&[Some((fenced, "role:slave")), None]);
        assert_eq!(
            facts.problems(),
            [
                "h:1: its cluster_state is fail",
                "h:1: it is fenced: it serves no requests until it renews its lease",
                "h:1: its coordinator is unreachable",
                "h:1: it acts as a replica, but the topology lists it as a primary",
                "h:3: this replica cannot be reached",
            ]
        );
    }

    #[test]
    fn a_server_without_the_fields_of_brisk_has_no_problem_by_that() {
        let facts = facts(&[
            Some(("cluster_state:ok", "role:master\nloading:1")),
            Some(("cluster_state:ok", "role:slave\nmaster_link_status:down")),
        ]);
        assert_eq!(
            facts.problems(),
            ["h:1: it is loading its data", "h:3: its link to the primary is down"]
        );
        assert_eq!(facts.nodes[1].lag(&facts.nodes[0]), None);
    }
}
