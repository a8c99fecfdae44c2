//! Prefetching inside values: what the coming commands of one key will look up in it is prefetched
//! together, so that they do not wait for the memory one after the other.

use super::Database;
use crate::command::args::PreparedKey;
use crate::types::Value;
use brisk_structures::entry::ValueRef;

impl Database {
    /// Prefetches what looking up these elements (fields, members) in the value of a key will read.
    /// A hint that changes nothing: somebody who has the slot is not waited for, and the key's
    /// deadline is not looked at. `scores` are those that the elements are to have, if they are to
    /// have any. O(elements).
    pub fn prefetch_elements(
        &self,
        name: &[u8],
        key: &PreparedKey,
        elements: &[&[u8]],
        scores: &[&[u8]],
    ) {
        let Some(guard) = self.slot(key.slot).try_lock() else { return };
        let Some(entry) = guard.table().find(key.hash, name) else { return };
        if let ValueRef::Object(value) = entry.value() {
            value.prefetch(elements, scores);
        }
    }
}

impl Value {
    fn prefetch(&self, elements: &[&[u8]], scores: &[&[u8]]) {
        match self {
            Value::Hash(hash) => hash.prefetch(elements),
            Value::Set(set) => set.prefetch(elements),
            Value::SortedSet(set) => set.prefetch(elements, scores),
            Value::Str(_) | Value::List(_) | Value::Stream(_) => {}
        }
    }
}
