//! The transactions group: MULTI, EXEC and DISCARD; WATCH and UNWATCH.
//!
//! The rows of other commands define their behavior between MULTI and EXEC (`in_multi`). Queueing
//! and execution are in `brisk_node::transactions`.

mod multi;
mod watch;

use brisk_engine::command::{Categories, Flags, Group, Spec};
use brisk_node::core::call::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[multi::COMMANDS, watch::COMMANDS];

/// The row on which other rows are based.
const ROW: Spec = Spec {
    group: Group::Transactions,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY),
    categories: Categories::TRANSACTION,
    ..Spec::EMPTY
};
