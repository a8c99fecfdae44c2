//! A session's role in replication and durability: its state as a replica, and the durability that its replies wait
//! for.

use crate::replication::acks::RequestedDurability;
use crate::replication::replica::ReplicaSession;
use brisk_engine::keyspace::Ticket;

/// The state of a session as a replica, and the durability that its replies wait for.
#[derive(Default)]
pub struct SessionReplication {
    /// The state that REPLCONF has set, and whether the session follows the stream.
    replica: Option<Box<ReplicaSession>>,
    /// The durability that the client requested for its replies.
    durability: RequestedDurability,
    /// The position in the stream of changes up to which the session was shown the dataset.
    shown: Ticket,
}

impl SessionReplication {
    /// Reports whether the session is a replica or has announced itself as one.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// Reports whether the session is a replica that has requested the stream.
    pub fn follows(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| replica.follows())
    }

    /// The state of a replica.
    #[inline]
    pub fn replica(&self) -> Option<&ReplicaSession> {
        self.replica.as_deref()
    }

    #[inline]
    pub fn replica_mut(&mut self) -> Option<&mut ReplicaSession> {
        self.replica.as_deref_mut()
    }

    /// The state of a session that announces itself as a replica. Created if it does not exist.
    pub fn announce_replica(&mut self) -> &mut ReplicaSession {
        self.replica.get_or_insert_default()
    }

    /// The durability that the client requested for its replies.
    #[inline]
    pub fn durability(&self) -> &RequestedDurability {
        &self.durability
    }

    #[inline]
    pub fn durability_mut(&mut self) -> &mut RequestedDurability {
        &mut self.durability
    }

    /// The position in the stream of changes up to which the session was shown the dataset.
    pub fn shown(&self) -> Ticket {
        self.shown
    }

    /// Notes that the session is shown the dataset up to `shown`.
    pub fn note_shown(&mut self, shown: Ticket) {
        self.shown = self.shown.max(shown);
    }
}
