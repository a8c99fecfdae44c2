//! WAIT and WAITAOF: what a session has seen is acknowledged by replicas, or on the disk.

use super::Replication;
use crate::persistence::aof::state::Aof;
use brisk_engine::keyspace::Ticket;
use brisk_engine::{CommandError, Outcome, Reply};

/// What a replica is sent so that it tells at once how far it has come.
pub const ASK: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

const NO_FILE: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

/// What a session waits for.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// So many replicas have it.
    Replicas(u64),
    /// It is on this server's disk, if `local`, and on that of so many replicas.
    Disks { local: bool, replicas: u64 },
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
        let reached = self.reached(replication, aof);
        match self.wanted {
            Wanted::Replicas(wanted) => Ok(reached.replicas >= wanted),
            Wanted::Disks { local, replicas } => {
                if local && !aof.is_on() {
                    return Err(CommandError::text(NO_FILE));
                }
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
        }
    }

    /// Says how far it has come, whether that is enough or not. O(replicas).
    pub fn answer(&self, replication: &Replication, aof: &Aof, reply: &mut Reply<'_>) -> Outcome {
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
        let feed = &replication.feed;
        match self.wanted {
            Wanted::Replicas(_) => Reached {
                local: false,
                replicas: feed.count(|member| member.is_online() && has(member.acked)),
            },
            Wanted::Disks { .. } => Reached {
                local: aof.is_durable(self.shown),
                replicas: feed
                    .count(|member| member.is_online() && member.acked_durable.is_some_and(has)),
            },
        }
    }
}
