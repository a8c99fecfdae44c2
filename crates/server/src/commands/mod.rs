//! Commands that need a session or the server, family by family.

mod cluster;
mod connection;
mod pubsub;
pub(crate) mod scripting;
mod server;
mod transactions;

use crate::call::Command;
pub(crate) use connection::describe_client;

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
