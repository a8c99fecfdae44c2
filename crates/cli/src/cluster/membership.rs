//! `add-node` and `del-node`.

use super::create::{LOOKS_MAX, require_empty};
use super::node::Node;
use super::view::View;
use super::{Done, Task, messages, split_place};
use crate::pause::pause;
use crate::quote::leading_number;
use crate::session::AlreadyReported;
use std::time::Duration;

/// Interval between checks whether a node is known.
const LOOK: Duration = Duration::from_secs(1);

/// The error of a node for an unknown node.
const UNKNOWN: &str = "Unknown node";

pub(super) fn add(task: &Task<'_>) -> Done {
    let place = |text: &str| -> Result<(String, i64), AlreadyReported> {
        match split_place(text) {
            Some((host, port)) => Ok((host, leading_number(port.as_bytes()))),
            None => messages::fail(&format!("Invalid address format: {text}\n")),
        }
    };
    let (new_host, new_port) = place(&task.arguments[0])?;
    let (host, port) = place(&task.arguments[1])?;
    messages::step(&format!(">>> Adding node {new_host}:{new_port} to cluster {host}:{port}\n"));
    let mut view = View::load(&host, port, task.session)?;
    if !view.check(task, false).is_well() {
        return Err(AlreadyReported);
    }
    let master = if task.options.as_replica { Some(master_for(&view, task)?) } else { None };
    let mut node = Node::connect(&new_host, new_port, task.session).inspect_err(|_| {
        messages::error(&format!("[ERR] Sorry, can't connect to node {new_host}:{new_port}\n"));
    })?;
    require_empty(&mut node)?;
    if master.is_none() {
        share_functions(&mut view, &mut node)?;
    }
    let place = node.place();
    messages::step(&format!(
        ">>> Send CLUSTER MEET to node {place} to make it join the cluster.\n"
    ));
    node.meet(&view.nodes[0].is)?;
    if let Some(master) = master {
        let id = view.nodes[master].is.id.clone();
        messages::say("Waiting for the cluster to join\n");
        wait_until_known(&mut node, &id)?;
        let place = view.nodes[master].place();
        messages::step(&format!(">>> Configure node as replica of {place}.\n"));
        node.demand(&["CLUSTER", "REPLICATE", &id])?;
    }
    messages::good("[OK] New node added correctly.\n");
    Ok(())
}

fn master_for(view: &View, task: &Task<'_>) -> Result<usize, AlreadyReported> {
    if let Some(id) = &task.options.master_id {
        let found = view.find(id).filter(|&at| view.nodes[at].is_master());
        return match found {
            Some(at) => Ok(at),
            None => messages::fail(&format!("[ERR] No such master ID {id}\n")),
        };
    }
    let Some(at) = view.least_replicated(None) else {
        return messages::fail("[ERR] The cluster has no master\n");
    };
    messages::say(&format!("Automatically selected master {}\n", view.nodes[at].place()));
    Ok(at)
}

fn wait_until_known(node: &mut Node, id: &str) -> Done {
    for _ in 0..LOOKS_MAX {
        pause(LOOK);
        if node.load()?.iter().any(|line| line.id == id) {
            messages::say("\n");
            return Ok(());
        }
        messages::say(".");
    }
    messages::fail("\n[ERR] The node did not learn about its master.\n")
}

/// Copies the cluster's functions to a new master.
fn share_functions(view: &mut View, node: &mut Node) -> Done {
    messages::step(">>> Getting functions from cluster\n");
    let dump = match view.nodes[0].request(&["FUNCTION", "DUMP"]) {
        Ok(dump) => dump.as_bytes().unwrap_or_default().to_vec(),
        Err(text) => {
            messages::step(&format!(
                ">>> Failed retrieving Functions from the cluster, skip this step as Redis version \
                 do not support function command (error = '{text}')\n"
            ));
            return Ok(());
        }
    };
    let place = node.place();
    messages::step(&format!(
        ">>> Send FUNCTION LIST to {place} to verify there is no functions in it\n"
    ));
    match node.request(&["FUNCTION", "LIST"]) {
        Ok(list) if list.as_slice().is_some_and(|list| !list.is_empty()) => {
            return messages::fail(
                ">>> New node already contains functions and can not be added to the cluster. Use \
                 FUNCTION FLUSH and try again.\n",
            );
        }
        Ok(_) => {}
        Err(text) => {
            return messages::fail(&format!(">>> Failed on CLUSTER LIST (error = '{text}')\n"));
        }
    }
    messages::step(&format!(">>> Send FUNCTION RESTORE to {place}\n"));
    match node.request(&[&b"FUNCTION"[..], b"RESTORE", &dump]) {
        Ok(_) => Ok(()),
        Err(text) => messages::fail(&format!(
            ">>> Failed loading functions to the new node (error = '{text}')\n"
        )),
    }
}

pub(super) fn delete(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let id = task.arguments[task.arguments.len() - 1].to_ascii_lowercase();
    messages::step(&format!(">>> Removing node {id} from cluster {host}:{port}\n"));
    let mut view = View::load(&host, port, task.session)?;
    let Some(at) = view.find(&id) else {
        return messages::fail(&format!("[ERR] No such node ID {id}\n"));
    };
    let place = view.nodes[at].place();
    if !view.nodes[at].is.slots.is_empty() {
        return messages::fail(&format!(
            "[ERR] Node {place} is not empty! Reshard data away and try again.\n"
        ));
    }
    messages::step(">>> Sending CLUSTER FORGET messages to the cluster...\n");
    for other in 0..view.nodes.len() {
        if other == at {
            continue;
        }
        if view.nodes[other].is.replicates.as_deref() == Some(&id) {
            adopt(&mut view, other, &id)?;
        }
        match view.nodes[other].request(&["CLUSTER", "FORGET", &id]) {
            Ok(_) => {}
            // Other nodes may not have learned of it yet.
            Err(text) if text.contains(UNKNOWN) => {}
            Err(text) => {
                let place = view.nodes[other].place();
                return messages::fail(&format!("Node {place} replied with error:\n{text}\n"));
            }
        }
    }
    messages::step(">>> Sending CLUSTER RESET SOFT to the deleted node.\n");
    view.nodes[at].demand(&["CLUSTER", "RESET", "SOFT"])?;
    Ok(())
}

/// Assigns another master to a replica that loses its master.
fn adopt(view: &mut View, replica: usize, lost: &str) -> Done {
    let Some(master) = view.least_replicated(Some(lost)) else { return Ok(()) };
    let (from, to) = (view.nodes[replica].place(), view.nodes[master].place());
    let id = view.nodes[master].is.id.clone();
    messages::step(&format!(">>> {from} as replica of {to}\n"));
    view.nodes[replica].demand(&["CLUSTER", "REPLICATE", &id])?;
    view.nodes[master].replicas += 1;
    Ok(())
}
