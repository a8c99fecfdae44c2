//! Options of the commands of the group `set`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `SINTERCARD`, see [`sintercard`](crate::commands::sintercard).
#[derive(Clone, Copy, Debug)]
pub struct Sintercard(());

impl<C, T> Command<C, T, Sintercard> {
    /// `LIMIT limit`.
    pub fn limit(self, limit: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(limit);
        })
    }
}

/// Options of `SPOP`, see [`spop`](crate::commands::spop).
#[derive(Clone, Copy, Debug)]
pub struct Spop(());

impl<C, T> Command<C, Option<T>, Spop> {
    /// `count`, since Redis 3.2.0.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Spop> {
        self.option(|request| request.arg(count)).reply_as()
    }
}

/// Options of `SRANDMEMBER`, see [`srandmember`](crate::commands::srandmember).
#[derive(Clone, Copy, Debug)]
pub struct Srandmember(());

impl<C, T> Command<C, Option<T>, Srandmember> {
    /// `count`, since Redis 2.6.0.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Srandmember> {
        self.option(|request| request.arg(count)).reply_as()
    }
}

/// Options of `SSCAN`, see [`sscan`](crate::commands::sscan).
#[derive(Clone, Copy, Debug)]
pub struct Sscan(());

impl<C, T> Command<C, T, Sscan> {
    /// `MATCH pattern`.
    pub fn matching(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MATCH");
            request.arg(pattern);
        })
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}
