//! One call of a command: what its handler works with, what is kept of it to run it again, and what
//! it leaves to be computed elsewhere.

pub mod ctx;
pub mod long;
pub(crate) mod recorded;
