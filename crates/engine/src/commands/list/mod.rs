//! The list group: ordered elements, pushed and popped at both ends.

mod blocking;
mod edit;
mod pop;
mod push;
mod read;
mod transfer;

#[cfg(test)]
mod tests;

use crate::base::error::{CommandError, Result};
use crate::call::ctx::Command;
use crate::command::Arg;
use crate::command::args::Args;
use crate::types::list::End;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    push::COMMANDS,
    pop::COMMANDS,
    read::COMMANDS,
    edit::COMMANDS,
    transfer::COMMANDS,
    blocking::COMMANDS,
];

/// The tokens for the ends of a list.
const ENDS: &[Arg] = &[Arg::token("left", "LEFT"), Arg::token("right", "RIGHT")];

/// Takes LEFT or RIGHT.
fn end(args: &mut Args<'_>) -> Result<End> {
    if args.take("LEFT") {
        Ok(End::Front)
    } else if args.take("RIGHT") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The event of a push at `end`.
fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

/// The event of a pop at `end`.
fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// The command that pops at `end`.
fn pop_command(end: End) -> &'static [u8] {
    match end {
        End::Front => b"LPOP",
        End::Back => b"RPOP",
    }
}
