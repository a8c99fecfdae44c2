//! The commands that need a session or the server, by family.

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

/// The families, each with the commands of one group of COMMAND DOCS.
const FAMILIES: &[&[&[Command]]] = &[
    cluster::FAMILY,
    connection::FAMILY,
    pubsub::FAMILY,
    scripting::FAMILY,
    server::FAMILY,
    transactions::FAMILY,
];

/// Returns all commands of this crate.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().copied().flatten().copied().flatten()
}

/// Builds the table of all commands with the names from `rename-command`, and the functions of this
/// crate's commands.
///
/// # Errors
/// A name from `rename-command` is invalid; the error describes the problem.
pub fn table(renamed: &[(String, String)]) -> Result<(CommandTable, Vec<ServerHandler>), String> {
    CommandTable::build(all(), renamed)
}
