//! From primary to replica and back. All other workers stand still.

use super::upstream::{on_worker, start};
use crate::core::Core;
use crate::core::mailbox::{Message, Unblocked};
use crate::core::shared::Shared;
use crate::persistence::loading::rdb::Lineage;
use crate::replication::follow;
use crate::replication::history::{self, Former, Ids, Offset};
use brisk_config::value::PrimaryAddress;
use brisk_engine::effect::Hooks;
use brisk_engine::snapshot::Gone;
use brisk_reactor::unix_ms;
use std::sync::Arc;

/// This server follows that primary from now on. What it has stays until the primary has sent something
/// else; if both are of one history it goes on from there.
pub fn become_replica(core: &mut Core, primary: PrimaryAddress) {
    let shared = core.shared;
    shared.pump(core.id);
    let was_replica = shared.is_replica();
    set_primary(shared, Some(primary));
    shared.keyspace.journal().set_relayed(true);
    let replication = &shared.replication;
    // What replicas have acknowledged so far may be lost now, with what clients wait for.
    replication.feed.end_era();
    // Its own replicas stay: they go on if this server can, and are sent away when it gets another dataset, or
    // another name for the history.
    if !was_replica {
        unblock_all(shared);
    }
    start(shared, Arc::clone(&replication.upstream), replication.upstream.leave());
    shared.arm_stale();
    // What runs in the same transaction finds it so.
    core.refresh_config();
}

/// This server is a primary from now on, with what it has. Who followed the same one can go on here.
pub fn become_primary(core: &mut Core) {
    let shared = core.shared;
    shared.pump(core.id);
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
    // They learn the new name when they come again.
    follow::disconnect_all(shared);
    set_primary(shared, None);
    core.refresh_config();
}

fn set_primary(shared: &Shared, primary: Option<PrimaryAddress>) {
    let mut store = shared.settings.store();
    store.adopt(|config| config.replication.replicaof = primary);
    shared.publish_config((*store.current()).clone());
}

/// What clients wait for will not come: only the primary changes the dataset.
fn unblock_all(shared: &Shared) {
    for client in shared.clients.list() {
        let ends = client.waiter().as_ref().is_some_and(|waiter| waiter.end());
        if ends {
            let (token, id) = (client.token, client.id);
            let how = Unblocked::RoleChanged;
            shared.mailboxes[client.worker].send(Message::Unblock { token, id, how });
        }
    }
}

/// At the start, with a dataset that was saved at a place of a history: a replica can go on from there, and
/// so can replicas of a primary. These are told of what was left out: `gone`.
pub fn inherit(shared: &'static Shared, lineage: &Lineage, gone: Gone) {
    let (Some(id), Some(offset)) = (lineage.id.clone(), lineage.offset) else { return };
    let db = lineage.db.unwrap_or_default();
    // Nothing is done if the server ends.
    on_worker(shared, move |core| {
        let (replication, end) = (&core.shared.replication, core.shared.keyspace.journal().end());
        let own = replication.history.ids().id;
        let ids = match core.shared.is_replica() {
            true => Ids { id, former: None },
            false => Ids { id: own, former: Some(Former { id, end: offset.get() }) },
        };
        replication.history.adopt(ids, offset, end);
        replication.upstream.set_stream_db(db);
        replication.feed.begin_backlog(end, unix_ms());
        core.env.hooks.set(Hooks::PROPAGATE, true);
        if !core.shared.is_replica() {
            tell_of_gone(core, offset, &gone);
        }
    });
}

/// The stream begins with what has expired since. If that is more than the backlog keeps, nobody can go on from
/// before it.
fn tell_of_gone(core: &Core, offset: Offset, gone: &Gone) {
    /// So many keys are told before the backlog is given them.
    const KEYS_AT_ONCE: usize = 1000;
    let (shared, replication) = (core.shared, &core.shared.replication);
    if gone.bytes > shared.config().replication.repl_backlog_size {
        let (ids, end) = (replication.history.ids(), shared.keyspace.journal().end());
        return replication.history.adopt(ids, offset.after(gone.bytes), end);
    }
    let word: &[u8] = if core.env.settings.lazy_expire { b"UNLINK" } else { b"DEL" };
    for keys in gone.keys.chunks(KEYS_AT_ONCE) {
        for (db, key) in keys {
            shared.keyspace.propagate_beside(&core.env, *db, &[word, key]);
        }
        shared.pump(core.id);
    }
}

/// At the start: a replica by its settings, when its own dataset is loaded.
pub fn begin(shared: &'static Shared) {
    if shared.is_replica() {
        let upstream = Arc::clone(&shared.replication.upstream);
        let generation = upstream.generation();
        start(shared, upstream, generation);
    }
}
