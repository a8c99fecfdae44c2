//! Findings about a server, and the rules that `brisk-server --doctor` and `brisk-cli doctor` share.
//!
//! | file | about |
//! |---|---|
//! | `report` | findings, and how they are printed |
//! | `rules` | rules that need only a few facts, which each program obtains in its own way |
#![forbid(unsafe_code)]

pub mod report;
pub mod rules;

pub use report::{Finding, Severity, amount};
