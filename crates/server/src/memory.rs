//! How much memory the process uses, and what it got it from.

use brisk_structures::alloc;

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

/// Bytes of memory the process has resident, asked from the kernel; 0 if it does not tell.
pub fn resident() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Bytes of memory the machine has; 0 if the kernel does not tell.
pub fn total_system() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return 0 };
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
