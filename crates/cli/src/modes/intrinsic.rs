//! x
pub(super) fn run(_: &crate::options::Options) -> i32 { 0 }
