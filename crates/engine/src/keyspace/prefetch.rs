//! Prefetching inside values. The elements that the next commands will look up in one key are
//! prefetched together, so that their cache misses overlap.

use super::Database;
use crate::command::args::PreparedKey;
use crate::types::Value;
use brisk_structures::entry::ValueRef;

impl Database {
    /// Prefetches the memory that looking up these elements (fields, members) in a key's value will
    /// read. It is only a hint: it does not wait for a locked slot, and ignores the key's TTL.
    /// `scores` are the scores that the elements will get, if any. O(elements).
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
