//! `create`: makes a cluster of empty nodes. Masters get slot ranges of equal size. Replicas are placed on different
//! hosts from their masters, if possible.

use super::node::Node;
use super::view::View;
use super::{Done, SLOTS, Task, messages, split_place};
use crate::pause::pause;
use crate::quote::leading_number;
use crate::session::AlreadyReported;
use std::time::Duration;

const MASTERS_MIN: usize = 3;
/// Interval between checks whether all nodes have met.
const LOOK: Duration = Duration::from_secs(1);
/// Number of checks before giving up.
pub(super) const LOOKS_MAX: usize = 600;

pub(super) fn run(task: &Task<'_>) -> Done {
    let mut nodes = Vec::new();
    for argument in &task.arguments {
        let Some((host, port)) = split_place(argument) else {
            return messages::fail(&format!("Invalid address format: {argument}\n"));
        };
        let mut node = Node::connect(&host, leading_number(port.as_bytes()), task.session)?;
        require_empty(&mut node)?;
        nodes.push(node);
    }
    let per_master = task.options.replicas;
    let masters = nodes.len() / (per_master + 1);
    if masters < MASTERS_MIN {
        messages::error(&format!(
            "*** ERROR: Invalid configuration for cluster creation.\n\
             *** Redis Cluster requires at least 3 master nodes.\n\
             *** This is not possible with {} nodes and {per_master} replicas per node.",
            nodes.len()
        ));
        let least = MASTERS_MIN * (per_master + 1);
        return messages::fail(&format!("\n*** At least {least} nodes are required.\n"));
    }
    messages::step(&format!(">>> Performing hash slots allocation on {} nodes...\n", nodes.len()));
    let order = interleaved(&nodes);
    allot_slots(&mut nodes, &order[..masters]);
    assign_replicas(&mut nodes, &order, masters, per_master);
    if per_master > 0 {
        optimize(&mut nodes);
    }
    for node in &nodes {
        messages::say(&planned(node));
    }
    messages::confirm("Can I set the above configuration?", task.options.yes)?;
    join(&mut nodes)?;
    let first = &nodes[0].is;
    let (host, port) = (first.host.clone(), first.port);
    let mut view = View { nodes, unreachable_masters: 0 };
    wait_until_joined(&mut view)?;
    for node in &mut view.nodes {
        if let Some(master) = node.is.replicates.clone() {
            node.demand(&["CLUSTER", "REPLICATE", &master])?;
        }
    }
    let mut view = View::load(&host, port, task.session)?;
    if view.check(task, false).is_well() { Ok(()) } else { Err(AlreadyReported) }
}

/// Rejects a node that may not be added to a cluster.
pub(super) fn require_empty(node: &mut Node) -> Done {
    let others = node.load()?;
    if others.is_empty() && node.keys()? == 0 {
        return Ok(());
    }
    let place = node.place();
    messages::fail(&format!(
        "[ERR] Node {place} is not empty. Either the node already knows other nodes (check with \
         CLUSTER NODES) or contains some key in database 0.\n"
    ))
}

/// The nodes, interleaved by host.
fn interleaved(nodes: &[Node]) -> Vec<usize> {
    let mut hosts: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        match hosts.iter_mut().find(|(host, _)| *host == node.is.host) {
            Some((_, list)) => list.push(at),
            None => hosts.push((&node.is.host, vec![at])),
        }
    }
    let most = hosts.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    let turns = (0..most)
        .flat_map(|turn| hosts.iter().filter_map(move |(_, list)| list.get(turn).copied()));
    turns.collect()
}

fn allot_slots(nodes: &mut [Node], masters: &[usize]) {
    let each = f64::from(SLOTS) / masters.len() as f64;
    let (mut first, mut cursor) = (0u16, 0.0f64);
    for (nth, &master) in masters.iter().enumerate() {
        let last = (cursor + each - 1.0).round() as u16;
        let is_last = nth == masters.len() - 1;
        let last = if is_last { SLOTS - 1 } else { last.clamp(first, SLOTS - 1) };
        messages::say(&format!("Master[{nth}] -> Slots {first} - {last}\n"));
        nodes[master].is.slots = (first..=last).collect();
        nodes[master].is.flags = vec!["master".to_owned()];
        first = last.saturating_add(1);
        cursor += each;
    }
}

/// Assigns replicas to each master, first from other hosts, then from the remaining nodes.
fn assign_replicas(nodes: &mut [Node], order: &[usize], masters: usize, per_master: usize) {
    let (masters, rest) = order.split_at(masters);
    let mut rest = rest.to_vec();
    // Otherwise the first master would get all replicas of the first host.
    if !rest.is_empty() {
        rest.rotate_left(1);
    }
    let assign = |nodes: &mut [Node], master: usize, rest: &mut Vec<usize>| {
        let elsewhere = rest.iter().position(|&at| nodes[at].is.host != nodes[master].is.host);
        if rest.is_empty() {
            return;
        }
        let replica = rest.remove(elsewhere.unwrap_or(0));
        let (from, to) = (nodes[replica].place(), nodes[master].place());
        messages::say(&format!("Adding replica {from} to {to}\n"));
        nodes[replica].is.replicates = Some(nodes[master].is.id.clone());
        nodes[replica].is.flags = vec!["slave".to_owned()];
        nodes[replica].is.slots.clear();
    };
    if per_master > 0 {
        for &master in masters {
            for _ in 0..per_master {
                assign(nodes, master, &mut rest);
            }
        }
        if !rest.is_empty() {
            messages::say("Adding extra replicas...\n");
        }
        for &master in masters.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            assign(nodes, master, &mut rest);
        }
    }
    // Without replicas, the remaining nodes become masters too, without slots.
    for at in rest {
        nodes[at].is.flags = vec!["master".to_owned()];
        nodes[at].is.slots.clear();
    }
}

/// The penalty of an assignment: first the number of replicas on the same host as their master, then the number of
/// replicas of one master that share a host.
fn score(nodes: &[Node]) -> (usize, usize) {
    let master_of = |node: &Node| {
        let id = node.is.replicates.clone()?;
        nodes.iter().find(|it| it.is.id == id)
    };
    let (mut with_master, mut with_replica) = (0, 0);
    for (at, node) in nodes.iter().enumerate() {
        let Some(master) = master_of(node) else { continue };
        with_master += usize::from(master.is.host == node.is.host);
        let twins = nodes[..at]
            .iter()
            .filter(|it| it.is.replicates == node.is.replicates && it.is.host == node.is.host);
        with_replica += twins.count();
    }
    (with_master, with_replica)
}

/// Swaps masters between replicas while this improves the score.
fn optimize(nodes: &mut [Node]) {
    messages::step(">>> Trying to optimize slaves allocation for anti-affinity\n");
    let mut best = score(nodes);
    let mut improved = true;
    while improved && best != (0, 0) {
        improved = false;
        for one in 0..nodes.len() {
            for other in 0..one {
                let both =
                    nodes[one].is.replicates.is_some() && nodes[other].is.replicates.is_some();
                if !both || nodes[one].is.replicates == nodes[other].is.replicates {
                    continue;
                }
                exchange(nodes, one, other);
                let now = score(nodes);
                if now < best {
                    (best, improved) = (now, true);
                } else {
                    exchange(nodes, one, other);
                }
            }
        }
    }
    match best {
        (0, 0) => messages::good("[OK] Perfect anti-affinity obtained!\n"),
        (0, _) => {
            messages::warning("[WARNING] Some slaves of the same master are in the same host\n")
        }
        _ => messages::warning("[WARNING] Some slaves are in the same host as their master\n"),
    }
}

fn exchange(nodes: &mut [Node], one: usize, other: usize) {
    let before = nodes[one].is.replicates.take();
    nodes[one].is.replicates = nodes[other].is.replicates.take();
    nodes[other].is.replicates = before;
}

/// The planned role of a node.
fn planned(node: &Node) -> String {
    match &node.is.replicates {
        Some(master) => {
            format!("S: {} {}\n   replicates {master}\n", node.is.id, node.place())
        }
        None => node.describe(""),
    }
}

/// Assigns the slots to the masters, gives each node its own epoch, and lets the nodes meet.
fn join(nodes: &mut [Node]) -> Done {
    for node in nodes.iter_mut() {
        if node.is.slots.is_empty() {
            continue;
        }
        let slots = node.is.slots.iter().map(u16::to_string);
        let words: Vec<String> =
            ["CLUSTER", "ADDSLOTS"].into_iter().map(str::to_owned).chain(slots).collect();
        node.demand(&words)?;
    }
    messages::step(">>> Nodes configuration updated\n");
    messages::step(">>> Assign a different config epoch to each node\n");
    for (nth, node) in nodes.iter_mut().enumerate() {
        let epoch = (nth + 1).to_string();
        // A node that already has an epoch keeps it.
        let _ = node.request(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
    }
    messages::step(">>> Sending CLUSTER MEET messages to join the cluster\n");
    let first = nodes[0].is.clone();
    for node in nodes.iter_mut().skip(1) {
        node.meet(&first)?;
    }
    Ok(())
}

/// Waits until every node knows all slots of all others.
pub(super) fn wait_until_joined(view: &mut View) -> Done {
    messages::say("Waiting for the cluster to join\n");
    // At first, the nodes do not know one another.
    pause(LOOK);
    for _ in 0..LOOKS_MAX {
        let wanted: Vec<(String, Option<String>)> = view
            .nodes
            .iter()
            .map(|node| (node.is.id.clone(), node.is.replicates.clone()))
            .collect();
        let agrees = view.agree() && knows_all(view);
        // Loading has overwritten the planned roles, so restore them.
        for (node, (_, replicates)) in view.nodes.iter_mut().zip(wanted) {
            node.is.replicates = replicates;
        }
        if agrees {
            messages::say("\n");
            return Ok(());
        }
        messages::say(".");
        pause(LOOK);
    }
    messages::fail("\n[ERR] The nodes still do not agree; giving up.\n")
}

fn knows_all(view: &mut View) -> bool {
    let count = view.nodes.len();
    view.nodes.iter_mut().all(|node| node.load().is_ok_and(|others| others.len() + 1 >= count))
}
