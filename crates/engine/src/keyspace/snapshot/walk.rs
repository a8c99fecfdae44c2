//! Walkers: between commands, threads emit the entries that no command changes.
//!
//! Slots are handed out in order, so idle threads process more of them. A pass visits all slots with keys. Tables that
//! commands have moved to before the walk's position (SWAPDB) are visited by the next pass. After a pass without a slot
//! that owes entries, nothing more can be emitted. All keys are then in the writer's queue, or some are missing.

use super::Snapshot;
use super::progress::SlotProgress;
use crate::env::{Env, Garbage};
use crate::keyspace::{DbNumber, DbSlot, EntryRef, Keyspace};
use crate::types::Value;
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::table::{SCAN_END, TableRef};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum numbers of entries and of bytes that are emitted while their slot is locked once. This
/// takes some tens of microseconds.
const BITE_KEYS: usize = 64;
const BITE_BYTES: usize = 16 << 10;

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOutcome {
    /// There is more work, which can continue immediately.
    Part,
    /// The walk waits for the writer, or for the holder of a slot.
    Waits,
    /// No snapshot is being taken.
    Nothing,
}

/// The slots that are handed out.
#[derive(Default)]
pub(super) struct WalkOrder {
    next_db: u32,
    next_slot: usize,
    /// Number of slots handed out and not given back.
    out: usize,
    /// True if this pass has met a slot that owes entries.
    met_owing: bool,
    /// True if a whole pass has met no slot that owes entries.
    is_clean: bool,
}

/// One thread's part in the walks of all snapshots.
#[derive(Default)]
pub struct SnapshotWalker {
    walks: Vec<Walk>,
    /// The index of the walk that takes the next step.
    next: usize,
}

/// One thread's part in the walk of one snapshot.
struct Walk {
    snapshot: Arc<Snapshot>,
    /// The slot that the thread is working on.
    place: Option<DbSlot>,
}

impl SnapshotWalker {
    /// Emits entries while `more` returns true, in turn for each snapshot in progress. Also hands over the entries that
    /// this thread has emitted before changes. The thread must hold no slot.
    pub fn walk(
        &mut self,
        keyspace: &Keyspace,
        env: &Env,
        mut more: impl FnMut() -> bool,
    ) -> WalkOutcome {
        self.follow(keyspace, env);
        if self.walks.is_empty() {
            return WalkOutcome::Nothing;
        }
        let mut waiting = 0;
        while waiting < self.walks.len() && more() {
            self.next = (self.next + 1) % self.walks.len();
            match self.walks[self.next].step(keyspace, env) {
                WalkOutcome::Part => waiting = 0,
                WalkOutcome::Waits | WalkOutcome::Nothing => waiting += 1,
            }
        }
        env.snapshot_buffers.borrow_mut().hand_in();
        if waiting < self.walks.len() {
            return WalkOutcome::Part;
        }
        for snapshot in
            self.walks.iter().map(|walk| &walk.snapshot).filter(|snapshot| snapshot.is_incomplete())
        {
            snapshot.give_up("internal error: keys were not emitted");
        }
        WalkOutcome::Waits
    }

    /// Leaves the walks of snapshots that are over, and joins those of new ones.
    fn follow(&mut self, keyspace: &Keyspace, env: &Env) {
        let mut buffers = env.snapshot_buffers.borrow_mut();
        buffers.follow(&keyspace.snapshots);
        self.walks.retain(|walk| {
            let is_active =
                buffers.snapshots().any(|snapshot| Arc::ptr_eq(snapshot, &walk.snapshot));
            if !is_active && walk.place.is_some() {
                walk.snapshot.order.lock().even_poisoned().out -= 1;
            }
            is_active
        });
        for snapshot in buffers.snapshots() {
            if !self.walks.iter().any(|walk| Arc::ptr_eq(snapshot, &walk.snapshot)) {
                self.walks.push(Walk { snapshot: Arc::clone(snapshot), place: None });
            }
        }
    }
}

impl Walk {
    fn step(&mut self, keyspace: &Keyspace, env: &Env) -> WalkOutcome {
        let snapshot = &self.snapshot;
        if snapshot.is_congested() {
            return WalkOutcome::Waits;
        }
        if step_detached(keyspace, env, snapshot) {
            return WalkOutcome::Part;
        }
        let Some(place) = self.place.or_else(|| snapshot.next_place(keyspace)) else {
            return WalkOutcome::Waits;
        };
        self.place = Some(place);
        let Some(mut guard) = keyspace.database(place.0).slot(place.1).try_lock() else {
            return WalkOutcome::Waits;
        };
        let mut met_owing = false;
        if snapshot.is_owed_by(&guard) {
            met_owing = true;
            let mut progress = snapshot.progresses.take_or_begin(place, guard.table().len());
            if bite(keyspace, env, snapshot, &mut progress, guard.table()) {
                guard.set_stamp(keyspace.snapshots.stamp());
                snapshot.finish(&progress);
            } else {
                snapshot.progresses.put(place, progress);
                return WalkOutcome::Part;
            }
        }
        drop(guard);
        self.place = None;
        let mut order = snapshot.order.lock().even_poisoned();
        order.out -= 1;
        order.met_owing |= met_owing;
        WalkOutcome::Part
    }
}

impl Snapshot {
    /// The next slot of the snapshot that is not empty; `None` at the end of a pass.
    fn next_place(&self, keyspace: &Keyspace) -> Option<DbSlot> {
        let mut order = self.order.lock().even_poisoned();
        if order.is_clean {
            return None;
        }
        while let Some(db) = keyspace.db(DbNumber(order.next_db)) {
            let database = keyspace.database_if_used(db);
            let from = order.next_slot;
            let slot = database.and_then(|database| {
                database.occupied_from(from).find(|slot| self.slots.contains(*slot))
            });
            if let Some(slot) = slot {
                order.next_slot = slot.index() + 1;
                order.out += 1;
                return Some((db, slot));
            }
            (order.next_db, order.next_slot) = (order.next_db + 1, 0);
        }
        // A thread that is still working on a slot may find that the slot owes entries.
        if order.out == 0 {
            order.is_clean = !order.met_owing && self.detached.lock().even_poisoned().is_empty();
            *order = WalkOrder { is_clean: order.is_clean, ..WalkOrder::default() };
        }
        None
    }

    /// Reports whether nothing more can be emitted although some keys have not been emitted.
    fn is_incomplete(&self) -> bool {
        let is_clean = self.order.lock().even_poisoned().is_clean;
        // These are read in this order, because the keys of a buffer that is no longer open have
        // been counted.
        is_clean
            && self.open_buffers.load(Ordering::SeqCst) == 0
            && self.emitted.load(Ordering::SeqCst) < self.keys()
    }
}

/// Emits a part of a table that was flushed. Returns false if there is no such table.
fn step_detached(keyspace: &Keyspace, env: &Env, snapshot: &Arc<Snapshot>) -> bool {
    let Some(mut detached) = snapshot.detached.lock().even_poisoned().pop() else { return false };
    if bite(keyspace, env, snapshot, &mut detached.progress, detached.table.view()) {
        snapshot.finish(&detached.progress);
        snapshot.detached_bytes.fetch_sub(detached.bytes, Ordering::Relaxed);
        env.garbage.borrow_mut().push(Garbage::Table(detached.table));
    } else {
        snapshot.detached.lock().even_poisoned().push(detached);
    }
    true
}

/// Emits some entries of a table that no other thread works on. Returns true at the end of the
/// table.
fn bite(
    keyspace: &Keyspace,
    env: &Env,
    snapshot: &Arc<Snapshot>,
    progress: &mut SlotProgress,
    table: TableRef<'_, Value>,
) -> bool {
    let mut buffers = env.snapshot_buffers.borrow_mut();
    let output = buffers.of(snapshot);
    let (mut keys, mut bytes) = (0, 0);
    while keys < BITE_KEYS && bytes < BITE_BYTES {
        let before = output.len();
        let SlotProgress { origin, settled, emitted, .. } = progress;
        let next = table.scan(progress.cursor, |entry| {
            keys += 1;
            if settled.is_empty() || !settled.contains(&keyspace.hasher().hash(entry.key())) {
                *emitted += 1;
                output.add(*origin, &EntryRef(entry), env, false);
            }
        });
        // If the buffer is shorter than before, it was handed over in the meantime. Then a whole
        // step counts as done.
        bytes += output.len().checked_sub(before).unwrap_or(BITE_BYTES);
        progress.cursor = if next == 0 { SCAN_END } else { next };
        if next == 0 {
            return true;
        }
    }
    false
}
