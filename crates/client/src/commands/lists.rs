//! Commands of the group `list`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BLOCKS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Moves an element from one list to another. Blocks until there is one.
///
/// `BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn blmove<T>(
    source: impl ToArg,
    destination: impl ToArg,
    from: types::Side,
    to: types::Side,
    timeout: impl ToArg,
) -> Command<(), Option<T>> {
    let mut request = Request::new("BLMOVE", BLOCKS);
    request.key(source);
    request.key(destination);
    request.arg(from);
    request.arg(to);
    request.arg(timeout);
    Command::typed(request)
}

/// Removes and returns elements at an end of the first list that is not empty. Blocks until there is one. The
/// reply is the key and the elements, or null after the timeout.
///
/// `BLMPOP timeout numkeys key … <LEFT | RIGHT> [COUNT count]`
///
/// O(N+M) in the numbers of keys and of elements returned. Since Redis 7.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn blmpop<K, T>(
    timeout: impl ToArg,
    keys: impl ToArgs,
    side: types::Side,
) -> Command<(), Option<(K, Vec<T>)>, options::Blmpop> {
    let mut request = Request::new("BLMPOP", BLOCKS);
    request.arg(timeout);
    request.arg(keys.count());
    request.keys(keys);
    request.arg(side);
    Command::typed(request)
}

/// Removes and returns the first element of a list. Blocks until there is one. The reply is the key and the
/// element, or null after the timeout.
///
/// `BLPOP key … timeout`
///
/// O(N) in the number of keys. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn blpop<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T)>> {
    let mut request = Request::new("BLPOP", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Removes and returns the last element of a list. Blocks until there is one. The reply is the key and the
/// element, or null after the timeout.
///
/// `BRPOP key … timeout`
///
/// O(N) in the number of keys. Since Redis 2.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `K` and `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn brpop<K, T>(keys: impl ToArgs, timeout: impl ToArg) -> Command<(), Option<(K, T)>> {
    let mut request = Request::new("BRPOP", BLOCKS);
    request.keys(keys);
    request.arg(timeout);
    Command::typed(request)
}

/// Moves the last element of one list to the front of another. Blocks until there is one.
///
/// `BRPOPLPUSH source destination timeout`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
///
/// This command may block later commands on its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
#[deprecated(note = "since Redis 6.2.0: `BLMOVE` with the `RIGHT` and `LEFT` arguments instead")]
pub fn brpoplpush<T>(
    source: impl ToArg,
    destination: impl ToArg,
    timeout: impl ToArg,
) -> Command<(), Option<T>> {
    let mut request = Request::new("BRPOPLPUSH", BLOCKS);
    request.key(source);
    request.key(destination);
    request.arg(timeout);
    Command::typed(request)
}

/// Returns an element by its index.
///
/// `LINDEX key index`
///
/// O(N) in the elements of a small list; O(log N) in the nodes of a large one. Since Redis 1.0.0. Errors:
/// those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn lindex<T>(key: impl ToArg, index: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("LINDEX", READS);
    request.key(key);
    request.arg(index);
    Command::typed(request)
}

/// Inserts an element before or after the first one that equals a value.
///
/// `LINSERT key <BEFORE | AFTER> pivot element`
///
/// O(N) in the number of elements before the pivot. Since Redis 2.2.0. Errors: those of the server.
pub fn linsert(
    key: impl ToArg,
    side: types::Place,
    pivot: impl ToArg,
    element: impl ToArg,
) -> Command<(), i64> {
    let mut request = Request::new("LINSERT", PLAIN);
    request.key(key);
    request.arg(side);
    request.arg(pivot);
    request.arg(element);
    Command::typed(request)
}

/// Returns the length of a list.
///
/// `LLEN key`
///
/// O(1). Since Redis 1.0.0. Errors: those of the server.
pub fn llen(key: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("LLEN", READS);
    request.key(key);
    Command::typed(request)
}

/// Moves an element from an end of one list to an end of another.
///
/// `LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>`
///
/// O(1). Since Redis 6.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn lmove<T>(
    source: impl ToArg,
    destination: impl ToArg,
    from: types::Side,
    to: types::Side,
) -> Command<(), Option<T>> {
    let mut request = Request::new("LMOVE", PLAIN);
    request.key(source);
    request.key(destination);
    request.arg(from);
    request.arg(to);
    Command::typed(request)
}

/// Removes and returns elements at an end of the first list that is not empty. The reply is the key and the
/// elements, or null if all lists are empty.
///
/// `LMPOP numkeys key … <LEFT | RIGHT> [COUNT count]`
///
/// O(N+M) in the numbers of keys and of elements returned. Since Redis 7.0.0. Errors: those of the server;
/// `UnexpectedReply` if the reply cannot be converted to `K` and `T`.
pub fn lmpop<K, T>(
    keys: impl ToArgs,
    side: types::Side,
) -> Command<(), Option<(K, Vec<T>)>, options::Lmpop> {
    let mut request = Request::new("LMPOP", PLAIN);
    request.arg(keys.count());
    request.keys(keys);
    request.arg(side);
    Command::typed(request)
}

/// Removes and returns elements at the front of a list.
///
/// `LPOP key [count]`
///
/// O(N) in the number of elements returned. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn lpop<T>(key: impl ToArg) -> Command<(), Option<T>, options::Lpop> {
    let mut request = Request::new("LPOP", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Returns the indexes of elements that equal a value.
///
/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
///
/// O(N) in the number of examined elements. Since Redis 6.0.6. Errors: those of the server.
pub fn lpos(key: impl ToArg, element: impl ToArg) -> Command<(), Option<i64>, options::Lpos> {
    let mut request = Request::new("LPOS", READS);
    request.key(key);
    request.arg(element);
    Command::typed(request)
}

/// Adds elements at the front of a list.
///
/// `LPUSH key element …`
///
/// O(1) for each element added. Since Redis 1.0.0. Errors: those of the server.
pub fn lpush(key: impl ToArg, elements: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("LPUSH", PLAIN);
    request.key(key);
    request.args(elements);
    Command::typed(request)
}

/// Adds elements at the front of a list only if the list exists.
///
/// `LPUSHX key element …`
///
/// O(1) for each element added. Since Redis 2.2.0. Errors: those of the server.
pub fn lpushx(key: impl ToArg, elements: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("LPUSHX", PLAIN);
    request.key(key);
    request.args(elements);
    Command::typed(request)
}

/// Returns the elements between two indexes.
///
/// `LRANGE key start stop`
///
/// O(S+N) in the nodes before the start and in the elements returned. Since Redis 1.0.0. Errors: those of the
/// server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn lrange<T>(key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Command<(), Vec<T>> {
    let mut request = Request::new("LRANGE", READS);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Removes elements that equal a value.
///
/// `LREM key count element`
///
/// O(N+M) in the length of the list and the number of elements removed. Since Redis 1.0.0. Errors: those of
/// the server.
pub fn lrem(key: impl ToArg, count: impl ToArg, element: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("LREM", PLAIN);
    request.key(key);
    request.arg(count);
    request.arg(element);
    Command::typed(request)
}

/// Replaces an element by its index.
///
/// `LSET key index element`
///
/// O(N) in the elements of a small list; O(log N) in the nodes of a large one. Since Redis 1.0.0. Errors:
/// those of the server.
pub fn lset(key: impl ToArg, index: impl ToArg, element: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("LSET", PLAIN);
    request.key(key);
    request.arg(index);
    request.arg(element);
    Command::typed(request)
}

/// Keeps the elements between two indexes and removes all others.
///
/// `LTRIM key start stop`
///
/// O(N) in the number of nodes removed. Since Redis 1.0.0. Errors: those of the server.
pub fn ltrim(key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("LTRIM", PLAIN);
    request.key(key);
    request.arg(start);
    request.arg(stop);
    Command::typed(request)
}

/// Removes and returns elements at the back of a list.
///
/// `RPOP key [count]`
///
/// O(N) in the number of elements returned. Since Redis 1.0.0. Errors: those of the server; `UnexpectedReply`
/// if the reply cannot be converted to `T`.
pub fn rpop<T>(key: impl ToArg) -> Command<(), Option<T>, options::Rpop> {
    let mut request = Request::new("RPOP", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Moves the last element of one list to the front of another.
///
/// `RPOPLPUSH source destination`
///
/// O(1). Since Redis 1.2.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
#[deprecated(note = "since Redis 6.2.0: `LMOVE` with the `RIGHT` and `LEFT` arguments instead")]
pub fn rpoplpush<T>(source: impl ToArg, destination: impl ToArg) -> Command<(), Option<T>> {
    let mut request = Request::new("RPOPLPUSH", PLAIN);
    request.key(source);
    request.key(destination);
    Command::typed(request)
}

/// Adds elements at the back of a list.
///
/// `RPUSH key element …`
///
/// O(1) for each element added. Since Redis 1.0.0. Errors: those of the server.
pub fn rpush(key: impl ToArg, elements: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("RPUSH", PLAIN);
    request.key(key);
    request.args(elements);
    Command::typed(request)
}

/// Adds elements at the back of a list only if the list exists.
///
/// `RPUSHX key element …`
///
/// O(1) for each element added. Since Redis 2.2.0. Errors: those of the server.
pub fn rpushx(key: impl ToArg, elements: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("RPUSHX", PLAIN);
    request.key(key);
    request.args(elements);
    Command::typed(request)
}
