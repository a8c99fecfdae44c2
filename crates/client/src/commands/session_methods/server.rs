//! Commands of the group `server` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::options;
use crate::session::Session;

/// Commands of the group `server`.
impl Session {
    /// Lists the command categories, or the commands of one category.
    ///
    /// `ACL CAT [categoryname]`
    pub fn acl_cat<T>(&self) -> Command<&Session, Vec<T>, options::AclCat> {
        commands::acl_cat().on(self)
    }

    /// Removes users and closes their connections.
    ///
    /// `ACL DELUSER username …`
    pub fn acl_deluser(&self, usernames: impl ToArgs) -> Command<&Session, i64> {
        commands::acl_deluser(usernames).on(self)
    }

    /// Checks whether a user may run a command, without running it.
    ///
    /// `ACL DRYRUN username command [arg …]`
    pub fn acl_dryrun(
        &self,
        username: impl ToArg,
        command: impl ToArg,
    ) -> Command<&Session, String> {
        commands::acl_dryrun(username, command).on(self)
    }

    /// Generates a random password.
    ///
    /// `ACL GENPASS [bits]`
    pub fn acl_genpass(&self) -> Command<&Session, String, options::AclGenpass> {
        commands::acl_genpass().on(self)
    }

    /// Shows the settings and permissions of a user.
    ///
    /// `ACL GETUSER username`
    pub fn acl_getuser<T>(&self, username: impl ToArg) -> Command<&Session, Option<T>> {
        commands::acl_getuser(username).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `ACL HELP`
    pub fn acl_help(&self) -> Command<&Session, Vec<String>> {
        commands::acl_help().on(self)
    }

    /// Shows all users in ACL file format.
    ///
    /// `ACL LIST`
    pub fn acl_list<T>(&self) -> Command<&Session, Vec<T>> {
        commands::acl_list().on(self)
    }

    /// Reloads all users from the aclfile.
    ///
    /// `ACL LOAD`
    pub fn acl_load(&self) -> Command<&Session, ()> {
        commands::acl_load().on(self)
    }

    /// Shows or deletes the log of denied commands and failed authentications.
    ///
    /// `ACL LOG [count]`
    pub fn acl_log<T>(&self) -> Command<&Session, Vec<T>, options::AclLog> {
        commands::acl_log().on(self)
    }

    /// Shows or deletes the log of denied commands and failed authentications.
    ///
    /// `ACL LOG RESET`
    pub fn acl_log_reset(&self) -> Command<&Session, ()> {
        commands::acl_log_reset().on(self)
    }

    /// Saves all users to the aclfile.
    ///
    /// `ACL SAVE`
    pub fn acl_save(&self) -> Command<&Session, ()> {
        commands::acl_save().on(self)
    }

    /// Creates a user, or changes its permissions.
    ///
    /// `ACL SETUSER username rule …`
    pub fn acl_setuser(&self, username: impl ToArg, rules: impl ToArgs) -> Command<&Session, ()> {
        commands::acl_setuser(username, rules).on(self)
    }

    /// Lists the names of all users.
    ///
    /// `ACL USERS`
    pub fn acl_users<T>(&self) -> Command<&Session, Vec<T>> {
        commands::acl_users().on(self)
    }

    /// Returns the user name of the connection.
    ///
    /// `ACL WHOAMI`
    pub fn acl_whoami(&self) -> Command<&Session, String> {
        commands::acl_whoami().on(self)
    }

    /// Rewrites the append-only file in the background.
    ///
    /// `BGREWRITEAOF`
    pub fn bgrewriteaof(&self) -> Command<&Session, String> {
        commands::bgrewriteaof().on(self)
    }

    /// Saves a snapshot of the dataset to its file in the background.
    ///
    /// `BGSAVE [SCHEDULE]`
    pub fn bgsave(&self) -> Command<&Session, String, options::Bgsave> {
        commands::bgsave().on(self)
    }

    /// Returns the number of commands.
    ///
    /// `COMMAND COUNT`
    pub fn command_count(&self) -> Command<&Session, i64> {
        commands::command_count().on(self)
    }

    /// Returns documentation of the given commands, or of all commands.
    ///
    /// `COMMAND DOCS [command-name …]`
    pub fn command_docs<T>(&self) -> Command<&Session, T, options::CommandDocs> {
        commands::command_docs().on(self)
    }

    /// Returns the keys of a complete command.
    ///
    /// `COMMAND GETKEYS words …`
    pub fn command_getkeys<T>(&self, words: impl ToArgs) -> Command<&Session, Vec<T>> {
        commands::command_getkeys(words).on(self)
    }

    /// Returns the keys of a complete command, and the access flags of each.
    ///
    /// `COMMAND GETKEYSANDFLAGS words …`
    pub fn command_getkeysandflags<T>(&self, words: impl ToArgs) -> Command<&Session, Vec<T>> {
        commands::command_getkeysandflags(words).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `COMMAND HELP`
    pub fn command_help(&self) -> Command<&Session, Vec<String>> {
        commands::command_help().on(self)
    }

    /// Returns information about the given commands, or about all commands.
    ///
    /// `COMMAND INFO [command-name …]`
    pub fn command_info<T>(&self) -> Command<&Session, Vec<T>, options::CommandInfo> {
        commands::command_info().on(self)
    }

    /// Lists the names of all commands, or of those that match a filter.
    ///
    /// `COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]`
    pub fn command_list<T>(&self) -> Command<&Session, Vec<T>, options::CommandList> {
        commands::command_list().on(self)
    }

    /// Returns the settings that match names or patterns, with their values. The reply is a map, or a list of
    /// pairs.
    ///
    /// `CONFIG GET parameter …`
    pub fn config_get<T>(&self, parameters: impl ToArgs) -> Command<&Session, T> {
        commands::config_get(parameters).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `CONFIG HELP`
    pub fn config_help(&self) -> Command<&Session, Vec<String>> {
        commands::config_help().on(self)
    }

    /// Resets the statistics of INFO.
    ///
    /// `CONFIG RESETSTAT`
    pub fn config_resetstat(&self) -> Command<&Session, ()> {
        commands::config_resetstat().on(self)
    }

    /// Writes the current settings to the configuration file.
    ///
    /// `CONFIG REWRITE`
    pub fn config_rewrite(&self) -> Command<&Session, ()> {
        commands::config_rewrite().on(self)
    }

    /// Changes settings atomically.
    ///
    /// `CONFIG SET parameter value …`
    pub fn config_set(&self, parameter_values: impl ToArgs) -> Command<&Session, ()> {
        commands::config_set(parameter_values).on(self)
    }

    /// Returns the number of keys in the selected database.
    ///
    /// `DBSIZE`
    pub fn dbsize(&self) -> Command<&Session, i64> {
        commands::dbsize().on(self)
    }

    /// Starts a coordinated failover to a replica.
    ///
    /// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`
    pub fn failover(&self) -> Command<&Session, (), options::Failover> {
        commands::failover().on(self)
    }

    /// Removes all keys of all databases.
    ///
    /// `FLUSHALL [ASYNC | SYNC]`
    pub fn flushall(&self) -> Command<&Session, (), options::Flushall> {
        commands::flushall().on(self)
    }

    /// Removes all keys of the selected database.
    ///
    /// `FLUSHDB [ASYNC | SYNC]`
    pub fn flushdb(&self) -> Command<&Session, (), options::Flushdb> {
        commands::flushdb().on(self)
    }

    /// Returns metrics of the server, by section.
    ///
    /// `INFO [section …]`
    pub fn info(&self) -> Command<&Session, String, options::Info> {
        commands::info().on(self)
    }

    /// Returns the time of the last successful save as a Unix time.
    ///
    /// `LASTSAVE`
    pub fn lastsave(&self) -> Command<&Session, i64> {
        commands::lastsave().on(self)
    }

    /// Explains latency spikes in prose.
    ///
    /// `LATENCY DOCTOR`
    pub fn latency_doctor(&self) -> Command<&Session, String> {
        commands::latency_doctor().on(self)
    }

    /// Draws the latency spikes of an event.
    ///
    /// `LATENCY GRAPH event`
    pub fn latency_graph(&self, event: impl ToArg) -> Command<&Session, String> {
        commands::latency_graph(event).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `LATENCY HELP`
    pub fn latency_help(&self) -> Command<&Session, Vec<String>> {
        commands::latency_help().on(self)
    }

    /// Shows the latency histograms of commands.
    ///
    /// `LATENCY HISTOGRAM [command …]`
    pub fn latency_histogram<T>(&self) -> Command<&Session, T, options::LatencyHistogram> {
        commands::latency_histogram().on(self)
    }

    /// Lists the latency spikes of an event.
    ///
    /// `LATENCY HISTORY event`
    pub fn latency_history<T>(&self, event: impl ToArg) -> Command<&Session, Vec<T>> {
        commands::latency_history(event).on(self)
    }

    /// Shows the latest latency spike of each event.
    ///
    /// `LATENCY LATEST`
    pub fn latency_latest<T>(&self) -> Command<&Session, Vec<T>> {
        commands::latency_latest().on(self)
    }

    /// Deletes the recorded latency spikes.
    ///
    /// `LATENCY RESET [event …]`
    pub fn latency_reset(&self) -> Command<&Session, i64, options::LatencyReset> {
        commands::latency_reset().on(self)
    }

    /// Shows a small picture and the version.
    ///
    /// `LOLWUT [VERSION version]`
    pub fn lolwut(&self) -> Command<&Session, String, options::Lolwut> {
        commands::lolwut().on(self)
    }

    /// Reports problems with memory use.
    ///
    /// `MEMORY DOCTOR`
    pub fn memory_doctor(&self) -> Command<&Session, String> {
        commands::memory_doctor().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `MEMORY HELP`
    pub fn memory_help(&self) -> Command<&Session, Vec<String>> {
        commands::memory_help().on(self)
    }

    /// Shows the metrics of the allocator.
    ///
    /// `MEMORY MALLOC-STATS`
    pub fn memory_malloc_stats(&self) -> Command<&Session, String> {
        commands::memory_malloc_stats().on(self)
    }

    /// Returns unused memory to the operating system.
    ///
    /// `MEMORY PURGE`
    pub fn memory_purge(&self) -> Command<&Session, ()> {
        commands::memory_purge().on(self)
    }

    /// Shows statistics of memory use.
    ///
    /// `MEMORY STATS`
    pub fn memory_stats<T>(&self) -> Command<&Session, T> {
        commands::memory_stats().on(self)
    }

    /// Returns the memory use of a key and its value in bytes.
    ///
    /// `MEMORY USAGE key [SAMPLES count]`
    pub fn memory_usage(
        &self,
        key: impl ToArg,
    ) -> Command<&Session, Option<i64>, options::MemoryUsage> {
        commands::memory_usage(key).on(self)
    }

    /// Lists the subcommands.
    ///
    /// `MODULE HELP`
    pub fn module_help(&self) -> Command<&Session, Vec<String>> {
        commands::module_help().on(self)
    }

    /// Lists the loaded modules: always empty.
    ///
    /// `MODULE LIST`
    pub fn module_list<T>(&self) -> Command<&Session, Vec<T>> {
        commands::module_list().on(self)
    }

    /// Always fails: modules are not supported.
    ///
    /// `MODULE LOAD path [arg …]`
    pub fn module_load(&self, path: impl ToArg) -> Command<&Session, ()> {
        commands::module_load(path).on(self)
    }

    /// Always fails: modules are not supported.
    ///
    /// `MODULE LOADEX path [CONFIG name value …] [ARGS arg …]`
    pub fn module_loadex(&self, path: impl ToArg) -> Command<&Session, (), options::ModuleLoadex> {
        commands::module_loadex(path).on(self)
    }

    /// Always fails: no module can be loaded.
    ///
    /// `MODULE UNLOAD name`
    pub fn module_unload(&self, name: impl ToArg) -> Command<&Session, ()> {
        commands::module_unload(name).on(self)
    }

    /// Makes this server a replica of another server, or a primary.
    ///
    /// `REPLICAOF <host port | NO ONE>`
    pub fn replicaof(&self, host: impl ToArg, port: impl ToArg) -> Command<&Session, ()> {
        commands::replicaof(host, port).on(self)
    }

    /// Makes this server a replica of another server, or a primary.
    ///
    /// `REPLICAOF <host port | NO ONE>`
    pub fn replicaof_no_one(&self) -> Command<&Session, ()> {
        commands::replicaof_no_one().on(self)
    }

    /// Finds the slots in which replicas differ from this server.
    ///
    /// `REPLICATION COMPARE [HEAL]`
    pub fn replication_compare<T>(&self) -> Command<&Session, T, options::ReplicationCompare> {
        commands::replication_compare().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `REPLICATION HELP`
    pub fn replication_help(&self) -> Command<&Session, Vec<String>> {
        commands::replication_help().on(self)
    }

    /// Returns the replication role of this server, and its primary or replicas.
    ///
    /// `ROLE`
    pub fn role<T>(&self) -> Command<&Session, T> {
        commands::role().on(self)
    }

    /// Saves the dataset to the RDB file while all other clients are blocked.
    ///
    /// `SAVE`
    pub fn save(&self) -> Command<&Session, ()> {
        commands::save().on(self)
    }

    /// Shuts down the server, with or without saving the dataset.
    ///
    /// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`
    pub fn shutdown(&self) -> Command<&Session, (), options::Shutdown> {
        commands::shutdown().on(self)
    }

    /// Shows the latest slow commands.
    ///
    /// `SLOWLOG GET [count]`
    pub fn slowlog_get<T>(&self) -> Command<&Session, Vec<T>, options::SlowlogGet> {
        commands::slowlog_get().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `SLOWLOG HELP`
    pub fn slowlog_help(&self) -> Command<&Session, Vec<String>> {
        commands::slowlog_help().on(self)
    }

    /// Returns the number of entries in the slow log.
    ///
    /// `SLOWLOG LEN`
    pub fn slowlog_len(&self) -> Command<&Session, i64> {
        commands::slowlog_len().on(self)
    }

    /// Empties the slow log.
    ///
    /// `SLOWLOG RESET`
    pub fn slowlog_reset(&self) -> Command<&Session, ()> {
        commands::slowlog_reset().on(self)
    }

    /// Exchanges two databases.
    ///
    /// `SWAPDB index1 index2`
    pub fn swapdb(&self, index1: impl ToArg, index2: impl ToArg) -> Command<&Session, ()> {
        commands::swapdb(index1, index2).on(self)
    }

    /// Returns the server's time: Unix seconds and microseconds.
    ///
    /// `TIME`
    pub fn time(&self) -> Command<&Session, (i64, i64)> {
        commands::time().on(self)
    }
}
