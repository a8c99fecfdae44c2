//! All data commands, by group. The rows of a group are at the end of its files.

mod bitmap;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod iteration;
mod list;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
pub mod table;

use crate::call::ctx::Command;

/// The commands of each group of COMMAND DOCS.
pub const GROUPS: &[&[&[Command]]] = &[
    bitmap::GROUP_COMMANDS,
    generic::GROUP_COMMANDS,
    geo::GROUP_COMMANDS,
    hash::GROUP_COMMANDS,
    hyperloglog::GROUP_COMMANDS,
    list::GROUP_COMMANDS,
    server::GROUP_COMMANDS,
    set::GROUP_COMMANDS,
    sorted_set::GROUP_COMMANDS,
    stream::GROUP_COMMANDS,
    string::GROUP_COMMANDS,
];

/// All data commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().copied().flatten().copied().flatten()
}
