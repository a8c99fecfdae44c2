//! Commands of the group `generic`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, BINDS_AND_BLOCKS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Copies a key, its deadline included, to another key or database.
///
/// `COPY source destination [DB destination-db] [REPLACE]`
///
/// O(N) in the number of elements; O(1) for strings. Since Redis 6.2.0. Errors: the server's.
pub fn copy(source: impl ToArg, destination: impl ToArg) -> Command<(), bool, options::Copy> {
    let mut request = Request::new("COPY", PLAIN);
    request.key(source);
    request.key(destination);
    Command::typed(request)
}

/// Removes keys.
///
/// `DEL key …`
///
/// O(N) in the number of keys; large values are freed in the background. Since Redis 1.0.0. Errors: the
/// server's.
pub fn del(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("DEL", PLAIN);
    request.keys(keys);
    Command::typed(request)
}

/// Shows a value as bytes from which RESTORE makes it again.
///
/// `DUMP key`
///
/// O(1) to find the key, and O(N) in the bytes of the value. Since Redis 2.6.0. Errors: the server's;
/// `UnexpectedReply` if `T` does not fit.
pub fn dump<T>(key: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("DUMP", READS);
    request.key(key);
    Command::typed(request)
}

/// Counts how many of the given keys exist.
///
/// `EXISTS key …`
///
/// O(N) in the number of keys. Since Redis 1.0.0. Errors: the server's.
pub fn exists(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("EXISTS", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Lets a key expire in a number of seconds.
///
/// `EXPIRE key seconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn expire(key: impl ToArg, seconds: impl ToArg) -> Command<(), bool, options::Expire> {
    let mut request = Request::new("EXPIRE", PLAIN);
    request.key(key);
    request.arg(seconds);
    Command::typed(request)
}

/// Lets a key expire at a Unix time in seconds.
///
/// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 1.2.0. Errors: the server's.
pub fn expireat(key: impl ToArg, unix_time_seconds: i64) -> Command<(), bool, options::Expireat> {
    let mut request = Request::new("EXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_seconds);
    Command::typed(request)
}

/// Tells at which Unix time in seconds a key expires.
///
/// `EXPIRETIME key`
///
/// O(1). Since Redis 7.0.0. Errors: the server's.
pub fn expiretime(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("EXPIRETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Lists all keys whose name matches a pattern.
///
/// `KEYS pattern`
///
/// O(N) in the number of keys of the database; O(1) for a pattern that can match only one name. Since Redis 1.0.0.
/// Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn keys<T>(pattern: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("KEYS", READS);
    request.arg(pattern);
    Command::typed(request)
}

/// Hands keys over to another server. `OK`, or `NOKEY` if there was no key.
///
/// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [[AUTH password] | [AUTH2 username
/// password]] [KEYS key …]`
///
/// O(N) in the bytes of the values, here as DUMP and DEL and there as RESTORE, and as much to send. Since
/// Redis 2.6.0. Errors: the server's.
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

/// Takes a key to another database unless it exists there.
///
/// `MOVE key db`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn move_to(key: impl ToArg, db: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("MOVE", PLAIN);
    request.key(key);
    request.arg(db);
    Command::typed(request)
}

/// Names the form in which a value is stored.
///
/// `OBJECT ENCODING key`
///
/// O(1). Since Redis 2.2.3. Errors: the server's.
pub fn object_encoding(key: impl ToArg) -> Command<(), Option<String>> {
    let mut request = Request::new("OBJECT ENCODING", READS);
    request.key(key);
    Command::typed(request)
}

/// Tells how often a key is used, on a logarithmic scale.
///
/// `OBJECT FREQ key`
///
/// O(1). Since Redis 4.0.0. Errors: the server's.
pub fn object_freq(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT FREQ", READS);
    request.key(key);
    Command::typed(request)
}

/// Explains the subcommands.
///
/// `OBJECT HELP`
///
/// O(1). Since Redis 6.2.0. Errors: the server's.
pub fn object_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("OBJECT HELP", PLAIN))
}

/// Tells how many seconds ago a key was last used.
///
/// `OBJECT IDLETIME key`
///
/// O(1). Since Redis 2.2.3. Errors: the server's.
pub fn object_idletime(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT IDLETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Tells how many places hold a value.
///
/// `OBJECT REFCOUNT key`
///
/// O(1). Since Redis 2.2.3. Errors: the server's.
pub fn object_refcount(key: impl ToArg) -> Command<(), Option<i64>> {
    let mut request = Request::new("OBJECT REFCOUNT", READS);
    request.key(key);
    Command::typed(request)
}

/// Lets a key live for ever.
///
/// `PERSIST key`
///
/// O(1). Since Redis 2.2.0. Errors: the server's.
pub fn persist(key: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("PERSIST", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Lets a key expire in a number of milliseconds.
///
/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 2.6.0. Errors: the server's.
pub fn pexpire(key: impl ToArg, milliseconds: impl ToArg) -> Command<(), bool, options::Pexpire> {
    let mut request = Request::new("PEXPIRE", PLAIN);
    request.key(key);
    request.arg(milliseconds);
    Command::typed(request)
}

/// Lets a key expire at a Unix time in milliseconds.
///
/// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`
///
/// O(1). Since Redis 2.6.0. Errors: the server's.
pub fn pexpireat(
    key: impl ToArg,
    unix_time_milliseconds: i64,
) -> Command<(), bool, options::Pexpireat> {
    let mut request = Request::new("PEXPIREAT", PLAIN);
    request.key(key);
    request.arg(unix_time_milliseconds);
    Command::typed(request)
}

/// Tells at which Unix time in milliseconds a key expires.
///
/// `PEXPIRETIME key`
///
/// O(1). Since Redis 7.0.0. Errors: the server's.
pub fn pexpiretime(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("PEXPIRETIME", READS);
    request.key(key);
    Command::typed(request)
}

/// Tells in how many milliseconds a key expires.
///
/// `PTTL key`
///
/// O(1). Since Redis 2.6.0. Errors: the server's.
pub fn pttl(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("PTTL", READS);
    request.key(key);
    Command::typed(request)
}

/// Names a key chosen at random.
///
/// `RANDOMKEY`
///
/// O(1). Since Redis 1.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn randomkey<T>() -> Command<(), Option<T>> {
    Command::typed(Request::new("RANDOMKEY", READS))
}

/// Gives a key another name, replacing the key that has it.
///
/// `RENAME key newkey`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn rename(key: impl ToArg, new_key: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("RENAME", PLAIN);
    request.key(key);
    request.key(new_key);
    Command::typed(request)
}

/// Gives a key another name unless that name is taken.
///
/// `RENAMENX key newkey`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn renamenx(key: impl ToArg, new_key: impl ToArg) -> Command<(), bool> {
    let mut request = Request::new("RENAMENX", PLAIN);
    request.key(key);
    request.key(new_key);
    Command::typed(request)
}

/// Makes a key of the bytes that DUMP showed of a value.
///
/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
///
/// O(1) to make the key, and O(N) in the bytes of the value; sorted sets O(N*log(N)). Since Redis 2.6.0.
/// Errors: the server's.
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

/// Lists the keys of the database bit by bit. Keys, from a cursor that begins with 0 and ends with 0.
///
/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
///
/// O(1) for a call, O(N) in the number of keys from cursor 0 until it is 0 again. Since Redis 2.8.0. Errors:
/// the server's; `UnexpectedReply` if `T` does not fit.
pub fn scan<T>(cursor: impl ToArg) -> Command<(), (u64, Vec<T>), options::Scan> {
    let mut request = Request::new("SCAN", READS);
    request.arg(cursor);
    Command::typed(request)
}

/// Sorts the elements of a list, set or sorted set, and may store the result.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
///
/// O(N+M*log(M)) with N the number of elements and M the number of those returned; O(N) if their order stays.
/// Since Redis 1.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn sort<T>(key: impl ToArg) -> Command<(), Vec<T>, options::Sort> {
    let mut request = Request::new("SORT", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Sorts the elements of a list, set or sorted set, and may store the result.
///
/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] STORE destination`
///
/// O(N+M*log(M)) with N the number of elements and M the number of those returned; O(N) if their order stays.
/// Since Redis 1.0.0. Errors: the server's.
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

/// Sorts the elements of a list, set or sorted set.
///
/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA]`
///
/// O(N+M*log(M)) with N the number of elements and M the number of those returned; O(N) if their order stays.
/// Since Redis 7.0.0. Errors: the server's; `UnexpectedReply` if `T` does not fit.
pub fn sort_ro<T>(key: impl ToArg) -> Command<(), Vec<T>, options::SortRo> {
    let mut request = Request::new("SORT_RO", READS);
    request.key(key);
    Command::typed(request)
}

/// Notes an access to keys and counts those that exist.
///
/// `TOUCH key …`
///
/// O(N) in the number of keys. Since Redis 3.2.1. Errors: the server's.
pub fn touch(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("TOUCH", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Tells in how many seconds a key expires.
///
/// `TTL key`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn ttl(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("TTL", READS);
    request.key(key);
    Command::typed(request)
}

/// Names the type of a key's value.
///
/// `TYPE key`
///
/// O(1). Since Redis 1.0.0. Errors: the server's.
pub fn type_of(key: impl ToArg) -> Command<(), String> {
    let mut request = Request::new("TYPE", READS);
    request.key(key);
    Command::typed(request)
}

/// Removes keys and leaves the freeing of their values to another thread.
///
/// `UNLINK key …`
///
/// O(1) for each key; freeing a value takes another thread O(its size). Since Redis 4.0.0. Errors: the
/// server's.
pub fn unlink(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("UNLINK", PLAIN);
    request.keys(keys);
    Command::typed(request)
}

/// Waits until replicas have what the connection wrote.
///
/// `WAIT numreplicas timeout`
///
/// O(1). Since Redis 3.0.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
pub fn wait(numreplicas: impl ToArg, timeout: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("WAIT", BINDS);
    request.arg(numreplicas);
    request.arg(timeout);
    Command::typed(request)
}

/// Waits until what the connection wrote is on disks.
///
/// `WAITAOF numlocal numreplicas timeout`
///
/// O(1). Since Redis 7.2.0. Errors: the server's.
///
/// It changes what the connection is, or tells of it: it is no method of [`Client`](crate::Client), whose
/// connections are shared.
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
