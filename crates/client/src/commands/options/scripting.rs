//! Options of the commands of the group `scripting`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `FUNCTION FLUSH`, see [`function_flush`](crate::commands::function_flush).
#[derive(Clone, Copy, Debug)]
pub struct FunctionFlush(());

impl<C, T> Command<C, T, FunctionFlush> {
    /// `ASYNC`.
    pub fn asynchronous(self) -> Self {
        self.option(|request| request.arg("ASYNC"))
    }

    /// `SYNC`.
    pub fn synchronous(self) -> Self {
        self.option(|request| request.arg("SYNC"))
    }
}

/// Options of `FUNCTION LIST`, see [`function_list`](crate::commands::function_list).
#[derive(Clone, Copy, Debug)]
pub struct FunctionList(());

impl<C, T> Command<C, T, FunctionList> {
    /// `LIBRARYNAME library-name-pattern`.
    pub fn library_name(self, library_name_pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIBRARYNAME");
            request.arg(library_name_pattern);
        })
    }

    /// `WITHCODE`.
    pub fn with_code(self) -> Self {
        self.option(|request| request.arg("WITHCODE"))
    }
}

/// Options of `FUNCTION LOAD`, see [`function_load`](crate::commands::function_load).
#[derive(Clone, Copy, Debug)]
pub struct FunctionLoad(());

impl<C, T> Command<C, T, FunctionLoad> {
    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }
}

/// Options of `FUNCTION RESTORE`, see [`function_restore`](crate::commands::function_restore).
#[derive(Clone, Copy, Debug)]
pub struct FunctionRestore(());

impl<C, T> Command<C, T, FunctionRestore> {
    /// `FLUSH`.
    pub fn flush(self) -> Self {
        self.option(|request| request.arg("FLUSH"))
    }

    /// `APPEND`.
    pub fn append(self) -> Self {
        self.option(|request| request.arg("APPEND"))
    }

    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }
}

/// Options of `SCRIPT FLUSH`, see [`script_flush`](crate::commands::script_flush).
#[derive(Clone, Copy, Debug)]
pub struct ScriptFlush(());

impl<C, T> Command<C, T, ScriptFlush> {
    /// `ASYNC`, since Redis 6.2.0.
    pub fn asynchronous(self) -> Self {
        self.option(|request| request.arg("ASYNC"))
    }

    /// `SYNC`, since Redis 6.2.0.
    pub fn synchronous(self) -> Self {
        self.option(|request| request.arg("SYNC"))
    }
}
