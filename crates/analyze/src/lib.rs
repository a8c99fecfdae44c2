//! What the keys of a server or of a file take, by pattern, and what would save how much of it: the work of
//! `brisk-cli analyze`. M8, M4.
//!
//! ```text
//!  source ── records ── analysis ── groups by pattern ── advice ── report
//!                          │
//!                        model: what a key costs in Redis and in Brisk
//! ```
//!
//! | part | about |
//! |---|---|
//! | [`args`] | the words of the command line |
//! | [`source`] | files and servers, read into records |
//! | [`record`] | what is known of a key |
//! | [`model`] | what it costs, as it is and in another form |
//! | [`pattern`] | which keys belong together |
//! | [`group`], [`lengths`], [`measure`] | what is summed up of such keys |
//! | [`analysis`] | records in, groups out |
//! | [`advice`] | what could be done, and what it would save |
//! | [`report`] | table, JSON, page |
//! | [`progress`] | how far it has come |
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
