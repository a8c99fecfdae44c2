//! Commands of the group `bitmap`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::options;
use crate::request::Request;

/// Counts the set bits in a string or in a part of it.
///
/// `BITCOUNT key [start end [BYTE | BIT]]`
///
/// O(N). Since Redis 2.6.0. Errors: those of the server.
pub fn bitcount(key: impl ToArg) -> Command<(), i64, options::Bitcount> {
    let mut request = Request::new("BITCOUNT", READS);
    request.key(key);
    Command::typed(request)
}

/// Reads and changes integers of any width in a string.
///
/// `BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY
/// encoding offset increment> …]`
///
/// O(1) for each operation. Since Redis 3.2.0. Errors: those of the server.
pub fn bitfield(key: impl ToArg) -> Command<(), Vec<Option<i64>>, options::Bitfield> {
    let mut request = Request::new("BITFIELD", PLAIN);
    request.key(key);
    Command::typed(request)
}

/// Reads integers of any width in a string.
///
/// `BITFIELD_RO key [GET encoding offset …]`
///
/// O(1) for each operation. Since Redis 6.0.0. Errors: those of the server.
pub fn bitfield_ro(key: impl ToArg) -> Command<(), Vec<Option<i64>>, options::BitfieldRo> {
    let mut request = Request::new("BITFIELD_RO", READS);
    request.key(key);
    Command::typed(request)
}

/// Performs a bitwise operation on strings and stores the result.
///
/// `BITOP operation destkey key …`
///
/// O(N). Since Redis 2.6.0. Errors: those of the server.
pub fn bitop(
    operation: impl ToArg,
    destination: impl ToArg,
    keys: impl ToArgs,
) -> Command<(), i64> {
    let mut request = Request::new("BITOP", PLAIN);
    request.arg(operation);
    request.key(destination);
    request.keys(keys);
    Command::typed(request)
}

/// Finds the first set or clear bit in a string or in a part of it.
///
/// `BITPOS key bit [start [end [BYTE | BIT]]]`
///
/// O(N). Since Redis 2.8.7. Errors: those of the server.
pub fn bitpos(key: impl ToArg, bit: impl ToArg) -> Command<(), i64, options::Bitpos> {
    let mut request = Request::new("BITPOS", READS);
    request.key(key);
    request.arg(bit);
    Command::typed(request)
}

/// Returns a bit of a string.
///
/// `GETBIT key offset`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server.
pub fn getbit(key: impl ToArg, offset: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("GETBIT", READS);
    request.key(key);
    request.arg(offset);
    Command::typed(request)
}

/// Sets or clears a bit of a string. Creates the key if it does not exist.
///
/// `SETBIT key offset value`
///
/// O(1). Since Redis 2.2.0. Errors: those of the server.
pub fn setbit(key: impl ToArg, offset: impl ToArg, value: impl ToArg) -> Command<(), i64> {
    let mut request = Request::new("SETBIT", PLAIN);
    request.key(key);
    request.arg(offset);
    request.arg(value);
    Command::typed(request)
}
