//! Several servers under the same load, in turns.
//!
//! | file | about |
//! |---|---|
//! | `command` | the command line, as published results have it |
//! | `comparison` | the result as data |
//! | `rounds` | who runs when, and what is looked at meanwhile |
//! | `statistics` | medians, ratios and how sure they are |
//! | `syscalls` | counting system calls with perf |
//! | `render` | tables, Markdown, CSV, JSON |

mod command;
mod comparison;
pub mod render;
mod rounds;
pub mod statistics;
mod syscalls;

pub use comparison::{
    CaseResult, Comparison, Conditions, Metric, Row, Sample, ServerInfo, ServerUse,
};
pub use rounds::compare;
