//! The error of every reader of foreign bytes in this crate: what is wrong, and where.

/// Bytes from outside that break their format's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Where reading stopped, in bytes from the start of the format.
    pub offset: usize,
    /// The rule that is broken, as a phrase.
    pub what: &'static str,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.what, self.offset)
    }
}

impl std::error::Error for Malformed {}
