//! The libraries that scripts find beside Luau's own: `cjson`, `cmsgpack`, `struct`, `bit`.
//!
//! Results and error texts are those of the C libraries that Redis 7.0 links, their odd corners
//! included; `tests/tests/script_libraries.rs` compares both, expression by expression. What
//! differs:
//!
//! - Objects and maps are written in the order of Luau's `next`, which is not that of Lua 5.1.
//! - `bad argument #1 to 'name'` gives the function's own name, where Lua 5.1 gives the name of the
//!   variable or field it was called by. Called by `pcall` itself, both say `'?'`.
//! - A result longer than [`RESULT_BYTES_MAX`] is an error, where Redis takes memory until it ends.
//! - `bit.tohex` with the smallest integer as its width gives eight digits, where Redis 7.0 writes
//!   beyond a buffer.
//!
//! Nothing here runs a script's code in the middle of its work, recurses by the input's depth beyond
//! sixteen levels, or allocates by a length before that many bytes are seen.
//!
//! `call.rs` is how functions get their arguments and raise errors, `number.rs` reads and writes
//! numbers as C does. `fast.luau` has fast paths for usual calls of functions that scripts call
//! often; the Rust functions do everything else.

pub mod bit;
mod call;
pub mod cjson;
pub mod cmsgpack;
#[cfg(test)]
mod fast_tests;
mod number;
pub mod structs;
#[cfg(test)]
mod tests;

pub(crate) use call::type_name;
pub use number::format_number;
pub(crate) use number::{c_string, strtod, truncated};

/// The longest string a library makes: that of a Redis string. Tables can contain others many
/// times, so a small one may have a result without end.
pub const RESULT_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// How many values Lua 5.1 lets a C function have on its stack. Nothing is put there now, but
/// depths and numbers of results end where they did.
pub(crate) const STACK_SLOTS_MAX: usize = 8_000;

/// The globals that they are.
pub(crate) const NAMES: &str = "bit cjson cmsgpack struct ";

/// Sets the globals `cjson`, `cmsgpack`, `struct` and `bit`.
pub fn install_all(lua: &mlua::Lua) -> mlua::Result<()> {
    cjson::install(lua)?;
    cmsgpack::install(lua)?;
    structs::install(lua)?;
    bit::install(lua)
}
