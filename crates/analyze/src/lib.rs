//! Analyzes the memory of the keys of a server or file by pattern, and how much each change would save. This crate is
//! the implementation of `brisk-cli analyze`. M8, M4.
//!
//! ```text
//!  source ── records ── analysis ── groups by pattern ── advice ── report
//!                          │
//!                        model: what a key costs in Redis and in Brisk
//! ```
//!
//! | part | about |
//! |---|---|
//! | [`args`] | the command line arguments |
//! | [`source`] | reads files and servers into records |
//! | [`record`] | the properties of one key |
//! | [`model`] | the memory of a key, in its current form and in others |
//! | [`pattern`] | finds keys that belong together |
//! | [`group`], [`lengths`], [`measure`] | totals of a group of keys |
//! | [`analysis`] | sorts records into groups |
//! | [`advice`] | possible changes, and how much each would save |
//! | [`report`] | table, JSON and HTML page |
//! | [`progress`] | the progress line |
#![forbid(unsafe_code)]

pub mod advice;
pub mod analysis;
pub mod args;
pub mod group;
pub mod lengths;
pub mod measure;
pub mod model;
pub mod pattern;
pub mod progress;
pub mod record;
pub mod report;
pub mod run;
pub mod source;

pub use analysis::{Analysis, Findings};
pub use report::Report;
pub use run::run;
