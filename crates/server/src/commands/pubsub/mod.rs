//! The pubsub group: subscribing to channels and publishing messages.

mod inspect;
mod publish;
mod subscribe;

use brisk_node::core::call::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] =
    &[inspect::COMMANDS, publish::COMMANDS, subscribe::COMMANDS];
