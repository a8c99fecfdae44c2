//! The hook that runs before every change.

use super::Snapshot;
use super::progress::SlotProgress;
use crate::env::Env;
use crate::keyspace::{DbIndex, DbSlot, Entry, EntryRef, Key, Keyspace, SlotGuard, SlotId};
use crate::types::Value;
use brisk_resp::slot::key_slot;
use brisk_structures::entry::ValueRef;
use std::sync::Arc;

/// Slots with at most this many keys are emitted on first access, if all keys are small. With a higher limit, commands
/// that access random keys would emit most of a dataset within a fraction of a second.
const WHOLE_KEYS_MAX: usize = 8;
/// Maximum total size of these keys in bytes.
const WHOLE_BYTES_MAX: usize = 32 << 10;

/// The context in which a slot is changed.
#[derive(Clone, Copy)]
pub(in crate::keyspace) struct Change<'c> {
    pub(in crate::keyspace) keyspace: &'c Keyspace,
    pub(in crate::keyspace) env: &'c Env,
    pub(in crate::keyspace) db: DbIndex,
}

impl Change<'_> {
    /// Called before a key's entry is changed or added: emits the entry as it was when the snapshot
    /// began.
    #[inline(always)]
    pub(in crate::keyspace) fn preserve(self, guard: &mut SlotGuard<'_>, hash: u64, key: &[u8]) {
        if guard.stamp() != self.keyspace.snapshots.stamp() {
            self.preserve_owed(guard, hash, key, false);
        }
    }

    /// Called before an entry is removed: emits the entry as it was when the snapshot began.
    #[inline(always)]
    pub(in crate::keyspace) fn preserve_leaving(
        self,
        guard: &mut SlotGuard<'_>,
        hash: u64,
        key: &[u8],
    ) {
        if guard.stamp() != self.keyspace.snapshots.stamp() {
            self.preserve_owed(guard, hash, key, true);
        }
    }

    #[cold]
    #[inline(never)]
    fn preserve_owed(self, guard: &mut SlotGuard<'_>, hash: u64, key: &[u8], leaves: bool) {
        let place = (self.db, SlotId::new(key_slot(key)));
        let leaving = leaves.then_some(key);
        let Some((snapshot, mut progress)) = self.begin_slot(guard, place, leaving) else { return };
        if progress.settle(hash)
            && let Some(entry) = guard.table().find(hash, key)
        {
            self.emit(&snapshot, &mut progress, &EntryRef(entry), leaves);
        }
        snapshot.progresses.put(place, progress);
    }

    /// Called before entries are removed from a slot. If it returns true, the caller must report
    /// each entry to [`Change::preserve_removed`].
    pub(in crate::keyspace) fn begin_to_preserve(
        self,
        guard: &mut SlotGuard<'_>,
        slot: SlotId,
    ) -> bool {
        if guard.stamp() == self.keyspace.snapshots.stamp() {
            return false;
        }
        let place = (self.db, slot);
        let Some((snapshot, progress)) = self.begin_slot(guard, place, None) else { return false };
        snapshot.progresses.put(place, progress);
        true
    }

    /// Called after an entry was removed from a slot that is still held.
    pub(in crate::keyspace) fn preserve_removed(self, entry: &Entry) {
        let Key { hash, slot, .. } = self.keyspace.hasher().key(entry.key());
        let Some(snapshot) = self.keyspace.snapshots.covering(self.env, slot) else { return };
        let Some(mut progress) = snapshot.progresses.take((self.db, slot)) else { return };
        if progress.settle(hash) {
            self.emit(&snapshot, &mut progress, &EntryRef(entry.into()), true);
        }
        snapshot.progresses.put((self.db, slot), progress);
    }

    /// The progress of a slot from which the key `leaving` is about to be removed. The caller puts
    /// the progress back. `None` if the slot no longer owes anything.
    fn begin_slot(
        self,
        guard: &mut SlotGuard<'_>,
        place: DbSlot,
        leaving: Option<&[u8]>,
    ) -> Option<(Arc<Snapshot>, Box<SlotProgress>)> {
        let snapshots = &self.keyspace.snapshots;
        let Some(snapshot) = snapshots.owed(self.env, place.1, guard) else {
            // No snapshot covers this slot, its snapshot already has all of the slot's entries, or
            // the snapshot was given up.
            guard.set_stamp(snapshots.stamp());
            return None;
        };
        let mut progress = match snapshot.progresses.take(place) {
            Some(progress) => progress,
            None if guard.table().is_empty() => {
                guard.set_stamp(snapshots.stamp());
                return None;
            }
            None => SlotProgress::new(place.0, guard.table().len()),
        };
        if progress.emitted == 0 && progress.settled.is_empty() && is_small(guard) {
            guard.table().for_each(|entry| {
                let leaves = leaving.is_some_and(|key| key == entry.key());
                self.emit(&snapshot, &mut progress, &EntryRef(entry), leaves);
            });
            guard.set_stamp(snapshots.stamp());
            snapshot.finish(&progress);
            return None;
        }
        Some((snapshot, progress))
    }

    fn emit(
        self,
        snapshot: &Arc<Snapshot>,
        progress: &mut SlotProgress,
        entry: &EntryRef<'_>,
        leaves: bool,
    ) {
        progress.emitted += 1;
        let mut buffers = self.env.snapshot_buffers.borrow_mut();
        buffers.of(snapshot).add(progress.origin, entry, self.env, leaves);
    }
}

/// Reports whether emitting the whole slot takes no longer than a short command.
fn is_small(guard: &SlotGuard<'_>) -> bool {
    let table = guard.table();
    if table.len() > WHOLE_KEYS_MAX {
        return false;
    }
    let mut bytes = 0;
    table.for_each(|entry| {
        bytes += match entry.value() {
            ValueRef::Bytes(_) | ValueRef::Int(_) => entry.allocated_bytes(),
            // Large values are shared with the writer in O(1).
            ValueRef::Object(value) if !Value::is_light(value) => entry.allocated_bytes(),
            ValueRef::Object(value) => value.allocated_bytes(),
        };
    });
    bytes <= WHOLE_BYTES_MAX
}
