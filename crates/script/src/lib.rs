//! Scripting for Brisk, on Luau through `mlua`.
//!
//! - [`libraries`]: `cjson`, `cmsgpack`, `struct` and `bit`, as Redis offers them to scripts.
//! - [`fuzzing`]: foreign bytes into everything in these libraries that decodes.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod fuzzing;
pub mod libraries;
