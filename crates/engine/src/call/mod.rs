//! One call of a command: the context of its handler, the record for running it again, and the work
//! that it leaves to another thread.

pub mod ctx;
pub mod long;
pub(crate) mod recorded;
