//! The connection group: who the client is and how it talks.

mod basic;

use crate::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[basic::COMMANDS];
