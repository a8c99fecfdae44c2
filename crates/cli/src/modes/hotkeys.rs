//! x
pub(super) fn run(_: &mut crate::link::Link, _: &crate::options::Options) -> i32 { 0 }
