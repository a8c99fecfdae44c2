//! The nodes with a lease, as the watch reports them.

use super::identity::{node_id, registration_of};
use brisk_cluster::document::Registration;
use brisk_cluster::failover::SeenRegistration;
use brisk_cluster::id::NodeId;
use brisk_coordinate::values::{self, RegisteredNode, Revision};
use std::collections::BTreeMap;

/// Registrations, and the revisions at which they were made. They may be outdated, because the watch can be later than
/// the document in force.
#[derive(Debug, Default)]
pub(super) struct RegisteredNodes {
    pub(super) nodes: BTreeMap<NodeId, Registration>,
    revisions: BTreeMap<NodeId, Revision>,
}

impl RegisteredNodes {
    /// Replaces all registrations.
    pub(super) fn replace(&mut self, nodes: &[RegisteredNode]) {
        *self = RegisteredNodes::default();
        nodes.iter().for_each(|node| self.note(node));
    }

    /// Notes that a node has registered.
    pub(super) fn note(&mut self, node: &RegisteredNode) {
        if let Some(registration) = registration_of(node) {
            self.revisions.insert(registration.id, node.revision);
            self.nodes.insert(registration.id, registration);
        }
    }

    /// Notes that a node has no lease.
    pub(super) fn remove(&mut self, node: values::NodeId) {
        if let Some(node) = node_id(node) {
            self.nodes.remove(&node);
            self.revisions.remove(&node);
        }
    }

    /// The registration of a node, to compare it with a document.
    pub(super) fn seen(&self, node: NodeId) -> Option<SeenRegistration> {
        let incarnation = self.nodes.get(&node)?.incarnation;
        let revision = self.revisions.get(&node)?.0;
        Some(SeenRegistration { incarnation, revision })
    }
}
