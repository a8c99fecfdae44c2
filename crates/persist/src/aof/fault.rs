//! How a file of commands can end other than well, and what is wrong there.

use std::io;

/// Why a file cannot be read to its end. Positions are bytes from its start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AofError {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The last command or batch was not written to its end; nothing whole stands behind it.
    #[error("the file was whole up to byte {at}, then ends before what stands there does: {fault}")]
    Torn {
        /// Where the file has to be cut: what begins here is not whole.
        at: u64,
        fault: Fault,
    },
    /// The file ends between two commands of a transaction.
    #[error("the file ends within the transaction that begins at byte {at}")]
    OpenMulti {
        /// Where the MULTI begins.
        at: u64,
    },
    /// What stands there was never written so, and no loss of the end explains it.
    #[error("the file is damaged behind byte {at}: {fault}{}", said(*.behind))]
    Damaged {
        /// Up to where all is whole.
        at: u64,
        fault: Fault,
        /// Where behind it something whole begins.
        behind: Option<u64>,
    },
}

fn said(behind: Option<u64>) -> String {
    behind.map_or_else(String::new, |at| format!("; a whole batch or command follows at byte {at}"))
}

impl AofError {
    /// Where to cut a file that only lacks its end: what is before is whole, what is behind was
    /// never finished.
    #[must_use]
    pub fn truncate_at(&self) -> Option<u64> {
        match self {
            AofError::Torn { at, .. } | AofError::OpenMulti { at } => Some(*at),
            AofError::Io(_) | AofError::Damaged { .. } => None,
        }
    }

    /// Up to where the file is whole; `None` if it could not be read.
    #[must_use]
    pub fn whole_until(&self) -> Option<u64> {
        match self {
            AofError::Torn { at, .. }
            | AofError::OpenMulti { at }
            | AofError::Damaged { at, .. } => Some(*at),
            AofError::Io(_) => None,
        }
    }
}

/// What is wrong, and where exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} {kind}")]
pub struct Fault {
    /// Where the line or string begins that is wrong.
    pub offset: u64,
    /// How many lines and strings of the command are whole before it.
    pub lines: u64,
    pub kind: FaultKind,
}

/// What can be wrong with a file of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    #[error("a line is missing")]
    NoLine,
    #[error("a line has no end")]
    UnfinishedLine,
    #[error("a string of {wanted} bytes, its end included, has only {got}")]
    ShortString { wanted: u64, got: u64 },
    #[error("neither a command nor an annotation begins")]
    NotACommand(u8),
    #[error("'{}' was expected, not '{}'", char::from(*.expected), .got.escape_ascii())]
    Prefix { expected: u8, got: u8 },
    #[error("CR LF was expected, not {:02x}{:02x}", .0[0], .0[1])]
    NoNewline([u8; 2]),
    #[error("a number is too large")]
    TooLarge,
    #[error("a command has no words")]
    NoWords,
    #[error("a MULTI stands within a transaction")]
    NestedMulti,
    #[error("an EXEC stands outside of a transaction")]
    LoneExec,
    #[error("an annotation is too long")]
    LongAnnotation,
    #[error("a line is no text")]
    Garbled,
    #[error("the line of a batch cannot be understood")]
    BatchLine,
    #[error("a batch of {wanted} bytes has only {got}")]
    ShortBatch { wanted: u64, got: u64 },
    #[error("the checksum of a batch is {stored:08x}, but that of its bytes {computed:08x}")]
    BatchChecksum { stored: u32, computed: u32 },
    #[error("an annotation stands within a batch")]
    AnnotationInBatch,
    #[error("what stands there goes beyond the end of its batch")]
    BeyondBatch,
    #[error("a batch begins or ends within a transaction")]
    BatchInTransaction,
}
