//! The commands that need a session or the server, by group.

mod cluster;
mod connection;
mod pubsub;
mod scripting;
mod server;
#[cfg(test)]
mod tests;
mod transactions;

use brisk_engine::table::CommandTable;
use brisk_node::core::call::{Command, ServerHandler};

/// The commands of each group of COMMAND DOCS.
const GROUPS: &[&[&[Command]]] = &[
    cluster::GROUP_COMMANDS,
    connection::GROUP_COMMANDS,
    pubsub::GROUP_COMMANDS,
    scripting::GROUP_COMMANDS,
    server::GROUP_COMMANDS,
    transactions::GROUP_COMMANDS,
];

/// Returns all commands of this crate.
pub fn all() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().copied().flatten().copied().flatten()
}

/// Builds the table of all commands with the names from `rename-command`, and the functions of this
/// crate's commands.
///
/// # Errors
/// A name from `rename-command` is invalid; the error describes the problem.
pub fn table(renamed: &[(String, String)]) -> Result<(CommandTable, Vec<ServerHandler>), String> {
    CommandTable::build(all(), renamed)
}
