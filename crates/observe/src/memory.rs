//! What the process takes, as the allocator and the kernel tell it.

use brisk_config::Config;
use brisk_reactor::unread_bytes;
use brisk_structures::{alloc, chunk, reclaim};
use rustix::thread;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes handed out by the allocator and not given back, on the scale of size classes. O(threads).
#[inline]
pub fn used() -> u64 {
    alloc::allocated() as u64
}

/// How many bytes more than `max` are used. Three kinds of memory do not count. O(threads).
/// - Memory that this thread has released and is about to free: otherwise eviction would continue for
///   memory that will be free anyway.
/// - Memory that is set aside: by long commands, and for replies that are held back.
/// - Output that clients have not read, up to `unread_max` ([`output_total_limit`]): a client must not
///   cause evictions by not reading. Beyond that limit the process itself would run out of memory.
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

/// Bytes of unread output of all clients together (`output-total-limit`): from there on pipelines stop
/// earlier, and more output counts for eviction.
pub fn output_total_limit(config: &Config) -> u64 {
    match config.clients.output_total_limit {
        0 => total_system() / 4,
        limit => limit,
    }
}

/// Bytes that are used and do not count in [`above`], apart from those that this thread is about to
/// free: output that clients have not read, and memory that is set aside. O(threads).
pub fn not_counted_for_eviction(unread_max: u64) -> u64 {
    alloc::bytes_set_aside().saturating_add(unread().min(unread_max))
}

/// Output that clients have not read: buffers, and chunks of values that the keyspace has given up. O(threads).
fn unread() -> u64 {
    unread_bytes().saturating_add(chunk::orphaned_bytes())
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
    /// Asks the allocator, beside what is known; one that does not tell holds what the process
    /// holds. O(arenas).
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
pub fn take_huge_pages_if_worth(give_way: fn()) {
    if HUGE_PAGES_SPARED.load(Ordering::Relaxed) && used() >= HUGE_PAGES_FROM_BYTES {
        HUGE_PAGES_SPARED.store(false, Ordering::Relaxed);
        // Without them all works as well.
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

/// Bytes of memory the machine has; 0 if the kernel does not report it. Read once.
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
