//! Configuration: the directives, their settings, files, command line, CONFIG GET, SET and REWRITE.
//!
//! ```text
//!  command line ── args ──┐
//!  file, stdin ── file ───┼─> Directive::set ──> Config (plain data) ──> Arc<Config> for readers
//!  CONFIG SET ─── store ──┘        │ one row per directive: name, type, default, flags, field
//!  CONFIG GET <── Directive::show ─┤
//!  CONFIG REWRITE <── Directive::lines
//! ```
//!
//! A directive is a row in `directives/<theme>.rs`, next to the struct whose field it sets;
//! everything else is derived from the row. Invariants:
//!  1. A `Config` that is visible to others has passed every row's checks. It is built by
//!     `Config::default`, and changed only on a copy, which replaces the old one after all values
//!     were accepted.
//!  2. `Directive::set` reads the output of `Directive::lines` back as the same value.
//!
//! There are no sockets and no threads here. The hook of `Store::set` applies a change elsewhere
//! (rebinding a port, raising a limit). Start-up checks of the host are in `system`.
#![forbid(unsafe_code)]

pub mod args;
pub mod choice;
mod config;
pub mod directive;
pub mod directives;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
pub mod glob;
mod include;
pub mod notify;
mod rewrite;
mod special;
mod store;
pub mod system;
mod template;
pub mod value;
mod words;

pub use config::{Config, HZ_RANGE, REPL_BACKLOG_BYTES_MIN};
pub use directive::LineJudge;
pub use error::{ConfigError, FileError, Rejection, RewriteError};
pub use file::{DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, load};
pub use rewrite::replace as replace_file;
pub use rewrite::{Added, Replacement};
pub use special::{BIND_ADDRESSES_MAX, PERCENTILES_MAX, SAVE_RULES_MAX, THREADS_MAX};
pub use special::{os_reason, plain_or_quoted};
pub use store::{Caller, Store};
pub use template::template;

pub use words::{is_blank, quote, split as split_words};

#[cfg(test)]
pub(crate) mod tests;
