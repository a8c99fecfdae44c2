//! Commands of the group `server`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Lists the command categories, or the commands of one category.
///
/// `ACL CAT [categoryname]`
///
/// O(1), because categories and commands are fixed. Since Redis 6.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn acl_cat<T>() -> Command<(), Vec<T>, options::AclCat> {
    Command::typed(Request::new("ACL CAT", PLAIN))
}

/// Removes users and closes their connections.
///
/// `ACL DELUSER username …`
///
/// O(1) for a user with few rules. Since Redis 6.0.0. Errors: those of the server.
pub fn acl_deluser(usernames: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("ACL DELUSER", PLAIN);
    request.args(usernames);
    Command::typed(request)
}

/// Checks whether a user may run a command, without running it.
///
/// `ACL DRYRUN username command [arg …]`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn acl_dryrun(username: impl ToArg, command: impl ToArg) -> Command<(), String> {
    let mut request = Request::new("ACL DRYRUN", PLAIN);
    request.arg(username);
    request.arg(command);
    Command::typed(request)
}

/// Generates a random password.
///
/// `ACL GENPASS [bits]`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server.
pub fn acl_genpass() -> Command<(), String, options::AclGenpass> {
    Command::typed(Request::new("ACL GENPASS", PLAIN))
}

/// Shows the settings and permissions of a user.
///
/// `ACL GETUSER username`
///
/// O(N) in the number of the user's rules. Since Redis 6.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn acl_getuser<T>(username: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("ACL GETUSER", PLAIN);
    request.arg(username);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `ACL HELP`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server.
pub fn acl_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("ACL HELP", PLAIN))
}

/// Shows all users in ACL file format.
///
/// `ACL LIST`
///
/// O(N) in the number of users. Since Redis 6.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn acl_list<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("ACL LIST", PLAIN))
}

/// Reloads all users from the aclfile.
///
/// `ACL LOAD`
///
/// O(N) in the number of users. Since Redis 6.0.0. Errors: those of the server.
pub fn acl_load() -> Command<(), ()> {
    Command::typed(Request::new("ACL LOAD", PLAIN))
}

/// Shows or deletes the log of denied commands and failed authentications.
///
/// `ACL LOG [count]`
///
/// O(N) in the number of entries returned. Since Redis 6.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn acl_log<T>() -> Command<(), Vec<T>, options::AclLog> {
    Command::typed(Request::new("ACL LOG", PLAIN))
}

/// Shows or deletes the log of denied commands and failed authentications.
///
/// `ACL LOG RESET`
///
/// O(N) in the number of entries returned. Since Redis 6.0.0. Errors: those of the server.
pub fn acl_log_reset() -> Command<(), ()> {
    let mut request = Request::new("ACL LOG", PLAIN);
    request.arg("RESET");
    Command::typed(request)
}

/// Saves all users to the aclfile.
///
/// `ACL SAVE`
///
/// O(N) in the number of users. Since Redis 6.0.0. Errors: those of the server.
pub fn acl_save() -> Command<(), ()> {
    Command::typed(Request::new("ACL SAVE", PLAIN))
}

/// Creates a user, or changes its permissions.
///
/// `ACL SETUSER username rule …`
///
/// O(N) in the number of rules. Since Redis 6.0.0. Errors: those of the server.
pub fn acl_setuser(username: impl ToArg, rules: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("ACL SETUSER", PLAIN);
    request.arg(username);
    request.args(rules);
    Command::typed(request)
}

/// Lists the names of all users.
///
/// `ACL USERS`
///
/// O(N) in the number of users. Since Redis 6.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn acl_users<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("ACL USERS", PLAIN))
}

/// Returns the user name of the connection.
///
/// `ACL WHOAMI`
///
/// O(1). Since Redis 6.0.0. Errors: those of the server.
pub fn acl_whoami() -> Command<(), String> {
    Command::typed(Request::new("ACL WHOAMI", PLAIN))
}

/// Rewrites the append-only file in the background.
///
/// `BGREWRITEAOF`
///
/// O(1), and O(N) in the background for N keys in all databases. Since Redis 1.0.0. Errors: those of the
/// server.
pub fn bgrewriteaof() -> Command<(), String> {
    Command::typed(Request::new("BGREWRITEAOF", PLAIN))
}

/// Saves a snapshot of the dataset to its file in the background.
///
/// `BGSAVE [SCHEDULE]`
///
/// O(1), and O(N) in the background for N keys in all databases. Since Redis 1.0.0. Errors: those of the
/// server.
pub fn bgsave() -> Command<(), String, options::Bgsave> {
    Command::typed(Request::new("BGSAVE", PLAIN))
}

/// Returns the number of commands.
///
/// `COMMAND COUNT`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server.
pub fn command_count() -> Command<(), i64> {
    Command::typed(Request::new("COMMAND COUNT", PLAIN))
}

/// Returns documentation of the given commands, or of all commands.
///
/// `COMMAND DOCS [command-name …]`
///
/// O(N) with N commands. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn command_docs<T>() -> Command<(), T, options::CommandDocs> {
    Command::typed(Request::new("COMMAND DOCS", PLAIN))
}

/// Returns the keys of a complete command.
///
/// `COMMAND GETKEYS words …`
///
/// O(N) in the number of arguments. Since Redis 2.8.13. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn command_getkeys<T>(words: impl ToArgs) -> Command<(), Vec<T>> {
    let mut request = Request::new("COMMAND GETKEYS", PLAIN);
    request.args(words);
    Command::typed(request)
}

/// Returns the keys of a complete command, and the access flags of each.
///
/// `COMMAND GETKEYSANDFLAGS words …`
///
/// O(N) in the number of arguments. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn command_getkeysandflags<T>(words: impl ToArgs) -> Command<(), Vec<T>> {
    let mut request = Request::new("COMMAND GETKEYSANDFLAGS", PLAIN);
    request.args(words);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `COMMAND HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn command_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("COMMAND HELP", PLAIN))
}

/// Returns information about the given commands, or about all commands.
///
/// `COMMAND INFO [command-name …]`
///
/// O(N) with N commands. Since Redis 2.8.13. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn command_info<T>() -> Command<(), Vec<T>, options::CommandInfo> {
    Command::typed(Request::new("COMMAND INFO", PLAIN))
}

/// Lists the names of all commands, or of those that match a filter.
///
/// `COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]`
///
/// O(N) with N commands. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn command_list<T>() -> Command<(), Vec<T>, options::CommandList> {
    Command::typed(Request::new("COMMAND LIST", PLAIN))
}

/// Returns the settings that match names or patterns, with their values. The reply is a map, or a list of
/// pairs.
///
/// `CONFIG GET parameter …`
///
/// O(N) with N names and patterns. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn config_get<T>(parameters: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("CONFIG GET", PLAIN);
    request.args(parameters);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `CONFIG HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn config_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("CONFIG HELP", PLAIN))
}

/// Resets the statistics of INFO.
///
/// `CONFIG RESETSTAT`
///
/// O(1). Since Redis 2.0.0. Errors: those of the server.
pub fn config_resetstat() -> Command<(), ()> {
    Command::typed(Request::new("CONFIG RESETSTAT", PLAIN))
}

/// Writes the current settings to the configuration file.
///
/// `CONFIG REWRITE`
///
/// O(1). Since Redis 2.8.0. Errors: those of the server.
pub fn config_rewrite() -> Command<(), ()> {
    Command::typed(Request::new("CONFIG REWRITE", PLAIN))
}

/// Changes settings atomically.
///
/// `CONFIG SET parameter value …`
///
/// O(N) with N settings. Since Redis 2.0.0. Errors: those of the server.
pub fn config_set(parameter_values: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("CONFIG SET", PLAIN);
    request.args(parameter_values);
    Command::typed(request)
}

/// Returns the number of keys in the selected database.
///
/// `DBSIZE`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn dbsize() -> Command<(), i64> {
    Command::typed(Request::new("DBSIZE", READS))
}

/// Commands for tests of the server.
///
/// `DEBUG words …`
///
/// Depends on subcommand. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn debug<T>(words: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("DEBUG", PLAIN);
    request.args(words);
    Command::typed(request)
}

/// Starts a coordinated failover to a replica.
///
/// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn failover() -> Command<(), (), options::Failover> {
    Command::typed(Request::new("FAILOVER", PLAIN))
}

/// Removes all keys of all databases.
///
/// `FLUSHALL [ASYNC | SYNC]`
///
/// O(N) in the number of slots in use; another thread frees the keys. Since Redis 1.0.0. Errors: those of the
/// server.
pub fn flushall() -> Command<(), (), options::Flushall> {
    Command::typed(Request::new("FLUSHALL", PLAIN))
}

/// Removes all keys of the selected database.
///
/// `FLUSHDB [ASYNC | SYNC]`
///
/// O(N) in the number of slots in use; another thread frees the keys. Since Redis 1.0.0. Errors: those of the
/// server.
pub fn flushdb() -> Command<(), (), options::Flushdb> {
    Command::typed(Request::new("FLUSHDB", PLAIN))
}

/// Returns metrics of the server, by section.
///
/// `INFO [section …]`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn info() -> Command<(), String, options::Info> {
    Command::typed(Request::new("INFO", PLAIN))
}

/// Returns the time of the last successful save as a Unix time.
///
/// `LASTSAVE`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn lastsave() -> Command<(), i64> {
    Command::typed(Request::new("LASTSAVE", PLAIN))
}

/// Explains latency spikes in prose.
///
/// `LATENCY DOCTOR`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server.
pub fn latency_doctor() -> Command<(), String> {
    Command::typed(Request::new("LATENCY DOCTOR", PLAIN))
}

/// Draws the latency spikes of an event.
///
/// `LATENCY GRAPH event`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server.
pub fn latency_graph(event: impl ToArg) -> Command<(), String> {
    let mut request = Request::new("LATENCY GRAPH", PLAIN);
    request.arg(event);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `LATENCY HELP`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server.
pub fn latency_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("LATENCY HELP", PLAIN))
}

/// Shows the latency histograms of commands.
///
/// `LATENCY HISTOGRAM [command …]`
///
/// O(N) with N commands. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn latency_histogram<T>() -> Command<(), T, options::LatencyHistogram> {
    Command::typed(Request::new("LATENCY HISTOGRAM", PLAIN))
}

/// Lists the latency spikes of an event.
///
/// `LATENCY HISTORY event`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn latency_history<T>(event: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("LATENCY HISTORY", PLAIN);
    request.arg(event);
    Command::typed(request)
}

/// Shows the latest latency spike of each event.
///
/// `LATENCY LATEST`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn latency_latest<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("LATENCY LATEST", PLAIN))
}

/// Deletes the recorded latency spikes.
///
/// `LATENCY RESET [event …]`
///
/// O(1). Since Redis 2.8.13. Errors: those of the server.
pub fn latency_reset() -> Command<(), i64, options::LatencyReset> {
    Command::typed(Request::new("LATENCY RESET", PLAIN))
}

/// Shows a small picture and the version.
///
/// `LOLWUT [VERSION version]`
///
/// Since Redis 5.0.0. Errors: those of the server.
pub fn lolwut() -> Command<(), String, options::Lolwut> {
    Command::typed(Request::new("LOLWUT", READS))
}

/// Reports problems with memory use.
///
/// `MEMORY DOCTOR`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn memory_doctor() -> Command<(), String> {
    Command::typed(Request::new("MEMORY DOCTOR", PLAIN))
}

/// Lists the subcommands.
///
/// `MEMORY HELP`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn memory_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("MEMORY HELP", PLAIN))
}

/// Shows the metrics of the allocator.
///
/// `MEMORY MALLOC-STATS`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn memory_malloc_stats() -> Command<(), String> {
    Command::typed(Request::new("MEMORY MALLOC-STATS", PLAIN))
}

/// Returns unused memory to the operating system.
///
/// `MEMORY PURGE`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn memory_purge() -> Command<(), ()> {
    Command::typed(Request::new("MEMORY PURGE", PLAIN))
}

/// Shows statistics of memory use.
///
/// `MEMORY STATS`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn memory_stats<T>() -> Command<(), T> {
    Command::typed(Request::new("MEMORY STATS", PLAIN))
}

/// Returns the memory use of a key and its value in bytes.
///
/// `MEMORY USAGE key [SAMPLES count]`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn memory_usage(key: impl ToArg) -> Command<(), Option<i64>, options::MemoryUsage> {
    let mut request = Request::new("MEMORY USAGE", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `MODULE HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn module_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("MODULE HELP", PLAIN))
}

/// Lists the loaded modules: always empty.
///
/// `MODULE LIST`
///
/// O(N) in the number of modules, which are not supported. Since Redis 4.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn module_list<T>() -> Command<(), Vec<T>> {
    Command::typed(Request::new("MODULE LIST", PLAIN))
}

/// Always fails: modules are not supported.
///
/// `MODULE LOAD path [arg …]`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn module_load(path: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("MODULE LOAD", PLAIN);
    request.arg(path);
    Command::typed(request)
}

/// Always fails: modules are not supported.
///
/// `MODULE LOADEX path [CONFIG name value …] [ARGS arg …]`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn module_loadex(path: impl ToArg) -> Command<(), (), options::ModuleLoadex> {
    let mut request = Request::new("MODULE LOADEX", PLAIN);
    request.arg(path);
    Command::typed(request)
}

/// Always fails: no module can be loaded.
///
/// `MODULE UNLOAD name`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn module_unload(name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("MODULE UNLOAD", PLAIN);
    request.arg(name);
    Command::typed(request)
}

/// Shows every command while the server executes it.
///
/// `MONITOR`
///
/// Since Redis 1.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn monitor() -> Command<(), ()> {
    Command::typed(Request::new("MONITOR", BINDS))
}

/// Sends the changes that a replica lacks, followed by every further change.
///
/// `PSYNC replicationid offset`
///
/// Since Redis 2.8.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn psync<T>(replicationid: impl ToArg, offset: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("PSYNC", BINDS);
    request.arg(replicationid);
    request.arg(offset);
    Command::typed(request)
}

/// Lets a replica report its state.
///
/// `REPLCONF words …`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn replconf(words: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("REPLCONF", BINDS);
    request.args(words);
    Command::typed(request)
}

/// Makes this server a replica of another server, or a primary.
///
/// `REPLICAOF <host port | NO ONE>`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn replicaof(host: impl ToArg, port: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("REPLICAOF", PLAIN);
    request.arg(host);
    request.arg(port);
    Command::typed(request)
}

/// Makes this server a replica of another server, or a primary.
///
/// `REPLICAOF <host port | NO ONE>`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn replicaof_no_one() -> Command<(), ()> {
    let mut request = Request::new("REPLICAOF", PLAIN);
    request.arg("NO");
    request.arg("ONE");
    Command::typed(request)
}

/// Finds the slots in which replicas differ from this server.
///
/// `REPLICATION COMPARE [HEAL]`
///
/// O(N) in the size of the dataset, in the background. Since Brisk 0.1.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn replication_compare<T>() -> Command<(), T, options::ReplicationCompare> {
    Command::typed(Request::new("REPLICATION COMPARE", PLAIN))
}

/// Lists the subcommands.
///
/// `REPLICATION HELP`
///
/// O(1). Since Brisk 0.1.0. Errors: those of the server.
pub fn replication_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("REPLICATION HELP", PLAIN))
}

/// Creates a key from a value that DUMP has serialized.
///
/// `RESTORE-ASKING key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
///
/// O(1) to create the key, plus O(N) in the bytes of the value; O(N*log(N)) for sorted sets. Since Redis 3.0.0.
/// Errors: those of the server.
pub fn restore_asking(
    key: impl ToArg,
    ttl: impl ToArg,
    serialized_value: impl ToArg,
) -> Command<(), (), options::RestoreAsking> {
    let mut request = Request::new("RESTORE-ASKING", PLAIN);
    request.key(key);
    request.arg(ttl);
    request.arg(serialized_value);
    Command::typed(request)
}

/// Returns the replication role of this server, and its primary or replicas.
///
/// `ROLE`
///
/// O(1). Since Redis 2.8.12. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn role<T>() -> Command<(), T> {
    Command::typed(Request::new("ROLE", PLAIN))
}

/// Saves the dataset to the RDB file while all other clients are blocked.
///
/// `SAVE`
///
/// O(N) in the number of keys in all databases. Since Redis 1.0.0. Errors: those of the server.
pub fn save() -> Command<(), ()> {
    Command::typed(Request::new("SAVE", PLAIN))
}

/// Shuts down the server, with or without saving the dataset.
///
/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`
///
/// O(N) with N keys if they are saved, otherwise O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn shutdown() -> Command<(), (), options::Shutdown> {
    Command::typed(Request::new("SHUTDOWN", PLAIN))
}

/// Makes this server a replica of another server, or a primary.
///
/// `SLAVEOF <host port | NO ONE>`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
#[deprecated(note = "since Redis 5.0.0: `REPLICAOF` instead")]
pub fn slaveof(host: impl ToArg, port: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("SLAVEOF", PLAIN);
    request.arg(host);
    request.arg(port);
    Command::typed(request)
}

/// Makes this server a replica of another server, or a primary.
///
/// `SLAVEOF <host port | NO ONE>`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
#[deprecated(note = "since Redis 5.0.0: `REPLICAOF` instead")]
pub fn slaveof_no_one() -> Command<(), ()> {
    let mut request = Request::new("SLAVEOF", PLAIN);
    request.arg("NO");
    request.arg("ONE");
    Command::typed(request)
}

/// Shows the latest slow commands.
///
/// `SLOWLOG GET [count]`
///
/// O(N) with N entries shown. Since Redis 2.2.12. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn slowlog_get<T>() -> Command<(), Vec<T>, options::SlowlogGet> {
    Command::typed(Request::new("SLOWLOG GET", PLAIN))
}

/// Lists the subcommands.
///
/// `SLOWLOG HELP`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn slowlog_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("SLOWLOG HELP", PLAIN))
}

/// Returns the number of entries in the slow log.
///
/// `SLOWLOG LEN`
///
/// O(1). Since Redis 2.2.12. Errors: those of the server.
pub fn slowlog_len() -> Command<(), i64> {
    Command::typed(Request::new("SLOWLOG LEN", PLAIN))
}

/// Empties the slow log.
///
/// `SLOWLOG RESET`
///
/// O(N) with N entries. Since Redis 2.2.12. Errors: those of the server.
pub fn slowlog_reset() -> Command<(), ()> {
    Command::typed(Request::new("SLOWLOG RESET", PLAIN))
}

/// Exchanges two databases.
///
/// `SWAPDB index1 index2`
///
/// O(N) in the number of clients that watch or wait for keys in either database. Since Redis 4.0.0. Errors:
/// those of the server.
pub fn swapdb(index1: impl ToArg, index2: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("SWAPDB", PLAIN);
    request.arg(index1);
    request.arg(index2);
    Command::typed(request)
}

/// Sends the dataset, followed by every change.
///
/// `SYNC`
///
/// Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn sync<T>() -> Command<(), T> {
    Command::typed(Request::new("SYNC", BINDS))
}

/// Returns the server's time: Unix seconds and microseconds.
///
/// `TIME`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn time() -> Command<(), (i64, i64)> {
    Command::typed(Request::new("TIME", PLAIN))
}
