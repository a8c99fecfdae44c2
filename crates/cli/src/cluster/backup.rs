//! `backup`: saves a snapshot of each master, and a file that lists the nodes and their slots.

use super::node::{Node, spans};
use super::view::View;
use super::{Done, Task, messages};
use crate::link::plain;
use crate::modes::rdb;
use crate::session::AlreadyReported;
use std::path::Path;

pub(super) fn run(task: &Task<'_>) -> Done {
    let (host, port) = task.entry()?;
    let directory = task.arguments[task.arguments.len() - 1].clone();
    let mut view = View::load(&host, port, task.session)?;
    let findings = view.check(task, false);
    let described: Vec<String> = view.nodes.iter().map(describe).collect();
    let layout = format!("[\n{}\n]", described.join(",\n"));
    for node in view.nodes.iter_mut().filter(|node| node.is_master()) {
        save(node, &directory)?;
    }
    let path = Path::new(&directory).join("nodes.json");
    messages::step(&format!("Saving cluster configuration to: {}\n", path.display()));
    if let Err(error) = std::fs::write(&path, layout) {
        return messages::fail(&format!(
            "Could not save nodes to: {}: {}\n",
            path.display(),
            plain(&error)
        ));
    }
    if !findings.is_well() {
        messages::warning(
            "*** Cluster seems to have some problems, please be aware of it if you're going to \
             restore this backup.\n",
        );
    }
    messages::good(&format!("[OK] Backup created into: {directory}\n"));
    Ok(())
}

fn save(node: &mut Node, directory: &str) -> Done {
    messages::step(&format!(">>> Node {} -> Saving RDB...\n", node.place()));
    let name = format!("redis-node-{}-{}-{}.rdb", node.is.host, node.is.port, node.is.id);
    let path = Path::new(directory).join(name).display().to_string();
    let mut link = node.link().ok_or(AlreadyReported)?;
    match rdb::fetch(&mut link, path.as_bytes()) {
        Ok(()) => Ok(()),
        Err(text) => messages::fail(&format!("{text}\n[ERR] Failed to back cluster!\n")),
    }
}

/// A node as JSON. IDs and flags are plain words. A host may contain any characters, so it is escaped.
fn describe(node: &Node) -> String {
    let is = &node.is;
    let slots: Vec<String> =
        spans(&is.slots).iter().map(|(first, last)| format!("[{first},{last}]")).collect();
    let replicates =
        is.replicates.as_ref().map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    let host = is.host.replace('\\', "\\\\").replace('"', "\\\"");
    let open = |slots: &[(u16, String)]| -> String {
        let each: Vec<String> =
            slots.iter().map(|(slot, id)| format!("\"{slot}\": \"{id}\"")).collect();
        each.join(",")
    };
    let mut text = format!(
        "  {{\n    \"name\": \"{}\",\n    \"host\": \"{host}\",\n    \"port\": {},\n    \
         \"replicate\": {replicates},\n    \"slots\": [{}],\n    \"slots_count\": {},\n    \
         \"flags\": \"{}\",\n    \"current_epoch\": {}",
        is.id,
        is.port,
        slots.join(","),
        is.slots.len(),
        is.flags.join(","),
        is.epoch
    );
    for (name, slots) in [("migrating", &is.migrating), ("importing", &is.importing)] {
        if !slots.is_empty() {
            text.push_str(&format!(",\n    \"{name}\": {{{}}}", open(slots)));
        }
    }
    text + "\n  }"
}
