//! Measures several servers in turn under the same load.
//!
//! | file | contents |
//! |---|---|
//! | `command` | the command line for published results |
//! | `comparison` | the result as data |
//! | `rounds` | the order of the runs, and the measurements during them |
//! | `statistics` | medians, and ratios with their confidence intervals |
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
