//! Options of the commands of the group `list`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `BLMPOP`, see [`blmpop`](crate::commands::blmpop).
#[derive(Clone, Copy, Debug)]
pub struct Blmpop(());

impl<C, T> Command<C, T, Blmpop> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `LMPOP`, see [`lmpop`](crate::commands::lmpop).
#[derive(Clone, Copy, Debug)]
pub struct Lmpop(());

impl<C, T> Command<C, T, Lmpop> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `LPOP`, see [`lpop`](crate::commands::lpop).
#[derive(Clone, Copy, Debug)]
pub struct Lpop(());

impl<C, T> Command<C, Option<T>, Lpop> {
    /// `count`, since Redis 6.2.0.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Lpop> {
        self.option(|request| request.arg(count)).reply_as()
    }
}

/// Options of `LPOS`, see [`lpos`](crate::commands::lpos).
#[derive(Clone, Copy, Debug)]
pub struct Lpos(());

impl<C, T> Command<C, T, Lpos> {
    /// `RANK rank`.
    pub fn rank(self, rank: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("RANK");
            request.arg(rank);
        })
    }

    /// `MAXLEN len`.
    pub fn max_len(self, len: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MAXLEN");
            request.arg(len);
        })
    }
}

impl<C> Command<C, Option<i64>, Lpos> {
    /// `COUNT num-matches`.
    pub fn count(self, num_matches: impl ToArg) -> Command<C, Vec<i64>, Lpos> {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(num_matches);
        })
        .reply_as()
    }
}

/// Options of `RPOP`, see [`rpop`](crate::commands::rpop).
#[derive(Clone, Copy, Debug)]
pub struct Rpop(());

impl<C, T> Command<C, Option<T>, Rpop> {
    /// `count`, since Redis 6.2.0.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Rpop> {
        self.option(|request| request.arg(count)).reply_as()
    }
}
