//! Options of the commands of the group `hash`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `HEXPIRE`, see [`hexpire`](crate::commands::hexpire).
#[derive(Clone, Copy, Debug)]
pub struct Hexpire(());

impl<C, T> Command<C, T, Hexpire> {
    /// `NX`.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `HEXPIREAT`, see [`hexpireat`](crate::commands::hexpireat).
#[derive(Clone, Copy, Debug)]
pub struct Hexpireat(());

impl<C, T> Command<C, T, Hexpireat> {
    /// `NX`.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `HGETEX`, see [`hgetex`](crate::commands::hgetex).
#[derive(Clone, Copy, Debug)]
pub struct Hgetex(());

impl<C, T> Command<C, T, Hgetex> {
    /// `EX seconds`.
    pub fn ex(self, seconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("EX");
            request.arg(seconds);
        })
    }

    /// `PX milliseconds`.
    pub fn px(self, milliseconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("PX");
            request.arg(milliseconds);
        })
    }

    /// `EXAT unix-time-seconds`.
    pub fn ex_at(self, unix_time_seconds: i64) -> Self {
        self.option(|request| {
            request.arg("EXAT");
            request.arg(unix_time_seconds);
        })
    }

    /// `PXAT unix-time-milliseconds`.
    pub fn px_at(self, unix_time_milliseconds: i64) -> Self {
        self.option(|request| {
            request.arg("PXAT");
            request.arg(unix_time_milliseconds);
        })
    }

    /// `PERSIST`.
    pub fn persist(self) -> Self {
        self.option(|request| request.arg("PERSIST"))
    }
}

/// Options of `HPEXPIRE`, see [`hpexpire`](crate::commands::hpexpire).
#[derive(Clone, Copy, Debug)]
pub struct Hpexpire(());

impl<C, T> Command<C, T, Hpexpire> {
    /// `NX`.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `HPEXPIREAT`, see [`hpexpireat`](crate::commands::hpexpireat).
#[derive(Clone, Copy, Debug)]
pub struct Hpexpireat(());

impl<C, T> Command<C, T, Hpexpireat> {
    /// `NX`.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `HRANDFIELD`, see [`hrandfield`](crate::commands::hrandfield).
#[derive(Clone, Copy, Debug)]
pub struct Hrandfield(());

impl<C, T> Command<C, T, Hrandfield> {
    /// `WITHVALUES`. Only after `count`.
    pub fn with_values(self) -> Self {
        self.option(|request| request.arg("WITHVALUES"))
    }
}

impl<C, T> Command<C, Option<T>, Hrandfield> {
    /// `count`.
    pub fn count(self, count: impl ToArg) -> Command<C, Vec<T>, Hrandfield> {
        self.option(|request| request.arg(count)).reply_as()
    }
}

/// Options of `HSCAN`, see [`hscan`](crate::commands::hscan).
#[derive(Clone, Copy, Debug)]
pub struct Hscan(());

impl<C, T> Command<C, T, Hscan> {
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

    /// `NOVALUES`, since Redis 7.4.0.
    pub fn no_values(self) -> Self {
        self.option(|request| request.arg("NOVALUES"))
    }
}

/// Options of `HSETEX`, see [`hsetex`](crate::commands::hsetex).
#[derive(Clone, Copy, Debug)]
pub struct Hsetex(());

impl<C, T> Command<C, T, Hsetex> {
    /// `FNX`.
    pub fn fnx(self) -> Self {
        self.option(|request| request.arg("FNX"))
    }

    /// `FXX`.
    pub fn fxx(self) -> Self {
        self.option(|request| request.arg("FXX"))
    }

    /// `EX seconds`.
    pub fn ex(self, seconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("EX");
            request.arg(seconds);
        })
    }

    /// `PX milliseconds`.
    pub fn px(self, milliseconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("PX");
            request.arg(milliseconds);
        })
    }

    /// `EXAT unix-time-seconds`.
    pub fn ex_at(self, unix_time_seconds: i64) -> Self {
        self.option(|request| {
            request.arg("EXAT");
            request.arg(unix_time_seconds);
        })
    }

    /// `PXAT unix-time-milliseconds`.
    pub fn px_at(self, unix_time_milliseconds: i64) -> Self {
        self.option(|request| {
            request.arg("PXAT");
            request.arg(unix_time_milliseconds);
        })
    }

    /// `KEEPTTL`.
    pub fn keep_ttl(self) -> Self {
        self.option(|request| request.arg("KEEPTTL"))
    }
}
