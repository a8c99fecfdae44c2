//! The server group: the server as a whole.

mod monitor;

use crate::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[monitor::COMMANDS];
