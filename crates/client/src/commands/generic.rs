//! Commands of the group `generic`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, BINDS_AND_BLOCKS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Copies the value and the TTL of a key to another key or database.
///
/// `COPY source destination [DB destination-db] [REPLACE]`
///
/// O(N) in the number of elements; O(1) for strings. Since Redis 6.2.0. Errors: those of the server.
pub fn copy(source: impl ToArg, destination: impl ToArg) -> Command<(), bool, options::Copy> {
    let mut request = Request::new("COPY", PLAIN);
    request.key(source);
    request.key(destination);
    Command::typed(request)
}

/// Deletes keys.
///
/// `DEL key …`
///
/// O(N) in the number of keys; large values are freed in the background. Since Redis 1.0.0. Errors: those of
/// the server.
pub fn del(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("DEL", PLAIN);
    request.keys(keys);
    Command::typed(request)
}

/// Returns a serialized value, for RESTORE.
///
/// `DUMP key`
///
/// O(1) to find the key, and O(N) in the bytes of the value. Since Redis 2.6.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn dump<T>(key: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("DUMP", READS);
    request.key(key);
    Command::typed(request)
}

/// Counts the given keys that exist.
///
/// `EXISTS key …`
///
/// O(N) in the number of keys. Since Redis 1.0.0. Errors: those of the server.
pub fn exists(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("EXISTS", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Sets the TTL of a key in seconds.
///
/// `EXPIRE key seconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn expire(key: impl ToArg, seconds: impl ToArg) -> Command<(), bool, options::Expire> {
    let mut request = Request::new("EXPIRE", PLAIN);
    request.key(key);
    request.arg(seconds);
    Command::typed(request)
}

/// Sets the expiry time of a key to a Unix time in seconds.
///
/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 1.2.0. Errors: those of the server.
pub fn expireat(key: impl ToArg, unix_time_seconds: i64) -> Command<(), bool, options::Expireat> {
    let mut request = Request::new("EXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_seconds);
    Command::typed(request)
}

/// Returns the expiry time of a key as a Unix time in seconds.
///
/// `EXPIRETIME key`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn expiretime(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("EXPIRETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns all keys that match a pattern.
///
/// `KEYS pattern`
///
/// O(N) in the number of keys of the database; O(1) for a pattern that can match only one name. Since Redis 1.0.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn keys<T>(pattern: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("KEYS", READS);
    request.arg(pattern);
    Command::typed(request)
}

/// Moves keys to another server. The reply is `OK`, or `NOKEY` if none of the keys exists.
///
/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [[AUTH password] | [AUTH2 username
/// password]] [KEYS key …]`
///
/// O(N) in the bytes of the values, for DUMP, the transfer, RESTORE and DEL. Since Redis 2.6.0. Errors: those
/// of the server.
pub fn migrate(
    host: impl ToArg,
    port: impl ToArg,
    key: impl ToArg,
    destination_db: impl ToArg,
    timeout: impl ToArg,
) -> Command<(), String, options::Migrate> {
    let mut request = Request::new("MIGRATE", PLAIN);
    request.arg(host);
    request.arg(port);
    request.key(key);
    request.arg(destination_db);
    request.arg(timeout);
    Command::typed(request)
}

/// Moves a key to another database unless it exists there.
///
/// `MOVE key db`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn move_to(key: impl ToArg, db: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("MOVE", PLAIN);
    request.key(key);
    request.arg(db);
    Command::typed(request)
}

/// Returns the encoding of a value.
///
/// `OBJECT ENCODING key`
///
/// O(1). Since Redis 2.2.3. Errors: those of the server.
pub fn object_encoding(key: impl ToArg) -> Command<(), Option<String>> {
    let mut request = Request::new("OBJECT ENCODING", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the logarithmic access frequency of a key.
///
/// `OBJECT FREQ key`
///
/// O(1). Since Redis 4.0.0. Errors: those of the server.
pub fn object_freq(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT FREQ", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists the subcommands.
///
/// `OBJECT HELP`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server.
pub fn object_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("OBJECT HELP", PLAIN))
}

/// Returns the time in seconds since the last access to a key.
///
/// `OBJECT IDLETIME key`
///
/// O(1). Since Redis 2.2.3. Errors: those of the server.
pub fn object_idletime(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT IDLETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the reference count of a value.
///
/// `OBJECT REFCOUNT key`
///
/// O(1). Since Redis 2.2.3. Errors: those of the server.
pub fn object_refcount(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT REFCOUNT", READS);
    request.key(key);
    Command::typed(request)
}

/// Removes the TTL of a key.
///
/// `PERSIST key`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server.
pub fn persist(key: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("PERSIST", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Sets the TTL of a key in milliseconds.
///
/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn pexpire(key: impl ToArg, milliseconds: impl ToArg) -> Command<(), bool, options::Pexpire> {
    let mut request = Request::new("PEXPIRE", PLAIN);
    request.key(key);
    request.arg(milliseconds);
    Command::typed(request)
}

/// Sets the expiry time of a key to a Unix time in milliseconds.
///
/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn pexpireat(
    key: impl ToArg,
    unix_time_milliseconds: i64,
) -> Command<(), bool, options::Pexpireat> {
    let mut request = Request::new("PEXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_milliseconds);
    Command::typed(request)
}

/// Returns the expiry time of a key as a Unix time in milliseconds.
///
/// `PEXPIRETIME key`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn pexpiretime(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("PEXPIRETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the TTL of a key in milliseconds.
///
/// `PTTL key`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn pttl(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("PTTL", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns a random key.
///
/// `RANDOMKEY`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn randomkey<T>() -> Command<(), Option<T>> {
    Command::typed(Request::new("RANDOMKEY", READS))
}

/// Renames a key and replaces the destination key.
///
/// `RENAME key newkey`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn rename(key: impl ToArg, new_key: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("RENAME", PLAIN);
    request.key(key);
    request.key(new_key);
    Command::typed(request)
}

/// Renames a key only if the destination key does not exist.
///
/// `RENAMENX key newkey`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn renamenx(key: impl ToArg, new_key: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("RENAMENX", PLAIN);
    request.key(key);
    request.key(new_key);
    Command::typed(request)
}

/// Creates a key from a value that DUMP has serialized.
///
/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
///
/// O(1) to create the key, plus O(N) in the bytes of the value; O(N*log(N)) for sorted sets. Since Redis 2.6.0.
/// Errors: those of the server.
pub fn restore(
    key: impl ToArg,
    ttl: impl ToArg,
    serialized_value: impl ToArg,
) -> Command<(), (), options::Restore> {
    let mut request = Request::new("RESTORE", PLAIN);
    request.key(key);
    request.arg(ttl);
    request.arg(serialized_value);
    Command::typed(request)
}

/// Iterates over the keys of the database. Start with cursor 0; the iteration is complete when the reply's
/// cursor is 0. The elements are keys.
///
/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
///
/// O(1) for every call. A whole iteration, until the cursor is 0 again, is O(N) in the number of keys. Since
/// Redis 2.8.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn scan<T>(cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Scan> {
    let mut request = Request::new("SCAN", READS);
    request.arg(cursor);
    Command::typed(request)
}

/// Sorts the elements of a list, set or sorted set, and optionally stores the result.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
///
/// O(N+M*log(M)) for N elements, M of which are returned; O(N) if the elements are not sorted. Since Redis 1.0.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sort<T>(key: impl ToArg) -> Command<(), Vec<T>, options::Sort> {
    let mut request = Request::new("SORT", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Sorts the elements of a list, set or sorted set, and optionally stores the result.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] STORE destination`
///
/// O(N+M*log(M)) for N elements, M of which are returned; O(N) if the elements are not sorted. Since Redis 1.0.0.
/// Errors: those of the server.
pub fn sort_store(
    key: impl ToArg,
    destination: impl ToArg,
) -> Command<(), i64, options::SortStore> {
    let mut request = Request::new("SORT", PLAIN);
    request.key(key);
    request.end_of_options();
    request.arg("STORE");
    request.key(destination);
    Command::typed(request)
}

/// Returns the sorted elements of a list, set or sorted set.
///
/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
///
/// O(N+M*log(M)) for N elements, M of which are returned; O(N) if the elements are not sorted. Since Redis 7.0.0.
/// Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn sort_ro<T>(key: impl ToArg) -> Command<(), Vec<T>, options::SortRo> {
    let mut request = Request::new("SORT_RO", READS);
    request.key(key);
    Command::typed(request)
}

/// Updates the access time of keys and counts those that exist.
///
/// `TOUCH key …`
///
/// O(N) in the number of keys. Since Redis 3.2.1. Errors: those of the server.
pub fn touch(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("TOUCH", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Returns the TTL of a key in seconds.
///
/// `TTL key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn ttl(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("TTL", READS);
    request.key(key);
    Command::typed(request)
}

/// Returns the type of a key's value.
///
/// `TYPE key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn type_of(key: impl ToArg) -> Command<(), String> {
    let mut request = Request::new("TYPE", READS);
    request.key(key);
    Command::typed(request)
}

/// Deletes keys. Another thread frees their values.
///
/// `UNLINK key …`
///
/// O(1) for each key; another thread frees the value, in proportion to its size. Since Redis 4.0.0. Errors:
/// those of the server.
pub fn unlink(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("UNLINK", PLAIN);
    request.keys(keys);
    Command::typed(request)
}

/// Waits until replicas have received the writes of this connection.
///
/// `WAIT numreplicas timeout`
///
/// O(1). Since Redis 3.0.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn wait(numreplicas: impl ToArg, timeout: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("WAIT", BINDS);
    request.arg(numreplicas);
    request.arg(timeout);
    Command::typed(request)
}

/// Waits until the writes of this connection are synced to disk.
///
/// `WAITAOF numlocal numreplicas timeout`
///
/// O(1). Since Redis 7.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn waitaof(
    numlocal: impl ToArg,
    numreplicas: impl ToArg,
    timeout: impl ToArg,
) -> Command<(), (i64, i64)> {
    let mut request = Request::new("WAITAOF", BINDS_AND_BLOCKS);
    request.arg(numlocal);
    request.arg(numreplicas);
    request.arg(timeout);
    Command::typed(request)
}
