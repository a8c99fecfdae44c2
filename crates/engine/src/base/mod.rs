//! What the rest is made of and what knows nothing of it: numbers as text, patterns, randomness, the
//! errors of commands.

pub mod double;
pub mod error;
pub mod glob;
pub mod long_double;
pub mod number;
pub mod random;
