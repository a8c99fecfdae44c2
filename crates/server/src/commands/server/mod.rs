//! The server group: configuration, figures, and what the server says about itself.

mod config;

use crate::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[config::COMMANDS];
