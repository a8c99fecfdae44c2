//! The bound on an interpreter's memory, when it holds, and when garbage is collected.
//!
//! While the bound is set, `mlua` makes each string and table in a protected call of its own, since
//! the allocator may refuse. That is right while a script runs, which can ask for any amount in one
//! step. It is not needed while Rust hands over words and replies, which are there already: then
//! the bound is lifted, and set again before the machine runs on.
//!
//! So an interpreter takes [`MEMORY_BYTES_MAX`] at most, and what is handed over at that moment:
//! the words of a request, or one element of a reply ([`check`] is asked behind each).
//!
//! The machine's own collector lets memory grow to twice of what was in use, whatever the bound is,
//! and the allocator cannot collect. So with more in use than half of the bound, [`Collector`]
//! collects between two steps of a script.

use mlua::{IntoLua, Lua, Result, Value};
use std::cell::Cell;

/// Memory that one interpreter may take, in bytes. What needs more ends with an error.
pub const MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Below this the machine's own collector is left to itself; above, garbage is collected behind a
/// script when what is in use has doubled.
const COLLECTED_BYTES_MIN: usize = 16 * 1024 * 1024;
/// So much more is in use when garbage is collected again, at least. Else each step would collect
/// when hardly anything is left.
const GROWN_BYTES_MIN: usize = MEMORY_BYTES_MAX / 64;

/// When garbage is collected.
pub(crate) struct Collector {
    /// Between two scripts, when so much is in use.
    between: Cell<usize>,
    /// Within a script, when so much is in use. Only a collection between two scripts raises `between`: most of
    /// what is in use within a script is garbage once it has ended.
    within: Cell<usize>,
}

impl Collector {
    pub(crate) fn new() -> Collector {
        Collector {
            between: Cell::new(COLLECTED_BYTES_MIN),
            within: Cell::new(COLLECTED_BYTES_MIN),
        }
    }

    /// Whether it is worth while between two scripts.
    pub(crate) fn is_due(&self, lua: &Lua) -> bool {
        lua.used_memory() >= self.between.get()
    }

    /// A script has failed for want of memory: what is garbage must not make the next one fail.
    pub(crate) fn hasten(&self) {
        self.between.set(0);
    }

    /// Within a script, which waits for it: only where the machine's collector
    /// could begin too late.
    pub(crate) fn make_room(&self, lua: &Lua) {
        if lua.used_memory() >= self.within.get().max(MEMORY_BYTES_MAX / 2) {
            self.collect_within(lua);
        }
    }

    /// Frees what nothing refers to any more, between two scripts. O(memory)
    pub(crate) fn collect(&self, lua: &Lua) {
        self.collect_within(lua);
        self.between.set(self.within.get());
    }

    fn collect_within(&self, lua: &Lua) {
        // A value that was handed over may have exceeded the bound:
        // collecting takes a little memory too.
        let unbounded = Unbounded::begin(lua);
        let _ = lua.gc_collect();
        drop(unbounded);
        let used = lua.used_memory();
        // When it has doubled, but before the bound would be reached.
        let more = used.min(MEMORY_BYTES_MAX.saturating_sub(used) / 2).max(GROWN_BYTES_MIN);
        self.within.set(COLLECTED_BYTES_MIN.max(used + more));
    }
}

/// While it lives, memory is not bounded.
pub(crate) struct Unbounded<'l>(&'l Lua);

impl Unbounded<'_> {
    pub(crate) fn begin(lua: &Lua) -> Result<Unbounded<'_>> {
        lua.set_memory_limit(0)?;
        Ok(Unbounded(lua))
    }

    /// Leaves the end to a [`Bounded`] that is handed over last.
    pub(crate) fn until_answered(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unbounded<'_> {
    fn drop(&mut self) {
        let _ = bound(self.0);
    }
}

/// A `nil` that sets the bound when it is handed to the machine.
#[derive(Clone, Copy)]
pub(crate) struct Bounded;

impl IntoLua for Bounded {
    #[inline]
    fn into_lua(self, lua: &Lua) -> Result<Value> {
        bound(lua)?;
        Ok(Value::Nil)
    }
}

/// Sets the bound.
pub(crate) fn bound(lua: &Lua) -> Result<()> {
    lua.set_memory_limit(MEMORY_BYTES_MAX).map(|_| ())
}

/// An error if the bound is exceeded.
pub(crate) fn check(lua: &Lua) -> Result<()> {
    if lua.used_memory() > MEMORY_BYTES_MAX {
        return Err(mlua::Error::MemoryError("not enough memory".into()));
    }
    Ok(())
}
