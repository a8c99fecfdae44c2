//! x
pub(crate) fn command(_: crate::link::Link, _: &crate::session::Session) {}
pub(crate) fn run(_: crate::link::Link, _: &crate::session::Session) -> i32 { 0 }
