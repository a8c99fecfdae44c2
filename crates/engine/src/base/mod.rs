//! The lowest layer, which depends on no other: numbers as text, patterns, randomness, command
//! errors, slots and times, and the measure that decides whether a command is long.

pub mod double;
pub mod error;
pub(crate) mod event;
pub(crate) mod fixed;
pub mod glob;
pub mod long_double;
pub mod number;
pub(crate) mod place;
pub mod random;
pub(crate) mod slot_set;
pub(crate) mod steps;
