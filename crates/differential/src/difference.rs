//! A difference between two servers.

/// One observed difference.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The command, or the query of the keyspace.
    pub what: String,
    /// Name of the row, or the kind of state. Shrinking accepts only differences of the same kind.
    pub kind: String,
    pub ours: String,
    pub theirs: String,
}
