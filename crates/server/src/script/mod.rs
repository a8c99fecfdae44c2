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
//! | `machine` | a worker's interpreters |
//! | `eval_interpreter` | the one for scripts, and those that it has compiled |
//! | `function_interpreter` | the one for functions, and the libraries that it has loaded |
//! | `desk` | the present run: what is true of it, and its host |
//! | `calls` | a command that a script calls |
//! | `run` | a script from EVAL to its reply |
//! | `invoked` | which script or function a command runs, and its flags |
//! | `slow` | scripts that take long: who must keep away, who may be killed |
//!
//! docs/design/scripts.md says why.

pub mod cache;
mod calls;
mod desk;
mod eval_interpreter;
mod function_interpreter;
pub mod invoked;
pub mod libraries;
pub mod machine;
pub mod run;
pub mod slow;

pub use desk::{Parked, Reach};
pub use eval_interpreter::CompiledScript;
pub use function_interpreter::FunctionInterpreter;
