//! What a session was shown is acknowledged by replicas, or on the disk: it waits for that by WAIT and
//! WAITAOF, or all its replies do (CLIENT DURABILITY).

use super::Replication;
use crate::persistence::aof::state::{Aof, Level};
use brisk_engine::keyspace::Ticket;
use brisk_engine::{CommandError, Outcome, Reply};

/// What a replica is sent so that it tells at once how far it has come.
pub const ASK: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

/// So many replicas a client can have its replies wait for, at most.
pub const REPLICAS_MAX: usize = 16;

const NO_FILE: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// How far changes must have come before a session is shown them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Durability {
    /// In this server; `None` for what the settings say.
    pub level: Option<Level>,
    /// Besides, in others.
    pub replicas: Option<Acknowledged>,
}

/// By replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// By so many: from 1 to [`REPLICAS_MAX`].
    pub count: usize,
    /// Who waits so long, and no reply leaves, is told so and disconnected; `None`: never.
    pub timeout_ms: Option<u64>,
    /// The epoch of acknowledgements when the client requested it. In another epoch nothing is promised.
    pub ack_epoch: u64,
}

/// What a session has asked its replies to wait for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    now: Durability,
    /// What it had asked before counts for replies of then that have not left.
    before: Option<Durability>,
}

impl Asked {
    /// Asks for something else; `usual` is what the settings say.
    pub fn change(&mut self, wanted: Durability, usual: Level) {
        if self.now != Durability::default() || self.before.is_some() {
            let level = Some(self.level(usual));
            self.before = Some(Durability { level, replicas: self.replicas() });
        }
        self.now = wanted;
    }

    /// All replies of before have left.
    #[inline]
    pub fn forget_before(&mut self) {
        self.before = None;
    }

    /// How far changes must have come in this server.
    #[inline]
    pub fn level(&self, usual: Level) -> Level {
        let now = self.now.level.unwrap_or(usual);
        match &self.before {
            None => now,
            Some(before) => now.max(before.level.unwrap_or(usual)),
        }
    }

    /// Which replicas must have acknowledged them, if any.
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
        // The earlier: if it is over, what was promised in it cannot be kept.
        ack_epoch: one.ack_epoch.min(other.ack_epoch),
    })
}

/// What a session waits for.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// So many replicas have it.
    Replicas(u64),
    /// It is on this server's disk, if `local`, and on that of so many replicas.
    Disks { local: bool, replicas: u64 },
    /// The comparison with this number is over.
    Comparison(u64),
}

/// The wait of a session.
#[derive(Debug, Clone, Copy)]
pub struct AckWait {
    /// Up to where in the stream.
    pub shown: Ticket,
    pub wanted: Wanted,
}

/// How far it has come.
struct Reached {
    local: bool,
    replicas: u64,
}

impl AckWait {
    /// Whether there is no need to wait. O(replicas).
    ///
    /// # Errors
    /// What is waited for cannot come: there is no append-only file.
    pub fn is_over(&self, replication: &Replication, aof: &Aof) -> Result<bool, CommandError> {
        let reached = || self.reached(replication, aof);
        match self.wanted {
            Wanted::Comparison(number) => Ok(replication.comparison.ended() >= number),
            Wanted::Replicas(wanted) => Ok(reached().replicas >= wanted),
            Wanted::Disks { local, replicas } => {
                if local && !aof.is_on() {
                    return Err(CommandError::text(NO_FILE));
                }
                let reached = reached();
                Ok((reached.local || !local) && reached.replicas >= replicas)
            }
        }
    }

    /// Whether this server's disk is waited for.
    pub fn wants_disk(&self) -> bool {
        matches!(self.wanted, Wanted::Disks { local: true, .. })
    }

    /// Whether replicas are waited for.
    pub fn wants_replicas(&self) -> bool {
        match self.wanted {
            Wanted::Replicas(wanted) | Wanted::Disks { replicas: wanted, .. } => wanted > 0,
            Wanted::Comparison(_) => false,
        }
    }

    /// Says how far it has come, whether that is enough or not. O(replicas).
    pub fn answer(&self, replication: &Replication, aof: &Aof, reply: &mut Reply<'_>) -> Outcome {
        if let Wanted::Comparison(_) = self.wanted {
            return replication.comparison.answer(reply);
        }
        let reached = self.reached(replication, aof);
        if let Wanted::Disks { .. } = self.wanted {
            reply.array(2);
            reply.integer(i64::from(reached.local));
        }
        reply.integer(i64::try_from(reached.replicas).unwrap_or(i64::MAX))
    }

    fn reached(&self, replication: &Replication, aof: &Aof) -> Reached {
        let shown = replication.history.offset(self.shown);
        // Offsets wrap around together with the difference between them and tickets.
        let has = |offset: u64| shown.wrapping_sub(offset).cast_signed() <= 0;
        let replicas = &replication.replicas;
        match self.wanted {
            Wanted::Comparison(_) => Reached { local: false, replicas: 0 },
            Wanted::Replicas(_) => Reached {
                local: false,
                replicas: replicas.count(|replica| {
                    replica.is_online() && replica.has_acked && has(replica.acked)
                }),
            },
            Wanted::Disks { .. } => Reached {
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
    fn what_was_asked_before_counts_until_all_replies_of_then_have_left() {
        let by = |count, ack_epoch| Some(Acknowledged { count, timeout_ms: None, ack_epoch });
        let mut asked = Asked::default();
        assert_eq!((asked.level(Level::Log), asked.replicas()), (Level::Log, None));
        asked.change(Durability { level: Some(Level::Disk), replicas: None }, Level::Log);
        asked.change(Durability { level: Some(Level::Memory), replicas: by(2, 7) }, Level::Log);
        assert_eq!((asked.level(Level::Log), asked.replicas()), (Level::Disk, by(2, 7)));
        asked.change(Durability { level: None, replicas: by(1, 8) }, Level::Log);
        asked.change(Durability::default(), Level::Log);
        assert_eq!((asked.level(Level::Log), asked.replicas()), (Level::Disk, by(2, 7)));
        asked.forget_before();
        assert_eq!((asked.level(Level::Log), asked.replicas()), (Level::Log, None));
    }

    #[test]
    fn a_replica_that_has_not_acknowledged_anything_has_nothing() {
        let (replication, aof) = (Replication::new(1, "i".repeat(40)), Aof::new(1));
        let (client, progress) = (record(1, 0), Arc::<ReplicaProgress>::default());
        progress.set_stage(ReplicaStage::Online);
        replication.replicas.attach(ReplicaHandle::new(Arc::clone(&client), progress, 0));
        // Written before there was a stream: its dataset may still be on its way.
        let wait = AckWait { shown: Ticket(0), wanted: Wanted::Replicas(1) };
        assert!(!wait.is_over(&replication, &aof).expect("no file is waited for"));
        replication.acknowledge(&client, (0, Some(Ticket(0))), None, 1);
        assert!(wait.is_over(&replication, &aof).expect("no file is waited for"));
    }
}
