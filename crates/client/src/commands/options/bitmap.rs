//! Options of the commands of the group `bitmap`.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::ToArg;
use crate::command::Command;
use crate::commands::types;

/// Options of `BITCOUNT`, see [`bitcount`](crate::commands::bitcount).
#[derive(Clone, Copy, Debug)]
pub struct Bitcount(());

impl<C, T> Command<C, T, Bitcount> {
    /// `start end`.
    pub fn range(self, start: impl ToArg, end: impl ToArg) -> Self {
        self.option(|request| {
            request.arg(start);
            request.arg(end);
        })
    }

    /// `BYTE`, since Redis 7.0.0. Only after `range`.
    pub fn byte(self) -> Self {
        self.option(|request| request.arg("BYTE"))
    }

    /// `BIT`, since Redis 7.0.0. Only after `range`.
    pub fn bit(self) -> Self {
        self.option(|request| request.arg("BIT"))
    }
}

/// Options of `BITFIELD`, see [`bitfield`](crate::commands::bitfield).
#[derive(Clone, Copy, Debug)]
pub struct Bitfield(());

impl<C, T> Command<C, T, Bitfield> {
    /// `GET encoding offset`. May be called again.
    pub fn get(self, encoding: impl ToArg, offset: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("GET");
            request.arg(encoding);
            request.arg(offset);
        })
    }

    /// `OVERFLOW <WRAP | SAT | FAIL>`. May be called again.
    pub fn overflow(self, wrap_sat_fail: types::Overflow) -> Self {
        self.option(|request| {
            request.arg("OVERFLOW");
            request.arg(wrap_sat_fail);
        })
    }

    /// `<SET encoding offset value | INCRBY encoding offset increment>`. May be called again.
    pub fn set(self, encoding: impl ToArg, offset: impl ToArg, value: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("SET");
            request.arg(encoding);
            request.arg(offset);
            request.arg(value);
        })
    }

    /// `<SET encoding offset value | INCRBY encoding offset increment>`. May be called again.
    pub fn incr_by(self, encoding: impl ToArg, offset: impl ToArg, increment: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("INCRBY");
            request.arg(encoding);
            request.arg(offset);
            request.arg(increment);
        })
    }
}

/// Options of `BITFIELD_RO`, see [`bitfield_ro`](crate::commands::bitfield_ro).
#[derive(Clone, Copy, Debug)]
pub struct BitfieldRo(());

impl<C, T> Command<C, T, BitfieldRo> {
    /// `GET encoding offset`. May be called again.
    pub fn get(self, encoding: impl ToArg, offset: impl ToArg) -> Self {
        self.option(|request| {
            request.arg("GET");
            request.arg(encoding);
            request.arg(offset);
        })
    }
}

/// Options of `BITPOS`, see [`bitpos`](crate::commands::bitpos).
#[derive(Clone, Copy, Debug)]
pub struct Bitpos(());

impl<C, T> Command<C, T, Bitpos> {
    /// `start`.
    pub fn start(self, start: impl ToArg) -> Self {
        self.option(|request| request.arg(start))
    }

    /// `end`. Only after `start`.
    pub fn end(self, end: impl ToArg) -> Self {
        self.option(|request| request.arg(end))
    }

    /// `BYTE`, since Redis 7.0.0. Only after `end`.
    pub fn byte(self) -> Self {
        self.option(|request| request.arg("BYTE"))
    }

    /// `BIT`, since Redis 7.0.0. Only after `end`.
    pub fn bit(self) -> Self {
        self.option(|request| request.arg("BIT"))
    }
}
