//! Scripts: Luau with the environment that Redis gives to Lua.
//!
//! ```text
//!  host (the server) ── Interpreter ── prelude.luau ── a script or a function
//!        ▲ call, log, pace                 └ redis.call …
//!        └───────────────────────────────────┘
//! ```
//!
//! An [`Interpreter`] belongs to one thread. It compiles scripts, runs them and loads libraries of
//! functions. All effects of a script go through its [`Host`]. The interpreter knows nothing else:
//! no keyspace, no sessions, no clock. When the host requests it, a slow script is suspended
//! between two steps, and resumed later.
//!
//! | file | about |
//! |---|---|
//! | `interpreter` | compiling, running, suspending, stopping |
//! | `lua51` | Lua 5.1 source as Luau |
//! | `eval_words` | KEYS and ARGV |
//! | `room` | the memory limit, and garbage collection |
//! | `host` | the interface to the server |
//! | `api` | the Rust functions of `redis.*`, `math.random` and `loadstring` |
//! | `prelude.luau` | the globals of scripts |
//! | `to_lua`, `to_reply` | conversion of values: from a command's reply, and to the client's |
//! | `pairs` | a table's pairs, one at a time |
//! | `confined` | detects scripts that use only the keys they declare |
//! | `brief` | detects scripts that end soon |
//! | `header` | the `#!lua` line of scripts and libraries |
//! | `libraries` | cjson, cmsgpack, struct and bit |
//!
//! Invariants
//!  1. Scripts cannot change the environment of other scripts: globals and libraries are read-only.
//!  2. A stopped script runs no further step, even if it catches errors.
//!  3. Memory of an interpreter stays within [`MEMORY_BYTES_MAX`].
#![forbid(unsafe_code)]

mod api;
mod brief;
pub mod confined;
mod eval_words;
#[doc(hidden)]
pub mod fuzzing;
pub mod header;
mod host;
mod interpreter;
pub mod libraries;
mod lua51;
mod pairs;
mod random;
mod room;
mod texts;
mod to_lua;
mod to_reply;

pub use host::{Called, Host, Pace, Words};
pub use interpreter::{Ended, Failure, Interpreter, Place, Registered, Script, Version};
pub use room::MEMORY_BYTES_MAX;
pub use texts::Texts;
