//! Calls that are run: one, several as a unit, those of clients that waited,
//! and those whose work was done elsewhere.

pub mod exec;
pub mod finish;
pub mod serve;
pub mod unit;
