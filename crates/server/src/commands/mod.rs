//! Commands that need a session or the server, family by family.

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

/// All commands of this crate.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().copied().flatten().copied().flatten()
}

/// The table of all commands, with the names that `rename-command` gives them,
/// and the functions of this crate's.
///
/// # Errors
/// What is wrong with a name.
pub fn table(renamed: &[(String, String)]) -> Result<(CommandTable, Vec<ServerHandler>), String> {
    CommandTable::build(all(), renamed)
}
