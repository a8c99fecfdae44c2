//! Transactions: MULTI, EXEC, DISCARD.
//!
//! | file | about |
//! |---|---|
//! | `queue` | what a session has queued |
//! | `execute` | how EXEC runs it |

pub mod execute;
mod queue;

pub use queue::{Execution, Transaction};
