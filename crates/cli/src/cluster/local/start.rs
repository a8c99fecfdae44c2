//! `start-local`: starts a local cluster.

use super::readiness::{NodeReadiness, probe};
use super::{LocalCluster, LocalNode, process, shell_word};
use crate::cluster::{Done, Task, count, messages};
use crate::pause::pause;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::process::Child;
use std::time::{Duration, Instant};

/// The interval between checks of the nodes.
const LOOK: Duration = Duration::from_millis(20);
/// If no further node becomes ready within this time, the start has failed. Loading data may take any time.
const STALLED_MAX: Duration = Duration::from_secs(60);
/// The time within which nodes must exit after a failed start. A primary waits up to ten seconds for its replicas
/// (`shutdown-timeout`), and then writes its data.
const END_MAX: Duration = Duration::from_secs(30);

pub(in crate::cluster) fn run(task: &Task<'_>) -> Done {
    start(task).or_else(|text| messages::fail(&format!("[ERR] {text}\n")))
}

/// A node of the cluster, with its process if this program has started it.
struct Started {
    node: LocalNode,
    child: Option<Child>,
    readiness: NodeReadiness,
}

fn start(task: &Task<'_>) -> Result<(), String> {
    let options = &task.options.local;
    let server = process::find_server(options.server.as_deref())?;
    let cluster = LocalCluster::open_or_create(options)?;
    let nodes = cluster.nodes();
    let (running, stopped): (Vec<_>, Vec<_>) =
        nodes.into_iter().partition(|node| node.pid().is_some());
    let checked = stopped.iter().try_for_each(check_port);
    if let Err(text) = checked {
        // Remove the directory, because without nodes it would block the next attempt.
        if cluster.is_new {
            let _ = std::fs::remove_file(cluster.dir.join(super::LAYOUT_FILE));
            let _ = std::fs::remove_dir(&cluster.dir);
        }
        return Err(text);
    }
    let place = cluster.dir.display();
    let size = cluster.layout.describe();
    match (cluster.is_new, running.len()) {
        (true, _) => messages::step(&format!(">>> Creating a cluster of {size} in {place}\n")),
        (false, 0) => messages::step(&format!(">>> Starting the cluster of {place}: {size}\n")),
        (false, up) => {
            let (up, rest) = (count(up, "node"), count(stopped.len(), "node"));
            messages::step(&format!(">>> Starting {rest} of {place} ({up} already running)\n"));
        }
    }
    let readiness = NodeReadiness::Waiting("it has not started".to_owned());
    let mut all: Vec<Started> = running
        .into_iter()
        .map(|node| Started { node, child: None, readiness: readiness.clone() })
        .collect();
    let began = stopped.into_iter().try_for_each(|node| {
        node.prepare(cluster.layout)?;
        let child = Some(node.start(&server)?);
        all.push(Started { node, child, readiness: readiness.clone() });
        Ok(())
    });
    all.sort_by_key(|started| started.node.port);
    if let Err(text) = began.and_then(|()| wait_until_ready(&mut all, task)) {
        if cluster.is_new {
            end(&mut all);
            return Err(text);
        }
        // The nodes may have data, and an operator needs them to find and to fix the problem.
        let dir = shell_word(&cluster.dir.to_string_lossy());
        return Err(format!(
            "{text}\nThe other nodes keep running. Fix the problem and run start-local again, or stop them with: \
             brisk-cli --cluster stop-local --dir {dir}"
        ));
    }
    report(&cluster, &all);
    Ok(())
}

/// Checks that no process listens on the port. Brisk's sockets allow port sharing, so a second server could start and
/// would receive some of the connections.
fn check_port(node: &LocalNode) -> Result<(), String> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, node.port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(format!(
            "Port {} is in use by another process: use --port to specify another first port",
            node.port
        )),
        Err(error) => Err(super::failed(
            "listen on",
            std::path::Path::new(&format!("port {}", node.port)),
            &error,
        )),
    }
}

/// Waits until all nodes are serving.
fn wait_until_ready(all: &mut [Started], task: &Task<'_>) -> Result<(), String> {
    let mut progress = Instant::now();
    loop {
        for started in all.iter_mut() {
            check_process(started)?;
            if matches!(started.readiness, NodeReadiness::Ready(_) | NodeReadiness::Outside) {
                continue;
            }
            let found = probe(started.node.port, task.session);
            if let NodeReadiness::Refused(text) = &found {
                return Err(format!("Node {} replied with error: {text}", started.node.port));
            }
            if !matches!(found, NodeReadiness::Waiting(_)) {
                progress = Instant::now();
            }
            started.readiness = found;
        }
        let is_served = all.iter().any(|one| matches!(one.readiness, NodeReadiness::Ready(_)));
        let unready = all.iter().find_map(|started| match &started.readiness {
            NodeReadiness::Ready(_) => None,
            NodeReadiness::Outside if is_served => None,
            NodeReadiness::Outside => Some((&started.node, "it is in no shard")),
            NodeReadiness::Waiting(text) | NodeReadiness::Refused(text) => {
                Some((&started.node, text.as_str()))
            }
            NodeReadiness::Loading => Some((&started.node, "it is loading its data")),
        });
        let Some((node, text)) = unready else { return Ok(()) };
        if progress.elapsed() >= STALLED_MAX {
            return Err(format!(
                "The cluster is not ready after {} seconds: node {}: {text}; {}",
                STALLED_MAX.as_secs(),
                node.port,
                node.log_tail()
            ));
        }
        pause(LOOK);
    }
}

/// Checks that the process of a node is still running.
fn check_process(started: &mut Started) -> Result<(), String> {
    let node = &started.node;
    let how = match &mut started.child {
        Some(child) => child.try_wait().ok().flatten().map(|status| status.to_string()),
        None => node.pid().is_none().then(|| "its process has exited".to_owned()),
    };
    how.map_or(Ok(()), |how| {
        Err(format!("Node {} has exited ({how}); {}", node.port, node.log_tail()))
    })
}

/// Stops the nodes that this program has started.
fn end(all: &mut [Started]) {
    let mut ours: Vec<(&LocalNode, &mut Child)> = all
        .iter_mut()
        .filter_map(|one| one.child.as_mut().map(|child| (&one.node, child)))
        .collect();
    for (node, _) in &ours {
        node.terminate();
    }
    let give_up = Instant::now() + END_MAX;
    while !ours.is_empty() {
        ours.retain_mut(|(_, child)| !matches!(child.try_wait(), Ok(Some(_)) | Err(_)));
        if Instant::now() >= give_up {
            break;
        }
        pause(LOOK);
    }
    for (_, child) in ours {
        // Kill a process that did not exit in time.
        let _ = child.kill();
    }
}

/// Prints the nodes, and how to use and to stop the cluster.
fn report(cluster: &LocalCluster, all: &[Started]) {
    let size = cluster.layout.describe();
    let members = all.iter().filter(|one| matches!(one.readiness, NodeReadiness::Ready(_)));
    let (members, nodes) = (members.count(), all.len());
    messages::good(&if members == nodes {
        format!("[OK] The cluster of {size} is ready.\n")
    } else {
        format!("[OK] The cluster is ready with {members} of its {nodes} nodes.\n")
    });
    for started in all {
        let port = started.node.port;
        match &started.readiness {
            NodeReadiness::Ready(role) => messages::say(&format!("  127.0.0.1:{port}  {role}\n")),
            NodeReadiness::Outside => messages::say(&format!("  127.0.0.1:{port}  in no shard\n")),
            _ => {}
        }
    }
    warn_of_outside(all);
    let port = cluster.layout.port;
    let dir = shell_word(&cluster.dir.to_string_lossy());
    messages::say(&format!(
        "\nConnect:     redis-cli -c -p {port}\n\
         Status:      brisk-cli --cluster status 127.0.0.1:{port}\n\
         Stop:        brisk-cli --cluster stop-local --dir {dir}\n"
    ));
}

/// Says how to add the nodes that the topology does not contain.
fn warn_of_outside(all: &[Started]) {
    let is_member = |one: &&Started| matches!(one.readiness, NodeReadiness::Ready(_));
    let Some(entry) = all.iter().find(is_member).map(|one| one.node.port) else { return };
    for outside in all.iter().filter(|one| one.readiness == NodeReadiness::Outside) {
        let port = outside.node.port;
        messages::warning(&format!(
            "\n[WARNING] 127.0.0.1:{port} is not a member of the cluster. It keeps running. Add it as a replica with:\n"
        ));
        messages::say(&format!(
            "  brisk-cli --cluster add-node 127.0.0.1:{port} 127.0.0.1:{entry} --cluster-slave\n"
        ));
    }
}
