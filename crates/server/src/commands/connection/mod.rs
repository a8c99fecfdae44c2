//! The connection group: who the client is and how it talks.

mod basic;
mod client;
mod hello;

use crate::run::call::Command;
pub(crate) use client::describe_client;

pub(super) const FAMILY: &[&[Command]] = &[basic::COMMANDS, client::COMMANDS, hello::COMMANDS];
