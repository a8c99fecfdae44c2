//! The bound on an interpreter's memory, and when it holds.
//!
//! While the bound is set, `mlua` makes each string and table in a protected call of its own, since
//! the allocator may refuse. That is right while a script runs, which can ask for any amount in one
//! step. It is not needed while Rust hands over words and replies, which are there already: then the
//! bound is lifted, and set again before the machine runs on.
//!
//! So an interpreter takes [`MEMORY_BYTES_MAX`] at most, and what is handed over at that moment: the
//! words of a request, or one element of a reply ([`check`] is asked behind each).

use mlua::{IntoLua, Lua, Result, Value};

/// Memory that one interpreter may take, in bytes. What needs more ends with an error.
pub const MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

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
