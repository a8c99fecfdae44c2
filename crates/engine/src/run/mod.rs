//! Calls that are run: one, several as a unit, and those of clients that waited.

pub mod exec;
pub mod serve;
pub mod unit;
