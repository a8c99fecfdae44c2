//! temporary
use super::Report;
#[must_use]
pub fn page(_: &Report, _: usize) -> String { String::new() }
