//! The server group: configuration, figures, and what the server says about itself.

mod command;
mod config;
mod figures;

use crate::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[command::COMMANDS, config::COMMANDS, figures::COMMANDS];
