//! The error of all readers of external bytes in this crate: the fault and its offset.

/// External bytes that violate the rules of their format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Where reading stopped, in bytes from the start of the data.
    pub offset: usize,
    /// The violated rule, as a phrase.
    pub what: &'static str,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.what, self.offset)
    }
}

impl std::error::Error for Malformed {}
