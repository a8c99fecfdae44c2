//! CLUSTER NODES, CLUSTER REPLICAS and `nodes.conf`, which share the format of a line.

use super::{ClusterView, NodeHealth, ViewError};
use crate::document::{Shard, Topology};
use crate::id::{NodeId, Term};
use crate::map::client_port;
use std::fmt::Write as _;

/// Maximum bytes of `nodes.conf` that are read. In a cluster of 1,000 nodes, a line has about 100 bytes plus its
/// ranges.
pub const NODES_FILE_BYTES_MAX: usize = 16 << 20;

/// Why `nodes.conf` was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodesFileError {
    #[error("the file is larger than {NODES_FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("no line has the flag 'myself'")]
    WithoutMyself,
    #[error("line {0} begins with no node id")]
    NoId(usize),
}

impl ClusterView<'_> {
    /// CLUSTER NODES: one line per node. O(nodes + ranges).
    #[must_use]
    pub fn nodes(&self) -> String {
        let alone = self.alone();
        let topology = self.visible().unwrap_or(&alone);
        let mut text = String::new();
        for shard in &topology.shards {
            for node in shard.nodes() {
                self.write_line(&mut text, topology, shard, node);
                text.push('\n');
            }
        }
        text
    }

    /// CLUSTER REPLICAS: the lines of a primary's replicas. O(nodes).
    pub fn replicas(&self, primary: &str) -> Result<Vec<String>, ViewError> {
        let unknown = || ViewError::UnknownNode(primary.to_owned());
        let id: NodeId = primary.parse().map_err(|_| unknown())?;
        let alone = self.alone();
        let topology = self.visible().unwrap_or(&alone);
        let shard = topology.shard_of(id).ok_or_else(unknown)?;
        if shard.primary != id {
            return Err(ViewError::NotPrimary);
        }
        let line = |node: &NodeId| {
            let mut text = String::new();
            self.write_line(&mut text, topology, shard, *node);
            text
        };
        Ok(shard.replicas.iter().map(line).collect())
    }

    /// The content of `nodes.conf`, in Redis's format. O(nodes + ranges).
    #[must_use]
    pub fn nodes_file(&self) -> String {
        let epoch = self.visible().map_or(self.last_epochs.document, |topology| topology.epoch);
        format!("{}vars currentEpoch {epoch} lastVoteEpoch 0\n", self.nodes())
    }

    /// `id ip:port@bus[,host] flags primary ping pong epoch link [slots…]`.
    fn write_line(&self, text: &mut String, topology: &Topology, shard: &Shard, id: NodeId) {
        let member = self.member(topology, id).cloned().unwrap_or_default();
        let (node_state, health, is_primary) =
            (self.node_state(id), self.health(id), shard.primary == id);
        let (ip, port, bus) = (&member.ip, client_port(&member, self.is_tls), member.bus_port());
        let host = if member.host.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{id} {ip}:{port}@{bus}{host}{} ", member.host);
        let flags = [
            (id == self.own.id, "myself"),
            (is_primary, "master"),
            (!is_primary, "slave"),
            (health == NodeHealth::Suspected, "fail?"),
            (health == NodeHealth::Failed, "fail"),
            (node_state.no_failover, "nofailover"),
        ];
        let flags: Vec<&str> =
            flags.iter().filter(|(holds, _)| *holds).map(|flag| flag.1).collect();
        let primary = if is_primary { "-".to_owned() } else { shard.primary.to_string() };
        let Term(epoch) = shard.term;
        let link = if health == NodeHealth::Alive { "connected" } else { "disconnected" };
        let (flags, pong) = (flags.join(","), node_state.last_report_ms);
        let _ = write!(text, "{flags} {primary} 0 {pong} {epoch} {link}");
        if is_primary && !shard.slots.is_empty() {
            let _ = write!(text, " {}", shard.slots);
        }
    }
}

/// Reads the node's own id from `nodes.conf`; everything else comes from the document. O(bytes).
pub fn own_id(nodes_file: &[u8]) -> Result<NodeId, NodesFileError> {
    if nodes_file.len() > NODES_FILE_BYTES_MAX {
        return Err(NodesFileError::TooLarge);
    }
    for (at, line) in nodes_file.split(|byte| *byte == b'\n').enumerate() {
        let mut fields = line.split(|byte| *byte == b' ');
        let (id, flags) = (fields.next(), fields.nth(1));
        let is_own = |flags: &[u8]| flags.split(|byte| *byte == b',').any(|f| f == b"myself");
        if flags.is_some_and(is_own) {
            let text = id.and_then(|id| std::str::from_utf8(id).ok());
            let id = text.and_then(|text| text.parse().ok());
            return id.ok_or(NodesFileError::NoId(at + 1));
        }
    }
    Err(NodesFileError::WithoutMyself)
}
