//! Makes sessions start and stop following the stream, and frees the backlog after a long time without replicas.
//! Snapshots for new replicas begin in `full_sync`.

use super::acks::RequestedDurability;
use super::history::new_id;
use super::replica::{ReplicaProgress, ReplicaStage};
use super::replicas::ReplicaHandle;
use crate::clients::flag;
use crate::core::Core;
use crate::core::session::Session;
use crate::core::shared::Shared;
use brisk_engine::effect::Hooks;
use brisk_engine::keyspace::Ticket;
use brisk_engine::{CommandError, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Makes a session a replica that waits for a snapshot. The replica is sent nothing else before the snapshot.
pub fn attach_replica(core: &mut Core, session: &mut Session, acknowledges: bool) {
    let replica = make_handle(core, session, acknowledges);
    session.record.set(flag::REPLICA | flag::IN_FULL_SYNC, true);
    core.replicas.add(session.token, &replica.progress);
    core.shared.replication.replicas.attach(replica);
}

/// Makes a session a replica that has everything up to a position in the stream. Returns the number of bytes that the
/// replica lacks, or `None` if the stream no longer has all of them. The stream follows the reply.
pub fn resume_replica(core: &mut Core, session: &mut Session, place: Ticket) -> Option<u64> {
    let shared = core.shared;
    // Changes in the journal are a part of the history as well.
    shared.dispatch_changes(core.id);
    let replica = make_handle(core, session, true);
    let progress = Arc::clone(&replica.progress);
    let Some(lacking) = shared.replication.resume(replica, place) else {
        if let Some(replica) = session.replication.replica_mut() {
            replica.end();
        }
        return None;
    };
    session.record.set(flag::REPLICA, true);
    core.replicas.add(session.token, &progress);
    shared.update_few_replicas(&core.config.replication);
    Some(lacking)
}

fn make_handle(core: &Core, session: &mut Session, acknowledges: bool) -> ReplicaHandle {
    let progress = Arc::new(ReplicaProgress::default());
    let peer = session.record.addr.tcp().map(|address| address.ip());
    let now_ms = core.env.now().0;
    // Reset CLIENT DURABILITY: the stream waits only for the append-only file. If it waited for replicas, it would wait
    // for itself.
    *session.replication.durability_mut() = RequestedDurability::default();
    let replica = session.replication.announce_replica();
    replica.begin(Arc::clone(&progress), acknowledges);
    let options = *replica.options();
    ReplicaHandle {
        ip: options.ip.or(peer),
        port: options.port,
        takes_unknown_length: options.takes_unknown_length,
        compares: options.compares,
        filter: options.filter,
        ..ReplicaHandle::new(Arc::clone(&session.record), progress, now_ms)
    }
}

/// Starts to keep the stream before the first replica exists, so that a client can wait for a replica.
///
/// # Errors
/// [`brisk_engine::CommandError::SlotBusy`] while a slow script runs. The function also fails within a transaction.
pub fn begin_stream(core: &Core) -> Result<()> {
    let shared = core.shared;
    let replication = &shared.replication;
    if replication.stream.has_backlog() {
        return Ok(());
    }
    if core.unit.is_running() {
        return Err(CommandError::text(
            "ERR no replica has connected yet: CLIENT DURABILITY REPLICAS must be called outside of MULTI",
        ));
    }
    let _quiesced = core.quiesce_others()?;
    if !replication.stream.has_backlog() && !shared.conditions.is_replica() {
        shared.dispatch_changes(core.id);
        replication.begin_backlog(shared.keyspace.journal().end(), brisk_reactor::unix_ms());
        core.env.hooks.set(Hooks::PROPAGATE, true);
    }
    Ok(())
}

/// Notes that a replica's output contains its whole snapshot. The stream follows.
pub fn note_full_sync_done(core: &Core, session: &mut Session) {
    let Some(replica) = session.replication.replica_mut() else { return };
    replica.set_has_reply(false);
    let Some(progress) = replica.progress() else { return };
    let is_streamed = progress.transfer().is_some_and(|transfer| transfer.pipe().is_some());
    progress.set_awaits_ack(is_streamed);
    progress.leave();
    progress.set_stage(ReplicaStage::Online);
    session.record.set(flag::IN_FULL_SYNC, false);
    // The time since the replica's last message is measured from now on.
    let now_ms = brisk_reactor::unix_ms();
    session.record.last_active_ms.store(now_ms, Ordering::Relaxed);
    core.shared.replication.replicas.note_online(&session.record, now_ms);
    core.shared.update_few_replicas(&core.config.replication);
}

/// Removes a disconnected session from the replicas.
pub fn detach_replica(core: &mut Core, session: &mut Session) {
    let Some(replica) = session.replication.replica_mut() else { return };
    let Some(progress) = replica.end() else { return };
    let replication = &core.shared.replication;
    replication.note_held(replica, 0);
    core.replicas.remove(session.token);
    if let Some(replica) = replication.detach(&session.record, brisk_reactor::unix_ms()) {
        let name = replica.name();
        core.shared.log.warning(format_args!("Connection with replica {name} lost."));
    }
    progress.leave();
    core.shared.update_few_replicas(&core.config.replication);
}

/// Closes the connections of all replicas, because they no longer have this server's history. The connections are
/// closed when their workers receive the message.
pub fn disconnect_all(shared: &Shared) {
    for replica in shared.replication.replicas.list() {
        shared.mailboxes.close(&replica.client);
    }
}

/// Frees the backlog after a long time without replicas, and stops collecting effects if there is
/// no reader.
pub fn disarm_propagation(core: &mut Core) {
    let shared = core.shared;
    let hooks = &core.env.hooks;
    let replication = &shared.replication;
    let ttl_s = core.config.replication.repl_backlog_ttl_s.max(0).cast_unsigned();
    let is_forgotten = || {
        let is_kept = ttl_s == 0 || shared.conditions.is_replica();
        let now_ms = brisk_reactor::unix_ms();
        let alone_s =
            replication.replicas.alone_since_ms().map(|since| now_ms.saturating_sub(since) / 1000);
        replication.stream.has_backlog() && !is_kept && alone_s.is_some_and(|alone| alone > ttl_s)
    };
    let is_idle = || {
        hooks.get().contains(Hooks::PROPAGATE)
            && !replication.stream.has_backlog()
            && !shared.persistence.aof.is_on()
    };
    if !is_forgotten() && !is_idle() {
        return;
    }
    // If a slow script is running, a later call frees the backlog.
    let Ok(quiesced) = core.quiesce_others() else { return };
    if is_forgotten() {
        shared.dispatch_changes(core.id);
        replication.forget_backlog();
        // A replica with an earlier offset would otherwise receive the stream of another dataset.
        replication.history.restart(new_id(&mut core.env.random.borrow_mut()));
        shared.log.notice(format_args!(
            "Replication backlog freed after {ttl_s} seconds without connected replicas."
        ));
    }
    if is_idle() {
        hooks.set(Hooks::PROPAGATE, false);
    }
    drop(quiesced);
}
