//! Errors of loading RDB files and DUMP payloads.

use std::io;

/// Why a file or payload cannot be loaded. Offsets are in bytes from its start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    #[error("the data ends at byte {offset}, before the value or file does")]
    Truncated { offset: u64 },
    #[error("this is not an RDB file: it does not begin with REDIS or VALKEY and a version")]
    NotRdb,
    #[error("RDB version {0} cannot be read: versions 1 to 12 and 80 can")]
    UnsupportedVersion(u32),
    #[error("unknown value type or opcode {code} at byte {offset}")]
    UnknownType { offset: u64, code: u8 },
    #[error("data of module {module} at byte {offset} cannot be loaded: modules are not supported")]
    UnsupportedModule { offset: u64, module: String },
    #[error("{what} at byte {offset} comes from a pre-release server and cannot be loaded")]
    PreRelease { offset: u64, what: &'static str },
    /// A rule of the format is broken, or a value makes no sense.
    #[error("{what} (before byte {offset})")]
    Malformed { offset: u64, what: &'static str },
    /// Like `Malformed`, but within a value. `part` names the encoding of the value, in the terms
    /// that people search logs for.
    #[error("{part} integrity check failed: {what} (before byte {offset})")]
    Value { part: &'static str, offset: u64, what: &'static str },
    #[error("RDB CRC error: the checksum is {stored:016x}, but the data's is {computed:016x}")]
    Checksum { stored: u64, computed: u64 },
    /// A DUMP payload whose footer has an unsupported version or a wrong checksum. The text is the
    /// one that Redis sends to clients.
    #[error("DUMP payload version or checksum are wrong")]
    Footer,
    /// A collection without elements, which no server stores.
    #[error("the value has no elements")]
    Empty,
    #[error("{bytes} bytes follow the value's end at byte {offset}")]
    TrailingBytes { offset: u64, bytes: u64 },
}
