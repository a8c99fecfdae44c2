//! What the rest is made of and what knows nothing of it: numbers as text, patterns, randomness,
//! the errors of commands, places and moments, and by what it is judged
//! whether something takes long.

pub mod double;
pub mod error;
pub(crate) mod event;
pub mod glob;
pub mod long_double;
pub mod number;
pub(crate) mod place;
pub mod random;
pub(crate) mod slot_set;
pub(crate) mod steps;
