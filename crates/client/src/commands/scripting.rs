//! Commands of the group `scripting`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use super::{BINDS, PLAIN, READS};
use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands::{options, types};
use crate::request::Request;

/// Runs a script.
///
/// `EVAL script numkeys [key …] [arg …]`
///
/// Depends on the script. Since Redis 2.6.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn eval<T>(script: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("EVAL", PLAIN);
    request.arg(script);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Runs a read-only script.
///
/// `EVAL_RO script numkeys [key …] [arg …]`
///
/// Depends on the script. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn eval_ro<T>(script: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("EVAL_RO", READS);
    request.arg(script);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Runs a cached script by its SHA1 digest.
///
/// `EVALSHA sha1 numkeys [key …] [arg …]`
///
/// Depends on the script. Since Redis 2.6.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn evalsha<T>(sha1: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("EVALSHA", PLAIN);
    request.arg(sha1);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Runs a cached read-only script by its SHA1 digest.
///
/// `EVALSHA_RO sha1 numkeys [key …] [arg …]`
///
/// Depends on the script. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn evalsha_ro<T>(sha1: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("EVALSHA_RO", READS);
    request.arg(sha1);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Runs a function of a library.
///
/// `FCALL function numkeys [key …] [arg …]`
///
/// Depends on the function. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn fcall<T>(function: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("FCALL", PLAIN);
    request.arg(function);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Runs a read-only function of a library.
///
/// `FCALL_RO function numkeys [key …] [arg …]`
///
/// Depends on the function. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply
/// cannot be converted to `T`.
pub fn fcall_ro<T>(function: impl ToArg, keys: impl ToArgs) -> Command<(), T> {
    let mut request = Request::new("FCALL_RO", READS);
    request.arg(function);
    request.arg(keys.count());
    request.keys(keys);
    Command::typed(request)
}

/// Removes a library.
///
/// `FUNCTION DELETE library-name`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn function_delete(library_name: impl ToArg) -> Command<(), ()> {
    let mut request = Request::new("FUNCTION DELETE", PLAIN);
    request.arg(library_name);
    Command::typed(request)
}

/// Returns a serialized payload of all libraries.
///
/// `FUNCTION DUMP`
///
/// O(N) in the number of functions. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn function_dump<T>() -> Command<(), T> {
    Command::typed(Request::new("FUNCTION DUMP", PLAIN))
}

/// Removes all function libraries.
///
/// `FUNCTION FLUSH [ASYNC | SYNC]`
///
/// O(N) in the number of functions. Since Redis 7.0.0. Errors: those of the server.
pub fn function_flush() -> Command<(), (), options::FunctionFlush> {
    Command::typed(Request::new("FUNCTION FLUSH", PLAIN))
}

/// Lists the subcommands.
///
/// `FUNCTION HELP`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn function_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("FUNCTION HELP", PLAIN))
}

/// Stops a slow function that has not written data.
///
/// `FUNCTION KILL`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server.
pub fn function_kill() -> Command<(), ()> {
    Command::typed(Request::new("FUNCTION KILL", PLAIN))
}

/// Lists libraries and their functions.
///
/// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`
///
/// O(N) in the number of functions. Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the
/// reply cannot be converted to `T`.
pub fn function_list<T>() -> Command<(), Vec<T>, options::FunctionList> {
    Command::typed(Request::new("FUNCTION LIST", PLAIN))
}

/// Loads a library.
///
/// `FUNCTION LOAD [REPLACE] function-code`
///
/// O(1), and the compilation of the code. Since Redis 7.0.0. Errors: those of the server.
pub fn function_load(function_code: impl ToArg) -> Command<(), String, options::FunctionLoad> {
    let mut request = Request::new("FUNCTION LOAD", PLAIN);
    request.end_of_options();
    request.arg(function_code);
    Command::typed(request)
}

/// Loads the libraries in a payload from FUNCTION DUMP.
///
/// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`
///
/// O(N) in the number of functions in the payload. Since Redis 7.0.0. Errors: those of the server.
pub fn function_restore(serialized_value: impl ToArg) -> Command<(), (), options::FunctionRestore> {
    let mut request = Request::new("FUNCTION RESTORE", PLAIN);
    request.arg(serialized_value);
    Command::typed(request)
}

/// Shows the slow function that is running, and statistics of the engine.
///
/// `FUNCTION STATS`
///
/// O(1). Since Redis 7.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn function_stats<T>() -> Command<(), T> {
    Command::typed(Request::new("FUNCTION STATS", PLAIN))
}

/// Always fails: the script debugger is not supported.
///
/// `SCRIPT DEBUG <YES | SYNC | NO>`
///
/// O(1). Since Redis 3.2.0. Errors: those of the server.
///
/// This command changes or reports the state of its connection, so it is not a method of
/// [`Client`](crate::Client), whose connections are shared.
pub fn script_debug(mode: types::ScriptDebugging) -> Command<(), ()> {
    let mut request = Request::new("SCRIPT DEBUG", BINDS);
    request.arg(mode);
    Command::typed(request)
}

/// Checks which scripts are cached.
///
/// `SCRIPT EXISTS sha1 …`
///
/// O(N) in the number of digests. Since Redis 2.6.0. Errors: those of the server.
pub fn script_exists(sha1s: impl ToArgs) -> Command<(), Vec<bool>> {
    let mut request = Request::new("SCRIPT EXISTS", PLAIN);
    request.args(sha1s);
    Command::typed(request)
}

/// Removes all cached scripts.
///
/// `SCRIPT FLUSH [ASYNC | SYNC]`
///
/// O(N) in the number of cached scripts. Since Redis 2.6.0. Errors: those of the server.
pub fn script_flush() -> Command<(), (), options::ScriptFlush> {
    Command::typed(Request::new("SCRIPT FLUSH", PLAIN))
}

/// Lists the subcommands.
///
/// `SCRIPT HELP`
///
/// O(1). Since Redis 5.0.0. Errors: those of the server.
pub fn script_help() -> Command<(), Vec<String>> {
    Command::typed(Request::new("SCRIPT HELP", PLAIN))
}

/// Stops a slow script that has not written data.
///
/// `SCRIPT KILL`
///
/// O(1). Since Redis 2.6.0. Errors: those of the server.
pub fn script_kill() -> Command<(), ()> {
    Command::typed(Request::new("SCRIPT KILL", PLAIN))
}

/// Caches a script for EVALSHA.
///
/// `SCRIPT LOAD script`
///
/// O(N) in the length of the script. Since Redis 2.6.0. Errors: those of the server.
pub fn script_load(script: impl ToArg) -> Command<(), String> {
    let mut request = Request::new("SCRIPT LOAD", PLAIN);
    request.arg(script);
    Command::typed(request)
}

/// Returns the source of a cached script.
///
/// `SCRIPT SHOW sha1`
///
/// O(1). Since Valkey 8.0.0. Errors: those of the server; `UnexpectedReply` if the reply cannot be converted
/// to `T`.
pub fn script_show<T>(sha1: impl ToArg) -> Command<(), T> {
    let mut request = Request::new("SCRIPT SHOW", PLAIN);
    request.arg(sha1);
    Command::typed(request)
}
