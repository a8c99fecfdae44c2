//! The connection group: identity, authentication, and modes of a connection.

mod basic;
mod client;
mod hello;

use brisk_node::core::call::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[basic::COMMANDS, client::COMMANDS, hello::COMMANDS];
