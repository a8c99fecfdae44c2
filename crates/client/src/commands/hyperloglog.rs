//! Commands of the group `hyperloglog`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::request::Request;

/// Adds elements to a HyperLogLog. Creates the key if it does not exist.
///
/// `PFADD key element …`
///
/// O(1) for each element. Since Redis 2.8.9. Errors: those of the server.
pub fn pfadd(key: impl ToArg, elements: impl ToArgs) -> Command<(), bool> {
    let mut request = Request::new("PFADD", PLAIN);
    request.key(key);
    request.args(elements);
    Command::typed(request)
}

/// Estimates the number of distinct elements in HyperLogLogs.
///
/// `PFCOUNT key …`
///
/// O(1) for one key, whose result is cached; O(N) for N keys, which are merged. Since Redis 2.8.9. Errors:
/// those of the server.
pub fn pfcount(keys: impl ToArgs) -> Command<(), i64> {
    let mut request = Request::new("PFCOUNT", READS);
    request.keys(keys);
    Command::typed(request)
}

/// Shows the encoding of a HyperLogLog.
///
/// `PFDEBUG subcommand key`
///
/// Since Redis 2.8.9. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted to `T`.
pub fn pfdebug<T>(subcommand: impl ToArg, key: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("PFDEBUG", PLAIN);
    request.arg(subcommand);
    request.key(key);
    Command::typed(request)
}

/// Merges HyperLogLogs into one.
///
/// `PFMERGE destkey sourcekey …`
///
/// O(N) for N keys. Since Redis 2.8.9. Errors: those of the server.
pub fn pfmerge(destination: impl ToArg, sources: impl ToArgs) -> Command<(), ()> {
    let mut request = Request::new("PFMERGE", PLAIN);
    request.key(destination);
    request.keys(sources);
    Command::typed(request)
}

/// Tests the HyperLogLog implementation.
///
/// `PFSELFTEST`
///
/// Since Redis 2.8.9. Errors: those of the server.
pub fn pfselftest() -> Command<(), ()> {
    Command::typed(Request::new("PFSELFTEST", PLAIN))
}
