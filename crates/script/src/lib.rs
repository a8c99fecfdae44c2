//! Scripts: Luau with the surroundings that Redis gives to Lua.
//!
//! ```text
//!  host (the server) ── Interpreter ── prelude.luau ── a script or a function
//!        ▲ call, log, pace                 └ redis.call …
//!        └───────────────────────────────────┘
//! ```
//!
//! An [`Interpreter`] belongs to one thread. It compiles scripts, runs them and loads libraries of
//! functions; what a script does to the world goes through its [`Host`], of which it knows nothing
//! else: no keyspace, no sessions, no clock. A script that takes long is suspended between two
//! steps when the host says so, and goes on later.
//!
//! | file | about |
//! |---|---|
//! | `interpreter` | compiling, running, suspending, stopping |
//! | `lua51` | Lua 5.1 source as Luau |
//! | `eval_words` | KEYS and ARGV |
//! | `room` | the bound on memory, and garbage |
//! | `host` | what an interpreter asks of the server |
//! | `api` | the functions behind `redis.*`, `math.random` and `loadstring` |
//! | `prelude.luau` | the globals that scripts find |
//! | `to_lua`, `to_reply` | values: from a command's reply, and to the client's |
//! | `pairs` | a table's pairs, one at a time |
//! | `confined` | whether a text shows that a script uses only the keys it declares |
//! | `brief` | whether a text shows that a script ends soon |
//! | `header` | the `#!lua` line of scripts and libraries |
//! | `libraries` | cjson, cmsgpack, struct and bit |
//!
//! Invariants
//!  1. Scripts cannot change what other scripts find: globals and libraries are read-only.
//!  2. A script that was stopped runs no further step, whatever it catches.
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
