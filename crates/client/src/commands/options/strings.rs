//! Options of the commands of the group `string`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `GETEX`, see [`getex`](crate::commands::getex).
#[derive(Clone, Copy, Debug)]
pub struct Getex(());

impl<C, T> Command<C, T, Getex> {
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

/// Options of `LCS`, see [`lcs`](crate::commands::lcs).
#[derive(Clone, Copy, Debug)]
pub struct Lcs(());

impl<C, T> Command<C, T, Lcs> {
    /// `MINMATCHLEN len`.
    pub fn min_match_len(self, len: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MINMATCHLEN");
            request.arg(len);
        })
    }

    /// `WITHMATCHLEN`.
    pub fn with_match_len(self) -> Self {
        self.option(|request| request.arg("WITHMATCHLEN"))
    }
}

/// Options of `LCS`, see [`lcs_idx`](crate::commands::lcs_idx).
#[derive(Clone, Copy, Debug)]
pub struct LcsIdx(());

impl<C, T> Command<C, T, LcsIdx> {
    /// `MINMATCHLEN len`.
    pub fn min_match_len(self, len: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MINMATCHLEN");
            request.arg(len);
        })
    }

    /// `WITHMATCHLEN`.
    pub fn with_match_len(self) -> Self {
        self.option(|request| request.arg("WITHMATCHLEN"))
    }
}

/// Options of `LCS`, see [`lcs_len`](crate::commands::lcs_len).
#[derive(Clone, Copy, Debug)]
pub struct LcsLen(());

impl<C, T> Command<C, T, LcsLen> {
    /// `MINMATCHLEN len`.
    pub fn min_match_len(self, len: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MINMATCHLEN");
            request.arg(len);
        })
    }

    /// `WITHMATCHLEN`.
    pub fn with_match_len(self) -> Self {
        self.option(|request| request.arg("WITHMATCHLEN"))
    }
}

/// Options of `SET`, see [`set`](crate::commands::set).
#[derive(Clone, Copy, Debug)]
pub struct Set(());

impl<C, T> Command<C, T, Set> {
    /// `NX`, since Redis 2.6.12.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `NX`, since Redis 2.6.12.
    pub fn only_if_absent(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 2.6.12.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `XX`, since Redis 2.6.12.
    pub fn only_if_present(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `EX seconds`, since Redis 2.6.12.
    pub fn ex(self, seconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("EX");
            request.arg(seconds);
        })
    }

    /// `PX milliseconds`, since Redis 2.6.12.
    pub fn px(self, milliseconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("PX");
            request.arg(milliseconds);
        })
    }

    /// `EXAT unix-time-seconds`, since Redis 6.2.0.
    pub fn ex_at(self, unix_time_seconds: i64) -> Self {
        self.option(|request| {
            request.arg("EXAT");
            request.arg(unix_time_seconds);
        })
    }

    /// `PXAT unix-time-milliseconds`, since Redis 6.2.0.
    pub fn px_at(self, unix_time_milliseconds: i64) -> Self {
        self.option(|request| {
            request.arg("PXAT");
            request.arg(unix_time_milliseconds);
        })
    }

    /// `KEEPTTL`, since Redis 6.0.0.
    pub fn keep_ttl(self) -> Self {
        self.option(|request| request.arg("KEEPTTL"))
    }
}

impl<C> Command<C, bool, Set> {
    /// `GET`, since Redis 6.2.0.
    pub fn get<U>(self) -> Command<C, Option<U>, Set> {
        self.option(|request| request.arg("GET")).reply_as()
    }
}
