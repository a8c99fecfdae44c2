//! The connection group: who the client is and how it talks.

mod basic;
mod client;
mod hello;

use brisk_node::core::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[basic::COMMANDS, client::COMMANDS, hello::COMMANDS];
