//! The server side of scripts and functions.
//!
//! ```text
//! EVAL, FCALL ─ run: a unit of commands ─ ScriptRunner (interpreter's host) ─ calls: one command
//!                │ slots of its keys, or quiescence
//!                └ if slow: suspended between slices, which worker/script runs
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `cache` | the scripts that EVALSHA finds, for all workers |
//! | `libraries` | the function libraries, for all workers |
//! | `shared` | the scripts, the libraries, and the scripts that are running |
//! | `machine` | a worker's interpreters |
//! | `eval_interpreter` | the interpreter for scripts, and its compiled scripts |
//! | `function_interpreter` | the interpreter for functions, and its loaded libraries |
//! | `runner` | the state of the current run |
//! | `host` | the interpreter's callbacks into the server |
//! | `calls` | runs the commands that a script calls |
//! | `run` | runs a script, from EVAL to its reply |
//! | `invoked` | the script or function that a command runs, and its flags |
//! | `source` | loads function libraries from their source code |
//! | `slow` | slow scripts: the keys that they block, and killing them |
//!
//! docs/design/scripts.md gives the reasons.

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
pub mod shared;
pub mod slow;
pub mod source;

pub use eval_interpreter::CompiledScript;
pub use function_interpreter::FunctionInterpreter;
pub use runner::{KeysInUse, Parked, WorkerScripts};
