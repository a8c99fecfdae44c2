//! The bitmap group: strings as arrays of bits and of integers of any width.

mod bit;
mod count;
mod field;
mod op;

#[cfg(test)]
mod tests;

use crate::base::error::{CommandError, Result};
use crate::base::number::parse_i64;
use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[bit::COMMANDS, count::COMMANDS, op::COMMANDS, field::COMMANDS];

/// Parses a bit offset in a string of at most `bytes_max` bytes.
fn parse_offset(word: &[u8], bytes_max: u64) -> Result<u64> {
    parse_i64(word)
        .and_then(|offset| u64::try_from(offset).ok())
        .and_then(|offset| in_reach(offset, bytes_max))
        .ok_or_else(|| CommandError::text(OFFSET_OUT_OF_RANGE))
}

/// The offset, if strings may be long enough to have that bit.
fn in_reach(offset: u64, bytes_max: u64) -> Option<u64> {
    (offset / 8 < bytes_max).then_some(offset)
}

const OFFSET_OUT_OF_RANGE: &str = "ERR bit offset is not an integer or out of range";
