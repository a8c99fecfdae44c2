//! What can be wrong with bytes that are to be loaded.

use std::io;

/// Why a file or payload cannot be loaded. Offsets are bytes from its start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    #[error("the data ends at byte {offset}, before the value or file does")]
    Truncated { offset: u64 },
    #[error("this is no RDB file: it does not begin with REDIS or VALKEY and a version")]
    NotRdb,
    #[error("RDB version {0} cannot be read: versions 1 to 12 and 80 can")]
    UnsupportedVersion(u32),
    #[error("unknown value type or opcode {code} at byte {offset}")]
    UnknownType { offset: u64, code: u8 },
    #[error("data of module {module} at byte {offset} cannot be loaded: modules are not supported")]
    UnsupportedModule { offset: u64, module: String },
    #[error("{what} at byte {offset} comes from a pre-release server and cannot be loaded")]
    PreRelease { offset: u64, what: &'static str },
    /// A rule of the format is broken, or the value means nothing.
    #[error("{what} (before byte {offset})")]
    Malformed { offset: u64, what: &'static str },
    /// The same within a value: `part` names what it is stored as, in the words that logs are searched
    /// for.
    #[error("{part} integrity check failed: {what} (before byte {offset})")]
    Value { part: &'static str, offset: u64, what: &'static str },
    #[error("RDB CRC error: the checksum is {stored:016x}, but the data's is {computed:016x}")]
    Checksum { stored: u64, computed: u64 },
    /// A DUMP payload whose last ten bytes are no footer of a version that can be read, or whose
    /// checksum differs. Its text is the one clients know.
    #[error("DUMP payload version or checksum are wrong")]
    Footer,
    /// A collection without elements, which no server keeps.
    #[error("the value has no elements")]
    Empty,
    #[error("{bytes} bytes follow the value's end at byte {offset}")]
    TrailingBytes { offset: u64, bytes: u64 },
}
