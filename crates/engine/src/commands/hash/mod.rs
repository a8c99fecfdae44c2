//! Commands on hashes.

mod change;
mod counter;
mod deadline;
mod random;
mod read;
mod remove;
mod scan;
mod ttl;
mod with_ttl;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    change::COMMANDS,
    counter::COMMANDS,
    deadline::COMMANDS,
    random::COMMANDS,
    read::COMMANDS,
    remove::COMMANDS,
    scan::COMMANDS,
    ttl::COMMANDS,
    with_ttl::COMMANDS,
];

#[cfg(test)]
mod tests;
