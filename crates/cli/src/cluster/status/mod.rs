//! `status`: the shards of a cluster with their nodes, and its problems.
//!
//! | file | about |
//! |---|---|
//! | here | the command and its output |
//! | `facts.rs` | the reports of the nodes, and the problems that follow from them |

mod facts;

use self::facts::{ClusterFacts, NodeFacts};
use super::node::ranges;
use super::{Done, SLOTS, Task, count, tell};
use crate::session::Told;

/// Number of digits of a node ID that are shown.
const ID_DIGITS: usize = 8;

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let facts = ClusterFacts::load(&host, port, task.session)?;
    let problems = facts.problems();
    tell::say(&summary(&facts));
    for primary in facts.primaries() {
        tell::say(&shard(&facts, primary));
    }
    if problems.is_empty() {
        tell::good("\n[OK] The cluster has no problem.\n");
        return Ok(());
    }
    tell::error(&format!("\n[ERR] {}:\n", count(problems.len(), "problem")));
    for problem in problems {
        tell::say(&format!("  {problem}\n"));
    }
    Err(Told)
}

/// Two or three lines about the cluster as a whole.
fn summary(facts: &ClusterFacts) -> String {
    let (reached, nodes) = (facts.reached(), facts.nodes.len());
    let mut text = format!(
        "Slots:       {} of {SLOTS} assigned to {}\nNodes:       {reached} of {nodes} reachable\n",
        facts.assigned_slots(),
        count(facts.primaries().filter(|node| !node.line.slots.is_empty()).count(), "shard"),
    );
    if let Some(coordinator) = facts.values("cluster_coordinator").into_iter().next() {
        text.push_str(&format!("Coordinator: {coordinator}"));
        for state in facts.values("cluster_coordinator_state") {
            text.push_str(&format!(", {state}"));
        }
        if let Some(epoch) = facts.newest("cluster_document_epoch") {
            text.push_str(&format!(", topology epoch {epoch}"));
        }
        text.push('\n');
    }
    if let Some(migrations) = facts.newest("cluster_migrations").filter(|number| *number > 0) {
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
        let list = ranges(slots).replace(['[', ']'], "");
        format!("\nShard of slots {list} ({})", slots.len())
    };
    let report = primary.report.as_ref();
    let term = report.and_then(|report| report.cluster.get("cluster_shard_term"));
    if let Some(term) = term {
        text.push_str(&format!(", term {term}"));
    }
    let runs = report.and_then(|report| report.cluster.get("cluster_isr"));
    if let Some(runs) = runs.filter(|runs| !runs.is_empty()) {
        text.push_str(&format!(", in sync: {}", in_sync(facts, runs)));
    }
    text.push_str(&format!("\n  primary  {}\n", node(facts, primary, None)));
    for replica in facts.replicas_of(&primary.line.id) {
        text.push_str(&format!("  replica  {}\n", node(facts, replica, Some(primary))));
    }
    text
}

/// The addresses of the runs `<id>@<incarnation>,…`.
fn in_sync(facts: &ClusterFacts, runs: &str) -> String {
    let place = |run: &str| {
        let id = run.split('@').next().unwrap_or(run);
        facts.find(id).map_or_else(|| run.to_owned(), NodeFacts::place)
    };
    runs.split(',').map(place).collect::<Vec<_>>().join(" ")
}

/// The line of a node: its address, its ID, and its report.
fn node(facts: &ClusterFacts, node: &NodeFacts, primary: Option<&NodeFacts>) -> String {
    let id: String = node.line.id.chars().take(ID_DIGITS).collect();
    let mut parts = Vec::new();
    match &node.report {
        None => parts.push("unreachable".to_owned()),
        Some(report) => {
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
            let (epoch, newest) =
                (cluster.number("cluster_document_epoch"), facts.newest("cluster_document_epoch"));
            if let (Some(epoch), Some(newest)) = (epoch, newest)
                && epoch < newest
            {
                parts.push(format!("topology epoch {epoch}"));
            }
        }
    }
    format!("{}  {id}  {}", node.place(), parts.join(", "))
}
