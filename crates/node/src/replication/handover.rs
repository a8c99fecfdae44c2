//! FAILOVER: a primary hands over to one of its replicas.

use super::role;
use crate::core::Core;
use crate::core::pause::Hold;
use crate::core::shared::Shared;
use crate::replication::failover::{FailoverAttempt, FailoverPhase};
use crate::replication::replica::ReplicaStage;
use crate::replication::replicas::ReplicaHandle;
use brisk_config::value::{PrimaryAddress, Text};
use brisk_reactor::unix_ms;

/// Begins a failover. All other workers are quiesced.
pub fn begin(core: &Core, attempt: FailoverAttempt) {
    let shared = core.shared;
    match &attempt.target {
        Some((host, port)) => {
            shared.log.notice(format_args!("FAILOVER requested to {host}:{port}."));
        }
        None => shared.log.notice(format_args!("FAILOVER requested.")),
    }
    shared.replication.failover.set(Some(attempt));
    shared.conditions.hold_writes(Hold::Failover);
}

/// Hands over if a replica has everything by now or the timeout has passed. Called by the timers of one worker.
pub fn check(core: &mut Core) {
    let shared = core.shared;
    if shared.replication.failover.phase() != FailoverPhase::WaitsForSync {
        return;
    }
    // While a slow script prevents quiescence, one of the next calls hands over.
    let Ok(_quiesced) = core.quiesce_others() else { return };
    let Some(attempt) = shared.replication.failover.attempt() else { return };
    let is_late = attempt.until_ms.is_some_and(|until| unix_ms() >= until);
    if let Some((host, port)) = caught_up_replica(shared, &attempt) {
        shared.log.notice(format_args!("Failover target {host}:{port} is synced, failing over."));
        hand_over(core, attempt, (host, port));
    } else if is_late {
        match attempt.target.clone().filter(|_| attempt.is_forced) {
            Some((host, port)) => {
                shared.log.notice(format_args!(
                    "Failover to {host}:{port} time out exceeded, failing over."
                ));
                hand_over(core, attempt, (host, port));
            }
            None => abort(core, "Replica never caught up before timeout"),
        }
    }
}

/// The address of a replica that may take over and has acknowledged everything.
fn caught_up_replica(shared: &Shared, attempt: &FailoverAttempt) -> Option<(String, u16)> {
    let end = shared.keyspace.journal().end();
    let offset = shared.replication.history.offset(end);
    let replicas = shared.replication.replicas.list();
    let has_all = |replica: &&ReplicaHandle| {
        replica.progress.stage() == ReplicaStage::Online
            && replica.filter.is_none()
            && replica.has_acked
            && replica.acked == offset
            && attempt.target.as_ref().is_none_or(|(host, port)| is_at(replica, host, *port))
    };
    let replica = replicas.iter().find(has_all)?;
    Some((replica.ip?.to_string(), replica.port))
}

/// True if the replica has announced this address.
pub fn is_at(replica: &ReplicaHandle, host: &str, port: u16) -> bool {
    replica.port == port && replica.ip.is_some_and(|ip| ip.to_string() == host)
}

fn hand_over(core: &mut Core, attempt: FailoverAttempt, (host, port): (String, u16)) {
    let failover = &core.shared.replication.failover;
    let target = Some((host.clone(), port));
    failover.set(Some(FailoverAttempt { phase: FailoverPhase::InProgress, target, ..attempt }));
    role::become_replica(core, PrimaryAddress { host: Text::from(host.as_bytes()), port });
}

/// Ends the failover. Writes continue.
pub(super) fn end(shared: &Shared) {
    shared.replication.failover.set(None);
    shared.release_writes(Hold::Failover);
}

/// Aborts the failover: this server is the primary again. All other workers are quiesced.
pub fn abort(core: &mut Core, why: &str) {
    let shared = core.shared;
    let Some(attempt) = shared.replication.failover.attempt() else { return };
    match &attempt.target {
        Some((host, port)) => {
            shared.log.notice(format_args!("Aborting failover to {host}:{port}. {why}"));
        }
        None => shared.log.notice(format_args!("Aborting failover. {why}")),
    }
    if attempt.phase == FailoverPhase::InProgress {
        role::become_primary(core);
    }
    end(shared);
}
