//! Quiescent-state reclamation: frees replaced bucket arrays once no prefetch can read them.
//!
//! Prefetch passes read bucket arrays without the slot's lock. A thread that does so registers as a
//! [`Participant`] and announces batch boundaries, at which it holds no array pointer that it read
//! before. An array that was unlinked under its slot's lock is *retired* with a stamp from a global
//! counter. It is freed once every online participant has announced a boundary later than the
//! stamp. Threads without a participant never prefetch, so nothing waits for them. They may retire
//! arrays. The protocol itself, without memory management, is in `reclaim/epochs.rs`.
//!
//! Invariants
//!  1. A retired allocation is unreachable for every read that starts after the call, was made by
//!     the global allocator with the given layout, and is freed by no other code.
//!  2. A participant reads arrays only between a boundary (or `online`) and the next boundary (or
//!     `offline`), and keeps no pointer across a boundary.
//!  3. Limbo lists are ordered by stamp: they are filled by one thread, or under the orphans' lock.
//!
//! Bounds: at most [`PARTICIPANTS_MAX`] participants; a boundary frees at most
//! [`FREED_PER_BOUNDARY`] arrays. Limbo holds the arrays retired between two boundaries of the
//! slowest participant, which must therefore go offline before it waits for anything.

mod epochs;
#[cfg(all(test, loom))]
mod model;

use crate::poison::EvenPoisoned;
use epochs::{Epochs, FIRST, OFFLINE, Word};
use std::alloc::{Layout, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{self, AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of threads that are registered at the same time.
pub const PARTICIPANTS_MAX: usize = 256;
/// Maximum number of arrays that one boundary frees, so that it does not stall a batch for long.
pub const FREED_PER_BOUNDARY: usize = 512;
/// The same limit in bytes, which only the last array may exceed. Large arrays take longest to
/// free.
const FREED_BYTES_PER_BOUNDARY: usize = 2 << 20;

/// Capacity that a thread's limbo list keeps when it is empty.
const LIMBO_KEPT: usize = 64;

static EPOCHS: Epochs<PARTICIPANTS_MAX> = Epochs {
    counter: AtomicU64::new(FIRST),
    claimed_max: AtomicUsize::new(0),
    words: [const { Word { seen: AtomicU64::new(OFFLINE), claimed: AtomicBool::new(false) } };
        PARTICIPANTS_MAX],
};
static ORPHANS: Mutex<VecDeque<Retired>> = Mutex::new(VecDeque::new());
static ORPHAN_COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LOCAL: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

/// An unlinked allocation.
struct Retired {
    pointer: *mut u8,
    layout: Layout,
    stamp: u64,
}

// SAFETY: by 1 its holder is the only owner of the bytes, which are plain memory.
unsafe impl Send for Retired {}

impl Retired {
    fn free(self) {
        // SAFETY: 1, and the caller saw every online participant pass the stamp (2).
        unsafe { dealloc(self.pointer, self.layout) };
    }
}

/// The state of a registered thread.
struct Local {
    index: usize,
    online: Cell<bool>,
    limbo: RefCell<VecDeque<Retired>>,
    limbo_len: Cell<usize>,
    limbo_bytes: Cell<usize>,
}

impl Local {
    #[inline]
    fn announce_boundary(&self) {
        EPOCHS.announce_boundary(self.index);
        self.collect_if_any();
    }

    #[inline]
    fn collect_if_any(&self) {
        if self.limbo_len.get() | ORPHAN_COUNT.load(Ordering::Relaxed) != 0 {
            self.collect();
        }
    }

    #[cold]
    fn collect(&self) {
        let safe = EPOCHS.passed_by_all();
        let mut limbo = self.limbo.borrow_mut();
        let freed = free_up_to(&mut limbo, safe);
        self.limbo_len.set(limbo.len());
        self.limbo_bytes.set(self.limbo_bytes.get() - freed);
        if limbo.is_empty() && limbo.capacity() > LIMBO_KEPT {
            *limbo = VecDeque::new();
        }
        drop(limbo);
        // Only one thread at a time collects the orphans; others continue.
        if ORPHAN_COUNT.load(Ordering::Relaxed) != 0
            && let Ok(mut orphans) = ORPHANS.try_lock()
        {
            collect_orphans(&mut orphans);
        }
    }
}

/// A thread's permission to prefetch. Not `Send`: it represents the thread that registered.
/// Dropping it hands its unfreed arrays to the other threads.
pub struct Participant {
    local: Rc<Local>,
    not_send: PhantomData<*const ()>,
}

impl Participant {
    /// Registers the calling thread and sets it online. `None` if the thread is already registered
    /// or [`PARTICIPANTS_MAX`] others are.
    #[must_use]
    pub fn register() -> Option<Self> {
        LOCAL.with_borrow_mut(|slot| {
            if slot.is_some() {
                return None;
            }
            let local = Rc::new(Local {
                index: EPOCHS.claim()?,
                online: Cell::new(true),
                limbo: RefCell::default(),
                limbo_len: Cell::new(0),
                limbo_bytes: Cell::new(0),
            });
            *slot = Some(Rc::clone(&local));
            Some(Self { local, not_send: PhantomData })
        })
    }

    /// Announces that the thread will prefetch again. Costs a fence.
    pub fn online(&self) {
        EPOCHS.online(self.local.index);
        self.local.online.set(true);
    }

    /// Announces that the thread prefetches nothing until it calls `online`. Must be called before
    /// anything that may wait.
    pub fn offline(&self) {
        EPOCHS.offline(self.local.index);
        self.local.online.set(false);
        self.local.collect_if_any();
    }

    /// Returns true if the thread counts as one that may be prefetching.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.local.online.get()
    }

    /// Announces a batch boundary: the thread holds no pointers that it read before. Costs one load
    /// and one store if there is nothing to free. Must not be called while offline.
    #[inline]
    pub fn announce_boundary(&self) {
        debug_assert!(self.is_online());
        self.local.announce_boundary();
    }

    /// Returns the number of allocations that this thread has retired and not freed yet.
    #[must_use]
    pub fn limbo_len(&self) -> usize {
        self.local.limbo_len.get()
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        EPOCHS.release(self.local.index);
        // If the thread-local has already been destroyed, it holds nothing.
        let _ = LOCAL.try_with(|slot| slot.borrow_mut().take());
        let limbo = std::mem::take(&mut *self.local.limbo.borrow_mut());
        self.local.limbo_len.set(0);
        self.local.limbo_bytes.set(0);
        let mut orphans = orphans();
        orphans.extend(limbo);
        // Merges two ordered lists: because of the order, collecting can stop at the first array
        // that is too young (3).
        orphans.make_contiguous().sort_by_key(|retired| retired.stamp);
        collect_orphans(&mut orphans);
    }
}

/// Frees the front of `limbo` as far as `safe` allows, and returns the bytes.
fn free_up_to(limbo: &mut VecDeque<Retired>, safe: u64) -> usize {
    let mut bytes = 0;
    for _ in 0..FREED_PER_BOUNDARY {
        match limbo.pop_front_if(|retired| retired.stamp <= safe) {
            Some(retired) => {
                bytes += retired.layout.size();
                retired.free();
            }
            None => break,
        }
        if bytes >= FREED_BYTES_PER_BOUNDARY {
            break;
        }
    }
    bytes
}

/// Returns the bytes that the calling thread has retired and not freed yet, including their list.
/// These bytes are as good as free: only batch boundaries are missing. Returns 0 for a thread
/// without a participant, because other threads free its arrays.
#[must_use]
pub fn pending_bytes() -> usize {
    let of = |local: &Rc<Local>| {
        let places = local.limbo.borrow().capacity();
        let list = if places > LIMBO_KEPT { places * size_of::<Retired>() } else { 0 };
        local.limbo_bytes.get() + list
    };
    LOCAL.try_with(|slot| slot.borrow().as_ref().map_or(0, of)).unwrap_or(0)
}

fn local() -> Option<Rc<Local>> {
    LOCAL.try_with(|slot| slot.borrow().clone()).ok().flatten()
}

/// Announces a batch boundary of the calling thread within a command that retires much memory. The
/// thread must not be prefetching at the moment. Does nothing if the thread is not a participant or
/// is offline.
pub fn announce_boundary() {
    if let Some(local) = local().filter(|local| local.online.get()) {
        local.announce_boundary();
    }
}

/// Runs `wait`, which waits for other threads, with the calling thread offline, so that those
/// threads can free what they retire. The thread must not be prefetching at the moment.
pub fn offline_while<R>(wait: impl FnOnce() -> R) -> R {
    let Some(local) = local().filter(|local| local.online.get()) else { return wait() };
    EPOCHS.offline(local.index);
    let result = wait();
    EPOCHS.online(local.index);
    result
}

fn orphans() -> MutexGuard<'static, VecDeque<Retired>> {
    ORPHANS.lock().even_poisoned()
}

fn collect_orphans(orphans: &mut VecDeque<Retired>) {
    free_up_to(orphans, EPOCHS.passed_by_all());
    ORPHAN_COUNT.store(orphans.len(), Ordering::Relaxed);
}

/// Frees `pointer` once no participant can be reading it.
///
/// # Safety
/// Invariant 1: the allocation was made by the global allocator with `layout`, is unlinked, and
/// from now on belongs to this module alone.
pub(crate) unsafe fn retire(pointer: *mut u8, layout: Layout) {
    let retired = Retired { pointer, layout, stamp: EPOCHS.stamp() };
    if let Some(local) = local() {
        local.limbo_bytes.set(local.limbo_bytes.get() + layout.size());
        let mut limbo = local.limbo.borrow_mut();
        limbo.push_back(retired);
        local.limbo_len.set(limbo.len());
    } else {
        let mut orphans = orphans();
        // Threads may arrive here in a different order than that of their stamps (3).
        let at = orphans.partition_point(|other| other.stamp <= retired.stamp);
        orphans.insert(at, retired);
        collect_orphans(&mut orphans);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
