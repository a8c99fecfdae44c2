//! The test kit's own integration tests, in one executable.

mod diff;
mod digest;
mod proxy;
mod race;
