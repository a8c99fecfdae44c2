//! Scripts and functions on the server's side.
//!
//! ```text
//!  EVAL, FCALL ─ run: a unit of commands ─ ScriptRunner (interpreter's host) ─ calls: one command
//!                 │ slots of its keys, or quiescence
//!                 └ takes long: suspended between slices, which worker/script gives it
//! ```
//!
//! | file | about |
//! |---|---|
//! | `cache` | the scripts that EVALSHA finds, for all workers |
//! | `libraries` | the libraries of functions, for all workers |
//! | `machine` | a worker's interpreters |
//! | `eval_interpreter` | the one for scripts, and those that it has compiled |
//! | `function_interpreter` | the one for functions, and the libraries that it has loaded |
//! | `runner` | the present run: what is true of it |
//! | `host` | what an interpreter asks of it |
//! | `calls` | a command that a script calls |
//! | `run` | a script from EVAL to its reply |
//! | `invoked` | which script or function a command runs, and its flags |
//! | `source` | libraries of functions from their source code |
//! | `slow` | scripts that take long: who must keep away, who may be killed |
//!
//! docs/design/scripts.md says why.

pub mod cache;
mod calls;
mod eval_interpreter;
mod function_interpreter;
mod host;
pub mod invoked;
pub mod libraries;
pub mod machine;
pub mod run;
mod runner;
pub mod slow;
pub mod source;

pub use eval_interpreter::CompiledScript;
pub use function_interpreter::FunctionInterpreter;
pub use runner::{KeysInUse, Parked, WorkerScripts};
