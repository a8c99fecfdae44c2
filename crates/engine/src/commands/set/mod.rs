//! Commands on sets.

mod algebra;
mod members;
mod random;
mod scan;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[algebra::COMMANDS, members::COMMANDS, random::COMMANDS, scan::COMMANDS];

#[cfg(test)]
mod tests;
