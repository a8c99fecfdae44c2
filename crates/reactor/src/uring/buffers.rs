//! The receive buffers of a ring: their memory, and the ring of free buffers that is shared with
//! the kernel.
//!
//! Invariants (SAFETY notes cite them by number)
//!  1. Both mappings live until the ring is closed and the kernel has no receive in progress, or
//!     forever (`leak`).
//!  2. A buffer is either provided (the kernel may write to it, and we never touch it) or ours,
//!     from the completion that named it until `give_back`. `filled` is called only in between. The
//!     borrow checker ensures that its slice is dropped before `give_back`.
//!  3. `id < COUNT` and `len <= BYTES` for every buffer that the kernel names. Both are checked
//!     before memory is touched.
//!  4. Only this thread writes entries and the tail. The kernel reads only entries before the tail
//!     that it has loaded.
//!
//! Only a few buffers are provided at first: the kernel uses them in turn, and a small set stays in
//! the cache. Whenever the buffers run out, the set is doubled.

use io_uring::{IoUring, types::BufRingEntry};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Size of one buffer: a pipeline of a hundred small commands fits.
pub(super) const BYTES: usize = 16 * 1024;
/// Number of entries of the ring (a power of two), and therefore the maximum number of buffers. The
/// buffers take 16 MiB, of which only the used part is resident.
const COUNT: u16 = 1024;
/// Number of buffers provided at first: 1 MiB.
const COUNT_FIRST: u16 = 64;
/// The number of the buffer group within the ring.
pub(super) const GROUP: u16 = 0;

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
    leak: bool,
}

impl Mapping {
    fn new(len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh anonymous mapping touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len, leak: false })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.leak {
            // SAFETY: invariant 1: this is our mapping, and nothing uses it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

#[derive(Debug)]
pub(super) struct Buffers {
    entries: Mapping,
    memory: Mapping,
    tail: u16,
    provided: u16,
    unpublished: bool,
}

impl Buffers {
    pub(super) fn new(ring: &IoUring) -> io::Result<Self> {
        let entries = Mapping::new(usize::from(COUNT) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(COUNT) * BYTES)?;
        let address = entries.start.as_ptr() as u64;
        // SAFETY: invariant 1: the entries outlive the registration; a mapping is page-aligned as
        // required.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, COUNT, GROUP, 0)? };
        let mut buffers = Self { entries, memory, tail: 0, provided: 0, unpublished: false };
        buffers.provide(COUNT_FIRST);
        buffers.publish();
        Ok(buffers)
    }

    fn provide(&mut self, count: u16) {
        let until = (self.provided + count).min(COUNT);
        for id in self.provided..until {
            self.give_back(id);
        }
        self.provided = until;
    }

    /// Doubles the set of buffers, up to its limit.
    pub(super) fn grow(&mut self) {
        self.provide(self.provided);
    }

    /// Returns the received bytes in a buffer that a completion named.
    pub(super) fn filled(&self, id: u16, len: usize) -> &[u8] {
        assert!(id < COUNT && len <= BYTES, "invariant 3");
        // SAFETY: invariants 2 and 3: inside the mapping, and ours to read for as long as `self` is
        // borrowed.
        unsafe {
            let start = self.memory.start.as_ptr().add(usize::from(id) * BYTES);
            std::slice::from_raw_parts(start, len)
        }
    }

    /// Returns a buffer to the kernel once [`Buffers::publish`] is called.
    pub(super) fn give_back(&mut self, id: u16) {
        assert!(id < COUNT, "invariant 3");
        let slot = usize::from(self.tail & (COUNT - 1));
        // SAFETY: invariants 1 and 4: inside the mapping, and not before the tail that the kernel
        // has loaded. The tail itself is in a field of entry 0 that the setters do not touch.
        unsafe {
            let entry = &mut *self.entries.start.cast::<BufRingEntry>().as_ptr().add(slot);
            entry.set_addr(self.memory.start.as_ptr().add(usize::from(id) * BYTES) as u64);
            #[expect(clippy::cast_possible_truncation, reason = "16 KiB")]
            entry.set_len(BYTES as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.unpublished = true;
    }

    /// Makes the returned buffers visible to the kernel.
    pub(super) fn publish(&mut self) {
        if !std::mem::take(&mut self.unpublished) {
            return;
        }
        // SAFETY: invariants 1 and 4: the tail is inside the mapping, aligned, and shared through
        // atomics only.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.start.cast::<BufRingEntry>().as_ptr());
            (*tail.cast::<AtomicU16>()).store(self.tail, Ordering::Release);
        }
    }

    /// Leaks the memory instead of unmapping it: the kernel may still write there.
    pub(super) fn leak(&mut self) {
        self.entries.leak = true;
        self.memory.leak = true;
    }
}
