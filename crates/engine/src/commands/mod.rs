//! All data commands, by family. The rows of a family are at the end of its files.

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

/// The families, each with the commands of one group of COMMAND DOCS.
pub const FAMILIES: &[&[&[Command]]] = &[
    bitmap::FAMILY,
    generic::FAMILY,
    geo::FAMILY,
    hash::FAMILY,
    hyperloglog::FAMILY,
    list::FAMILY,
    server::FAMILY,
    set::FAMILY,
    sorted_set::FAMILY,
    stream::FAMILY,
    string::FAMILY,
];

/// All data commands.
pub fn all() -> impl Iterator<Item = &'static Command> {
    FAMILIES.iter().copied().flatten().copied().flatten()
}
