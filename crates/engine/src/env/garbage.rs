//! What was unlinked and is freed by another thread, because that takes long.

use crate::reply::ReplyStream;
use crate::types::{Entry, Table, Value, allocated_bytes};
use std::any::Any;

/// Something large that was unlinked and is freed by another thread.
pub enum Garbage {
    Entry(Entry),
    Table(Table),
    Value(Value),
    /// The view that a large reply was written from.
    View(ReplyStream),
    /// What was computed for a command and is of no use.
    Other(Box<dyn Any + Send>),
}

impl Garbage {
    /// Bytes that are free once it is, about: of a table what two of its keys tell, and parts that
    /// others share are counted. Unknown, and 0, of views and other things. O(parts of the value)
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Garbage::Entry(entry) => allocated_bytes(entry),
            Garbage::Value(value) => value.allocated_bytes(),
            Garbage::Table(table) => table_bytes(table),
            Garbage::View(_) | Garbage::Other(_) => 0,
        }
    }
}

/// Bytes that a table takes with its entries, about.
pub(crate) fn table_bytes(table: &Table) -> usize {
    const SAMPLES: usize = 2;
    let (mut bytes, mut count) = (0, 0);
    table.view().sample_many(0, SAMPLES, |entry| {
        bytes += allocated_bytes(&entry);
        count += 1;
    });
    bytes.saturating_mul(table.view().len()).checked_div(count).unwrap_or(0)
}
