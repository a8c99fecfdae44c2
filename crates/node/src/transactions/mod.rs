//! Transactions: MULTI, EXEC, DISCARD.
//!
//! | file | purpose |
//! |---|---|
//! | `queue` | the commands that a session has queued |
//! | `execute` | running them by EXEC |

pub mod execute;
mod queue;

pub use queue::{Execution, Transaction};
