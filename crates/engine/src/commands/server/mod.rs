//! Those commands of the server group that concern data alone.

mod databases;

use crate::call::ctx::Command;

pub(super) const FAMILY: &[&[Command]] = &[databases::COMMANDS];

#[cfg(test)]
mod tests;
