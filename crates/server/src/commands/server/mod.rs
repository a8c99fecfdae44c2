//! The server group: what runs the server, looks into it and measures it.

mod acl;
mod command;
mod config;
mod debug;
mod debug_keyspace;
mod debug_protocol;
mod figures;
mod latency;
mod latency_report;
mod memory;
mod module;
mod monitor;
mod reconfigure;
mod role;
mod save;
mod shutdown;
mod slowlog;
mod sync;

use brisk_node::core::call::Command;

pub(super) const FAMILY: &[&[Command]] = &[
    acl::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    figures::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    module::COMMANDS,
    monitor::COMMANDS,
    role::COMMANDS,
    save::COMMANDS,
    shutdown::COMMANDS,
    slowlog::COMMANDS,
    sync::COMMANDS,
];
