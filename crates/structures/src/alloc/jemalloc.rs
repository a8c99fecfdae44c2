//! The controls of jemalloc: what is set at start, written and read.

use super::Held;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::time::Duration;

/// Settings of jemalloc from the start: huge pages. A look-up is three cache misses, each with a
/// translation; with small pages the translations miss too. (GET at pipeline 100, 1 M keys: 15 %
/// less CPU.) Forking servers turn huge pages off because each page touched after a fork is copied
/// whole; this one does not fork. Its own data the allocator puts there once it has enough of it.
///
/// And to purge in a thread of its own: without, pages go back only when the arena that has them is
/// used again, so that after FLUSHALL an idle server keeps them all.
///
/// jemalloc reads the symbol as a C string, which ends with the zero byte.
#[used]
// SAFETY: the one definition of the name jemalloc declares weak, with its type: a pointer to a
// string that lives for ever.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(super) static JEMALLOC_SETTINGS: &[u8; 77] =
    b"thp:always,metadata_thp:auto,background_thread:true,max_background_threads:1\0";

/// So many pages may be left after purging: other threads free some at any time.
const LEFT_MAX: usize = 256;
/// How often a purge is requested, and the pause between.
const PURGES_MAX: usize = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// Has the allocator give the pages it keeps for later back to the system, those of all threads.
/// False if the allocator is another. Takes as long as the system needs for the pages.
pub fn purge() -> bool {
    // An arena that is being purged already, by the thread for that or by one that uses it, passes
    // over the request, although the other gives back only what is due: so the request is repeated.
    // 4096 is the number that stands for all arenas.
    for _ in 0..PURGES_MAX {
        if !write_control(c"arena.4096.purge", None::<u64>) {
            return false;
        }
        // Figures are as old as the last epoch that was set.
        write_control(c"epoch", Some(1u64));
        if read_control(c"stats.arenas.4096.pdirty").is_none_or(|left| left <= LEFT_MAX) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Whether the allocator gives memory back in a thread of its own (see [`JEMALLOC_SETTINGS`]).
/// False if the allocator is another.
pub fn purge_in_background(on: bool) -> bool {
    write_control(c"background_thread", Some(on))
}

/// What the allocator holds. Its statistics, which would cost each allocation something, are not
/// compiled in; it counts pages all the same. O(arenas).
pub fn held() -> Option<Held> {
    write_control(c"epoch", Some(1u64));
    let page_bytes = read_control(c"arenas.page")?;
    let active = read_control(c"stats.arenas.4096.pactive")?;
    let kept = read_control(c"stats.arenas.4096.pdirty")?;
    let bytes = |pages: usize| pages.saturating_mul(page_bytes) as u64;
    Some(Held { active: bytes(active), resident: bytes(active.saturating_add(kept)) })
}

/// Gives the control `name` a value, if it takes one; false if it refused, as it does if the value
/// has not the size it wants.
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

/// The figure `name`; nothing if there is none.
fn read_control(name: &CStr) -> Option<usize> {
    let (mut figure, mut length) = (0usize, size_of::<usize>());
    // SAFETY: the name ends with a zero byte; the control writes `length` bytes at most to `figure`
    // before it returns, and takes nothing.
    let result = unsafe {
        let figure = (&raw mut figure).cast();
        tikv_jemalloc_sys::mallctl(name.as_ptr(), figure, &raw mut length, null_mut(), 0)
    };
    (result == 0).then_some(figure)
}
