//! Commands of the group `scripting` as methods of a session.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;
use crate::commands;
use crate::commands::{options, types};
use crate::session::Session;

/// Commands of the group `scripting`.
impl Session {
    /// Runs a script.
    ///
    /// `EVAL script numkeys [key …] [arg …]`
    pub fn eval<T>(&self, script: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::eval(script, keys).on(self)
    }

    /// Runs a read-only script.
    ///
    /// `EVAL_RO script numkeys [key …] [arg …]`
    pub fn eval_ro<T>(&self, script: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::eval_ro(script, keys).on(self)
    }

    /// Runs a cached script by its SHA1 digest.
    ///
    /// `EVALSHA sha1 numkeys [key …] [arg …]`
    pub fn evalsha<T>(&self, sha1: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::evalsha(sha1, keys).on(self)
    }

    /// Runs a cached read-only script by its SHA1 digest.
    ///
    /// `EVALSHA_RO sha1 numkeys [key …] [arg …]`
    pub fn evalsha_ro<T>(&self, sha1: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::evalsha_ro(sha1, keys).on(self)
    }

    /// Runs a function of a library.
    ///
    /// `FCALL function numkeys [key …] [arg …]`
    pub fn fcall<T>(&self, function: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::fcall(function, keys).on(self)
    }

    /// Runs a read-only function of a library.
    ///
    /// `FCALL_RO function numkeys [key …] [arg …]`
    pub fn fcall_ro<T>(&self, function: impl ToArg, keys: impl ToArgs) -> Command<&Session, T> {
        commands::fcall_ro(function, keys).on(self)
    }

    /// Removes a library.
    ///
    /// `FUNCTION DELETE library-name`
    pub fn function_delete(&self, library_name: impl ToArg) -> Command<&Session, ()> {
        commands::function_delete(library_name).on(self)
    }

    /// Returns a serialized payload of all libraries.
    ///
    /// `FUNCTION DUMP`
    pub fn function_dump<T>(&self) -> Command<&Session, T> {
        commands::function_dump().on(self)
    }

    /// Removes all function libraries.
    ///
    /// `FUNCTION FLUSH [ASYNC | SYNC]`
    pub fn function_flush(&self) -> Command<&Session, (), options::FunctionFlush> {
        commands::function_flush().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `FUNCTION HELP`
    pub fn function_help(&self) -> Command<&Session, Vec<String>> {
        commands::function_help().on(self)
    }

    /// Stops a slow function that has not written data.
    ///
    /// `FUNCTION KILL`
    pub fn function_kill(&self) -> Command<&Session, ()> {
        commands::function_kill().on(self)
    }

    /// Lists libraries and their functions.
    ///
    /// `FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]`
    pub fn function_list<T>(&self) -> Command<&Session, Vec<T>, options::FunctionList> {
        commands::function_list().on(self)
    }

    /// Loads a library.
    ///
    /// `FUNCTION LOAD [REPLACE] function-code`
    pub fn function_load(
        &self,
        function_code: impl ToArg,
    ) -> Command<&Session, String, options::FunctionLoad> {
        commands::function_load(function_code).on(self)
    }

    /// Loads the libraries in a payload from FUNCTION DUMP.
    ///
    /// `FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]`
    pub fn function_restore(
        &self,
        serialized_value: impl ToArg,
    ) -> Command<&Session, (), options::FunctionRestore> {
        commands::function_restore(serialized_value).on(self)
    }

    /// Shows the slow function that is running, and statistics of the engine.
    ///
    /// `FUNCTION STATS`
    pub fn function_stats<T>(&self) -> Command<&Session, T> {
        commands::function_stats().on(self)
    }

    /// Always fails: the script debugger is not supported.
    ///
    /// `SCRIPT DEBUG <YES | SYNC | NO>`
    pub fn script_debug(&self, mode: types::ScriptDebugging) -> Command<&Session, ()> {
        commands::script_debug(mode).on(self)
    }

    /// Checks which scripts are cached.
    ///
    /// `SCRIPT EXISTS sha1 …`
    pub fn script_exists(&self, sha1s: impl ToArgs) -> Command<&Session, Vec<bool>> {
        commands::script_exists(sha1s).on(self)
    }

    /// Removes all cached scripts.
    ///
    /// `SCRIPT FLUSH [ASYNC | SYNC]`
    pub fn script_flush(&self) -> Command<&Session, (), options::ScriptFlush> {
        commands::script_flush().on(self)
    }

    /// Lists the subcommands.
    ///
    /// `SCRIPT HELP`
    pub fn script_help(&self) -> Command<&Session, Vec<String>> {
        commands::script_help().on(self)
    }

    /// Stops a slow script that has not written data.
    ///
    /// `SCRIPT KILL`
    pub fn script_kill(&self) -> Command<&Session, ()> {
        commands::script_kill().on(self)
    }

    /// Caches a script for EVALSHA.
    ///
    /// `SCRIPT LOAD script`
    pub fn script_load(&self, script: impl ToArg) -> Command<&Session, String> {
        commands::script_load(script).on(self)
    }

    /// Returns the source of a cached script.
    ///
    /// `SCRIPT SHOW sha1`
    pub fn script_show<T>(&self, sha1: impl ToArg) -> Command<&Session, T> {
        commands::script_show(sha1).on(self)
    }
}
