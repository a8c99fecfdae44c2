//! From bytes to a command: what a request passes before its handler runs, and who may run it.

pub mod batch;
pub mod dispatch;
pub mod gate;
pub mod long;
pub mod permission;
pub mod waiting;
