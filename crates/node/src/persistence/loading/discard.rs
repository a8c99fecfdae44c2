//! Removes the current dataset before another one is loaded.

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
