//! The pubsub group: listening to channels, and saying something on them.

mod inspect;
mod publish;
mod subscribe;

use brisk_node::core::call::Command;

pub(super) const FAMILY: &[&[Command]] =
    &[inspect::COMMANDS, publish::COMMANDS, subscribe::COMMANDS];
