//! Options of the commands of the group `server`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;

/// Options of `ACL CAT`, see [`acl_cat`](crate::commands::acl_cat).
#[derive(Clone, Copy, Debug)]
pub struct AclCat(());

impl<C, T> Command<C, T, AclCat> {
    /// `categoryname`.
    pub fn category(self, category: impl ToArg) -> Self {
        self.option(|request| request.arg(category))
    }
}

/// Options of `ACL GENPASS`, see [`acl_genpass`](crate::commands::acl_genpass).
#[derive(Clone, Copy, Debug)]
pub struct AclGenpass(());

impl<C, T> Command<C, T, AclGenpass> {
    /// `bits`.
    pub fn bits(self, bits: impl ToArg) -> Self {
        self.option(|request| request.arg(bits))
    }
}

/// Options of `ACL LOG`, see [`acl_log`](crate::commands::acl_log).
#[derive(Clone, Copy, Debug)]
pub struct AclLog(());

impl<C, T> Command<C, T, AclLog> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| request.arg(count))
    }
}

/// Options of `BGSAVE`, see [`bgsave`](crate::commands::bgsave).
#[derive(Clone, Copy, Debug)]
pub struct Bgsave(());

impl<C, T> Command<C, T, Bgsave> {
    /// `SCHEDULE`, since Redis 3.2.2.
    pub fn schedule(self) -> Self {
        self.option(|request| request.arg("SCHEDULE"))
    }
}

/// Options of `COMMAND DOCS`, see [`command_docs`](crate::commands::command_docs).
#[derive(Clone, Copy, Debug)]
pub struct CommandDocs(());

impl<C, T> Command<C, T, CommandDocs> {
    /// `command-name …`.
    pub fn command_names(self, command_names: impl ToArgs) -> Self {
        self.option(|request| request.args(command_names))
    }
}

/// Options of `COMMAND INFO`, see [`command_info`](crate::commands::command_info).
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo(());

impl<C, T> Command<C, T, CommandInfo> {
    /// `command-name …`.
    pub fn command_names(self, command_names: impl ToArgs) -> Self {
        self.option(|request| request.args(command_names))
    }
}

/// Options of `COMMAND LIST`, see [`command_list`](crate::commands::command_list).
#[derive(Clone, Copy, Debug)]
pub struct CommandList(());

impl<C, T> Command<C, T, CommandList> {
    /// `FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>`.
    pub fn filter_by_module(self, module_name: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("FILTERBY");
            request.arg("MODULE");
            request.arg(module_name);
        })
    }

    /// `FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>`.
    pub fn filter_by_acl_cat(self, category: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("FILTERBY");
            request.arg("ACLCAT");
            request.arg(category);
        })
    }

    /// `FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>`.
    pub fn filter_by_pattern(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("FILTERBY");
            request.arg("PATTERN");
            request.arg(pattern);
        })
    }
}

/// Options of `FAILOVER`, see [`failover`](crate::commands::failover).
#[derive(Clone, Copy, Debug)]
pub struct Failover(());

impl<C, T> Command<C, T, Failover> {
    /// `TO host port`.
    pub fn to(self, host: impl ToArg, port: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("TO");
            request.arg(host);
            request.arg(port);
        })
    }

    /// `FORCE`. Only after `to`.
    pub fn force(self) -> Self {
        self.option(|request| request.arg("FORCE"))
    }

    /// `ABORT`.
    pub fn abort(self) -> Self {
        self.option(|request| request.arg("ABORT"))
    }

    /// `TIMEOUT milliseconds`.
    pub fn within_ms(self, milliseconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("TIMEOUT");
            request.arg(milliseconds);
        })
    }
}

/// Options of `FLUSHALL`, see [`flushall`](crate::commands::flushall).
#[derive(Clone, Copy, Debug)]
pub struct Flushall(());

impl<C, T> Command<C, T, Flushall> {
    /// `ASYNC`, since Redis 4.0.0.
    pub fn asynchronous(self) -> Self {
        self.option(|request| request.arg("ASYNC"))
    }

    /// `SYNC`, since Redis 6.2.0.
    pub fn synchronous(self) -> Self {
        self.option(|request| request.arg("SYNC"))
    }
}

/// Options of `FLUSHDB`, see [`flushdb`](crate::commands::flushdb).
#[derive(Clone, Copy, Debug)]
pub struct Flushdb(());

impl<C, T> Command<C, T, Flushdb> {
    /// `ASYNC`, since Redis 4.0.0.
    pub fn asynchronous(self) -> Self {
        self.option(|request| request.arg("ASYNC"))
    }

    /// `SYNC`, since Redis 6.2.0.
    pub fn synchronous(self) -> Self {
        self.option(|request| request.arg("SYNC"))
    }
}

/// Options of `INFO`, see [`info`](crate::commands::info).
#[derive(Clone, Copy, Debug)]
pub struct Info(());

impl<C, T> Command<C, T, Info> {
    /// `section …`.
    pub fn sections(self, sections: impl ToArgs) -> Self {
        self.option(|request| request.args(sections))
    }
}

/// Options of `LATENCY HISTOGRAM`, see [`latency_histogram`](crate::commands::latency_histogram).
#[derive(Clone, Copy, Debug)]
pub struct LatencyHistogram(());

impl<C, T> Command<C, T, LatencyHistogram> {
    /// `command …`.
    pub fn commands(self, commands: impl ToArgs) -> Self {
        self.option(|request| request.args(commands))
    }
}

/// Options of `LATENCY RESET`, see [`latency_reset`](crate::commands::latency_reset).
#[derive(Clone, Copy, Debug)]
pub struct LatencyReset(());

impl<C, T> Command<C, T, LatencyReset> {
    /// `event …`.
    pub fn events(self, events: impl ToArgs) -> Self {
        self.option(|request| request.args(events))
    }
}

/// Options of `LOLWUT`, see [`lolwut`](crate::commands::lolwut).
#[derive(Clone, Copy, Debug)]
pub struct Lolwut(());

impl<C, T> Command<C, T, Lolwut> {
    /// `VERSION version`.
    pub fn version(self, version: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("VERSION");
            request.arg(version);
        })
    }
}

/// Options of `MEMORY USAGE`, see [`memory_usage`](crate::commands::memory_usage).
#[derive(Clone, Copy, Debug)]
pub struct MemoryUsage(());

impl<C, T> Command<C, T, MemoryUsage> {
    /// `SAMPLES count`.
    pub fn samples(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("SAMPLES");
            request.arg(count);
        })
    }
}

/// Options of `MODULE LOADEX`, see [`module_loadex`](crate::commands::module_loadex).
#[derive(Clone, Copy, Debug)]
pub struct ModuleLoadex(());

impl<C, T> Command<C, T, ModuleLoadex> {
    /// `CONFIG name value`. May be called again.
    pub fn config(self, name: impl ToArg, value: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("CONFIG");
            request.arg(name);
            request.arg(value);
        })
    }

    /// `ARGS arg …`.
    pub fn module_args(self, args: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("ARGS");
            request.args(args);
        })
    }
}

/// Options of `REPLICATION COMPARE`, see [`replication_compare`](crate::commands::replication_compare).
#[derive(Clone, Copy, Debug)]
pub struct ReplicationCompare(());

impl<C, T> Command<C, T, ReplicationCompare> {
    /// `HEAL`.
    pub fn heal(self) -> Self {
        self.option(|request| request.arg("HEAL"))
    }
}

/// Options of `RESTORE-ASKING`, see [`restore_asking`](crate::commands::restore_asking).
#[derive(Clone, Copy, Debug)]
pub struct RestoreAsking(());

impl<C, T> Command<C, T, RestoreAsking> {
    /// `REPLACE`, since Redis 3.0.0.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }

    /// `ABSTTL`, since Redis 5.0.0.
    pub fn abs_ttl(self) -> Self {
        self.option(|request| request.arg("ABSTTL"))
    }

    /// `IDLETIME seconds`, since Redis 5.0.0.
    pub fn idle_time(self, seconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("IDLETIME");
            request.arg(seconds);
        })
    }

    /// `FREQ frequency`, since Redis 5.0.0.
    pub fn freq(self, frequency: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("FREQ");
            request.arg(frequency);
        })
    }
}

/// Options of `SHUTDOWN`, see [`shutdown`](crate::commands::shutdown).
#[derive(Clone, Copy, Debug)]
pub struct Shutdown(());

impl<C, T> Command<C, T, Shutdown> {
    /// `NOSAVE`.
    pub fn no_save(self) -> Self {
        self.option(|request| request.arg("NOSAVE"))
    }

    /// `SAVE`.
    pub fn save(self) -> Self {
        self.option(|request| request.arg("SAVE"))
    }

    /// `NOW`, since Redis 7.0.0.
    pub fn now(self) -> Self {
        self.option(|request| request.arg("NOW"))
    }

    /// `FORCE`, since Redis 7.0.0.
    pub fn force(self) -> Self {
        self.option(|request| request.arg("FORCE"))
    }

    /// `ABORT`, since Redis 7.0.0.
    pub fn abort(self) -> Self {
        self.option(|request| request.arg("ABORT"))
    }
}

/// Options of `SLOWLOG GET`, see [`slowlog_get`](crate::commands::slowlog_get).
#[derive(Clone, Copy, Debug)]
pub struct SlowlogGet(());

impl<C, T> Command<C, T, SlowlogGet> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| request.arg(count))
    }
}
