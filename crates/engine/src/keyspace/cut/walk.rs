//! Walkers: threads emit the entries that no command changes, between commands.
//!
//! Slots are handed out in order, so that idle threads do more of them. A pass visits all slots
//! with keys. Tables that commands have moved behind the pass (SWAPDB) are visited by the next
//! pass. After a pass without a slot that owes entries, nothing more can be emitted. All keys are
//! then in the writer's queue, or some are missing.

use super::output::Emitted;
use super::progress::SlotProgress;
use super::{Cut, QUEUE_BYTES_MAX};
use crate::env::{Env, Garbage};
use crate::keyspace::{DbNumber, DbSlot, EntryRef, Keyspace};
use crate::types::Value;
use brisk_structures::poison::EvenPoisoned;
use brisk_structures::table::{SCAN_END, TableRef};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of entries emitted under one lock of their slot, and of bytes: some tens of
/// microseconds.
const BITE_KEYS: usize = 64;
const BITE_BYTES: usize = 16 << 10;

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOutcome {
    /// There is more to do immediately.
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
    /// This pass met a slot that owes entries.
    met_owing: bool,
    /// A whole pass met no slot that owes entries.
    is_clean: bool,
}

/// A thread's part of the walk.
#[derive(Default)]
pub struct CutWalker {
    cut: Option<Arc<Cut>>,
    place: Option<DbSlot>,
}

impl CutWalker {
    /// Emits entries while `more` returns true. Entries that this thread has emitted before changes
    /// are handed over as well. Only for a thread that holds no slot.
    pub fn walk(
        &mut self,
        keyspace: &Keyspace,
        env: &Env,
        mut more: impl FnMut() -> bool,
    ) -> WalkOutcome {
        let active = keyspace.cuts.of(env);
        if let Some(cut) =
            self.cut.take_if(|own| active.as_ref().is_none_or(|cut| !Arc::ptr_eq(own, cut)))
            && self.place.take().is_some()
        {
            cut.order.lock().even_poisoned().out -= 1;
        }
        let Some(cut) = active else { return WalkOutcome::Nothing };
        self.cut.get_or_insert_with(|| Arc::clone(&cut));
        let mut walked = WalkOutcome::Part;
        while walked == WalkOutcome::Part && more() {
            walked = self.step(keyspace, env, &cut);
        }
        env.snapshot_output.borrow_mut().hand_in();
        if walked == WalkOutcome::Waits && cut.is_incomplete() {
            cut.give_up("internal error: keys were not emitted");
        }
        walked
    }

    fn step(&mut self, keyspace: &Keyspace, env: &Env, cut: &Cut) -> WalkOutcome {
        if cut.queue.bytes_held() > QUEUE_BYTES_MAX.min(cut.options.queue_bytes_max / 2) {
            return WalkOutcome::Waits;
        }
        if step_detached(keyspace, env, cut) {
            return WalkOutcome::Part;
        }
        let Some(place) = self.place.or_else(|| cut.next_place(keyspace)) else {
            return WalkOutcome::Waits;
        };
        self.place = Some(place);
        let Some(mut guard) = keyspace.database(place.0).slot(place.1).try_lock() else {
            return WalkOutcome::Waits;
        };
        let mut met_owing = false;
        if guard.stamp() != cut.stamp {
            met_owing = true;
            let mut progress = cut.progresses.take_or_begin(place, guard.table().len());
            if bite(keyspace, env, cut, &mut progress, guard.table()) {
                guard.set_stamp(cut.stamp);
                cut.finish(&progress);
            } else {
                cut.progresses.put(place, progress);
                return WalkOutcome::Part;
            }
        }
        drop(guard);
        self.place = None;
        let mut order = cut.order.lock().even_poisoned();
        order.out -= 1;
        order.met_owing |= met_owing;
        WalkOutcome::Part
    }
}

impl Cut {
    /// The next slot that is not empty; `None` at the end of a pass.
    fn next_place(&self, keyspace: &Keyspace) -> Option<DbSlot> {
        let mut order = self.order.lock().even_poisoned();
        if order.is_clean {
            return None;
        }
        while let Some(db) = keyspace.db(DbNumber(order.next_db)) {
            let database = keyspace.database_if_used(db);
            let from = order.next_slot;
            if let Some(slot) = database.and_then(|database| database.occupied_from(from).next()) {
                order.next_slot = slot.index() + 1;
                order.out += 1;
                return Some((db, slot));
            }
            (order.next_db, order.next_slot) = (order.next_db + 1, 0);
        }
        // A thread with a slot in hand may still find that it owes entries.
        if order.out == 0 {
            order.is_clean = !order.met_owing && self.detached.lock().even_poisoned().is_empty();
            *order = WalkOrder { is_clean: order.is_clean, ..WalkOrder::default() };
        }
        None
    }

    /// Nothing more can be emitted, and some keys were not.
    fn is_incomplete(&self) -> bool {
        let is_clean = self.order.lock().even_poisoned().is_clean;
        // In this order: an output that is no longer open has been counted.
        is_clean
            && self.open_outputs.load(Ordering::SeqCst) == 0
            && self.emitted.load(Ordering::SeqCst) < self.keys()
    }
}

/// Emits a part of a flushed table. Returns false if there is none.
fn step_detached(keyspace: &Keyspace, env: &Env, cut: &Cut) -> bool {
    let Some(mut detached) = cut.detached.lock().even_poisoned().pop() else { return false };
    if bite(keyspace, env, cut, &mut detached.progress, detached.table.view()) {
        cut.finish(&detached.progress);
        cut.detached_bytes.fetch_sub(detached.bytes, Ordering::Relaxed);
        env.garbage.borrow_mut().push(Garbage::Table(detached.table));
    } else {
        cut.detached.lock().even_poisoned().push(detached);
    }
    true
}

/// Emits some entries of a table that no other thread works on. Returns true at its end.
fn bite(
    keyspace: &Keyspace,
    env: &Env,
    cut: &Cut,
    progress: &mut SlotProgress,
    table: TableRef<'_, Value>,
) -> bool {
    let mut output = env.snapshot_output.borrow_mut();
    let how = Emitted::AtLeisure { compresses: cut.options.compresses };
    let (mut keys, mut bytes) = (0, 0);
    while keys < BITE_KEYS && bytes < BITE_BYTES {
        let before = output.len();
        let SlotProgress { origin, settled, emitted, .. } = progress;
        let next = table.scan(progress.cursor, |entry| {
            keys += 1;
            if settled.is_empty() || !settled.contains(&keyspace.hasher().hash(entry.key())) {
                *emitted += 1;
                output.add(*origin, &EntryRef(entry), env, how);
            }
        });
        // More than one step was handed over meanwhile.
        bytes += output.len().checked_sub(before).unwrap_or(BITE_BYTES);
        progress.cursor = if next == 0 { SCAN_END } else { next };
        if next == 0 {
            return true;
        }
    }
    false
}
