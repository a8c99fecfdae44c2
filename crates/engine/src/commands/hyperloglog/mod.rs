//! The HyperLogLog group: strings that count distinct elements. The format is in
//! `brisk_structures::hyperloglog`.

mod count;
mod debug;

#[cfg(test)]
mod tests;

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Command;
use brisk_structures::hyperloglog::{self, Corrupt, Form};

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[count::COMMANDS, debug::COMMANDS];

/// The form of a string that must be a HyperLogLog.
fn form_of(bytes: &[u8]) -> Result<Form> {
    let text = "WRONGTYPE Key is not a valid HyperLogLog string value.";
    hyperloglog::form(bytes).ok_or_else(|| CommandError::text(text))
}

impl From<Corrupt> for CommandError {
    fn from(Corrupt: Corrupt) -> CommandError {
        CommandError::text("INVALIDOBJ Corrupted HLL object detected")
    }
}
