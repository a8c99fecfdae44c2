//! Waits until replicas have acknowledged changes, or until changes are durable on the disk. Sessions wait in WAIT and
//! WAITAOF, or before each reply (CLIENT DURABILITY).

use super::Replication;
use crate::persistence::aof::state::{Aof, Level};
use brisk_engine::keyspace::Ticket;
use brisk_engine::{CommandError, Outcome, Reply};

/// The request that makes a replica acknowledge its offset immediately.
pub const GETACK_REQUEST: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

/// Maximum number of replicas that a client's replies can wait for.
pub const REPLICAS_MAX: usize = 16;

const NO_FILE: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// The durability that changes must have before a session is shown them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durability {
    /// The level on this server. `None` means the level of the settings.
    pub level: Option<Level>,
    /// Acknowledgements of other servers that are required in addition.
    pub replicas: Option<Acknowledged>,
}

/// Acknowledgements of replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// The number of replicas, from 1 to [`REPLICAS_MAX`].
    pub count: usize,
    /// If no reply has been sent for this long, the client gets an error and is disconnected. `None` means no limit.
    pub timeout_ms: Option<u64>,
    /// The epoch of acknowledgements when the client made its request. In any other epoch, the promise does not hold.
    pub ack_epoch: u64,
}

/// The durability that a session has requested for its replies.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestedDurability {
    now: Durability,
    /// The previous request. It applies to earlier replies that have not been sent yet.
    before: Option<Durability>,
}

impl RequestedDurability {
    /// Changes the requested durability. `usual` is the level of the settings.
    pub fn change(&mut self, wanted: Durability, usual: Level) {
        if self.now != Durability::default() || self.before.is_some() {
            let level = Some(self.level(usual));
            self.before = Some(Durability { level, replicas: self.replicas() });
        }
        self.now = wanted;
    }

    /// Notes that all earlier replies have been sent.
    #[inline]
    pub fn forget_before(&mut self) {
        self.before = None;
    }

    /// The level that changes must have reached on this server.
    #[inline]
    pub fn level(&self, usual: Level) -> Level {
        let now = self.now.level.unwrap_or(usual);
        match &self.before {
            None => now,
            Some(before) => now.max(before.level.unwrap_or(usual)),
        }
    }

    /// The acknowledgements that changes must have, if any.
    #[inline]
    pub fn replicas(&self) -> Option<Acknowledged> {
        match &self.before {
            None => self.now.replicas,
            Some(before) => strictest(self.now.replicas, before.replicas),
        }
    }
}

fn strictest(now: Option<Acknowledged>, before: Option<Acknowledged>) -> Option<Acknowledged> {
    let (Some(one), Some(other)) = (now, before) else { return now.or(before) };
    Some(Acknowledged {
        count: one.count.max(other.count),
        timeout_ms: one.timeout_ms,
        // Use the earlier epoch: if it has ended, its promise cannot be kept.
        ack_epoch: one.ack_epoch.min(other.ack_epoch),
    })
}

/// The condition that a session waits for.
#[derive(Debug, Clone, Copy)]
pub enum AckCondition {
    /// This number of replicas have acknowledged.
    Replicas(u64),
    /// The change is on this server's disk, if `local`, and on the disks of this number of replicas.
    Disks { local: bool, replicas: u64 },
    /// The comparison with this number has ended.
    Comparison(u64),
}

/// A session that waits, and its condition.
#[derive(Debug, Clone, Copy)]
pub struct AckWait {
    /// The position in the stream of the latest change that the session was shown.
    pub shown: Ticket,
    pub wanted: AckCondition,
}

/// The acknowledgements that a waiting session has so far.
struct Reached {
    local: bool,
    replicas: u64,
}

impl AckWait {
    /// True if the condition is met. O(replicas).
    ///
    /// # Errors
    /// The condition cannot be met because there is no append-only file.
    pub fn is_over(&self, replication: &Replication, aof: &Aof) -> Result<bool, CommandError> {
        let reached = || self.reached(replication, aof);
        match self.wanted {
            AckCondition::Comparison(number) => Ok(replication.comparison.ended() >= number),
            AckCondition::Replicas(wanted) => Ok(reached().replicas >= wanted),
            AckCondition::Disks { local, replicas } => {
                if local && !aof.is_on() {
                    return Err(CommandError::text(NO_FILE));
                }
                let reached = reached();
                Ok((reached.local || !local) && reached.replicas >= replicas)
            }
        }
    }

    /// True if the session waits for this server's disk.
    pub fn wants_disk(&self) -> bool {
        matches!(self.wanted, AckCondition::Disks { local: true, .. })
    }

    /// True if the session waits for replicas.
    pub fn wants_replicas(&self) -> bool {
        match self.wanted {
            AckCondition::Replicas(wanted) | AckCondition::Disks { replicas: wanted, .. } => {
                wanted > 0
            }
            AckCondition::Comparison(_) => false,
        }
    }

    /// Replies with the current state, whether or not the condition is met. O(replicas).
    pub fn write_reply(
        &self,
        replication: &Replication,
        aof: &Aof,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        if let AckCondition::Comparison(_) = self.wanted {
            return replication.comparison.write_reply(reply);
        }
        let reached = self.reached(replication, aof);
        if let AckCondition::Disks { .. } = self.wanted {
            reply.array(2);
            reply.integer(i64::from(reached.local));
        }
        reply.integer(i64::try_from(reached.replicas).unwrap_or(i64::MAX))
    }

    fn reached(&self, replication: &Replication, aof: &Aof) -> Reached {
        let shown = replication.history.offset(self.shown);
        // Offsets are compared by their wrapping difference.
        let has = |offset: u64| shown.wrapping_sub(offset).cast_signed() <= 0;
        let replicas = &replication.replicas;
        match self.wanted {
            AckCondition::Comparison(_) => Reached { local: false, replicas: 0 },
            AckCondition::Replicas(_) => Reached {
                local: false,
                replicas: replicas.count(|replica| {
                    replica.is_online() && replica.has_acked && has(replica.acked)
                }),
            },
            AckCondition::Disks { .. } => Reached {
                local: aof.is_durable(self.shown),
                replicas: replicas
                    .count(|replica| replica.is_online() && replica.acked_durable.is_some_and(has)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::testing::record;
    use crate::replication::replica::{ReplicaProgress, ReplicaStage};
    use crate::replication::replicas::ReplicaHandle;
    use std::sync::Arc;

    #[test]
    fn a_previous_request_applies_until_all_earlier_replies_have_been_sent() {
        let by = |count, ack_epoch| Some(Acknowledged { count, timeout_ms: None, ack_epoch });
        let mut requested = RequestedDurability::default();
        assert_eq!((requested.level(Level::Log), requested.replicas()), (Level::Log, None));
        requested.change(Durability { level: Some(Level::Disk), replicas: None }, Level::Log);
        requested.change(Durability { level: Some(Level::Memory), replicas: by(2, 7) }, Level::Log);
        assert_eq!((requested.level(Level::Log), requested.replicas()), (Level::Disk, by(2, 7)));
        requested.change(Durability { level: None, replicas: by(1, 8) }, Level::Log);
        requested.change(Durability::default(), Level::Log);
        assert_eq!((requested.level(Level::Log), requested.replicas()), (Level::Disk, by(2, 7)));
        requested.forget_before();
        assert_eq!((requested.level(Level::Log), requested.replicas()), (Level::Log, None));
    }

    #[test]
    fn a_replica_that_has_not_acknowledged_anything_has_nothing() {
        let (replication, aof) = (Replication::new(1, "i".repeat(40)), Aof::new(1));
        let (client, progress) = (record(1, 0), Arc::<ReplicaProgress>::default());
        progress.set_stage(ReplicaStage::Online);
        replication.replicas.attach(ReplicaHandle::new(Arc::clone(&client), progress, 0));
        // The change was written before the stream began. The replica's snapshot may not have arrived yet.
        let wait = AckWait { shown: Ticket(0), wanted: AckCondition::Replicas(1) };
        assert!(!wait.is_over(&replication, &aof).expect("it needs no file"));
        replication.acknowledge(&client, (0, Some(Ticket(0))), None, 1);
        assert!(wait.is_over(&replication, &aof).expect("it needs no file"));
    }
}
