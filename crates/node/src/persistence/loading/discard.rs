//! Removes the current dataset: before another one is loaded, or because this node has left its shard.

use crate::core::Core;
use crate::script::libraries::Policy;
use crate::script::source;
use brisk_engine::DbIndex;
use brisk_engine::keyspace::Keys;

/// Removes all keys and function libraries. The journal does not record the removal, so neither replicas nor the
/// append-only file receive it. All other workers are quiesced.
pub fn discard_dataset(core: &mut Core) {
    let keyspace = &core.shared.keyspace;
    let mut keys = Keys::unlocked(keyspace, &core.env, DbIndex::FIRST);
    for db in keyspace.databases() {
        keys.flush(db);
    }
    keys.invalidate_all();
    keys.close_without_effects();
    // An empty set of libraries cannot be rejected.
    let _ = source::restore(core, std::iter::empty(), Policy::Flush);
}

/// Removes all keys, as FLUSHALL does. All other workers are quiesced.
pub fn flush_dataset(core: &mut Core) {
    let keyspace = &core.shared.keyspace;
    keyspace.note_flush_of_all();
    let mut keys = Keys::unlocked(keyspace, &core.env, DbIndex::FIRST);
    for db in keyspace.databases() {
        let removed = keys.flush(db);
        keys.changed_all(removed);
    }
    keys.invalidate_all();
    let changes = keys.close_as(&[b"FLUSHALL"]);
    core.stats().changes.add(changes);
    core.shared.dispatch_changes(core.id);
    core.free_garbage();
}
