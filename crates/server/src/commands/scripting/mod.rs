//! The scripting group. No function can be created yet, so FUNCTION FLUSH has nothing to remove.

mod function;

use crate::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[function::COMMANDS];
