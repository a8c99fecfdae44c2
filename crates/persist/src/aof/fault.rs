//! Errors that stop the reader before the end of a file of commands.

use std::io;

/// Why a file cannot be read to its end. Positions are byte offsets from its start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AofError {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The last command or batch is incomplete, and nothing valid follows it.
    #[error("the file is complete up to byte {at}, and incomplete after it: {fault}")]
    Torn {
        /// Where to truncate the file: the item that begins here is incomplete.
        at: u64,
        fault: Fault,
    },
    /// The file ends between two commands of a transaction.
    #[error("the file ends within the transaction that begins at byte {at}")]
    OpenMulti {
        /// Offset of the MULTI.
        at: u64,
    },
    /// The bytes were never written this way, and a missing end of the file does not explain them.
    #[error("the file is damaged after byte {at}: {fault}{}", next_valid_text(*.next_valid))]
    Damaged {
        /// Everything before this offset is valid.
        at: u64,
        fault: Fault,
        /// Offset of the next valid batch or command after the fault.
        next_valid: Option<u64>,
    },
}

fn next_valid_text(next_valid: Option<u64>) -> String {
    next_valid
        .map_or_else(String::new, |at| format!("; a valid batch or command follows at byte {at}"))
}

impl AofError {
    /// Returns where to truncate a file that only lacks its end: everything before this offset is
    /// complete, and everything after it was never finished.
    #[must_use]
    pub fn truncate_at(&self) -> Option<u64> {
        match self {
            AofError::Torn { at, .. } | AofError::OpenMulti { at } => Some(*at),
            AofError::Io(_) | AofError::Damaged { .. } => None,
        }
    }

    /// Returns the offset up to which the file is valid; `None` if it could not be read.
    #[must_use]
    pub fn intact_until(&self) -> Option<u64> {
        match self {
            AofError::Torn { at, .. }
            | AofError::OpenMulti { at }
            | AofError::Damaged { at, .. } => Some(*at),
            AofError::Io(_) => None,
        }
    }
}

/// A fault and its exact position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} {kind}")]
pub struct Fault {
    /// Offset of the faulty line or string.
    pub offset: u64,
    /// Number of complete lines and strings of the command before the fault.
    pub lines: u64,
    pub kind: FaultKind,
}

/// The kinds of faults in a file of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    #[error("a line is missing")]
    NoLine,
    #[error("a line is incomplete")]
    UnfinishedLine,
    #[error("a string of {wanted} bytes, including its line end, has only {got}")]
    ShortString { wanted: u64, got: u64 },
    #[error("neither a command nor an annotation begins here")]
    NotACommand(u8),
    #[error("expected '{}', found '{}'", char::from(*.expected), .got.escape_ascii())]
    Prefix { expected: u8, got: u8 },
    #[error("expected CR LF, found {:02x}{:02x}", .0[0], .0[1])]
    NoNewline([u8; 2]),
    #[error("a number is too large")]
    TooLarge,
    #[error("a command has no arguments")]
    NoArguments,
    #[error("a MULTI within a transaction")]
    NestedMulti,
    #[error("an EXEC outside of a transaction")]
    LoneExec,
    #[error("an annotation is too long")]
    LongAnnotation,
    #[error("a line is not text")]
    Garbled,
    #[error("the header line of a batch is not valid")]
    BatchLine,
    #[error("a batch of {wanted} bytes has only {got}")]
    ShortBatch { wanted: u64, got: u64 },
    #[error(
        "the checksum of a batch is {stored:08x}, but the checksum of its bytes is {computed:08x}"
    )]
    BatchChecksum { stored: u32, computed: u32 },
    #[error("an annotation within a batch")]
    AnnotationInBatch,
    #[error("a command extends beyond the end of its batch")]
    BeyondBatch,
    #[error("a batch begins or ends within a transaction")]
    BatchInTransaction,
}
