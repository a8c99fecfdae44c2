//! Transactions: MULTI, EXEC, DISCARD.
//!
//! | file | purpose |
//! |---|---|
//! | `queue` | the commands that a session has queued |
//! | `worker` | the memory and the ended watches that a worker keeps |
//! | `execute` | queueing commands, and running them with EXEC |

pub mod execute;
mod queue;
mod worker;

pub use queue::{Execution, Transaction};
pub use worker::WorkerTransactions;
