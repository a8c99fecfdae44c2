//! Analyzes the memory of a server's or a file's keys by pattern, and computes how much each change would save. This
//! crate implements `brisk-cli analyze` (requirements M4 and M8).
//!
//! ```text
//!  source ── records ── analysis ── groups by pattern ── advice ── report
//!                          │
//!                        model: the memory of a key in Redis and in Brisk
//! ```
//!
//! | part | contents |
//! |---|---|
//! | [`args`] | the command line arguments |
//! | [`source`] | reads files and servers into records |
//! | [`record`] | the properties of one key |
//! | [`model`] | the memory of a key, in its current form and in others |
//! | [`pattern`] | groups keys by pattern |
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
