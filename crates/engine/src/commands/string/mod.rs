//! The string group: values that are bytes, and numbers written as text.

mod counter;
mod get;
mod lcs;
mod multi;
mod range;
mod set;
mod subsequence;
mod ttl;

#[cfg(test)]
mod tests;

use crate::call::ctx::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    get::COMMANDS,
    set::COMMANDS,
    multi::COMMANDS,
    counter::COMMANDS,
    range::COMMANDS,
    lcs::COMMANDS,
];
