//! The settings of jemalloc at startup, and its controls, which are written and read at run time.

use super::Held;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::time::Duration;

/// The settings of jemalloc at startup: huge pages and a background thread.
///
/// Huge pages: a lookup takes three cache misses, each with an address translation. With small
/// pages, the translations miss too. (With huge pages, GET at pipeline depth 100 and 1 M keys takes
/// 15 % less CPU time.) Servers that fork turn huge pages off because each page touched after a
/// fork is copied as a whole; this server does not fork. The allocator also uses huge pages for its
/// own metadata once there is enough of it.
///
/// Background thread: it purges unused pages. Without it, pages are only released when their arena
/// is used again, so an idle server would keep all memory after FLUSHALL.
///
/// jemalloc reads the symbol as a C string, which ends with the zero byte.
#[used]
// SAFETY: the only definition of the name that jemalloc declares weak, with its type: a pointer to
// a string that lives forever.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(super) static JEMALLOC_SETTINGS: &[u8; 77] =
    b"thp:always,metadata_thp:auto,background_thread:true,max_background_threads:1\0";

/// Number of pages that may remain after purging, because other threads may free pages at any time.
const LEFT_MAX: usize = 256;
/// Maximum number of purge requests, and the pause between two requests.
const PURGES_MAX: usize = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// Makes the allocator return unused pages of all threads to the system. Returns false if the
/// allocator is not jemalloc. Takes as long as the system needs for the pages.
pub fn purge() -> bool {
    // An arena ignores the request while it is already being purged by the background thread or by
    // a thread that uses it. That other purge releases only pages that are due. So the request is
    // repeated. 4096 is the number that stands for all arenas.
    for _ in 0..PURGES_MAX {
        if !write_control(c"arena.4096.purge", None::<u64>) {
            return false;
        }
        // jemalloc updates its statistics only when the epoch is set.
        write_control(c"epoch", Some(1u64));
        if read_control(c"stats.arenas.4096.pdirty").is_none_or(|left| left <= LEFT_MAX) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Turns the allocator's background purging on or off (see [`JEMALLOC_SETTINGS`]). Returns false if
/// the allocator is not jemalloc.
pub fn purge_in_background(on: bool) -> bool {
    write_control(c"background_thread", Some(on))
}

/// Returns how much memory the allocator holds. Its full statistics would slow down each
/// allocation, so they are not compiled in; pages are counted anyway. O(arenas).
pub fn held() -> Option<Held> {
    write_control(c"epoch", Some(1u64));
    let page_bytes = read_control(c"arenas.page")?;
    let active = read_control(c"stats.arenas.4096.pactive")?;
    let kept = read_control(c"stats.arenas.4096.pdirty")?;
    let bytes = |pages: usize| pages.saturating_mul(page_bytes) as u64;
    Some(Held { active: bytes(active), resident: bytes(active.saturating_add(kept)) })
}

/// Writes the control `name`, or triggers it if it takes no value. Returns false if the control
/// rejects the value, for example because of its size.
fn write_control<T: Copy>(name: &CStr, value: Option<T>) -> bool {
    let mut value = value;
    let (pointer, length) = match &mut value {
        Some(value) => (std::ptr::from_mut(value).cast::<c_void>(), size_of::<T>()),
        None => (null_mut(), 0),
    };
    // SAFETY: the name ends with a zero byte; the value is null or leads to `length` bytes, which
    // the control reads before it returns. Nothing is read.
    let result = unsafe {
        tikv_jemalloc_sys::mallctl(name.as_ptr(), null_mut(), null_mut(), pointer, length)
    };
    result == 0
}

/// Reads the control `name`; `None` if it does not exist.
fn read_control(name: &CStr) -> Option<usize> {
    let (mut value, mut length) = (0usize, size_of::<usize>());
    // SAFETY: the name ends with a zero byte. The control writes at most `length` bytes to `value`
    // before it returns, and takes no input.
    let result = unsafe {
        let value = (&raw mut value).cast();
        tikv_jemalloc_sys::mallctl(name.as_ptr(), value, &raw mut length, null_mut(), 0)
    };
    (result == 0).then_some(value)
}
