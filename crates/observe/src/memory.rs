//! The memory of the process, as reported by the allocator and the kernel.

use brisk_config::Config;
use brisk_reactor::unread_bytes;
use brisk_structures::{alloc, chunk, reclaim};
use rustix::thread;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns the number of allocated bytes, counted by size class. O(threads).
#[inline]
pub fn used() -> u64 {
    alloc::allocated() as u64
}

/// Returns by how many bytes the used memory exceeds `max`. Three kinds of memory do not count.
/// O(threads).
/// - Memory that this thread has released and is about to free: otherwise eviction would continue
///   for memory that will be free anyway.
/// - Memory that is set aside: by long commands, and for replies that are held back.
/// - Output that clients have not read, up to `unread_max` ([`output_total_limit`]): a client must
///   not cause evictions by not reading. Beyond that limit the process itself would run out of
///   memory.
#[inline]
pub fn above(max: u64, unread_max: u64) -> u64 {
    let used = used();
    if used <= max {
        return 0;
    }
    let passing = alloc::bytes_set_aside().saturating_add(reclaim::pending_bytes() as u64);
    let passing = passing.saturating_add(unread().min(unread_max));
    used.saturating_sub(passing).saturating_sub(max)
}

/// Returns the limit on the unread output of all clients together (`output-total-limit`), in bytes.
/// Above it, pipelines stop earlier, and further output counts for eviction.
pub fn output_total_limit(config: &Config) -> u64 {
    match config.clients.output_total_limit {
        0 => total_system() / 4,
        limit => limit,
    }
}

/// Returns the used bytes that do not count in [`above`], except those that this thread is about to
/// free: output that clients have not read, and memory that is set aside. O(threads).
pub fn not_counted_for_eviction(unread_max: u64) -> u64 {
    alloc::bytes_set_aside().saturating_add(unread().min(unread_max))
}

/// Returns the output that clients have not read: buffers, and chunks of values that the keyspace
/// has released. O(threads).
fn unread() -> u64 {
    unread_bytes().saturating_add(chunk::orphaned_bytes())
}

/// Returns the resident bytes of the process, as reported by the kernel; 0 if the kernel does not
/// report them.
pub fn resident() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * brisk_reactor::page_bytes()
}

/// The memory that each layer holds in order to provide the used memory, from the innermost layer
/// outward.
#[derive(Debug, Clone, Copy)]
pub struct Holding {
    pub allocated: u64,
    /// Pages of the allocator that are at least partly in use.
    pub active: u64,
    /// All pages of the allocator.
    pub held: u64,
    /// The memory of the process according to the kernel. It can be less than `held`, because
    /// untouched pages have no memory yet.
    pub resident: u64,
}

impl Holding {
    /// Queries the allocator, in addition to the given numbers. An allocator that does not report
    /// its pages counts as holding the whole memory of the process. O(arenas).
    pub fn query(allocated: u64, resident: u64) -> Holding {
        let pages = alloc::held();
        let or_all = |bytes: Option<u64>| bytes.unwrap_or(resident);
        let (active, held) = (pages.map(|held| held.active), pages.map(|held| held.resident));
        Holding { allocated, active: or_all(active), held: or_all(held), resident }
    }

    /// Returns three gaps as ratio and bytes: between the allocator's used pages and their content,
    /// between all of its pages and the used ones, and between the process and the allocator.
    pub fn gaps(&self) -> [(f64, i64); 3] {
        [
            gap(self.active, self.allocated),
            gap(self.held, self.active),
            gap(self.resident, self.held),
        ]
    }

    /// Returns the gap between the memory of the process and the used memory.
    pub fn gap(&self) -> (f64, i64) {
        gap(self.resident, self.allocated)
    }
}

fn gap(outer: u64, inner: u64) -> (f64, i64) {
    (outer as f64 / inner.max(1) as f64, outer as i64 - inner as i64)
}

/// Huge pages are worthwhile if at least this many bytes are allocated.
const HUGE_PAGES_FROM_BYTES: u64 = 24 << 20;

/// True while the process does without huge pages.
static HUGE_PAGES_SPARED: AtomicBool = AtomicBool::new(false);

/// Turns huge pages off, although the allocator requests them, until there is enough data. A huge
/// page takes 2 MiB however little of it is used, so a small server would take several times the
/// memory it needs. If huge pages were forbidden when the process started, they stay off.
pub fn spare_huge_pages() {
    let allowed = matches!(thread::transparent_huge_pages_are_disabled(), Ok(false));
    let spared = allowed && thread::disable_transparent_huge_pages(true).is_ok();
    HUGE_PAGES_SPARED.store(spared, Ordering::Relaxed);
}

/// Turns huge pages on if there is enough data, because the CPU translates addresses faster with
/// them (see `brisk_structures::alloc`).
pub fn take_huge_pages_if_worth(give_way: fn()) {
    if HUGE_PAGES_SPARED.load(Ordering::Relaxed) && used() >= HUGE_PAGES_FROM_BYTES {
        HUGE_PAGES_SPARED.store(false, Ordering::Relaxed);
        // If this fails, the server works without huge pages.
        if thread::disable_transparent_huge_pages(false).is_ok() {
            let _ = std::thread::Builder::new().name("brisk-pages".to_owned()).spawn(move || {
                give_way();
                if let Ok(mappings) = std::fs::read_to_string("/proc/self/smaps") {
                    alloc::make_huge_pages(&mappings);
                }
            });
        }
    }
}

/// Returns the memory of the machine in bytes; 0 if the kernel does not report it. Read once.
pub fn total_system() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(read_total_system)
}

fn read_total_system() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
