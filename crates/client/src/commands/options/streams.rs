//! Options of the commands of the group `stream`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `XADD`, see [`xadd`](crate::commands::xadd).
#[derive(Clone, Copy, Debug)]
pub struct Xadd(());

impl<C, T> Command<C, T, Xadd> {
    /// `<MAXLEN | MINID> [= | ~] threshold`.
    pub fn max_len(self, threshold: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MAXLEN");
            request.arg(threshold);
        })
    }

    /// `<MAXLEN | MINID> [= | ~] threshold`.
    pub fn max_len_about(self, threshold: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MAXLEN");
            request.arg("~");
            request.arg(threshold);
        })
    }

    /// `<MAXLEN | MINID> [= | ~] threshold`.
    pub fn min_id(self, threshold: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MINID");
            request.arg(threshold);
        })
    }

    /// `<MAXLEN | MINID> [= | ~] threshold`.
    pub fn min_id_about(self, threshold: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MINID");
            request.arg("~");
            request.arg(threshold);
        })
    }

    /// `LIMIT count`, since Redis 6.2.0. Only after `max_len`.
    pub fn limit(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LIMIT");
            request.arg(count);
        })
    }
}

impl<C> Command<C, String, Xadd> {
    /// `NOMKSTREAM`, since Redis 6.2.0.
    pub fn no_mk_stream(self) -> Command<C, Option<String>, Xadd> {
        self.option(|request| request.arg("NOMKSTREAM")).reply_as()
    }
}

/// Options of `XAUTOCLAIM`, see [`xautoclaim`](crate::commands::xautoclaim).
#[derive(Clone, Copy, Debug)]
pub struct Xautoclaim(());

impl<C, T> Command<C, T, Xautoclaim> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `JUSTID`.
    pub fn just_id(self) -> Self {
        self.option(|request| request.arg("JUSTID"))
    }
}

/// Options of `XCLAIM`, see [`xclaim`](crate::commands::xclaim).
#[derive(Clone, Copy, Debug)]
pub struct Xclaim(());

impl<C, T> Command<C, T, Xclaim> {
    /// `IDLE ms`.
    pub fn idle(self, ms: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("IDLE");
            request.arg(ms);
        })
    }

    /// `TIME unix-time-milliseconds`.
    pub fn time(self, unix_time_milliseconds: i64) -> Self {
        self.option(|request| {
            request.arg("TIME");
            request.arg(unix_time_milliseconds);
        })
    }

    /// `RETRYCOUNT count`.
    pub fn retry_count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("RETRYCOUNT");
            request.arg(count);
        })
    }

    /// `FORCE`.
    pub fn force(self) -> Self {
        self.option(|request| request.arg("FORCE"))
    }

    /// `JUSTID`.
    pub fn just_id(self) -> Self {
        self.option(|request| request.arg("JUSTID"))
    }

    /// `LASTID id`.
    pub fn last_id(self, id: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("LASTID");
            request.arg(id);
        })
    }
}

/// Options of `XGROUP CREATE`, see [`xgroup_create`](crate::commands::xgroup_create).
#[derive(Clone, Copy, Debug)]
pub struct XgroupCreate(());

impl<C, T> Command<C, T, XgroupCreate> {
    /// `MKSTREAM`.
    pub fn mk_stream(self) -> Self {
        self.option(|request| request.arg("MKSTREAM"))
    }

    /// `ENTRIESREAD entries_read`.
    pub fn entries_read(self, entries_read: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("ENTRIESREAD");
            request.arg(entries_read);
        })
    }
}

/// Options of `XGROUP SETID`, see [`xgroup_setid`](crate::commands::xgroup_setid).
#[derive(Clone, Copy, Debug)]
pub struct XgroupSetid(());

impl<C, T> Command<C, T, XgroupSetid> {
    /// `ENTRIESREAD entries_read`.
    pub fn entries_read(self, entries_read: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("ENTRIESREAD");
            request.arg(entries_read);
        })
    }
}

/// Options of `XINFO STREAM`, see [`xinfo_stream`](crate::commands::xinfo_stream).
#[derive(Clone, Copy, Debug)]
pub struct XinfoStream(());

impl<C, T> Command<C, T, XinfoStream> {
    /// `FULL`.
    pub fn full(self) -> Self {
        self.option(|request| request.arg("FULL"))
    }

    /// `COUNT count`. Only after `full`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `XPENDING`, see [`xpending_range`](crate::commands::xpending_range).
#[derive(Clone, Copy, Debug)]
pub struct XpendingRange(());

impl<C, T> Command<C, T, XpendingRange> {
    /// `IDLE min-idle-time`, since Redis 6.2.0.
    pub fn idle(self, min_idle_time: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("IDLE");
            request.arg(min_idle_time);
        })
    }

    /// `consumer`.
    pub fn consumer(mut self, consumer: impl ToArg) -> Self {
        self = self.arg(consumer);
        self
    }
}

/// Options of `XRANGE`, see [`xrange`](crate::commands::xrange).
#[derive(Clone, Copy, Debug)]
pub struct Xrange(());

impl<C, T> Command<C, T, Xrange> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `XREAD`, see [`xread`](crate::commands::xread).
#[derive(Clone, Copy, Debug)]
pub struct Xread(());

impl<C, T> Command<C, T, Xread> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `XREAD`, see [`xread_block`](crate::commands::xread_block).
#[derive(Clone, Copy, Debug)]
pub struct XreadBlock(());

impl<C, T> Command<C, T, XreadBlock> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `XREADGROUP`, see [`xreadgroup`](crate::commands::xreadgroup).
#[derive(Clone, Copy, Debug)]
pub struct Xreadgroup(());

impl<C, T> Command<C, T, Xreadgroup> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `NOACK`.
    pub fn no_ack(self) -> Self {
        self.option(|request| request.arg("NOACK"))
    }
}

/// Options of `XREADGROUP`, see [`xreadgroup_block`](crate::commands::xreadgroup_block).
#[derive(Clone, Copy, Debug)]
pub struct XreadgroupBlock(());

impl<C, T> Command<C, T, XreadgroupBlock> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `NOACK`.
    pub fn no_ack(self) -> Self {
        self.option(|request| request.arg("NOACK"))
    }
}

/// Options of `XREVRANGE`, see [`xrevrange`](crate::commands::xrevrange).
#[derive(Clone, Copy, Debug)]
pub struct Xrevrange(());

impl<C, T> Command<C, T, Xrevrange> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }
}

/// Options of `XSETID`, see [`xsetid`](crate::commands::xsetid).
#[derive(Clone, Copy, Debug)]
pub struct Xsetid(());

impl<C, T> Command<C, T, Xsetid> {
    /// `ENTRIESADDED entries_added`, since Redis 7.0.0.
    pub fn entries_added(self, entries_added: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("ENTRIESADDED");
            request.arg(entries_added);
        })
    }

    /// `MAXDELETEDID max_deleted_entry_id`, since Redis 7.0.0.
    pub fn max_deleted_id(self, max_deleted_entry_id: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("MAXDELETEDID");
            request.arg(max_deleted_entry_id);
        })
    }
}

/// Options of `XTRIM`, see [`xtrim_max_len`](crate::commands::xtrim_max_len).
#[derive(Clone, Copy, Debug)]
pub struct Xtrim(());

impl<C, T> Command<C, T, Xtrim> {
    /// `~`.
    pub fn about(self) -> Self {
        self.option(|request| request.arg("~"))
    }

    /// `LIMIT count`, since Redis 6.2.0.
    pub fn limit(mut self, count: impl ToArg) -> Self {
        self = self.arg("LIMIT");
        self = self.arg(count);
        self
    }
}
