//! Large values that were unlinked. Another thread frees them, because that takes a long time.

use crate::reply::ReplyStream;
use crate::types::{Entry, Table, Value, allocated_bytes};
use std::any::Any;

/// An unlinked object that another thread frees.
pub enum Garbage {
    Entry(Entry),
    Table(Table),
    Value(Value),
    /// The view from which a large reply was written.
    View(ReplyStream),
    /// A computation for a command that is no longer needed.
    Other(Box<dyn Any + Send>),
}

impl Garbage {
    /// Estimated number of bytes that freeing the object releases. The size of a table is estimated
    /// from two of its keys. Parts that are shared with other values are included. The result is 0
    /// for views and other objects, whose size is unknown. O(parts of the value)
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Garbage::Entry(entry) => allocated_bytes(entry),
            Garbage::Value(value) => value.allocated_bytes(),
            Garbage::Table(table) => table_bytes(table),
            Garbage::View(_) | Garbage::Other(_) => 0,
        }
    }
}

/// Estimated bytes of a table with its entries.
pub(crate) fn table_bytes(table: &Table) -> usize {
    const SAMPLES: usize = 2;
    let (mut bytes, mut count) = (0, 0);
    table.view().sample_many(0, SAMPLES, |entry| {
        bytes += allocated_bytes(&entry);
        count += 1;
    });
    bytes.saturating_mul(table.view().len()).checked_div(count).unwrap_or(0)
}
