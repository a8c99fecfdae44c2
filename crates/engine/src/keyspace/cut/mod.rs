//! The dataset as of one moment, written out while commands go on: snapshots without a fork.
//!
//! ```text
//!  begin (all stand still)      a command that changes an entry       walkers, between commands
//!        │                                    │                                │
//!   stamp of the keyspace + 1        Change::preserve: what the        slot after slot, a few
//!   = all slots owe their            entry was, before the change      entries at a time
//!     entries, at once                        └────────► Output ◄──────────────┘
//!                                                           │ 64 KiB at a time
//!                                              Cut::write, on a thread of its own
//! ```
//!
//! *Owed* is an entry that existed at the cut and was not emitted yet. Who emits one holds its
//! slot, so each is emitted once, with the value that it had when nobody had changed it since the
//! cut: every change passes [`Change::preserve`] first (see `slot.rs`).
//!
//! A slot whose stamp is that of the keyspace owes nothing, which is the one comparison that
//! changes pay for while no snapshot is taken. The first touch of a slot that owes counts its
//! entries; from then on its [`SlotProgress`] says how far a walker has come in the order of hashes,
//! and which keys behind that were touched before. Slots with few small entries are emitted whole
//! at the first touch.
//!
//! At the end the numbers must agree: for each slot what was emitted with what was there at the
//! cut, and the sum with the sum of the keys. If not, the snapshot fails: a file with a key twice
//! stops a server that loads it, one with a key less is worse.
//!
//! | part | about |
//! |---|---|
//! | `change` | the hook before every change |
//! | `progress` | what is known of slots that have emitted a part of what they owe |
//! | `walk` | walkers, between commands |
//! | `output` | from entries to the writer: encoded, or shared if they are large |

mod change;
mod output;
mod progress;
mod walk;

pub(super) use change::Change;
pub(crate) use output::{CutBuffer, notes};
use output::{CutQueue, Piece};
use progress::{DetachedTable, SlotProgresses};
use walk::WalkOrder;
pub use walk::{CutWalker, WalkOutcome};

use super::{DbIndex, Keyspace, SlotGuard};
use crate::env::Env;
use brisk_persist::rdb::RdbWriter;
use brisk_structures::poison::EvenPoisoned;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Walkers wait while so many bytes are encoded and not written.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// How long the writer waits before it looks whether the cut was given up.
const WRITER_WAIT: Duration = Duration::from_millis(100);

/// The cuts of a keyspace: at most one at a time.
#[derive(Default)]
pub(super) struct Cuts {
    stamp: Stamp,
    active: Mutex<Option<Arc<Cut>>>,
    /// How often all databases were flushed at once.
    flushes: AtomicU64,
}

/// Slots with this stamp owe nothing. Read with every change and written once for a snapshot: on a
/// line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Stamp {
    stamp: AtomicU32,
    is_emitting: AtomicBool,
}

impl Cuts {
    #[inline(always)]
    fn stamp(&self) -> u32 {
        // Written while all other threads stand still, which orders it.
        self.stamp.stamp.load(Ordering::Relaxed)
    }

    /// The cut that is being emitted, for the thread of `env`.
    fn of(&self, env: &Env) -> Option<Arc<Cut>> {
        let mut output = env.snapshot_output.borrow_mut();
        if output.cut().is_none_or(|cut| cut.stamp != self.stamp() || cut.is_over()) {
            output.follow(self.active.lock().even_poisoned().clone());
        }
        output.cut().filter(|cut| !cut.is_over()).cloned()
    }
}

/// How keys are written.
#[derive(Debug, Clone, Copy)]
pub struct CutOptions {
    /// Whether walkers compress strings. What is emitted before a change never is: somebody waits.
    pub compresses: bool,
    /// Bytes that are encoded and not written, at most; beyond it the cut is given up.
    pub queue_bytes_max: u64,
    /// What the dataset takes, about: for the size of tables that are flushed meanwhile.
    pub dataset_bytes: u64,
}

/// One snapshot that is being taken.
pub struct Cut {
    stamp: u32,
    options: CutOptions,
    /// Keys and keys with a deadline of each database.
    sizes: Vec<(u64, u64)>,
    progresses: SlotProgresses,
    /// Tables that were flushed before they were emitted.
    detached: Mutex<Vec<DetachedTable>>,
    detached_bytes: AtomicU64,
    /// Which slots walkers go to.
    order: Mutex<WalkOrder>,
    queue: CutQueue,
    /// Threads with entries that were emitted and are not in the queue.
    open_outputs: AtomicUsize,
    /// Keys that were put into the queue, and keys that the writer has written.
    emitted: AtomicU64,
    written: AtomicU64,
    /// It was given up because too much was changed before it was written.
    ran_full: AtomicBool,
    /// Why it was given up.
    failure: Mutex<Option<String>>,
}

impl Keyspace {
    /// Begins to emit the dataset as it is now. `None` if that is going on already. Only while all
    /// other threads with an [`Env`] stand still. O(databases x threads).
    pub fn begin_cut(&self, options: CutOptions) -> Option<Arc<Cut>> {
        let mut active = self.cuts.active.lock().even_poisoned();
        if active.is_some() {
            return None;
        }
        let sizes = self.totals().databases.iter().map(|db| (db.keys, db.with_deadline)).collect();
        let stamp = self.cuts.stamp().wrapping_add(1);
        self.cuts.stamp.stamp.store(stamp, Ordering::Relaxed);
        let cut = Arc::new(Cut {
            stamp,
            options,
            sizes,
            progresses: SlotProgresses::default(),
            detached: Mutex::default(),
            detached_bytes: AtomicU64::new(0),
            order: Mutex::default(),
            queue: CutQueue::default(),
            open_outputs: AtomicUsize::new(0),
            emitted: AtomicU64::new(0),
            written: AtomicU64::new(0),
            ran_full: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        *active = Some(Arc::clone(&cut));
        self.cuts.stamp.is_emitting.store(true, Ordering::SeqCst);
        Some(cut)
    }

    /// Whether a cut is being emitted.
    #[inline]
    pub fn is_emitting(&self) -> bool {
        self.cuts.stamp.is_emitting.load(Ordering::Relaxed)
    }

    /// The cut that is being emitted.
    pub fn cut(&self) -> Option<Arc<Cut>> {
        self.cuts.active.lock().even_poisoned().clone()
    }

    /// How often all databases were flushed at once: nobody has a use for a snapshot from before.
    pub fn flushes(&self) -> u64 {
        self.cuts.flushes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_flush_of_all(&self) {
        self.cuts.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody emits anything for the cut any more: it was written, or given up.
    pub fn end_cut(&self, cut: &Cut) {
        let mut active = self.cuts.active.lock().even_poisoned();
        if active.take_if(|active| active.stamp == cut.stamp).is_some() {
            self.cuts.stamp.is_emitting.store(false, Ordering::SeqCst);
        }
        drop(active);
        cut.queue.close();
        // Their memory goes now, whoever holds the cut.
        cut.detached.lock().even_poisoned().clear();
        cut.detached_bytes.store(0, Ordering::Relaxed);
        cut.progresses.clear();
    }

    /// Takes the table out of a slot that is flushed: to be freed, unless a cut wants it first.
    /// O(1).
    pub(super) fn hand_over(
        &self,
        env: &Env,
        place: super::DbSlot,
        guard: &mut SlotGuard<'_>,
    ) -> Option<super::Table> {
        let stamp = self.cuts.stamp();
        if guard.stamp() != stamp {
            guard.set_stamp(stamp);
            if let Some(cut) = self.cuts.of(env) {
                let keys = guard.table().len();
                let progress = cut.progresses.take_or_begin(place, keys);
                let table = guard.take_table();
                let bytes = keys as u64 * (cut.options.dataset_bytes / cut.keys().max(1));
                cut.detached_bytes.fetch_add(bytes, Ordering::Relaxed);
                cut.detached.lock().even_poisoned().push(DetachedTable { progress, table, bytes });
                return None;
            }
        }
        Some(guard.take_table())
    }

    /// Exchanges the tables of two databases' slots: what they owe goes with them. O(1).
    pub(super) fn exchange(
        &self,
        env: &Env,
        dbs: [DbIndex; 2],
        slot: super::SlotId,
        [here, there]: [&mut SlotGuard<'_>; 2],
    ) {
        let stamp = self.cuts.stamp();
        if (here.stamp(), there.stamp()) != (stamp, stamp)
            && let Some(cut) = self.cuts.of(env)
        {
            let places = dbs.map(|db| (db, slot));
            let mut owed = [(&*here, places[0]), (&*there, places[1])].map(|(guard, place)| {
                let owes = guard.stamp() != stamp;
                owes.then(|| cut.progresses.take_or_begin(place, guard.table().len()))
            });
            owed.reverse();
            for (progress, place) in owed.into_iter().zip(places) {
                progress.into_iter().for_each(|progress| cut.progresses.put(place, progress));
            }
            let stamps = (here.stamp(), there.stamp());
            here.set_stamp(stamps.1);
            there.set_stamp(stamps.0);
        }
        here.exchange_tables(there);
    }
}

impl Cut {
    /// Keys that existed at the cut.
    pub fn keys(&self) -> u64 {
        self.sizes.iter().map(|(keys, _)| keys).sum()
    }

    /// Keys that were written by now.
    pub fn keys_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes of memory that it takes besides the dataset, about: what is encoded and not written,
    /// values and tables that are kept for it alone, and what is known of slots that are half
    /// emitted.
    pub fn bytes(&self) -> u64 {
        let detached = self.detached_bytes.load(Ordering::Relaxed);
        self.queue.bytes_kept() + self.progresses.bytes() + detached
    }

    /// The most of that by now, without tables.
    pub fn bytes_peak(&self) -> u64 {
        self.queue.peak().max(self.progresses.bytes())
    }

    /// Gives it up; the first reason counts.
    pub fn give_up(&self, reason: &str) {
        self.failure.lock().even_poisoned().get_or_insert_with(|| reason.to_owned());
        self.queue.close();
    }

    /// Whether it was given up because too much was changed before it was written.
    pub fn ran_full(&self) -> bool {
        self.ran_full.load(Ordering::Relaxed)
    }

    /// Whether it was given up, or was written.
    pub fn is_over(&self) -> bool {
        self.queue.is_closed()
    }

    /// Writes the entries, as they are emitted, until all are written: on a thread that no walker
    /// waits for. `wrote` hears of each few keys. O(all data).
    ///
    /// # Errors
    /// That of the writer, or why the cut was given up. The caller then ends the cut.
    pub fn write<W: Write>(
        &self,
        out: &mut RdbWriter<W>,
        mut wrote: impl FnMut(u64),
    ) -> io::Result<()> {
        let mut db = None;
        let databases = DbIndex::all(self.sizes.len() as u32);
        for (own, (keys, with_deadline)) in databases.zip(&self.sizes) {
            if *keys > 0 {
                db = Some(own);
                out.select_db(u64::from(own.number()));
                out.resize_db(*keys, *with_deadline);
            }
        }
        while self.keys_written() < self.keys() {
            for piece in self.queue.take(WRITER_WAIT) {
                let weight = piece.weight();
                let written = self.write_piece(piece, &mut db, out);
                self.queue.forget(&weight);
                self.written.fetch_add(written, Ordering::Relaxed);
                out.check()?;
                wrote(written);
                self.check()?;
            }
            self.check()?;
        }
        if self.keys_written() != self.keys() {
            self.give_up("internal error: keys were emitted twice");
        }
        self.check()?;
        out.check()
    }

    /// The number of keys.
    fn write_piece<W: Write>(
        &self,
        piece: Piece,
        db: &mut Option<DbIndex>,
        out: &mut RdbWriter<W>,
    ) -> u64 {
        if db.replace(piece.db()) != Some(piece.db()) {
            out.select_db(u64::from(piece.db().number()));
        }
        piece.write(out)
    }

    fn check(&self) -> io::Result<()> {
        match self.failure.lock().even_poisoned().as_ref() {
            Some(reason) => Err(io::Error::other(reason.clone())),
            None => Ok(()),
        }
    }

    /// A slot has emitted all that it owed.
    fn finish(&self, progress: &progress::SlotProgress) {
        if progress.emitted != progress.count {
            self.give_up("internal error: a slot has not emitted what it held");
        }
    }
}

#[cfg(test)]
mod tests;
