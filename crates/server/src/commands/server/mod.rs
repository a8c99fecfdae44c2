//! The server group: commands that manage, inspect, and measure the server.
//!
//! | part | about |
//! |---|---|
//! | `acl`, `command` | ACL; COMMAND |
//! | `config`, `reconfigure` | CONFIG; applying changed settings |
//! | `debug` | DEBUG |
//! | `debug_keyspace`, `debug_protocol` | DEBUG subcommands for keys; DEBUG PROTOCOL |
//! | `info`, `memory`, `role` | INFO, TIME and LOLWUT; MEMORY; ROLE |
//! | `latency`, `latency_report`, `slowlog` | LATENCY; its GRAPH and DOCTOR; SLOWLOG |
//! | `monitor`, `module` | MONITOR; MODULE |
//! | `save`, `shutdown` | SAVE, BGSAVE, BGREWRITEAOF and LASTSAVE; SHUTDOWN |
//! | `replicaof`, `failover`, `replication` | REPLICAOF; FAILOVER; REPLICATION |
//! | `sync`, `wait` | SYNC, PSYNC and REPLCONF; WAIT and WAITAOF |

mod acl;
mod command;
mod config;
mod debug;
mod debug_keyspace;
mod debug_protocol;
mod failover;
mod info;
mod latency;
mod latency_report;
mod memory;
mod module;
mod monitor;
mod reconfigure;
mod replicaof;
mod replication;
mod role;
mod save;
mod shutdown;
mod slowlog;
mod sync;
mod wait;

use brisk_node::core::call::Command;

pub(super) const GROUP_COMMANDS: &[&[Command]] = &[
    acl::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    failover::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    module::COMMANDS,
    monitor::COMMANDS,
    replicaof::COMMANDS,
    replication::COMMANDS,
    role::COMMANDS,
    save::COMMANDS,
    shutdown::COMMANDS,
    slowlog::COMMANDS,
    sync::COMMANDS,
    wait::COMMANDS,
];
