//! `stop-local`: stops a local cluster.

use super::{LocalCluster, LocalNode, directory, shell_word};
use crate::cluster::node::Node;
use crate::cluster::{Done, Task, count, messages};
use crate::link::Link;
use crate::pause::pause;
use rustix::process::Pid;
use std::time::{Duration, Instant};

/// The interval between checks of a process.
const LOOK: Duration = Duration::from_millis(20);
/// A node that does not reply within this time gets a signal instead of a command.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long nodes may take to shut down. A primary waits up to ten seconds to hand over (`shutdown-timeout`), and then
/// writes its data.
const END_MAX: Duration = Duration::from_secs(120);

/// The error of a node that cannot shut down at the moment, for example because it is writing the first append-only
/// file after a full copy.
const NOT_NOW: &str = "ERR Errors trying to SHUTDOWN";
/// The interval after which SHUTDOWN is sent again to a node that replied with this error.
const RETRY: Duration = Duration::from_millis(200);

pub(in crate::cluster) fn run(task: &Task<'_>) -> Done {
    stop(task).or_else(|text| messages::fail(&format!("[ERR] {text}\n")))
}

fn stop(task: &Task<'_>) -> Result<(), String> {
    let dir = directory(&task.options.local);
    if !dir.exists() {
        return Err(format!("There is no directory {}", dir.display()));
    }
    let cluster = LocalCluster::open(dir)?;
    let nodes = cluster.nodes();
    let running = nodes.into_iter().filter_map(|node| node.pid().map(|pid| (node, pid)));
    let running: Vec<(LocalNode, Pid)> = running.collect();
    if running.is_empty() {
        messages::good(&format!("[OK] No node of {} is running.\n", cluster.dir.display()));
        return Ok(());
    }
    // Stop the replicas first. A primary without running replicas does not hand over, so the roles do not change.
    let number = running.len();
    let (replicas, others): (Vec<_>, Vec<_>) = running
        .into_iter()
        .map(|(node, pid)| connect(node, pid, task))
        .partition(|node| node.is_replica);
    let mut failures = Vec::new();
    for group in [replicas, others] {
        failures.extend(end(group));
    }
    if !failures.is_empty() {
        return Err(failures.join("\n[ERR] "));
    }
    let word = shell_word(&cluster.dir.to_string_lossy());
    messages::good(&format!("[OK] Stopped {}.\n", count(number, "node")));
    messages::say(&format!(
        "\nStart again:  brisk-cli --cluster start-local --dir {word}\n\
         Remove it:    rm -r {word}\n"
    ));
    Ok(())
}

/// A node that is being stopped.
struct Ending {
    node: LocalNode,
    pid: Pid,
    /// `None` if it accepts no commands.
    link: Option<Link>,
    is_replica: bool,
    /// If the node has temporarily rejected SHUTDOWN, the time at which it gets the command again.
    retry: Option<Instant>,
}

fn connect(node: LocalNode, pid: Pid, task: &Task<'_>) -> Ending {
    let reached = Node::reach("127.0.0.1", i64::from(node.port), task.session, REPLY_TIMEOUT);
    let Ok(mut reached) = reached else {
        return Ending { node, pid, link: None, is_replica: false, retry: None };
    };
    let info = reached.fields(&["INFO", "replication"]);
    let is_replica = info.is_ok_and(|info| info.is("role", "slave"));
    Ending { node, pid, link: reached.link(), is_replica, retry: None }
}

/// Stops the nodes of a group together. Returns the failures.
fn end(mut group: Vec<Ending>) -> Vec<String> {
    group.iter_mut().for_each(Ending::request);
    let mut failures = Vec::new();
    let give_up = Instant::now() + END_MAX;
    while !group.is_empty() {
        group.retain_mut(|ending| match ending.look() {
            Ok(is_running) => is_running,
            Err(text) => {
                failures.push(format!("Node {} replied with error: {text}", ending.node.port));
                false
            }
        });
        if Instant::now() >= give_up {
            let late = |ending: &Ending| {
                let (port, seconds) = (ending.node.port, END_MAX.as_secs());
                let log = ending.node.log_path();
                format!(
                    "Node {port} is still running after {seconds} seconds; see {}",
                    log.display()
                )
            };
            failures.extend(group.iter().map(late));
            break;
        }
        pause(LOOK);
    }
    failures
}

impl Ending {
    /// Requests the node's shutdown.
    fn request(&mut self) {
        self.retry = None;
        let sent = self.link.as_mut().map(|link| link.send(&["SHUTDOWN"]));
        if !matches!(sent, Some(Ok(()))) {
            self.node.terminate();
        }
    }

    /// Reports whether the node is still running. A node that could not shut down gets the command again.
    ///
    /// # Errors
    /// The error with which the node rejects SHUTDOWN.
    fn look(&mut self) -> Result<bool, String> {
        // A node that is shutting down sends no reply.
        match self.link.as_mut().and_then(refusal) {
            Some(text) if text.starts_with(NOT_NOW) => self.retry = Some(Instant::now() + RETRY),
            Some(text) => return Err(text),
            None => {}
        }
        if self.retry.is_some_and(|at| Instant::now() >= at) {
            self.request();
        }
        Ok(self.node.is_running(self.pid))
    }
}

fn refusal(link: &mut Link) -> Option<String> {
    let reply = link.reply_within(Duration::ZERO).ok()??;
    reply.as_error().map(|text| String::from_utf8_lossy(text).into_owned())
}
