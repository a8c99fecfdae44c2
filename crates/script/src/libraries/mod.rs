//! The libraries of scripts in addition to Luau's own: `cjson`, `cmsgpack`, `struct`, `bit`.
//!
//! Results and error texts are those of the C libraries that Redis 7.0 links, including their
//! quirks; `tests/tests/script_libraries.rs` compares the libraries with those of Redis, expression
//! by expression. The differences:
//!
//! - Objects and maps are written in the order of Luau's `next`, which is not that of Lua 5.1.
//! - `bad argument #1 to 'name'` contains the function's own name. In Lua 5.1 it is the name of the
//!   variable or field through which it was called. If `pcall` itself is the caller, the name is
//!   `'?'` in both.
//! - A result longer than [`RESULT_BYTES_MAX`] is an error, whereas Redis allocates until memory
//!   runs out.
//! - `bit.tohex` with the smallest integer as its width returns eight digits, whereas Redis 7.0
//!   writes beyond a buffer.
//!
//! These functions never run a script's code in the middle of their work. They do not recurse with
//! the input's nesting beyond sixteen levels. They allocate a declared length only as its bytes are
//! read.
//!
//! `call.rs` passes arguments to functions and raises errors; `number.rs` reads and writes numbers
//! as C does. `fast.luau` has fast paths for the usual cases of functions that scripts call often;
//! the Rust functions handle everything else.

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

/// Maximum length of a string that a library creates. Redis strings have the same limit. A table
/// can contain another table many times, so the result for a small table may be huge.
pub const RESULT_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// The number of stack slots that Lua 5.1 gives a C function. The libraries here do not use that
/// stack, but nesting depths and numbers of results have the same limits.
pub(crate) const STACK_SLOTS_MAX: usize = 8_000;

/// The names of the libraries' globals.
pub(crate) const NAMES: &str = "bit cjson cmsgpack struct ";

/// Sets the globals `cjson`, `cmsgpack`, `struct` and `bit`.
pub fn install_all(lua: &mlua::Lua) -> mlua::Result<()> {
    cjson::install(lua)?;
    cmsgpack::install(lua)?;
    structs::install(lua)?;
    bit::install(lua)
}
