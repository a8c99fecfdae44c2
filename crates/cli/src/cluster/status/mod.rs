//! `status`: the shards of a cluster with their nodes, its problems, and warnings.
//!
//! | file | about |
//! |---|---|
//! | here | the command and its output |
//! | `facts.rs` | the reports of the nodes |
//! | `etcd.rs` | which endpoints of etcd can be reached |
//! | `problems.rs` | the problems and warnings that follow from these facts |

mod etcd;
mod facts;
mod problems;

use self::facts::{ClusterFacts, NodeFacts};
use self::problems::slot_list;
use super::{Done, SLOTS, Task, count, messages};
use crate::session::AlreadyReported;

/// Number of digits of a node ID that are shown.
const ID_DIGITS: usize = 8;

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let facts = ClusterFacts::load(&host, port, task.session)?;
    let problems = facts.problems();
    let warnings = facts.warnings(task.session.options.tls);
    messages::say(&summary(&facts));
    for primary in facts.primaries() {
        messages::say(&shard(&facts, primary));
    }
    let is_well = warnings.is_empty() && problems.is_empty();
    if !warnings.is_empty() {
        messages::warning(&format!("\n[WARNING] {}:\n", count(warnings.len(), "warning")));
        for warning in warnings {
            messages::say(&format!("  {warning}\n"));
        }
    }
    if is_well {
        messages::good("\n[OK] The cluster has no problem.\n");
    }
    if problems.is_empty() {
        return Ok(());
    }
    messages::error(&format!("\n[ERR] {}:\n", count(problems.len(), "problem")));
    for problem in problems {
        messages::say(&format!("  {problem}\n"));
    }
    Err(AlreadyReported)
}

/// A few lines about the cluster as a whole.
fn summary(facts: &ClusterFacts) -> String {
    let (reached, nodes) = (facts.reached_count(), facts.nodes.len());
    let mut text = String::new();
    if let Some(known) = &facts.known {
        text.push_str(&format!("Cluster:     {}\n", known.cluster));
    }
    text.push_str(&format!(
        "Slots:       {} of {SLOTS} assigned to {}\nNodes:       {reached} of {nodes} reachable\n",
        facts.assigned_slots(),
        count(facts.primaries().filter(|node| !node.line.slots.is_empty()).count(), "shard"),
    ));
    if let Some(coordinator) = facts.values("cluster_coordinator").into_iter().next() {
        text.push_str(&format!("Coordinator: {coordinator}"));
        for state in facts.values("cluster_coordinator_state") {
            text.push_str(&format!(", {state}"));
        }
        if let Some(epoch) = facts.max_value("cluster_document_epoch") {
            text.push_str(&format!(", topology epoch {epoch}"));
        }
        text.push('\n');
    }
    if !facts.etcd.is_empty() {
        let up = facts.etcd.iter().filter(|endpoint| endpoint.failure.is_none()).count();
        let total = count(facts.etcd.len(), "endpoint");
        text.push_str(&format!("etcd:        {up} of {total} reachable from this machine\n"));
    }
    if let Some(controller) = facts.known.as_ref().and_then(|known| known.controller) {
        let id = controller.to_string();
        let place = facts.find(&id).map_or(id, NodeFacts::place);
        text.push_str(&format!("Controller:  {place}\n"));
    }
    if let Some(migrations) = facts.max_value("cluster_migrations").filter(|number| *number > 0) {
        text.push_str(&format!("Migrations:  {migrations}\n"));
    }
    text
}

/// The lines of a shard: one for the shard, and one for each of its nodes.
fn shard(facts: &ClusterFacts, primary: &NodeFacts) -> String {
    let slots = &primary.line.slots;
    let mut text = if slots.is_empty() {
        "\nShard without slots".to_owned()
    } else {
        format!("\nShard with slots {} ({})", slot_list(slots), slots.len())
    };
    let report = primary.report.as_ref().ok();
    let term = report.and_then(|report| report.cluster.get("cluster_shard_term"));
    if let Some(term) = term {
        text.push_str(&format!(", term {term}"));
    }
    text.push_str(&format!("\n  primary  {}\n", node(facts, primary, None)));
    for replica in facts.replicas_of(&primary.line.id) {
        text.push_str(&format!("  replica  {}\n", node(facts, replica, Some(primary))));
    }
    text
}

/// The line of a node: its address, its ID, and its report.
fn node(facts: &ClusterFacts, node: &NodeFacts, primary: Option<&NodeFacts>) -> String {
    let id: String = node.line.id.chars().take(ID_DIGITS).collect();
    let mut parts = Vec::new();
    match &node.report {
        Err(failure) => {
            let what = failure.split(':').next().unwrap_or_default();
            parts.push(what.to_owned());
        }
        Ok(report) => {
            let (cluster, server) = (&report.cluster, &report.server);
            if let Some(primary) = primary {
                let is_up = server.is("master_link_status", "up");
                parts.push(if is_up { "online" } else { "link down" }.to_owned());
                if let Some(lag) = node.lag(primary) {
                    parts.push(format!("lag {lag} bytes"));
                }
            } else if let Some(offset) = server.get("master_repl_offset") {
                parts.push(format!("offset {offset}"));
            }
            match cluster.number("cluster_lease_left_ms") {
                _ if cluster.is("cluster_fenced", "1") => parts.push("fenced".to_owned()),
                Some(left) if left >= 0 => parts.push(format!("lease {left} ms")),
                _ => {}
            }
            if let Some(state) = cluster.get("cluster_coordinator_state").filter(|it| *it != "ok") {
                parts.push(format!("coordinator {state}"));
            }
            let (epoch, newest) = (
                cluster.number("cluster_document_epoch"),
                facts.max_value("cluster_document_epoch"),
            );
            if let (Some(epoch), Some(newest)) = (epoch, newest)
                && epoch < newest
            {
                parts.push(format!("topology epoch {epoch}"));
            }
        }
    }
    format!("{}  {id}  {}", node.place(), parts.join(", "))
}
