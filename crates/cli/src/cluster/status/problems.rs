//! The problems of a cluster, and the warnings about it.

use super::etcd::EtcdEndpoint;
use super::facts::{ClusterFacts, NodeFacts, NodeReport};
use crate::cluster::SLOTS;
use crate::cluster::node::ranges;
use brisk_cluster::document::{CoordinatorReport, NodeContents, UnassignedNode};
use brisk_cluster::map::client_port;
use std::collections::{BTreeMap, BTreeSet};

/// The state of a node that cannot renew its lease.
const UNREACHABLE: &str = "unreachable";

impl ClusterFacts {
    /// The problems of the cluster, one line each: what should work, and does not.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.coordinator_problem().into_iter().collect();
        problems.extend(self.etcd_problems());
        problems.extend(self.slots_problem());
        let is_cut_off = self.is_cut_off();
        for node in &self.nodes {
            let found = node.problems(is_cut_off);
            problems.extend(found.into_iter().map(|text| format!("{}: {text}", node.place())));
        }
        problems
    }

    /// One line for each lack of redundancy, for each node that is not used, and for different timeouts.
    pub(super) fn warnings(&self, is_tls: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        for primary in self.primaries().filter(|node| !node.line.slots.is_empty()) {
            if self.replicas_of(&primary.line.id).next().is_none() {
                warnings.push(format!("shard {} has no replica", slot_list(&primary.line.slots)));
            }
        }
        warnings.extend(self.timeout_warning());
        let entry = self.primaries().find(|node| node.report.is_ok()).map(NodeFacts::place);
        if let Some(known) = &self.known {
            let unused = known.unassigned.iter();
            warnings.extend(
                unused.filter_map(|node| unused_node(known, node, entry.as_deref(), is_tls)),
            );
        }
        warnings
    }

    /// A failover waits for the longest TTL in the shard, and the nodes disagree about when a node has failed.
    fn timeout_warning(&self) -> Option<String> {
        let mut nodes: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for node in &self.nodes {
            let Ok(report) = &node.report else { continue };
            let ttl_ms = report.cluster.number("cluster_lease_ttl_ms").filter(|ttl_ms| *ttl_ms > 0);
            if let Some(ttl_ms) = ttl_ms {
                nodes.entry(ttl_ms).or_default().push(node.place());
            }
        }
        if nodes.len() < 2 {
            return None;
        }
        let parts: Vec<String> = nodes
            .iter()
            .map(|(ttl_ms, places)| format!("{} s on {}", ttl_ms / 1000, places.join(", ")))
            .collect();
        Some(format!(
            "the nodes have different values of cluster-node-timeout: {}",
            parts.join("; ")
        ))
    }

    /// True if no node can renew its lease.
    fn is_cut_off(&self) -> bool {
        let mut states =
            self.reports().map(|report| report.cluster.get("cluster_coordinator_state"));
        self.reached_count() > 0 && states.all(|state| state == Some(UNREACHABLE))
    }

    fn coordinator_problem(&self) -> Option<String> {
        let known = || self.reports().filter_map(|report| report.known.as_ref());
        if self.is_cut_off() {
            let mut setting = known().map(|known| known.coordinator.as_str());
            return Some(match setting.next() {
                Some(setting) if setting.starts_with("etcd") => {
                    format!("no node reaches etcd ({setting})")
                }
                Some(setting) => format!("no node reaches the coordinator ({setting})"),
                None => "no node reaches the coordinator".to_owned(),
            });
        }
        known().any(|known| known.is_lost).then(|| {
            "the topology has disappeared from the coordinator. Restore it with: \
             brisk-cli --cluster restore-topology"
                .to_owned()
        })
    }

    /// The endpoints that this machine cannot reach. If it can reach none of them, it may not be allowed to.
    fn etcd_problems(&self) -> Vec<String> {
        let total = self.etcd.len();
        let up = self.etcd.iter().filter(|one| one.failure.is_none()).count();
        if up == 0 {
            return Vec::new();
        }
        let is = if up == 1 { "is" } else { "are" };
        let problem = |EtcdEndpoint { address, failure }: &EtcdEndpoint| {
            let failure = failure.as_ref()?;
            Some(format!(
                "etcd: {address} cannot be reached ({failure}); {up} of {total} endpoints {is} reachable"
            ))
        };
        self.etcd.iter().filter_map(problem).collect()
    }

    fn slots_problem(&self) -> Option<String> {
        let missing = usize::from(SLOTS) - self.assigned_slots();
        if missing == 0 {
            return None;
        }
        Some(match &self.known {
            Some(known) if !known.has_topology && known.forms_with > 0 => {
                let (registered, wanted) = (known.registered, known.forms_with);
                format!(
                    "waiting for nodes: {registered} of {wanted} are registered in cluster {}",
                    known.cluster
                )
            }
            Some(known) if !known.has_topology => {
                format!("cluster {} has not been created", known.cluster)
            }
            Some(known) if !known.is_member => format!(
                "the node is registered in cluster {}, but it is in no shard, and no member can be reached",
                known.cluster
            ),
            _ => format!("{missing} slots have no owner"),
        })
    }
}

/// The line for a registered node that is in no shard. `entry` is the address of a primary that replies.
fn unused_node(
    known: &CoordinatorReport,
    node: &UnassignedNode,
    entry: Option<&str>,
    is_tls: bool,
) -> Option<String> {
    let place = format!("{}:{}", node.member.ip, client_port(&node.member, is_tls));
    let has_keys = node.contents == NodeContents::Keys;
    if !known.has_topology {
        return (has_keys && known.forms_with > 0).then(|| {
            format!("{place} has keys, so the cluster is formed without it. Its log describes how to keep them")
        });
    }
    let add = format!("brisk-cli --cluster add-node {place} {} --cluster-slave", entry?);
    Some(if has_keys {
        format!(
            "{place} is registered, but it has keys and is in no shard. To let it join without its keys, send \
             FLUSHALL to it, and then add it with: {add}"
        )
    } else {
        format!("{place} is registered, but it is in no shard. Add it with: {add}")
    })
}

impl NodeFacts {
    /// The problems of this node. `is_cut_off` if no node reaches the coordinator, which is reported once.
    fn problems(&self, is_cut_off: bool) -> Vec<String> {
        let role = if self.is_replica() { "replica" } else { "primary" };
        let NodeReport { cluster, server, known } = match &self.report {
            Ok(report) => report,
            Err(failure) => return vec![format!("this {role} {failure}")],
        };
        let mut problems = Vec::new();
        if !cluster.is("cluster_state", "ok") {
            let state = cluster.get("cluster_state").unwrap_or("unknown");
            problems.push(format!("its cluster_state is {state}"));
        }
        if cluster.is("cluster_fenced", "1") {
            problems.push(
                "it is fenced: it serves no requests until it renews its lease, until an earlier primary can no longer \
                 serve (after its promotion), or until it learns the outcome of a planned switch"
                    .to_owned(),
            );
        }
        let known = known.as_ref();
        match cluster.get("cluster_coordinator_state").unwrap_or("ok") {
            "ok" => {}
            UNREACHABLE if is_cut_off => {}
            "stale" if known.is_some_and(|known| known.is_lost) => {}
            state => {
                let rejection = known.and_then(|known| known.rejection.as_deref());
                let why = rejection.map(|why| format!(": {why}")).unwrap_or_default();
                problems.push(format!("its coordinator is {state}{why}"));
            }
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

/// Formats slots, for example `0-5,7`.
pub(super) fn slot_list(slots: &BTreeSet<u16>) -> String {
    ranges(slots).replace(['[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node::parse_nodes;
    use crate::cluster::status::etcd::EtcdEndpoint;
    use crate::cluster::status::facts::NodeReport;
    use crate::info::InfoFields;

    fn facts(reports: &[Option<(&str, &str)>]) -> ClusterFacts {
        let lines = parse_nodes(
            "aa h:1@2 master - 0 0 1 connected 0-16383\nbb h:3@4 slave aa 0 0 1 connected\n",
        );
        let nodes = lines.unwrap().into_iter().zip(reports).map(|(line, report)| NodeFacts {
            line,
            report: report.ok_or("cannot be reached: Connection refused".to_owned()).map(
                |(cluster, server)| NodeReport {
                    cluster: InfoFields::parse(cluster),
                    server: InfoFields::parse(server),
                    known: None,
                },
            ),
        });
        ClusterFacts { nodes: nodes.collect(), ..ClusterFacts::default() }
    }

    const OK: &str = "cluster_state:ok\ncluster_fenced:0\ncluster_coordinator_state:ok";

    #[test]
    fn a_cluster_without_problems_has_none() {
        let primary =
            "role:master\nmaster_repl_offset:100\nslave0:ip=h,port=3,state=online,offset=90,lag=0";
        let facts = facts(&[Some((OK, primary)), Some((OK, "role:slave\nmaster_link_status:up"))]);
        assert_eq!(facts.problems(), Vec::<String>::new());
        assert_eq!(facts.nodes[1].lag(&facts.nodes[0]), Some(10));
        assert_eq!(facts.warnings(false), Vec::<String>::new());
    }

    #[test]
    fn a_shard_without_a_replica_is_a_warning() {
        let mut facts = facts(&[Some((OK, "role:master")), None]);
        facts.nodes.pop();
        assert_eq!(facts.problems(), Vec::<String>::new());
        assert_eq!(facts.warnings(false), ["shard 0-16383 has no replica"]);
    }

    #[test]
    fn different_timeouts_are_a_warning() {
        let with = |ttl_ms: &str| format!("{OK}\ncluster_lease_ttl_ms:{ttl_ms}");
        let warnings = |one: &str, other: &str| {
            let (one, other) = (with(one), with(other));
            facts(&[Some((&one, "role:master")), Some((&other, "role:slave"))]).warnings(false)
        };
        assert_eq!(warnings("5000", "5000"), Vec::<String>::new());
        assert_eq!(warnings("5000", "0"), Vec::<String>::new(), "a node without a lease");
        assert_eq!(
            warnings("15000", "5000"),
            ["the nodes have different values of cluster-node-timeout: 5 s on h:3; 15 s on h:1"]
        );
    }

    #[test]
    fn an_endpoint_of_etcd_that_fails_is_named_unless_all_fail() {
        let mut facts = facts(&[Some((OK, "role:master"))]);
        let endpoint = |port: u16, failure: Option<&str>| EtcdEndpoint {
            address: format!("e:{port}"),
            failure: failure.map(str::to_owned),
        };
        facts.etcd = vec![endpoint(1, None), endpoint(2, Some("Connection refused"))];
        assert_eq!(
            facts.problems(),
            ["etcd: e:2 cannot be reached (Connection refused); 1 of 2 endpoints is reachable"]
        );
        // This machine may not be allowed to connect to etcd.
        facts.etcd.remove(0);
        assert_eq!(facts.problems(), Vec::<String>::new());
    }

    #[test]
    fn each_problem_names_its_node() {
        let fenced = "cluster_state:fail\ncluster_fenced:1\ncluster_coordinator_state:unreachable";
        let facts = facts(&[Some((fenced, "role:slave")), None]);
        assert_eq!(
            facts.problems(),
            [
                "no node reaches the coordinator",
                "h:1: its cluster_state is fail",
                "h:1: it is fenced: it serves no requests until it renews its lease, until an earlier primary can no \
                 longer serve (after its promotion), or until it learns the outcome of a planned switch",
                "h:1: it acts as a replica, but the topology lists it as a primary",
                "h:3: this replica cannot be reached: Connection refused",
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
