//! Runs requests: the steps from bytes to the command's handler, and permissions.
//!
//! | part | purpose |
//! |---|---|
//! | `batch` | up to 32 requests, parsed from the input before the first is executed |
//! | `dispatch` | looks up, checks, runs and counts a request |
//! | `malformed` | requests that are not valid commands |
//! | `gate` | the command gate: the checks before a command runs, in an order that clients can observe |
//! | `invoke` | calls the function of a command that has passed the gate |
//! | `count` | statistics about commands that ran and about errors |
//! | `permission` | whether a session may run a command |
//! | `release` | releases everything that a session has registered when it ends |
//! | `repeated` | commands of the primary or of a file that fail |
//! | `route` | cluster mode: which commands this node serves |
//! | `trusted_session` | sessions for commands of a file or of the primary |
//! | `long`, `waiting` | commands that other threads compute; commands that were waiting for keys |

pub mod batch;
pub mod count;
pub mod dispatch;
pub mod gate;
pub(crate) mod invoke;
pub mod long;
mod malformed;
pub mod permission;
pub mod release;
pub mod repeated;
pub mod route;
pub mod trusted_session;
pub mod waiting;
