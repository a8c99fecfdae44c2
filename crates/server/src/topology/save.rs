//! The thread `brisk-files`, which writes the files of this node after a document has been put in force.
//!
//! An installation does not wait for the disk, so that neither a switch nor a lease renewal has to. The files need not
//! be durable before this node serves based on the document:
//!
//! - The coordinator has the document. When a node starts, it reads the document from the coordinator before it serves,
//!   and serves only based on that document. The node's own copy only names the primary that it follows until then.
//! - `nodes.conf` contains the id of the node. The id is written before the node registers with it.
//! - A node rejects a document whose epoch or term is lower than that of its copy. A power failure before the copy is
//!   written matters only if the coordinator loses the same change at the same time.

use super::watcher::TopologyWatcher;
use brisk_cluster::map::EndpointKind;
use brisk_cluster::view::ClusterView;
use brisk_structures::poison::EvenPoisoned as _;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait. Each installation ends it.
const IDLE_WAIT: Duration = Duration::from_secs(60);

/// Writes the files after each installation, until the threads are stopped.
pub(super) fn run(watcher: &Arc<TopologyWatcher>) {
    loop {
        if watcher.files_signal.wait(IDLE_WAIT) {
            watcher.write_files();
        } else if watcher.files_signal.is_stopped() {
            return;
        }
    }
}

impl TopologyWatcher {
    /// Writes both files with the document in force.
    fn write_files(&self) {
        self.write_nodes_file();
        // Read the document after taking the lock, so that the last writer writes the newest document.
        let files = self.files.lock().even_poisoned();
        let in_force = self.state.in_force();
        let Some(topology) = in_force.topology.as_deref().filter(|_| !self.is_static()) else {
            return;
        };
        let written = match topology.to_json() {
            Ok(json) => files.write_topology(&json).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            // The document stays in force, because a full disk must not prevent a node from following the topology.
            self.shared.log.warning(format_args!("Cluster: cannot write topology.json: {error}"));
        }
    }

    /// Writes `nodes.conf`.
    pub(super) fn write_nodes_file(&self) {
        let files = self.files.lock().even_poisoned();
        let (in_force, node_states) = (self.state.in_force(), self.state.node_states());
        let view = ClusterView {
            topology: in_force.topology.as_deref(),
            own: &in_force.own,
            node_states: &node_states,
            failed: &in_force.failed,
            last_epochs: in_force.last_epochs,
            endpoint: EndpointKind::Ip,
            is_tls: false,
        };
        if let Err(error) = files.write_nodes(&view.nodes_file()) {
            self.shared.log.warning(format_args!("Cluster: cannot write nodes.conf: {error}"));
        }
    }
}
