//! From bytes to a command: the steps of a request before its handler runs, and permissions.
//!
//! | part | purpose |
//! |---|---|
//! | `batch` | up to 32 requests, parsed from the input before the first is executed |
//! | `dispatch` | one request: looked up, checked, run, counted |
//! | `gate` | the checks before it runs, in the order that clients can observe |
//! | `permission` | whether a session may run a command |
//! | `release` | releases everything that a session has registered when it ends |
//! | `repeated` | commands of the primary, or of a file, that fail |
//! | `trusted_session` | sessions for commands of a file or of the primary |
//! | `long`, `waiting` | commands that other threads compute; commands that waited for keys |

pub mod batch;
pub mod dispatch;
pub mod gate;
pub mod long;
pub mod permission;
pub mod release;
pub mod repeated;
pub mod trusted_session;
pub mod waiting;
