//! One call of a command: what its handler works with, and the calls that take long.

pub mod ctx;
pub mod long;
