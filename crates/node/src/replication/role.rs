//! Changes of the role between primary and replica. All other workers are quiesced.

use super::upstream::{on_worker, start};
use crate::clients::flag;
use crate::core::Core;
use crate::core::mailbox::{Message, Unblocked};
use crate::core::shared::Shared;
use crate::persistence::loading::rdb::Lineage;
use crate::replication::follow;
use crate::replication::history::{self, FormerHistory, Offset, ReplicationIds};
use brisk_config::value::PrimaryAddress;
use brisk_engine::effect::Hooks;
use brisk_engine::snapshot::ExpiredKeys;
use brisk_reactor::unix_ms;
use std::sync::Arc;

/// Makes this server a replica of `primary`. It keeps its dataset until the primary sends another one. If both have the
/// same history, the stream continues at this server's offset.
pub fn become_replica(core: &mut Core, primary: PrimaryAddress) {
    let shared = core.shared;
    shared.dispatch_changes(core.id);
    let was_replica = shared.conditions.is_replica();
    set_primary(shared, Some(primary.clone()));
    shared.keyspace.journal().set_relayed(true);
    let replication = &shared.replication;
    // Changes that replicas have acknowledged may now be lost, including changes for which clients are waiting (WAIT,
    // CLIENT DURABILITY).
    replication.replicas.end_ack_epoch();
    // The replicas of this server stay connected, unless it gets another dataset or history id.
    if !was_replica {
        unblock_all(shared);
    }
    let upstream = Arc::clone(&replication.upstream);
    let generation = upstream.leave();
    start(shared, upstream, primary, generation);
    shared.update_stale();
    // Later commands of the same transaction see the new role.
    core.refresh_config();
}

/// Makes this server a primary with its current dataset. Replicas of the same former primary can continue with this
/// server.
pub fn become_primary(core: &mut Core) {
    let shared = core.shared;
    shared.dispatch_changes(core.id);
    let journal = shared.keyspace.journal();
    let replication = &shared.replication;
    replication.upstream.leave();
    journal.set_relayed(false);
    let offset = replication.history.offset(journal.end());
    let id = history::new_id(&mut core.env.random.borrow_mut());
    let before = replication.history.ids().id;
    shared.log.notice(format_args!(
        "Setting secondary replication ID to {before}, valid up to offset: {}. New replication ID \
         is {id}",
        offset + 1
    ));
    replication.history.rename(id, offset);
    // Replicas receive the new id when they reconnect.
    follow::disconnect_all(shared);
    set_primary(shared, None);
    core.refresh_config();
}

fn set_primary(shared: &Shared, primary: Option<PrimaryAddress>) {
    let mut store = shared.settings.store();
    store.adopt(|config| config.replication.replicaof = primary);
    shared.publish_config((*store.current()).clone());
}

/// Unblocks clients that wait for keys, because only the primary changes the dataset from now on. Clients that called
/// SHUTDOWN continue to wait for the shutdown.
fn unblock_all(shared: &Shared) {
    for client in shared.clients.list().iter().filter(|client| !client.has(flag::AWAITS_END)) {
        let ends = client.waiter().as_ref().is_some_and(|waiter| waiter.end());
        if ends {
            let (token, id) = (client.token, client.id);
            let how = Unblocked::RoleChanged;
            shared.mailboxes.send(client.worker, Message::Unblock { token, id, how });
        }
    }
}

/// Adopts the history of a dataset that was loaded when the server started. If this server is a replica, it can
/// continue from its offset. If it is a primary, its replicas can. They receive deletions of the keys in `expired`,
/// which had expired and were not loaded.
pub fn inherit(shared: &'static Shared, lineage: &Lineage, expired: ExpiredKeys) {
    let (Some(id), Some(offset)) = (lineage.id.clone(), lineage.offset) else { return };
    let db = lineage.db.unwrap_or_default();
    // If the server shuts down, the result is ignored.
    on_worker(shared, move |core| {
        let (replication, end) = (&core.shared.replication, core.shared.keyspace.journal().end());
        let own = replication.history.ids().id;
        let ids = match core.shared.conditions.is_replica() {
            true => ReplicationIds { id, former: None },
            false => {
                ReplicationIds { id: own, former: Some(FormerHistory { id, end: offset.get() }) }
            }
        };
        replication.history.adopt(ids, offset, end);
        replication.upstream.set_stream_db(db);
        replication.begin_backlog(end, unix_ms());
        core.env.hooks.set(Hooks::PROPAGATE, true);
        if !core.shared.conditions.is_replica() {
            propagate_expired(core, offset, &expired);
        }
    });
}

/// Begins the stream with deletions of the keys that had expired when the dataset was loaded. If they exceed
/// the backlog, no replica can continue from an earlier offset.
fn propagate_expired(core: &Core, offset: Offset, expired: &ExpiredKeys) {
    /// The number of keys that are appended to the journal before it is dispatched.
    const KEYS_AT_ONCE: usize = 1000;
    let (shared, replication) = (core.shared, &core.shared.replication);
    if expired.bytes > shared.config().replication.repl_backlog_size {
        let (ids, end) = (replication.history.ids(), shared.keyspace.journal().end());
        return replication.history.adopt(ids, offset.after(expired.bytes), end);
    }
    let word: &[u8] = if core.env.settings.lazy_expire { b"UNLINK" } else { b"DEL" };
    for keys in expired.keys.chunks(KEYS_AT_ONCE) {
        for (db, key) in keys {
            shared.keyspace.propagate_without_keys(&core.env, *db, &[word, key]);
        }
        shared.dispatch_changes(core.id);
    }
}

/// Starts to follow the primary that the settings name. Called after the server's own dataset is loaded.
pub fn begin(shared: &'static Shared) {
    let upstream = Arc::clone(&shared.replication.upstream);
    // Read the generation before the address. If the address changes in between, this generation is outdated.
    let generation = upstream.generation();
    if let Some(primary) = shared.config().replication.replicaof.clone() {
        start(shared, upstream, primary, generation);
    }
}
