//! The memory limit of an interpreter, when it applies, and when garbage is collected.
//!
//! While the limit is set, `mlua` creates each string and table in its own protected call, because
//! the allocator may fail. That is necessary while a script runs, which can request any amount in
//! one step. It is not necessary while Rust passes arguments and replies to the VM, whose size is
//! known: the limit is then suspended, and set again before the VM continues.
//!
//! An interpreter therefore takes at most [`MEMORY_BYTES_MAX`] plus the values that are being
//! passed: the arguments of a request, or one element of a reply ([`check`] runs after each).
//!
//! The VM's own collector lets memory grow to twice the amount in use, regardless of the limit, and
//! the allocator cannot collect. Therefore [`Collector`] collects between two steps of a script if
//! more than half of the limit is in use.

use mlua::{IntoLua, Lua, Result, Value};
use std::cell::Cell;

/// The memory limit of one interpreter, in bytes. A script that needs more ends with an error.
pub const MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// If less memory than this is in use, only the VM's own collector runs. Otherwise, garbage is also
/// collected after a script if the memory in use has doubled.
const COLLECTED_BYTES_MIN: usize = 16 * 1024 * 1024;
/// Minimum growth before garbage is collected again. Otherwise every step would collect when the
/// limit is almost reached.
const GROWN_BYTES_MIN: usize = MEMORY_BYTES_MAX / 64;

/// Decides when garbage is collected.
pub(crate) struct Collector {
    /// The amount of memory in use at which garbage is collected between two scripts.
    between: Cell<usize>,
    /// The amount of memory in use at which garbage is collected within a script. Only a collection
    /// between two scripts raises `between`: most of the memory in use within a script is garbage
    /// after it has ended.
    within: Cell<usize>,
}

impl Collector {
    pub(crate) fn new() -> Collector {
        Collector {
            between: Cell::new(COLLECTED_BYTES_MIN),
            within: Cell::new(COLLECTED_BYTES_MIN),
        }
    }

    /// True if a collection between two scripts is worthwhile.
    pub(crate) fn is_due(&self, lua: &Lua) -> bool {
        lua.used_memory() >= self.between.get()
    }

    /// Called when a script has failed because of the memory limit: garbage must not make the next
    /// one fail.
    pub(crate) fn hasten(&self) {
        self.between.set(0);
    }

    /// Collects within a script, which has to wait for this. Does so only if the VM's collector
    /// might begin too late.
    pub(crate) fn make_room(&self, lua: &Lua) {
        if lua.used_memory() >= self.within.get().max(MEMORY_BYTES_MAX / 2) {
            self.collect_within(lua);
        }
    }

    /// Frees the memory that nothing refers to, between two scripts. O(memory)
    pub(crate) fn collect(&self, lua: &Lua) {
        self.collect_within(lua);
        self.between.set(self.within.get());
    }

    fn collect_within(&self, lua: &Lua) {
        // A value that was passed may have exceeded the limit, and collecting takes a little memory
        // too.
        let unbounded = Unbounded::begin(lua);
        let _ = lua.gc_collect();
        drop(unbounded);
        let used = lua.used_memory();
        // The next collection is due when the amount has doubled, but before it reaches the limit.
        let more = used.min(MEMORY_BYTES_MAX.saturating_sub(used) / 2).max(GROWN_BYTES_MIN);
        self.within.set(COLLECTED_BYTES_MIN.max(used + more));
    }
}

/// Memory is not limited while this value exists.
pub(crate) struct Unbounded<'l>(&'l Lua);

impl Unbounded<'_> {
    pub(crate) fn begin(lua: &Lua) -> Result<Unbounded<'_>> {
        lua.set_memory_limit(0)?;
        Ok(Unbounded(lua))
    }

    /// Leaves it to a [`Bounded`], which is passed last, to restore the limit.
    pub(crate) fn leave_to_bounded(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unbounded<'_> {
    fn drop(&mut self) {
        let _ = bound(self.0);
    }
}

/// A `nil` that sets the limit when it is passed to the VM.
#[derive(Clone, Copy)]
pub(crate) struct Bounded;

impl IntoLua for Bounded {
    #[inline]
    fn into_lua(self, lua: &Lua) -> Result<Value> {
        bound(lua)?;
        Ok(Value::Nil)
    }
}

/// Sets the limit.
pub(crate) fn bound(lua: &Lua) -> Result<()> {
    lua.set_memory_limit(MEMORY_BYTES_MAX).map(|_| ())
}

/// Returns an error if the limit is exceeded.
pub(crate) fn check(lua: &Lua) -> Result<()> {
    if lua.used_memory() > MEMORY_BYTES_MAX {
        return Err(mlua::Error::MemoryError("not enough memory".into()));
    }
    Ok(())
}
