//! Commands on sorted sets.

mod add;
mod algebra;
mod blocking;
mod draw;
mod pop;
mod range;
mod read;
mod remove;
mod reply;
mod scan;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    add::COMMANDS,
    algebra::COMMANDS,
    blocking::COMMANDS,
    draw::COMMANDS,
    pop::COMMANDS,
    range::COMMANDS,
    read::COMMANDS,
    remove::COMMANDS,
    scan::COMMANDS,
];

#[cfg(test)]
mod tests;
