//! Scripts and functions on the server's side.
//!
//! ```text
//!  EVAL, FCALL ── run: a unit of commands ── Desk (the interpreter's host) ── calls: one command
//!                  │ slots of its keys, or stillness
//!                  └ long: slow, then suspended between slices ── worker/script
//! ```
//!
//! | file | about |
//! |---|---|
//! | `cache` | the scripts that EVALSHA finds, for all workers |
//! | `libraries` | the libraries of functions, for all workers |
//! | `machine` | a worker's interpreter, and what it has compiled |
//! | `desk` | the present run: what is true of it, and its host |
//! | `calls` | a command that a script calls |
//! | `run` | a script from EVAL to its reply |
//! | `slow` | scripts that take long: who must keep away, who may be killed |
//!
//! docs/design/scripts.md says why.

pub mod cache;
mod calls;
mod desk;
pub mod libraries;
pub mod machine;
pub mod run;
pub mod slow;

pub use desk::{Parked, Reach};
