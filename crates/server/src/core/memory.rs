//! How much memory the process uses, and what it got it from.

use crate::core::Core;
use crate::core::shared::Shared;
use brisk_engine::DbIndex;
use brisk_engine::keyspace::{Keys, SLOTS, Slot};
use brisk_structures::{alloc, reclaim};
use rustix::thread;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The allocator this program was built with: `mem_allocator` in INFO.
pub const ALLOCATOR: &str = if cfg!(feature = "jemalloc") {
    "jemalloc-5.3.0"
} else if cfg!(feature = "mimalloc") {
    "mimalloc"
} else {
    "libc"
};

/// Bytes handed out by the allocator and not given back, on the scale of size classes. O(threads).
#[inline]
pub fn used() -> u64 {
    alloc::allocated() as u64
}

/// How many bytes more than `max` are used. What this thread has given up and is about to free does
/// not count: who makes room would else go on evicting for what is free already. Nor does what is set
/// aside by long commands, whose clients Redis would make others wait for. O(threads).
#[inline]
pub fn above(max: u64) -> u64 {
    let used = used();
    if used <= max {
        return 0;
    }
    let passing = alloc::bytes_set_aside().saturating_add(reclaim::pending_bytes() as u64);
    used.saturating_sub(passing).saturating_sub(max)
}

/// Bytes of memory the process has resident, asked from the kernel; 0 if it does not tell.
pub fn resident() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * brisk_reactor::page_bytes()
}

/// What is held to have what is used, from the inside out.
#[derive(Debug, Clone, Copy)]
pub struct Holding {
    pub allocated: u64,
    /// Pages that the allocator has something in.
    pub active: u64,
    /// All pages that the allocator has.
    pub held: u64,
    /// What the process has, by the kernel's account. It can be less: pages that nobody has touched
    /// are not there yet.
    pub resident: u64,
}

impl Holding {
    /// Asks the allocator, beside what is known; one that does not tell holds what the process holds.
    /// O(arenas).
    pub fn ask(allocated: u64, resident: u64) -> Holding {
        let pages = alloc::held();
        let or_all = |bytes: Option<u64>| bytes.unwrap_or(resident);
        let (active, held) = (pages.map(|held| held.active), pages.map(|held| held.resident));
        Holding { allocated, active: or_all(active), held: or_all(held), resident }
    }

    /// How much the allocator's pages are above what is in them, what it keeps above those, and the
    /// process above the allocator: ratio and bytes.
    pub fn gaps(&self) -> [(f64, i64); 3] {
        [
            gap(self.active, self.allocated),
            gap(self.held, self.active),
            gap(self.resident, self.held),
        ]
    }

    /// How much the process has above what is in use.
    pub fn gap(&self) -> (f64, i64) {
        gap(self.resident, self.allocated)
    }
}

fn gap(outer: u64, inner: u64) -> (f64, i64) {
    (outer as f64 / inner.max(1) as f64, outer as i64 - inner as i64)
}

/// So many bytes are allocated before huge pages are worth it.
const HUGE_PAGES_FROM_BYTES: u64 = 24 << 20;

/// This process does without huge pages for now.
static HUGE_PAGES_SPARED: AtomicBool = AtomicBool::new(false);

/// Does without huge pages although the allocator asks for them, until there is much to keep: a
/// huge page takes 2 MiB whatever part of it is used, and a server with little to keep would take
/// several times what it needs. If whoever started the process forbade them, it stays like that.
pub fn spare_huge_pages() {
    let allowed = matches!(thread::transparent_huge_pages_are_disabled(), Ok(false));
    let spared = allowed && thread::disable_transparent_huge_pages(true).is_ok();
    HUGE_PAGES_SPARED.store(spared, Ordering::Relaxed);
}

/// Takes huge pages from now on if there is much to keep: with them the processor finds addresses
/// faster (see `brisk_structures::alloc`).
pub fn take_huge_pages_if_worth() {
    if HUGE_PAGES_SPARED.load(Ordering::Relaxed) && used() >= HUGE_PAGES_FROM_BYTES {
        HUGE_PAGES_SPARED.store(false, Ordering::Relaxed);
        // Without them all works as well.
        if thread::disable_transparent_huge_pages(false).is_ok() {
            let _ = std::thread::Builder::new().name("brisk-pages".to_owned()).spawn(|| {
                crate::core::long::yield_to_workers();
                if let Ok(mappings) = std::fs::read_to_string("/proc/self/smaps") {
                    alloc::make_huge_pages(&mappings);
                }
            });
        }
    }
}

/// Bytes of memory the machine has; 0 if the kernel does not tell.
pub fn total_system() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Bytes of the slots of one database, without their tables.
pub const DATABASE_BYTES: u64 = (SLOTS * size_of::<Slot>()) as u64;

/// Bytes that sessions take with their input and output. O(workers).
pub fn of_clients(shared: &Shared) -> u64 {
    shared.clients.weights.total()
}

/// What memory is used for, in bytes.
#[derive(Debug, Clone)]
pub struct Usage {
    pub allocated: u64,
    /// The most that was allocated whenever it was measured.
    pub peak: u64,
    /// Allocated before the first client came.
    pub startup: u64,
    pub resident: u64,
    pub holding: Holding,
    /// Sessions with their input and output.
    pub clients: u64,
    /// Keys of all databases.
    pub keys: u64,
    /// For each database with keys: what its slots and tables take besides the entries.
    pub databases: Vec<(DbIndex, u64)>,
}

impl Usage {
    /// Measures. O(slots of databases in use): not for what is asked many times a second.
    pub fn measure(core: &Core) -> Usage {
        let shared = &core.shared;
        let (allocated, resident) = (used(), resident());
        let load = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let count = shared.keyspace.database_count();
        let in_use = (0..count).map(DbIndex).filter(|db| shared.keyspace.key_count(*db) > 0);
        let databases: Vec<(DbIndex, u64)> = in_use.map(|db| (db, table_bytes(core, db))).collect();
        Usage {
            allocated,
            peak: shared
                .observe
                .figures
                .peak_memory
                .fetch_max(allocated, Ordering::Relaxed)
                .max(allocated),
            startup: load(&shared.observe.figures.startup_memory),
            resident,
            holding: Holding::ask(allocated, resident),
            clients: of_clients(shared),
            keys: databases.iter().map(|(db, _)| shared.keyspace.key_count(*db)).sum(),
            databases,
        }
    }

    /// All that is not keys and values.
    pub fn overhead(&self) -> u64 {
        let tables: u64 = self.databases.iter().map(|(_, bytes)| bytes).sum();
        self.startup + self.clients + tables
    }
}

fn table_bytes(core: &Core, db: DbIndex) -> u64 {
    let keys = Keys::unlocked(&core.shared.keyspace, &core.env, db);
    let mut bytes = DATABASE_BYTES;
    keys.each_slot(db, |_, slot| {
        bytes += slot.table().allocated_bytes() as u64;
        ControlFlow::Continue(())
    });
    bytes
}
