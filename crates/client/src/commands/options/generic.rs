//! Options of the commands of the group `generic`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{ToArg, ToArgs};
use crate::command::Command;

/// Options of `COPY`, see [`copy`](crate::commands::copy).
#[derive(Clone, Copy, Debug)]
pub struct Copy(());

impl<C, T> Command<C, T, Copy> {
    /// `DB destination-db`.
    pub fn db(self, destination_db: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("DB");
            request.arg(destination_db);
        })
    }

    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }
}

/// Options of `EXPIRE`, see [`expire`](crate::commands::expire).
#[derive(Clone, Copy, Debug)]
pub struct Expire(());

impl<C, T> Command<C, T, Expire> {
    /// `NX`, since Redis 7.0.0.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 7.0.0.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`, since Redis 7.0.0.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`, since Redis 7.0.0.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `EXPIREAT`, see [`expireat`](crate::commands::expireat).
#[derive(Clone, Copy, Debug)]
pub struct Expireat(());

impl<C, T> Command<C, T, Expireat> {
    /// `NX`, since Redis 7.0.0.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 7.0.0.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`, since Redis 7.0.0.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`, since Redis 7.0.0.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `MIGRATE`, see [`migrate`](crate::commands::migrate).
#[derive(Clone, Copy, Debug)]
pub struct Migrate(());

impl<C, T> Command<C, T, Migrate> {
    /// `COPY`, since Redis 3.0.0.
    pub fn copy(self) -> Self {
        self.option(|request| request.arg("COPY"))
    }

    /// `REPLACE`, since Redis 3.0.0.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }

    /// `AUTH password`, since Redis 4.0.7.
    pub fn auth(self, password: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("AUTH");
            request.arg(password);
        })
    }

    /// `AUTH2 username password`, since Redis 6.0.0.
    pub fn auth2(self, username: impl ToArg, password: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("AUTH2");
            request.arg(username);
            request.arg(password);
        })
    }

    /// `KEYS key …`, since Redis 3.0.6.
    pub fn keys(self, keys: impl ToArgs) -> Self {
        self.option(|request| {
            request.arg("KEYS");
            request.keys(keys);
        })
    }
}

/// Options of `PEXPIRE`, see [`pexpire`](crate::commands::pexpire).
#[derive(Clone, Copy, Debug)]
pub struct Pexpire(());

impl<C, T> Command<C, T, Pexpire> {
    /// `NX`, since Redis 7.0.0.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 7.0.0.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`, since Redis 7.0.0.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`, since Redis 7.0.0.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `PEXPIREAT`, see [`pexpireat`](crate::commands::pexpireat).
#[derive(Clone, Copy, Debug)]
pub struct Pexpireat(());

impl<C, T> Command<C, T, Pexpireat> {
    /// `NX`, since Redis 7.0.0.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 7.0.0.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `GT`, since Redis 7.0.0.
    pub fn gt(self) -> Self {
        self.option(|request| request.arg("GT"))
    }

    /// `LT`, since Redis 7.0.0.
    pub fn lt(self) -> Self {
        self.option(|request| request.arg("LT"))
    }
}

/// Options of `RESTORE`, see [`restore`](crate::commands::restore).
#[derive(Clone, Copy, Debug)]
pub struct Restore(());

impl<C, T> Command<C, T, Restore> {
    /// `REPLACE`, since Redis 3.0.0.
    pub fn replace(self) -> Self {
        self.option(|request| request.arg("REPLACE"))
    }

    /// `ABSTTL`, since Redis 5.0.0.
    pub fn abs_ttl(self) -> Self {
        self.option(|request| request.arg("ABSTTL"))
    }

    /// `IDLETIME seconds`, since Redis 5.0.0.
    pub fn idle_time(self, seconds: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("IDLETIME");
            request.arg(seconds);
        })
    }

    /// `FREQ frequency`, since Redis 5.0.0.
    pub fn freq(self, frequency: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("FREQ");
            request.arg(frequency);
        })
    }
}

/// Options of `SCAN`, see [`scan`](crate::commands::scan).
#[derive(Clone, Copy, Debug)]
pub struct Scan(());

impl<C, T> Command<C, T, Scan> {
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

    /// `TYPE type`, since Redis 6.0.0.
    pub fn of_type(self, kind: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("TYPE");
            request.arg(kind);
        })
    }
}

/// Options of `SORT`, see [`sort`](crate::commands::sort).
#[derive(Clone, Copy, Debug)]
pub struct Sort(());

impl<C, T> Command<C, T, Sort> {
    /// `BY pattern`.
    pub fn by(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("BY");
            request.arg(pattern);
        })
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }

    /// `GET pattern`. May be called again.
    pub fn get(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("GET");
            request.arg(pattern);
        })
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }

    /// `ALPHA`.
    pub fn alpha(self) -> Self {
        self.option(|request| request.arg("ALPHA"))
    }
}

/// Options of `SORT`, see [`sort_store`](crate::commands::sort_store).
#[derive(Clone, Copy, Debug)]
pub struct SortStore(());

impl<C, T> Command<C, T, SortStore> {
    /// `BY pattern`.
    pub fn by(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("BY");
            request.arg(pattern);
        })
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }

    /// `GET pattern`. May be called again.
    pub fn get(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("GET");
            request.arg(pattern);
        })
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }

    /// `ALPHA`.
    pub fn alpha(self) -> Self {
        self.option(|request| request.arg("ALPHA"))
    }
}

/// Options of `SORT_RO`, see [`sort_ro`](crate::commands::sort_ro).
#[derive(Clone, Copy, Debug)]
pub struct SortRo(());

impl<C, T> Command<C, T, SortRo> {
    /// `BY pattern`.
    pub fn by(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("BY");
            request.arg(pattern);
        })
    }

    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToArg, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(offset);
            request.arg(count);
        })
    }

    /// `GET pattern`. May be called again.
    pub fn get(self, pattern: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("GET");
            request.arg(pattern);
        })
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }

    /// `ALPHA`.
    pub fn alpha(self) -> Self {
        self.option(|request| request.arg("ALPHA"))
    }
}
