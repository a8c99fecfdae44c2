//! The commands of the server group that only use data.

mod databases;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[databases::COMMANDS];

#[cfg(test)]
mod tests;
