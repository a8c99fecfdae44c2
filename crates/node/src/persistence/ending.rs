//! The shutdown of the server: replicas catch up, then the data is written to the disk.
//!
//! ```text
//! begin ─┬─ no replica, or all have everything ───────────────┬─ end: snapshot, append-only file ─ exit
//!        └─ writes wait; the timers check whether replicas    │    │ cannot
//!           have caught up, or `shutdown-timeout` has passed ─┘    └─ call_off: writes continue, callers
//!               └───────────────── SHUTDOWN ABORT ────────────────►   of SHUTDOWN get an error
//! ```
//!
//! All other workers are quiesced when writes begin to be held back. Therefore every write that was acknowledged to a
//! client is before the offset that replicas must acknowledge. After this offset, only a slow script can write. The
//! offset is updated while the stream grows.
//!
//! In a cluster, the primary of a shard first hands over to a live replica, if there is one: see `cluster/switch.rs`.
//! If the handover fails, the primary waits for its replicas like any other primary.
//!
//! After the snapshot, no client is served, because acknowledged writes would be lost.

use super::aof::rewrite;
use super::{bgsave, snapshot};
use crate::clients::flag;
use crate::cluster::Departure;
use crate::core::Core;
use crate::core::mailbox::{Message, Unblocked};
use crate::core::pause::Hold;
use crate::core::shared::Shared;
use crate::core::shutdown::Waiting;
use crate::replication::acks::GETACK_REQUEST;
use crate::replication::replicas::ReplicaHandle;
use brisk_config::Config;
use brisk_config::choice::ShutdownMode;
use brisk_engine::keyspace::Ticket;
use brisk_engine::{CommandError, Result};
use brisk_reactor::unix_ms;

/// The result of a shutdown request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// The server exits.
    Ends,
    /// The server exits when replicas have caught up.
    Waits,
}

/// Reports whether the dataset is saved before the server exits.
pub fn saves(config: &Config, how: ShutdownMode) -> bool {
    how.save || (!how.nosave && !config.persistence.save.is_empty())
}

/// Reports whether a worker has work to do before the server exits.
pub fn concerns_workers(shared: &Shared, how: ShutdownMode) -> bool {
    writes_files(shared, how) || shared.replication.replicas.is_any()
}

/// Reports whether anything is written to the disk before the server exits.
fn writes_files(shared: &Shared, how: ShutdownMode) -> bool {
    shared.persistence.aof.is_on() || rewrite::is_first(shared) || saves(&shared.config(), how)
}

/// Shuts the server down, or first begins to wait for replicas. If an earlier request already waits for them, that
/// request's options apply.
///
/// # Errors
/// The server continues: its data cannot be saved, or, with [`CommandError::SlotBusy`], a slow script is running and
/// its partial changes would be saved.
pub fn begin(core: &Core, how: ShutdownMode) -> Result<Begun> {
    let shared = core.shared;
    if shared.process.shutdown.waiting().is_some() {
        return Ok(Begun::Waits);
    }
    if is_in_the_way(shared, how) {
        return Err(CommandError::SlotBusy);
    }
    shared.log.notice(format_args!("User requested shutdown..."));
    // If a shutdown is already planned, a signal requested it.
    let was_planned = shared.process.shutdown.is_planned();
    let timeout_s = core.config.process.shutdown_timeout_s.max(0).unsigned_abs();
    let has_replicas = shared.replication.replicas.is_any();
    if how.now || timeout_s == 0 || !has_replicas || shared.conditions.is_loading() {
        end(core, how, || was_planned && !shared.process.shutdown.is_planned())?;
        return Ok(Begun::Ends);
    }
    let now_ms = unix_ms();
    let until_ms = now_ms.saturating_add(timeout_s.saturating_mul(1000));
    // A failover or a client may rely on the fact that the stream does not grow while writes are paused.
    let mut may_request = shared.conditions.pause_in_force(now_ms).is_none();
    {
        let _quiesced = core.quiesce_others_despite_scripts();
        if shared.process.shutdown.waiting().is_some() {
            // Another worker was first.
            return Ok(Begun::Waits);
        }
        shared.conditions.hold_writes(Hold::Shutdown);
        shared.dispatch_changes(core.id);
        let end = shared.keyspace.journal().end();
        shared.process.shutdown.wait_for_replicas(Waiting { how, until_ms, target: end, end });
    }
    let departs = shared.cluster.state().is_some_and(|cluster| cluster.depart(until_ms));
    may_request &= !departs;
    if departs || !has_caught_up_for_good(core, false) {
        shared.log.notice(format_args!("Waiting for replicas before shutting down."));
        if may_request {
            request_acks(core);
        }
        return Ok(Begun::Waits);
    }
    match end_planned(core, how) {
        // A slow script is running. The timers complete the shutdown later.
        Err(CommandError::SlotBusy) => Ok(Begun::Waits),
        ended => ended.map(|()| Begun::Ends),
    }
}

/// Continues a shutdown that a signal requested, or that waits for replicas. Called by the timers of one
/// worker.
pub fn advance_shutdown(core: &Core) {
    let shared = core.shared;
    let Some(waiting) = shared.process.shutdown.waiting() else {
        if let Some(how) = shared.process.shutdown.scheduled() {
            match begin(core, how) {
                // One of the next calls tries again.
                Err(CommandError::SlotBusy) => {}
                Ok(Begun::Waits) => {}
                // The log has the reason if the server continues.
                Ok(Begun::Ends) | Err(_) => {
                    shared.process.shutdown.call_off();
                }
            }
        }
        return;
    };
    let is_late = unix_ms() >= waiting.until_ms;
    let cluster = shared.cluster.state();
    let may_end = match cluster.map_or(Departure::None, |cluster| cluster.switches.departure()) {
        Departure::InProgress => false,
        // Another node has all the data. This node is its replica and executes no more of its stream.
        Departure::HandedOver => true,
        Departure::None | Departure::Failed => has_caught_up_for_good(core, true),
    };
    if !is_late && !may_end {
        return;
    }
    // The log has the reason if the server continues.
    let _ = end_planned(core, waiting.how);
}

/// Cancels the shutdown: writes continue, and clients that wait within SHUTDOWN get an error. Returns
/// whether a shutdown was planned.
pub fn call_off(core: &Core) -> bool {
    let shared = core.shared;
    if !shared.process.shutdown.is_planned() {
        return false;
    }
    // While the workers are quiesced, each SHUTDOWN has either begun to wait or has not been executed.
    let _quiesced = core.quiesce_others_despite_scripts();
    if !shared.process.shutdown.call_off() {
        return false;
    }
    if let Some(cluster) = shared.cluster.state() {
        cluster.switches.call_departure_off();
    }
    shared.release_writes(Hold::Shutdown);
    for client in shared.clients.list().iter().filter(|client| client.has(flag::AWAITS_END)) {
        if client.waiter().as_ref().is_some_and(|waiter| waiter.end()) {
            let (token, id, how) = (client.token, client.id, Unblocked::EndGivenUp);
            shared.mailboxes.send(client.worker, Message::Unblock { token, id, how });
        }
    }
    true
}

/// The error for callers of SHUTDOWN if the server continues.
pub fn refusal() -> CommandError {
    CommandError::text("ERR Errors trying to SHUTDOWN. Check logs.")
}

/// Shuts the server down after replicas have caught up or the timeout has passed. If that fails, the shutdown is
/// canceled.
fn end_planned(core: &Core, how: ShutdownMode) -> Result<()> {
    let called_off = || !core.shared.process.shutdown.is_planned();
    let ended = end(core, how, called_off);
    if !matches!(ended, Ok(()) | Err(CommandError::SlotBusy)) {
        call_off(core);
    }
    ended
}

/// Reports whether a slow script is running and its partial changes would be saved.
fn is_in_the_way(shared: &Shared, how: ShutdownMode) -> bool {
    shared.conditions.is_busy() && !shared.conditions.is_loading() && saves(&shared.config(), how)
}

/// Like [`has_caught_up`], but includes the last effects of a slow script that ended after the first check. If no slow
/// script is running, nothing more is written. A script that is still running is cut off.
fn has_caught_up_for_good(core: &Core, requests: bool) -> bool {
    if !has_caught_up(core, requests) {
        return false;
    }
    let quiesced = core.quiesce_others();
    quiesced.is_err() || has_caught_up(core, requests)
}

/// Reports whether all replicas have acknowledged the data that the server had when writes began to be held back. If
/// data was appended since and `requests` is set, requests acknowledgements again. O(replicas).
fn has_caught_up(core: &Core, requests: bool) -> bool {
    let shared = core.shared;
    shared.dispatch_changes(core.id);
    let end = shared.keyspace.journal().end();
    let Some(waiting) = shared.process.shutdown.waiting() else { return false };
    if end != waiting.end {
        // A slow script has written data, or replicas were sent a PING.
        shared.process.shutdown.move_target(end);
        if requests {
            request_acks(core);
        }
        return false;
    }
    // A replica that requested only a part of the dataset is not a copy, so it does not count.
    let lacks = |replica: &ReplicaHandle| replica.filter.is_none() && !has(replica, waiting.target);
    shared.replication.replicas.count(lacks) == 0
}

/// Reports whether a replica has acknowledged the stream up to this offset.
fn has(replica: &ReplicaHandle, place: Ticket) -> bool {
    replica.has_acked && replica.acked_place.is_some_and(|acked| acked >= place)
}

/// Requests an immediate acknowledgement from the replicas. Replicas of a replica acknowledge only once a second. The
/// request itself need not be acknowledged.
fn request_acks(core: &Core) {
    let shared = core.shared;
    if shared.replication.replicas.following() > 0 {
        // A slow script may append to the stream at any time, so the journal determines the position.
        let request = shared.keyspace.journal().append_request(GETACK_REQUEST);
        shared.process.shutdown.note_request(request);
        shared.dispatch_changes(core.id);
    }
}

/// Logs the replicas that lag behind the server.
fn report_replicas(core: &Core) {
    let shared = core.shared;
    shared.dispatch_changes(core.id);
    let place = match shared.process.shutdown.waiting() {
        Some(waiting) => waiting.target,
        None => shared.keyspace.journal().end(),
    };
    let (offset, now_ms) = (shared.replication.history.offset(place), unix_ms());
    let replicas = shared.replication.replicas.list();
    let mut in_sync = 0;
    for replica in &replicas {
        if has(replica, place) {
            in_sync += 1;
            continue;
        }
        let lag_s = if replica.is_online() { replica.lag_s(now_ms) } else { 0 };
        shared.log.warning(format_args!(
            "Lagging replica {} reported offset {} behind master, lag={lag_s}, state={}.",
            replica.name(),
            offset.wrapping_sub(replica.acked).cast_signed(),
            replica.progress.stage().word()
        ));
    }
    if !replicas.is_empty() {
        let count = replicas.len();
        shared
            .log
            .notice(format_args!("{in_sync} of {count} replicas are in sync when shutting down."));
    }
}

/// Shuts the server down, after saving a snapshot if one is required. Does nothing if the shutdown was canceled while
/// this worker waited for the others. O(all data) with a snapshot.
///
/// # Errors
/// As for [`begin`], or the shutdown was canceled.
fn end(core: &Core, how: ShutdownMode, called_off: impl Fn() -> bool) -> Result<()> {
    let shared = core.shared;
    if is_in_the_way(shared, how) {
        return Err(CommandError::SlotBusy);
    }
    report_replicas(core);
    // While the dataset is being loaded, the files already contain all of it.
    let writes = !shared.conditions.is_loading() && writes_files(shared, how);
    let saves = saves(&core.config, how);
    // Quiesce before jobs are stopped. Otherwise, a worker that is about to start a job would start it afterwards.
    let quiesced = match writes.then(|| core.quiesce_others()) {
        None => None,
        // A slow script is running, but no snapshot was requested, so its partial changes are not saved. Writes of
        // other clients are logged before they are acknowledged.
        Some(Err(CommandError::SlotBusy)) if !saves => None,
        Some(other) => other?,
    };
    if called_off() {
        return Err(refusal());
    }
    if bgsave::is_saving(shared) {
        shared.log.warning(format_args!("There is a child saving an .rdb. Killing it!"));
        shared.persistence.snapshots.give_up();
        shared.replication.snapshots.give_up("the server is shutting down");
    }
    if writes {
        if rewrite::is_first(shared) {
            let log = &shared.log;
            if !how.force {
                // Data that is neither in the append-only file nor in a snapshot would be lost.
                log.warning(format_args!("Writing initial AOF, can't exit."));
                return Err(cannot_end(shared));
            }
            log.warning(format_args!("Writing initial AOF. Exit anyway."));
        }
        rewrite::stop(shared, "the server is shutting down");
        if shared.persistence.aof.is_on() {
            shared.log.notice(format_args!("Calling fsync() on the AOF file."));
            shared.dispatch_changes(core.id);
            if let Err(error) = shared.persistence.aof.flush(shared) {
                let log = &shared.log;
                log.warning(format_args!("The AOF file could not be written: {error}"));
            }
        }
        if saves {
            shared.log.notice(format_args!("Saving the final RDB snapshot before exiting."));
        }
        if saves && snapshot::save(core).is_err() {
            if !how.force {
                shared.log.warning(format_args!("Error trying to save the DB, can't exit."));
                return Err(cannot_end(shared));
            }
            shared.log.warning(format_args!("Error trying to save the DB. Exit anyway."));
        }
        if let Some(quiesced) = quiesced {
            quiesced.keep_for_good();
        }
    }
    shared.process.shutdown.request(0);
    Ok(())
}

fn cannot_end(shared: &Shared) -> CommandError {
    shared.log.warning(format_args!(
        "Errors trying to shut down the server. Check the logs for more information."
    ));
    refusal()
}
