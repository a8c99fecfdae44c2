//! Options of the commands of the group `geo`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;

/// Options of `GEOADD`, see [`geoadd`](crate::commands::geoadd).
#[derive(Clone, Copy, Debug)]
pub struct Geoadd(());

impl<C, T> Command<C, T, Geoadd> {
    /// `NX`, since Redis 6.2.0.
    pub fn nx(self) -> Self {
        self.option(|request| request.arg("NX"))
    }

    /// `XX`, since Redis 6.2.0.
    pub fn xx(self) -> Self {
        self.option(|request| request.arg("XX"))
    }

    /// `CH`, since Redis 6.2.0.
    pub fn ch(self) -> Self {
        self.option(|request| request.arg("CH"))
    }
}

/// Options of `GEODIST`, see [`geodist`](crate::commands::geodist).
#[derive(Clone, Copy, Debug)]
pub struct Geodist(());

impl<C, T> Command<C, T, Geodist> {
    /// `M`.
    pub fn m(self) -> Self {
        self.option(|request| request.arg("M"))
    }

    /// `KM`.
    pub fn km(self) -> Self {
        self.option(|request| request.arg("KM"))
    }

    /// `FT`.
    pub fn ft(self) -> Self {
        self.option(|request| request.arg("FT"))
    }

    /// `MI`.
    pub fn mi(self) -> Self {
        self.option(|request| request.arg("MI"))
    }
}

/// Options of `GEORADIUS`, see [`georadius`](crate::commands::georadius).
#[derive(Clone, Copy, Debug)]
pub struct Georadius(());

impl<C, T> Command<C, T, Georadius> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`, since Redis 6.2.0. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUS`, see [`georadius_store`](crate::commands::georadius_store).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusStore(());

impl<C, T> Command<C, T, GeoradiusStore> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`, since Redis 6.2.0. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUS`, see [`georadius_store_dist`](crate::commands::georadius_store_dist).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusStoreDist(());

impl<C, T> Command<C, T, GeoradiusStoreDist> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`, since Redis 6.2.0. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUS_RO`, see [`georadius_ro`](crate::commands::georadius_ro).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusRo(());

impl<C, T> Command<C, T, GeoradiusRo> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`, since Redis 6.2.0. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUSBYMEMBER`, see [`georadiusbymember`](crate::commands::georadiusbymember).
#[derive(Clone, Copy, Debug)]
pub struct Georadiusbymember(());

impl<C, T> Command<C, T, Georadiusbymember> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUSBYMEMBER`, see [`georadiusbymember_store`](crate::commands::georadiusbymember_store).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusbymemberStore(());

impl<C, T> Command<C, T, GeoradiusbymemberStore> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUSBYMEMBER`, see
/// [`georadiusbymember_store_dist`](crate::commands::georadiusbymember_store_dist).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusbymemberStoreDist(());

impl<C, T> Command<C, T, GeoradiusbymemberStoreDist> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEORADIUSBYMEMBER_RO`, see [`georadiusbymember_ro`](crate::commands::georadiusbymember_ro).
#[derive(Clone, Copy, Debug)]
pub struct GeoradiusbymemberRo(());

impl<C, T> Command<C, T, GeoradiusbymemberRo> {
    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }
}

/// Options of `GEOSEARCH`, see
/// [`geosearch_from_member_by_radius`](crate::commands::geosearch_from_member_by_radius).
#[derive(Clone, Copy, Debug)]
pub struct Geosearch(());

impl<C, T> Command<C, T, Geosearch> {
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `WITHCOORD`.
    pub fn with_coord(self) -> Self {
        self.option(|request| request.arg("WITHCOORD"))
    }

    /// `WITHDIST`.
    pub fn with_dist(self) -> Self {
        self.option(|request| request.arg("WITHDIST"))
    }

    /// `WITHHASH`.
    pub fn with_hash(self) -> Self {
        self.option(|request| request.arg("WITHHASH"))
    }
}

/// Options of `GEOSEARCHSTORE`, see
/// [`geosearchstore_from_member_by_radius`](crate::commands::geosearchstore_from_member_by_radius).
#[derive(Clone, Copy, Debug)]
pub struct Geosearchstore(());

impl<C, T> Command<C, T, Geosearchstore> {
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.option(|request| request.arg("ASC"))
    }

    /// `DESC`.
    pub fn desc(self) -> Self {
        self.option(|request| request.arg("DESC"))
    }

    /// `COUNT count`.
    pub fn count(self, count: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("COUNT");
            request.arg(count);
        })
    }

    /// `ANY`. Only after `count`.
    pub fn any(self) -> Self {
        self.option(|request| request.arg("ANY"))
    }

    /// `STOREDIST`.
    pub fn store_dist(self) -> Self {
        self.option(|request| request.arg("STOREDIST"))
    }
}
