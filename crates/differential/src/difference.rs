//! A difference between two servers.

/// What differed.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The command, or the query of the keyspace.
    pub what: String,
    /// Name of the row, or the kind of state; shrinking keeps to differences of the same kind.
    pub kind: String,
    pub ours: String,
    pub theirs: String,
}
