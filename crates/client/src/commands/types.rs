//! Arguments with a fixed set of values.
//!
//! Written by the test `client_commands` from the server's command table: do not edit.

use crate::arg::{Args, ToArg};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `LEFT`.
    Left,
    /// `RIGHT`.
    Right,
}

impl ToArg for Side {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Side::Left => "LEFT",
            Side::Right => "RIGHT",
        };
        args.push(arg.as_bytes());
    }
}

/// The end of a sorted set from which members are popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
}

impl ToArg for Extreme {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Extreme::Min => "MIN",
            Extreme::Max => "MAX",
        };
        args.push(arg.as_bytes());
    }
}

/// The position of a new element, relative to an existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `BEFORE`.
    Before,
    /// `AFTER`.
    After,
}

impl ToArg for Place {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Place::Before => "BEFORE",
            Place::After => "AFTER",
        };
        args.push(arg.as_bytes());
    }
}

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `M`.
    M,
    /// `KM`.
    Km,
    /// `FT`.
    Ft,
    /// `MI`.
    Mi,
}

impl ToArg for Unit {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Unit::M => "M",
            Unit::Km => "KM",
            Unit::Ft => "FT",
            Unit::Mi => "MI",
        };
        args.push(arg.as_bytes());
    }
}

/// How the scores of a member in several sorted sets are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// `SUM`.
    Sum,
    /// `MIN`.
    Min,
    /// `MAX`.
    Max,
}

impl ToArg for Aggregate {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Aggregate::Sum => "SUM",
            Aggregate::Min => "MIN",
            Aggregate::Max => "MAX",
        };
        args.push(arg.as_bytes());
    }
}

/// The effect of an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// `WRAP`.
    Wrap,
    /// `SAT`.
    Sat,
    /// `FAIL`.
    Fail,
}

impl ToArg for Overflow {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Overflow::Wrap => "WRAP",
            Overflow::Sat => "SAT",
            Overflow::Fail => "FAIL",
        };
        args.push(arg.as_bytes());
    }
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YesNo {
    /// `YES`.
    Yes,
    /// `NO`.
    No,
}

impl ToArg for YesNo {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            YesNo::Yes => "YES",
            YesNo::No => "NO",
        };
        args.push(arg.as_bytes());
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// `ON`.
    On,
    /// `OFF`.
    Off,
}

impl ToArg for Switch {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Switch::On => "ON",
            Switch::Off => "OFF",
        };
        args.push(arg.as_bytes());
    }
}

/// Which replies the server sends to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// `ON`.
    On,
    /// `OFF`.
    Off,
    /// `SKIP`.
    Skip,
}

impl ToArg for Replies {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Replies::On => "ON",
            Replies::Off => "OFF",
            Replies::Skip => "SKIP",
        };
        args.push(arg.as_bytes());
    }
}

/// How scripts are debugged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptDebugging {
    /// `YES`.
    Yes,
    /// `SYNC`.
    Synchronous,
    /// `NO`.
    No,
}

impl ToArg for ScriptDebugging {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            ScriptDebugging::Yes => "YES",
            ScriptDebugging::Synchronous => "SYNC",
            ScriptDebugging::No => "NO",
        };
        args.push(arg.as_bytes());
    }
}

/// How safe a write must be before the server replies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// `MEMORY`.
    Memory,
    /// `LOG`.
    Log,
    /// `DISK`.
    Disk,
    /// `DEFAULT`.
    Default,
}

impl ToArg for Durability {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            Durability::Memory => "MEMORY",
            Durability::Log => "LOG",
            Durability::Disk => "DISK",
            Durability::Default => "DEFAULT",
        };
        args.push(arg.as_bytes());
    }
}

/// The type of the clients to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientType {
    /// `NORMAL`.
    Normal,
    /// `MASTER`.
    Master,
    /// `REPLICA`.
    Replica,
    /// `PUBSUB`.
    Pubsub,
}

impl ToArg for ClientType {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            ClientType::Normal => "NORMAL",
            ClientType::Master => "MASTER",
            ClientType::Replica => "REPLICA",
            ClientType::Pubsub => "PUBSUB",
        };
        args.push(arg.as_bytes());
    }
}

/// The type of the clients to disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KilledType {
    /// `NORMAL`.
    Normal,
    /// `MASTER`.
    Master,
    /// `SLAVE`.
    Slave,
    /// `REPLICA`.
    Replica,
    /// `PUBSUB`.
    Pubsub,
}

impl ToArg for KilledType {
    fn write(&self, args: &mut Args<'_>) {
        let arg = match self {
            KilledType::Normal => "NORMAL",
            KilledType::Master => "MASTER",
            KilledType::Slave => "SLAVE",
            KilledType::Replica => "REPLICA",
            KilledType::Pubsub => "PUBSUB",
        };
        args.push(arg.as_bytes());
    }
}
