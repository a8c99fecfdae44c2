//! Commands on keys of any type.

mod copy;
mod delete;
mod dump;
mod exists;
mod expire;
mod migrate;
mod object;
mod rename;
mod scan;
mod sort;
mod ttl;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    copy::COMMANDS,
    delete::COMMANDS,
    dump::COMMANDS,
    exists::COMMANDS,
    expire::COMMANDS,
    migrate::COMMANDS,
    object::COMMANDS,
    rename::COMMANDS,
    scan::COMMANDS,
    sort::COMMANDS,
    ttl::COMMANDS,
];

#[cfg(test)]
mod tests;
