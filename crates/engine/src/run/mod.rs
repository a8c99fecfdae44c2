//! Running calls: one call, several as a unit, calls of blocked clients, and calls whose work was
//! done on another thread.

pub mod exec;
pub mod finish;
pub mod serve;
pub mod unit;
